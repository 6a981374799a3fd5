"""A client of one daemon: calls, notifications, and answers to what the daemon asks.

Promises
- Every call ends once: with a result, a PiRpcError, or DaemonEndedError when the daemon dies.
- A cancelled call is withdrawn with `$/cancelRequest`; its late answer is dropped.
- Whoever waits for a run to settle hears of it, whether it settles before, while or after asking.
- Listeners may remove themselves or each other while they are called.
"""

import json
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from os import PathLike
from typing import Any, Self, cast

import anyio
import anyio.abc
import msgspec
from anyio.streams.memory import MemoryObjectSendStream

from pi_rpc_client.errors import DaemonEndedError, NotificationsLostError, PiRpcError
from pi_rpc_client.process import DaemonProcess, plain_task_group, running_daemon
from pi_rpc_client.types import Calls, Capabilities, InitializeResult, Notification

log = logging.getLogger(__name__)

Listener = Callable[[Notification], None]
Handler = Callable[[dict[str, Any]], Awaitable[Any]]
"""Answers a request of the daemon with a result; may raise PiRpcError."""

PROTOCOL_VERSION = 1
NOTIFICATIONS_WAITING_MAX = 10_000
"""Notifications one stream holds for a slow reader before it is given up."""
SETTLED_KEPT_MAX = 1000
"""Outcomes kept for whoever asks late."""

_METHOD_NOT_FOUND, _INTERNAL, _CANCELLED = -32601, -32603, -32800


class _Pending:
    """A call that waits for its answer."""

    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.result: Any = None
        self.error: PiRpcError | DaemonEndedError | None = None

    def fail(self, error: PiRpcError | DaemonEndedError) -> None:
        self.error = error
        self.answered.set()


