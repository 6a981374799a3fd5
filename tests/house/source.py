"""Our own source as the house tests look at it: files, imports and calls, each with its line."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "pi_rpc"


class Source(NamedTuple):
    """A parsed file, by the name it has inside the package: `core/tree.py`."""

    name: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The folder or file at the height of rooms."""
        return self.name.removesuffix(".py").split("/")[0]

    def at(self, node: ast.AST, what: str) -> str:
        """A finding, as a test tells it."""
        return f"pi_rpc/{self.name}:{getattr(node, 'lineno', 1)}: {what}"


class Imported(NamedTuple):
    """A whole dotted name that a file imports, and where."""

    name: str
    node: ast.AST


def parsed(name: str, text: str) -> Source:
    """A source given as text."""
    return Source(name, ast.parse(text))


def sources(pattern: str = "**/*.py") -> list[Source]:
    """The files of the package that fit a pattern, by name."""
    found = sorted(PACKAGE.glob(pattern))
    assert found, f"no file fits pi_rpc/{pattern}"
    return [
        parsed(path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8"))
        for path in found
    ]


def imports_of(source: Source) -> Iterator[Imported]:
    """Every name a file imports. Typing-only and inline imports count: a circle is a circle."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (Imported(alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            stem = "." * node.level + (f"{node.module}." if node.module else "")
            yield from (Imported(stem + alias.name, node) for alias in node.names)


def own_module(name: str, known: Iterable[str]) -> str | None:
    """The file of ours that an imported name leads to; None for the package itself and others."""
    if not name.startswith("pi_rpc."):
        return None
    path = name.removeprefix("pi_rpc.").replace(".", "/")
    if f"{path}.py" in known:
        return f"{path}.py"
    if f"{path}/__init__.py" in known:
        return f"{path}/__init__.py"
    return own_module(name.rpartition(".")[0], known)


def calls_of(source: Source) -> Iterator[tuple[str, ast.Call]]:
    """Every call by the name called: `print`, or `.append` for whatever object."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id, node
            elif isinstance(node.func, ast.Attribute):
                yield f".{node.func.attr}", node


def report(findings: Iterable[str]) -> None:
    """Fail with every finding on a line of its own."""
    told = "\n".join(findings)
    assert not told, f"\n{told}"
