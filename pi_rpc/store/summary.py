"""What a picker shows of a stored session, gathered line by line; a file is never held whole."""

import os
import re
from collections.abc import Sequence
from io import BytesIO
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pi_rpc.core.codec import decode, encode, header_from_object
from pi_rpc.core.entries import Header
from pi_rpc.core.errors import Damaged, Failure, Invalid
from pi_rpc.core.messages import JsonObject, blocks_of, texts_of
from pi_rpc.core.meter import Meter
from pi_rpc.core.ports.store import SessionListing
from pi_rpc.core.stamps import iso_from_ms, ms_from_iso
from pi_rpc.store.database import Database
from pi_rpc.store.disk import BLOCK_BYTES, open_regular
from pi_rpc.store.reading import FileMark, chunks_from, mark_of, starts_as

if TYPE_CHECKING:
    import sqlite3

NO_MESSAGES = "(no messages)"
ASKED_SINGLY_MAX = 50
"""So many summaries are asked of the cache one by one."""
FIRST_MESSAGE_CHARACTERS_MAX = 4096
"""More than any picker has room for."""

_ROLE = re.compile(
    rb'\{"type":"([a-z_]+)","id":"[^"\\]*","parentId":(?:null|"[^"\\]*"),"timestamp":"[^"\\]*"'
    rb'(?:,"message":\{"role":"([A-Za-z]+)")?'
)
# A tuple, for a role in a file may be anything, also what has no hash.
_SPOKEN = ("user", "assistant")


class _Said(msgspec.Struct):
    role: Any = None
    timestamp: Any = None


class _Line(msgspec.Struct):
    """A line of a session, but for what makes it long."""

    type: Any = None
    timestamp: Any = None
    name: Any = None
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

    def take_all(self, block: bytearray, end: int) -> None:
        """Add the whole lines within the first `end` bytes of `block`: as one by one, but sooner.

        Raises Invalid `not_a_session` for a first record that is no header.
        """
        start = 0
        # The words of the first message are wanted in full; of all that comes after it, little is.
        while start < end and (self.header is None or self.first_message is None):
            stop = block.index(b"\n", start, end)
            self.take(bytes(block[start:stop]))
            start = stop + 1
        if start == end:
            return
        with memoryview(block)[start:end] as chunk:
            lines = BytesIO(chunk).readlines()
            try:
                entries = _lines.decode_lines(chunk)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                entries = []
        # With as many records as lines, none of which is blank, there is one on each.
        if len(entries) == len(lines) and all(line[-2:] == b"}\n" for line in lines):
            self._take_entries(entries)
            return
        for line in lines:
            self.take(line[:-1])

    def _take_entries(self, entries: list[_Line]) -> None:
        # All lines of all sessions pass here, so what nearly every one is comes first.
        latest_ms = -inf if self.latest_ms is None else self.latest_ms
        for entry in entries:
            if entry.type == "message":
                self.message_count += 1
                said = entry.message
                if said is not None and said.role in _SPOKEN:
                    at = said.timestamp
                    if type(at) is not int:
                        self._take_time(at, entry.timestamp)
                    elif at > latest_ms:
                        latest_ms = at
            elif entry.type == "session_info":
                self._take_name(entry.name)
        if latest_ms > -inf:
            self._take_time(latest_ms, None)

    def listing(self, file: str, modified_ms: float) -> SessionListing | None:
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
            file=file,
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
            self._take_name(stored.get("name"))
        if stored.get("type") == "message":
            self.message_count += 1
            message = stored.get("message")
            if isinstance(message, dict) and message.get("role") in _SPOKEN:
                self._take_time(message.get("timestamp"), stored.get("timestamp"))
                self._take_words(message)

    def _take_name(self, name: object) -> None:
        self.name = (name.strip() or None) if isinstance(name, str) else None

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


class _Kept(msgspec.Struct, array_like=True, gc=False):
    """A summary as the cache holds it."""

    mark: FileMark
    listing: SessionListing
    has_words: bool
    """Whether the first message is one, and no words of ours in its place."""
    latest_ms: float | None


_summaries = msgspec.json.Decoder(_Kept)
_encoder = msgspec.json.Encoder()


