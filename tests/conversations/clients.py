"""The two ends of a conversation: a client that looks closely, and a daemon in this process.

Whatever the conversation is about, the client complains when
- an answer or a notification has another shape than the table gives it,
- an answer belongs to no request,
- events of a runtime have gaps, or come after its last one.
"""

import json
from typing import Any

import anyio
import anyio.abc
import msgspec

from pi_rpc.config import Settings
from pi_rpc.frontends.native.server import Server
from pi_rpc.frontends.native.table import METHODS, NOTIFICATIONS, REQUESTS
from pi_rpc.wire.framing import FrameDecoder
from pi_rpc.wire.pair import MemoryTransport, joined
from pi_rpc.wire.peer import Peer
from pi_rpc.wiring import running_host
from tests.conftest import CountedClock, CountedIds

WAIT_S = 5
"""How long anything may take to come back."""


class Client:
    """The far end: what was sent, what came, and what was wrong about it."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.received: list[Any] = []
        self.complaints: list[str] = []
        self.read = 0
        """Messages before this place are over; answers among them may still be expected."""
        self.taken: set[int] = set()
        self.may_miss_events = False
        self._transport = transport
        self._decoder = FrameDecoder()
        self._came = anyio.Event()
        self._methods: dict[str, str] = {}
        self._has_sent_text = False
        self._seqs: dict[str, int] = {}
        self._over: set[str] = set()
        transport.start(self._receive, lambda: None)

    def send(self, messages: list[Any]) -> None:
        """Write all of it at once."""
        data = b""
        for message in messages:
            if isinstance(message, str):
                self._has_sent_text = True
                data += message.encode() + b"\n"
                continue
            for one in message if isinstance(message, list) else [message]:
                self._note(one)
            data += json.dumps(message).encode() + b"\n"
        self._transport.outbox.put(data)

    def _note(self, message: Any) -> None:
        if not isinstance(message, dict):
            return
        message.setdefault("jsonrpc", "2.0")
        method = message.get("method")
        if "id" in message and isinstance(method, str):
            self._methods[json.dumps(message["id"])] = method
        if method == "session/unsubscribe":
            self.may_miss_events = True

    def unanswered(self) -> list[str]:
        """Requests nobody answered, and answers nobody expected."""
        odd = [f"{method} (id {name}) has no answer" for name, method in self._methods.items()]
        return odd + [
            f"not expected: {shown(message)}"
            for place, message in enumerate(self.received)
            if place not in self.taken and not is_notification(message)
        ]

    async def more(self, seen: int) -> None:
        """Return when more than `seen` messages came."""
        while len(self.received) <= seen:
            self._came = anyio.Event()
            await self._came.wait()

    def _receive(self, data: bytes) -> None:
        for frame in self._decoder.feed(data):
            assert isinstance(frame, bytes)
            message = json.loads(frame)
            self.received.append(message)
            for one in message if isinstance(message, list) else [message]:
                self._check(one)
        self._came.set()

    def _check(self, message: dict[str, Any]) -> None:
        method, shape = message.get("method"), None
        told: dict[str, Any] = message.get("params") or message.get("result") or {}
        if method is not None and "id" in message:
            shape = REQUESTS[method].params
        elif method is not None:
            shape = NOTIFICATIONS[method].shape
            if "seq" in told:
                self._check_seq(method, told)
        else:
            asked = self._methods.pop(json.dumps(message["id"]), None)
            if asked is None and not self._has_sent_text:
                self.complaints.append(f"an answer to nothing: {shown(message)}")
            if "result" in message and asked is not None:
                shape = METHODS[asked].result
        if shape is None or told.get("truncated"):
            return
        try:
            msgspec.json.decode(json.dumps(told), type=shape)
        except msgspec.ValidationError as error:
            self.complaints.append(f"of another shape ({error}): {shown(message)}")

    def _check_seq(self, method: str, told: dict[str, Any]) -> None:
        runtime, seq = told["runtimeId"], told["seq"]
        if runtime in self._over and method not in ("runtime/replaced", "session/closed"):
            self.complaints.append(f"{method} after the end of its runtime")
        if seq > self._seqs.get(runtime, seq - 1) + 1 and not self.may_miss_events:
            self.complaints.append(f"{method}: {seq} follows {self._seqs[runtime]}")
        self._seqs[runtime] = max(seq, self._seqs.get(runtime, 0))
        if method in ("runtime/replaced", "session/closed"):
            self._over.add(runtime)


class Daemon:
    """One host with one client, running in a task of its own."""

    def __init__(self, settings: Settings, clock: CountedClock, ids: CountedIds) -> None:
        self.client: Client
        self.stop = anyio.Event()
        self.ended = anyio.Event()
        self._settings = settings
        self._clock = clock
        self._ids = ids

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Serve until asked to stop, or until the client asks for the end."""
        try:
            async with running_host(self._settings, self._clock, self._ids) as host:
                near, far = joined()
                server = Server(host, list(self._settings.diagnostics), self.stop.set)
                async with Peer(near, server.dispatch, on_notification=server.notified) as peer:
                    self.client = Client(far)
                    task_status.started()
                    await self.stop.wait()
                    peer.stop_reading()
                    await host.close_all()
                    await peer.drain(WAIT_S)
        finally:
            self.ended.set()


def is_notification(message: Any) -> bool:
    """Whether a message wants no answer and is none."""
    return isinstance(message, dict) and "method" in message and "id" not in message


def shown(message: Any) -> str:
    """A message as a failure shows it."""
    return json.dumps(message, ensure_ascii=False)[:2000]
