"""What every provider promises, whoever answers behind it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.providers import ModelRequest, Provider
from pi_rpc.core.reply import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Fold,
    Piece,
    ReplyEnded,
    ReplyStarted,
)
from pi_rpc.providers.http import Patience
from pi_rpc.providers.remote import Access, RemoteProvider
from pi_rpc.providers.script import script_from_object
from pi_rpc.providers.scripted import ScriptedProvider
from tests.providers.streams import APIS, STREAMS, model_of

MESSAGES: list[JsonObject] = [{"role": "user", "content": "read README.md"}]


def scripted(**reply: Any) -> Provider:
    return ScriptedProvider(script_from_object({"replies": [reply]}))


class Canned:
    """What a server would send, without one: one read for each chunk."""

    content_type = "text/event-stream"

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    async def open(
        self, url: str, headers: dict[str, str], body: bytes, patience: Patience
    ) -> "Canned":
        return Canned(list(self._chunks))

    async def read(self) -> bytes:
        await anyio.lowlevel.checkpoint()
        return self._chunks.pop(0) if self._chunks else b""

    async def read_rest(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def close(self) -> None:
        self._chunks.clear()


def remote(api: str, raw: bytes) -> Provider:
    async def open_door() -> Access:
        return Access()

    half = len(raw) // 2
    http: Any = Canned([raw[:half], raw[half:]])
    return RemoteProvider(model_of(api), APIS[api], open_door, http)


def remote_bodies() -> dict[str, Callable[[], Provider]]:
    """Each API with a whole stream, a cut one and one that cannot be read."""
    made: dict[str, Callable[[], Provider]] = {}
    for api, raw in STREAMS.items():
        made[api] = partial(remote, api, raw)
        made[f"{api} cut"] = partial(remote, api, raw[: len(raw) // 3])
        made[f"{api} garbled"] = partial(remote, api, raw[: len(raw) // 3] + b"\n\ndata: {\n\n")
    return made


FULL = {"thinking": "hm", "text": "I look.", "tools": [{"name": "read", "args": {"path": "a"}}]}
BODIES: dict[str, Callable[[], Provider]] = {
    "scripted without a script": ScriptedProvider,
    "scripted with every block": lambda: scripted(**FULL),
    "scripted and delayed": lambda: scripted(**FULL, delayMs=0.01, chunk=2),
    "scripted and empty": scripted,
    "scripted and failing": lambda: scripted(text="half", error={"status": 529}),
    **remote_bodies(),
}


def request(messages: list[JsonObject] = MESSAGES) -> ModelRequest:
    return ModelRequest("any", "model", "off", messages, "s1")


async def streamed(provider: Provider) -> list[Piece]:
    with anyio.fail_after(5):
        return [piece async for pieces in provider.reply(request()) for piece in pieces]


@pytest.fixture(params=list(BODIES))
def provider(request: pytest.FixtureRequest) -> Provider:
    return BODIES[request.param]()


@pytest.mark.anyio
async def test_a_reply_starts_once_and_its_last_piece_is_its_only_end(provider: Provider) -> None:
    pieces = await streamed(provider)
    assert [type(piece) for piece in pieces].count(ReplyStarted) == 1
    assert isinstance(pieces[0], ReplyStarted)
    assert [type(piece) for piece in pieces].count(ReplyEnded) == 1
    assert isinstance(pieces[-1], ReplyEnded)


@pytest.mark.anyio
async def test_deltas_stand_between_the_start_and_the_end_of_their_block(
    provider: Provider,
) -> None:
    opened: set[int] = set()
    closed: set[int] = set()
    for piece in await streamed(provider):
        match piece:
            case BlockStarted(index=index):
                assert index == len(opened)
                opened.add(index)
            case BlockDelta(index=index):
                assert index in opened - closed
            case BlockEnded(index=index):
                assert index in opened - closed
                closed.add(index)
            case ReplyEnded():
                assert opened == closed


@pytest.mark.anyio
async def test_the_same_request_gives_the_same_reply(provider: Provider) -> None:
    assert await streamed(provider) == await streamed(provider)


@pytest.mark.anyio
async def test_no_batch_is_empty(provider: Provider) -> None:
    async for pieces in provider.reply(request()):
        assert pieces


@pytest.mark.anyio
async def test_a_stream_may_be_closed_after_any_batch(provider: Provider) -> None:
    batches = len([pieces async for pieces in provider.reply(request())])
    with anyio.fail_after(5):
        for taken in range(batches + 1):
            stream = provider.reply(request())
            for _ in range(taken):
                await anext(stream)
            await stream.aclose()
            assert await anext(stream, None) is None


@pytest.mark.anyio
async def test_a_stream_that_is_cancelled_ends(provider: Provider) -> None:
    stream = provider.reply(request())
    with anyio.CancelScope() as scope:
        scope.cancel()
        async for _ in stream:
            pass
    assert scope.cancelled_caught
    assert await anext(stream, None) is None


@pytest.mark.anyio
async def test_a_reply_folds_into_a_message(provider: Provider) -> None:
    fold = Fold()
    fold.extend(await streamed(provider))
    message = fold.message("any", "model", "api", 1, 1)
    assert message["stopReason"] in {"stop", "toolUse", "error"}
    assert ("error" in message) == (message["stopReason"] == "error")


@pytest.mark.anyio
async def test_two_replies_of_one_provider_do_not_disturb_each_other(provider: Provider) -> None:
    whole = await streamed(provider)
    one, other = provider.reply(request()), provider.reply(request())
    seen: tuple[list[Piece], list[Piece]] = ([], [])
    with anyio.fail_after(5):
        async for pieces in one:
            seen[0].extend(pieces)
            seen[1].extend(await anext(other, []))
        async for pieces in other:
            seen[1].extend(pieces)
    assert seen == (whole, whole)
