"""Sessions: made, opened, listed, looked at, replaced, closed."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from pi_rpc.core.branches import words_shown
from pi_rpc.core.codec import encode
from pi_rpc.core.entries import MESSAGE_KINDS
from pi_rpc.core.errors import Invalid, Missing
from pi_rpc.core.meter import Meter
from pi_rpc.core.ports import SessionListing
from pi_rpc.core.tree import ROOT, Tree
from pi_rpc.frontends.native.connection import Connection, shown_name
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.paging import (
    POINTER_BYTES,
    fitting,
    item_bytes_max,
    page_bytes_max,
)
from pi_rpc.frontends.native.serving import PendingRequest
from pi_rpc.frontends.native.shapes import (
    Done,
    JsonObject,
    ModelRef,
    OpenedState,
    Params,
    Result,
    SessionParams,
    SessionState,
    StoredParams,
    ThinkingLevel,
)
from pi_rpc.session.host import Opening
from pi_rpc.session.navigating import rename
from pi_rpc.session.reading import View
from pi_rpc.session.session import Session
from pi_rpc.session.worktrees import end_worktree


class SessionNewParams(Params, frozen=True, kw_only=True):
    """A new session."""

    cwd: str
    """Absolute path of an existing folder."""
    session_id: str | None = None
    name: str | None = None
    ephemeral: bool = False
    """Kept in memory only."""
    parent_session: str | None = None
    model: ModelRef | None = None
    thinking_level: ThinkingLevel | None = None
    replaces: str | None = None
    """Id of an open session whose runtime the new one replaces."""
    script: JsonObject | None = None
    """The offline model's script for this session."""
    follow: bool = True


async def new(connection: Connection, params: SessionNewParams) -> SessionState:
    """Make a session and subscribe the caller to it."""
    model = params.model
    opening = Opening(
        cwd=params.cwd,
        session_id=params.session_id,
        name=params.name,
        ephemeral=params.ephemeral,
        parent_session=params.parent_session,
        model=None if model is None else (model.provider, model.model_id),
        thinking_level=params.thinking_level,
        script=params.script,
    )
    host = connection.host
    if params.replaces is None:
        session = await host.new(opening)
    else:
        session = await host.new_replacing(host.session(params.replaces), opening)
    return _state(connection, session, params.follow)


def _state(connection: Connection, session: Session, follow: bool = True) -> SessionState:
    subscription_id = connection.hear(session, follow)
    return SessionState(**connection.state_fields(session, subscription_id))


def _opened(connection: Connection, session: Session, follow: bool = True) -> OpenedState:
    subscription_id = connection.hear(session, follow)
    fields = connection.state_fields(session, subscription_id)
    return OpenedState(**fields, diagnostics=session.diagnostics)


class SessionOpenParams(StoredParams, frozen=True, kw_only=True):
    """A stored session to open; the beginning of an id will do where it is unambiguous."""

    mode: Literal["own", "read"] = "own"
    cwd: str | None = None
    """Run there instead of in the folder the session records; not stored."""
    follow: bool = True


async def open_(connection: Connection, params: SessionOpenParams, meter: Meter) -> OpenedState:
    """Open a stored session and subscribe the caller to it."""
    session = await connection.host.open(params.which, params.mode, params.cwd, meter)
    return _opened(connection, session, params.follow)


class SessionContinueParams(Params, frozen=True, kw_only=True):
    """The most recent session of a folder."""

    cwd: str
    follow: bool = True


async def continue_(connection: Connection, params: SessionContinueParams) -> OpenedState:
    """Open the session of a folder that was active last."""
    listing = await connection.host.store.listing(params.cwd)
    if not listing:
        raise Missing("no_session", "this folder has no session", cwd=params.cwd)
    session = await connection.host.open(listing[0].path)
    return _opened(connection, session, params.follow)


