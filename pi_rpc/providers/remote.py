"""A model that is asked over the net, whatever its API.

Promises
- A reply always ends, and never raises for what the net, the server or the key did.
- All pieces that one read brings go on in one batch.
- No key is in what goes on.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import msgspec

from pi_rpc.core.errors import Failure
from pi_rpc.core.messages import Usage
from pi_rpc.core.models import Model, cost_of
from pi_rpc.core.ports import ModelRequest
from pi_rpc.core.reply import CUT, Piece, ReplyEnded, ReplyError, ReplyStarted
from pi_rpc.providers.asking import Api, Retention, body_bytes
from pi_rpc.providers.http import Exchange, FetchError, Http
from pi_rpc.providers.reading import Reading
from pi_rpc.providers.secret import Secret, hidden
from pi_rpc.providers.sse import Events, EventTooLongError

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
        try:
            exchange = await self._opened(request, secrets)
        except FetchError as failed:
            if failed.error.status == UNAUTHORIZED:
                self._key_refused()
            yield [ReplyEnded("error", error=_without(failed.error, secrets))]
            return
        reading = self._api.reading(self._model, request)
        try:
            events = Events()
            while not reading.has_ended:
                pieces = await _read(exchange, events, reading)
                if pieces:
                    yield self._finished(pieces, reading, secrets)
        finally:
            try:
                if reading.has_ended:
                    await exchange.read_rest()
            finally:
                await exchange.close()

    async def _opened(self, request: ModelRequest, secrets: list[Secret]) -> Exchange:
        """The answer's beginning. Adds to `secrets` what must not be told. Raises FetchError."""
        model = self._model
        try:
            access = await self._access()
        except Failure as failure:
            raise FetchError(ReplyError("unauthorized", failure.message)) from failure
        secrets += access.secrets
        try:
            post = self._api.post(request, model, self._retention)
            body = body_bytes(post.body)
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
        return await self._http.open(_address(model.base_url, post.path), headers, body)

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
    return msgspec.structs.replace(error, message=hidden(error.message, secrets))


def _address(base_url: str, path: str) -> str:
    base = base_url.rstrip("/")
    # People give the address of one API with the version and of another without it.
    version = path.split("/", 2)[1]
    if version.startswith("v1") and base.endswith(f"/{version}"):
        base = base.removesuffix(f"/{version}")
    return base + path
