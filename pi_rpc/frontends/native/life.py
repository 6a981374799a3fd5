"""The life of a connection: handshake, what the daemon is about, and the end."""

import os
import time
from collections.abc import Awaitable
from typing import Literal

import msgspec

from pi_rpc.core.errors import Refused
from pi_rpc.core.events import Diagnostic
from pi_rpc.frontends.native.connection import Capabilities, Connection, WireLimits
from pi_rpc.frontends.native.handshake import FRAMINGS, PROTOCOL_VERSION, SERVER_NAME
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import Done, NoParams, Params, Result


class ClientInfo(msgspec.Struct, frozen=True, rename="camel"):
    """Who is asking."""

    name: str
    version: str = ""


class InitializeParams(Params, frozen=True, kw_only=True):
    """The handshake."""

    protocol_version: int
    """The newest version the client speaks."""
    client_info: ClientInfo
    capabilities: Capabilities = Capabilities()


class ServerInfo(msgspec.Struct, frozen=True):
    """Who answers."""

    name: str
    version: str


class ServerCapabilities(msgspec.Struct, frozen=True, rename="camel"):
    """What this daemon offers beside the methods of the version."""

    experimental: bool
    """Whether experimental names are let through for this client."""
    framings: list[str]
    progress: bool
    catch_up: bool


class InitializeResult(Result, frozen=True, kw_only=True):
    """The handshake's answer."""

    protocol_version: int
    server_info: ServerInfo
    capabilities: ServerCapabilities
    limits: WireLimits
    diagnostics: list[Diagnostic]


def initialize(connection: Connection, params: InitializeParams) -> InitializeResult:
    """Make the handshake, once."""
    if connection.initialized:
        raise Refused("already_initialized", "the handshake has been made")
    if params.protocol_version < PROTOCOL_VERSION:
        raise Refused(
            "protocol_version",
            "no common protocol version",
            expected=PROTOCOL_VERSION,
            actual=params.protocol_version,
        )
    connection.accept(params.capabilities)
    limits = connection.limits
    return InitializeResult(
        protocol_version=PROTOCOL_VERSION,
        server_info=ServerInfo(SERVER_NAME, connection.host.version),
        capabilities=ServerCapabilities(
            experimental=params.capabilities.experimental,
            framings=FRAMINGS,
            progress=True,
            catch_up=True,
        ),
        limits=msgspec.structs.replace(
            limits, outbound_bytes=connection.outlet.outbound_limit_bytes
        ),
        diagnostics=connection.diagnostics,
    )


class CancelParams(msgspec.Struct, frozen=True):
    """The request to withdraw."""

    id: str | int | float | None


def shutdown(connection: Connection, params: NoParams) -> Awaitable[Done]:
    """Stop and store every run, close every session; answered when that is done."""
    # At once, so that nothing the client wrote after this is begun any more.
    connection.shutting_down = True
    return _shut_down(connection)


async def _shut_down(connection: Connection) -> Done:
    await connection.host.close_all()
    return Done()


def leave(connection: Connection, params: NoParams) -> Done:
    """End the process, orderly; usually sent as a notification after `shutdown`."""
    connection.leave()
    return Done()


class SessionBrief(Result, frozen=True, kw_only=True):
    """A live session in a list."""

    session_id: str
    runtime_id: str
    running: bool
    mode: Literal["own", "read"]
    loaded: bool
    """Whether its history is in memory; if not, whatever needs it brings it back."""


class DaemonStatus(Result, frozen=True, kw_only=True):
    """What the daemon is doing."""

    version: str
    pid: int
    uptime_s: float
    sessions: list[SessionBrief]
    shutting_down: bool = msgspec.field(default=False)


_STARTED_S = time.monotonic()


def status(connection: Connection, params: NoParams) -> DaemonStatus:
    """What the daemon is doing; answered whatever else goes on."""
    return DaemonStatus(
        version=connection.host.version,
        pid=os.getpid(),
        uptime_s=round(time.monotonic() - _STARTED_S, 3),
        sessions=[
            SessionBrief(
                session_id=session.session_id,
                runtime_id=session.runtime_id,
                running=session.run is not None,
                mode="own" if session.stored.writable else "read",
                loaded=session.is_loaded,
            )
            for session in connection.host.sessions
        ],
        shutting_down=connection.shutting_down,
    )


class Diagnostics(Result, frozen=True, kw_only=True):
    """What was odd since the start."""

    diagnostics: list[Diagnostic]


def diagnostics(connection: Connection, params: NoParams) -> Diagnostics:
    """What was odd at start-up and since."""
    around = connection.host.around
    met = [*connection.diagnostics, *around.diagnostics, *around.models.diagnostics()]
    return Diagnostics(diagnostics=met)


METHODS = (
    Method(
        "initialize",
        "Make the handshake; everything else waits for it.",
        InitializeParams,
        InitializeResult,
        initialize,
        before_handshake=True,
    ),
    Method("shutdown", "Stop, store and close everything.", NoParams, Done, shutdown),
    Method("exit", "End the process.", NoParams, Done, leave, before_handshake=True),
    Method("daemon/status", "What the daemon is doing.", NoParams, DaemonStatus, status),
    Method("daemon/diagnostics", "What was odd.", NoParams, Diagnostics, diagnostics),
)
