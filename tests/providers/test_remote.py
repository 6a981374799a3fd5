"""A model asked over HTTP: what comes back ends as a reply, whatever the net and the server do."""

import gzip
import json
import threading
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Any

import anyio
import msgspec
import pytest

from pi_rpc.core.errors import Refused
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.providers import AskingSettings, ModelRequest
from pi_rpc.core.reply import BlockDelta, Fold, Piece, ReplyEnded, ReplyError, ReplyStarted
from pi_rpc.core.retrying import RequestRetries
from pi_rpc.providers.asking import Post
from pi_rpc.providers.http import Http, Patience, retry_after_ms
from pi_rpc.providers.remote import MESSAGES_AT_ONCE, Access, RemoteProvider
from pi_rpc.providers.secret import Secret, hidden
from pi_rpc.providers.transcript import IMAGE_BLOCKED
from tests.providers.serving import Answer, serving, sse
from tests.providers.streams import APIS, CONTENTS, STREAMS, model_of, request_of

KEY = "sk-very-secret"
API_NAMES = list(APIS)
PATIENT = Patience(connect_s=5, idle_s=5, total_s=5)


async def open_door() -> Access:
    return Access(Secret(KEY))


async def asked(
    url: str,
    api: str = "anthropic-messages",
    patience: Patience | None = PATIENT,
    access: Callable[[], Awaitable[Access]] = open_door,
    request: ModelRequest | None = None,
    **facts: Any,
) -> list[Sequence[Piece]]:
    http = Http(patience)
    provider = RemoteProvider(model_of(api, base_url=url, **facts), APIS[api], access, http)
    try:
        with anyio.fail_after(5):
            return [pieces async for pieces in provider.reply(request or request_of())]
    finally:
        await http.close()


async def answered(*answers: Answer, api: str = "anthropic-messages", **facts: Any) -> JsonObject:
    async with serving(*answers) as server:
        return message_of(await asked(server.url, api, **facts))


def message_of(batches: Sequence[Sequence[Piece]]) -> JsonObject:
    fold = Fold()
    for pieces in batches:
        fold.extend(pieces)
    assert fold.has_ended
    return fold.message("test", "m1", "api", 1, 1)


def error_of(batches: Sequence[Sequence[Piece]]) -> ReplyError:
    ended = batches[-1][-1]
    assert isinstance(ended, ReplyEnded) and ended.error is not None
    return ended.error


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
async def test_a_stream_becomes_the_message_it_says(api: str) -> None:
    message = await answered(Answer([STREAMS[api]]), api=api)
    assert message["content"] == CONTENTS[api]
    assert message["stopReason"] == "toolUse"
    assert message["responseId"] in ("msg_1", "chatcmpl-1", "resp_1", "g_1")


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
async def test_a_stream_split_at_every_byte_says_the_same(api: str) -> None:
    bytes_of = [bytes([byte]) for byte in STREAMS[api]]
    message = await answered(Answer(bytes_of), api=api)
    assert message == await answered(Answer([STREAMS[api]]), api=api)


@pytest.mark.anyio
async def test_a_stream_that_is_compressed_although_nobody_asked_for_that_says_the_same() -> None:
    api = API_NAMES[0]
    coded = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    message = await answered(Answer([gzip.compress(STREAMS[api])], headers=coded), api=api)
    assert message == await answered(Answer([STREAMS[api]]), api=api)


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
async def test_what_one_read_brings_goes_on_in_one_batch(api: str) -> None:
    async with serving(Answer([STREAMS[api]])) as server:
        batches = await asked(server.url, api)
    deltas = [sum(type(piece) is BlockDelta for piece in pieces) for pieces in batches]
    assert max(deltas) >= 5
    assert len(batches) <= 2


ENDS = {
    "anthropic-messages": b"event: message_stop",
    "openai-completions": b'"finish_reason"',
    "openai-responses": b"event: response.completed",
    "google-generative-ai": b'"finishReason"',
}


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
async def test_a_stream_cut_anywhere_is_an_error_that_keeps_what_came(api: str) -> None:
    whole = STREAMS[api]
    # The last event of a reply may be its end already; before it nothing may pass for one.
    end = whole.rindex(ENDS[api])
    places = list(range(0, end, 37))
    answers = [Answer([whole[:at]], cuts=cuts) for at in places for cuts in (True, False)]
    http = Http(PATIENT)
    async with serving(*answers) as server:
        model = model_of(api, base_url=server.url)
        provider = RemoteProvider(model, APIS[api], open_door, http)
        for answer in answers:
            with anyio.fail_after(5):
                batches = [pieces async for pieces in provider.reply(request_of())]
            message = message_of(batches)
            assert message["stopReason"] == "error"
            assert message["error"]["kind"] == "cut", answer
            text = "".join(p.text for pieces in batches for p in pieces if type(p) is BlockDelta)
            kept = "".join(
                str(b.get("thinking") or b.get("text") or "") for b in message["content"]
            )
            assert text.startswith(kept)
    await http.close()


