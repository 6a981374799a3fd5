"""The store of session files: create, open, adopt, list, delete.

Promises
- A new file appears with everything in it or not at all, and never in the place of another.
- Whatever blocks does so in worker threads of its own.
"""

import fcntl
import os
import threading
from collections.abc import AsyncIterable, Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import anyio
import msgspec
from anyio import to_thread

from pi_rpc.core.entries import Header
from pi_rpc.core.errors import Missing, Refused
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
from pi_rpc.core.searching import SearchQuery, place_of
from pi_rpc.core.stamps import iso_from_ms
from pi_rpc.store.catalog import Catalog, file_name, is_session_id, reserved
from pi_rpc.store.copying import FileCopy, FileRows
from pi_rpc.store.disk import (
    copy_bytes,
    failing_as,
    lexical,
    make_folder,
    open_regular,
    publish,
    resolved,
    sync_folder,
    temporary_beside,
    write_all,
)
from pi_rpc.store.hits import Hits
from pi_rpc.store.jsonl import FileSession
from pi_rpc.store.lease import Lease
from pi_rpc.store.loading import (
    Loaded,
    Rows,
    header_line,
    load_to_own,
    load_to_read,
    look_into,
)
from pi_rpc.store.memory import MemorySession, memory_session
from pi_rpc.store.publishing import publish_chunks
from pi_rpc.store.repairing import repair_file
from pi_rpc.store.search import Searcher
from pi_rpc.store.syncing import Syncs

THREADS_MAX = 4
"""Disk work that goes on at once; more threads would wait for the same disk."""

_Result = TypeVar("_Result")
_Made = tuple[Path, Loaded, Lease | None]


