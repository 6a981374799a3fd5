"""Where histories are kept."""

from collections.abc import AsyncIterable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from pi_rpc.core.entries import Header, Kind
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.heads import Heads
from pi_rpc.core.meter import Meter
from pi_rpc.core.searching import SearchQuery


class NewLine(msgspec.Struct, frozen=True):
    """A line to append: the encoded object without its newline, and its head."""

    raw: bytes
    entry_id: str
    parent_row: int
    """Row of the parent, which may be an earlier line of the same append; -1 for a root."""
    kind: Kind


class CopiedRows(msgspec.Struct, frozen=True):
    """Rows first..last-1 of the source session, taken over byte for byte."""

    first: int
    last: int


class StoredSession(Protocol):
    """One session as its store holds it; what was appended is there after a crash."""

    header: Header
    diagnostics: list[Diagnostic]
    """What was odd when it was opened, one a line or entry."""
    path: Path | None
    """Where it lives; None when nowhere."""
    writable: bool
    """False when it was opened to read: appends are refused."""

    @property
    def heads(self) -> Heads:
        """One row a stored entry, in file order; grows with every append, never else."""
        ...

    @property
    def size_bytes(self) -> int:
        """Stored bytes that are known, header included."""
        ...

    def line(self, row: int) -> bytes:
        """The stored bytes of a row, without the newline.

        Raises Outside when they cannot be read.
        """
        ...

    def length(self, row: int) -> int:
        """How many bytes `line` gives, without reading them."""
        ...

    def lines_of(self, rows: range) -> list[bytes]:
        """The stored bytes of rows that follow one another, read at once where they stand so."""
        ...

    def block(self, rows: Sequence[int], start: int) -> tuple[bytes, int]:
        """The stored lines of the row at a place of `rows` and of some behind, and how many.

        For going through many rows: a newline stands between each two; at least one line is given,
        and no more than is good to hold at once.
        """
        ...

    async def refresh(self) -> range:
        """Take in what another program appended; the rows that are new (often none).

        Raises Damaged when the stored bytes are no longer a continuation of what was read.
        """
        ...

    async def append(self, lines: Sequence[NewLine], durable: bool) -> range:
        """Append lines, each in one write; the new rows. `durable`: synced when this returns.

        Memory follows the file: after a failure heads hold the lines that are whole in it, which
        may be some of these. Raises Locked when opened to
        read, Conflict `foreign_append` when the file has grown since the last refresh, Outside
        (`disk_full`, `write_failed`) when the system refuses.
        """
        ...

    async def sync(self) -> None:
        """Everything appended so far is on the disk when this returns."""
        ...

    @property
    def is_loaded(self) -> bool:
        """Whether memory holds the rows."""
        ...

    async def prepare_to_unload(self) -> None:
        """See to it that `load` will be quick; nothing is given up yet."""
        ...

    def unload(self) -> bool:
        """Give up what memory holds of the rows, where all of it can be read again; whether it did.

        Never waits; lease and handle stay. What is asked of the rows afterwards brings them back on
        the spot; `load` does it without holding anybody up.
        """
        ...

    async def load(self) -> None:
        """Hold the same rows again, whatever was appended meanwhile: that is for `refresh`.

        Raises Damaged `file_replaced` when they are not to be had any more, Outside.
        """
        ...

    async def close(self) -> None:
        """Give up the lease and the handle; calling it again does nothing."""
        ...


class SessionListing(msgspec.Struct, frozen=True, gc=False):
    """A stored session as a picker shows it."""

    session_id: str
    file: str
    """The name of what it is kept in; a text, for there are thousands in a list."""
    cwd: str
    created: str
    modified: str
    message_count: int
    first_message: str
    name: str | None = None
    parent_session: str | None = None


class SearchHit(msgspec.Struct, frozen=True):
    """An entry that holds what was looked for."""

    session_id: str
    path: Path | None
    cwd: str
    name: str | None
    entry_id: str
    role: str
    """Of a message its role; of any other entry its type."""
    at_ms: int
    snippet: str


class SearchPage(msgspec.Struct, frozen=True):
    """Hits, newest first."""

    hits: list[SearchHit]
    next_cursor: str | None = None


class RepairStep(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One thing that was done to a file."""

    action: Literal["newline_added", "line_kept_as_entry", "parent_mended", "lines_parted"]
    text: str
    offset: int | None = None
    """Where it stood in the old file, in bytes."""
    entry_id: str | None = None


class Repaired(msgspec.Struct, frozen=True):
    """What a repair has done; no steps when there was nothing to do."""

    steps: list[RepairStep]
    backup: Path | None = None
    """The old file, byte for byte; None when the file only grew."""


class Store(Protocol):
    """Where histories are kept."""

    async def create(
        self,
        header: Header,
        lines: Sequence[NewLine | CopiedRows] = (),
        source: StoredSession | None = None,
        ephemeral: bool = False,
        *,
        known_unique: bool = False,
    ) -> StoredSession:
        """A new session, open to write: all of its lines are there or it does not exist.

        `known_unique`: the id was made for this session, so no other is looked for. Parents of
        copied rows are the row copied before (first: root), so copies form one path.
        Raises Refused `session_exists` for an id in use, Outside when the disk refuses.
        """
        ...

    async def open(
        self,
        session: str | Path,
        mode: Literal["own", "read"],
        cwd: str | None = None,
        meter: Meter | None = None,
    ) -> StoredSession:
        """A stored session, by id, by unambiguous beginning of an id, or by path.

        `own` takes the lease. The meter counts what is read. Raises Missing `session_not_found`,
        Refused `ambiguous_id`, Invalid `not_a_session`, Locked with the owner.
        """
        ...

    async def adopt(self, path: Path, known_cwd: str) -> StoredSession:
        """Bring a file from anywhere into the store (import), open to write.

        The source is untouched.
        """
        ...

    async def listing(self, cwd: str | None, meter: Meter | None = None) -> list[SessionListing]:
        """Every stored session, latest activity first; of one working directory if given."""
        ...

    async def delete(self, session_id: str) -> Path | None:
        """Put a session into the trash; where it lies now."""
        ...

    async def search(
        self, query: SearchQuery, cwd: str | None, cursor: str | None, limit: int
    ) -> SearchPage:
        """Entries of every branch that a query means, newest first; of one directory if given."""
        ...

    async def repair(self, session: str | Path) -> Repaired:
        """Make a session readable to the end, losing no byte: by an append, or by a new file.

        Raises what `open` raises, Locked among them; then nothing was done.
        """
        ...

    async def publish(self, target: Path, chunks: AsyncIterable[bytes]) -> int:
        """Write a new file anywhere, whole or not at all, for the user alone; its size.

        Raises Refused `file_exists`, Missing `folder_missing`, Outside when the disk refuses.
        """
        ...
