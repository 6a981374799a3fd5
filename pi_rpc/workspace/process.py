"""Run git: bounded, quiet, cancellable, off the loop.

An act is a plain function that runs in a worker thread and starts its processes through the
`Processes` it is given; whoever waits for the act ends them all by giving up.
"""

import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeVar

import anyio
import anyio.to_thread

from pi_rpc.core.errors import Outside, Overfull, Stopped

OUTPUT_BYTES_MAX = 512 * 1024 * 1024
"""The most one process may print; more than the names of a million files."""

TOLD_BYTES_MAX = 2000
"""How much of what a failing process says is passed on."""

THREADS_MAX = 8
"""How many acts on workspaces run at once; further ones wait."""

_Result = TypeVar("_Result")
_limiter: list[anyio.CapacityLimiter] = []


class Started:
    """A process that was started; its output waits in a file, so it never blocks on a reader."""

    def __init__(
        self,
        command: Sequence[str],
        process: subprocess.Popen[bytes],
        streams: Sequence[IO[bytes]],
        output_bytes_max: int,
    ) -> None:
        self._command = command
        self._process = process
        self._out, self._err = streams
        self._output_bytes_max = output_bytes_max

    def wait(self, accepted: Iterable[int] = (0,)) -> bytes:
        """What it printed, once it has ended.

        Raises Outside `git_failed` for another exit status than the accepted ones, Overfull
        `output_too_long`.
        """
        with self.output(accepted) as out:
            return out.read()

    def output(self, accepted: Iterable[int] = (0,)) -> IO[bytes]:
        """As `wait`, but the file its output is in, to be read piece by piece and closed."""
        status = self._process.wait()
        with self._err as err:
            if status not in accepted:
                self._out.close()
                err.seek(0)
                told = err.read(TOLD_BYTES_MAX).decode(errors="replace").strip()
                name = next((word for word in self._command[1:] if word[0] != "-"), "git")
                raise Outside(
                    "git_failed", f"git {name}: {told}", retryable=True, exitStatus=status
                )
        if self._out.seek(0, os.SEEK_END) > self._output_bytes_max:
            self._out.close()
            raise Overfull(
                "output_too_long", "git printed too much", limitBytes=self._output_bytes_max
            )
        self._out.seek(0)
        return self._out

    def status(self) -> int:
        """Its exit status, once it has ended."""
        _close((self._out, self._err))
        return self._process.wait()

    def end(self) -> None:
        """Make it end now, if it has not."""
        with suppress(ProcessLookupError):
            self._process.kill()


class Processes:
    """The processes of one act."""

    def __init__(self, output_bytes_max: int = OUTPUT_BYTES_MAX) -> None:
        self._output_bytes_max = output_bytes_max
        self._lock = threading.Lock()
        self._started: list[Started] = []
        self._ended = False

    def check(self) -> None:
        """Raise Stopped when whoever wanted this act has given it up."""
        if self._ended:
            raise Stopped("given_up", "nobody waits for this any more")

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        cwd: Path,
        given: bytes = b"",
    ) -> Started:
        """Start a command with `given` as its input. Raises Outside `git_failed`, Stopped."""
        streams = (tempfile.TemporaryFile(), tempfile.TemporaryFile())  # noqa: SIM115
        with tempfile.TemporaryFile() as source:
            if given:
                source.write(given)
                source.seek(0)
            # Under the lock a process is either seen by `end_all`, or never started.
            with self._lock:
                try:
                    self.check()
                    process = subprocess.Popen(
                        command,
                        cwd=cwd,
                        env=dict(environment),
                        stdin=source,
                        stdout=streams[0],
                        stderr=streams[1],
                        start_new_session=True,
                    )
                except OSError as error:
                    _close(streams)
                    raise Outside("git_failed", f"git: {error}", retryable=False) from error
                except Stopped:
                    _close(streams)
                    raise
                started = Started(command, process, streams, self._output_bytes_max)
                self._started.append(started)
        return started

    def end_all(self) -> None:
        """Start nothing more, and end what runs."""
        with self._lock:
            self._ended = True
            for started in self._started:
                started.end()

    def close(self) -> None:
        """End and reap whatever the act did not wait for."""
        self.end_all()
        for started in self._started:
            started.status()


def _close(streams: Iterable[IO[bytes]]) -> None:
    for stream in streams:
        stream.close()


async def off_loop(act: Callable[[Processes], _Result], time_s: float) -> _Result:
    """What an act gives, run in a thread of its own.

    Raises Overfull `out_of_time` when it takes longer, and what the act raises. When the caller is
    cancelled or time is up, the act's processes are killed and the act ends at its next `check`.
    """
    if not _limiter:
        _limiter.append(anyio.CapacityLimiter(THREADS_MAX))
    processes = Processes()

    def run() -> _Result:
        try:
            return act(processes)
        finally:
            processes.close()

    try:
        with anyio.fail_after(time_s):
            return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=_limiter[0])
    except TimeoutError as error:
        raise Overfull(
            "out_of_time", f"the workspace took longer than {time_s:g} s", limitS=time_s
        ) from error
    finally:
        processes.end_all()