class FileSummary:
    """The summary of a file, and how far it was read; it goes on where it stopped."""

    __slots__ = ("_kept", "_listing", "_summary", "mark")

    def __init__(self, kept: _Kept | None = None) -> None:
        self.mark: FileMark | None = None if kept is None else kept.mark
        """Of what was read; None before anything was."""
        self._summary: Summary | None = None
        """What was read; None before anything was, and as long as the cache's word is enough."""
        self._listing: SessionListing | None = None if kept is None else kept.listing
        """Holds: what is listed of the file as it was read; None until it is wanted."""
        self._kept = kept
        """What the cache said of it, as long as nobody reads on."""

    def is_of(self, state: os.stat_result) -> bool:
        """Whether the file is still the one that was read."""
        return self.mark is not None and self.mark.is_of(state)

    def listing(self, file: str) -> SessionListing | None:
        """What a picker shows of the file that was read."""
        if self._listing is None and self._summary is not None and self.mark is not None:
            self._listing = self._summary.listing(file, self.mark.mtime_ns / 1e6)
        return self._listing

    def read(self, file: str, buffer: bytearray) -> None:
        """Read to the end of the file. Raises Failure when it is no session or cannot be read."""
        fd = open_regular(Path(file), writable=False)
        summary = self._expanded()
        self._listing = self._kept = None
        try:
            state = os.fstat(fd)
            if self.mark is None or not starts_as(fd, state, self.mark):
                summary, self.mark = Summary(), None
            self._summary = summary
            start = 0 if self.mark is None else self.mark.covered
            covered = _read_on(fd, start, summary, buffer)
            self.mark = mark_of(fd, state, covered)
        except OSError as error:
            raise Invalid("not_a_session", str(error)) from error
        finally:
            os.close(fd)

    def as_bytes(self, file: str) -> bytes | None:
        """The summary for the cache; None when there is nothing to keep that it did not say."""
        summary, listing = self._summary, self.listing(file)
        if listing is None or summary is None or self.mark is None:
            return None
        has_words = summary.first_message is not None
        kept = _Kept(self.mark, listing, has_words, summary.latest_ms)
        try:
            return _encoder.encode(kept)
        except UnicodeEncodeError:
            return encode(msgspec.to_builtins(kept))

    @classmethod
    def from_bytes(cls, stored: bytes, file: str) -> "FileSummary | None":
        """The summary of a file out of the cache; None when it is none of ours."""
        try:
            kept = _summaries.decode(stored)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            try:
                # Names may hold what only the slower decoder takes.
                kept = msgspec.convert(decode(stored), _Kept)
            except (msgspec.MsgspecError, Damaged):
                return None
        return cls(kept) if kept.listing.file == file else None

    def _expanded(self) -> Summary:
        """What was read, as what can be read on."""
        if self._kept is None:
            return self._summary or Summary()
        summary, listing = Summary(), self._kept.listing
        summary.header = Header(
            listing.session_id, listing.created, listing.cwd, listing.parent_session
        )
        summary.message_count, summary.name = listing.message_count, listing.name
        summary.first_message = listing.first_message if self._kept.has_words else None
        summary.latest_ms = self._kept.latest_ms
        return summary


def _read_on(fd: int, covered: int, summary: Summary, buffer: bytearray) -> int:
    """Read a file on to its end; how much of it was read for good then."""
    for block, end in chunks_from(fd, covered, buffer):
        if block.endswith(b"\n", 0, end):
            summary.take_all(block, end)
            covered += end
        # A line without a newline counts if it is whole; else it may still grow, and is read again.
        elif _is_whole(rest := bytes(block[:end])):
            summary.take(rest)
            covered += end
    return covered


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(decode(line), dict)
    except Damaged:
        return False


class Summaries:
    """Listings of files, remembered as long as the files stay as they are."""

    def __init__(self, cache: Database | None = None, kept_max: int = 20_000) -> None:
        self._cache = cache
        self._kept: dict[str, FileSummary] = {}
        self._kept_max = kept_max

    def of(
        self, files: Sequence[tuple[str, os.stat_result]], meter: Meter | None = None
    ) -> list[SessionListing]:
        """The listings of files, in their order, but for what is no session or cannot be read."""
        meter = Meter() if meter is None else meter
        meter.total = sum(state.st_size for _, state in files)
        self._learn([path for path, _ in files if path not in self._kept])
        changed: list[tuple[str, FileSummary]] = []
        found = []
        buffer = bytearray()
        for path, state in files:
            meter.done += state.st_size
            kept = self._kept.get(path)
            if kept is None or not kept.is_of(state):
                buffer = buffer or bytearray(BLOCK_BYTES)
                kept = self._read(path, kept or FileSummary(), buffer)
                if kept is None:
                    continue
                changed.append((path, kept))
            listing = kept.listing(path)
            if listing is not None:
                found.append(listing)
        self._tell(changed)
        return found

    def _read(self, path: str, kept: FileSummary, buffer: bytearray) -> FileSummary | None:
        try:
            kept.read(path, buffer)
        except (Failure, OSError):
            # A picker shows what can be shown; opening such a file by its name says what is wrong.
            self._kept.pop(path, None)
            return None
        while len(self._kept) >= self._kept_max and path not in self._kept:
            del self._kept[next(iter(self._kept))]
        self._kept[path] = kept
        return kept

    def _learn(self, paths: Sequence[str]) -> None:
        if self._cache is None or not paths:
            return

        def work(connection: "sqlite3.Connection") -> list[tuple[str, bytes]]:
            wanted = {os.fsencode(path): path for path in paths}
            if len(wanted) > ASKED_SINGLY_MAX:
                # Most of what is there is wanted: one question takes a fraction of a thousand.
                rows = connection.execute("SELECT path, listed FROM files WHERE listed NOT NULL")
                return [(wanted[name], listed) for name, listed in rows if name in wanted]
            ask = "SELECT path, listed FROM files WHERE path = ? AND listed NOT NULL"
            found = (row for name in wanted for row in connection.execute(ask, [name]))
            return [(wanted[name], listed) for name, listed in found]

        for path, stored in self._cache.read(work) or ():
            kept = FileSummary.from_bytes(stored, path)
            if kept is not None and len(self._kept) < self._kept_max:
                self._kept[path] = kept

    def _tell(self, changed: Sequence[tuple[str, FileSummary]]) -> None:
        rows = [(os.fsencode(path), kept.as_bytes(path)) for path, kept in changed]
        if self._cache is None or not rows:
            return
        tell = (
            "INSERT INTO files (path, listed) VALUES (?, ?)"
            " ON CONFLICT (path) DO UPDATE SET listed = excluded.listed"
        )
        self._cache.write(lambda connection: connection.executemany(tell, rows))
