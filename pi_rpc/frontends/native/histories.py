"""What is stored of sessions, a page at a time: the list, entries, paths, the tree."""

from collections.abc import Iterator
from itertools import islice
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from pi_rpc.core.branches import words_shown
from pi_rpc.core.codec import encode
from pi_rpc.core.entries import MESSAGE_KINDS
from pi_rpc.core.errors import Invalid
from pi_rpc.core.meter import Meter
from pi_rpc.core.outline import Place, outline
from pi_rpc.core.ports.store import SessionListing
from pi_rpc.core.tree import Tree
from pi_rpc.frontends.native.connection import Connection, shown_name
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.paging import (
    POINTER_BYTES,
    fitting,
    item_bytes_max,
    page_bytes_max,
    page_start,
)
from pi_rpc.frontends.native.shapes import Params, Result, StoredParams
from pi_rpc.session.reading import View


class SessionListParams(Params, frozen=True, kw_only=True):
    """Which sessions to list."""

    cwd: str | None = None
    query: str | None = None
    """Only sessions whose name, first message, folder or id holds this text."""
    sort: Literal["modified", "created", "name"] = "modified"
    cursor: str | None = None
    limit: int = 100


class ListedSession(Result, frozen=True, kw_only=True, gc=False):
    """A stored session as a picker shows it."""

    session_id: str
    path: str
    cwd: str
    name: str | None = None
    created: str
    modified: str
    message_count: int
    first_message: str
    parent_session: str | None = None


class SessionListResult(Result, frozen=True, kw_only=True):
    """A page of the list."""

    sessions: list[ListedSession]
    next_cursor: str | None = None


async def list_(
    connection: Connection, params: SessionListParams, meter: Meter
) -> SessionListResult:
    """List stored sessions, latest activity first unless sorted otherwise."""
    found = await connection.host.store.listing(params.cwd, meter)
    if params.query:
        wanted = params.query.casefold()
        found = [one for one in found if wanted in _searched(one)]
    if params.sort == "created":
        found.sort(key=lambda one: one.created, reverse=True)
    elif params.sort == "name":
        found.sort(key=lambda one: (one.name or one.first_message).casefold())
    start = page_start(params.cursor)
    chosen = found[start : start + max(1, min(params.limit, 1000))]
    page = fitting(
        connection,
        (
            ListedSession(
                session_id=one.session_id,
                path=one.file,
                cwd=one.cwd,
                name=shown_name(one.name),
                created=one.created,
                modified=one.modified,
                message_count=one.message_count,
                first_message=one.first_message[:1000],
                parent_session=one.parent_session,
            )
            for one in chosen
        ),
    )
    end = start + len(page)
    return SessionListResult(
        sessions=page,
        next_cursor=str(end) if end < len(found) else None,
    )


def _searched(one: SessionListing) -> str:
    return "\n".join((one.name or "", one.first_message, one.cwd, one.session_id)).casefold()


ENTRIES_MAX = 10_000
"""Entries of one page."""


class SessionEntriesParams(StoredParams, frozen=True, kw_only=True):
    """Entries in the order of the file."""

    since: str | None = None
    """Only entries after this one."""
    limit: int = 500


class SessionEntriesResult(Result, frozen=True, kw_only=True):
    """A page of entries."""

    entries: list[msgspec.Raw]
    """The stored objects."""
    leaf_id: str | None
    next_cursor: str | None = None
    """To be given as `since` for the next page."""


async def entries(connection: Connection, params: SessionEntriesParams) -> SessionEntriesResult:
    """Stored entries of all branches, in file order, a page at a time."""
    view = await connection.host.view(params.which)
    first = 0 if params.since is None else view.tree.row_of(params.since) + 1
    rows, more = _page_rows(connection, view, range(first, len(view.tree)), params.limit)
    return SessionEntriesResult(
        entries=_stored_objects(connection, view, rows),
        leaf_id=view.tree.id_or_none(view.leaf_row),
        next_cursor=view.tree.heads.id_of(rows[-1]) if more and rows else None,
    )


def _page_rows(
    connection: Connection, view: View, rows: range | list[int], limit: int
) -> tuple[list[int], bool]:
    """As many of the rows as a page may carry, and whether any are left."""
    page: list[int] = []
    room, longest = page_bytes_max(connection), item_bytes_max(connection)
    count_max = min(limit, ENTRIES_MAX)
    for row in rows:
        size = view.stored.length(row)
        room -= size if size <= longest else POINTER_BYTES
        if page and (len(page) >= count_max or room < 0):
            return page, True
        page.append(row)
    return page, False


def _stored_objects(connection: Connection, view: View, rows: list[int]) -> list[msgspec.Raw]:
    """The stored objects of rows, those that follow one another read at once."""
    stored, longest = view.stored, item_bytes_max(connection)
    found: list[msgspec.Raw] = []
    place = 0
    while place < len(rows):
        first = end = rows[place]
        while place < len(rows) and rows[place] == end and stored.length(end) <= longest:
            place, end = place + 1, end + 1
        lines = stored.lines_of(range(first, end))
        found += [_stored_object(view, row, line) for row, line in enumerate(lines, first)]
        if place < len(rows) and rows[place] == end:
            found.append(_pointer(view, end))
            place += 1
    return found


def _pointer(view: View, row: int) -> msgspec.Raw:
    """What stands in the place of an entry that is too long, or that cannot be read."""
    entry = view.tree.readable(row)
    if entry is None:
        placed = view.tree.entry(row)
        head = {"type": placed.type, "id": placed.id, "parentId": placed.parent_id}
        why = {"timestamp": None, "unreadable": True}
    else:
        head = {name: entry.object.get(name) for name in ("type", "id", "parentId", "timestamp")}
        why = {"truncated": True}
    return msgspec.Raw(encode(head | why | {"bytes": view.stored.length(row)}))


