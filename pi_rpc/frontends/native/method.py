"""A row of the method table, and of the notification table."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from pi_rpc.frontends.native.shapes import Params

Handler = Callable[..., Any]
"""Answers a connection's params with a result, or with an awaitable of it. Raises Failure."""


class Method(msgspec.Struct, frozen=True):
    """One method a client may call."""

    name: str
    summary: str
    params: type[Params]
    result: Any
    handler: Handler
    experimental: bool = False
    experimental_fields: tuple[str, ...] = ()
    """Parameters refused without the client's opt-in."""
    before_handshake: bool = False
    metered: bool = False
    """Whether the handler takes a meter as well, and fills it in."""
    brings: Callable[[Any], str | None] | None = None
    """From params the id, or the beginning of one, of the session that will be open afterwards.

    An empty text where any may be; None where nobody can know it yet.
    """

    @property
    def has_experiments(self) -> bool:
        """Whether anything of it wants the client's opt-in."""
        return self.experimental or bool(self.experimental_fields)


class ClientRequest(msgspec.Struct, frozen=True):
    """One request that is put to a client."""

    name: str
    summary: str
    params: Any
    results: tuple[Any, ...]
    """The shapes its result may have; which one, the params say."""
    progress: Any = None
    """The shape of `tool/progress`, where the client may send that meanwhile."""


class NotificationRow(msgspec.Struct, frozen=True):
    """One notification that is sent."""

    name: str
    summary: str
    shape: Any
    sender: Literal["server", "client"] = "server"
