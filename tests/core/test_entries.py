"""What is written: headers, bodies and the kinds decisions are made on."""

from typing import Any

import pytest

from pi_rpc.core.codec import decode, encode
from pi_rpc.core.entries import (
    Body,
    Entry,
    Header,
    Kind,
    context_edit,
    cursor,
    custom,
    entry_object,
    kind_of,
    label,
    message_body,
    model_change,
    session_info,
    thinking_level_change,
)


@pytest.mark.parametrize(
    ("entry_type", "role", "custom_type", "kind"),
    [
        ("message", "user", None, Kind.USER),
        ("message", "toolResult", None, Kind.TOOL_RESULT),
        ("message", "visitor", None, Kind.OTHER_MESSAGE),
        ("message", None, None, Kind.OTHER_MESSAGE),
        ("message", ["user"], None, Kind.OTHER_MESSAGE),
        ("custom", None, "pi_rpc.cursor", Kind.CURSOR),
        ("custom", None, "somebody.else", Kind.CUSTOM),
        ("custom", None, ["pi_rpc.cursor"], Kind.CUSTOM),
        ("label", "user", "pi_rpc.cursor", Kind.LABEL),
        ("unheard_of", None, None, Kind.UNKNOWN),
    ],
)
def test_a_kind_is_the_type_refined_by_role_or_custom_type(
    entry_type: str, role: Any, custom_type: Any, kind: Kind
) -> None:
    assert kind_of(entry_type, role, custom_type) == kind


BODIES: list[tuple[Body, Kind, dict[str, Any]]] = [
    (message_body({"role": "user", "content": "x"}), Kind.USER, {"message": {"role": "user"}}),
    (model_change("p", "m"), Kind.MODEL_CHANGE, {"provider": "p", "modelId": "m"}),
    (thinking_level_change("high"), Kind.THINKING_LEVEL_CHANGE, {"thinkingLevel": "high"}),
    (label("a1", "x"), Kind.LABEL, {"targetId": "a1", "label": "x"}),
    (session_info(""), Kind.SESSION_INFO, {"name": ""}),
    (context_edit("a1", None), Kind.CONTEXT_EDIT, {"targetId": "a1", "replacement": None}),
    (custom("mine", [1]), Kind.CUSTOM, {"customType": "mine", "data": [1]}),
    (
        cursor("a1", "a2", "q2", {"status": "unknown"}),
        Kind.CURSOR,
        {
            "customType": "pi_rpc.cursor",
            "data": {
                "v": 1,
                "leaf": "a1",
                "from": "a2",
                "target": "q2",
                "op": "navigate",
                "env": {"status": "unknown"},
            },
        },
    ),
]


@pytest.mark.parametrize(("body", "kind", "fields"), BODIES)
def test_a_body_becomes_a_line_and_comes_back_as_it_was(
    body: Body, kind: Kind, fields: dict[str, Any]
) -> None:
    stored = entry_object(body, "e1", None, "2026-01-02T03:04:05.678Z")
    assert list(stored)[:4] == ["type", "id", "parentId", "timestamp"]
    assert body.kind == kind
    assert decode(encode(stored)) == stored
    for name, value in fields.items():
        if name == "message":
            assert stored[name]["role"] == value["role"]
        else:
            assert stored[name] == value


@pytest.mark.parametrize("text", [None, ""])
def test_a_label_that_clears_has_no_text(text: str | None) -> None:
    assert label("a1", text).fields == {"targetId": "a1"}


def test_custom_state_without_data_has_no_data() -> None:
    assert custom("mine").fields == {"customType": "mine"}


def test_a_header_keeps_what_it_does_not_know_and_its_own_fields_win() -> None:
    header = Header("s1", "t", "/w", "/old.jsonl", fields={"id": "other", "colour": "red"})
    assert header.as_object() == {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": "t",
        "cwd": "/w",
        "parentSession": "/old.jsonl",
        "colour": "red",
    }
    assert "parentSession" not in Header("s1", "t", "/w").as_object()


@pytest.mark.parametrize(
    ("stored", "entry_type", "timestamp", "has_message"),
    [
        ({"type": "message", "timestamp": "t", "message": {"role": "user"}}, "message", "t", True),
        ({"type": "message", "timestamp": 5, "message": "broken"}, "message", "", False),
        ({}, "", "", False),
    ],
)
def test_an_entry_is_read_with_what_is_missing_left_empty(
    stored: dict[str, Any], entry_type: str, timestamp: str, has_message: bool
) -> None:
    entry = Entry(0, Kind.UNKNOWN, "e1", None, stored)
    assert (entry.type, entry.timestamp) == (entry_type, timestamp)
    assert (entry.message is not None) is has_message
