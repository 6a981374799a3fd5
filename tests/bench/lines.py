"""A child process that is spoken to in lines, with a bound on every wait."""

from __future__ import annotations

import os
import select
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

WAIT_S = 300.0
READ_BYTES = 1 << 20


class LineProcess:
    """One process, its lines on standard output and what it used; its log goes to ``log``."""

    def __init__(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path) -> None:
        self._log = log
        self._buffer = bytearray()
        pipe = subprocess.PIPE
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                argv, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=stderr, bufsize=0
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._stdin.write(view) or 0 :]

    def line(self) -> bytes:
        """The next line, without its end."""
        scanned = 0
        while (end := self._buffer.find(b"\n", scanned)) < 0:
            scanned = len(self._buffer)
            self._buffer += self._read()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _read(self) -> bytes:
        ready = select.select([self._stdout], [], [], WAIT_S)[0]
        data = os.read(self._stdout.fileno(), READ_BYTES) if ready else b""
        if not data:
            what = "ended" if ready else f"silent for {WAIT_S} s"
            raise RuntimeError(f"{self._process.args!r} {what}: {self._log.read_text()[-2000:]}")
        return data

    def pour(self, data: bytes, count: int, counts: Callable[[bytes], bool]) -> None:
        """Write ``data`` while reading, until ``count`` lines that count have come."""
        writer = threading.Thread(target=self.write, args=(data,), daemon=True)
        writer.start()
        while count:
            count -= counts(self.line())
        writer.join()

    def read_until(self, mark: bytes) -> bytes:
        """Everything that comes until a line with ``mark`` is complete, taken without a look."""
        chunks = [bytes(self._buffer)]
        self._buffer.clear()
        seen = mark in chunks[0]
        while not seen or not chunks[-1].endswith(b"\n"):
            chunks.append(self._read())
            seen = seen or mark in chunks[-2][-len(mark) :] + chunks[-1]
        return b"".join(chunks)

    def peak_memory_mb(self) -> float:
        """The most memory that was resident at once, in MiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def memory_mb(self) -> float:
        """What is resident now, in MiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def cpu_s(self) -> float:
        """Processor time used so far, in user and system mode."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End of input, then its own end; killed when that takes longer than 30 s."""
        self._stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()
