"""What our pages name is there: paths, commands, the tree, the arrows; what they show goes so."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.house.source import PACKAGE, ROOT, imports_of, own_module, report, sources
from tests.house.test_layers import ROW_OF

PAGES = [
    "README.md",
    "pi_rpc/ARCHITECTURE.md",
    "pi_rpc/DECISIONS.md",
    "protocol/README.md",
    "protocol/session-format.md",
    "protocol/models.md",
    "clients/README.md",
    "clients/python/README.md",
    "tests/README.md",
    "tests/bench/README.md",
]

PLANNED = "### Rooms that stand in the plan and are empty so far"
"""The one place that may name what is not there."""

ELSEWHERE = {
    ".pi/settings.json": "a project's own",
    ".trash/": "in the sessions folder",
    "AGENTS.md": "a project's own",
    "CLAUDE.md": "a project's own",
    "auth.json": "the user's own",
    "hello.py": "the reader saves it",
    "models.json": "the user's own",
    "settings.json": "the user's own",
    "spill/": "in the agent folder",
    "workspaces/": "in the agent folder",
    "session-1.jsonl": "a recording, in each of several folders",
}
"""Names of files outside the repository, and why a page speaks of them."""

FIRST_FOLDER = Path("/tmp/first-try")
"""Where the README's first talk works; the tests work in one of their own."""

KNOWN_COMMANDS = (
    f"mkdir -p {FIRST_FOLDER}",
    ".venv/bin/pi-rpc",
    ".venv/bin/pi-rpc list",
    ".venv/bin/pi-rpc show first",
    ".venv/bin/pi-rpc check first",
    "PATH=.venv/bin:$PATH PYTHONPATH=clients/python .venv/bin/python hello.py",
    ".venv/bin/python -m pytest tests/core -q",
    ".venv/bin/python -m pytest tests/conversations -k fork",
)
"""Commands of our pages that are no make target; the tests below run those of the README."""

WAIT_S = 30


class Page(NamedTuple):
    """A page, and its lines with their numbers."""

    name: str
    lines: list[tuple[int, str]]

    def at(self, number: int, what: str) -> str:
        """A finding, as a test tells it."""
        return f"{self.name}:{number}: {what}"

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return (ROOT / self.name).parent


def pages() -> Iterator[Page]:
    for name in PAGES:
        # Pages of others may come later than this test.
        if (ROOT / name).exists():
            yield page(name, (ROOT / name).read_text(encoding="utf-8"))


def page(name: str, text: str) -> Page:
    return Page(name, list(enumerate(text.split("\n"), 1)))


def blocks(of: Page, language: str) -> Iterator[tuple[int, str]]:
    """Lines inside fences of a language, with their numbers."""
    inside = False
    for number, line in of.lines:
        if line.startswith("```"):
            inside = not inside and line == f"```{language}"
        elif inside:
            yield number, line


def prose(of: Page) -> Iterator[tuple[int, str]]:
    """Lines outside fences and outside the part that tells of what is planned."""
    fenced = planned = False
    for number, line in of.lines:
        if line.startswith("```"):
            fenced = not fenced
        elif line.startswith("#"):
            planned = line == PLANNED
        if not fenced and not planned:
            yield number, line


_CODE = re.compile(r"`([^`\s]+)`")
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_FILE = re.compile(
    r"[\w./-]+(?:\.(?:py|md|json|jsonl|toml|txt|lua|ts|sse|yml)|/)|LICENSE|Makefile|\.ci/run"
)
_HOME = re.compile(r"[~$<]")


def paths_in(of: Page) -> Iterator[tuple[int, str]]:
    """Every path a page names: whole code words that look like files or folders, and links."""
    for number, line in prose(of):
        for word in _CODE.findall(line):
            if _FILE.fullmatch(word) and not _HOME.search(word):
                yield number, word
        for target in _LINK.findall(line):
            if "://" not in target:
                yield number, target


