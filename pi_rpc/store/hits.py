"""What a search has found so far: the first hits behind a place, at most a page of them."""

import os
from bisect import insort
from pathlib import Path

from pi_rpc.core.ports.store import SearchHit, SearchPage, SessionListing
from pi_rpc.core.searching import Place, Searched, SearchQuery, cursor_of, is_meant, snippet


class Hits:
    """The first hits behind a place, as many as asked for."""

    def __init__(self, query: SearchQuery, after: Place | None, count: int) -> None:
        self.query = query
        self.after = after
        self._count = count
        self._kept: list[tuple[Place, int]] = []
        self._found: list[tuple[Searched, SessionListing]] = []

    def take(self, found: Searched, offset: int, session: SessionListing) -> bool:
        """Keep an entry if it is meant and among the first; whether it was meant."""
        if not is_meant(found, self.query):
            return False
        place = Place(-found.at_ms, _name(session.file), offset)
        if self.after is None or place > self.after:
            insort(self._kept, (place, len(self._found)))
            self._found.append((found, session))
            del self._kept[self._count + 1 :]
            if len(self._found) > 8 * self._count + 1000:
                self._tidy()
        return True

    def _tidy(self) -> None:
        self._found = [self._found[at] for _, at in self._kept]
        self._kept = [(place, at) for at, (place, _) in enumerate(self._kept)]

    def forget(self, session: SessionListing) -> None:
        """Take back what was found in a session."""
        self._kept = [each for each in self._kept if self._found[each[1]][1] is not session]

    @property
    def is_full(self) -> bool:
        """Whether there is one more than fits a page."""
        return len(self._kept) > self._count

    def page(self) -> SearchPage:
        """What was found."""
        places = self._kept[: self._count]
        found = [self._found[at] for _, at in places]
        return SearchPage(
            [
                SearchHit(
                    session_id=session.session_id,
                    path=Path(session.file),
                    cwd=session.cwd,
                    name=session.name,
                    entry_id=one.entry_id,
                    role=one.role,
                    at_ms=one.at_ms,
                    snippet=snippet(one.text, self.query.terms),
                )
                for one, session in found
            ],
            cursor_of(places[-1][0]) if self.is_full else None,
        )


def _name(path: str) -> str:
    # A letter for each byte, so that the order is the same here and in the index.
    return os.fsencode(path).decode("latin-1")
