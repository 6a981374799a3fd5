"""One model request: the provider's stream is opened, folded and passed on.

    async with Asking(provider, request, stop) as reply:
        async for pieces in reply:
            ...
    message = reply.message(api, at_ms, duration_ms)

Promises
- Iteration ends: by the reply's own end, by the stop, by a deadline, or because the stream broke
  off. Whatever ended it, `message` is a message to store.
- A stop and a deadline take effect while the provider is silent. When the block is left the
  provider's stream is closed and nothing of it goes on.
- The provider is not even opened when the stop came first.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from math import inf
from types import TracebackType
from typing import Self

import anyio

from pi_rpc.agent.stopping import Stop
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.providers import AskingSettings, ModelRequest, Provider
from pi_rpc.core.reply import Fold, Piece


class Asking(AsyncIterator[Sequence[Piece]]):
    """A reply while it arrives: enter it, iterate it once for batches of pieces, take the message.

    Each silence is bounded, and so is the whole, as the request says unless `idle_s` and `total_s`
    do; beyond either the reply is an error of kind `timeout`.
    """

    def __init__(
        self,
        provider: Provider,
        request: ModelRequest,
        stop: Stop,
        idle_s: float | None = None,
        total_s: float | None = None,
    ) -> None:
        self._request = request
        self._stop = stop
        self._idle_s = _silence_s(request.asking) if idle_s is None else idle_s
        self._total_s = request.asking.total_s if total_s is None else total_s
        self._total_until = inf
        self._fold = Fold()
        self._stream = provider.reply(request)
        self._silence: anyio.CancelScope | None = None
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._total_until = anyio.current_time() + self._total_s
        await self._open.enter_async_context(aclosing(self._stream))
        self._open.enter_context(self._stop.calling(self._break_silence))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._open.__aexit__(kind, raised, trace)

    async def __anext__(self) -> Sequence[Piece]:
        if self._stop.is_set():
            self._fold.cut("aborted")
        if self._fold.has_ended:
            raise StopAsyncIteration
        until = min(anyio.current_time() + self._idle_s, self._total_until)
        self._silence = anyio.CancelScope(deadline=until)
        with self._silence:
            pieces = await anext(self._stream, None)
            self._silence = None
            if pieces is not None:
                self._fold.extend(pieces)
                return pieces
            self._fold.cut("error")
            raise StopAsyncIteration
        self._silence = None
        self._cut_silence()
        raise StopAsyncIteration

    @property
    def script_position(self) -> int | None:
        """From the offline model: how many replies of its script are used; None from others."""
        return self._fold.script_position

    def message(self, api: str, at_ms: int, duration_ms: float) -> JsonObject:
        """The assistant message to store, of what came so far; `at_ms` is when it was asked for."""
        request = self._request
        message = self._fold.message(request.provider, request.model_id, api, at_ms, duration_ms)
        message["thinkingLevel"] = request.thinking_level
        return message

    def _cut_silence(self) -> None:
        if self._stop.is_set():
            self._fold.cut("aborted")
        elif anyio.current_time() >= self._total_until:
            told = f"The reply was not complete within {self._total_s:g} s."
            self._fold.cut("error", told, "timeout")
        else:
            told = f"The provider said nothing for {self._idle_s:g} s."
            self._fold.cut("error", told, "timeout")

    def _break_silence(self) -> None:
        if self._silence is not None:
            self._silence.cancel()


def _silence_s(asking: AskingSettings) -> float:
    """The longest silence there can be, requests that are made anew included."""
    return max(asking.begin_s, asking.idle_s) + asking.retries.longest_s(asking.begin_s)
