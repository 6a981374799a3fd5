"""The index of words in the cache: which entries hold all of some groups of three characters.

It names places in files and holds no words itself; whoever asks reads them there. All of it blocks.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pi_rpc.core.codec import decode, encode
from pi_rpc.core.errors import Damaged, Failure
from pi_rpc.core.ports.store import SessionListing
from pi_rpc.core.searching import Searched, searched_in
from pi_rpc.store.database import Database
from pi_rpc.store.disk import open_regular
from pi_rpc.store.hits import Hits
from pi_rpc.store.reading import FileMark

if TYPE_CHECKING:
    import sqlite3

OPEN_FILES_MAX = 32
"""Files held open while hits are looked at."""

BATCH_CHARACTERS = 4 << 20
"""How much text waits to be written to the index at once."""

GONE_ENTRIES_MAX = 100_000
"""Entries of files that changed leave their words behind; with more the index is made anew."""

Row = tuple[int, int, str, int, str]
"""Offset, length, role, time and folded text of an entry to be indexed."""

Known = tuple[int, FileMark]
"""The number of a file in the index, and what of it is there."""


class SearchIndex:
    """The index during one search."""

    def __init__(self, cache: Database, gone_entries_max: int) -> None:
        self._cache = cache
        self._gone_entries_max = gone_entries_max
        self._waiting: list[tuple[str, FileMark, Known | None, list[Row]]] = []
        self._characters = 0
        self.is_usable = True

    def marks(self, sessions: Sequence[SessionListing]) -> dict[str, Known]:
        """What is known of each file."""

        def work(connection: "sqlite3.Connection") -> dict[str, Known]:
            ask = "SELECT id, searched FROM files WHERE path = ? AND searched IS NOT NULL"
            found = {}
            for session in sessions:
                for number, stored in connection.execute(ask, [os.fsencode(session.file)]):
                    with suppress(Damaged, msgspec.ValidationError):
                        mark = msgspec.convert(decode(stored), FileMark)
                        found[session.file] = (int(number), mark)
            return found

        return self._cache.read(work) or {}

    def look(
        self,
        sessions: dict[Known, SessionListing],
        trigrams: list[str],
        hits: Hits,
        is_stopped: Callable[[], bool],
    ) -> list[SessionListing]:
        """Look at the entries the index names; the sessions whose files are not what it says."""
        lost: list[SessionListing] = []
        by_number = {number: (mark, each) for (number, mark), each in sessions.items()}

        def work(connection: "sqlite3.Connection") -> bool:
            with _OpenFiles() as files:
                for number, offset, length in self._named(connection, by_number, trigrams, hits):
                    if hits.is_full or is_stopped():
                        break
                    mark, session = by_number[number]
                    if session in lost or offset + length > mark.covered:
                        continue
                    found = files.entry(session.file, offset, length)
                    # Every candidate was an entry once: a line that is none now means another file.
                    if found is None:
                        lost.append(session)
                    else:
                        hits.take(found, offset, session)
            return True

        if self._cache.read(work) is None:
            return list(sessions.values())
        return lost

    @staticmethod
    def _named(
        connection: "sqlite3.Connection",
        numbers: dict[int, tuple[FileMark, SessionListing]],
        trigrams: list[str],
        hits: Hits,
    ) -> Iterator[tuple[int, int, int]]:
        query = hits.query
        match = " AND ".join('"' + each.replace('"', '""') + '"' for each in trigrams)
        where = ["words MATCH ?", "entries.file IN (SELECT value FROM json_each(?))"]
        values: list[object] = [match, encode(list(numbers)).decode()]
        if query.roles is not None:
            where.append("entries.role IN (SELECT value FROM json_each(?))")
            values.append(encode(sorted(query.roles)).decode())
        for moment, compared in ((query.since_ms, ">="), (query.until_ms, "<")):
            if moment is not None:
                where.append(f"entries.at_ms {compared} ?")
                values.append(moment)
        if hits.after is not None:
            where.append("(-entries.at_ms, files.path, entries.offset) > (?, ?, ?)")
            values += [hits.after.age, hits.after.path.encode("latin-1"), hits.after.offset]
        yield from connection.execute(
            "SELECT entries.file, entries.offset, entries.length FROM words"
            " JOIN entries ON entries.id = words.rowid JOIN files ON files.id = entries.file"
            f" WHERE {' AND '.join(where)}"
            " ORDER BY entries.at_ms DESC, files.path, entries.offset",
            values,
        )

    def add(self, path: str, mark: FileMark, known: Known | None, rows: list[Row]) -> None:
        """Index what was read of a file, when enough waits."""
        if not self.is_usable:
            return
        self._waiting.append((path, mark, known, rows))
        self._characters += sum(len(row[4]) for row in rows)
        if self._characters >= BATCH_CHARACTERS:
            self.flush()

    def drop(self, known: Known) -> None:
        """Forget a file that is not what the index says."""
        gone_max = self._gone_entries_max
        self._cache.write(lambda connection: _drop(connection, [known[0]], gone_max))

    def prune(self) -> bool:
        """Forget files that are gone; whether that could be done."""

        def work(connection: "sqlite3.Connection") -> bool:
            rows = connection.execute("SELECT id, path FROM files").fetchall()
            gone = [number for number, path in rows if not os.path.lexists(path)]
            _drop(connection, gone, self._gone_entries_max)
            connection.executemany("DELETE FROM files WHERE id = ?", [(each,) for each in gone])
            return True

        return self._cache.write(work) is True

    def flush(self) -> None:
        """Index what waits; where that cannot be, nothing more is tried in this search."""
        waiting, self._waiting, self._characters = self._waiting, [], 0
        if waiting and self._cache.write(lambda connection: _store(connection, waiting)) is None:
            self.is_usable = False


def _store(
    connection: "sqlite3.Connection",
    waiting: Sequence[tuple[str, FileMark, Known | None, list[Row]]],
) -> bool:
    for path, mark, known, rows in waiting:
        name, before = os.fsencode(path), None if known is None else encode(_plain(known[1]))
        connection.execute("INSERT OR IGNORE INTO files (path) VALUES (?)", [name])
        number, stored = connection.execute(
            "SELECT id, searched FROM files WHERE path = ?", [name]
        ).fetchone()
        if stored != before and stored is not None:
            if known is not None or _is_ahead(stored, mark):
                # Another process has read it meanwhile.
                continue
            connection.execute("DELETE FROM entries WHERE file = ?", [number])
        elif stored is None and known is not None:
            continue
        for offset, length, role, at_ms, text in rows:
            entry = connection.execute(
                "INSERT INTO entries (file, offset, length, role, at_ms) VALUES (?, ?, ?, ?, ?)",
                [number, offset, length, role, at_ms],
            ).lastrowid
            connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", [entry, text])
        connection.execute(
            "UPDATE files SET searched = ? WHERE id = ?", [encode(_plain(mark)), number]
        )
    return True


def _drop(connection: "sqlite3.Connection", numbers: Sequence[int], gone_max: int) -> None:
    for number in numbers:
        connection.execute("DELETE FROM entries WHERE file = ?", [number])
        connection.execute("UPDATE files SET searched = NULL WHERE id = ?", [number])
    left, last = connection.execute("SELECT count(*), max(id) FROM entries").fetchone()
    if (last or 0) - left > max(gone_max, left):
        connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
        connection.execute("DELETE FROM entries")
        connection.execute("UPDATE files SET searched = NULL")


def _is_ahead(stored: bytes, mark: FileMark) -> bool:
    try:
        there = msgspec.convert(decode(stored), FileMark)
    except (Damaged, msgspec.ValidationError):
        return False
    return (there.inode, there.device) == (mark.inode, mark.device) and (
        there.covered >= mark.covered and there.first == mark.first
    )


def _plain(mark: FileMark) -> object:
    return msgspec.to_builtins(mark)


class _OpenFiles:
    """Files that hits are read from, a few held open."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def __enter__(self) -> "_OpenFiles":
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def entry(self, path: str, offset: int, length: int) -> Searched | None:
        """What is searched of the line that stands there; None when none does."""
        fd = self._open.get(path)
        if fd is None:
            if len(self._open) >= OPEN_FILES_MAX:
                os.close(self._open.pop(next(iter(self._open))))
            try:
                fd = self._open[path] = open_regular(Path(path), writable=False)
            except Failure:
                return None
        try:
            data = os.pread(fd, length + 1, offset)
        except OSError:
            return None
        if len(data) <= length or data[length] != ord("\n"):
            return None
        return searched_in(data[:length])
