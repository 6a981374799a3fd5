"""Real daemons on real pipes, for tests that only the world can answer."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WAIT_S = 10.0
"""How long anything may take; a start of the interpreter on a busy machine included."""

INITIALIZE: dict[str, Any] = {
    "protocolVersion": 1,
    "clientInfo": {"name": "process test", "version": "1"},
    "capabilities": {"experimental": True},
}


class RefusedError(Exception):
    """An error response."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.data: dict[str, Any] = error["data"]


class Daemon:
    """One process of pi-rpc, driven over its own standard input and output."""

    wait_s = WAIT_S

    def __init__(
        self,
        home: Path,
        *arguments: str,
        content_length: bool = False,
        environment: dict[str, str] | None = None,
        module: str = "pi_rpc",
    ) -> None:
        self.home = home
        self.told: list[dict[str, Any]] = []
        """Notifications, in the order they came."""
        self.answers: dict[int, dict[str, Any]] = {}
        self._content_length = content_length
        self._held = b""
        self._last_id = 0
        self.stderr = (home / f"stderr-{len(list(home.glob('stderr-*')))}").open("w+b")
        variables = {"PI_CODING_AGENT_DIR": str(home / "agent"), "PYTHONWARNINGS": "error"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            env=os.environ | variables | (environment or {}),
        )

    def send(self, method: str, **params: Any) -> int:
        """Ask without waiting; the id of the request."""
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self.write(json.dumps(request).encode())
        return self._last_id

    def tell(self, method: str) -> None:
        """Send a notification."""
        self.write(json.dumps({"jsonrpc": "2.0", "method": method}).encode())

    def write(self, message: bytes) -> None:
        """Write one message in this daemon's framing."""
        assert self.process.stdin is not None
        head = b"Content-Length: %d\r\n\r\n" % len(message) if self._content_length else b""
        self.process.stdin.write(head + message + (b"" if head else b"\n"))
        self.process.stdin.flush()

    def call(self, method: str, **params: Any) -> Any:
        """Ask and wait for the result. Raises RefusedError."""
        return self.result_of(self.send(method, **params))

    def result_of(self, request_id: int) -> Any:
        """The result of a request. Raises RefusedError."""
        self.read_until(lambda: request_id in self.answers)
        answer = self.answers[request_id]
        if "error" in answer:
            raise RefusedError(answer["error"])
        return answer["result"]

    def greet(self) -> "Daemon":
        """Make the handshake."""
        self.call("initialize", **INITIALIZE)
        return self

    def read_until(self, holds: Callable[[], bool]) -> None:
        """Read until something holds."""
        until = time.monotonic() + self.wait_s
        while not holds():
            if not self.read_some(until - time.monotonic()):
                raise AssertionError(f"it never came; stderr: {self.errors()[-2000:]}")

    def read_until_told(self, method: str, count: int = 1) -> dict[str, Any]:
        """Read until a notification came `count` times; its params."""
        self.read_until(lambda: len(self.params_of(method)) >= count)
        return self.params_of(method)[count - 1]

    def params_of(self, method: str) -> list[dict[str, Any]]:
        """The params of every notification of a kind."""
        return [one["params"] for one in self.told if one["method"] == method]

    def read_some(self, timeout_s: float | None = None) -> bool:
        """Read once; False when nothing came or the output is at its end."""
        assert self.process.stdout is not None
        timeout_s = self.wait_s if timeout_s is None else timeout_s
        ready, _, _ = select.select([self.process.stdout], [], [], max(timeout_s, 0))
        data = os.read(self.process.stdout.fileno(), 1 << 20) if ready else b""
        self._held += data
        for message in self._messages():
            if "method" in message:
                self.told.append(message)
            else:
                self.answers[message["id"]] = message
        return bool(data)

    def hold(self, data: bytes) -> None:
        """Take in bytes that a test has read itself."""
        self._held += data

    def read_to_end(self) -> None:
        """Read everything that still comes."""
        while self.read_some():
            pass

    def _messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            if self._content_length:
                head, separator, rest = self._held.partition(b"\r\n\r\n")
                length = int(head.partition(b":")[2]) if separator else 0
                if not separator or len(rest) < length:
                    return found
                line, self._held = rest[:length], rest[length:]
            else:
                line, separator, rest = self._held.partition(b"\n")
                if not separator:
                    return found
                self._held = rest
            found.append(json.loads(line))

    def close_input(self) -> None:
        """The client has nothing more to say."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def close_output(self) -> None:
        """The client reads nothing more."""
        assert self.process.stdout is not None
        self.process.stdout.close()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def status(self) -> int:
        """The exit status, once it has ended; negative for a signal that killed it."""
        return self.process.wait(self.wait_s)

    def memory_kib(self) -> int:
        """Resident memory."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().split("\n"):
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise AssertionError("no VmRSS")

    def errors(self) -> str:
        """What it wrote to stderr."""
        self.stderr.seek(0)
        return self.stderr.read().decode()

    def dispose(self) -> None:
        """End it, however it stands."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(self.wait_s)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue
        self.stderr.close()
