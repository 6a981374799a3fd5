"""A row of the method table, and of the notification table."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.shapes import Params

Handler = Callable[[Connection, Any], Any]
"""Answers params with a result, or with an awaitable of it. Raises Failure."""


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


class NotificationRow(msgspec.Struct, frozen=True):
    """One notification that is sent."""

    name: str
    summary: str
    shape: Any
    sender: Literal["server", "client"] = "server"
