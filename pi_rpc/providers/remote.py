"""A model that is asked over the net, whatever its API.

Promises
- A reply always ends, and never raises for what the net, the server or the key did.
- All pieces that one read brings go on in one batch.
- No key is in what goes on.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from random import random
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec

from pi_rpc.core.errors import Failure
from pi_rpc.core.messages import Usage
from pi_rpc.core.models import Model, cost_of
from pi_rpc.core.ports.providers import AskingSettings, ModelRequest
from pi_rpc.core.reply import (
    CUT,
    Piece,
    ReplyEnded,
    ReplyError,
    ReplyStarted,
    RequestNote,
    RequestNoted,
)
from pi_rpc.core.retrying import RequestRetries, request_delay_ms
from pi_rpc.providers.asking import Api, Post, Retention, body_bytes
from pi_rpc.providers.http import Exchange, FetchError, Http, Patience
from pi_rpc.providers.reading import Reading
from pi_rpc.providers.secret import Secret, hidden
from pi_rpc.providers.sse import Events, EventTooLongError
from pi_rpc.providers.transcript import Note, noted_kinds, without_images

_Result = TypeVar("_Result")

MESSAGES_AT_ONCE = 512
"""A longer context is put into words in a thread, for that takes more than some milliseconds."""

UNAUTHORIZED = 401
"""The status of a server that does not take the key."""


class Access(msgspec.Struct, frozen=True):
    """What opens the door to a server."""

    key: Secret | None = None
    """None for a server that wants none."""
    headers: dict[str, Secret] = {}
    """The user's own headers; they win over all others."""
    as_bearer: bool = False
    """Whether the key goes in the authorization header, whatever the API is used to."""

    @property
    def secrets(self) -> list[Secret]:
        """Everything that must not be told."""
        return [*([] if self.key is None else [self.key]), *self.headers.values()]


class RemoteProvider:
    """Asks one model. `key_refused` is called when its server does not take the key."""

    def __init__(
        self,
        model: Model,
        api: Api,
        access: Callable[[], Awaitable[Access]],
        http: Http,
        *,
        retention: Retention = "short",
        key_refused: Callable[[], None] = lambda: None,
    ) -> None:
        self._model = model
        self._api = api
        self._access = access
        self._http = http
        self._retention: Retention = retention
        self._key_refused = key_refused

    @property
    def api(self) -> str:
        """The API's name."""
        return self._api.name

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Sequence[Piece], None]:
        """Stream the reply, a batch for each read that brought something."""
        secrets: list[Secret] = []
        opening = _Opening(self._http, request.asking)
        try:
            exchange = await opening.opened(await self._made(request, secrets))
        except FetchError as failed:
            if failed.error.status == UNAUTHORIZED:
                self._key_refused()
            ended = ReplyEnded("error", error=_without(failed.error, secrets))
            yield [*opening.noted(), ended]
            return
        reading = self._api.reading(self._model, request)
        noted = opening.noted()
        try:
            events = Events()
            while not reading.has_ended:
                pieces = await _read(exchange, events, reading)
                if pieces:
                    finished = self._finished(pieces, reading, secrets)
                    yield [*noted, *finished] if noted else finished
                    noted = []
        finally:
            try:
                if reading.has_ended:
                    await exchange.read_rest()
            finally:
                await exchange.close()

    async def _made(self, request: ModelRequest, secrets: list[Secret]) -> "_Made":
        """The request to send. Adds to `secrets` what must not be told. Raises FetchError."""
        model = self._model
        if not request.asking.sends_images:
            shown = without_images(request.messages)
            request = msgspec.structs.replace(request, messages=shown)
        try:
            access = await self._access()
        except Failure as failure:
            raise FetchError(ReplyError("unauthorized", failure.message)) from failure
        secrets += access.secrets
        try:
            post, body = await self._put(request)
        except Failure as failure:
            told = f"The request was not made: {failure.message}"
            raise FetchError(ReplyError("invalid_request", told)) from failure
        except RecursionError:
            told = "The context is nested too deeply to be sent."
            raise FetchError(ReplyError("invalid_request", told)) from None
        headers = dict(post.headers)
        if access.key is not None:
            key = access.key.reveal()
            if access.as_bearer:
                headers["authorization"] = f"Bearer {key}"
            else:
                headers |= self._api.key_headers(key)
        headers |= {name.lower(): value.reveal() for name, value in access.headers.items()}
        return _Made(_address(model.base_url, post.path), headers, body, post.notes)

    async def _put(self, request: ModelRequest) -> tuple[Post, bytes]:
        """The request in the API's words, and its body; one of a long context in a thread."""
        model = self._model
        retention: Retention = "none" if request.is_single else self._retention
        count = len(request.messages)
        request = msgspec.structs.replace(request, messages=list(request.messages))
        post = await _done(count, self._api.post, request, model, retention)
        payload = post.body
        if request.adjust is not None:
            payload = await request.adjust(model.provider, model.id, self.api, payload)
        return post, await _done(count, body_bytes, payload)

    def _finished(
        self, pieces: list[Piece], reading: Reading, secrets: list[Secret]
    ) -> Sequence[Piece]:
        """The pieces with the price of what was used, and without what must not be told."""
        first, last = pieces[0], pieces[-1]
        if isinstance(first, ReplyStarted) and first.usage is not None:
            priced = self._priced(first.usage, reading)
            pieces[0] = msgspec.structs.replace(first, usage=priced)
        if isinstance(last, ReplyEnded):
            error = None if last.error is None else _without(last.error, secrets)
            priced = self._priced(last.usage, reading)
            pieces[-1] = msgspec.structs.replace(last, usage=priced, error=error)
        return pieces

    def _priced(self, usage: Usage, reading: Reading) -> Usage:
        if self._model.prices is None:
            return usage
        cost = cost_of(usage, self._model.prices, reading.price_factor)
        if usage.cost is not None and usage.cost.from_provider:
            cost = msgspec.structs.replace(cost, total=usage.cost.total, from_provider=True)
        return msgspec.structs.replace(usage, cost=cost)


