"""Bytes to server-sent events, as the WHATWG standard has them; pure.

Promises
- Any split of the bytes gives the same events.
- An event is given once its closing blank line is there; what a cut leaves behind is no event.
- Memory is bounded by the longest event allowed.
"""

import msgspec

EVENT_BYTES_MAX = 32 * 1024 * 1024
"""The longest event; the largest real ones carry an image or a whole reply."""

_BOM = b"\xef\xbb\xbf"


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event; `name` is empty when the server gave none."""

    name: str
    data: bytes


class EventTooLongError(ValueError):
    """An event is longer than the bound."""


class Events:
    """The events of one stream: fed bytes as they come."""

    def __init__(self, limit_bytes: int = EVENT_BYTES_MAX) -> None:
        self._limit_bytes = limit_bytes
        self._head: bytes | None = b""
        """The first bytes, until they can be told from a byte order mark."""
        self._swallows_newline = False
        self._line: list[bytes] = []
        self._line_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = ""
        self.has_any = False
        """Whether an event came."""

    def feed(self, read: bytes) -> list[Event]:
        """The events that are whole with these bytes. Raises EventTooLongError."""
        lines = self._normal(self._after_mark(read)).split(b"\n")
        events: list[Event] = []
        last = lines.pop()
        if lines and self._line:
            self._line.append(lines[0])
            lines[0] = b"".join(self._line)
            self._line.clear()
            self._line_bytes = 0
        for line in lines:
            if line:
                self._take(line)
                continue
            if self._data:
                self.has_any = True
                events.append(Event(self._name, b"\n".join(self._data)))
            self._forget()
        if last:
            self._line.append(last)
            self._line_bytes += len(last)
            self._check()
        return events

    def _after_mark(self, read: bytes) -> bytes:
        if self._head is None:
            return read
        head = self._head + read
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(_BOM)

    def _normal(self, read: bytes) -> bytes:
        """Lines ended by a LF only. A CR at the end counts, a LF that follows it then does not."""
        if self._swallows_newline and read:
            self._swallows_newline = False
            read = read.removeprefix(b"\n")
        if b"\r" not in read:
            return read
        self._swallows_newline = read.endswith(b"\r")
        return read.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._data_bytes += len(value) + 1
            self._check()
        elif field == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")

    def _forget(self) -> None:
        self._data = []
        self._data_bytes = 0
        self._name = ""

    def _check(self) -> None:
        if self._line_bytes + self._data_bytes > self._limit_bytes:
            raise EventTooLongError(f"an event is longer than {self._limit_bytes} bytes")
