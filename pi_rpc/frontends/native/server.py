"""Handshake, decoding by the table, dispatch: requests in, answers out."""

import re
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from inspect import isawaitable
from typing import Any

import msgspec

from pi_rpc.core.errors import Experimental, Failure, Invalid, Stopped
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.meter import Meter
from pi_rpc.frontends.native.connection import Connection, WireLimits
from pi_rpc.frontends.native.errors import not_initialized, rpc_error
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.notifications import ProgressNotification, ProgressValue
from pi_rpc.frontends.native.progress import reported
from pi_rpc.frontends.native.shapes import Params
from pi_rpc.frontends.native.table import METHODS
from pi_rpc.session.host import Host
from pi_rpc.wire.errors import METHOD_NOT_FOUND, RpcError
from pi_rpc.wire.messages import Notification, Request, message_from_bytes
from pi_rpc.wire.peer import Peer

ALWAYS_SERVED = frozenset({"shutdown", "exit", "daemon/status", "daemon/diagnostics"})
"""Methods answered even while the daemon shuts down."""

NAMING = ("session_id", "replaces")
"""Fields of params that name a session which has to be there."""

_PLACE = re.compile(r" - at `\$?\.?(?P<path>[^`]*)`$")
_FIELD = re.compile(r"Object (?:contains unknown|missing required) field `(?P<name>.*)`")


class Server:
    """The native protocol on one connection."""

    def __init__(
        self, host: Host, diagnostics: list[Diagnostic], leave: Callable[[], None]
    ) -> None:
        self._host = host
        self._diagnostics = diagnostics
        self._leave = leave
        self._decoders: dict[str, msgspec.json.Decoder[Params]] = {}
        self.connection: Connection | None = None

    def resume(self, peer: Peer, line: bytes) -> None:
        """Take over a connection whose `initialize`, this line, was answered by `quick_answer`."""
        connection = self._connect(peer)
        request = message_from_bytes(line)
        assert isinstance(request, Request), "only a request was answered"
        method = METHODS[request.method]
        method.handler(connection, self._params(connection, method, request.params))

    def dispatch(self, request: Request, peer: Peer) -> Any:
        """Answer a request. Raises RpcError, at once or when awaited."""
        connection = self.connection or self._connect(peer)
        method = METHODS.get(request.method)
        if not connection.initialized and (method is None or not method.before_handshake):
            raise not_initialized(request.method)
        if method is None:
            raise RpcError(
                METHOD_NOT_FOUND,
                f"no method {request.method!r}",
                {"kind": "missing", "reason": "method_not_found", "method": request.method},
            )
        try:
            _refuse_at_end(connection, method)
            params = self._params(connection, method, request.params)
            meter = Meter() if method.metered else None
            if (
                connection.arrivals.is_anything_expected
                or method.brings is not None
                or connection.host.unloading.is_anything_unloaded
            ):
                answer = _in_turn(connection, method, params, meter)
            else:
                answer = _handled(connection, method, params, meter)
        except Failure as failure:
            raise rpc_error(failure) from failure
        # Asking whether something can be awaited costs more than most answers do.
        if isinstance(answer, msgspec.Struct | msgspec.Raw) or not isawaitable(answer):
            return answer
        if not connection.outlet.has_room and isinstance(answer, Coroutine):
            # Nobody will start it, so it is let go of here and not only what stands around it.
            answer.close()
        return _awaited(connection, method, params, answer, meter)

    def notified(self, notification: Notification) -> None:
        """Take a notification of the client; unknown ones are ignored, as JSON-RPC has it."""
        if notification.method == "exit":
            self._leave()
        elif notification.method == "tool/progress" and self.connection is not None:
            self.connection.serving.progressed(notification.params)

    def end(self) -> None:
        """Begin nothing any more, neither what comes nor what still waits for a session."""
        if self.connection is not None:
            self.connection.shutting_down = True

    def closed(self) -> None:
        """The client is gone."""
        if self.connection is not None:
            self.connection.subscriptions.remove_all()
            self.connection.serving.leave()

    def _connect(self, peer: Peer) -> Connection:
        limits = peer.limits
        self.connection = Connection(
            self._host,
            peer,
            WireLimits(
                inbound_bytes=limits.inbound_bytes,
                outbound_bytes=peer.outbound_limit_bytes,
                nesting=limits.nesting,
                batch=limits.batch,
                in_flight=limits.in_flight,
            ),
            self._diagnostics,
            self._leave,
        )
        return self.connection

    def _params(self, connection: Connection, method: Method, raw: msgspec.Raw) -> Params:
        decoder = self._decoders.get(method.name)
        if decoder is None:
            decoder = self._decoders[method.name] = msgspec.json.Decoder(method.params)
        try:
            params = decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise _bad_params(method, str(error)) from error
        if method.has_experiments and not connection.capabilities.experimental:
            _refuse_experimental(method, params)
        return params


