"""The house stands as ARCHITECTURE.md draws it: every import points down."""

import ast
from collections.abc import Iterable, Iterator

from tests.house.source import Source, imports_of, own_module, parsed, report, sources

# Lowest first. Rooms of one row may not import each other; a room may import any row below it.
ROWS = [
    {"core", "wire"},
    {"store", "workspace", "providers", "tools", "agent", "config", "known_settings"},
    {"session"},
    {"extensions"},
    {"frontends", "wiring"},
    {"serving", "commands"},
    {"cli"},
    {"__main__"},
]
ROW_OF = {room: row for row, rooms in enumerate(ROWS) for room in rooms}

# These point down too, and stay forbidden: sessions meet the outside through ports alone, and a
# front end meets everything through sessions.
ADAPTERS = {"store", "workspace", "providers", "tools"}
NEVER = {("session", room) for room in ADAPTERS | {"wire", "config"}} | {
    ("frontends", room) for room in ADAPTERS | {"agent", "config"}
}


def wrong_imports(source: Source, known: Iterable[str]) -> Iterator[str]:
    """Imports that do not point down, or past a neighbour."""
    for name, node in imports_of(source):
        if name.startswith("."):
            yield source.at(node, f"write the whole name, not {name}")
        target = own_module(name, known)
        if target is None:
            continue
        here, there = source.room, target.removesuffix(".py").split("/")[0]
        if there in (here, "__init__"):
            continue
        if there not in ROW_OF or here not in ROW_OF:
            room = here if here not in ROW_OF else there
            yield source.at(node, f"{room} has no row; draw it in ARCHITECTURE.md and in ROWS")
        elif ROW_OF[there] >= ROW_OF[here]:
            yield source.at(node, f"{there} does not stand below {here}; move the code or ask down")
        elif (here, there) in NEVER:
            yield source.at(node, f"{here} reaches past its neighbour for {there}; use a port")


def known_files(of: Iterable[Source]) -> set[str]:
    return {source.name for source in of}


def test_every_import_points_down() -> None:
    every = sources()
    known = known_files(every)
    report(finding for source in every for finding in wrong_imports(source, known))


def test_every_room_has_a_row() -> None:
    rooms = {source.room for source in sources()} - {"__init__"}
    assert rooms == set(ROW_OF), "ROWS, ARCHITECTURE.md and the folders name different rooms"


def test_front_ends_do_not_know_each_other() -> None:
    report(
        source.at(node, "a front end imports another; what both need stands in session or core")
        for source in sources("frontends/**/*.py")
        for name, node in imports_of(source)
        if name.startswith("pi_rpc.frontends.")
        and name.split(".")[2] != source.name.split("/")[1].removesuffix(".py")
    )


def test_adapters_are_entered_by_choose() -> None:
    report(
        source.at(node, f"import {name.split('.')[1]}.choose; an adapter has one way in")
        for source in sources()
        if source.room not in ADAPTERS
        for name, node in imports_of(source)
        if name.startswith("pi_rpc.")
        and name.split(".")[1] in ADAPTERS
        and name.split(".")[2] != "choose"
    )


def test_the_handshake_imports_nothing_of_ours() -> None:
    [handshake] = sources("frontends/native/handshake.py")
    report(
        handshake.at(node, "the handshake is answered before anything of ours is loaded")
        for name, node in imports_of(handshake)
        if name.startswith("pi_rpc")
    )


def circles(edges: dict[str, set[str]]) -> Iterator[list[str]]:
    """One circle for each way back that a walk through all files meets."""
    done: set[str] = set()

    def walk(name: str, way: list[str]) -> Iterator[list[str]]:
        if name in way:
            yield [*way[way.index(name) :], name]
        elif name not in done:
            for other in sorted(edges[name]):
                yield from walk(other, [*way, name])
            done.add(name)

    for name in sorted(edges):
        yield from walk(name, [])


def test_no_files_import_each_other_in_a_circle() -> None:
    every = sources()
    known = known_files(every)
    edges = {
        source.name: {
            target
            for name, _ in imports_of(source)
            if (target := own_module(name, known)) is not None
        }
        for source in every
    }
    report(f"pi_rpc/{found[0]}:1: a circle, {' > '.join(found)}" for found in circles(edges))


def test_an_init_holds_a_docstring_and_nothing_more() -> None:
    report(
        source.at(node, "a name has one address; move this out of __init__.py")
        for source in sources("**/__init__.py")
        # The package's own says its version, where the build looks for it.
        for node in source.tree.body[1 if source.name != "__init__.py" else 2 :]
    )
    report(
        source.at(source.tree, "say in one line what the room is")
        for source in sources("**/__init__.py")
        if not ast.get_docstring(source.tree)
    )


def test_what_is_forbidden_is_found() -> None:
    known = {"core/tree.py", "store/jsonl.py", "session/host.py", "cli.py", "__init__.py"}
    up = parsed("core/tree.py", "if TYPE_CHECKING:\n    from pi_rpc.session.host import Host")
    aside = parsed("store/jsonl.py", "def f():\n    import pi_rpc.store.index, pi_rpc.cli")
    past = parsed("session/host.py", "from pi_rpc.store import jsonl")
    near = parsed("session/host.py", "from . import session")
    good = parsed("cli.py", "from pi_rpc import __version__\nimport pi_rpc.session.host, os")
    found = [list(wrong_imports(source, known)) for source in (up, aside, past, near, good)]
    assert found == [
        ["pi_rpc/core/tree.py:2: session does not stand below core; move the code or ask down"],
        ["pi_rpc/store/jsonl.py:2: cli does not stand below store; move the code or ask down"],
        ["pi_rpc/session/host.py:1: session reaches past its neighbour for store; use a port"],
        ["pi_rpc/session/host.py:1: write the whole name, not .session"],
        [],
    ]
    assert list(circles({"a": {"b"}, "b": {"c"}, "c": {"b"}})) == [["b", "c", "b"]]