REFUSALS = [
    (429, {"type": "rate_limit_error", "message": "slow down"}, "rate_limited"),
    (429, {"code": "insufficient_quota", "message": "no money"}, "quota"),
    (529, {"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
    (503, "upstream", "overloaded"),
    (500, "<html>oops</html>", "server"),
    (401, {"type": "authentication_error", "message": f"bad key {KEY}"}, "unauthorized"),
    (403, {"message": "forbidden"}, "unauthorized"),
    (402, {"message": "pay"}, "quota"),
    (400, {"message": "prompt is too long: 210000 tokens > 200000 maximum"}, "overflow"),
    (413, "too large", "overflow"),
    (400, {"message": "messages: at least one"}, "invalid_request"),
    (404, {"type": "not_found_error", "message": "model: m1"}, "invalid_request"),
    (302, "", "unknown"),
]


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
@pytest.mark.parametrize(("status", "error", "kind"), REFUSALS)
async def test_a_refusal_is_an_error_of_a_kind(
    status: int, error: Any, kind: str, api: str
) -> None:
    body = error.encode() if isinstance(error, str) else sse({"error": error})[6:]
    headers = {"content-type": "application/json", "Retry-After": "7"}
    async with serving(Answer([body], status, headers)) as server:
        batches = await asked(server.url, api)
    [[ended]] = batches
    assert isinstance(ended, ReplyEnded) and ended.error is not None
    assert (ended.error.kind, ended.error.status) == (kind, status)
    assert ended.error.retry_after_ms == 7000
    assert KEY not in repr(batches)


@pytest.mark.anyio
async def test_a_refusal_whose_body_is_endless_is_read_in_part_only() -> None:
    flood = Answer([b"x" * 65536] * 64, 500)
    async with serving(flood) as server:
        error = error_of(await asked(server.url))
    assert error.kind == "server"
    assert len(error.message) < 5000


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
@pytest.mark.parametrize("come", [0, 300])
async def test_a_server_that_falls_silent_is_a_timeout(api: str, come: int) -> None:
    hanging = Answer([STREAMS[api][:come]], hangs=True)
    async with serving(hanging) as server:
        message = message_of(await asked(server.url, api, patience=Patience(5, 0.05, 5)))
        with anyio.fail_after(5):
            await server.left.wait()
    assert message["error"]["kind"] == "timeout"
    assert "0.05 s" in message["errorMessage"]


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
async def test_a_reply_that_never_ends_is_a_timeout(api: str) -> None:
    hanging = Answer([STREAMS[api][:300]], hangs=True)
    async with serving(hanging) as server:
        error = error_of(await asked(server.url, api, patience=Patience(5, 5, 0.05)))
    assert (error.kind, "0.05 s" in error.message) == ("timeout", True)


def wanting(**settings: Any) -> ModelRequest:
    """A request of a session that wants its model asked in a way of its own."""
    return msgspec.structs.replace(request_of(), asking=AskingSettings(**settings))


@pytest.mark.anyio
@pytest.mark.parametrize("bound", ["begin_s", "idle_s", "total_s"])
async def test_a_session_says_how_long_is_waited(bound: str) -> None:
    # Headers are not there before the first chunk is, so a server that never answers is asked too.
    chunks = [] if bound == "begin_s" else [STREAMS["anthropic-messages"][:300]]
    async with serving(Answer(chunks, hangs=True, waits=bound == "begin_s")) as server:
        request = wanting(**{bound: 0.05})
        error = error_of(await asked(server.url, patience=None, request=request))
    told = "was not complete within" if bound == "total_s" else "said nothing for"
    assert error.kind == "timeout"
    assert f"{told} 0.05 s" in error.message


@pytest.mark.anyio
async def test_waits_without_a_bound_are_asked_for_as_such() -> None:
    request = wanting(begin_s=inf, idle_s=inf, total_s=inf)
    async with serving(Answer([STREAMS["anthropic-messages"]])) as server:
        batches = await asked(server.url, patience=None, request=request)
    assert message_of(batches)["stopReason"] == "toolUse"


SOON = {"content-type": "application/json", "retry-after-ms": "1"}


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
async def test_a_request_is_made_anew_where_a_session_wants_that(api: str) -> None:
    busy = Answer([b"{}"], 529, SOON)
    request = wanting(retries=RequestRetries(2))
    async with serving(busy, Answer([b""], 429, SOON), Answer([STREAMS[api]])) as server:
        message = message_of(await asked(server.url, api, request=request))
    assert message["content"] == CONTENTS[api]
    assert [one.body for one in server.asked] == [server.asked[0].body] * 3
    assert message["diagnostics"][0]["details"] == {"notes": [{"kind": "asked_again", "count": 2}]}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "headers", "times"),
    [
        (529, {}, 2),
        (400, {}, 1),
        (400, {"x-should-retry": "true"}, 2),
        (500, {"x-should-retry": "false"}, 1),
        (429, {"retry-after": "120"}, 1),
    ],
)
async def test_a_request_is_made_anew_once_at_most_and_where_that_may_help(
    status: int, headers: dict[str, str], times: int
) -> None:
    refused = Answer([b"no"], status, SOON | headers if "retry-after" not in headers else headers)
    async with serving(refused) as server:
        error = error_of(await asked(server.url, request=wanting(retries=RequestRetries(1))))
    assert len(server.asked) == times
    assert error.status == status
    assert ("retry delay" in error.message) == ("retry-after" in headers)


