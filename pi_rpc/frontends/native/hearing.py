"""An open session heard: as it stands, and what is told of it from there on."""

import msgspec

from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.serving import PendingRequest
from pi_rpc.frontends.native.shapes import Done, Params, Result, SessionParams, SessionState


def state(connection: Connection, params: SessionParams) -> msgspec.Raw:
    """An open session as it stands."""
    session = connection.host.session(params.session_id)
    kept = connection.kept_state(session)
    if kept is None:
        subscription_id = connection.subscriptions.existing(session.hub)
        fields = connection.state_fields(session, subscription_id)
        kept = msgspec.Raw(msgspec.json.encode(SessionState(**fields)))
        connection.keep_state(session, kept)
    return kept


class Since(msgspec.Struct, frozen=True, rename="camel"):
    """The last event a client has seen."""

    runtime_id: str
    seq: int


class SessionSubscribeParams(SessionParams, frozen=True, kw_only=True):
    """Hear a session's events."""

    follow: bool = False
    """Whether to hear the runtime that replaces this one."""
    since: Since | None = None


class SessionSubscribeResult(Result, frozen=True, kw_only=True):
    """A subscription, and the state it starts from."""

    subscription_id: str
    runtime_id: str
    seq: int
    gap: bool = False
    """True when events after `since` are gone: read entries from `cursor` on."""
    cursor: str | None = None
    """With a gap: what was missed stands after this entry in session/entries; null: all may be."""
    state: SessionState
    pending: list[PendingRequest]
    """Requests to the client that wait for an answer; each is sent again."""


def subscribe(connection: Connection, params: SessionSubscribeParams) -> SessionSubscribeResult:
    """Hear a session's events from now on, or again from a number on."""
    session = connection.host.session(params.session_id)
    hub, since, gap, row = session.hub, None, False, None
    if params.since is not None:
        # What an earlier runtime told after that number is not held here.
        is_this = params.since.runtime_id == hub.runtime_id
        gap = not is_this or hub.since(params.since.seq) is None
        since = None if gap else params.since.seq
        row = session.last_told(params.since.seq) if gap and is_this else None
    subscription_id = connection.subscriptions.add(hub, params.follow, since)
    return SessionSubscribeResult(
        subscription_id=subscription_id,
        runtime_id=hub.runtime_id,
        seq=hub.seq,
        gap=gap,
        cursor=None if row is None else session.tree.id_or_none(row),
        state=SessionState(**connection.state_fields(session, subscription_id)),
        pending=connection.serving.again(session.session_id),
    )


class SessionUnsubscribeParams(Params, frozen=True, kw_only=True):
    """A subscription to end."""

    subscription_id: str


def unsubscribe(connection: Connection, params: SessionUnsubscribeParams) -> Done:
    """Hear no more under a subscription; no run is stopped by that."""
    connection.subscriptions.remove(params.subscription_id)
    return Done()


METHODS = (
    Method("session/state", "An open session as it stands.", SessionParams, SessionState, state),
    Method(
        "session/subscribe",
        "Hear its events.",
        SessionSubscribeParams,
        SessionSubscribeResult,
        subscribe,
    ),
    Method(
        "session/unsubscribe",
        "Hear its events no more.",
        SessionUnsubscribeParams,
        Done,
        unsubscribe,
    ),
)