def _bad_params(method: Method, text: str) -> Invalid:
    place = _PLACE.search(text)
    if "got `array`" in text and place is None:
        return Invalid("params_by_name", "params are given by name, in an object")
    problem = text if place is None else text[: place.start()]
    return Invalid(
        "bad_params",
        f"{method.name}: {text}",
        path=_path(place["path"] if place is not None else "", problem),
        problem=problem,
    )


def _path(place: str, problem: str) -> str:
    """Where the mistake is. The decoder names the object around a field that is not as it should be
    there, not the field.
    """
    field = _FIELD.fullmatch(problem)
    return place if field is None else f"{place}.{field['name']}".removeprefix(".")


def _refuse_experimental(method: Method, params: Params) -> None:
    gated = method.name if method.experimental else None
    for name in method.experimental_fields:
        if getattr(params, name) is not None:
            gated = f"{method.name}.{name}"
    if gated is not None:
        raise Experimental("not_opted_in", f"{gated} is experimental", name=gated)


def _refuse_at_end(connection: Connection, method: Method) -> None:
    if connection.shutting_down and method.name not in ALWAYS_SERVED:
        raise Stopped("shutting_down", "the daemon is shutting down")


def _handled(connection: Connection, method: Method, params: Params, meter: Meter | None) -> Any:
    if meter is None:
        return method.handler(connection, params)
    return method.handler(connection, params, meter)


def _named(params: Params) -> list[str]:
    """The sessions that have to be there for a request."""
    return [name for field in NAMING if (name := getattr(params, field, None))]


def _in_turn(connection: Connection, method: Method, params: Params, meter: Meter | None) -> Any:
    """The answer, or an awaitable of it: at once, or after what brings the session it names."""
    arrivals, host = connection.arrivals, connection.host
    named = _named(params)
    earlier = arrivals.before(named, lambda session_id: host.find(session_id) is not None)
    # Without room for one more it will not be awaited, so it must hold no place.
    has_room = connection.outlet.has_room

    def act() -> Any:
        _refuse_at_end(connection, method)
        return _handled(connection, method, params, meter)

    unloading = host.unloading
    if earlier or any(map(unloading.is_unloaded, named)):
        places = arrivals.waiting(named) if has_room else []
        answer = arrivals.after(earlier, places, partial(unloading.load, named), act)
    else:
        answer = act()
    beginning = None if method.brings is None else method.brings(params)
    if beginning is not None and has_room and isawaitable(answer):
        answer = arrivals.brought(arrivals.bringing(beginning), answer)
    return answer


async def _awaited(
    connection: Connection,
    method: Method,
    params: Params,
    answer: Awaitable[Any],
    meter: Meter | None,
) -> Any:
    with connection.host.unloading.holding(_named(params)):
        return await _answered(connection, method, params, answer, meter)


async def _answered(
    connection: Connection,
    method: Method,
    params: Params,
    answer: Awaitable[Any],
    meter: Meter | None,
) -> Any:
    token = params.progress_token
    try:
        if token is None:
            return await answer
        _progress(connection, token, ProgressValue("begin", method.summary))
        try:
            if meter is None:
                return await answer
            return await reported(answer, meter, partial(_progress, connection, token))
        finally:
            _progress(connection, token, ProgressValue("end"))
    except Failure as failure:
        raise rpc_error(failure) from failure


def _progress(connection: Connection, token: str | int, value: ProgressValue) -> None:
    if "$/progress" not in connection.subscriptions.opt_out:
        connection.outlet.notify("$/progress", ProgressNotification(token, value))