_check_json = msgspec.json.Decoder(msgspec.Raw).decode


def _stored_object(view: View, row: int, line: bytes) -> msgspec.Raw:
    # A row is told by the beginning of its line; one broken further on would break our message.
    try:
        _check_json(line)
        if not line.isascii():
            line.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        entry = view.tree.readable(row)
        return _pointer(view, row) if entry is None else msgspec.Raw(encode(entry.object))
    return msgspec.Raw(line)


class SessionReadParams(StoredParams, frozen=True, kw_only=True):
    """The conversation from a leaf upward."""

    leaf_id: str | None | UnsetType = UNSET
    before: str | None = None
    """Only entries above this one: the `nextCursor` of the page before."""
    limit: int = 100


class SessionReadResult(Result, frozen=True, kw_only=True):
    """A page of a path, oldest first."""

    entries: list[msgspec.Raw]
    leaf_id: str | None
    next_cursor: str | None = None


async def read(connection: Connection, params: SessionReadParams) -> SessionReadResult:
    """A path from its end upward, a page at a time, without opening the session."""
    view = await connection.host.view(params.which)
    leaf_row = leaf_of(view, params.leaf_id)
    start = leaf_row if params.before is None else view.tree.parent(view.tree.row_of(params.before))
    limit = max(1, min(params.limit, 10_000))
    upward: list[int] = []
    for row in view.tree.upward(start):
        if len(upward) > limit:
            break
        upward.append(row)
    rows, more = _page_rows(connection, view, upward, limit)
    return SessionReadResult(
        entries=_stored_objects(connection, view, rows[::-1]),
        leaf_id=view.tree.id_or_none(leaf_row),
        next_cursor=view.tree.heads.id_of(rows[-1]) if more else None,
    )


def leaf_of(view: View, leaf_id: str | None | UnsetType) -> int:
    """The leaf asked for, else where the session's stands. Raises Missing `entry_not_found`."""
    return view.leaf_row if leaf_id is UNSET else view.tree.row_or_root(leaf_id)


class SessionTreeParams(StoredParams, frozen=True, kw_only=True):
    """Which part of the tree."""

    root: str | None = None
    """Only this entry and what hangs below it."""
    depth: int | None = None
    """At most so many steps below the roots shown."""
    limit: int = 500
    cursor: str | None = None


class TreeNode(Result, frozen=True, kw_only=True):
    """An entry as a tree view shows it."""

    id: str
    parent_id: str | None
    type: str
    label: str | None = None
    role: str | None = None
    text: str | None = None
    """The start of what it says."""
    timestamp: str
    children: int


class SessionTreeResult(Result, frozen=True, kw_only=True):
    """A page of the tree: a flat list, parents before their children."""

    nodes: list[TreeNode]
    leaf_id: str | None
    next_cursor: str | None = None


async def tree(connection: Connection, params: SessionTreeParams) -> SessionTreeResult:
    """The tree as a flat list, a page at a time; never nested, however deep."""
    view = await connection.host.view(params.which)
    limit = max(1, min(params.limit, 5000))
    told: Iterator[Place]
    if params.root is None and params.depth is None:
        start = page_start(params.cursor)
        every = (Place(row, 0) for row in range(start, len(view.tree)))
        told = (place for place in every if not view.tree.heads.is_shadowed(place.row))
    else:
        top = view.tree.row_or_root(params.root)
        told = outline(view.tree, top, params.depth, _place_in(view.tree, params.cursor))
    places = list(islice(told, limit + 1))
    nodes = fitting(connection, (_node(view, place.row) for place in places[:limit]))
    has_more, last = len(nodes) < len(places), places[len(nodes) - 1] if nodes else None
    next_cursor = None
    if has_more and last is not None:
        next_cursor = str(last.row + 1)
        if params.root is not None or params.depth is not None:
            next_cursor = f"{last.row}.{last.level}"
    return SessionTreeResult(
        nodes=nodes,
        leaf_id=view.tree.id_or_none(view.leaf_row),
        next_cursor=next_cursor,
    )


def _place_in(tree: Tree, cursor: str | None) -> Place | None:
    """The last place of the page before."""
    if cursor is None:
        return None
    row, _, level = cursor.partition(".")
    if not level or page_start(row) >= len(tree):
        raise Invalid("bad_cursor", "no cursor of this tree", cursor=cursor[:100])
    return Place(page_start(row), page_start(level))


def _node(view: View, row: int) -> TreeNode:
    entry = view.tree.entry(row)
    role = None
    if entry.kind in MESSAGE_KINDS and entry.message is not None:
        role = str(entry.message.get("role", ""))
    return TreeNode(
        id=entry.id,
        parent_id=entry.parent_id,
        type=entry.type,
        label=shown_name(view.tree.label_of(entry.id)),
        role=role,
        text=words_shown(view.tree, row) or None,
        timestamp=entry.timestamp,
        children=sum(1 for _ in view.tree.below.of(row)),
    )


METHODS = (
    Method(
        "session/list",
        "List stored sessions.",
        SessionListParams,
        SessionListResult,
        list_,
        metered=True,
    ),
    Method(
        "session/entries",
        "Stored entries in file order, a page at a time.",
        SessionEntriesParams,
        SessionEntriesResult,
        entries,
    ),
    Method(
        "session/read",
        "A path from its end upward, a page at a time.",
        SessionReadParams,
        SessionReadResult,
        read,
    ),
    Method(
        "session/tree",
        "The tree as a flat list, a page at a time.",
        SessionTreeParams,
        SessionTreeResult,
        tree,
    ),
)
