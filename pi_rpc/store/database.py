"""The derived cache in SQLite: what files hold, so that they need not be read again.

It is never truth: whatever it says is checked against the file it speaks of, and without it,
locked, damaged or on a disk that takes no more, everything is read from the files instead. All of
it blocks.

Promises
- Nobody waits for it: who finds it held by another process does without.
- A damaged one is removed and made anew; several processes may share it.
- It is readable by its user alone, for it holds what was said.
"""

import os
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pi_rpc.store.disk import FILE_MODE, make_folder

if TYPE_CHECKING:
    import sqlite3

SCHEMA_VERSION = 1
WAIT_S = 0.02
"""How long a write may wait for another process's; what was not written is read again next time."""

_SCHEMA = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path BLOB NOT NULL UNIQUE,
    listed BLOB,
    searched BLOB
);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    role TEXT NOT NULL,
    at_ms INTEGER NOT NULL
);
CREATE INDEX entries_of_file ON entries (file);
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '', columnsize = 0, detail = none, tokenize = 'trigram'
);
"""
"""`listed` and `searched` say how far a file was read for either purpose, and what it was then.
Words of rows that are gone stay behind in `words`, where nothing leads to them."""

_Result = TypeVar("_Result")


class Database:
    """The file of the cache; it is opened for each use, so nothing is held between."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, work: "Callable[[sqlite3.Connection], _Result]") -> _Result | None:
        """What the work gives; None when there is no cache to ask."""
        if not self.path.exists():
            return None
        return self._attempt(work, "BEGIN")

    def write(self, work: "Callable[[sqlite3.Connection], _Result]") -> _Result | None:
        """Do the work, all or nothing; None when the cache cannot be written now."""
        return self._attempt(work, "BEGIN IMMEDIATE")

    def _attempt(
        self, work: "Callable[[sqlite3.Connection], _Result]", begin: str
    ) -> _Result | None:
        import sqlite3  # noqa: PLC0415  (a start needs no database)

        try:
            with closing(self._connection()) as connection:
                connection.execute(begin)
                result = work(connection)
                connection.execute("COMMIT")
                return result
        except OSError:
            return None
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.DatabaseError as error:
            # Locked, full or read-only: the files answer instead. Anything else is damage, a table
            # that is not there among it.
            held = isinstance(error, sqlite3.OperationalError)
            if not held or error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
                self._remove()
            return None

    def _connection(self) -> "sqlite3.Connection":
        import sqlite3  # noqa: PLC0415

        make_folder(self.path.parent)
        # Made by us first: a file that SQLite makes would be open to others.
        os.close(
            os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        )
        connection = sqlite3.connect(self.path, timeout=WAIT_S, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if _version(connection) != SCHEMA_VERSION:
                _make(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                self.path.with_name(self.path.name + suffix).unlink()


def _version(connection: "sqlite3.Connection") -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _make(connection: "sqlite3.Connection") -> None:
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have been faster.
    if _version(connection) != SCHEMA_VERSION:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN"
            " ('files', 'entries', 'words')"
        ).fetchall():
            connection.execute(f"DROP TABLE {name}")
        for statement in _SCHEMA.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")
