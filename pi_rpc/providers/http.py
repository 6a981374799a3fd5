"""One streamed POST through httpx2; the only file that knows how.

The library is loaded with the first request, in a thread, for it takes its time. Connections are
kept; proxies come from the environment, as the library reads it.

Promises
- What goes wrong outside is raised as FetchError, with a structured error and never with a header.
- Every wait is bounded: to connect, between bytes, and in all. So is what is read of an error.
- An exchange may be left at any point; its connection is then closed or kept, never leaked.
"""

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

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
"""How much of it is told."""

ERROR_BODY_S = 10.0
"""How long the body of a refused request is waited for."""

KEPT_S = 60.0
"""How long an idle connection is kept: about as long as people take between two questions."""


REST_S = 0.05
"""How long the last bytes of an answer are waited for, so that its connection can be kept."""

ENDLESS_MS = 1e12
"""No server means a wait of thirty years."""


class Patience(msgspec.Struct, frozen=True):
    """How long is waited, in seconds."""

    connect_s: float = 20.0
    idle_s: float = 300.0
    """Between two reads; models that think are silent for long."""
    total_s: float = 3600.0
    begin_s: float = 300.0
    """For the answer to begin, the connection included."""


class FetchError(Exception):
    """A request failed, before or while its answer came.

    `advised`: whether the server says to ask again; None when it says nothing of it.
    """

    def __init__(self, error: ReplyError, advised: bool | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.advised = advised


class Http:
    """A client for any number of exchanges at once."""

    def __init__(self, patience: Patience | None = None) -> None:
        self.patience = patience
        """That of requests which bring none of their own; None for the usual."""
        self._client: httpx2.AsyncClient | None = None
        self._loading: anyio.Lock | None = None

    async def open(
        self, url: str, headers: Mapping[str, str], body: bytes, patience: Patience
    ) -> "Exchange":
        """Send a POST and take the head of its answer; close what this gives.

        Raises FetchError, for a refusal by the server too.
        """
        exchange = Exchange(await self._loaded(), self.patience or patience)
        try:
            await exchange.send(url, headers, body)
        except BaseException:
            await exchange.close()
            raise
        return exchange

    async def _loaded(self) -> "httpx2.AsyncClient":
        if self._client is not None:
            return self._client
        # Made here and not at the start: a lock belongs to the loop it is first used in.
        self._loading = self._loading or anyio.Lock()
        async with self._loading:
            if self._client is None:
                try:
                    self._client = await anyio.to_thread.run_sync(_client)
                except ImportError:
                    told = "Models on the net need the package httpx2, which is not installed."
                    raise FetchError(ReplyError("invalid_request", told)) from None
            return self._client

    async def close(self) -> None:
        """Close every connection that is kept."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _library() -> Any:
    import httpx2  # noqa: PLC0415

    return httpx2


@lru_cache(maxsize=64)
def _parsed(url: str) -> "httpx2.URL":
    # A loop asks at one address time and again.
    parsed: httpx2.URL = _library().URL(url)
    return parsed


def _client() -> "httpx2.AsyncClient":
    library = _library()
    client: httpx2.AsyncClient = library.AsyncClient(
        limits=library.Limits(
            max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEPT_S
        ),
    )
    return client


class Exchange:
    """One POST and its answer, read as it comes."""

    def __init__(self, client: "httpx2.AsyncClient", patience: Patience) -> None:
        self._client = client
        self._patience = patience
        self._until = anyio.current_time() + patience.total_s
        self._response: httpx2.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """Send it and take the head of the answer. Raises FetchError."""
        plain = {"accept": "text/event-stream", "accept-encoding": "identity"}
        plain["content-type"] = "application/json"
        patience = self._patience
        with self._outside(patience.begin_s):
            # All but connecting is bounded here, where the limits are the request's own.
            waits = _library().Timeout(None, connect=patience.connect_s)
            asked = self._client.build_request(
                "POST", _parsed(url), headers=plain | dict(headers), content=body, timeout=waits
            )
            self._response = await self._client.send(asked, stream=True)
            # An answer that is compressed against our wish is still read.
            is_coded = "content-encoding" in self._response.headers
            self._chunks = self._response.aiter_bytes() if is_coded else self._response.aiter_raw()
        if not self._response.is_success:
            advised = _advice(self._response.headers)
            raise FetchError(await self._refusal(self._response), advised)

    @property
    def content_type(self) -> str:
        """What the server says the answer is."""
        return "" if self._response is None else self._response.headers.get("content-type", "")

    async def read(self) -> bytes:
        """The bytes that came since the last read; none at the end. Raises FetchError."""
        chunks = self._chunks
        if chunks is None:
            return b""
        with self._outside(self._patience.idle_s):
            read = b""
            async for read in chunks:
                if read:
                    break
        return read

    async def read_rest(self) -> None:
        """Take what follows an answer that is whole: little, if the server knows how to end."""
        with anyio.move_on_after(REST_S):
            try:
                while await self.read():
                    pass
            except FetchError:
                # The answer is whole; a connection that broke after it is just not kept.
                pass

    async def close(self) -> None:
        """Let go of the connection; calling it again does nothing."""
        response, self._response = self._response, None
        if response is not None:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _refusal(self, response: "httpx2.Response") -> ReplyError:
        """The error a server gave instead of an answer; a body that does not come is none."""
        body = b""
        with anyio.move_on_after(ERROR_BODY_S):
            try:
                while len(body) < ERROR_BODY_BYTES and (read := await self.read()):
                    body += read
            except FetchError:
                # The status says what there is to say.
                pass
        headers = response.headers
        return refusal(response.status_code, headers, body[:ERROR_BODY_BYTES], time.time())

    @contextmanager
    def _outside(self, wait_s: float) -> Iterator[None]:
        """Bounds what is done outside, and gives its failures our form."""
        library = _library()
        left_s = max(self._until - anyio.current_time(), 0)
        try:
            with anyio.fail_after(min(wait_s, left_s)):
                yield
        except TimeoutError:
            told = f"The provider said nothing for {wait_s:g} s."
            if left_s < wait_s:
                told = f"The reply was not complete within {self._patience.total_s:g} s."
            raise FetchError(ReplyError("timeout", told)) from None
        except library.ConnectTimeout:
            told = f"No connection within {self._patience.connect_s:g} s."
            raise FetchError(ReplyError("network", told)) from None
        except (library.LocalProtocolError, library.InvalidURL, UnicodeError):
            # Their words quote what could not be sent, which may be a key.
            told = "The request cannot be sent: its address or a header is not well formed."
            raise FetchError(ReplyError("invalid_request", told)) from None
        except library.UnsupportedProtocol as problem:
            raise FetchError(ReplyError("invalid_request", str(problem))) from None
        except (library.HTTPError, library.StreamError, OSError) as problem:
            kind = "network" if self._response is None else "cut"
            raise FetchError(ReplyError(kind, _told(problem))) from None


def _advice(headers: Mapping[str, str]) -> bool | None:
    """Whether a server says that asking again helps."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


def _told(problem: BaseException) -> str:
    """What went wrong, and what lay beneath it."""
    deepest = problem
    # A chain of causes is short; the bound only guards against one that bites its tail.
    for _ in range(20):
        below = deepest.__cause__ or deepest.__context__
        if below is None:
            break
        deepest = below
    said = [str(each) or type(each).__name__ for each in (problem, deepest)]
    return f"Connection error: {': '.join(dict.fromkeys(said))}"


def refusal(status: int, headers: Mapping[str, str], body: bytes, now_s: float) -> ReplyError:
    """The structured error of a response that is no success.

    `headers` have lower case names or find them in any; `now_s` is Unix time.
    """
    code, message = _said(body)
    text = body.decode("utf-8", "replace").strip()[:ERROR_TEXT_CHARS]
    kind = kind_of(status, code, message or text)
    told = f"{status}: {message or text}" if message or text else f"HTTP status {status}"
    return ReplyError(kind, told, status, code, retry_after_ms(headers, now_s))


def _said(body: bytes) -> tuple[str | None, str]:
    """Code and message of an error object in any of the forms that APIs and servers use."""
    try:
        told = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return None, ""
    if isinstance(told, list) and told:
        told = told[0]
    if not isinstance(told, dict):
        return None, ""
    error = told.get("error")
    if isinstance(error, str):
        return None, error[:ERROR_TEXT_CHARS]
    fields = error if isinstance(error, dict) else told
    # The most telling first: a code, Google's status, the type.
    names = [fields.get(name) for name in ("code", "status", "type")]
    code = next((name for name in names if isinstance(name, str) and name), None)
    message = fields.get("message") or fields.get("detail")
    return code, message[:ERROR_TEXT_CHARS] if isinstance(message, str) else ""


def retry_after_ms(headers: Mapping[str, str], now_s: float) -> int | None:
    """How long the server asks to wait: milliseconds, seconds or a date; None when it does not."""
    wait_ms: float | None = None
    plain = headers.get("retry-after-ms")
    after = headers.get("retry-after")
    try:
        if plain is not None:
            wait_ms = float(plain)
        elif after is not None and after.strip().replace(".", "", 1).isdigit():
            wait_ms = float(after) * 1000
        elif after is not None:
            wait_ms = (parsedate_to_datetime(after).timestamp() - now_s) * 1000
    except (ValueError, TypeError, OverflowError):
        return None
    # Neither a number that is none nor the end of time is a wait.
    if wait_ms is None or not abs(wait_ms) < ENDLESS_MS:
        return None
    return max(round(wait_ms), 0)