class SessionListParams(Params, frozen=True, kw_only=True):
    """Which sessions to list."""

    cwd: str | None = None
    query: str | None = None
    """Only sessions whose name, first message, folder or id holds this text."""
    sort: Literal["modified", "created", "name"] = "modified"
    cursor: str | None = None
    limit: int = 100


class ListedSession(Result, frozen=True, kw_only=True):
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
                path=str(one.path),
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


def page_start(cursor: str | None) -> int:
    """The place in a list that a cursor of ours names. Raises Invalid `bad_cursor`."""
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 12:
        raise Invalid("bad_cursor", "no cursor of this list", cursor=cursor[:100])
    return int(cursor)


def state(connection: Connection, params: SessionParams) -> msgspec.Raw:
    """An open session as it stands."""
    session = connection.host.session(params.session_id)
    kept = connection.kept_state(session)
    if kept is None:
        subscription_id = connection.subscriptions.existing(session.hub)
        fields = connection.state_fields(session, subscription_id)
        kept = msgspec.Raw(msgspec.json.encode(SessionState(**fields)))
        connection.keep_state(session, kept)
    return kept


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
    """What stands in the place of an entry that is too long."""
    entry = view.tree.entry(row)
    head = {name: entry.object.get(name) for name in ("type", "id", "parentId", "timestamp")}
    return msgspec.Raw(encode(head | {"truncated": True, "bytes": view.stored.length(row)}))


def _stored_object(view: View, row: int, line: bytes) -> msgspec.Raw:
    if not line.isascii():
        try:
            line.decode()
        except UnicodeDecodeError:
            return msgspec.Raw(encode(view.tree.entry(row).object))
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
    start = page_start(params.cursor)
    limit = max(1, min(params.limit, 5000))
    if params.root is None and params.depth is None:
        wanted: Sequence[int] = range(start, min(start + limit, len(view.tree)))
        has_more = start + limit < len(view.tree)
    else:
        # Walked no further than to the page's end, and one more to see whether that is the end.
        below = _below(view.tree, params.root, params.depth)
        found = list(islice(below, start, start + limit + 1))
        wanted, has_more = found[:limit], len(found) > limit
    rows = [row for row in wanted if not view.tree.heads.is_shadowed(row)]
    nodes = fitting(connection, (_node(view, row) for row in rows))
    end = start + len(wanted)
    if len(nodes) < len(rows):
        end, has_more = start + wanted.index(rows[len(nodes)]), True
    return SessionTreeResult(
        nodes=nodes,
        leaf_id=view.tree.id_or_none(view.leaf_row),
        next_cursor=str(end) if has_more else None,
    )


def _below(tree: Tree, root: str | None, depth: int | None) -> Iterator[int]:
    """Rows level by level; a level is known when the one before it was walked."""
    level = list(tree.children(ROOT)) if root is None else [tree.row_of(root)]
    while level:
        yield from level
        if depth is not None:
            depth -= 1
            if depth < 0:
                return
        level = [child for row in level for child in tree.children(row)]


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
        children=len(view.tree.children(row)),
    )


class SessionRenameParams(SessionParams, frozen=True, kw_only=True):
    """A new name; nothing but blanks clears it."""

    name: str


class SessionRenameResult(Result, frozen=True, kw_only=True):
    """The name as it is now."""

    name: str | None


async def rename_(connection: Connection, params: SessionRenameParams) -> SessionRenameResult:
    """Name a session."""
    session = connection.host.session(params.session_id)
    return SessionRenameResult(name=shown_name(await rename(session, params.name)))


class SessionEndParams(SessionParams, frozen=True, kw_only=True):
    """Which session ends, and whether the work tree made for it goes too."""

    remove_worktree: bool = False


class WorktreeOfEnded(Result, frozen=True, kw_only=True):
    """The work tree that was made for a session."""

    path: str
    removed: bool
    reason: str | None = None
    """Why it is still there: not_asked, in_use, commits_would_be_lost, files_would_be_lost, ..."""
    version: str | None = None
    """The version of its files that is kept when they are removed."""


