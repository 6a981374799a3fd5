"""The store without a disk: sessions are kept until the process ends."""

import os
import socket
from collections.abc import AsyncIterable, Sequence
from pathlib import Path
from typing import Literal

import anyio
import msgspec
from anyio import to_thread

from pi_rpc.core.codec import encode
from pi_rpc.core.entries import FORMAT_VERSION, Header
from pi_rpc.core.errors import Invalid, Locked, Missing, Refused
from pi_rpc.core.meter import Meter
from pi_rpc.core.ports.clock import Ids
from pi_rpc.core.ports.store import (
    CopiedRows,
    NewLine,
    Repaired,
    SearchPage,
    SessionListing,
    StoredSession,
)
from pi_rpc.core.searching import SearchQuery, place_of, searched_in
from pi_rpc.store.catalog import is_session_id
from pi_rpc.store.copying import FileRows
from pi_rpc.store.disk import resolved
from pi_rpc.store.hits import Hits
from pi_rpc.store.loading import load_to_read
from pi_rpc.store.memory import MemorySession, memory_session
from pi_rpc.store.publishing import publish_chunks
from pi_rpc.store.summary import Summary


class MemoryStore:
    """The store's whole promise, until exit."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._limiter = anyio.CapacityLimiter(1)
        self._owned: dict[str, MemorySession] = {}
        """The session that holds each history; it is closed while nobody owns it."""

    async def create(
        self,
        header: Header,
        lines: Sequence[NewLine | CopiedRows] = (),
        source: StoredSession | None = None,
        ephemeral: bool = False,
        *,
        known_unique: bool = False,
    ) -> StoredSession:
        """A new session, open to write.

        Raises Refused `session_exists`, Invalid `bad_session_id`.
        """
        if not is_session_id(header.session_id):
            raise Invalid("bad_session_id", "letters, digits and . _ - between them")
        if header.session_id in self._owned:
            raise Refused("session_exists", "a session has this id", sessionId=header.session_id)
        session = memory_session(header, lines, source)
        if not ephemeral:
            self._owned[header.session_id] = session
        return session

    async def open(
        self,
        session: str | Path,
        mode: Literal["own", "read"],
        cwd: str | None = None,
        meter: Meter | None = None,
    ) -> StoredSession:
        """A kept session by id or unambiguous beginning of one; there are no paths.

        Raises Missing `session_not_found`, Refused `ambiguous_id`, Locked with the owner.
        """
        held = self._owned[self._id_of(session, cwd)]
        if mode == "read":
            return held.reading()
        if not held.closed:
            raise _locked()
        opened = MemorySession(held.header, held.heads, held.lines)
        self._owned[held.header.session_id] = opened
        return opened

    def _id_of(self, session: str | Path, cwd: str | None) -> str:
        text = str(session)
        if text in self._owned:
            return text
        matching = [held for name, held in self._owned.items() if text and name.startswith(text)]
        near = [held for held in matching if cwd is not None and held.header.cwd == cwd]
        found = [held.header.session_id for held in near or matching]
        if not found:
            raise Missing("session_not_found", f"no session has the id {text}", sessionId=text)
        if len(found) > 1:
            candidates = [{"sessionId": name, "path": None} for name in found]
            raise Refused("ambiguous_id", "several sessions are meant", candidates=candidates)
        return found[0]

    async def adopt(self, path: Path, known_cwd: str) -> StoredSession:
        """Read a file from anywhere into memory, open to write.

        Raises Missing `file_not_found`, Invalid `not_a_session`.
        """
        session = await to_thread.run_sync(self._adopted, resolved(path))
        self._owned[session.header.session_id] = session
        return session

    def _adopted(self, path: Path) -> MemorySession:
        try:
            loaded = load_to_read(path, self._ids)
        except Missing as error:
            raise Missing("file_not_found", error.message, path=str(path)) from error
        header = msgspec.structs.replace(loaded.header, version=FORMAT_VERSION)
        if header.session_id in self._owned:
            header = msgspec.structs.replace(
                header, session_id=self._ids.unique_id(), parent_session=str(path)
            )
        if isinstance(loaded, MemorySession):
            lines = loaded.lines
        else:
            rows = FileRows(loaded.fd, loaded.heads, loaded.offsets, loaded.lengths)
            lines = [rows.line(row) for row in range(len(rows.heads))]
            rows.close()
        session = MemorySession(header, loaded.heads, lines)
        session.diagnostics = loaded.diagnostics
        return session

    async def listing(self, cwd: str | None, meter: Meter | None = None) -> list[SessionListing]:
        """Every kept session, latest activity first; of one working directory if given."""
        found = []
        for held in self._owned.values():
            if cwd is not None and held.header.cwd != cwd:
                continue
            summary = Summary()
            summary.take(encode(held.header.as_object()))
            for line in held.lines:
                summary.take(line)
            listing = summary.listing(held.header.session_id, 0)
            if listing is not None:
                found.append(listing)
        found.sort(key=lambda listing: listing.modified, reverse=True)
        return found

    async def delete(self, session_id: str) -> Path | None:
        """Forget a session. Raises Missing `session_not_found`, Locked while somebody owns it."""
        held = self._owned.get(session_id)
        if held is None:
            raise Missing("session_not_found", "no session has this id", sessionId=session_id)
        if not held.closed:
            raise _locked()
        del self._owned[session_id]
        return None

    async def search(
        self, query: SearchQuery, cwd: str | None, cursor: str | None, limit: int
    ) -> SearchPage:
        """Entries of every branch that a query means, newest first. Raises Invalid `bad_cursor`."""
        hits = Hits(query, None if cursor is None else place_of(cursor), limit)
        for listing in await self.listing(cwd):
            for row, line in enumerate(self._owned[listing.session_id].lines):
                found = searched_in(line)
                if found is not None:
                    hits.take(found, row, listing)
        return hits.page()

    async def repair(self, session: str | Path) -> Repaired:
        """Nothing: what is kept here was never damaged. Raises what `open` raises."""
        if not self._owned[self._id_of(session, None)].closed:
            raise _locked()
        return Repaired([])

    async def publish(self, target: Path, chunks: AsyncIterable[bytes]) -> int:
        """Write a new file; there is a disk for what is meant to leave. Raises as a disk does."""
        return await publish_chunks(target, chunks, self._limiter)


def _locked() -> Locked:
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": None}
    return Locked("session_locked", "this process owns the session", owner=owner)
