"""One table: what is generated is fresh, and nothing of the protocol goes untested or unnamed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pi_rpc.core.entries import Kind, kind_of
from pi_rpc.core.errors import Failure
from pi_rpc.core.policy import POLICIES
from pi_rpc.core.receipt import explain
from pi_rpc.core.scanner import Scanner
from pi_rpc.frontends.native.errors import ERROR_KINDS, rpc_error
from pi_rpc.frontends.native.table import METHODS, NOTIFICATIONS
from protocol.generate import ROOT, generated, stale_files, write_files
from protocol.reasons import Reason, reasons_in
from protocol.schema import REF, shapes
from tests.core.trees import tree_of

CONVERSATIONS = sorted((ROOT / "tests/conversations").glob("*.txt"))
REASONS = reasons_in(ROOT / "pi_rpc")
BEYOND_CONVERSATIONS = {
    "foreign_append",
    "no_versions",
    "no_settings_file",
    "no_model",
    "queue_full",
    "runtime_over",
    "too_many_effects",
    "too_many_in_flight",
    "too_many_registrations",
    "too_many_sessions",
    "too_many_shells",
    "too_many_subscriptions",
    "unexpected",
}
"""Limits and mishaps that no text file brings about; the tests of their own files name them."""
ANSWERED = sorted(
    {
        one.reason
        for one in REASONS
        if one.kind not in ("diagnostic", "verdict")
        and one.source.startswith(("frontends/", "session/"))
    }
    - BEYOND_CONVERSATIONS
)
"""Reasons a client meets by what it asks, so that a conversation can show each."""

TIME = "2026-01-02T03:04:05.678Z"


def said(mark: str) -> str:
    """All lines of all conversations with this mark, and the lines that go on with them."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in CONVERSATIONS)
    return "\n".join(re.findall(rf"^\d?{mark}.*(?:\n[ \t].*)*", text, re.MULTILINE))


SENT, CAME = said(">"), said("<")


def test_generated_files_are_what_the_table_gives() -> None:
    assert stale_files() == []


def test_a_stale_file_is_found(tmp_path: Path) -> None:
    write_files(tmp_path)
    assert stale_files(tmp_path) == []
    (tmp_path / "protocol/errors.md").write_text("old")
    (tmp_path / "protocol/schema.json").unlink()
    assert {str(path) for path in stale_files(tmp_path)} == {
        "protocol/errors.md",
        "protocol/schema.json",
    }


def test_the_same_table_gives_the_same_files() -> None:
    assert generated() == generated()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_conversation(method: str) -> None:
    assert f'"{method}"' in SENT, f"no file in tests/conversations/ calls {method}"


@pytest.mark.parametrize("name", NOTIFICATIONS)
def test_every_notification_has_a_conversation(name: str) -> None:
    where = SENT if NOTIFICATIONS[name].sender == "client" else CAME
    assert f'"{name}"' in where, f"no file in tests/conversations/ tells of {name}"


@pytest.mark.parametrize("reason", ANSWERED)
def test_every_reason_a_client_can_meet_has_a_conversation(reason: str) -> None:
    assert f'"{reason}"' in CAME, f"no file in tests/conversations/ is answered {reason}"


@pytest.mark.parametrize("reason", sorted({one.reason for one in REASONS}))
def test_every_reason_is_named_by_a_test(reason: str) -> None:
    tests = [path for path in (ROOT / "tests").rglob("*") if path.suffix in (".py", ".txt")]
    assert any(
        re.search(rf"\b{reason}\b", path.read_text(encoding="utf-8"))
        for path in tests
        if path != Path(__file__)
    ), f"nothing below tests/ names {reason}"


def test_reasons_told_in_conversations_are_known() -> None:
    told = set(re.findall(r'"(?:kind|severity)": "[^"]*",\s*"reason": "([a-z_]+)"', CAME))
    assert len(told) > 20
    assert told - {one.reason for one in REASONS} == set()


def test_every_reason_stands_in_the_page() -> None:
    page = (ROOT / "protocol/errors.md").read_text(encoding="utf-8")
    assert [one.reason for one in REASONS if f"| `{one.reason}` |" not in page] == []


def test_every_link_in_the_page_of_methods_leads_to_a_heading() -> None:
    page = (ROOT / "protocol/methods.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]*)\)", page)) - anchors == set()


def test_the_page_of_methods_says_which_take_a_session_that_is_not_open() -> None:
    page = (ROOT / "protocol/methods.md").read_text(encoding="utf-8")
    parts = re.findall(r"^### `([^`]*)`\n\n(.*)$", page, re.MULTILINE)
    marked = {name for name, words in parts if "The session need not be open." in words}
    assert {"session/open", "session/read", "branch/list", "context/get"} <= marked
    assert not {"agent/prompt", "branch/navigate", "session/rename"} & marked


def test_every_kind_of_failure_has_one_code_of_our_range() -> None:
    codes = [row.code for row in ERROR_KINDS]
    assert len(set(codes)) == len(codes)
    for kind in failure_classes(Failure):
        error = rpc_error(kind("some_reason"))
        assert error.data is not None
        assert error.data["kind"] == kind.kind
        assert error.code in (-32602, *range(-32099, -31999))


def failure_classes(above: type[Failure]) -> Iterator[type[Failure]]:
    for kind in above.__subclasses__():
        if kind.__module__ == "pi_rpc.core.errors":
            yield kind
            yield from failure_classes(kind)


