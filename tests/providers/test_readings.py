"""Streams of each API: how replies end, what is counted, what servers do that they should not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.reply import BlockDelta, BlockEnded, BlockStarted, Fold, ReplyEnded
from pi_rpc.core.retrying import error_of, is_retryable
from pi_rpc.providers.sse import Events
from tests.providers.serving import sse
from tests.providers.streams import APIS, CONTENTS, STREAMS, chunk, item, model_of, request_of

A, C, R, G = (
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
    "google-generative-ai",
)


def message_of(api: str, raw: bytes, **facts: Any) -> JsonObject:
    reading = APIS[api].reading(model_of(api, **facts), request_of())
    fold = Fold()
    fold.extend(reading.pieces_of(Events().feed(raw)))
    if not fold.has_ended:
        fold.extend(reading.broken_off())
    assert fold.has_ended
    return fold.message("test", "m1", api, 1, 1)


def anthropic(stop: str | None, *, details: Any = None, ends: bool = True) -> bytes:
    delta = {"stop_reason": stop, "stop_details": details}
    events: list[JsonObject] = [
        {"type": "message_start", "message": {"id": "msg_1"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": delta},
    ]
    return sse(*events, *([{"type": "message_stop"}] if ends else []))


def chat(finish: str | None) -> bytes:
    return sse(chunk({"content": "Hi"}), chunk({}, finish_reason=finish), done=True)


def responses(status: str, **fields: Any) -> bytes:
    return sse(
        {"type": "response.created", "response": {"id": "resp_1"}},
        item(0, "added", type="message", id="msg_1"),
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"},
        {"type": f"response.{status}", "response": {"id": "resp_1", **fields}},
    )


def google(finish: str | None, **more: Any) -> bytes:
    candidate = {"content": {"parts": [{"text": "Hi"}]}, "finishReason": finish, **more}
    return sse({"candidates": [candidate]})


ENDS: list[tuple[str, bytes, str, str | None, bool]] = [
    # stream, stop, kind of error, whether asking again may help
    (A, anthropic("end_turn"), "stop", None, False),
    (A, anthropic("pause_turn"), "stop", None, False),
    (A, anthropic("stop_sequence"), "stop", None, False),
    (A, anthropic("max_tokens"), "length", None, False),
    (A, anthropic("tool_use"), "toolUse", None, False),
    (A, anthropic("refusal", details={"explanation": "No."}), "error", "refusal", False),
    (A, anthropic("sensitive"), "error", "refusal", False),
    (A, anthropic("unheard_of"), "error", "unknown", False),
    (A, anthropic("model_context_window_exceeded"), "error", "overflow", False),
    (A, anthropic(None), "error", "cut", True),
    (A, anthropic("end_turn", ends=False), "error", "cut", True),
    (A, b"", "error", "cut", True),
    (C, chat("stop"), "stop", None, False),
    (C, chat("end"), "stop", None, False),
    (C, chat("length"), "length", None, False),
    (C, chat("content_filter"), "error", "refusal", False),
    (C, chat("network_error"), "error", "network", True),
    (C, chat("strange"), "error", "unknown", False),
    (C, chat(None), "error", "cut", True),
    (R, responses("completed"), "stop", None, False),
    (
        R,
        responses("incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "length",
        None,
        False,
    ),
    (
        R,
        responses("incomplete", incomplete_details={"reason": "content_filter"}),
        "error",
        "refusal",
        False,
    ),
    (R, responses("incomplete"), "error", "unknown", False),
    (
        R,
        responses("failed", error={"code": "server_error", "message": "oops"}),
        "error",
        "server",
        True,
    ),
    (
        R,
        responses("failed", error={"code": "rate_limit_exceeded", "message": "slow"}),
        "error",
        "rate_limited",
        True,
    ),
    (R, responses("in_progress"), "error", "cut", True),
    (G, google("STOP"), "stop", None, False),
    (G, google("FUNCTION_CALL"), "stop", None, False),
    (G, google("MAX_TOKENS"), "length", None, False),
    (G, google("SAFETY"), "error", "refusal", False),
    (G, google("MALFORMED_FUNCTION_CALL", finishMessage="print(x)"), "error", "unknown", False),
    (G, google(None), "error", "cut", True),
    (G, sse({"promptFeedback": {"blockReason": "OTHER"}}), "error", "refusal", False),
    (
        G,
        sse({"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}),
        "error",
        "overloaded",
        True,
    ),
]


@pytest.mark.parametrize(("api", "raw", "stop", "kind", "again"), ENDS)
def test_a_reply_ends_as_its_provider_says(
    api: str, raw: bytes, stop: str, kind: str | None, again: bool
) -> None:
    message = message_of(api, raw)
    error = error_of(message)
    assert (message["stopReason"], None if error is None else error.kind) == (stop, kind)
    assert error is None or is_retryable(error) is again
    if raw and kind != "overloaded" and "Hi" in raw.decode():
        assert message["content"][0]["text"] == "Hi"


def test_an_error_names_the_reason_and_keeps_the_providers_words() -> None:
    told = [
        message_of(A, anthropic("refusal", details={"explanation": "No."}))["errorMessage"],
        message_of(C, chat("strange"))["errorMessage"],
        message_of(R, responses("failed", error={"code": "server_error", "message": "oops"}))[
            "errorMessage"
        ],
        message_of(G, google("MALFORMED_FUNCTION_CALL", finishMessage="print(x)"))["errorMessage"],
    ]
    named = ["No.", "strange", "server_error: oops", "MALFORMED_FUNCTION_CALL. print(x)"]
    assert [name in words for name, words in zip(named, told, strict=True)] == [True] * 4


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
        ({"type": "api_error", "message": "Internal server error"}, "server"),
        ({"type": "rate_limit_error", "message": "too many tokens"}, "rate_limited"),
        ({"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}, "overflow"),
    ],
)
def test_an_error_in_the_middle_of_a_stream_keeps_what_came(error: Any, kind: str) -> None:
    raw = anthropic(None, ends=False) + sse({"type": "error", "error": error}, named=True)
    message = message_of(A, raw)
    assert (message["error"]["kind"], message["error"]["code"]) == (kind, error["type"])
    assert message["content"] == [{"type": "text", "text": "Hi"}]


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"code": 429, "message": "slow"}, "rate_limited", 429),
        ({"code": "context_length_exceeded", "message": "x"}, "overflow", None),
        ("something", "unknown", None),
    ],
)
def test_a_chat_stream_may_hold_an_error(error: Any, kind: str, status: int | None) -> None:
    message = message_of(C, sse(chunk({"content": "Hi"}), {"error": error}))
    assert message["error"]["kind"] == kind
    assert message["error"].get("status") == status


USAGES = {A: (100, 7, 30, 20), C: (100, 7, 30, 20), R: (100, 7, 30, 20), G: (100, 7, 30, 0)}


@pytest.mark.parametrize("api", APIS)
def test_tokens_are_counted_once_whatever_an_api_counts_them_in(api: str) -> None:
    usage = message_of(api, STREAMS[api])["usage"]
    names = ("input", "output", "cacheRead", "cacheWrite")
    assert tuple(usage[name] for name in names) == USAGES[api]
    assert usage["totalTokens"] == sum(USAGES[api])
    assert usage.get("reasoning") == (3 if api == G else None)


def test_redacted_thinking_is_four_blocks_with_its_signature() -> None:
    raw = sse(
        {"type": "message_start", "message": {"id": "msg_1"}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "redacted_thinking", "data": "D"},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
    assert message_of(A, raw)["content"] == [
        {"type": "thinking", "thinking": "", "thinkingSignature": "D", "redacted": True}
    ]


def test_a_cut_reply_has_spent_what_was_told_at_its_start() -> None:
    raw = sse({"type": "message_start", "message": {"usage": {"input_tokens": 9}}})
    assert message_of(A, raw)["usage"]["input"] == 9


def calls_of(message: JsonObject) -> list[tuple[str, Any]]:
    return [
        (block["id"], block["arguments"])
        for block in message["content"]
        if block["type"] == "toolCall"
    ]


def pieces(*calls: JsonObject) -> bytes:
    return sse(*(chunk({"tool_calls": [each]}) for each in calls), chunk({}, finish_reason="stop"))


def part(arguments: Any, **more: Any) -> JsonObject:
    named = {"name": more.pop("name")} if "name" in more else {}
    return {**more, "function": {**named, "arguments": arguments}}


CALLS: dict[str, tuple[bytes, list[tuple[str, Any]]]] = {
    "mixed by index": (
        pieces(
            part('{"a"', index=0, id="x", name="f"),
            part('{"b"', index=1, id="y", name="f"),
            part(":1}", index=0),
            part(":2}", index=1),
        ),
        [("x", {"a": 1}), ("y", {"b": 2})],
    ),
    "without index": (
        pieces(part('{"a":1}', id="x", name="f"), part('{"b":2}', id="y", name="f")),
        [("x", {"a": 1}), ("y", {"b": 2})],
    ),
    "every one the first": (
        pieces(part('{"a":1}', index=0, id="x", name="f"), part("{}", index=0, id="y", name="f")),
        [("x", {"a": 1}), ("y", {})],
    ),
    "the name late": (
        pieces(part('{"a"', index=0, id="x"), part(":1}", index=0, name="f")),
        [("x", {"a": 1})],
    ),
    "arguments as an object": (
        pieces(part({"a": 1}, index=0, id="x", name="f")),
        [("x", {"a": 1})],
    ),
    "nothing but more": (pieces(part("{", id="x", name="f"), part("}")), [("x", {})]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_in_pieces_are_put_together(name: str) -> None:
    raw, calls = CALLS[name]
    message = message_of(C, raw)
    assert calls_of(message) == calls
    assert message["stopReason"] == "toolUse"


def test_arguments_that_are_no_json_are_told_and_the_reply_stands() -> None:
    message = message_of(C, pieces(part('{"a":', index=0, id="x", name="f")))
    [block] = message["content"]
    assert block["arguments"] == {}
    assert '{"a":' in block["argumentsError"]
    assert message["stopReason"] == "toolUse"


def test_google_calls_without_an_id_get_one_each() -> None:
    parts = [{"functionCall": {"name": "f", "args": {}}}, {"functionCall": {"name": "f"}}]
    raw = sse({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
    message = message_of(G, raw)
    ids = [call_id for call_id, _ in calls_of(message)]
    assert len(set(ids)) == 2 and all(ids)
    assert message["stopReason"] == "toolUse"


def test_a_call_that_is_not_finished_when_the_reply_is_makes_it_an_error() -> None:
    raw = sse(
        item(0, "added", type="function_call", id="fc", call_id="c", name="f"),
        {"type": "response.completed", "response": {}},
    )
    assert message_of(R, raw)["error"]["code"] == "unfinished_call"


def test_items_that_come_whole_at_once_are_read_from_their_end() -> None:
    summary = [{"text": "a"}, {"text": "b"}]
    raw = sse(
        item(0, "done", type="reasoning", id="rs", summary=summary),
        item(1, "done", type="message", id="m", content=[{"text": "Hi"}, {"refusal": " no"}]),
        item(2, "done", type="function_call", id="fc", call_id="c", name="f", arguments='{"a":1}'),
        {"type": "response.completed", "response": {}},
    )
    content = message_of(R, raw)["content"]
    assert [content[0]["thinking"], content[1]["text"]] == ["a\n\nb", "Hi no"]
    assert content[2]["arguments"] == {"a": 1}


def test_chat_servers_send_thinking_in_fields_and_parts_of_their_own() -> None:
    for field in ("reasoning_content", "reasoning", "reasoning_text"):
        [block] = message_of(C, sse(chunk({field: "Hm"}, finish_reason="stop")))["content"]
        assert block == {"type": "thinking", "thinking": "Hm", "thinkingSignature": field}
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
        {"type": "text", "text": "Hi"},
    ]
    content = message_of(C, sse(chunk({"content": parts}, finish_reason="stop")))["content"]
    assert [content[0]["thinking"], content[1]["text"]] == ["Hm", "Hi"]


def test_structured_thinking_is_kept_whole() -> None:
    raw = sse(
        chunk({"reasoning_details": [{"type": "t", "index": 0, "text": "a"}], "reasoning": "a"}),
        chunk({"reasoning_details": [{"type": "t", "index": 0, "text": "b"}], "reasoning": "b"}),
        chunk({}, finish_reason="stop"),
    )
    [block] = message_of(C, raw)["content"]
    assert block["thinking"] == "ab"
    assert block["thinkingSignature"] == '[{"type":"t","index":0,"text":"ab"}]'


def test_a_server_that_never_says_why_it_ends_is_believed_when_that_is_known() -> None:
    raw = sse(chunk({"content": "Hi"}), done=True)
    assert message_of(C, raw)["stopReason"] == "error"
    known = message_of(C, raw, compat={"finishReasonExpected": False})
    assert known["stopReason"] == "stop"


def test_a_billed_total_of_openrouter_is_kept() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "cost": 0.5}
    raw = sse(chunk({}, finish_reason="stop"), chunk() | {"usage": usage}, done=True)
    billed = message_of(C, raw, provider="openrouter")["usage"]["cost"]
    assert (billed["total"], billed["totalFromProvider"]) == (0.5, True)
    assert message_of(C, raw)["usage"]["cost"]["total"] == 0


@given(st.sampled_from(list(APIS)), st.data())
def test_any_bytes_end_as_a_reply(api: str, data: st.DataObject) -> None:
    whole = STREAMS[api]
    at = data.draw(st.integers(0, len(whole)))
    width = data.draw(st.integers(0, 40))
    noise = data.draw(st.binary(max_size=40))
    raw = whole[:at] + noise + whole[at + width :]
    reading = APIS[api].reading(model_of(api), request_of())
    made = reading.pieces_of(Events().feed(raw)) or []
    made += reading.broken_off()
    assert [type(piece) for piece in made].count(ReplyEnded) == 1
    assert isinstance(made[-1], ReplyEnded)
    opened: set[int] = set()
    for piece in made:
        match piece:
            case BlockStarted(index=index):
                opened.add(index)
            case BlockDelta(index=index):
                assert index in opened
            case BlockEnded(index=index):
                opened.remove(index)
    assert not opened


@pytest.mark.parametrize("api", APIS)
def test_what_was_read_goes_back_as_it_came(api: str) -> None:
    """Signed thinking, names of items and calls survive the way into a file and out again."""
    message = message_of(api, STREAMS[api])
    assert message["content"] == CONTENTS[api]
    told = [message, {"role": "toolResult", "toolCallId": CONTENTS[api][2]["id"], "content": []}]
    body = APIS[api].post(request_of(told), model_of(api), "none").body
    sent = repr(body)
    keeps = {A: "c2ln", C: "reasoning_content", R: "AAAA", G: "Y2FsbA=="}
    assert keeps[api] in sent
