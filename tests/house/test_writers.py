"""Who may append, write, print and catch: each by one door, so that its promise has one keeper."""

import ast
import re
from collections.abc import Iterator

from tests.house.source import Source, calls_of, parsed, report, sources

APPENDS = {"session/session.py"}
"""`record` is the only write path: stored, then in the tree, then told."""

MAKES_FILES = {"session/building.py"}
"""Sessions are made and copied in by one file, for the host alone."""

HOLDS_THE_WIRE = {"wire/descriptors.py", "wire/stdio.py"}
"""Who knows the private descriptor: what takes it, and the transport, which gives it an outbox."""

ANSWERS_BEFORE_THE_OUTBOX = {"cli.py"}
"""The handshake's answer is written before there is an outbox."""

OWN_PROCESSES = {"tools/own_grep.py"}
"""Programs that we start: what they print is read by us."""

PRINTS = {"cli.py", "serving.py"}
"""Before and after serving, and to stderr: stdout is the protocol's."""

TALKS_TO_PEOPLE = {"commands.py"}
"""No protocol is spoken there, so stdout is for what was asked."""

FENCES = {
    "wire/peer.py": "around a request and a notification",
    "agent/calling.py": "around a tool",
    "session/running.py": "around a run",
    "extensions/running.py": "around code of the user's",
}
"""The only places that catch every exception; each tells it under an incident id."""


def awaited_calls(source: Source, *names: str) -> Iterator[ast.Call]:
    """Awaited calls of a method; a list's `append` is never awaited."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Attribute) and call.func.attr in names:
                yield call


def appends_elsewhere(source: Source) -> Iterator[str]:
    if source.name not in APPENDS:
        for call in awaited_calls(source, "append"):
            yield source.at(call, "appends to a store; use Session.record")


def test_only_the_session_appends_to_a_store() -> None:
    every = sources()
    report(finding for source in every for finding in appends_elsewhere(source))
    writers = {source.name for source in every if list(awaited_calls(source, "append"))}
    assert writers == APPENDS, "the write path has moved; say so in APPENDS and ARCHITECTURE.md"


def test_only_the_host_has_stored_sessions_made() -> None:
    report(
        source.at(call, "makes a stored session; ask the host")
        for source in sources()
        if source.name not in MAKES_FILES
        for call in awaited_calls(source, "create", "adopt")
    )


def writes_to_the_wire(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Attribute):
            continue
        if node.attr == "output_fd" and source.name not in HOLDS_THE_WIRE:
            yield source.at(node, "holds the wire's descriptor; put messages in the outbox")
        if ast.unparse(node) in ("sys.stdout", "sys.stdin") and source.name not in TALKS_TO_PEOPLE:
            yield source.at(node, "standard input and output are the protocol's")
    for name, call in calls_of(source):
        if name != ".write":
            continue
        onto = ast.unparse(call.func)
        if "descriptors" in onto and source.name not in ANSWERS_BEFORE_THE_OUTBOX:
            yield source.at(call, "writes past the outbox; put messages in it")
        onto_standard = call.args and ast.unparse(call.args[0]) in ("0", "1")
        if onto_standard and source.name not in OWN_PROCESSES:
            yield source.at(call, "writes to a standard descriptor, which is the protocol's")


def test_only_the_wire_writes_to_the_wire() -> None:
    report(finding for source in sources() for finding in writes_to_the_wire(source))


def prints(source: Source) -> Iterator[str]:
    for name, call in calls_of(source):
        if name != "print":
            continue
        streams = [ast.unparse(each.value) for each in call.keywords if each.arg == "file"]
        if source.name in TALKS_TO_PEOPLE:
            continue
        if source.name not in PRINTS:
            yield source.at(call, "prints; raise, record an event, or log")
        elif streams != ["sys.stderr"]:
            yield source.at(call, "prints to stdout, which is the protocol's; use stderr")


def test_nobody_prints_but_the_command() -> None:
    report(finding for source in sources() for finding in prints(source))


def catches_too_much(source: Source) -> Iterator[str]:
    """Handlers of every exception, outside the fences or without passing a cancellation on."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = "" if node.type is None else ast.unparse(node.type)
        if "Exception" in re.findall(r"\w+", caught):
            if source.name not in FENCES:
                yield source.at(node, "catches every exception; name those you can answer")
        elif node.type is None or "BaseException" in caught:
            last = node.body[-1]
            if not (isinstance(last, ast.Raise) and last.exc is None):
                yield source.at(node, "swallows cancellation; end the handler with `raise`")
    for name, call in calls_of(source):
        told = [ast.unparse(each) for each in call.args]
        if name.endswith("suppress") and {"Exception", "BaseException"} & set(told):
            yield source.at(call, "suppresses every exception; name those that mean nothing")


def test_only_the_fences_catch_everything() -> None:
    every = sources()
    report(finding for source in every for finding in catches_too_much(source))
    fenced = {
        source.name
        for source in every
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler)
        and node.type is not None
        and ast.unparse(node.type) == "Exception"
    }
    assert fenced == set(FENCES), "a fence has gone or come; say so in FENCES and ARCHITECTURE.md"


def test_what_is_forbidden_is_found() -> None:
    bad = parsed(
        "session/bad.py",
        "async def f(stored):\n    await stored.append([], durable=True)\n    print('x')\n"
        "    sys.stdout.write('x')\n    os.write(1, b'')\n"
        "    try:\n        f()\n    except (OSError, Exception):\n        pass\n"
        "    except BaseException:\n        return\n    with suppress(Exception):\n        f()\n",
    )
    lines = [
        finding.split(":")[1]
        for check in (appends_elsewhere, prints, writes_to_the_wire, catches_too_much)
        for finding in check(bad)
    ]
    assert lines == ["2", "3", "4", "5", "8", "10", "12"]
