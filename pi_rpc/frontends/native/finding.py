"""Looking for words in all stored sessions."""

from pi_rpc.core.errors import Invalid
from pi_rpc.core.searching import SearchQuery, terms_of
from pi_rpc.core.stamps import iso_from_ms, ms_from_iso
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.paging import page_bytes_max
from pi_rpc.frontends.native.shapes import Params, Result

HITS_MAX = 200
"""Hits of one page."""

HIT_BYTES = 2048
"""More than a hit takes, but for one in a folder of a very long name."""


class SessionSearchParams(Params, frozen=True, kw_only=True):
    """What to look for, and where."""

    query: str
    """Words that must all be there, in any case and order; quotes hold several together."""
    cwd: str | None = None
    """Only sessions of this working directory."""
    roles: list[str] | None = None
    """Only entries of these: roles of messages, or entry types such as `compaction`."""
    since: str | None = None
    """Only what was said at this ISO 8601 time or after it."""
    until: str | None = None
    """Only what was said before this ISO 8601 time."""
    cursor: str | None = None
    limit: int = 50


class FoundEntry(Result, frozen=True, kw_only=True):
    """An entry that holds what was looked for, on whatever branch."""

    session_id: str
    path: str | None = None
    cwd: str
    name: str | None = None
    entry_id: str
    role: str
    """Of a message its role; of any other entry its type."""
    timestamp: str | None = None
    snippet: str
    """The words around the first place, blanks run together."""


class SessionSearchResult(Result, frozen=True, kw_only=True):
    """A page of hits, newest first."""

    hits: list[FoundEntry]
    next_cursor: str | None = None


async def search(connection: Connection, params: SessionSearchParams) -> SessionSearchResult:
    """Entries of every branch of every stored session that hold all words."""
    query = SearchQuery(
        terms_of(params.query),
        None if params.roles is None else frozenset(params.roles),
        _moment("since", params.since),
        _moment("until", params.until),
    )
    limit = max(1, min(params.limit, HITS_MAX, page_bytes_max(connection) // HIT_BYTES))
    page = await connection.host.store.search(query, params.cwd, params.cursor, limit)
    return SessionSearchResult(
        hits=[
            FoundEntry(
                session_id=hit.session_id,
                path=None if hit.path is None else str(hit.path),
                cwd=hit.cwd,
                name=hit.name,
                entry_id=hit.entry_id,
                role=hit.role,
                timestamp=iso_from_ms(hit.at_ms) if hit.at_ms else None,
                snippet=hit.snippet,
            )
            for hit in page.hits
        ],
        next_cursor=page.next_cursor,
    )


def _moment(name: str, stamp: str | None) -> int | None:
    if stamp is None:
        return None
    at_ms = ms_from_iso(stamp)
    if at_ms is None:
        raise Invalid("bad_time", f"{name} is no ISO 8601 time", path=name)
    return at_ms


METHODS = (
    Method(
        "session/search",
        "Look for words in all stored sessions.",
        SessionSearchParams,
        SessionSearchResult,
        search,
    ),
)
