"""Runtimes built: of new sessions, of copies, of what is stored. The host lets them live."""

import re
from pathlib import Path
from typing import Literal

import anyio
import msgspec

from pi_rpc.core.branching import CopyPlan, Position, plan_copy
from pi_rpc.core.entries import Body, Header, model_change, session_info, thinking_level_change
from pi_rpc.core.errors import Invalid, Refused
from pi_rpc.core.hooks import BeforeReplace
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.store import Store, StoredSession
from pi_rpc.core.stamps import stamp_at
from pi_rpc.core.tree import ROOT
from pi_rpc.session.copying import CopyLines, chained, files_of_copy
from pi_rpc.session.folders import folder, folder_of, same_file
from pi_rpc.session.navigating import one_line
from pi_rpc.session.preferring import chosen_for, prefer, preferred_level, preferred_model
from pi_rpc.session.session import Session
from pi_rpc.session.surroundings import Surroundings
from pi_rpc.session.versioning import standing_of_copy
from pi_rpc.session.worktrees import Place, standing_at

SESSION_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""Ids a caller may choose, by the session format."""

SESSION_ID_CHARS_MAX = 128
"""Ids become part of file names."""


class Opening(msgspec.Struct, frozen=True):
    """How a new session starts."""

    cwd: str
    session_id: str | None = None
    name: str | None = None
    ephemeral: bool = False
    parent_session: str | None = None
    model: tuple[str, str] | None = None
    thinking_level: str | None = None
    script: JsonObject | None = None


class Copying(msgspec.Struct, frozen=True):
    """What to copy, and where to."""

    reason: Literal["fork", "clone"]
    entry_id: str | None
    """The entry to copy up to; None is the leaf."""
    position: Position
    cwd: str | None
    """Another folder for the copy; None is the source's."""
    new_session_id: str | None
    activate: bool
    """Whether the copy's runtime replaces the source's."""
    worktree: bool = False
    """Whether it gets a new work tree to stand in, instead of a folder."""

    @property
    def place(self) -> Place:
        """Where the copy shall stand."""
        return Place(self.cwd, self.worktree)

    def foretold(self, source: Session) -> BeforeReplace:
        """What hooks are told of it before."""
        return BeforeReplace(
            reason=self.reason,
            entry_id=self.entry_id or source.leaf_id,
            activates=self.activate,
        )


class Copied(msgspec.Struct, frozen=True):
    """A fork or clone."""

    session: Session
    draft: str | None


class Builder:
    """Makes runtimes, and the stored sessions that are new with them."""

    def __init__(self, store: Store, around: Surroundings) -> None:
        self._store = store
        self._around = around

    async def new(self, opening: Opening) -> Session:
        """Of a new session, stored at once. Raises as `Host.new` does."""
        cwd = folder(opening.cwd)
        if opening.model is not None:
            self._around.models.provider_of(*opening.model)
        if opening.script is not None:
            self._around.models.check_script(opening.script)
        header = self._header(opening.session_id, str(cwd), opening.parent_session)
        now = await chosen_for(self._around.preferences, cwd)
        models = self._around.models
        model = opening.model or preferred_model(now, models, models.default())
        bodies: list[Body] = [] if model is None else [model_change(*model)]
        level = opening.thinking_level or preferred_level(now, models, model)
        bodies.append(thinking_level_change(level))
        if opening.name:
            bodies.append(session_info(one_line(opening.name)))
        # Stored together with the header: a session is there whole or not at all.
        lines = chained(bodies, self._around.ids, header.timestamp)
        stored = await self._store.create(
            header,
            lines,
            ephemeral=opening.ephemeral,
            known_unique=opening.session_id is None,
        )
        session = await self.runtime(stored, cwd)
        session.chosen.script = opening.script
        return session

    async def copy(self, source: Session, plan: CopyPlan, copying: Copying) -> Session:
        """Of a fork or clone."""
        async with standing_at(source, copying.place, plan.leaf_row) as cwd:
            return await self._copy_at(cwd, source, plan, copying.new_session_id)

    async def _copy_at(
        self, cwd: Path, source: Session, plan: CopyPlan, new_session_id: str | None
    ) -> Session:
        header = self._header(new_session_id, str(cwd), _path_text(source.stored))
        copied = CopyLines(source, header.timestamp)
        copied.add_plan(plan)
        standing = await standing_of_copy(source, plan.leaf_row, cwd)
        if standing is not None and "external" in standing.environment.scopes:
            copied.add_cursor(standing.environment)
        ephemeral = source.stored.path is None
        stored = await self._store.create(
            header,
            copied.lines,
            source.stored,
            ephemeral,
            known_unique=new_session_id is None,
        )
        session = await self.runtime(stored, cwd)
        source.chosen.hand_to_copy(session.chosen)
        session.standing.files = files_of_copy(source, plan, session.leaf_row, cwd)
        if standing is not None:
            session.standing.checked = standing.environment
            session.standing.abandoned = standing.abandoned
        return session

    async def imported(self, path: Path, cwd: str | None) -> Session:
        """Of a session file from anywhere. Raises as `Host.import_file` does."""
        stored = await self._store.adopt(path, cwd or "")
        try:
            where = folder_of(stored, "own", cwd)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await stored.close()
                if stored.path is not None and not same_file(stored.path, path):
                    await self._store.delete(stored.header.session_id)
            raise
        return await self.runtime(stored, where)

    async def runtime(self, stored: StoredSession, cwd: Path) -> Session:
        """Of what is stored, which is closed again when that fails."""
        try:
            session = self._bare(stored, cwd)
            session.diagnostics += await prefer(session)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await stored.close()
            raise
        return session

    async def again(self, old: Session, where: Path) -> Session:
        """Of a session that has one, in the same folder or another, with all that was chosen."""
        session = self._bare(old.stored, where)
        session.chosen = old.chosen.taken_along()
        session.queues = old.queues
        session.diagnostics += await prefer(session)
        session.history.stand_at(old.leaf_row)
        session.standing.abandoned = old.standing.abandoned
        if where == old.cwd:
            session.standing.files = old.standing.files
        return session

    def _bare(self, stored: StoredSession, cwd: Path) -> Session:
        return Session(stored, cwd, self._around.ids.unique_id(), self._around)

    def _header(self, session_id: str | None, cwd: str, parent_session: str | None) -> Header:
        if session_id is not None:
            _refuse_bad_session_id(session_id)
        now = stamp_at(self._around.clock.now_ms())
        return Header(session_id or self._around.ids.unique_id(), now, cwd, parent_session)


def plan_of(source: Session, copying: Copying) -> CopyPlan:
    """What a copy takes over. Raises Missing `entry_not_found`, Refused `nothing_to_copy`."""
    entry_id = copying.entry_id
    row = source.leaf_row if entry_id is None else source.tree.row_of(entry_id)
    if row == ROOT:
        raise Refused("nothing_to_copy", "the session has no entry to copy up to")
    return plan_copy(source.tree, row, copying.position, source.session_id)


def _refuse_bad_session_id(session_id: str) -> None:
    if len(session_id) > SESSION_ID_CHARS_MAX or not SESSION_ID.fullmatch(session_id):
        raise Invalid(
            "bad_session_id",
            "an id is letters and digits, with dots, dashes and underscores between them",
            sessionId=session_id[:SESSION_ID_CHARS_MAX],
        )


def _path_text(stored: StoredSession) -> str | None:
    return None if stored.path is None else str(stored.path)
