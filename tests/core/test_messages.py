"""Messages as the format stores them, and the few things decisions read from them."""

from typing import Any

import pytest

from pi_rpc.core.messages import (
    ToolCall,
    ToolOutcome,
    Usage,
    blocks_of,
    image_block,
    text_block,
    text_of,
    tool_calls_of,
    tool_result_message,
    user_message,
)


@pytest.mark.parametrize(
    ("content", "blocks", "text"),
    [
        ("words", [{"type": "text", "text": "words"}], "words"),
        ("", [{"type": "text", "text": ""}], ""),
        (None, [], ""),
        (7, [], ""),
        ([text_block("a"), "stray", text_block("b")], [text_block("a"), text_block("b")], "ab"),
        ([{"type": "text", "text": 5}], [{"type": "text", "text": 5}], ""),
        ([{"type": "thinking", "text": "x"}], [{"type": "thinking", "text": "x"}], ""),
    ],
)
def test_content_is_read_as_blocks_and_as_text_whatever_its_form(
    content: Any, blocks: list[Any], text: str
) -> None:
    message = {"role": "user", "content": content}
    assert (blocks_of(message), text_of(message)) == (blocks, text)


def test_a_message_without_content_says_nothing() -> None:
    assert (blocks_of({}), text_of({}), tool_calls_of({})) == ([], "", [])


def test_calls_are_read_in_order_and_unreadable_ones_are_left_out() -> None:
    content = [
        {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}},
        {"type": "toolCall", "id": 2, "name": "read", "arguments": {}},
        {"type": "toolCall", "id": "c3", "arguments": {}},
        {"type": "text", "text": "and"},
        {"type": "toolCall", "id": "c4", "name": "run", "arguments": "ls", "argumentsError": "no"},
    ]
    assert tool_calls_of({"content": content}) == [
        ToolCall("c1", "read", {"path": "a"}),
        ToolCall("c4", "run", {}, "no"),
    ]


def test_a_user_message_is_its_text_and_then_its_images() -> None:
    picture = image_block("aGk=", "image/png")
    assert user_message("look", [picture], 5) == {
        "role": "user",
        "content": [text_block("look"), picture],
        "timestamp": 5,
    }


def test_a_result_names_its_call_and_says_only_what_is_known() -> None:
    call = ToolCall("c1", "read", {})
    assert tool_result_message(call, ToolOutcome([text_block("x")], is_error=True), 5) == {
        "role": "toolResult",
        "toolCallId": "c1",
        "toolName": "read",
        "content": [text_block("x")],
        "isError": True,
        "timestamp": 5,
    }
    told = tool_result_message(call, ToolOutcome([], details={"a": 1}, duration_ms=1.6), 5)
    assert (told["details"], told["durationMs"]) == ({"a": 1}, 2)


def test_usage_is_stored_with_its_total() -> None:
    stored = Usage(1, 2, 3, 4).as_object()
    assert (stored["input"], stored["cacheWrite"], stored["totalTokens"]) == (1, 4, 10)
