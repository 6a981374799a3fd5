"""What a call can fail with."""

from typing import Any


class PiRpcError(Exception):
    """The daemon answered with an error: the act did not happen.

    `kind` says what can be done about it, `reason` says more finely what it was; both are stable.
    `data` holds everything else, as `protocol/errors.md` lists it.
    """

    def __init__(self, code: int, message: str, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.kind = str(data.get("kind", ""))
        self.reason = str(data.get("reason", ""))
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.kind}/{self.reason}, {self.code})"


class DaemonNotFoundError(FileNotFoundError):
    """There is no such command, so no daemon was started."""

    def __init__(self, command: str) -> None:
        super().__init__(
            f"the command {command!r} was not found: install the daemon (`pipx install .` in the "
            "repository of pi-rpc), or say where it is: spawn(['/path/to/pi-rpc'])"
        )
        self.command = command


class DaemonEndedError(Exception):
    """The daemon is gone, so nothing more will be answered.

    `status` is its exit status, negative for a signal, None while it is not known. `stderr` is the
    end of what it wrote there.
    """

    def __init__(self, status: int | None, stderr: str) -> None:
        last = stderr.strip().rpartition("\n")[2]
        super().__init__(f"the daemon has ended (status {status})" + (f": {last}" if last else ""))
        self.status = status
        self.stderr = stderr


class NotificationsLostError(Exception):
    """A stream of notifications was read too slowly and is over.

    What was missed can be read again: `session/subscribe` with `since`, or `session/entries`.
    """
