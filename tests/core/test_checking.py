"""What is wrong with entries, beyond what their lines show."""

from typing import Any

import pytest

from pi_rpc.core.checking import PROBLEMS_MAX, Checker
from pi_rpc.core.codec import encode
from pi_rpc.core.heads import Heads
from pi_rpc.core.scanner import Scanner


def stored(entry_type: str, entry_id: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {"type": entry_type, "id": entry_id, "parentId": parent, "timestamp": "t", **fields}


def said(entry_id: str, parent: str | None, role: str, **fields: Any) -> dict[str, Any]:
    return stored("message", entry_id, parent, message={"role": role, "content": [], **fields})


def called(entry_id: str, parent: str | None, *call_ids: str, **fields: Any) -> dict[str, Any]:
    calls = [{"type": "toolCall", "id": each, "name": "x", "arguments": {}} for each in call_ids]
    return said(entry_id, parent, "assistant", **{"content": calls} | fields)


def answered(entry_id: str, parent: str | None, call_id: object) -> dict[str, Any]:
    return said(entry_id, parent, "toolResult", toolCallId=call_id)


def problems(*entries: dict[str, Any] | bytes) -> list[tuple[str, str, str | None]]:
    head = encode({"type": "session", "version": 3, "id": "s"})
    lines = [each if isinstance(each, bytes) else encode(each) for each in entries]
    data = b"".join(line + b"\n" for line in (head, *lines))
    scanner = Scanner(careful=False)
    scanner.take(data, len(data))
    scan = scanner.finish(b"")
    heads = Heads()
    heads.extend(scan.columns)
    checker = Checker(heads)
    for row, (offset, length) in enumerate(zip(scan.offsets, scan.lengths, strict=True)):
        checker.take(row, data[offset : offset + length])
    return [(each.severity, each.reason, each.entry_id) for each in checker.finish()]


def test_a_good_session_has_no_problems() -> None:
    assert (
        problems(
            said("a", None, "user"),
            called("b", "a", "c1", "c2"),
            answered("c", "b", "c2"),
            answered("d", "c", "c1"),
            stored("compaction", "e", "d", summary="s", firstKeptEntryId="b"),
            stored("context_edit", "f", "e", targetId="a", replacement=None),
            stored("label", "g", "f", targetId="a", label="x"),
            stored("compaction", "h", "g", summary="s"),
            stored("unheard_of", "i", "h"),
        )
        == []
    )


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (stored("compaction", "z", "b", firstKeptEntryId="gone"), ("warning", "boundary_missing")),
        (stored("compaction", "z", "a", firstKeptEntryId="b"), ("warning", "boundary_missing")),
        (stored("context_edit", "z", "b", targetId="gone"), ("warning", "edit_target_missing")),
        (stored("context_edit", "z", "a", targetId="b"), ("warning", "edit_target_missing")),
        (stored("context_edit", "z", "a"), ("warning", "edit_target_missing")),
        (stored("label", "z", "b", targetId="gone"), ("info", "label_target_missing")),
        (stored("message", "z", "b"), ("warning", "message_missing")),
        (said("z", "b", 7), ("warning", "message_missing")),  # type: ignore[arg-type]
        (answered("z", "b", "c9"), ("info", "orphan_result")),
        (answered("z", "b", None), ("info", "orphan_result")),
        (called("z", "b", "c9"), ("info", "call_without_result")),
    ],
)
def test_what_entries_say_to_each_other_is_looked_at(
    entry: dict[str, Any], problem: tuple[str, str]
) -> None:
    good = (said("a", None, "user"), said("b", "a", "assistant"))
    assert problems(*good, entry) == [(*problem, "z")]


def test_a_line_that_is_broken_behind_its_beginning_is_found() -> None:
    good, after = said("0000000a", None, "user"), said("0000000c", "0000000b", "user")
    broken = encode(said("0000000b", "0000000a", "user"))[:-2] + b"x}"
    glued = encode(said("0000000b", "0000000a", "user"))[:-3] + encode(said("x", None, "user"))
    for line in (broken, glued):
        assert problems(good, line, after) == [("error", "unreadable_entry", "0000000b")]


def test_calls_are_answered_on_their_own_branch() -> None:
    entries = (called("a", None, "c1"), answered("b", "a", "c1"), called("c", None, "c1"))
    assert problems(*entries) == [("info", "call_without_result", "c")]
    assert problems(*entries, answered("d", "c", "c1")) == []


def test_calls_of_a_reply_that_failed_wait_for_nothing() -> None:
    for stop in ("error", "aborted"):
        assert problems(called("a", None, "c1", stopReason=stop)) == []


def test_no_more_is_told_than_somebody_reads() -> None:
    entries = [stored("message", f"a{number}", None) for number in range(PROBLEMS_MAX + 3)]
    found = problems(*entries)
    assert len(found) == PROBLEMS_MAX + 1
    assert found[-1] == ("warning", "more_diagnostics", None)
