"""A client's ears: which runtimes it hears, and what becomes of that when one is replaced.

Promises
- A client hears each event of a runtime once, whatever number of subscriptions it has there.
- At a swap a subscription that follows hears the new runtime from its first event; any other is
  over.
"""

from typing import Any, Protocol

import msgspec

from pi_rpc.core.codec import encode
from pi_rpc.core.errors import Missing, Overfull
from pi_rpc.core.events import Event, MessageDelta, RuntimeReplaced, SessionClosed
from pi_rpc.frontends.native.notifications import (
    NOTIFICATION_OF,
    MessageDeltaNotification,
)
from pi_rpc.session.host import Host
from pi_rpc.session.hub import Hub
from pi_rpc.wire.errors import RpcError

SUBSCRIPTIONS_MAX = 10_000
"""How many subscriptions one client may have."""

KEPT_BYTES_MAX = 1024
"""How long a field may be that stays in a notification too long for the client."""


class Outlet(Protocol):
    """Where notifications go."""

    @property
    def is_pressed(self) -> bool:
        """Whether the client lags in reading."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be told for now."""
        ...

    async def wait_until_free(self) -> None:
        """Return when there is room again."""
        ...

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification; never waits. Raises RpcError when it is too long for the client."""
        ...


class Subscriptions:
    """All subscriptions of one client; the listener of every runtime it hears."""

    def __init__(self, host: Host, outlet: Outlet) -> None:
        self.opt_out: frozenset[str] = frozenset()
        self._host = host
        self._outlet = outlet
        self._count = 0
        self._follow: dict[str, bool] = {}
        self._hubs: dict[str, Hub] = {}
        self._ids: dict[str, list[str]] = {}

    def add(self, hub: Hub, follow: bool, since: int | None = None) -> str:
        """Hear a runtime, after hearing again what came since a number; the subscription id.

        Raises Overfull `too_many_subscriptions`. What is no longer held is left out; ask the hub
        first.
        """
        if len(self._follow) >= SUBSCRIPTIONS_MAX:
            raise Overfull(
                "too_many_subscriptions", "too many subscriptions", limit=SUBSCRIPTIONS_MAX
            )
        self._count += 1
        subscription_id = f"sub{self._count}"
        self._follow[subscription_id] = follow
        if since is not None:
            for seq, event in hub.since(since) or ():
                self._tell(hub, [subscription_id], seq, event)
        self._bind(subscription_id, hub)
        return subscription_id

    def existing(self, hub: Hub) -> str | None:
        """A subscription this client has to a runtime."""
        ids = self._ids.get(hub.runtime_id)
        return ids[0] if ids else None

    def remove(self, subscription_id: str) -> None:
        """Hear no more under this id. Raises Missing `subscription_not_found`."""
        hub = self._hubs.get(subscription_id)
        if hub is None:
            raise Missing(
                "subscription_not_found",
                "no such subscription",
                subscriptionId=subscription_id,
            )
        self._unbind(subscription_id, hub)
        del self._follow[subscription_id]

    def remove_all(self) -> None:
        """Hear nothing any more: the client is gone."""
        for subscription_id in list(self._hubs):
            self.remove(subscription_id)

    def _bind(self, subscription_id: str, hub: Hub) -> None:
        self._hubs[subscription_id] = hub
        # A new list each time: notifications under way may still hold the old one.
        self._ids[hub.runtime_id] = [*self._ids.get(hub.runtime_id, ()), subscription_id]
        hub.attach(self)

    def _unbind(self, subscription_id: str, hub: Hub) -> None:
        del self._hubs[subscription_id]
        left = [other for other in self._ids[hub.runtime_id] if other != subscription_id]
        if left:
            self._ids[hub.runtime_id] = left
        else:
            del self._ids[hub.runtime_id]
            hub.detach(self)

    @property
    def is_pressed(self) -> bool:
        """Whether small events should be merged."""
        return self._outlet.is_pressed

    @property
    def is_full(self) -> bool:
        """Whether runtimes should wait."""
        return self._outlet.is_full

    async def wait_until_free(self) -> None:
        """Return when runtimes may go on."""
        await self._outlet.wait_until_free()

    def hear(self, hub: Hub, seq: int, event: Event) -> None:
        """Tell the client of an event."""
        ids = self._ids[hub.runtime_id]
        if type(event) is MessageDelta:
            if "message/delta" not in self.opt_out:
                self._send(
                    "message/delta",
                    MessageDeltaNotification(
                        session_id=hub.session_id,
                        runtime_id=hub.runtime_id,
                        seq=seq,
                        subscription_ids=ids,
                        block=event.block,
                        kind=event.kind,
                        text=event.text,
                        call_id=event.call_id,
                        name=event.name,
                    ),
                )
        elif isinstance(event, RuntimeReplaced):
            self._replaced(hub, seq, event)
        else:
            self._tell(hub, ids, seq, event)
            if isinstance(event, SessionClosed):
                for subscription_id in ids:
                    self.remove(subscription_id)

    def _tell(self, hub: Hub, ids: list[str], seq: int, event: Event, **more: Any) -> None:
        method, shape, fields = NOTIFICATION_OF[type(event)]
        if method in self.opt_out:
            return
        self._send(
            method,
            shape(
                session_id=hub.session_id,
                runtime_id=hub.runtime_id,
                seq=seq,
                subscription_ids=ids,
                **fields(event),
                **more,
            ),
        )

    def _send(self, method: str, notice: msgspec.Struct) -> None:
        try:
            self._outlet.notify(method, notice)
        except RpcError:
            self._outlet.notify(method, _without_content(notice))

    def _replaced(self, hub: Hub, seq: int, event: RuntimeReplaced) -> None:
        ids = self._ids[hub.runtime_id]
        for rebound in (True, False):
            told = [name for name in ids if self._follow[name] is rebound]
            if told:
                self._tell(hub, told, seq, event, rebound=rebound)
        new = self._host.session(event.new_session_id)
        for subscription_id in ids:
            if self._follow[subscription_id]:
                self._unbind(subscription_id, hub)
                self._bind(subscription_id, new.hub)
            else:
                self.remove(subscription_id)


def _without_content(notice: msgspec.Struct) -> dict[str, Any]:
    """A notification too long for the client.

    What is short in it stays, its content is to be read by entry.
    """
    fields = msgspec.to_builtins(notice)
    short = {name: value for name, value in fields.items() if len(encode(value)) <= KEPT_BYTES_MAX}
    return short | {"truncated": True}
