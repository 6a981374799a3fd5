"""One daemon from its first byte to its last: signals, the connection, the orderly end."""

import logging
import os
import signal
import sys
from collections.abc import Mapping
from typing import cast

import anyio
import anyio.abc

from pi_rpc.config import Durability, Settings, settings_from
from pi_rpc.frontends.native.server import Server
from pi_rpc.wire.descriptors import StdioDescriptors
from pi_rpc.wire.peer import Peer
from pi_rpc.wire.stdio import StdioTransport
from pi_rpc.wiring import running_host

EXIT_DONE = 0
EXIT_WORK_ABORTED = 3
"""The input ended while runs were live: they were stopped and stored, not finished."""
EXIT_OUTPUT_GONE = 4
"""The client stopped reading for good."""
EXIT_SIGNAL = 128
"""Plus the signal's number, as shells have it."""


def serve(
    descriptors: StdioDescriptors,
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
    return anyio.run(_serve, descriptors, settings)


async def _serve(descriptors: StdioDescriptors, settings: Settings) -> int:
    leaving = Leaving()
    async with anyio.create_task_group() as watching, running_host(settings) as host:
        server = Server(host, list(settings.diagnostics), leaving.leave)
        transport = StdioTransport(descriptors)
        peer = Peer(transport, server.dispatch, on_notification=server.notified)
        async with peer:
            watching.start_soon(_watch_signals, leaving)
            watching.start_soon(_watch_peer, peer, leaving)
            await leaving.event.wait()
            peer.stop_reading()
            status = leaving.status
            if status in (EXIT_DONE, EXIT_OUTPUT_GONE) and any(
                session.run is not None for session in host.sessions
            ):
                status = EXIT_WORK_ABORTED if status == EXIT_DONE else status
            await host.close_all()
            await peer.drain(timeout_s=peer.limits.farewell_s)
        watching.cancel_scope.cancel()
    return status


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