def is_there(of: Page, path: str) -> bool:
    """Whether a path exists: from the root, from the package, beside its page, or in a room."""
    if path in ELSEWHERE:
        return True
    places = [ROOT, PACKAGE, of.folder, ROOT / "clients" / "python"]
    if "/" not in path.rstrip("/"):
        # A bare name says only that there is such a file in the room the sentence speaks of.
        return any((place / path).exists() for place in places) or any(
            True for folder in (PACKAGE, ROOT / "tests") for _ in folder.rglob(path.rstrip("/"))
        )
    return any((place / path).exists() for place in places)


def missing_paths(of: Page) -> Iterator[str]:
    for number, path in paths_in(of):
        if not is_there(of, path):
            yield of.at(number, f"{path} does not exist; mend the page or make the file")


def make_targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z]+):", text, re.MULTILINE))


def unknown_commands(of: Page) -> Iterator[str]:
    targets = make_targets()
    for number, line in prose(of):
        for target in re.findall(r"`make ([a-z]+)", line):
            if target not in targets:
                yield of.at(number, f"there is no make target {target}")
    for number, line in blocks(of, "sh"):
        command = line.partition(" #")[0].strip()
        words = command.split()
        if not words or command in KNOWN_COMMANDS:
            continue
        if words[0] != "make" or set(words[1:]) - targets:
            yield of.at(
                number, f"{command!r} is run by no test; add it to KNOWN_COMMANDS and run it"
            )


def test_paths_named_in_our_pages_exist() -> None:
    report(finding for one in pages() for finding in missing_paths(one))


def test_commands_named_in_our_pages_exist() -> None:
    report(finding for one in pages() for finding in unknown_commands(one))


def the_page(name: str) -> Page:
    return next(one for one in pages() if one.name == name)


def tree_of(architecture: Page) -> Iterator[tuple[int, str]]:
    """The file tree: each entry's path inside the package, folders ending with a slash."""
    rooms: list[tuple[int, str]] = [(-1, "")]
    inside = False
    for number, line in architecture.lines:
        if line.startswith("```"):
            inside = False
        elif line == "pi_rpc/":
            inside = True
        elif inside and line.strip():
            depth = len(line) - len(line.lstrip())
            name = line.split()[0]
            while rooms[-1][0] >= depth:
                rooms.pop()
            path = rooms[-1][1] + name
            yield number, path
            if name.endswith("/"):
                rooms.append((depth, path))


def test_the_tree_on_the_page_is_the_tree() -> None:
    architecture = the_page("pi_rpc/ARCHITECTURE.md")
    told = {path: number for number, path in tree_of(architecture)}
    report(
        architecture.at(number, f"pi_rpc/{path} does not exist")
        for path, number in told.items()
        if not (PACKAGE / path).exists()
    )
    report(
        f"pi_rpc/{source.name}:1: say in section 3 of pi_rpc/ARCHITECTURE.md what this file is for"
        for source in sources()
        if source.name not in told and not source.name.endswith("/__init__.py")
    )


def told_arrows(architecture: Page) -> set[tuple[str, str]]:
    """The table of arrows, one pair each."""
    arrows: set[tuple[str, str]] = set()
    inside = False
    for _, line in architecture.lines:
        if line == "| from | to |":
            inside = True
        elif inside and not line.startswith("|"):
            break
        elif inside:
            left, right = line.strip("|").split("|")[:2]
            arrows |= {
                (here, there)
                for here in re.findall(r"`(\w+)`", left)
                for there in re.findall(r"`(\w+)`", right)
            }
    return arrows


def test_the_arrows_on_the_page_are_the_imports() -> None:
    every = sources()
    known = {source.name for source in every}
    drawn = {
        (source.room, room)
        for source in every
        for name, _ in imports_of(source)
        if (target := own_module(name, known)) is not None
        if (room := target.removesuffix(".py").split("/")[0]) in ROW_OF
        if room != source.room
    }
    told = told_arrows(the_page("pi_rpc/ARCHITECTURE.md"))
    assert told == drawn, "the table in section 1 of ARCHITECTURE.md is not what the files import"


