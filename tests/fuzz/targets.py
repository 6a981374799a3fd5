"""What is done with bytes that anybody may have sent or written, and what must hold of it.

Each target takes bytes and returns; what is no `Failure` and gets out of one is a mistake of ours.
The suite gives them what hypothesis makes up, `run.py` what atheris finds.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from pi_rpc.core.bindings import Bindings
from pi_rpc.core.branches import branch_at, files_touched
from pi_rpc.core.branching import fork_points, plan_copy, plan_navigation, words_of
from pi_rpc.core.checking import Checker
from pi_rpc.core.codec import decode, encode, with_parent
from pi_rpc.core.compaction import plan_compaction
from pi_rpc.core.context_usage import diff, usage_of
from pi_rpc.core.errors import Failure
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.heads import Heads
from pi_rpc.core.models import Model
from pi_rpc.core.moments import finished
from pi_rpc.core.pages import entry_on_page
from pi_rpc.core.pins import pins_at
from pi_rpc.core.policy import OURS, PI3
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.projection import LiveProjection, project
from pi_rpc.core.receipt import explain
from pi_rpc.core.redaction import Redaction
from pi_rpc.core.scanner import Scan, Scanner
from pi_rpc.core.searching import searched_in, snippet
from pi_rpc.core.settings import Layer, effective, migrated
from pi_rpc.core.stats import SessionCount
from pi_rpc.core.transcript import serialised
from pi_rpc.core.tree import ROOT, Tree
from pi_rpc.core.undoing import plan_undo
from pi_rpc.core.verifying import verify
from pi_rpc.core.versions import abandoned_at_opening, files_at_opening, verdict
from pi_rpc.providers.anthropic import ANTHROPIC
from pi_rpc.providers.asking import Api, body_bytes
from pi_rpc.providers.google import GOOGLE
from pi_rpc.providers.jsonc import decoded
from pi_rpc.providers.known import providers_from
from pi_rpc.providers.openai_chat import OPENAI_CHAT
from pi_rpc.providers.openai_responses import OPENAI_RESPONSES
from pi_rpc.providers.script import script_from_object
from pi_rpc.providers.sse import Events, EventTooLongError
from pi_rpc.wire.framing import FrameDecoder, FrameFault, Framing, frame
from pi_rpc.wire.messages import Message, bytes_from_result, message_from_bytes, message_from_fault

LIMIT_BYTES = 4096
HEADER = (
    b'{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}\n'
)
APIS: tuple[Api, ...] = (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, GOOGLE)


def parted(data: bytes, size: int) -> Iterator[bytes]:
    """Bytes in pieces of a size."""
    return (data[at : at + size] for at in range(0, len(data), size))


def wire(data: bytes) -> None:
    """Any stream is taken apart alike however it is split, and each frame is one message."""
    found = []
    for size in (len(data) or 1, 1 + len(data) % 7):
        decoder = FrameDecoder(LIMIT_BYTES)
        frames = [each for part in parted(data, size) for each in decoder.feed(part)]
        found.append([*frames, *decoder.eof()])
    assert found[0] == found[1]
    for each in found[0]:
        if isinstance(each, FrameFault):
            message: Message = message_from_fault(each, LIMIT_BYTES)
        else:
            message = message_from_bytes(each)
            with suppress(Failure):
                line = frame(bytes_from_result(1, decode(each)), Framing.LINES)
                assert len(line.decode("utf-8", "surrogatepass").splitlines()) == 1
        assert message is not None


def sse(data: bytes) -> None:
    """Any stream of events is read alike however it is split."""
    found: list[Any] = []
    for size in (len(data) or 1, 1 + len(data) % 5):
        events, read = Events(LIMIT_BYTES), []
        try:
            for part in parted(data, size):
                read += events.feed(part)
        except EventTooLongError:
            return
        found.append(read)
    assert found[0] == found[1]


def settings(data: bytes) -> None:
    """What people write into settings.json, models.json or a script holds or is told of."""
    try:
        value = decoded(data)
    except ValueError:
        return
    with suppress(Failure):
        script_from_object(value)
    if not isinstance(value, dict):
        return
    odd: list[Diagnostic] = []
    for provider in providers_from({}, value, odd).values():
        for model in provider.models.values():
            encode(str(model))
    layers = [Layer("user", migrated(value)), Layer("session", value)]
    found = effective(layers)
    for key in found.settings:
        found.value(key)


def texts(data: bytes) -> None:
    """A text that was redacted has nothing left to redact, and stays what it is elsewhere."""
    text = data.decode("utf-8", "replace")
    once = Redaction()
    left = once.text(text)
    again = Redaction()
    assert again.text(left) == left, (text, left)
    assert again.count == 0
    snippet(text, (text[:3],))


def scanned(data: bytes, block: int, careful: bool) -> Scan:
    """One pass over a file, some bytes at a time."""
    scanner, waiting = Scanner(careful=careful), b""
    for part in parted(data, block):
        waiting += part
        waiting = waiting[scanner.take(waiting, len(waiting)) :]
    return scanner.finish(waiting)


def is_session(data: bytes, careful: bool) -> bool:
    """Whether a file is taken for a session, read a little at a time."""
    try:
        scanned(data, 3, careful)
    except Failure:
        return False
    return True


def file(data: bytes) -> None:
    """Any file is a tree or is refused; whatever is asked of the tree is answered or refused."""
    try:
        scan = scanned(data, len(data) or 1, True)
    except Failure:
        scan = None
    if scan is None:
        for careful in (True, False):
            assert not is_session(data, careful)
        return
    assert facts_of(scan) == facts_of(scanned(data, 1 + len(data) % 60, True))
    quick = scanned(data, len(data), False)
    if not quick.has_orphans and not scan.has_orphans:
        assert rows_of(quick) == rows_of(scan)
    heads = Heads()
    heads.extend(scan.columns)
    lines = [
        data[start : start + length]
        for start, length in zip(scan.offsets, scan.lengths, strict=True)
    ]
    tree(heads, lines)


def facts_of(scan: Scan) -> tuple[object, ...]:
    """What of a scan must not depend on how it was made."""
    return (*rows_of(scan), scan.header, scan.lines, scan.diagnostics)


def rows_of(scan: Scan) -> tuple[object, ...]:
    """The rows of a scan."""
    columns = scan.columns
    tree = (columns.ids, list(columns.parents), columns.kinds, columns.odd_ids, columns.shadowed)
    return (*tree, list(scan.offsets), list(scan.lengths))


def tree(heads: Heads, lines: list[bytes]) -> None:
    """Ask a tree everything that a client may ask."""
    made = Tree(heads, lines.__getitem__)
    rows = range(len(made))
    for row in rows:
        path = made.path(row)
        assert path[-1] == row
        assert len(set(path)) == len(path)
    checker = Checker(heads)
    for row, line in enumerate(lines):
        checker.take(row, line)
        _line(line)
    encode([each.text for each in checker.finish()])
    made.name()
    made.labels()
    encode(list(fork_points(made)))
    leaf = made.stored_leaf()
    count = SessionCount(made)
    for _ in count.taking_in(leaf):
        count.totals()
    count.off_path()
    with suppress(Failure):
        bindings = Bindings(made)
        encode(abandoned_at_opening(made, bindings))
        verdict(made, files_at_opening(made, leaf), leaf)
    for tip in [*made.tips()[:4], leaf, ROOT]:
        _leaf(made, tip)
    with suppress(Failure):
        diff(made, leaf, ROOT, OURS)


def _line(line: bytes) -> None:
    with suppress(Failure):
        with_parent(line, "0000000a")
    searched_in(line)
    try:
        stored = decode(line)
    except Failure:
        return
    if isinstance(stored, dict):
        left = Redaction().value(stored)
        with suppress(Failure):
            encode(left)
            entry_on_page("markdown", left).encode("utf-8", "replace")
            entry_on_page("html", left).encode("utf-8", "replace")


def _leaf(made: Tree, leaf: int) -> None:
    for policy in (OURS, PI3):
        with suppress(Failure):
            projection = project(made, leaf, policy)
            projection.tokens()
            usage_of(projection, 1000, 10)
            for form in ("session", "llm"):
                encode(list(projection.messages(form)))
            serialised(projection.messages())
            live = LiveProjection(made, ROOT, policy)
            for row in made.path(leaf) if leaf != ROOT else ():
                live.extend(row)
            assert list(live.messages()) == list(projection.messages())
            explain(made, leaf, policy, "s", 0)
            pins_at(made, leaf)
            for keep in (0, 20):
                plan = plan_compaction(projection, keep)
                if plan is not None:
                    encode(list(plan.told_history.parts()))
        for act in (
            lambda: plan_undo(projection, None),  # noqa: B023
            lambda: finished(verify(made, leaf, policy)),  # noqa: B023
        ):
            with suppress(Failure):
                act()
    if leaf == ROOT:
        return
    with suppress(Failure):
        branch_at(made, leaf)
        files_touched(made, made.path(leaf)[::-1])
        plan_navigation(made, leaf)
        words_of(made, leaf)
    for position in ("before", "at"):
        with suppress(Failure):
            plan_copy(made, leaf, position, "s")
    with suppress(Failure):
        _mapped(list(project(made, leaf, OURS).messages("llm")))


def _mapped(messages: list[Any]) -> None:
    request = ModelRequest("p", "m", "high", messages, "s")
    for api in APIS:
        model = Model(
            provider="p", id="m", name="m", api=api.name, base_url="http://x", reasoning=True
        )
        body_bytes(api.post(request, model, "short").body)


_TYPES = [b"message", b"compaction", b"context_edit", b"label", b"custom", b"custom_message"]
_TYPES += [b"branch_summary", b"session_info", b"model_change", b"thinking_level_change", b"usage"]
_ROLES = ["user", "assistant", "toolResult", "system", "bashExecution", "custom", "odd"]


def history(data: bytes) -> None:
    """The same of files whose lines are entries in form: two bytes say the place, then fields."""
    lines = []
    for number, chunk in enumerate(data.split(b"\xff")):
        if len(chunk) < 3:
            continue
        kind = _TYPES[chunk[0] % len(_TYPES)]
        parent = b'"%08x"' % (chunk[1] % (number + 2)) if chunk[1] else b"null"
        role = json.dumps(_ROLES[chunk[2] % len(_ROLES)]).encode()
        rest = b"," + chunk[3:] if chunk[3:] else b""
        head = b'{"type":"%b","id":"%08x","parentId":%b,"timestamp":"2026-01-01T00:00:00.000Z"'
        stored = head % (kind, number, parent)
        if kind == b"message":
            stored += b',"message":{"role":%b%b}}' % (role, rest)
        else:
            stored += rest + b"}"
        lines.append(stored)
    file(HEADER + b"\n".join(lines) + b"\n")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "wire": wire,
    "sse": sse,
    "settings": settings,
    "texts": texts,
    "file": file,
    "history": history,
}