@pytest.mark.anyio
async def test_without_a_wish_no_request_is_made_anew() -> None:
    async with serving(Answer([b"no"], 529, SOON)) as server:
        error = error_of(await asked(server.url))
    assert (len(server.asked), error.kind) == (1, "overloaded")


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
async def test_what_was_left_out_of_a_request_is_told_in_the_reply(api: str) -> None:
    """An orphan result, a missing one, another model's thinking: kinds, how often, where first."""
    call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {}}
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}
    foreign = {"role": "assistant", "content": [thought, thought, call], "stopReason": "toolUse"}
    orphan = {"role": "toolResult", "toolCallId": "x", "toolName": "ls", "content": []}
    question = {"role": "user", "content": "Go on"}
    request = request_of([question, orphan, foreign, question])
    async with serving(Answer([STREAMS[api]]), Answer([b"no"], 400)) as server:
        replies = [await asked(server.url, api, request=request) for _ in range(2)]
    expected = [
        {"kind": "result_left_out", "count": 1, "first": 1},
        {"kind": "result_made_up", "count": 1, "first": 2},
        {"kind": "thinking_left_out", "count": 2, "first": 2},
    ]
    for batches in replies:
        [told] = message_of(batches)["diagnostics"]
        assert told == {"type": "pi_rpc.request", "timestamp": 1, "details": {"notes": expected}}


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
async def test_no_images_are_sent_where_a_session_wants_none_sent(api: str) -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    content = [{"type": "text", "text": "these"}, image, image, {"type": "text", "text": "and"}]
    messages = [{"role": "user", "content": [*content, image]}]
    request = msgspec.structs.replace(
        request_of(messages), asking=AskingSettings(sends_images=False)
    )
    async with serving(Answer([STREAMS[api]])) as server:
        await asked(server.url, api, request=request)
    sent = json.dumps(server.asked[0].body)
    assert "AAAA" not in sent
    assert sent.count(IMAGE_BLOCKED) == 2
    assert messages[0]["content"] == [*content, image]


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
async def test_what_goes_over_the_net_can_be_changed_and_no_key_is_in_it(api: str) -> None:
    seen: list[tuple[str, str, str]] = []

    async def adjust(provider: str, model_id: str, name: str, payload: JsonObject) -> JsonObject:
        seen.append((provider, model_id, name))
        assert KEY not in json.dumps(payload)
        return payload | {"added": 1}

    request = msgspec.structs.replace(request_of(), adjust=adjust)
    async with serving(Answer([STREAMS[api]])) as server:
        await asked(server.url, api, request=request)
    assert server.asked[0].body["added"] == 1
    assert [name for _, _, name in seen] == [APIS[api].name]


@pytest.mark.anyio
async def test_a_request_that_somebody_refuses_is_an_error_and_nothing_is_sent() -> None:
    async def refuse(*what: object) -> JsonObject:
        raise Refused("refused_by_hook", "not this one")

    request = msgspec.structs.replace(request_of(), adjust=refuse)
    async with serving() as server:
        error = error_of(await asked(server.url, request=request))
    assert (error.kind, server.asked) == ("invalid_request", [])
    assert error.message == "The request was not made: not this one"


