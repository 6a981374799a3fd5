"""What decides touches nothing: no clock, file, socket or chance, and no waiting.

And the start is light: what takes its time to load comes after the handshake's answer, or never.
"""

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_rpc import __version__
from pi_rpc.frontends.native.handshake import quick_answer
from tests.house.source import ROOT, Source, calls_of, imports_of, parsed, report, sources

PORTS = "core/ports/"

STILL_FILES = {
    "wire/errors.py",
    "wire/framing.py",
    "wire/messages.py",
    "tools/truncate.py",
    "frontends/native/handshake.py",
}
"""Still like `core/`; a file elsewhere whose page says "pure." is held to it as well."""

STILL_MODULES = {
    *("array", "base64", "binascii", "bisect", "codecs", "collections", "datetime", "decimal"),
    *("difflib", "enum", "functools", "hashlib", "itertools", "json", "math", "msgspec"),
    *("operator", "orjson", "re", "struct", "typing", "unicodedata", "zlib"),
}
"""What a still file may import; everything else is taken to touch the world."""

STILL_NAMES = re.compile(r"io\.(BytesIO|StringIO)|urllib\.parse\.\w+|posixpath\.(join|normpath)")
"""Still parts of modules that touch the world elsewhere, or sound as if they did."""

TOUCHING = {"open", "input", "print", "exec", "eval", ".now", ".today", ".utcnow"}
"""Calls that read a clock or a file without an import that says so."""

WAITING = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)


def is_still(source: Source) -> bool:
    """Whether a file is held to stillness."""
    says_so = "pure." in (ast.get_docstring(source.tree) or "").split("\n\n")[0]
    return source.room == "core" or source.name in STILL_FILES or says_so


def stirs(source: Source) -> Iterator[str]:
    """Everything in a file that could touch the world or wait."""
    for name, node in imports_of(source):
        if name.startswith("pi_rpc."):
            continue
        allowed = (
            name.split(".")[0] in STILL_MODULES
            or STILL_NAMES.fullmatch(name) is not None
            # The ports speak of paths; nobody may follow one there.
            or (source.name.startswith(PORTS) and name == "pathlib.Path")
        )
        if not allowed:
            yield source.at(node, f"{name} may touch the world; take what it gives as an argument")
    for name, call in calls_of(source):
        if name in TOUCHING:
            yield source.at(call, f"{name.lstrip('.')}() touches the world; ask a port")
    if not source.name.startswith(PORTS):
        for node in ast.walk(source.tree):
            if isinstance(node, WAITING):
                yield source.at(node, "waiting belongs to session and below the ports, not here")


def test_what_decides_touches_nothing() -> None:
    report(finding for source in sources() if is_still(source) for finding in stirs(source))


def test_what_decides_leans_only_on_what_decides() -> None:
    every = sources()
    still = {source.name for source in every if is_still(source)}
    report(
        source.at(node, f"{module} is not still; a still file that uses it is not still either")
        for source in every
        if source.name in still
        for name, node in imports_of(source)
        if name.startswith("pi_rpc.")
        for module in [name.removeprefix("pi_rpc.").rpartition(".")[0].replace(".", "/") + ".py"]
        if module not in still
    )


def test_ports_are_signatures() -> None:
    report(
        ports.at(function, f"{function.name} has a body; a port only says what is wanted")
        for ports in sources(f"{PORTS}*.py")
        for function in ast.walk(ports.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        if not all(
            isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant)
            for step in function.body
        )
    )


SCOPES = re.compile(r"CancelScope|move_on_a|fail_a|task_group|TaskGroup|Background|Asking|Calling")
"""Context managers that hold a cancel scope, by what their names have in common."""

Scope = ast.With | ast.AsyncWith
Function = ast.FunctionDef | ast.AsyncFunctionDef


def yields_in_scopes(source: Source) -> Iterator[str]:
    """Generators that yield while they hold a cancel scope or wait in an `async with`."""
    for function in ast.walk(source.tree):
        if isinstance(function, Function) and not _is_context_manager(function):
            for step in function.body:
                yield from _yields_below(source, step, held=False)


def _is_context_manager(function: Function) -> bool:
    return any("contextmanager" in ast.unparse(each) for each in function.decorator_list)


def _yields_below(source: Source, node: ast.AST, held: bool) -> Iterator[str]:
    if isinstance(node, Function | ast.Lambda | ast.ClassDef):
        return
    if isinstance(node, ast.Yield | ast.YieldFrom) and held:
        yield source.at(node, "yields inside a scope; make what holds it a context manager")
    if isinstance(node, Scope):
        names = " ".join(ast.unparse(item.context_expr) for item in node.items)
        held = held or isinstance(node, ast.AsyncWith) or SCOPES.search(names) is not None
    for child in ast.iter_child_nodes(node):
        yield from _yields_below(source, child, held)


def test_no_generator_yields_inside_a_scope() -> None:
    report(finding for source in sources() for finding in yields_in_scopes(source))


LOOP = ("anyio", "asyncio", "msgspec", "orjson", "ssl", "pi_rpc.serving", "argparse")
"""What takes its time to load, so that the handshake is answered without it."""

OURS_TO_LOAD = {"anyio", "msgspec", "orjson", "pi_rpc"}
"""Packages a start may load, with what they themselves need."""
THEIRS_TO_LOAD = {"exceptiongroup", "idna", "sniffio", "typing_extensions"}

