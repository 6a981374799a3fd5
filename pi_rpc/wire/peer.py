"""One end of a JSON-RPC connection: requests in and out, a task for each that waits, orderly end.

Promises
- Every request gets exactly one answer, in a batch or alone, whatever becomes of its handler.
- A handler that does not wait is answered in place; its answer leaves before the next is read.
- What is put on the wire first leaves first.
- While the outbox is full nothing more is read; requests in flight are bounded.
- A handler's mistake is answered with an incident id, and its trace is logged under that id.
"""

import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

import anyio
import anyio.abc
import msgspec

from pi_rpc.wire.asking import Asking
from pi_rpc.wire.errors import RpcError, cancelled, internal, invalid_request, overfull
from pi_rpc.wire.framing import Frame, FrameDecoder, Framing, frame
from pi_rpc.wire.limits import DEFAULT_LIMITS, Limits
from pi_rpc.wire.messages import (
    Batch,
    Fault,
    Id,
    Notification,
    Request,
    Response,
    Single,
    bytes_from_error,
    bytes_from_notification,
    bytes_from_result,
    message_from_bytes,
    message_from_fault,
)
from pi_rpc.wire.replies import BatchReply, Reply, too_large
from pi_rpc.wire.transport import Transport

_log = logging.getLogger(__name__)

EndReason = Literal["eof", "broken", "stopped"]
"""Why a connection ended: input ended, output is gone, or we stopped reading."""


Dispatch = Callable[[Request, "Peer"], Any]
"""Answers a request: with what msgspec can encode, or with an awaitable of it.

Raises RpcError, at once or when awaited, to answer with an error. It must do nothing before it
returns an awaitable: when too much is in flight, that is closed without being started.
"""


@dataclass(slots=True)
class _Running:
    """A request whose handler waits."""

    key: object
    request: Request
    awaitable: Awaitable[Any]
    reply: Reply
    scope: anyio.CancelScope