def test_a_key_that_a_text_was_cut_in_is_hidden_too() -> None:
    secrets = [Secret("sk-0123456789")]
    assert hidden("a sk-0123456789 b sk-01234567", secrets) == "a [key] b [key]"
    assert hidden("a sk-01", secrets) == "a sk-01"


@pytest.mark.anyio
@pytest.mark.parametrize("before", range(3960, 4001, 5))
async def test_a_key_quoted_where_an_error_is_cut_is_not_told_in_part(before: int) -> None:
    told = {"error": {"code": KEY, "message": "x" * before + KEY * 20}}
    async with serving(Answer([json.dumps(told).encode()], 400)) as server:
        batches = await asked(server.url)
    assert KEY[:6] not in repr(batches)


GARBAGE = {
    "no JSON": b"data: {oops\n\n",
    "another type": b"data: [1]\n\n",
    "no UTF-8": b"data: \xff\xfe\n\n",
    "deep": b"data: " + b"[" * 100_000 + b"\n\n",
    "wrong fields": b'data: {"type": {"a": 1}, "choices": 3, "candidates": "x"}\n\n',
}


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
@pytest.mark.parametrize("name", GARBAGE)
async def test_garbage_is_an_error(api: str, name: str) -> None:
    message = await answered(Answer([GARBAGE[name]]), api=api)
    assert message["stopReason"] == "error"
    assert message["error"]["kind"] == "server"
    assert message["error"]["code"] == "unreadable_event"


@pytest.mark.anyio
async def test_a_page_instead_of_a_stream_is_said_to_be_none() -> None:
    page = Answer([b"<html>hello</html>"], headers={"content-type": "text/html"})
    message = await answered(page)
    assert message["error"]["code"] == "no_event_stream"
    assert "text/html" in message["errorMessage"]


@pytest.mark.anyio
async def test_nobody_there_is_an_error_of_the_network() -> None:
    async with serving(Answer()) as server:
        url = server.url
    error = error_of(await asked(url))
    assert error.kind == "network"
    assert "Connection error" in error.message


@pytest.mark.anyio
@pytest.mark.parametrize("url", ["not an address", "ftp://127.0.0.1/x", ""])
async def test_an_address_that_is_none_is_an_error(url: str) -> None:
    assert error_of(await asked(url)).kind == "invalid_request"


@pytest.mark.anyio
@pytest.mark.parametrize("key", ["sk-secret\nx", "sk-secret-ß", "sk-secret\x00"])
async def test_a_key_that_cannot_be_sent_is_not_told(key: str) -> None:
    async def odd_door() -> Access:
        return Access(Secret(key))

    async with serving(Answer([STREAMS["anthropic-messages"]])) as server:
        batches = await asked(server.url, access=odd_door)
    assert error_of(batches).kind == "invalid_request"
    assert "secret" not in repr(batches)


@pytest.mark.anyio
async def test_no_key_is_an_error_and_nothing_is_sent() -> None:
    async def shut_door() -> Access:
        raise Refused("no_key", "There is no key for test.")

    async with serving(Answer()) as server:
        error = error_of(await asked(server.url, access=shut_door))
        assert server.asked == []
    assert error == ReplyError("unauthorized", "There is no key for test.")


@pytest.mark.anyio
async def test_each_api_has_its_address_and_its_key_header() -> None:
    async with serving(Answer()) as server:
        for api in API_NAMES:
            await asked(server.url, api)
        await asked(server.url + "/v1", "anthropic-messages")
        sent = [
            (one.path, [name for name, value in one.headers.items() if KEY in value])
            for one in server.asked
        ]
    assert sent == [
        ("/v1/messages", ["x-api-key"]),
        ("/chat/completions", ["authorization"]),
        ("/responses", ["authorization"]),
        ("/models/m1:streamGenerateContent?alt=sse", ["x-goog-api-key"]),
        ("/v1/messages", ["x-api-key"]),
    ]


@pytest.mark.anyio
async def test_headers_of_the_user_win_and_a_key_may_go_as_bearer() -> None:
    async def own_door() -> Access:
        headers = {"Anthropic-Version": Secret("2030-01-01"), "X-Team": Secret("blue")}
        return Access(Secret(KEY), headers, as_bearer=True)

    async with serving(Answer()) as server:
        await asked(server.url, access=own_door)
        [one] = server.asked
    assert one.headers["authorization"] == f"Bearer {KEY}"
    assert (one.headers["anthropic-version"], one.headers["x-team"]) == ("2030-01-01", "blue")
    assert "x-api-key" not in one.headers


