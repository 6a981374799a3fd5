"""One daemon from its first byte to its last: signals, the connection, the orderly end."""

import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

import anyio
import anyio.abc

from pi_rpc.config import Durability, Settings, settings_from
from pi_rpc.core.errors import Failure
from pi_rpc.frontends.native import handshake
from pi_rpc.frontends.native.server import Server
from pi_rpc.known_settings import remember_sound
from pi_rpc.wire.descriptors import StdioDescriptors
from pi_rpc.wire.framing import FrameDecoder
from pi_rpc.wire.limits import Limits
from pi_rpc.wire.peer import Peer
from pi_rpc.wire.stdio import StdioTransport
from pi_rpc.wiring import running_host

LIMITS = Limits(
    inbound_bytes=handshake.LIMIT_BYTES,
    outbound_bytes=handshake.LIMIT_BYTES,
    nesting=handshake.NESTING,
    batch=handshake.BATCH,
    in_flight=handshake.IN_FLIGHT,
)
"""What one client may cost; the handshake names them."""

EXIT_DONE = 0
EXIT_BAD_START = 2
"""The daemon could not start as it was asked to; stderr says why."""
EXIT_WORK_ABORTED = 3
"""The input ended while runs were live: they were stopped and stored, not finished."""
EXIT_OUTPUT_GONE = 4
"""The client stopped reading for good."""
EXIT_SIGNAL = 128
"""Plus the signal's number, as shells have it."""


class Beginning(NamedTuple):
    """A connection, and what has passed on it before the loop."""

    descriptors: StdioDescriptors
    answered: bytes = b""
    """The line of an `initialize` that was answered already."""
    unread: bytes = b""
    """What came and was not looked at."""


def serve(
    beginning: Beginning,
    environment: Mapping[str, str],
    session_dir: str | None,
    script_file: str | None,
    durability: str | None,
) -> int:
    """Serve the native protocol on these descriptors; the exit status."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    settings = settings_from(
        environment, session_dir, script_file, cast(Durability | None, durability)
    )
    if not settings.diagnostics:
        remember_sound(str(settings.agent_dir))
    try:
        return anyio.run(_serve, beginning, settings)
    except* Failure as failures:
        for failure in leaves(failures):
            print(f"pi-rpc: {failure}", file=sys.stderr)
    return EXIT_BAD_START


async def _serve(beginning: Beginning, settings: Settings) -> int:
    leaving = Leaving()
    async with anyio.create_task_group() as watching, running_host(settings) as host:
        server = Server(host, list(settings.diagnostics), leaving.leave)
        transport = StdioTransport(beginning.descriptors, beginning.unread)
        decoder = FrameDecoder(LIMITS.inbound_bytes)
        decoder.feed(beginning.answered)
        peer = Peer(
            transport,
            server.dispatch,
            limits=LIMITS,
            on_notification=server.notified,
            decoder=decoder,
        )
        if beginning.answered:
            server.resume(peer, beginning.answered)
        async with peer:
            watching.start_soon(_watch_signals, leaving)
            watching.start_soon(_watch_peer, peer, leaving)
            await leaving.event.wait()
            peer.stop_reading()
            server.end()
            status = leaving.status
            if status in (EXIT_DONE, EXIT_OUTPUT_GONE) and any(
                session.run is not None for session in host.sessions
            ):
                status = EXIT_WORK_ABORTED if status == EXIT_DONE else status
            await host.close_all()
            await peer.drain(timeout_s=peer.limits.farewell_s)
        watching.cancel_scope.cancel()
    return status


def leaves(group: BaseExceptionGroup[Failure]) -> Iterator[Failure]:
    """The failures in a group, however deep."""
    for one in group.exceptions:
        if isinstance(one, BaseExceptionGroup):
            yield from leaves(one)
        else:
            yield one


class Leaving:
    """Whether the daemon is to end, and with which exit status."""

    def __init__(self) -> None:
        self.event = anyio.Event()
        self.status = EXIT_DONE

    def leave(self, status: int = EXIT_DONE) -> None:
        """End; the first reason given stays."""
        if not self.event.is_set():
            self.status = status
            self.event.set()


async def _watch_peer(peer: Peer, leaving: Leaving) -> None:
    reason = await peer.wait_until_ended()
    leaving.leave(EXIT_OUTPUT_GONE if reason == "broken" else EXIT_DONE)


async def _watch_signals(leaving: Leaving) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP, signal.SIGINT) as received:
        async for number in received:
            if leaving.event.is_set():
                # Asked twice: what is told is stored, so an end at once loses nothing of it.
                os._exit(EXIT_SIGNAL + number)
            leaving.leave(EXIT_SIGNAL + number)
