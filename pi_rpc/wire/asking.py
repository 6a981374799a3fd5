"""Requests of ours that wait for the other side.

Promises
- Every request ends: with its result, its error, too late, withdrawn, or with the connection.
- Whatever is given up is withdrawn, so that the other side need not go on with it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import msgspec

from pi_rpc.wire.errors import DisconnectedError, RemoteError, overfull
from pi_rpc.wire.messages import Id, Response, bytes_from_notification, bytes_from_request

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Asked:
    arrived: anyio.Event
    answer: Response | None = None


class Asking:
    """What this end has asked, by names of its own: "s1", "s2" and so on."""

    def __init__(self, put: Callable[[bytes], None], limit: int) -> None:
        self._put = put
        self._limit = limit
        self._waiting: dict[Id, _Asked] = {}
        self._count = 0
        self._ended: str | None = None

    async def ask(self, method: str, params: Any, timeout_s: float | None) -> msgspec.Raw:
        """Ask and wait. Raises as `Peer.request` says."""
        if self._ended is not None:
            raise DisconnectedError(self._ended)
        if len(self._waiting) >= self._limit:
            raise overfull("too_many_asked", limit=self._limit)
        name = f"s{self._count + 1}"
        self._put(bytes_from_request(name, method, params))
        self._count += 1
        asked = self._waiting[name] = _Asked(anyio.Event())
        try:
            with anyio.move_on_after(timeout_s):
                await asked.arrived.wait()
        finally:
            if self._waiting.pop(name, None):
                self._put(bytes_from_notification("$/cancelRequest", {"id": name}))
        if asked.answer is not None:
            return _result_of(asked.answer)
        if self._ended is not None:
            raise DisconnectedError(self._ended)
        raise TimeoutError(f"no answer to {method} within {timeout_s} s")

    def take(self, response: Response) -> None:
        """Hand an answer to whoever waits for it."""
        asked = self._waiting.pop(response.id, None)
        if asked:
            asked.answer = response
            asked.arrived.set()
        elif not self._was_asked(response.id):
            # A response is never answered: two ends could go on like that for ever.
            _log.warning("a response to nothing we asked: id %.100r", response.id)

    def end(self, reason: str) -> None:
        """No answer can come any more: whoever waits hears of it."""
        self._ended = reason
        waiting, self._waiting = self._waiting, {}
        for asked in waiting.values():
            asked.arrived.set()

    def _was_asked(self, name: Id) -> bool:
        """Whether this was a name of ours: an answer after we gave up is nothing strange."""
        number = name[1:] if isinstance(name, str) and name.startswith("s") else ""
        is_number = number.isascii() and number.isdigit() and len(number) < 18
        return is_number and 1 <= int(number) <= self._count


def _result_of(answer: Response) -> msgspec.Raw:
    if answer.error is not None:
        data = answer.error.data
        raise RemoteError(
            answer.error.code, answer.error.message, None if data is None else bytes(data)
        )
    assert answer.result is not None
    return answer.result
