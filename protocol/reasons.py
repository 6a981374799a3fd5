"""Every reason a failure, a diagnostic or a verdict can give, read from the source.

A reason is the first argument of a failure. Where it comes from a parameter, the callers are read
instead; nothing is listed by hand, so that a reason cannot be forgotten.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pi_rpc.core import errors
from pi_rpc.core.errors import Failure

_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


class Place(msgspec.Struct, frozen=True):
    """Where a call carries the reason and its words, and what kind it is of."""

    kind: str
    position: int
    keyword: str = "reason"
    words_position: int | None = None
    words: str = ""
    """The words, where the call does not carry them."""


class Reason(msgspec.Struct, frozen=True, order=True):
    """One reason as some line of the source gives it."""

    kind: str
    reason: str
    source: str
    """The module of the package it is given in, as `room/file`."""
    words: str
    """The message, as far as it is fixed; empty when it is made elsewhere."""
    fields: tuple[str, ...]
    """What else `data` holds."""


_PLACES = {
    kind.__name__: Place(kind.kind, 0, words_position=1)
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Failure) and kind is not Failure
} | {
    "parse_error": Place("parse", 0),
    "invalid_request": Place("request", 0),
    "overfull": Place("overfull", 0),
    "cancelled": Place("cancelled", 0),
    "Diagnostic": Place("diagnostic", 1, words_position=2),
    "ScopeVerdict": Place("verdict", 1),
    "FilesAt": Place("verdict", 2),
}
_Names = dict[tuple[Path | None, str], Place]
"""Functions by the file they can be called in and their name; None is any file."""


def reasons_in(package: Path) -> list[Reason]:
    """All reasons given below a package folder, sorted."""
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))
    }
    literals: dict[str, set[str]] = {}
    for path, tree in trees.items():
        literals.setdefault(_room(path, package), set()).update(_literals(tree))
    found: set[Reason] = set()
    places: _Names = {(None, name): place for name, place in _PLACES.items()}
    fresh = dict(places)
    while fresh:
        makers: _Names = {}
        for path, tree in trees.items():
            source = path.relative_to(package).with_suffix("").as_posix()
            known = {name: place for (where, name), place in fresh.items() if where in (None, path)}
            reader = _Reader(tree, known, literals[_room(path, package)], source)
            found.update(reader.found)
            for name, place in reader.makers.items():
                # A private function is called in its own file only, whatever others are named.
                makers[path if name.startswith("_") else None, name] = place
        fresh = {name: place for name, place in makers.items() if name not in places}
        places |= fresh
    return sorted(found)


def _room(path: Path, package: Path) -> str:
    return path.relative_to(package).parts[0]


def _literals(tree: ast.Module) -> set[str]:
    """What the fields called reason can be, where their annotation lists it."""
    fields = (node for node in ast.walk(tree) if isinstance(node, ast.AnnAssign))
    return set().union(
        *(
            _constants(field.annotation)
            for field in fields
            if isinstance(field.target, ast.Name) and field.target.id == "reason"
        )
    )


class _Reader:
    """One look at one file, for calls of the functions in `places`."""

    def __init__(
        self,
        tree: ast.Module,
        places: dict[str, Place],
        literals: set[str],
        source: str,
    ) -> None:
        self.found: list[Reason] = []
        self.makers: dict[str, Place] = {}
        self._literals = literals
        self._source = source
        self._tables = _tables(tree)
        for function, node in _with_functions(tree, None):
            if isinstance(node, ast.Call) and (place := places.get(_name(node.func))):
                self._read_call(function, node, place)
            elif isinstance(node, ast.Dict):
                self._read_dict(node)

    def _read_call(self, function: _FUNCTION | None, call: ast.Call, place: Place) -> None:
        given = _argument(call, place)
        if given is None:
            return
        words = None if place.words_position is None else _at(call, place.words_position)
        if isinstance(words, ast.Subscript) and _name(given) == _name(words.slice):
            # A table of words by reason names the reasons too.
            for reason, text in self._tables.get(_name(words.value), {}).items():
                self._add(place.kind, reason, text, ())
        keywords = [] if place.kind in ("diagnostic", "verdict") else call.keywords
        fields = tuple(
            sorted(word.arg for word in keywords if word.arg not in (None, place.keyword))
        )
        for reason in self._values(function, given):
            self._add(place.kind, reason, _text(words) or place.words, fields)
        for name in sorted(_carried(given)):
            if function is not None and name in (parameters := _parameters(function)):
                self.makers[function.name] = _maker(place, parameters, name, words)

    def _read_dict(self, node: ast.Dict) -> None:
        pairs = {
            key.value: value
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
        }
        kind, reason = pairs.get("kind"), pairs.get("reason")
        if isinstance(kind, ast.Constant) and isinstance(reason, ast.Constant):
            more = sorted(set(map(str, pairs)) - {"kind", "reason"})
            self._add(str(kind.value), str(reason.value), "", tuple(more))

    def _values(self, function: _FUNCTION | None, given: ast.expr) -> list[str]:
        if isinstance(given, ast.Attribute):
            # A field may be what its annotation lists, less what this function sorts out.
            return sorted(self._literals - _compared(function))
        if isinstance(given, ast.Name) and function is not None:
            return sorted(_assigned(function, given.id))
        return sorted(_constants(given))

    def _add(self, kind: str, reason: str, words: str, fields: tuple[str, ...]) -> None:
        self.found.append(Reason(kind, reason, self._source, words, fields))


def _tables(tree: ast.Module) -> dict[str, dict[str, str]]:
    """Texts by texts, as the constants of a module hold them."""
    return {
        target.id: {
            str(key.value): str(value.value)
            for key, value in zip(node.value.keys, node.value.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
        }
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _with_functions(
    node: ast.AST, function: _FUNCTION | None
) -> Iterator[tuple[_FUNCTION | None, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        inside = child if isinstance(child, _FUNCTION) else function
        yield inside, child
        yield from _with_functions(child, inside)


def _name(func: ast.expr) -> str:
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def _maker(place: Place, parameters: list[str], reason: str, words: ast.expr | None) -> Place:
    """Where the calls of a function carry what it hands on."""
    own = 1 if parameters[:1] in (["self"], ["cls"]) else 0
    carried = isinstance(words, ast.Name) and words.id in parameters
    return Place(
        place.kind,
        parameters.index(reason) - own,
        reason,
        parameters.index(_name(words)) - own if carried and words is not None else None,
        _text(words) or place.words,
    )


def _carried(given: ast.expr) -> set[str]:
    """Names that stand for the reason itself; what a reason is read from carries none."""
    match given:
        case ast.Name(id=name):
            return {name}
        case ast.IfExp(body=body, orelse=otherwise):
            return _carried(body) | _carried(otherwise)
        case ast.BoolOp(values=values):
            return set().union(*map(_carried, values))
    return set()


def _at(call: ast.Call, position: int) -> ast.expr | None:
    return call.args[position] if len(call.args) > position else None


def _argument(call: ast.Call, place: Place) -> ast.expr | None:
    if len(call.args) > place.position:
        return call.args[place.position]
    return next((word.value for word in call.keywords if word.arg == place.keyword), None)


def _parameters(function: _FUNCTION) -> list[str]:
    given = function.args
    return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _constants(node: ast.AST) -> set[str]:
    """Texts a conditional or a literal type can be; the tests of conditionals do not count."""
    if isinstance(node, ast.IfExp):
        return _constants(node.body) | _constants(node.orelse)
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) else set()
    if isinstance(node, ast.Subscript | ast.Tuple):
        return set().union(*(_constants(child) for child in ast.iter_child_nodes(node)))
    return set()


def _assigned(function: _FUNCTION, name: str) -> set[str]:
    values: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    values |= _constants(node.value)
    return values


def _compared(function: _FUNCTION | None) -> set[str]:
    tests = (
        [node for node in ast.walk(function) if isinstance(node, ast.Compare)] if function else []
    )
    return set().union(*(_constants(side) for test in tests for side in test.comparators))


def _text(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
        )
    return ""
