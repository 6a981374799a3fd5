"""One streamed POST through httpx2; the only file that knows how.

The library is loaded with the first request, in a thread, for it takes its time. Connections are
kept; proxies come from the environment, as the library reads it.

Promises
- What goes wrong outside is raised as FetchError, with a structured error and never with a key.
- Every wait is bounded: to connect, between bytes, and in all. What is read of an error is bounded.
- An exchange may be left at any point; its connection is then closed or kept, never leaked.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from email.utils import parsedate_to_datetime
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.to_thread
import msgspec

from pi_rpc.core.reply import ReplyError
from pi_rpc.core.retrying import kind_of

if TYPE_CHECKING:
    import httpx2

ERROR_BODY_BYTES = 64 * 1024
"""How much of the body of a refused request is read."""

ERROR_TEXT_CHARS = 4000
"""How much of it is told when it is no error object."""

ERROR_BODY_S = 10.0
"""How long the body of a refused request is waited for."""

KEPT_S = 60.0
"""How long an idle connection is kept: as long as people take between two questions."""


class Patience(msgspec.Struct, frozen=True):
    """How long is waited, in seconds."""

    connect_s: float = 20.0
    idle_s: float = 300.0
    """Between two reads, and for the response to begin; models that think say nothing for long."""
    total_s: float = 3600.0


class FetchError(Exception):
    """A request failed, before or while its answer came."""

    def __init__(self, error: ReplyError) -> None:
        super().__init__(error.message)
        self.error = error


class Http:
    """A client for any number of exchanges at once."""

    def __init__(self, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()
        self._client: httpx2.AsyncClient | None = None
        self._loading = anyio.Lock()

    async def exchange(self, url: str, headers: Mapping[str, str], body: bytes) -> "Exchange":
        """A POST that is not sent yet; enter it."""
        async with self._loading:
            if self._client is None:
                self._client = await anyio.to_thread.run_sync(_client, self._patience)
        return Exchange(self._client, self._patience, url, headers, body)

    async def close(self) -> None:
        """Close every connection that is kept."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _client(patience: Patience) -> "httpx2.AsyncClient":
    library = _library()
    return library.AsyncClient(
        timeout=library.Timeout(
            connect=patience.connect_s, read=patience.idle_s, write=patience.idle_s, pool=None
        ),
        limits=library.Limits(
            max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEPT_S
        ),
    )


def _library() -> Any:
    import httpx2  # noqa: PLC0415 (loaded with the first request)

    return httpx2


class Exchange:
    """One POST and its answer, read as it comes.

    async with exchange:
        while read := await exchange.read():
            ...
    """

    def __init__(
        self,
        client: "httpx2.AsyncClient",
        patience: Patience,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> None:
        self._client = client
        self._patience = patience
        self._until = anyio.current_time() + patience.total_s
        self._asked = (url, headers, body)
        self._response: httpx2.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def open(self) -> None:
        """Send it and take the head of the answer. Raises FetchError, for a refusal too."""
        url, headers, body = self._asked
        plain = {"accept": "text/event-stream", "accept-encoding": "identity"}
        plain["content-type"] = "application/json"

        async def send() -> "httpx2.Response":
            made = self._client.build_request("POST", url, headers=plain | headers, content=body)
            return await self._client.send(made, stream=True)

        response = await self._bounded(send)
        self._response = response
        if response.status_code != 200:
            raise FetchError(await self._refusal(response))
        self._chunks = response.aiter_raw()

    @property
    def content_type(self) -> str:
        """What the server says the answer is."""
        return "" if self._response is None else self._response.headers.get("content-type", "")

    async def read(self) -> bytes:
        """The bytes that came since, at least one; empty at the end. Raises FetchError."""
        chunks = self._chunks
        assert chunks is not None, "an exchange is opened first"

        async def next_chunk() -> bytes:
            return await anext(chunks, b"")

        return await self._bounded(next_chunk)

    async def close(self) -> None:
        """Let go of the connection; calling it again does nothing."""
        response, self._response = self._response, None
        if response is not None:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _bounded[Result](self, act: "Callable[[], Any]") -> Any:
        raise NotImplementedError