@pytest.mark.anyio
async def test_a_connection_is_used_again() -> None:
    http = Http(PATIENT)
    async with serving(Answer([STREAMS["anthropic-messages"]])) as server:
        model = model_of("anthropic-messages", base_url=server.url)
        provider = RemoteProvider(model, APIS["anthropic-messages"], open_door, http)
        for _ in range(3):
            with anyio.fail_after(5):
                assert [pieces async for pieces in provider.reply(request_of())]
        assert len(server.asked) == 3
        await http.close()
    assert server.connections == 1


@pytest.mark.anyio
@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_reply_that_is_left_lets_go_of_its_connection(is_cancelled: bool) -> None:
    http = Http(PATIENT)
    half = Answer([STREAMS["anthropic-messages"][:400]], hangs=True)
    async with serving(half) as server:
        model = model_of("anthropic-messages", base_url=server.url)
        stream = RemoteProvider(model, APIS["anthropic-messages"], open_door, http).reply(
            request_of()
        )
        with anyio.fail_after(5):
            assert await anext(stream)
        if is_cancelled:
            with anyio.move_on_after(0.01) as scope:
                await anext(stream)
            assert scope.cancelled_caught
        await stream.aclose()
        with anyio.fail_after(5):
            await server.left.wait()
    await http.close()


@pytest.mark.anyio
@pytest.mark.parametrize("api", API_NAMES)
async def test_a_request_that_nothing_goes_on_from_is_not_kept_in_a_cache(api: str) -> None:
    single = msgspec.structs.replace(request_of(), is_single=True)
    async with serving(Answer([STREAMS[api]]), Answer([STREAMS[api]])) as server:
        await asked(server.url, api)
        await asked(server.url, api, request=single)
        kept, passing = (str(one.body) for one in server.asked)
        assert "cache" not in passing
        assert ("cache" in kept) == (api in ("anthropic-messages", "openai-responses"))


@pytest.mark.anyio
async def test_what_a_reply_cost_is_in_its_usage() -> None:
    message = await answered(Answer([STREAMS["anthropic-messages"]]))
    usage = message["usage"]
    assert {name: usage[name] for name in ("input", "output", "cacheRead", "cacheWrite")} == {
        "input": 100,
        "output": 7,
        "cacheRead": 30,
        "cacheWrite": 20,
    }
    assert (usage["totalTokens"], usage["cacheWrite1h"]) == (157, 5)
    assert usage["cost"]["total"] == pytest.approx(0.00050025)
    assert usage["cost"]["totalFromProvider"] is False


@pytest.mark.anyio
async def test_the_start_comes_with_the_answer_and_not_before() -> None:
    async with serving(Answer([STREAMS["anthropic-messages"]])) as server:
        batches = await asked(server.url)
    assert isinstance(batches[0][0], ReplyStarted)


AFTER = [
    ({"retry-after-ms": "1500"}, 1500),
    ({"retry-after": "2"}, 2000),
    ({"retry-after": "0.5"}, 500),
    ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 10_000),
    ({"retry-after": "Thu, 01 Jan 1970 00:00:40 GMT"}, 0),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "-1"}, None),
    ({"retry-after-ms": "nan"}, None),
    ({"retry-after": "1e400"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("headers", "wait_ms"), AFTER)
def test_a_server_says_when_to_come_back(headers: dict[str, str], wait_ms: int | None) -> None:
    assert retry_after_ms(headers, now_s=90) == wait_ms


@pytest.mark.parametrize(("count", "is_beside"), [(1, False), (MESSAGES_AT_ONCE + 1, True)])
async def test_a_long_context_is_put_into_words_beside_the_loop(
    count: int, is_beside: bool
) -> None:
    api = APIS["openai-completions"]
    threads: list[int] = []

    def noting(*arguments: Any) -> Post:
        threads.append(threading.get_ident())
        return api.post(*arguments)

    noted = msgspec.structs.replace(api, post=noting)
    messages = [{"role": "user", "content": f"Question {number}"} for number in range(count)]
    http = Http(PATIENT)
    async with serving(Answer([STREAMS[api.name]])) as server:
        model = model_of(api.name, base_url=server.url)
        provider = RemoteProvider(model, noted, open_door, http)
        with anyio.fail_after(5):
            batches = [pieces async for pieces in provider.reply(request_of(messages))]
    await http.close()
    assert message_of(batches)["stopReason"] == "toolUse"
    assert [one["content"] for one in server.asked[0].body["messages"]] == [
        one["content"] for one in messages
    ]
    assert [one != threading.get_ident() for one in threads] == [is_beside]