NEVER_AT_START = {
    "email",
    "http.client",
    "multiprocessing",
    "sqlite3",
    "unittest",
    "urllib.request",
    "xml",
}
"""Slow modules of Python itself that serving a session does not need."""

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize",'
    b'"params":{"protocolVersion":1,"clientInfo":{"name":"house"}}}\n'
)
STATUS = b'{"jsonrpc":"2.0","id":2,"method":"daemon/status"}\n'

_LOADED = re.compile(r"import time:\s+\d+ \|\s+\d+ \| +(\S+)")


def started_and_asked(home: Path) -> str:
    """What a daemon prints that is started, asked twice and left: imports and answers, in order."""
    environment = {**os.environ, "PI_CODING_AGENT_DIR": str(home)}
    # Python tells of each import on stderr; one pipe for both keeps the order of everything.
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pi_rpc"],
        input=INITIALIZE + STATUS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env=environment,
        timeout=30,
        check=True,
    )
    return told.stdout.decode()


def test_the_handshake_is_answered_before_the_loop_is_loaded(tmp_path: Path) -> None:
    told = started_and_asked(tmp_path)
    before, answered, after = told.partition('{"jsonrpc":"2.0","id":1,"result"')
    assert answered, told
    early = set(_LOADED.findall(before)) & set(LOOP)
    assert not early, f"pi_rpc/cli.py:1: loads {sorted(early)} before the handshake is answered"
    assert "pi_rpc.serving" in _LOADED.findall(after)


@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"experimental": True, "maxMessageBytes": 100_000},
        {"ui": ["confirm"], "optOut": ["message/delta"], "maxMessageBytes": 1},
    ],
)
def test_the_early_answer_is_the_one_the_table_gives(
    tmp_path: Path, capabilities: dict[str, object]
) -> None:
    params = {"protocolVersion": 1, "clientInfo": {"name": "house"}, "capabilities": capabilities}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    plain = json.dumps(request).encode() + b"\n"
    early = quick_answer(plain, __version__)
    # A field that says nothing makes it unusual, so that it is left to the table.
    unusual = json.dumps(request | {"params": params | {"progressToken": None}}).encode() + b"\n"
    assert quick_answer(unusual, __version__) is None
    assert early is not None
    told = subprocess.run(
        [sys.executable, "-m", "pi_rpc"],
        input=unusual,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PI_CODING_AGENT_DIR": str(tmp_path)},
        timeout=30,
        check=True,
    )
    assert json.loads(told.stdout) == json.loads(early)


def test_what_a_start_loads_is_not_looked_through_for_garbage(tmp_path: Path) -> None:
    served_and_counted = (
        "import gc, sys; from pi_rpc.cli import main; status = main(['serve']);"
        " print(status, gc.isenabled(), gc.get_freeze_count(), file=sys.stderr)"
    )
    told = subprocess.run(
        [sys.executable, "-c", served_and_counted],
        input=INITIALIZE,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PI_CODING_AGENT_DIR": str(tmp_path)},
        timeout=30,
        check=True,
    )
    status, is_enabled, frozen = told.stderr.splitlines()[-1].split()
    assert (status, is_enabled) == (b"0", b"True")
    # There are some 40,000 objects; a daemon that freezes nothing has none.
    assert int(frozen) > 10_000


def test_a_start_loads_nothing_that_serving_does_not_need(tmp_path: Path) -> None:
    told = started_and_asked(tmp_path)
    assert '"id":2,"result"' in told
    # What comes before is Python's own start, and what the environment hooks into it.
    _, started, ours = told.partition("| site\n")
    assert started, told
    loaded = set(_LOADED.findall(ours))
    packages = Path(sysconfig.get_paths()["purelib"])
    foreign = {
        name.split(".")[0]
        for name in loaded
        if (packages / name.split(".")[0]).is_dir() or (packages / f"{name}.py").is_file()
    }
    strange = foreign - OURS_TO_LOAD - THEIRS_TO_LOAD | loaded & NEVER_AT_START
    assert not strange, f"a start loads {sorted(strange)}; import it where it is first used"


def test_what_stirs_is_found() -> None:
    bad = parsed(
        "core/bad.py",
        "import time\nfrom os import path\ndef f():\n    return open('x'), datetime.now()\n"
        "async def g():\n    await f()\n",
    )
    assert [finding.split(": ")[0] for finding in stirs(bad)] == [
        "pi_rpc/core/bad.py:1",
        "pi_rpc/core/bad.py:2",
        "pi_rpc/core/bad.py:4",
        "pi_rpc/core/bad.py:4",
        "pi_rpc/core/bad.py:5",
        "pi_rpc/core/bad.py:6",
    ]
    yielding = parsed(
        "agent/bad.py",
        "async def a():\n    async with x:\n        yield 1\n"
        "async def b():\n    with anyio.CancelScope():\n        if c:\n            yield 2\n"
        "@asynccontextmanager\nasync def c():\n    async with x:\n        yield 3\n"
        "def d():\n    with open(x) as f:\n        yield 4\n",
    )
    assert [finding.split(": ")[0] for finding in yields_in_scopes(yielding)] == [
        "pi_rpc/agent/bad.py:3",
        "pi_rpc/agent/bad.py:7",
    ]