class SessionCloseResult(Result, frozen=True, kw_only=True):
    """It is closed."""

    worktree: WorktreeOfEnded | None = None
    """Only for a session that stood in a work tree made for it."""


async def close(connection: Connection, params: SessionEndParams) -> SessionCloseResult:
    """Stop the run of a session, store it and end its runtime."""
    session = connection.host.session(params.session_id)
    await connection.host.close(session)
    return SessionCloseResult(worktree=await _end_worktree(connection, session.cwd, params))


class SessionDeleteResult(Result, frozen=True, kw_only=True):
    """Where the file lies now."""

    trashed_to: str | None = None
    worktree: WorktreeOfEnded | None = None
    """Only for a session that stood in a work tree made for it."""


async def delete(connection: Connection, params: SessionEndParams) -> SessionDeleteResult:
    """Put a session into the trash; an open one is closed first."""
    live = connection.host.find(params.session_id)
    cwd = None if live is None else live.cwd
    if live is None and params.remove_worktree:
        # Only then is a session nobody opened worth reading.
        cwd = Path((await connection.host.view(params.session_id)).header.cwd)
    trashed = await connection.host.delete(params.session_id)
    return SessionDeleteResult(
        trashed_to=None if trashed is None else str(trashed),
        worktree=None if cwd is None else await _end_worktree(connection, cwd, params),
    )


async def _end_worktree(
    connection: Connection, cwd: Path, params: SessionEndParams
) -> WorktreeOfEnded | None:
    host = connection.host
    ended = await end_worktree(host.around, cwd, host.sessions, params.remove_worktree)
    return None if ended is None else WorktreeOfEnded(**msgspec.structs.asdict(ended))


class SessionImportParams(Params, frozen=True, kw_only=True):
    """A session file from anywhere."""

    path: str
    cwd: str | None = None
    replaces: str | None = None
    follow: bool = True


async def import_(connection: Connection, params: SessionImportParams) -> OpenedState:
    """Copy a session file into the store and open it; the source is untouched."""
    host = connection.host
    replaced = None if params.replaces is None else host.session(params.replaces)
    session = await host.import_file(Path(params.path), params.cwd, replaced)
    return _opened(connection, session, params.follow)


class SessionSwitchParams(SessionParams, frozen=True, kw_only=True):
    """Another stored session to take the place of this one, by id or by path."""

    target_session_id: str | None = None
    path: str | None = None
    cwd: str | None = None
    follow: bool = True


async def switch(connection: Connection, params: SessionSwitchParams) -> OpenedState:
    """Replace the runtime of a session by that of another stored session."""
    if (params.target_session_id is None) == (params.path is None):
        raise Invalid("name_one", "give either targetSessionId or path")
    which = params.target_session_id or Path(str(params.path))
    old = connection.host.session(params.session_id)
    session = await connection.host.switch(old, which, params.cwd)
    return _opened(connection, session, params.follow)


async def reload(connection: Connection, params: SessionParams) -> OpenedState:
    """Replace a runtime by a fresh one of the same session."""
    old = connection.host.session(params.session_id)
    return _opened(connection, await connection.host.relocate(old, None, "reload"))


class SessionRelocateParams(SessionParams, frozen=True, kw_only=True):
    """Another working directory; not stored in the file."""

    cwd: str


async def relocate(connection: Connection, params: SessionRelocateParams) -> OpenedState:
    """Replace a runtime by one of the same session in another folder."""
    old = connection.host.session(params.session_id)
    return _opened(connection, await connection.host.relocate(old, params.cwd, "relocate"))


class Since(msgspec.Struct, frozen=True, rename="camel"):
    """The last event a client has seen."""

    runtime_id: str
    seq: int


class SessionSubscribeParams(SessionParams, frozen=True, kw_only=True):
    """Hear a session's events."""

    follow: bool = False
    """Whether to hear the runtime that replaces this one."""
    since: Since | None = None