def test_reasons_are_read_from_conditions_tables_and_the_callers_of_makers(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room/file.py").write_text(
        """
TEXTS = {"by_table": "said by a table"}

def refuse(reason, path):
    raise Refused(reason, "words", path=path)

def act(full, found):
    if full:
        raise Outside("disk_full" if full else "not_found", f"{full} bytes", retryable=True)
    refuse("by_a_maker", "x")
    for reason in found:
        Diagnostic("warning", reason, TEXTS[reason])
    return {"kind": "internal", "reason": "by_hand", "incident": "1"}
""",
        encoding="utf-8",
    )
    assert reasons_in(tmp_path) == [
        Reason("diagnostic", "by_table", "room/file", "said by a table", ()),
        Reason("internal", "by_hand", "room/file", "", ("incident",)),
        Reason("outside", "disk_full", "room/file", "… bytes", ("retryable",)),
        Reason("outside", "not_found", "room/file", "… bytes", ("retryable",)),
        Reason("refused", "by_a_maker", "room/file", "words", ()),
    ]


def test_shapes_refuse_unknown_fields_where_the_daemon_does() -> None:
    found = shapes()
    for name, schema in found.params.items():
        shape = found.defs[schema["$ref"].removeprefix(REF)]
        assert shape["additionalProperties"] is False, name


def test_what_the_daemon_leaves_out_it_never_sends_as_null() -> None:
    defs = shapes().defs
    assert defs["SessionState"]["properties"]["path"] == {"type": "string"}
    assert "path" not in defs["SessionState"]["required"]
    assert {"type": "null"} in defs["SessionState"]["properties"]["leafId"]["anyOf"]
    assert {"type": "null"} in defs["SessionNewParams"]["properties"]["name"]["anyOf"]


def test_every_reference_leads_to_a_shape() -> None:
    for path in ("protocol/schema.json", "protocol/openrpc.json"):
        document = msgspec.json.decode((ROOT / path).read_bytes())
        for ref in references(document):
            place: Any = document
            for step in ref.removeprefix("#/").split("/"):
                place = place[step]
            assert isinstance(place, dict), ref


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def stored(entry_type: str, **fields: Any) -> dict[str, Any]:
    base = {"type": entry_type, "id": "0000000a", "parentId": None, "timestamp": TIME}
    return base | fields


def spoken(role: str, **fields: Any) -> dict[str, Any]:
    return stored("message", message={"role": role, "content": "x", "timestamp": 1} | fields)


SAMPLES: dict[Kind, dict[str, Any]] = {
    Kind.UNKNOWN: stored("from_another_program", anything=1),
    Kind.SYSTEM: spoken("system"),
    Kind.USER: spoken("user"),
    Kind.ASSISTANT: spoken("assistant", provider="p", model="m", stopReason="stop"),
    Kind.TOOL_RESULT: spoken("toolResult", toolCallId="c", toolName="read", isError=False),
    Kind.BASH_EXECUTION: spoken("bashExecution", command="ls", output="", exitCode=0),
    Kind.OTHER_MESSAGE: spoken("hookMessage"),
    Kind.MODEL_CHANGE: stored("model_change", provider="p", modelId="m"),
    Kind.THINKING_LEVEL_CHANGE: stored("thinking_level_change", thinkingLevel="high"),
    Kind.USAGE: stored("usage", kind="cache_warm", provider="p", model="m", usage={}),
    Kind.COMPACTION: stored("compaction", summary="s", firstKeptEntryId="0000000a", tokensBefore=1),
    Kind.CONTEXT_EDIT: stored("context_edit", targetId="0000000b", replacement=None),
    Kind.BRANCH_SUMMARY: stored("branch_summary", fromId="root", summary="s"),
    Kind.CUSTOM: stored("custom", customType="someone.else"),
    Kind.CUSTOM_MESSAGE: stored("custom_message", customType="x", content="x", display=True),
    Kind.LABEL: stored("label", targetId="0000000b", label="x"),
    Kind.SESSION_INFO: stored("session_info", name="x"),
    Kind.CURSOR: stored("custom", customType="pi_rpc.cursor", data={"v": 1}),
    Kind.WORKSPACE: stored("custom", customType="pi_rpc.workspace", data={"v": 1}),
    Kind.PROJECTION: stored("custom", customType="pi_rpc.projection", data={"v": 1}),
    Kind.FORK: stored("custom", customType="pi_rpc.fork", data={"v": 1}),
    Kind.PIN: stored("custom", customType="pi_rpc.pin", data={"v": 1}),
}
"""One stored entry of each kind."""


def test_every_kind_of_entry_has_a_sample() -> None:
    assert set(SAMPLES) == set(Kind)


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_every_kind_of_entry_is_read_from_its_line(kind: Kind) -> None:
    entry = SAMPLES[kind]
    header = {"type": "session", "version": 3, "id": "s", "timestamp": TIME, "cwd": "/"}
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in (header, entry))
    scanner = Scanner()
    assert scanner.take(lines, len(lines)) == len(lines)
    assert list(scanner.finish(b"").columns.kinds) == [kind]
    message = entry.get("message", {})
    assert kind_of(entry["type"], message.get("role"), entry.get("customType")) is kind


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_every_kind_of_entry_has_a_rule_in_the_projection(kind: Kind) -> None:
    receipt = explain(tree_of([SAMPLES[kind]]), 0, POLICIES["default"], "s", 0)
    [verdict] = receipt.entries
    assert verdict.id == "0000000a"
    assert verdict.reason
