"""Looking for words in all session files, with the help of an index of three characters each.

What a file holds beyond the index is read, looked at and added to it in the same pass; so the first
search reads all, and those after it what is new. Every entry the index names is read from its file
and looked at again: the index only saves looking. All of it blocks.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pi_rpc.core.errors import Failure
from pi_rpc.core.ports.store import SearchPage, SessionListing
from pi_rpc.core.searching import Searched, folded, searched_in, trigrams_of
from pi_rpc.store.database import Database
from pi_rpc.store.disk import open_regular
from pi_rpc.store.hits import Hits
from pi_rpc.store.reading import FileMark, blocks_from, mark_of, starts_as
from pi_rpc.store.search_index import GONE_ENTRIES_MAX, Known, Row, SearchIndex


class Searcher:
    """Searches files, with a cache where there is one."""

    def __init__(self, cache: Database | None, gone_entries_max: int = GONE_ENTRIES_MAX) -> None:
        self._cache = cache
        self._gone_entries_max = gone_entries_max
        self._has_pruned = False

    def search(
        self, sessions: Sequence[SessionListing], hits: Hits, is_stopped: Callable[[], bool]
    ) -> SearchPage:
        """Look through all of these sessions, or until nobody waits any more."""
        trigrams = trigrams_of(hits.query.terms)
        index = None
        if self._cache is not None and trigrams:
            index = SearchIndex(self._cache, self._gone_entries_max)
        known = {} if index is None else index.marks(sessions)
        for session in sessions:
            mark = known.get(session.file)
            if mark is not None and not _still_starts_as(session.file, mark[1]):
                _forget(index, known.pop(session.file))
        if index is not None and known:
            named = {at: session for session in sessions if (at := known.get(session.file))}
            for lost in index.look(named, trigrams, hits, is_stopped):
                hits.forget(lost)
                _forget(index, known.pop(lost.file))
        for session in sessions:
            if is_stopped():
                break
            # What went away meanwhile holds nothing.
            with suppress(Failure, OSError):
                _read_on(session, known.get(session.file), hits, index, is_stopped)
        if index is not None:
            index.flush()
            if not self._has_pruned:
                self._has_pruned = index.prune()
        return hits.page()


def _still_starts_as(file: str, mark: FileMark) -> bool:
    try:
        state = os.stat(file)  # noqa: PTH116  (a path object takes longer than the call)
        if mark.is_of(state):
            return True
        fd = open_regular(Path(file), writable=False)
    except (Failure, OSError):
        return False
    try:
        return starts_as(fd, os.fstat(fd), mark)
    finally:
        os.close(fd)


def _read_on(
    session: SessionListing,
    known: Known | None,
    hits: Hits,
    index: SearchIndex | None,
    is_stopped: Callable[[], bool],
) -> None:
    """Look at what the index does not hold of a file, and let it be added."""
    if known is not None and known[1].is_of(os.stat(session.file)):  # noqa: PTH116
        return
    fd = open_regular(Path(session.file), writable=False)
    try:
        state = os.fstat(fd)
        offset = 0 if known is None else known[1].covered
        rows: list[Row] = []
        for lines, rest in blocks_from(fd, offset):
            if is_stopped():
                return
            for line in lines:
                found = searched_in(line)
                if found is not None:
                    hits.take(found, offset, session)
                    if index is not None and index.is_usable:
                        rows.append(_row(offset, len(line), found))
                offset += len(line) + 1
            if rest is not None and (found := searched_in(rest)) is not None:
                hits.take(found, offset, session)
        if index is not None:
            index.add(session.file, mark_of(fd, state, offset), known, rows)
    finally:
        os.close(fd)


def _row(offset: int, length: int, found: Searched) -> Row:
    # A role that is no text for a database is nobody's to ask for.
    role = found.role.encode("utf-8", "replace").decode()
    return offset, length, role, found.at_ms, folded(found.text)


def _forget(index: SearchIndex | None, known: Known) -> None:
    if index is not None:
        index.drop(known)