class PiRpcClient(Calls):
    """One daemon and the talk with it. Made by `PiRpcClient.spawn`."""

    def __init__(self, daemon: DaemonProcess, tasks: anyio.abc.TaskGroup) -> None:
        self.daemon = daemon
        self.server: InitializeResult
        """What the daemon said of itself in the handshake."""
        self._tasks = tasks
        self._count = 0
        self._pending: dict[int, _Pending] = {}
        self._ended: DaemonEndedError | None = None
        self._listeners: tuple[Listener, ...] = ()
        self._streams: list[MemoryObjectSendStream[Notification]] = []
        self._handlers: dict[str, Handler] = {}
        self._answering: dict[str, anyio.CancelScope] = {}
        self._settled: OrderedDict[tuple[str, str], str] = OrderedDict()

    @classmethod
    @asynccontextmanager
    async def spawn(
        cls,
        command: Sequence[str] = ("pi-rpc",),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        name: str = "pi-rpc-client",
        capabilities: Capabilities | None = None,
        patience_s: float = 10,
    ) -> AsyncIterator[Self]:
        """Start a daemon, make the handshake, and end the daemon when the context is left.

        `env` is added to this process's environment; `patience_s` is how long each step of the end
        may take before a harder one.
        """
        async with (
            running_daemon(command, env, cwd, patience_s) as daemon,
            plain_task_group() as tasks,
        ):
            client = cls(daemon, tasks)
            tasks.start_soon(client._read)
            try:
                client.server = await client.call(
                    "initialize",
                    {
                        "protocolVersion": PROTOCOL_VERSION,
                        "clientInfo": {"name": name},
                        "capabilities": capabilities or {},
                    },
                )
                yield client
            finally:
                with anyio.CancelScope(shield=True):
                    await client.close(patience_s)
                    tasks.cancel_scope.cancel()

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Call any method, known to the types or not. Raises PiRpcError, DaemonEndedError."""
        if self._ended is not None:
            raise self._ended
        self._count += 1
        name = self._count
        pending = self._pending[name] = _Pending()
        try:
            await self._send({"id": name, "method": method, "params": params or {}})
            await pending.answered.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(1, shield=True):
                await self.notify("$/cancelRequest", {"id": name})
            raise
        finally:
            del self._pending[name]
        if pending.error is not None:
            raise pending.error
        return pending.result

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification; a daemon that is gone does not hear it."""
        if self._ended is None:
            await self._send({"method": method, "params": params or {}})

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every notification, at once; the function returned ends that."""
        self._listeners = (*self._listeners, listener)

        def remove() -> None:
            # A new tuple each time: whoever is going through the old one goes on undisturbed.
            self._listeners = tuple(one for one in self._listeners if one is not listener)

        return remove

    @asynccontextmanager
    async def notifications(
        self, *methods: str, session_id: str | None = None
    ) -> AsyncIterator[AsyncIterator[Notification]]:
        """A stream of notifications from now on, of these methods if any are named.

        It ends with the daemon, and with NotificationsLostError when too many wait to be read.
        """
        send, receive = anyio.create_memory_object_stream[Notification](NOTIFICATIONS_WAITING_MAX)
        lost = False

        def take(notification: Notification) -> None:
            nonlocal lost
            if methods and notification["method"] not in methods:
                return
            if session_id not in (None, notification["params"].get("sessionId")):
                return
            try:
                send.send_nowait(notification)
            except anyio.WouldBlock:
                lost = True
                send.close()
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                remove()

        async def stream() -> AsyncIterator[Notification]:
            async for notification in receive:
                yield notification
            if lost:
                raise NotificationsLostError(f"more than {NOTIFICATIONS_WAITING_MAX} waited")

        remove = self.listen(take)
        self._streams.append(send)
        try:
            yield stream()
        finally:
            remove()
            self._streams.remove(send)
            send.close()
            receive.close()

    def serve(self, method: str, handler: Handler) -> None:
        """Answer requests of the daemon for this method; the last handler given counts."""
        self._handlers[method] = handler

    async def wait_until_settled(self, session_id: str, run_id: str) -> str:
        """The outcome of a run: done, aborted, failed or truncated.

        It is answered for a run that settled earlier too, as long as this client heard of it.
        Raises PiRpcError, DaemonEndedError.
        """
        key = (session_id, run_id)
        if key not in self._settled:
            # The event comes before this answer, so that what was heard is known by then.
            try:
                answer = await self.call("agent/wait", {"sessionId": session_id, "runId": run_id})
            except PiRpcError:
                if key not in self._settled:
                    raise
            else:
                return self._settled.get(key) or cast(str, answer["outcome"])
        return self._settled[key]

    async def close(self, patience_s: float = 10) -> int:
        """End the daemon in good order and return its exit status; again does nothing more."""
        if self._ended is None:
            with anyio.move_on_after(patience_s):
                try:
                    await self.call("shutdown")
                    await self.notify("exit")
                except (PiRpcError, DaemonEndedError):
                    log.debug("the daemon ended before it was asked to")
        return await self.daemon.end(patience_s)

    async def _read(self) -> None:
        try:
            async for line in self.daemon.lines():
                await self._take(_decoded(line))
        except ValueError:
            log.exception("the daemon writes what is no protocol, and is ended")
            self.daemon.kill()
        with anyio.move_on_after(5):
            await self.daemon.wait()
        self._ended = DaemonEndedError(self.daemon.status, self.daemon.stderr)
        for pending in self._pending.values():
            pending.fail(self._ended)
        for stream in self._streams:
            stream.close()

    async def _take(self, message: Any) -> None:
        if not isinstance(message, dict):
            raise ValueError("a message is an object")
        if "method" not in message:
            self._take_answer(message)
        elif "id" in message:
            await self._take_request(message)
        elif message["method"] == "$/cancelRequest":
            scope = self._answering.get(str(message["params"].get("id")))
            if scope is not None:
                scope.cancel()
        else:
            self._take_notification(cast(Notification, message))

    def _take_answer(self, message: dict[str, Any]) -> None:
        pending = self._pending.get(message.get("id", 0))
        if pending is None:
            return
        error = message.get("error")
        if error is None:
            pending.result = message.get("result")
            pending.answered.set()
        else:
            pending.fail(PiRpcError(error["code"], error["message"], error.get("data") or {}))

    def _take_notification(self, notification: Notification) -> None:
        if notification["method"] == "agent/settled":
            told = notification["params"]
            self._settled[told["sessionId"], told["runId"]] = told["outcome"]
            if len(self._settled) > SETTLED_KEPT_MAX:
                self._settled.popitem(last=False)
        for listener in self._listeners:
            try:
                listener(notification)
            except Exception:
                log.exception("a listener failed at %s", notification["method"])

    async def _take_request(self, message: dict[str, Any]) -> None:
        name, method = message["id"], message["method"]
        handler = self._handlers.get(method)
        if handler is None:
            error = PiRpcError(_METHOD_NOT_FOUND, f"this client does not serve {method}", {})
            await self._send_error(name, error)
            return
        scope = self._answering[str(name)] = anyio.CancelScope()
        self._tasks.start_soon(self._answer, name, handler, message.get("params") or {}, scope)

    async def _answer(
        self, name: Any, handler: Handler, params: dict[str, Any], scope: anyio.CancelScope
    ) -> None:
        error = PiRpcError(_CANCELLED, "withdrawn", {"kind": "cancelled", "reason": "withdrawn"})
        try:
            with scope:
                await self._send({"id": name, "result": await handler(params)})
                return
        except PiRpcError as refusal:
            error = refusal
        except Exception as failure:
            log.exception("the handler of a request of the daemon failed")
            error = PiRpcError(_INTERNAL, f"the client failed: {failure}", {"kind": "internal"})
        finally:
            del self._answering[str(name)]
        await self._send_error(name, error)

    async def _send_error(self, name: Any, error: PiRpcError) -> None:
        told = {"code": error.code, "message": error.message, "data": error.data}
        await self._send({"id": name, "error": told})

    async def _send(self, message: dict[str, Any]) -> None:
        await self.daemon.send(_encoded({"jsonrpc": "2.0", **message}))


def _decoded(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Session files may hold half an emoji, which only the slow way reads.
        return json.loads(line)


def _encoded(message: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        return json.dumps(message).encode("ascii")
