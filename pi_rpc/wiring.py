"""Builds the parts and joins them; the only file that may know all."""

import os
import random
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
from anyio import to_thread

from pi_rpc import __version__
from pi_rpc.config import Settings
from pi_rpc.core.ports.clock import Clock, Ids
from pi_rpc.extensions.loading import load
from pi_rpc.providers.choose import choose_models
from pi_rpc.session.host import Host
from pi_rpc.session.surroundings import Surroundings
from pi_rpc.store.choose import open_preferences, open_store
from pi_rpc.tools.choose import KNOWN, ignoring_by_git, left_running, tool_set, user_shell
from pi_rpc.workspace.choose import choose_workspaces, open_instructions, open_worktrees


class SystemClock:
    """Unix time that never goes back within the process, whatever the wall clock does."""

    def __init__(self) -> None:
        self._last_ms = 0

    def now_ms(self) -> int:
        """Milliseconds."""
        self._last_ms = max(self._last_ms, time.time_ns() // 1_000_000)
        return self._last_ms


class SystemChance:
    """Chance out of the system's generator."""

    def fraction(self) -> float:
        """At least 0, below 1."""
        return random.random()


class SystemIds:
    """Names out of chance and time."""

    def __init__(self) -> None:
        self._last = 0

    def entry_id(self) -> str:
        """Eight hexadecimal characters."""
        return os.urandom(4).hex()

    def unique_id(self) -> str:
        """A UUID, version 7 (RFC 9562): later ones sort after earlier ones of this process."""
        stamp = (time.time_ns() // 1_000_000) << 16 | int.from_bytes(os.urandom(2)) >> 4 << 4
        # Forty-eight bits of time, then twelve that count on within one millisecond.
        self._last = max(self._last + 16, stamp)
        high = (self._last >> 16 << 16) | 0x7000 | (self._last >> 4 & 0xFFF)
        low = 1 << 63 | int.from_bytes(os.urandom(8)) >> 2
        return str(uuid.UUID(int=high << 64 | low))


async def trim_memory() -> None:
    """Give memory that is free back to the system, where the C library can."""
    import ctypes  # noqa: PLC0415  (not needed before the first session is unloaded)

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        await to_thread.run_sync(trim, 0)


@asynccontextmanager
async def running_host(
    settings: Settings, clock: Clock | None = None, ids: Ids | None = None
) -> AsyncIterator[Host]:
    """A host with everything it needs; on exit its sessions are closed.

    Time and names are the system's unless others are given.
    """
    ids = ids or SystemIds()
    store = open_store(
        settings.sessions_root,
        ids,
        flat=settings.session_dir,
        syncs=settings.durability != "off",
        cache=settings.agent_dir / "pi-rpc" / "catalog.sqlite",
    )
    # For the library that speaks HTTP, and for commands, as a user's own variables would be.
    os.environ.update(settings.proxy_variables)
    models = choose_models(
        settings.script_file, os.environ, settings.agent_dir, settings.default_model
    )
    async with anyio.create_task_group() as left_behind, anyio.create_task_group() as tasks:
        around = Surroundings(
            clock=clock or SystemClock(),
            ids=ids,
            models=models,
            tools=tool_set(KNOWN),
            spill_root=settings.agent_dir / "pi-rpc" / "spill",
            left_behind=left_behind,
            grace_s=settings.grace_s,
            compaction=settings.compaction,
            sync_each_entry=settings.durability == "entry",
            retry=settings.retry,
            queue_modes=settings.queue_modes,
            chance=SystemChance(),
            shell=user_shell(),
            workspaces=choose_workspaces(
                settings.versions,
                settings.agent_dir / "pi-rpc" / "workspaces",
                left_behind,
                settings.version_limits,
                ignoring_by_git,
            ),
            find_running=left_running,
            worktrees=open_worktrees(settings.agent_dir / "pi-rpc" / "worktrees"),
            require_acknowledge=settings.require_acknowledge,
            tells_drift=settings.tell_drift,
            unloading=settings.unloading,
            trim=trim_memory,
            preferences=open_preferences(settings.agent_dir, settings.home, settings.project_trust),
            instructions=open_instructions(settings.agent_dir, settings.home),
        )
        host = Host(store, around, tasks, __version__)
        tasks.start_soon(host.unloading.watch)
        load(settings.extensions, host, grants=settings.extension_grants)
        try:
            yield host
        finally:
            with anyio.CancelScope(shield=True):
                await host.close_all()
                await models.close()
            left_behind.cancel_scope.cancel()
            tasks.cancel_scope.cancel()
