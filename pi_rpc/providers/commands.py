"""Commands that print a key: run once for many askers, bounded, and remembered for a while.

Promises
- A command ends within its bound, with every process it started.
- What it printed is kept in memory only; what it printed to standard error is not read.
"""

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from subprocess import DEVNULL, PIPE

import anyio
import anyio.abc

from pi_rpc.providers.secret import Secret

LIMIT_S = 10.0
KEPT_S = 300.0
"""How long an answer holds: tokens that commands print live for minutes at the least."""

PRINTED_BYTES_MAX = 64 * 1024
"""More than this is no key."""


class Commands:
    """What commands print."""

    def __init__(self, limit_s: float = LIMIT_S, kept_s: float = KEPT_S) -> None:
        self._limit_s = limit_s
        self._kept_s = kept_s
        self._known: dict[str, tuple[float, Secret]] = {}
        self._running: dict[str, anyio.Lock] = {}

    async def printed(self, command: str, environment: Mapping[str, str]) -> Secret | None:
        """The first words of a command, blanks around them left out.

        None when it fails, prints nothing or takes too long. One run answers all who ask meanwhile.
        """
        async with self._running.setdefault(command, anyio.Lock()):
            known = self._known.get(command)
            if known is not None and anyio.current_time() - known[0] < self._kept_s:
                return known[1]
            text = await self._run(command, environment)
            if not text:
                self._known.pop(command, None)
                return None
            secret = Secret(text)
            self._known[command] = (anyio.current_time(), secret)
            return secret

    def forget(self) -> None:
        """Run every command again when it is next asked for."""
        self._known.clear()

    async def _run(self, command: str, environment: Mapping[str, str]) -> str:
        process = await anyio.open_process(
            ["/bin/sh", "-c", command],
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )
        printed = b""
        code: int | None = None
        try:
            with anyio.move_on_after(self._limit_s):
                printed = await _read(process)
                if len(printed) <= PRINTED_BYTES_MAX:
                    code = await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
        return printed.decode("utf-8", "replace").strip() if code == 0 else ""


async def _read(process: anyio.abc.Process) -> bytes:
    assert process.stdout is not None
    printed = b""
    async for chunk in process.stdout:
        printed += chunk
        if len(printed) > PRINTED_BYTES_MAX:
            break
    return printed


async def _end(process: anyio.abc.Process) -> None:
    """Kill what is left of a command and take back its handles."""
    # Refused when everything of it is gone, which is what is wanted.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.aclose()