def environment(home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": str(ROOT / "clients" / "python"),
        "PI_CODING_AGENT_DIR": str(home),
    }


def test_the_first_talk_goes_as_the_readme_tells(tmp_path: Path) -> None:
    readme = the_page("README.md")
    talk = [(number, line) for number, line in blocks(readme, "text") if line[:2] in ("> ", "< ")]
    folder = tmp_path / FIRST_FOLDER.name
    folder.mkdir()
    assert talk, "README.md shows a talk in a block of `text`"
    daemon = subprocess.Popen(
        [sys.executable, "-m", "pi_rpc"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(tmp_path),
        cwd=ROOT,
    )
    assert daemon.stdin is not None and daemon.stdout is not None
    try:
        for number, line in talk:
            mark, text = line[0], line[2:].replace(str(FIRST_FOLDER), str(folder))
            if mark == ">":
                daemon.stdin.write(text.encode() + b"\n")
                daemon.stdin.flush()
                continue
            answer = next(each for each in daemon.stdout if b'"id"' in each.split(b'"params"')[0])
            pattern = ".*".join(re.escape(part) for part in text.split("…"))
            assert re.fullmatch(pattern, answer.decode().rstrip("\n")), readme.at(
                number, answer.decode()
            )
        daemon.stdin.close()
        assert daemon.wait(WAIT_S) == 0
    finally:
        daemon.kill()
        daemon.wait(WAIT_S)
        daemon.stdin.close()
        daemon.stdout.close()
    for command in KNOWN_COMMANDS:
        if command.startswith(".venv/bin/pi-rpc "):
            ran = subprocess.run(
                [sys.executable, "-m", "pi_rpc", *command.split()[1:]],
                env=environment(tmp_path),
                cwd=ROOT,
                capture_output=True,
                timeout=WAIT_S,
                check=False,
            )
            assert (ran.returncode, ran.stderr, b"first" in ran.stdout) == (0, b"", True), command


def test_the_readmes_client_example_runs(tmp_path: Path) -> None:
    folder = tmp_path / FIRST_FOLDER.name
    folder.mkdir()
    example = tmp_path / "hello.py"
    lines = [line for _, line in blocks(the_page("README.md"), "python")]
    example.write_text("\n".join(lines), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(example)],
        env=environment(tmp_path),
        cwd=folder,
        capture_output=True,
        timeout=WAIT_S,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert "done" in ran.stdout.decode().split("\n")


def test_the_readmes_json_is_json() -> None:
    for _, text in _json_blocks(the_page("README.md")):
        json.loads(text)


def _json_blocks(of: Page) -> Iterator[tuple[int, str]]:
    text = "\n".join(line for _, line in of.lines)
    for found in re.finditer(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield text[: found.start()].count("\n") + 1, found[1]


@pytest.mark.parametrize(
    "flag", ["--session-dir", "--script", "--durability", "--trust", "--version"]
)
def test_the_readmes_flags_are_the_commands(flag: str) -> None:
    told = (ROOT / "README.md").read_text(encoding="utf-8")
    asked = (PACKAGE / "cli.py").read_text(encoding="utf-8")
    assert f'"{flag}"' in asked
    assert flag in told or flag == "--version"


def test_what_is_not_there_is_found() -> None:
    bad = page(
        "README.md",
        "See `pi_rpc/nowhere.py`, `core/tree.py` and [this](gone.md).\n`make nothing`\n"
        f"{PLANNED}\n`pi_rpc/later.py`\n```sh\nrm -rf x\nmake test  # yes\n```",
    )
    assert [*missing_paths(bad), *unknown_commands(bad)] == [
        "README.md:1: pi_rpc/nowhere.py does not exist; mend the page or make the file",
        "README.md:1: gone.md does not exist; mend the page or make the file",
        "README.md:2: there is no make target nothing",
        "README.md:6: 'rm -rf x' is run by no test; add it to KNOWN_COMMANDS and run it",
    ]
