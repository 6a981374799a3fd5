"""What a picker shows of a stored session, gathered line by line; a file is never held whole."""

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from pi_rpc.core.codec import decode, header_from_object
from pi_rpc.core.entries import Header
from pi_rpc.core.errors import Damaged, Failure, Invalid
from pi_rpc.core.messages import JsonObject, blocks_of, texts_of
from pi_rpc.core.ports import SessionListing
from pi_rpc.store.disk import BLOCK_BYTES, LINE_BYTES_MAX, open_regular
from pi_rpc.store.stamps import iso_from_ms, ms_from_iso

NO_MESSAGES = "(no messages)"
FIRST_MESSAGE_CHARACTERS_MAX = 4096
"""More than any picker has room for."""

_ROLE = re.compile(
    rb'\{"type":"([a-z_]+)","id":"[^"\\]*","parentId":(?:null|"[^"\\]*"),"timestamp":"[^"\\]*"'
    rb'(?:,"message":\{"role":"([A-Za-z]+)")?'
)
_SPOKEN = frozenset({"user", "assistant"})


class _Said(msgspec.Struct):
    role: Any = None
    timestamp: Any = None


class _Line(msgspec.Struct):
    """A line of a session, but for what makes it long."""

    type: Any = None
    timestamp: Any = None
    message: _Said | None = None


_lines = msgspec.json.Decoder(_Line)


class Summary:
    """The listing of one session so far; `take` is given the lines in order."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.message_count = 0
        self.name: str | None = None
        self.first_message: str | None = None
        self.latest_ms: float | None = None

    def take(self, line: bytes) -> None:
        """Add a line. Raises Invalid `not_a_session` for a first record that is no header."""
        if self.header is None:
            self._take_header(line)
            return
        match = _ROLE.match(line)
        if match is not None:
            entry_type, role = match.groups()
            if entry_type == b"message" and role is not None:
                self._take_message(line, role.decode())
                return
            if entry_type not in (b"message", b"session_info"):
                return
        self._take_object(line)

    def listing(self, path: Path, modified_ms: float) -> SessionListing | None:
        """The listing; `modified_ms` is the file's own time, for a session that names none."""
        header = self.header
        if header is None:
            return None
        latest = self.latest_ms
        stamp = None if latest is None else iso_from_ms(latest)
        if stamp is None and ms_from_iso(header.timestamp) is not None:
            stamp = header.timestamp
        return SessionListing(
            session_id=header.session_id,
            path=path,
            cwd=header.cwd,
            created=header.timestamp,
            modified=stamp or iso_from_ms(modified_ms) or "",
            message_count=self.message_count,
            first_message=self.first_message or NO_MESSAGES,
            name=self.name,
            parent_session=header.parent_session,
        )

    def _take_header(self, line: bytes) -> None:
        try:
            stored = decode(line)
        except Damaged:
            return
        if stored or isinstance(stored, dict | list):
            self.header = header_from_object(stored)

    def _take_message(self, line: bytes, role: str) -> None:
        if role not in _SPOKEN:
            self.message_count += 1
            return
        if role == "user" and self.first_message is None:
            self._take_object(line)
            return
        try:
            stored = _lines.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._take_object(line)
            return
        self.message_count += 1
        self._take_time(stored.message.timestamp if stored.message else None, stored.timestamp)

    def _take_object(self, line: bytes) -> None:
        try:
            stored = decode(line)
        except Damaged:
            return
        if not isinstance(stored, dict):
            return
        if stored.get("type") == "session_info":
            name = stored.get("name")
            self.name = (name.strip() or None) if isinstance(name, str) else None
        if stored.get("type") == "message":
            self.message_count += 1
            message = stored.get("message")
            if isinstance(message, dict) and message.get("role") in _SPOKEN:
                self._take_time(message.get("timestamp"), stored.get("timestamp"))
                self._take_words(message)

    def _take_time(self, in_message: object, in_entry: object) -> None:
        at: float | None = None
        if isinstance(in_message, int | float) and not isinstance(in_message, bool):
            at = in_message
        elif isinstance(in_entry, str):
            at = ms_from_iso(in_entry)
        if at is not None and (self.latest_ms is None or at > self.latest_ms):
            self.latest_ms = at

    def _take_words(self, message: JsonObject) -> None:
        if self.first_message is None and message.get("role") == "user":
            text = " ".join(texts_of(blocks_of(message)))
            self.first_message = text[:FIRST_MESSAGE_CHARACTERS_MAX] or None


class FileSummary:
    """The summary of a file, and how far it was read; it goes on where it stopped."""

    def __init__(self, state: os.stat_result) -> None:
        self.summary = Summary()
        self.state = state
        self._offset = 0

    def is_of(self, state: os.stat_result) -> bool:
        """Whether the file is still the one that was read."""
        return (
            os.path.samestat(state, self.state)
            and state.st_size == self.state.st_size
            and state.st_mtime_ns == self.state.st_mtime_ns
        )

    def may_go_on(self, state: os.stat_result) -> bool:
        """Whether the file is the one that was read, with more in it."""
        return os.path.samestat(state, self.state) and state.st_size > self.state.st_size

    def read(self, path: Path) -> None:
        """Read to the end of the file. Raises Failure when it is no session or cannot be read."""
        fd = open_regular(path, writable=False)
        try:
            self.state = os.fstat(fd)
            self._read(fd)
        except OSError as error:
            raise Invalid("not_a_session", str(error)) from error
        finally:
            os.close(fd)

    def _read(self, fd: int) -> None:
        rest = b""
        while block := os.pread(fd, BLOCK_BYTES, self._offset + len(rest)):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                self.summary.take(line)
            self._offset += sum(map(len, lines)) + len(lines)
            if len(rest) > LINE_BYTES_MAX:
                raise Damaged("line_too_long", offset=self._offset)
        # A line without a newline counts if it is whole; else it may still grow, and is read again.
        if _is_whole(rest):
            self.summary.take(rest)
            self._offset += len(rest)


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(decode(line), dict)
    except Damaged:
        return False


class Summaries:
    """Listings of files, remembered as long as the files stay as they are."""

    def __init__(self, kept_max: int = 20_000) -> None:
        self._kept: dict[Path, FileSummary] = {}
        self._kept_max = kept_max

    def of(self, path: Path) -> SessionListing | None:
        """The listing of a file; None when it is no session or cannot be read."""
        try:
            state = path.stat()
            kept = self._kept.get(path)
            if kept is None or not kept.is_of(state):
                if kept is None or not kept.may_go_on(state):
                    kept = FileSummary(state)
                kept.read(path)
                self._keep(path, kept)
        except (Failure, OSError):
            # A picker shows what can be shown; opening such a file by its name says what is wrong.
            self._kept.pop(path, None)
            return None
        return kept.summary.listing(path, kept.state.st_mtime_ns / 1e6)

    def _keep(self, path: Path, kept: FileSummary) -> None:
        while len(self._kept) >= self._kept_max:
            del self._kept[next(iter(self._kept))]
        self._kept[path] = kept