async def _done(count: int, work: Callable[..., _Result], *arguments: object) -> _Result:
    """What such work on so many messages gives; others have their turn beside it if it is long."""
    if count <= MESSAGES_AT_ONCE:
        return work(*arguments)
    return await anyio.to_thread.run_sync(work, *arguments)


class _Made(msgspec.Struct, frozen=True):
    """A request that is ready to be sent."""

    url: str
    headers: dict[str, str]
    body: bytes
    notes: list[Note]


class _Opening:
    """Sends a request, anew where that may help, until its answer begins."""

    def __init__(self, http: Http, asking: AskingSettings) -> None:
        self._http = http
        self._asking = asking
        self._made: _Made | None = None
        self._again = 0

    async def opened(self, made: _Made) -> Exchange:
        """The answer's beginning. Raises FetchError."""
        self._made = made
        asking, retries = self._asking, self._asking.retries
        patience = Patience(begin_s=asking.begin_s, idle_s=asking.idle_s, total_s=asking.total_s)
        while True:
            try:
                return await self._http.open(made.url, made.headers, made.body, patience)
            except FetchError as failed:
                error, following = failed.error, self._again + 1
                wait_ms = request_delay_ms(
                    error, following, random(), retries, advised=failed.advised
                )
                if wait_ms is None:
                    raise FetchError(_with_delay(error, retries)) from failed
            await anyio.sleep(wait_ms / 1000)
            self._again = following

    def noted(self) -> list[Piece]:
        """What is to be known of the request, in a piece; none when there is nothing."""
        notes = [] if self._made is None else noted_kinds(self._made.notes)
        if self._again:
            notes.append(RequestNote("asked_again", self._again))
        return [RequestNoted(tuple(notes))] if notes else []


def _with_delay(error: ReplyError, retries: RequestRetries) -> ReplyError:
    """An error that says why it was not asked again, where a server wants too long a wait."""
    asked_ms, most_ms = error.retry_after_ms, retries.delay_max_ms
    if not retries.retries_max or asked_ms is None or not 0 < most_ms < asked_ms:
        return error
    told = f"the retry delay the server asks for, {asked_ms / 1000:g} s, is more than"
    message = f"{error.message} ({told} the {most_ms / 1000:g} s that are waited)"
    return msgspec.structs.replace(error, message=message)


async def _read(exchange: Exchange, events: Events, reading: Reading) -> list[Piece]:
    """The pieces of the next read; the end of the reply when there is none."""
    try:
        read = await exchange.read()
        if read:
            return reading.pieces_of(events.feed(read))
    except FetchError as failed:
        return reading.broken_off(failed.error)
    except EventTooLongError as problem:
        return reading.broken_off(ReplyError("server", str(problem), code="event_too_long"))
    if events.has_any or "text/event-stream" in exchange.content_type:
        return reading.broken_off()
    kind = exchange.content_type or "nothing said of its type"
    told = f"{CUT} It was no event stream ({kind}); is the base address right?"
    return reading.broken_off(ReplyError("cut", told, code="no_event_stream"))


def _without(error: ReplyError, secrets: list[Secret]) -> ReplyError:
    code = None if error.code is None else hidden(error.code, secrets)
    return msgspec.structs.replace(error, message=hidden(error.message, secrets), code=code)


def _address(base_url: str, path: str) -> str:
    base = base_url.rstrip("/")
    # People give the address of one API with the version and of another without it.
    version = path.split("/", 2)[1]
    if version.startswith("v1") and base.endswith(f"/{version}"):
        base = base.removesuffix(f"/{version}")
    return base + path
