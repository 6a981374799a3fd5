"""A model request ends in a message, whatever becomes of the provider."""

from collections.abc import AsyncGenerator, Callable, Sequence
from math import inf

import anyio
import pytest

from pi_rpc.agent.asking import Asking
from pi_rpc.agent.stopping import Stop
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.reply import (
    BlockDelta,
    BlockStarted,
    Piece,
    ReplyEnded,
    ReplyError,
    ReplyStarted,
)

REQUEST = ModelRequest("offline", "scripted", "off", [], "s1")
HALF: Sequence[Piece] = [ReplyStarted(), BlockStarted(0, "text"), BlockDelta(0, "half")]
REST: Sequence[Piece] = [BlockDelta(0, " and half"), ReplyEnded("stop")]

Stream = AsyncGenerator[Sequence[Piece], None]


class Provider:
    """Answers with the stream it was made with, and keeps count."""

    def __init__(self, stream: Callable[[], Stream]) -> None:
        self.opened = 0
        self.closed = anyio.Event()
        self._stream = stream

    async def reply(self, request: ModelRequest) -> Stream:
        self.opened += 1
        try:
            async for pieces in self._stream():
                yield pieces
        finally:
            self.closed.set()


async def whole() -> Stream:
    yield HALF
    yield REST


async def broken() -> Stream:
    yield HALF


async def failed() -> Stream:
    yield HALF
    yield [ReplyEnded("error", error=ReplyError("overloaded", "busy", status=529))]


async def silent() -> Stream:
    yield HALF
    await anyio.sleep_forever()


async def mute() -> Stream:
    await anyio.sleep_forever()
    yield HALF


async def chatty_after_its_end() -> Stream:
    yield [*HALF, ReplyEnded("stop")]
    yield HALF


def message_of(reply: Asking) -> JsonObject:
    return reply.message("offline", at_ms=1, duration_ms=2)


async def asked(
    stream: Callable[[], Stream], idle_s: float = 5.0, total_s: float = inf
) -> JsonObject:
    provider = Provider(stream)
    with anyio.fail_after(5):
        async with Asking(provider, REQUEST, Stop(), idle_s, total_s) as reply:
            async for _ in reply:
                pass
    assert provider.closed.is_set()
    return message_of(reply)


def gist(message: JsonObject) -> tuple[str, list[str], str | None]:
    texts = [block["text"] for block in message["content"]]
    return message["stopReason"], texts, message.get("error", {}).get("kind")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (whole, ("stop", ["half and half"], None)),
        (broken, ("error", ["half"], "cut")),
        (failed, ("error", ["half"], "overloaded")),
        (chatty_after_its_end, ("stop", ["half"], None)),
    ],
)
async def test_every_stream_ends_in_a_message(
    stream: Callable[[], Stream], expected: tuple[str, list[str], str | None]
) -> None:
    assert gist(await asked(stream)) == expected


@pytest.mark.anyio
async def test_batches_are_passed_on_as_they_come() -> None:
    async with Asking(Provider(whole), REQUEST, Stop()) as reply:
        assert [pieces async for pieces in reply] == [HALF, REST]


@pytest.mark.anyio
async def test_the_message_names_the_model_that_was_asked() -> None:
    message = await asked(whole)
    assert (message["provider"], message["model"], message["api"]) == (
        "offline",
        "scripted",
        "offline",
    )


@pytest.mark.anyio
async def test_a_silent_provider_is_given_up_at_the_idle_deadline() -> None:
    message = await asked(mute, idle_s=0.0)
    assert gist(message) == ("error", [], "timeout")
    assert "said nothing" in message["errorMessage"]


@pytest.mark.anyio
async def test_a_silence_after_the_first_words_keeps_them() -> None:
    assert gist(await asked(silent, idle_s=0.01)) == ("error", ["half"], "timeout")


@pytest.mark.anyio
async def test_a_reply_that_takes_too_long_in_all_is_given_up() -> None:
    message = await asked(mute, total_s=0.0)
    assert gist(message) == ("error", [], "timeout")
    assert "not complete" in message["errorMessage"]


@pytest.mark.anyio
@pytest.mark.parametrize(("stream", "texts"), [(silent, ["half"]), (mute, [])])
async def test_a_stop_ends_the_wait_for_a_silent_provider(
    stream: Callable[[], Stream], texts: list[str]
) -> None:
    provider, stop = Provider(stream), Stop()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:

            async def ask() -> JsonObject:
                async with Asking(provider, REQUEST, stop) as reply:
                    async for _ in reply:
                        pass
                return message_of(reply)

            messages: list[JsonObject] = []

            async def keep() -> None:
                messages.append(await ask())

            tasks.start_soon(keep)
            await anyio.wait_all_tasks_blocked()
            assert messages == []
            stop.set()
    assert [gist(message) for message in messages] == [("aborted", texts, None)]
    assert provider.closed.is_set()


@pytest.mark.anyio
async def test_a_stop_between_two_batches_takes_no_further_one() -> None:
    stop = Stop()
    seen: list[Sequence[Piece]] = []
    async with Asking(Provider(whole), REQUEST, stop) as reply:
        async for pieces in reply:
            seen.append(pieces)
            stop.set()
    assert seen == [HALF]
    assert gist(message_of(reply)) == ("aborted", ["half"], None)


@pytest.mark.anyio
async def test_a_reply_that_was_whole_before_the_stop_stays_whole() -> None:
    stop = Stop()
    async with Asking(Provider(whole), REQUEST, stop) as reply:
        async for pieces in reply:
            if pieces is REST:
                stop.set()
    assert gist(message_of(reply)) == ("stop", ["half and half"], None)


@pytest.mark.anyio
async def test_a_stop_that_came_first_asks_nobody() -> None:
    provider, stop = Provider(whole), Stop()
    stop.set()
    async with Asking(provider, REQUEST, stop) as reply:
        assert [pieces async for pieces in reply] == []
    assert provider.opened == 0
    assert gist(message_of(reply)) == ("aborted", [], None)


@pytest.mark.anyio
async def test_a_caller_that_leaves_early_closes_the_stream() -> None:
    provider = Provider(silent)
    async with Asking(provider, REQUEST, Stop()) as reply:
        async for _ in reply:
            break
    assert provider.closed.is_set()
    assert gist(message_of(reply)) == ("error", ["half"], "cut")


@pytest.mark.anyio
async def test_the_callers_own_error_leaves_the_block_as_it_was_raised() -> None:
    provider = Provider(silent)
    with pytest.raises(ZeroDivisionError):
        async with Asking(provider, REQUEST, Stop()) as reply:
            async for _ in reply:
                raise ZeroDivisionError
    assert provider.closed.is_set()


@pytest.mark.anyio
async def test_cancelling_the_caller_closes_the_stream_and_goes_on() -> None:
    provider = Provider(silent)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                async with Asking(provider, REQUEST, Stop()) as reply:
                    async for _ in reply:
                        pass
                raise AssertionError("the cancellation was swallowed")

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert provider.closed.is_set()
