"""Pieces of a reply come together to the message that is stored."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.messages import JsonObject, Usage, tool_calls_of
from pi_rpc.core.reply import (
    ABORTED,
    CUT,
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Fold,
    Piece,
    ReplyEnded,
    ReplyError,
    ReplyStarted,
    arguments_from_text,
)


def folded(*pieces: Piece) -> JsonObject:
    fold = Fold()
    for piece in pieces:
        fold.add(piece)
    return message_of(fold)


def message_of(fold: Fold) -> JsonObject:
    return fold.message("offline", "scripted", "offline", at_ms=1_000, duration_ms=12.4)


def call(text: str, index: int = 0, call_id: str = "c1", name: str = "bash") -> list[Piece]:
    return [BlockStarted(index, "toolCall", call_id, name), BlockDelta(index, text)]


def test_a_whole_reply_becomes_the_stored_message_with_its_fields_in_order() -> None:
    message = folded(
        ReplyStarted("msg_1"),
        BlockStarted(0, "thinking"),
        BlockDelta(0, "hm"),
        BlockDelta(0, "m"),
        BlockEnded(0, signature="sig"),
        BlockStarted(1, "text"),
        BlockDelta(1, "Hel"),
        BlockDelta(1, "lo"),
        BlockEnded(1),
        BlockStarted(2, "toolCall", "c1", "bash"),
        BlockDelta(2, '{"comma'),
        BlockDelta(2, 'nd":"ls"}'),
        BlockEnded(2),
        ReplyEnded("toolUse", Usage(input=3, output=4, cache_read=5, cache_write=6)),
    )
    assert list(message.items()) == [
        ("role", "assistant"),
        (
            "content",
            [
                {"type": "thinking", "thinking": "hmm", "thinkingSignature": "sig"},
                {"type": "text", "text": "Hello"},
                {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}},
            ],
        ),
        ("api", "offline"),
        ("provider", "offline"),
        ("model", "scripted"),
        ("usage", Usage(3, 4, 5, 6).as_object()),
        ("stopReason", "toolUse"),
        ("timestamp", 1_000),
        ("responseId", "msg_1"),
        ("durationMs", 12),
    ]


def test_blocks_stand_in_the_order_of_their_index_however_they_arrive() -> None:
    message = folded(
        BlockStarted(1, "text"),
        BlockStarted(0, "text"),
        BlockDelta(1, "b"),
        BlockDelta(0, "a"),
        ReplyEnded("stop"),
    )
    assert [block["text"] for block in message["content"]] == ["a", "b"]


def test_empty_blocks_are_left_out_but_signed_thinking_and_calls_stay() -> None:
    message = folded(
        BlockStarted(0, "text"),
        BlockStarted(1, "thinking"),
        BlockStarted(2, "thinking"),
        BlockEnded(2, signature="s"),
        BlockStarted(3, "toolCall", "c", "ls"),
        ReplyEnded("stop"),
    )
    assert message["content"] == [
        {"type": "thinking", "thinking": "", "thinkingSignature": "s"},
        {"type": "toolCall", "id": "c", "name": "ls", "arguments": {}},
    ]


def test_a_signature_is_stored_under_the_name_its_block_has_for_it() -> None:
    message = folded(
        BlockStarted(0, "text"),
        BlockDelta(0, "a"),
        BlockEnded(0, "t"),
        *call("{}", 1),
        BlockEnded(1, "c"),
        ReplyEnded("stop"),
    )
    assert message["content"][0]["textSignature"] == "t"
    assert message["content"][1]["thoughtSignature"] == "c"


def test_a_batch_folds_like_its_pieces() -> None:
    pieces: list[Piece] = [
        ReplyStarted("r"),
        BlockStarted(0, "text"),
        BlockDelta(0, "a"),
        BlockDelta(0, "b"),
        BlockEnded(0),
        ReplyEnded("stop"),
    ]
    fold = Fold()
    fold.extend(pieces)
    assert message_of(fold) == folded(*pieces)


def test_a_delta_of_a_block_that_never_started_is_the_providers_mistake() -> None:
    fold = Fold()
    with pytest.raises(KeyError):
        fold.add(BlockDelta(0, "a"))
    with pytest.raises(KeyError):
        fold.extend([BlockDelta(0, "a")])


def test_an_error_is_stored_in_words_and_in_a_form_programs_read() -> None:
    error = ReplyError("overloaded", "too busy", status=529, code="busy", retry_after_ms=50)
    message = folded(ReplyEnded("error", error=error))
    assert message["stopReason"] == "error"
    assert message["content"] == []
    assert message["errorMessage"] == "too busy"
    assert message["error"] == {
        "kind": "overloaded",
        "status": 529,
        "code": "busy",
        "retryAfterMs": 50,
        "providerMessage": "too busy",
    }


def test_an_error_without_a_cause_is_an_unknown_one() -> None:
    assert folded(ReplyEnded("error"))["error"]["kind"] == "unknown"


def test_a_stream_without_an_end_is_an_error_that_keeps_what_came_and_was_spent() -> None:
    message = folded(
        ReplyStarted(usage=Usage(input=7)), BlockStarted(0, "text"), BlockDelta(0, "half")
    )
    assert message["stopReason"] == "error"
    assert message["content"] == [{"type": "text", "text": "half"}]
    assert message["errorMessage"] == CUT
    assert message["error"] == {"kind": "cut", "providerMessage": CUT}
    assert message["usage"]["input"] == 7


def test_a_stopped_reply_keeps_its_partial_text_and_its_incomplete_call() -> None:
    fold = Fold()
    fold.extend([BlockStarted(0, "text"), BlockDelta(0, "par"), *call('{"command":"l', 1)])
    fold.cut("aborted")
    message = message_of(fold)
    assert fold.has_ended
    assert message["stopReason"] == "aborted"
    assert message["errorMessage"] == ABORTED
    assert "error" not in message
    text, cut_call = message["content"]
    assert text == {"type": "text", "text": "par"}
    assert (cut_call["id"], cut_call["name"], cut_call["arguments"]) == ("c1", "bash", {})
    assert cut_call["argumentsError"].endswith(': {"command":"l')


def test_a_reply_stopped_before_anything_came_is_empty_and_aborted() -> None:
    fold = Fold()
    fold.cut("aborted", "over")
    message = message_of(fold)
    assert (message["content"], message["stopReason"]) == ([], "aborted")
    assert (message["errorMessage"], message["usage"]) == ("over", Usage().as_object())


def test_a_cut_may_name_its_kind_of_error() -> None:
    fold = Fold()
    fold.cut("error", "no answer within 300 s", "timeout")
    assert message_of(fold)["error"] == {
        "kind": "timeout",
        "providerMessage": "no answer within 300 s",
    }


def test_the_first_end_counts() -> None:
    fold = Fold()
    fold.add(ReplyEnded("stop"))
    fold.cut("aborted")
    fold.add(ReplyEnded("error"))
    assert message_of(fold)["stopReason"] == "stop"


def test_calls_without_an_id_or_with_one_twice_are_given_their_own() -> None:
    message = folded(
        *call("{}", 0, ""), *call("{}", 1, "same"), *call("{}", 2, "same"), ReplyEnded("toolUse")
    )
    ids = [one.id for one in tool_calls_of(message)]
    assert ids == ["call_1000_0", "same", "call_1000_2"]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        ("  \n", {}),
        ("{}", {}),
        ('{"a": [1, null]}', {"a": [1, None]}),
        ('{"a": "x\ny\tz"}', {"a": "x\ny\tz"}),
        (r'{"a": "\d+ \\d \" C:\q"}', {"a": '\\d+ \\d " C:\\q'}),
        (r'{"a": "\ud83d\ude00"}', {"a": "😀"}),
        (r'{"a": "\ud83d"}', {"a": "\ufffd"}),
        (r'{"a": "\ude00x\u00e9"}', {"a": "\ufffdxé"}),
        (r'{"a": "\\ud83d"}', {"a": r"\ud83d"}),
        (r'{"a": "\u12"}', {"a": r"\u12"}),
    ],
)
def test_arguments_are_read_and_known_mistakes_mended(text: str, arguments: JsonObject) -> None:
    assert arguments_from_text(text) == (arguments, None)


@pytest.mark.parametrize("text", ['{"a":', "[1]", '"x"', "7", '{"a":1}{', "nonsense", '{"a":"\\'])
def test_unreadable_arguments_are_none_and_quoted(text: str) -> None:
    arguments, error = arguments_from_text(text)
    assert arguments == {}
    assert error is not None
    assert error.endswith(f": {text}")


def test_a_long_unreadable_text_is_quoted_in_part() -> None:
    error = arguments_from_text("x" * 10_000)[1]
    assert error is not None
    assert 500 < len(error) < 700


def test_arguments_nested_too_deep_are_unreadable() -> None:
    arguments, error = arguments_from_text('{"a":' * 100_000)
    assert arguments == {}
    assert error is not None


def test_a_string_that_never_closes_is_given_up_in_one_pass() -> None:
    assert arguments_from_text('{"' + "\\x" * 200_000)[0] == {}


def test_halves_of_a_character_in_two_deltas_come_together_and_a_lone_half_is_replaced() -> None:
    message = folded(
        BlockStarted(0, "text"),
        BlockDelta(0, "a\ud83d"),
        BlockDelta(0, "\ude00b\ud83d"),
        ReplyEnded("stop"),
    )
    assert message["content"] == [{"type": "text", "text": "a😀b\ufffd"}]


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.tuples(st.integers(0, 3), TEXT), max_size=30), st.booleans())
def test_the_message_holds_exactly_the_text_of_its_deltas(
    deltas: list[tuple[int, str]], whole: bool
) -> None:
    fold = Fold()
    for index in range(4):
        fold.add(BlockStarted(index, "text" if index % 2 else "thinking"))
    for index, text in deltas:
        fold.add(BlockDelta(index, text))
    if whole:
        fold.add(ReplyEnded("stop"))
    expected = ["".join(text for at, text in deltas if at == index) for index in range(4)]
    content = message_of(fold)["content"]
    assert [block.get("text", block.get("thinking")) for block in content] == [
        text for text in expected if text
    ]


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, JSON, max_size=3))
def test_well_formed_arguments_are_read_as_they_are(arguments: JsonObject) -> None:
    assert arguments_from_text(msgspec.json.encode(arguments).decode()) == (arguments, None)


@given(st.text())
def test_any_text_of_arguments_gives_something_that_can_be_stored(text: str) -> None:
    made = folded(*call(text), ReplyEnded("toolUse"))
    assert msgspec.json.decode(msgspec.json.encode(made)) == made