class SessionSubscribeResult(Result, frozen=True, kw_only=True):
    """A subscription, and the state it starts from."""

    subscription_id: str
    runtime_id: str
    seq: int
    gap: bool = False
    """True when events after `since` are gone: read entries from `cursor` on."""
    cursor: str | None = None
    """With a gap: what was missed stands after this entry in session/entries; null: all may be."""
    state: SessionState
    pending: list[PendingRequest]
    """Requests to the client that wait for an answer; each is sent again."""


def subscribe(connection: Connection, params: SessionSubscribeParams) -> SessionSubscribeResult:
    """Hear a session's events from now on, or again from a number on."""
    session = connection.host.session(params.session_id)
    hub, since, gap, row = session.hub, None, False, None
    if params.since is not None:
        # What an earlier runtime told after that number is not held here.
        is_this = params.since.runtime_id == hub.runtime_id
        gap = not is_this or hub.since(params.since.seq) is None
        since = None if gap else params.since.seq
        row = session.last_told(params.since.seq) if gap and is_this else None
    subscription_id = connection.subscriptions.add(hub, params.follow, since)
    return SessionSubscribeResult(
        subscription_id=subscription_id,
        runtime_id=hub.runtime_id,
        seq=hub.seq,
        gap=gap,
        cursor=None if row is None else session.tree.id_or_none(row),
        state=SessionState(**connection.state_fields(session, subscription_id)),
        pending=connection.serving.again(session.session_id),
    )


class SessionUnsubscribeParams(Params, frozen=True, kw_only=True):
    """A subscription to end."""

    subscription_id: str


def unsubscribe(connection: Connection, params: SessionUnsubscribeParams) -> Done:
    """Hear no more under a subscription; no run is stopped by that."""
    connection.subscriptions.remove(params.subscription_id)
    return Done()


ANY = ""
"""The beginning of every id."""

METHODS = (
    Method(
        "session/new",
        "Make a session.",
        SessionNewParams,
        SessionState,
        new,
        experimental_fields=("script",),
        brings=lambda params: params.session_id,
    ),
    Method(
        "session/open",
        "Open a stored session.",
        SessionOpenParams,
        OpenedState,
        open_,
        metered=True,
        brings=lambda params: params.session_id or ANY,
    ),
    Method(
        "session/continue",
        "Open the session of a folder that was active last.",
        SessionContinueParams,
        OpenedState,
        continue_,
        brings=lambda _: ANY,
    ),
    Method(
        "session/list",
        "List stored sessions.",
        SessionListParams,
        SessionListResult,
        list_,
        metered=True,
    ),
    Method("session/state", "An open session as it stands.", SessionParams, SessionState, state),
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
    Method("session/rename", "Name it.", SessionRenameParams, SessionRenameResult, rename_),
    Method("session/close", "End its runtime.", SessionEndParams, SessionCloseResult, close),
    Method(
        "session/delete", "Put it into the trash.", SessionEndParams, SessionDeleteResult, delete
    ),
    Method(
        "session/import",
        "Copy a session file into the store and open it.",
        SessionImportParams,
        OpenedState,
        import_,
        brings=lambda _: ANY,
    ),
    Method(
        "session/switch",
        "Replace its runtime by that of another session.",
        SessionSwitchParams,
        OpenedState,
        switch,
        brings=lambda params: params.target_session_id or ANY,
    ),
    Method(
        "session/reload", "Replace its runtime by a fresh one.", SessionParams, OpenedState, reload
    ),
    Method(
        "session/relocate",
        "Replace its runtime by one in another folder.",
        SessionRelocateParams,
        OpenedState,
        relocate,
    ),
    Method(
        "session/subscribe",
        "Hear its events.",
        SessionSubscribeParams,
        SessionSubscribeResult,
        subscribe,
    ),
    Method(
        "session/unsubscribe",
        "Hear its events no more.",
        SessionUnsubscribeParams,
        Done,
        unsubscribe,
    ),
)