class Peer:
    """One end of a connection. Used as an async context manager; reading begins on entry.

    On exit, requests that still wait are answered as cancelled, and what is written gets
    `limits.farewell_s` to leave. A `decoder` that has already seen the beginning of the stream may
    be handed over, with the frames it gave that nobody has answered (`received`).
    """

    def __init__(
        self,
        transport: Transport,
        dispatch: Dispatch,
        *,
        limits: Limits = DEFAULT_LIMITS,
        on_notification: Callable[[Notification], None] | None = None,
        decoder: FrameDecoder | None = None,
        received: Iterable[Frame] = (),
    ) -> None:
        self.limits = limits
        self.outbound_limit_bytes = limits.outbound_bytes
        """The longest message written. May be lowered to what the other side accepts."""
        self.ended: EndReason | None = None
        """Why the connection ended, once it has."""
        self._transport = transport
        self._outbox = transport.outbox
        self._dispatch = dispatch
        self._on_notification = on_notification
        self._decoder = decoder or FrameDecoder(limits.inbound_bytes)
        self._unread: deque[Frame] = deque(received)
        """Frames not looked at yet, because the outbox was full."""
        self._running: dict[object, _Running] = {}
        self._asking = Asking(self._put_own, limits.asked)
        self._tasks: anyio.abc.TaskGroup
        self._has_ended = anyio.Event()
        self._is_quiet = anyio.Event()
        """Set whenever all that was read is answered; replaced when somebody waits again."""
        self._is_paused = False
        """Holds: true while the outbox keeps us from reading."""
        self._is_closing = False
        self._is_given_up = False
        """Holds: true when a wait for the other side to read was in vain, which is not repeated."""

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._outbox.when_broken(partial(self._end, "broken"))
        self._go_on()
        self._transport.start(self._receive, self._input_ended)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._end("stopped")
        self._is_closing = True
        self._tasks.cancel_scope.cancel()
        try:
            return await self._tasks.__aexit__(kind, error, trace)
        finally:
            # A task that was cancelled before its first step has answered nothing.
            for running in list(self._running.values()):
                _abandon(running.awaitable)
                self._finish(running, bytes_from_error(running.request.id, cancelled("closing")))
            with anyio.CancelScope(shield=True):
                await self.drain(0 if self._is_given_up else self.limits.farewell_s)
            self._transport.close()

    async def run(self, drain_s: float | None = None) -> EndReason:
        """Serve until the connection ends; then give what runs `drain_s` to end, and close."""
        async with self:
            reason = await self.wait_until_ended()
            await self.drain(drain_s)
        return reason

    async def wait_until_ended(self) -> EndReason:
        """Return why, when the input ends, the output is gone, or reading was stopped."""
        await self._has_ended.wait()
        assert self.ended is not None
        return self.ended

    def stop_reading(self) -> None:
        """Read nothing more. Requests already read go on."""
        self._end("stopped")

    async def drain(self, timeout_s: float | None = None) -> bool:
        """Wait until every request read is answered and every answer written; False if too late."""
        with anyio.move_on_after(timeout_s):
            while self._running or self._unread:
                if self._is_quiet.is_set():
                    self._is_quiet = anyio.Event()
                await self._is_quiet.wait()
            await self._outbox.flush()
            self._is_given_up = False
            return True
        self._is_given_up = self._outbox.held_bytes > 0
        return False

    @property
    def is_pressed(self) -> bool:
        """Whether the other side lags in reading: merge what can be merged."""
        return self._outbox.is_pressed

    @property
    def is_full(self) -> bool:
        """Whether to tell nothing more until `wait_until_free` returns."""
        return self._outbox.is_full

    async def wait_until_free(self) -> None:
        """Return when there is room for more, or nobody is left to read it."""
        await self._outbox.wait_until_free()

    def notify(self, method: str, params: Any = None) -> None:
        """Tell something that wants no answer. `params` is encodable, or JSON as bytes or Raw.

        Never waits. Raises RpcError (overfull) when it is longer than the other side accepts.
        """
        self._put_own(bytes_from_notification(method, params))

    def progress(
        self,
        token: str | int,
        kind: Literal["begin", "report", "end"],
        message: str | None = None,
        fraction: float | None = None,
    ) -> None:
        """Tell how far long work has come, under the token its request carried."""
        self.notify("$/progress", _Progress(token, _ProgressValue(kind, message, fraction)))

    async def request(
        self, method: str, params: Any = None, timeout_s: float | None = None
    ) -> msgspec.Raw:
        """Ask the other side and return its result, undecoded.

        Raises RemoteError when it answers with an error, TimeoutError when it does not answer in
        time, DisconnectedError when it cannot any more, RpcError (overfull) when too much is asked.
        A request that is given up is withdrawn with `$/cancelRequest`.
        """
        return await self._asking.ask(method, params, timeout_s)

    def _receive(self, data: bytes) -> None:
        self._unread.extend(self._decoder.feed(data))
        self._go_on()

    def _input_ended(self) -> None:
        self._unread.extend(self._decoder.eof())
        self._go_on()
        self._end("eof")

    def _end(self, reason: EndReason) -> None:
        self._transport.pause()
        if self.ended is None:
            self.ended = reason
            self._has_ended.set()
            self._asking.end(reason)

    def _go_on(self) -> None:
        """Work off what was read, as far as there is room for the answers."""
        unread, outbox = self._unread, self._outbox
        while unread:
            outbox.hold()
            try:
                while unread and not outbox.is_full:
                    self._take(unread.popleft())
            finally:
                outbox.release()
            if outbox.is_full:
                self._pause()
                return
        self._tell_quiet()

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause()
            self._outbox.when_free(self._free)

    def _free(self) -> None:
        self._is_paused = False
        if self.ended is None:
            self._transport.resume()
        self._go_on()

    def _take(self, frame: Frame) -> None:
        limits = self.limits
        if isinstance(frame, bytes):
            message = message_from_bytes(frame, limits.nesting, limits.batch)
        else:
            message = message_from_fault(frame, limits.inbound_bytes)
        if isinstance(message, Batch):
            self._take_batch(message)
        else:
            self._take_single(message, self._put)

    def _take_batch(self, batch: Batch) -> None:
        expected = sum(isinstance(item, Request | Fault) for item in batch.items)
        replies = BatchReply(self._put, expected, self.outbound_limit_bytes)
        for item in batch.items:
            reply = replies.slot(item.id) if isinstance(item, Request | Fault) else self._put
            self._take_single(item, reply)

    def _take_single(self, message: Single, reply: Reply) -> None:
        if isinstance(message, Request):
            self._answer(message, reply)
        elif isinstance(message, Notification):
            self._heed(message)
        elif isinstance(message, Response):
            self._asking.take(message)
        else:
            reply(bytes_from_error(message.id, message.error))

    def _answer(self, request: Request, reply: Reply) -> None:
        if self._running and request.id in self._running:
            reply(bytes_from_error(request.id, invalid_request("duplicate_id")))
            return
        if self._is_closing:
            reply(bytes_from_error(request.id, cancelled("closing")))
            return
        try:
            result = self._dispatch(request, self)
            if hasattr(result, "__await__"):
                self._start(request, result, reply)
                return
            payload = bytes_from_result(request.id, result)
        except Exception as failure:
            payload = self._payload_of(failure, request)
        reply(self._bounded(payload, request.id))

    @property
    def has_room(self) -> bool:
        """Whether one more request may wait for its handler."""
        return len(self._running) < self.limits.in_flight

    def _start(self, request: Request, awaitable: Awaitable[Any], reply: Reply) -> None:
        if not self.has_room:
            _abandon(awaitable)
            raise overfull(
                "too_many_in_flight",
                limit=self.limits.in_flight,
                retryAfterMs=self.limits.retry_after_ms,
            )
        # Several may run without a name; each is kept under a key of its own.
        key = object() if request.id is None else request.id
        running = _Running(key, request, awaitable, reply, anyio.CancelScope())
        self._running[key] = running
        self._tasks.start_soon(self._run, running)

    async def _run(self, running: _Running) -> None:
        request = running.request
        payload: bytes | None = None
        try:
            with running.scope:
                payload = await self._outcome(running)
            if payload is None:
                payload = bytes_from_error(request.id, cancelled("withdrawn"))
            await self._outbox.wait_until_free()
        finally:
            # Cancelled from above, the connection is closing: that is an answer too.
            self._finish(running, payload or bytes_from_error(request.id, cancelled("closing")))

    async def _outcome(self, running: _Running) -> bytes:
        request = running.request
        try:
            payload = bytes_from_result(request.id, await running.awaitable)
        except Exception as failure:
            payload = self._payload_of(failure, request)
        return self._bounded(payload, request.id)

    def _finish(self, running: _Running, payload: bytes) -> None:
        del self._running[running.key]
        running.reply(payload)
        self._tell_quiet()

    def _payload_of(self, failure: Exception, request: Request) -> bytes:
        if isinstance(failure, RpcError):
            try:
                return bytes_from_error(request.id, failure)
            except Exception as mistake:
                failure = mistake
        return bytes_from_error(request.id, internal(_told_incident(request.method, failure)))

    def _bounded(self, payload: bytes, name: Id) -> bytes:
        limit = self.outbound_limit_bytes
        return payload if len(payload) <= limit else too_large(name, len(payload), limit)

    def _heed(self, notification: Notification) -> None:
        if notification.method == "$/cancelRequest":
            self._withdraw(notification)
        elif self._on_notification:
            try:
                self._on_notification(notification)
            except Exception as failure:
                _told_incident(notification.method, failure)

    def _withdraw(self, notification: Notification) -> None:
        try:
            name = _decode_withdrawn(notification.params).id
        except msgspec.DecodeError:
            _log.warning("$/cancelRequest names no id")
            return
        # It may have been answered meanwhile.
        if running := self._running.get(name):
            running.scope.cancel()

    def _put(self, payload: bytes) -> None:
        self._outbox.put(frame(payload, self._decoder.framing or Framing.LINES))

    def _put_own(self, payload: bytes) -> None:
        limit = self.outbound_limit_bytes
        if len(payload) > limit:
            raise overfull("message_too_large", sizeBytes=len(payload), limitBytes=limit)
        self._put(payload)

    def _tell_quiet(self) -> None:
        if not self._running and not self._unread:
            self._is_quiet.set()


class _Withdrawn(msgspec.Struct):
    id: str | int | float


class _ProgressValue(msgspec.Struct, omit_defaults=True):
    kind: str
    message: str | None = None
    fraction: float | None = None


class _Progress(msgspec.Struct):
    token: str | int
    value: _ProgressValue


_decode_withdrawn = msgspec.json.Decoder(_Withdrawn).decode


def _abandon(awaitable: Awaitable[Any]) -> None:
    """Let go of what will not be awaited: a coroutine is closed, a future cancelled."""
    let_go = getattr(awaitable, "close", None) or getattr(awaitable, "cancel", None)
    if let_go:
        let_go()


def _told_incident(method: str, failure: Exception) -> str:
    """Log a mistake of ours and return the id it was logged under."""
    incident = os.urandom(4).hex()
    _log.error("incident %s in %.100r", incident, method, exc_info=failure)
    return incident
