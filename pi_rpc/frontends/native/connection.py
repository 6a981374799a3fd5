"""One client's connection.

What it said of itself, what it listens to, and the way to tell it things.
"""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from pi_rpc.core.events import Diagnostic, Environment
from pi_rpc.core.messages import JsonObject
from pi_rpc.frontends.native.arrivals import Arrivals
from pi_rpc.frontends.native.handshake import outbound_limit_bytes
from pi_rpc.frontends.native.serving import Serving
from pi_rpc.frontends.native.shapes import NAME_CHARS_SHOWN_MAX, ModelRef, QueueItem, Queues
from pi_rpc.frontends.native.subscriptions import Outlet, Subscriptions
from pi_rpc.session.host import Host
from pi_rpc.session.navigating import visible_leaf_id
from pi_rpc.session.queues import Queued
from pi_rpc.session.session import Session

STATES_KEPT_MAX = 256
"""How many encoded session states are kept for clients that ask again and again."""

StateKey = tuple[int, bool, str | None, Environment | None]


class ClientOutlet(Outlet, Protocol):
    """Where messages to the client go, requests and answers too."""

    outbound_limit_bytes: int

    @property
    def has_room(self) -> bool:
        """Whether one more request may wait for its handler."""
        ...

    async def request(
        self, method: str, params: Any = None, timeout_s: float | None = None
    ) -> msgspec.Raw:
        """Ask the client and wait for its result."""
        ...


class Capabilities(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a client can do and wants."""

    experimental: bool = False
    ui: list[str] = []
    """Dialogs it can show: select, confirm, input, editor. Others are never asked for."""
    opt_out: list[str] = []
    """Exact names of notifications it does not want."""
    max_message_bytes: int | None = None
    """The longest message it reads."""
    permissions: bool = False
    """Whether it answers `permission/request`; without it nobody is asked."""


class WireLimits(msgspec.Struct, frozen=True, rename="camel"):
    """Limits of a connection; beyond them a coded error is answered."""

    inbound_bytes: int
    outbound_bytes: int
    nesting: int
    batch: int
    in_flight: int
    """Requests that may wait for their handlers at once."""


class Connection:
    """The state of one client."""

    def __init__(
        self,
        host: Host,
        outlet: ClientOutlet,
        limits: WireLimits,
        diagnostics: list[Diagnostic],
        leave: Callable[[], None],
    ) -> None:
        self.host = host
        self.outlet = outlet
        self.limits = limits
        self.diagnostics = diagnostics
        self.leave = leave
        """Called once when the client asked for the end."""
        self.capabilities = Capabilities()
        self.initialized = False
        self.shutting_down = False
        self.subscriptions = Subscriptions(host, outlet)
        self.serving = Serving(host, outlet)
        self.arrivals = Arrivals()
        self._states: dict[str, tuple[StateKey, msgspec.Raw]] = {}

    def accept(self, capabilities: Capabilities) -> None:
        """Take in what the client said of itself."""
        self.initialized = True
        self.capabilities = capabilities
        self.subscriptions.opt_out = frozenset(capabilities.opt_out)
        self.serving.serves_permissions = capabilities.permissions
        self.serving.dialogs = frozenset(capabilities.ui)
        self.outlet.outbound_limit_bytes = outbound_limit_bytes(
            capabilities.max_message_bytes, self.outlet.outbound_limit_bytes
        )

    def hear(self, session: Session, follow: bool = True) -> str:
        """Subscribe this client to a runtime it made or opened, unless it already hears it."""
        existing = self.subscriptions.existing(session.hub)
        return existing or self.subscriptions.add(session.hub, follow, since=0)

    def kept_state(self, session: Session) -> msgspec.Raw | None:
        """The encoded state of a session, if nothing has changed since it was kept."""
        key, encoded = self._states.get(session.runtime_id, (None, None))
        return encoded if key == self._state_key(session) else None

    def keep_state(self, session: Session, encoded: msgspec.Raw) -> None:
        """Keep an encoded state for the next time it is asked for."""
        if len(self._states) >= STATES_KEPT_MAX:
            self._states.clear()
        self._states[session.runtime_id] = (self._state_key(session), encoded)

    def _state_key(self, session: Session) -> StateKey:
        # Whatever changes a session is told by an event, so an unchanged number is an unchanged
        # state; a run alone is admitted a moment before it is told, and the files may be found
        # otherwise than before by merely looking.
        return (
            session.hub.seq,
            session.run is not None,
            self.subscriptions.existing(session.hub),
            session.standing.checked,
        )

    def state_fields(self, session: Session, subscription_id: str | None = None) -> JsonObject:
        """The fields of a session state, by their names in code."""
        stored = session.stored
        return {
            "session_id": session.session_id,
            "runtime_id": session.runtime_id,
            "seq": session.hub.seq,
            "subscription_id": subscription_id,
            "path": None if stored.path is None else str(stored.path),
            "cwd": str(session.cwd),
            "name": shown_name(session.tree.name()),
            "mode": "own" if stored.writable else "read",
            "leaf_id": session.leaf_id,
            "visible_leaf_id": visible_leaf_id(session),
            "entry_count": len(session.tree),
            "model": None if session.chosen.model is None else ModelRef(*session.chosen.model),
            "thinking_level": session.chosen.thinking_level,
            "running": session.run is not None,
            "run_id": None if session.run is None else session.run.run_id,
            "compacting": session.is_compacting,
            "queue": queues_shape(self, session),
            "interrupted": [call.id for call in session.interrupted],
            "environment": session.environment,
            "parent_session": session.header.parent_session,
        }


def shown_name(name: str | None) -> str | None:
    """A name or label as far as it is shown."""
    return None if name is None else name[:NAME_CHARS_SHOWN_MAX]


def queues_shape(connection: Connection, session: Session) -> Queues:
    """Both queues as clients see them."""
    return queues_of(connection, session, session.queues.steering, session.queues.follow_up)


def queues_of(
    connection: Connection, session: Session, steering: list[Queued], follow_up: list[Queued]
) -> Queues:
    """Messages that wait or have waited, with the modes of their queues."""
    count = max(len(steering) + len(follow_up), 1)
    # Escaped, a character takes up to six bytes; half is left for everything else.
    chars_max = connection.outlet.outbound_limit_bytes // 12 // count

    def shown(item: Queued) -> QueueItem:
        return QueueItem(
            id=item.id, text=item.text[:chars_max], truncated=len(item.text) > chars_max
        )

    return Queues(
        steering=list(map(shown, steering)),
        follow_up=list(map(shown, follow_up)),
        steering_mode=session.chosen.queue_modes.steering,
        follow_up_mode=session.chosen.queue_modes.follow_up,
    )
