"""Sessions: made, opened, named, replaced, closed."""

from pathlib import Path
from typing import Literal

import msgspec

from pi_rpc.core.errors import Invalid, Missing
from pi_rpc.core.meter import Meter
from pi_rpc.frontends.native.connection import Connection, shown_name
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import (
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
from pi_rpc.session.building import Opening
from pi_rpc.session.navigating import rename
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
    session = await connection.host.open(Path(listing[0].file))
    return _opened(connection, session, params.follow)


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
)
