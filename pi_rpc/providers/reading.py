"""A reply being read: events in, pieces out, whatever the API; pure.

Promises
- Blocks are numbered from 0 in the order they open; deltas stand between start and end.
- When the reply ends every block has ended. It ends once.
- What cannot be read ends the reply as an error; it never raises.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from pi_rpc.core.messages import Usage
from pi_rpc.core.reply import (
    CUT,
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Piece,
    ReplyEnded,
    ReplyError,
    ReplyStarted,
    StopReason,
)
from pi_rpc.core.retrying import kind_of
from pi_rpc.providers.sse import Event

QUOTED_CHARS = 200
"""How much of an unreadable event is quoted."""

BlockKind = Literal["text", "thinking", "toolCall"]


class Blocks:
    """Makes the pieces of one reply."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._has_started = False
        self._next = 0
        self._open: set[int] = set()
        self.has_ended = False
        self.has_calls = False
        """Whether a tool call was opened."""

    def taken(self) -> list[Piece]:
        """The pieces made since the last time."""
        pieces, self._pieces = self._pieces, []
        return pieces

    def started(self, response_id: str | None = None, usage: Usage | None = None) -> None:
        """The reply has begun; only the first time counts."""
        if not self._has_started:
            self._has_started = True
            self._pieces.append(ReplyStarted(response_id, usage))

    def opened(self, kind: BlockKind, call_id: str = "", name: str = "") -> int:
        """Open a block; its index."""
        self.started()
        index = self._next
        self._next += 1
        self._open.add(index)
        self.has_calls = self.has_calls or kind == "toolCall"
        self._pieces.append(BlockStarted(index, kind, call_id, name))
        return index

    def delta(self, index: int, text: str) -> None:
        """More text of a block; nothing once it is whole."""
        if text and index in self._open:
            self._pieces.append(BlockDelta(index, text))

    def closed(self, index: int, signature: str | None = None, redacted: bool = False) -> None:
        """A block is whole."""
        if index in self._open:
            self._open.discard(index)
            self._pieces.append(BlockEnded(index, signature, redacted))

    def ended(self, end: ReplyEnded) -> None:
        """The reply is over, and so is every open block."""
        if self.has_ended:
            return
        self.started()
        for index in sorted(self._open):
            self.closed(index)
        self.has_ended = True
        self._pieces.append(end)


class Reading:
    """One reply of any API; each API says in `take` what an event of it means."""

    def __init__(self, asked_model: str) -> None:
        self.blocks = Blocks()
        self.usage = Usage()
        self.raw_stop: str | None = None
        self.response_id: str | None = None
        self.price_factor = 1.0
        """By how much the service tier that answered differs from list prices."""
        self._asked_model = asked_model
        self._response_model: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the end came."""
        return self.blocks.has_ended

    def pieces_of(self, events: Iterable[Event]) -> list[Piece]:
        """The pieces that these events make, in one batch."""
        for event in events:
            if self.blocks.has_ended:
                break
            try:
                self.take(event)
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
                quoted = event.data[:QUOTED_CHARS].decode("utf-8", "replace")
                told = f"The provider sent what cannot be read ({problem}): {quoted}"
                self.failed(ReplyError("server", told, code="unreadable_event"))
        return self.blocks.taken()

    def broken_off(self, error: ReplyError | None = None) -> list[Piece]:
        """The last pieces of a reply whose stream ended, by itself or because of an error."""
        if error is None:
            self.exhausted()
        else:
            self.failed(error)
        return self.blocks.taken()

    def take(self, event: Event) -> None:
        """Take in one event."""
        raise NotImplementedError

    def exhausted(self) -> None:
        """The stream ended: a cut, for an API whose end is told by an event."""
        self.failed(ReplyError("cut", CUT))

    def answered_by(self, model: str | None) -> None:
        """The server named the model that answers."""
        if model and model != self._asked_model:
            self._response_model = model

    def done(self, stop: StopReason) -> None:
        """The reply ended as it should."""
        self._end(ReplyEnded(stop, self.usage))

    def failed(self, error: ReplyError) -> None:
        """The reply ended as an error."""
        self._end(ReplyEnded("error", self.usage, error))

    def failed_with(self, code: str | None, message: str) -> None:
        """The provider says in the stream that it failed."""
        told = message or code or "The provider reported an error without saying which."
        self.failed(ReplyError(kind_of(None, code, told), told, code=code))

    def refused(self, reason: str, message: str = "") -> None:
        """The provider will not answer this."""
        told = message or f"The provider ended the reply: {reason}."
        self.failed(ReplyError("refusal", told, code=reason))

    def stopped_strangely(self, reason: str, message: str = "") -> None:
        """The provider gave a reason for its end that is not known here."""
        told = f"The provider ended the reply for a reason of its own: {reason}. {message}".strip()
        kind = kind_of(None, reason, reason)
        self.failed(ReplyError(kind, told, code=reason))

    def _end(self, end: ReplyEnded) -> None:
        self.blocks.ended(
            msgspec.structs.replace(
                end,
                raw_stop=self.raw_stop,
                response_model=self._response_model,
                response_id=self.response_id,
            )
        )
