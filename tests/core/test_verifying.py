"""A summary is held against what it stands for."""

from typing import Any

import pytest

from pi_rpc.core.errors import Missing, Refused
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.moments import finished
from pi_rpc.core.policy import OURS
from pi_rpc.core.summary import SECTIONS
from pi_rpc.core.tree import Tree
from pi_rpc.core.verifying import Verification, tells_of, verify
from tests.core.trees import assistant, chain, compaction, entry, message, tree_of, user

SECTIONED = "\n".join(f"## {name}\n- x" for name in SECTIONS)


def called(entry_id: str, name: str, path: str) -> JsonObject:
    call = {"type": "toolCall", "id": entry_id, "name": name, "arguments": {"path": path}}
    return message(entry_id, "assistant", [call], stopReason="toolUse")


def came(entry_id: str, call: str, text: str, is_error: bool = False) -> JsonObject:
    content = [{"type": "text", "text": text}]
    return message(entry_id, "toolResult", content, toolCallId=call, isError=is_error)


def tree_with(summary: str, **details: Any) -> Tree:
    pin = entry("custom", "p", customType="pi_rpc.pin", data={"v": 1, "entryId": "u1"})
    return tree_of(
        chain(
            user("u1", "Repair parser.py. Never delete the fixtures."),
            called("c1", "read", "parser.py"),
            came("r1", "c1", "def parse"),
            called("c2", "write", "gone/out.txt"),
            came("r2", "c2", "permission denied for output", is_error=True),
            assistant("a1", text="Half done."),
            user("u2", "Then benchmark everything thoroughly."),
            pin,
            user("u3", "Kept."),
            compaction("k", "u3", summary=summary, details=details),
        )
    )


def slugs(found: Verification) -> list[tuple[str, str | None]]:
    return [(one.slug, one.entry_id or one.path or one.text) for one in found.findings]


def test_everything_left_out_is_found() -> None:
    tree = tree_with("## Goal\nSee lost.py.", readFiles=["other.py"], modifiedFiles=[])
    found = finished(verify(tree, tree.row_of("k"), OURS))
    assert found.summarized == ["u1", "c1", "r1", "c2", "r2", "a1", "u2"]
    assert slugs(found) == [
        *(("section_missing", name) for name in SECTIONS[1:]),
        ("file_missing", "parser.py"),
        ("file_without_evidence", "other.py"),
        ("pin_missing", "u1"),
        ("constraint_missing", "u1"),
        ("request_missing", "u2"),
        ("failure_missing", "r2"),
        ("next_step_missing", "u2"),
        ("path_without_evidence", "lost.py"),
    ]
    assert "benchmark everything" in found.focus


def test_a_summary_that_tells_all_has_no_findings() -> None:
    summary = (
        SECTIONED
        + "\nForbidden: never delete the fixtures. Permission denied for output. "
        + "Benchmark everything thoroughly. parser.py\n"
        + "Repair parser.py. Never delete the fixtures."
    )
    tree = tree_with(summary, readFiles=["parser.py"], modifiedFiles=[])
    found = finished(verify(tree, tree.row_of("k"), OURS))
    assert slugs(found) == []
    assert [(pin.entry_id, pin.status) for pin in found.pins] == [("u1", "carried")]


def test_a_pin_in_the_kept_range_is_kept() -> None:
    pin = entry("custom", "p", customType="pi_rpc.pin", data={"v": 1, "entryId": "u2"})
    tree = tree_of(chain(user("u1"), user("u2"), pin, compaction("k", "u2")))
    [check] = finished(verify(tree, tree.row_of("k"), OURS)).pins
    assert check.status == "kept"


def test_only_a_compaction_of_the_path_is_checked() -> None:
    tree = tree_of([*chain(user("u"), compaction("k", "u")), user("x") | {"parentId": "u"}])
    with pytest.raises(Missing) as missing:
        finished(verify(tree, tree.row_of("u"), OURS))
    assert missing.value.reason == "no_compaction"
    for leaf, name, reason in (("k", "u", "not_a_compaction"), ("x", "k", "not_on_path")):
        with pytest.raises(Refused) as caught:
            finished(verify(tree, tree.row_of(leaf), OURS, name))
        assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("notes", "text", "tells"),
    [
        ("never delete fixtures", "Never delete the fixtures", True),
        ("something else", "Never delete the fixtures", False),
        ("anything", "no it is", True),
        ("不要删除测试文件", "不要删除测试", True),
    ],
)
def test_notes_tell_of_what_they_share_most_words_with(notes: str, text: str, tells: bool) -> None:
    assert tells_of(notes, text) is tells
