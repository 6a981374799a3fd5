"""A raw client on the far end of a pair, so that tests see exactly what is on the wire."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest

from pi_rpc.wire.framing import FrameDecoder
from pi_rpc.wire.pair import MemoryTransport, joined
from pi_rpc.wire.peer import Peer


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class RawClient:
    """Writes bytes and reads frames; knows JSON and nothing else."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.transport = transport
        self.received: list[Any] = []
        self.is_at_end = anyio.Event()
        self._decoder = FrameDecoder()
        self._came = anyio.Event()
        self._read = 0
        transport.start(self._receive, self.is_at_end.set)

    def send(self, *values: Any) -> None:
        for value in values:
            self.send_bytes(json.dumps(value).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        self.transport.outbox.put(data)

    def ask(self, name: Any, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "id": name, "method": method, "params": params or {}})

    def withdraw(self, name: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": name}})

    def end_input(self) -> None:
        """End what the peer reads; what it writes still arrives."""
        self.transport.outbox.close()

    async def next(self) -> Any:
        """The next frame, decoded."""
        with anyio.fail_after(5):
            while self._read >= len(self.received):
                self._came = anyio.Event()
                await self._came.wait()
        self._read += 1
        return self.received[self._read - 1]

    def _receive(self, data: bytes) -> None:
        for frame in self._decoder.feed(data):
            assert isinstance(frame, bytes)
            self.received.append(json.loads(frame))
        self._came.set()


Connect = Callable[..., AbstractAsyncContextManager[tuple[Peer, RawClient]]]


@pytest.fixture
def connect() -> Connect:
    @asynccontextmanager
    async def connected(
        dispatch: Any, outbox_limit_bytes: int = 4 * 1024 * 1024, **options: Any
    ) -> AsyncIterator[tuple[Peer, RawClient]]:
        near, far = joined(outbox_limit_bytes)
        with anyio.fail_after(5):
            async with Peer(near, dispatch, **options) as peer:
                yield peer, RawClient(far)

    return connected
