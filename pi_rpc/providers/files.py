"""Files of the user's that are read again when they change.

Promises
- What cannot be read is an empty object and a diagnostic, never a failure.
- A diagnostic says where the mistake is and never quotes the text.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pi_rpc.core.events import Diagnostic
from pi_rpc.providers.jsonc import decoded

FILE_BYTES_MAX = 4 * 1024 * 1024
"""A larger file is none of ours."""

Look = Callable[[os.stat_result, Path], list[Diagnostic]]


class WatchedFile:
    """A JSON object in a file; `look` says what else is odd about one."""

    def __init__(self, path: Path, look: Look = lambda status, path: []) -> None:
        self.path = path
        self.diagnostics: list[Diagnostic] = []
        self.revision = 0
        """Grows when the file has changed."""
        self._look = look
        self._seen: tuple[int, ...] | None = None
        self._value: dict[str, Any] = {}

    def value(self) -> dict[str, Any]:
        """The object in the file as it is now; empty when there is no file."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._take((), {}, [])
            return self._value
        except OSError as problem:
            self._take((), {}, [self._bad(problem.strerror or "it cannot be read")])
            return self._value
        seen = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)
        if seen != self._seen:
            value, diagnostics = self._read()
            self._take(seen, value, [*diagnostics, *self._look(status, self.path)])
        return self._value

    def _take(
        self, seen: tuple[int, ...], value: dict[str, Any], diagnostics: list[Diagnostic]
    ) -> None:
        if seen != self._seen:
            self.revision += 1
        self._seen, self._value, self.diagnostics = seen, value, diagnostics

    def _read(self) -> tuple[dict[str, Any], list[Diagnostic]]:
        try:
            with self.path.open("rb") as file:
                raw = file.read(FILE_BYTES_MAX + 1)
            if len(raw) > FILE_BYTES_MAX:
                return {}, [self._bad(f"it is larger than {FILE_BYTES_MAX} bytes")]
            value = decoded(raw)
        except UnicodeDecodeError:
            return {}, [self._bad("it is not UTF-8")]
        except ValueError as problem:
            return {}, [self._bad(str(problem))]
        except OSError as problem:
            return {}, [self._bad(problem.strerror or "it cannot be read")]
        if not isinstance(value, dict):
            return {}, [self._bad("a JSON object was expected")]
        return value, []

    def _bad(self, why: str) -> Diagnostic:
        text = f"the file was left out: {why}"
        return Diagnostic("error", "file_left_out", text, path=str(self.path))