class FileStore:
    """Sessions as files below one folder, or in one folder."""

    def __init__(self, catalog: Catalog, searcher: Searcher, ids: Ids, syncs: bool) -> None:
        self.catalog = catalog
        self._searcher = searcher
        self._ids = ids
        self._syncs = syncs
        self._entry_syncs = Syncs() if syncs else None
        self._limiter = anyio.CapacityLimiter(THREADS_MAX)
        self._listing = anyio.CapacityLimiter(1)
        self._searching = anyio.CapacityLimiter(1)
        self._creating: set[str] = set()

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

        `known_unique`: the id was made for this session, so that no other need be looked for, which
        costs the more the more there are. Each copied row hangs below the line before it (first:
        root). Raises Refused `session_exists`, Invalid `bad_session_id`, Outside when the disk
        refuses.
        """
        if ephemeral:
            return await self._in_thread(lambda: memory_session(header, lines, source))
        name = file_name(header)
        if header.session_id in self._creating:
            raise _exists(header.session_id)
        self._creating.add(header.session_id)
        rows = source.rows() if isinstance(source, FileSession) else None
        try:
            if not known_unique and await self._in_thread(
                lambda: self.catalog.is_taken(header.session_id)
            ):
                raise _exists(header.session_id)
            made = await self._in_thread(lambda: self._create(header, name, lines, source, rows))
        finally:
            self._creating.discard(header.session_id)
            if rows is not None:
                rows.close()
        return self._session(made)

    def _create(
        self,
        header: Header,
        name: str,
        lines: Sequence[NewLine | CopiedRows],
        source: StoredSession | None,
        rows: FileRows | None,
    ) -> _Made:
        folder = self.catalog.folder(header.cwd or str(Path.cwd()))
        path = folder / name
        with failing_as("create_failed", path):
            make_folder(folder)
            real = folder.resolve() / name
        lease = Lease.take(real)
        try:
            with failing_as("create_failed", path), temporary_beside(real) as (fd, temporary):
                copy = FileCopy(fd)
                copy.add_raw(header_line(header).rstrip(b"\n"))
                header_bytes = copy.size
                copy.add(lines, source, rows)
                copy.flush()
                if self._syncs:
                    os.fsync(fd)
                self._publish(temporary, real, header)
                if self._syncs:
                    sync_folder(real.parent)
                fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
                kept_fd = os.dup(fd)
        except BaseException:
            lease.release()
            raise
        loaded = Loaded(
            path=real,
            fd=kept_fd,
            header=header,
            rows=Rows(copy.heads, copy.offsets, copy.lengths),
            size=copy.size,
            scanned=copy.size,
            lines=len(copy.heads) + 1,
            header_offset=0,
            header_length=header_bytes - 1,
            ended=True,
        )
        return path, loaded, lease

    @staticmethod
    def _publish(temporary: Path, target: Path, header: Header) -> None:
        try:
            publish(temporary, target)
        except FileExistsError as error:
            raise _exists(header.session_id) from error

    async def open(
        self,
        session: str | Path,
        mode: Literal["own", "read"],
        cwd: str | None = None,
        meter: Meter | None = None,
    ) -> StoredSession:
        """A stored session, by id, by unambiguous beginning of an id, or by path.

        Raises Missing `session_not_found`, Refused `ambiguous_id`, Invalid `not_a_session`, Locked
        with the owner, Damaged or Outside when the file cannot be read.
        """

        def work() -> _Made | MemorySession:
            path = self._path_of(session, cwd)
            return self._own(path, cwd, meter) if mode == "own" else self._read(path, meter)

        return self._session(await self._in_thread(work))

    def _path_of(self, session: str | Path, cwd: str | None) -> Path:
        if isinstance(session, str) and "/" not in session and not session.endswith(".jsonl"):
            return self.catalog.find(session, cwd)
        return Path(lexical(session))

    def _own(self, path: Path, cwd: str | None, meter: Meter | None = None) -> _Made:
        real = resolved(path)
        # Looked at before the lease is taken, so that what is no session gets no lock beside it.
        fd = open_regular(real, writable=False)
        changed_ms = os.fstat(fd).st_mtime_ns // 1_000_000
        os.close(fd)
        lease = Lease.take(real)
        try:
            blank = Header(
                session_id=self._ids.unique_id(),
                timestamp=iso_from_ms(changed_ms) or "",
                cwd=cwd or str(Path.cwd()),
            )
            return path, load_to_own(real, self._ids, blank, self._syncs, meter), lease
        except BaseException:
            lease.release()
            raise

    def _read(self, path: Path, meter: Meter | None) -> _Made | MemorySession:
        loaded = load_to_read(resolved(path), self._ids, meter)
        if isinstance(loaded, MemorySession):
            loaded.path = path
            return loaded
        return path, loaded, None

    async def adopt(self, path: Path, known_cwd: str) -> StoredSession:
        """Bring a file from anywhere into the store, open to write; the source is untouched.

        It is filed under the directory its header names, else under `known_cwd`. A session whose id
        is known gets a new one and the source as parent; a file of the store is opened in place.
        Raises Missing `file_not_found`, Invalid `not_a_session`; then nothing stays behind.
        """
        return self._session(await self._in_thread(lambda: self._adopt(path, known_cwd)))

    def _adopt(self, path: Path, known_cwd: str) -> _Made:
        real = resolved(path)
        try:
            fd = open_regular(real, writable=False)
        except Missing as error:
            raise Missing("file_not_found", error.message, path=str(path)) from error
        try:
            loaded = look_into(real, fd)
            if self.catalog.is_inside(real):
                return self._own(real, known_cwd or None)
            target = self._copy_in(loaded, known_cwd)
        finally:
            os.close(fd)
        try:
            return self._own(target, known_cwd or None)
        except BaseException:
            target.unlink()
            raise

    def _copy_in(self, source: Loaded, known_cwd: str) -> Path:
        header = source.header
        known = not is_session_id(header.session_id) or self._is_known(header.session_id)
        if known:
            header = msgspec.structs.replace(
                header, session_id=self._ids.unique_id(), parent_session=str(source.path)
            )
        folder = self.catalog.folder(header.cwd or known_cwd or str(Path.cwd()))
        with failing_as("create_failed", folder):
            make_folder(folder)
            target = reserved(folder, source.path.stem.lstrip(".") or header.session_id)
            try:
                with temporary_beside(target) as (fd, temporary):
                    # Everything but the header is taken over byte for byte.
                    copy_bytes(source.fd, fd, 0, source.header_offset)
                    begun = source.header_offset
                    if known:
                        write_all(fd, header_line(header).rstrip(b"\n"))
                        begun += source.header_length
                    copy_bytes(source.fd, fd, begun, source.size)
                    if self._syncs:
                        os.fsync(fd)
                    temporary.replace(target)
                if self._syncs:
                    sync_folder(folder)
            except BaseException:
                target.unlink(missing_ok=True)
                raise
        return target

    def _is_known(self, session_id: str) -> bool:
        try:
            return self.catalog.find_exact(session_id) is not None
        except Refused:
            return True

    async def listing(self, cwd: str | None, meter: Meter | None = None) -> list[SessionListing]:
        """Every stored session, latest activity first; of one working directory if given."""
        return await self._in_thread(lambda: self.catalog.listing(cwd, meter), self._listing)

    async def search(
        self, query: SearchQuery, cwd: str | None, cursor: str | None, limit: int
    ) -> SearchPage:
        """Entries of every branch that a query means, newest first; of one directory if given.

        Raises Invalid `bad_cursor`.
        """
        hits = Hits(query, None if cursor is None else place_of(cursor), limit)
        sessions = await self.listing(cwd)
        stopped = threading.Event()
        try:
            return await to_thread.run_sync(
                lambda: self._searcher.search(sessions, hits, stopped.is_set),
                limiter=self._searching,
                abandon_on_cancel=True,
            )
        finally:
            stopped.set()

    async def repair(self, session: str | Path) -> Repaired:
        """Make a session readable to the end: by an append, or by a new file.

        The old one stays beside that as `<name>.bak`. Raises what `open` raises, Locked among them.
        """

        def work() -> Repaired:
            real = resolved(self._path_of(session, None))
            os.close(open_regular(real, writable=False))
            lease = Lease.take(real)
            try:
                return repair_file(real, self._ids, self._syncs)
            finally:
                lease.release()

        return await self._in_thread(work)

    async def publish(self, target: Path, chunks: AsyncIterable[bytes]) -> int:
        """Write a new file anywhere, whole or not at all, for the user alone; its size.

        Raises Refused `file_exists`, Missing `folder_missing`, Outside when the disk refuses.
        """
        return await publish_chunks(target, chunks, self._limiter)

    async def delete(self, session_id: str) -> Path | None:
        """Put a session into the trash; where it lies now.

        Raises Missing `session_not_found`, Locked while somebody owns it, Refused `ambiguous_id`.
        """
        return await self._in_thread(lambda: self._delete(session_id))

    def _delete(self, session_id: str) -> Path:
        path = self.catalog.find_exact(session_id)
        if path is None:
            raise Missing("session_not_found", "no session has this id", sessionId=session_id)
        lease = Lease.take(resolved(path))
        try:
            with failing_as("delete_failed", path):
                return self.catalog.trash(path)
        finally:
            lease.release()

    def _session(self, made: _Made | MemorySession) -> StoredSession:
        if isinstance(made, MemorySession):
            return made
        path, loaded, lease = made
        return FileSession(path, loaded, lease, self._limiter, self._entry_syncs)

    async def _in_thread(
        self, work: Callable[[], _Result], limiter: anyio.CapacityLimiter | None = None
    ) -> _Result:
        with anyio.CancelScope(shield=True):
            result = await to_thread.run_sync(work, limiter=limiter or self._limiter)
        return result  # noqa: RET504  (a scope may swallow, so nothing may follow it but this)


def _exists(session_id: str) -> Refused:
    return Refused("session_exists", "a session has this id", sessionId=session_id)
