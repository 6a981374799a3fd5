"""Files brought back to a version, because somebody asked for it and only then.

Promises
- The state before is named first, and can be gone back to.
- What will be changed is written down before it is, so that a crash in the middle can be told.
"""

import logging
from collections.abc import Mapping, Sequence

import anyio
import msgspec

from pi_rpc.core.bindings import CHANGES_STORED_MAX, Binding, Change, binding_body, restored_body
from pi_rpc.core.entries import Body
from pi_rpc.core.errors import Failure
from pi_rpc.core.events import Environment, WorkspaceRestored
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.workspace import Snapshot, Workspace
from pi_rpc.core.restoring import Denied, Own, OwnChanges, RestorePlan, own_changes, plan_restore
from pi_rpc.core.scopes import ScopeRestored
from pi_rpc.session.checkpointing import bound_scopes, restore_scopes
from pi_rpc.session.session import Session
from pi_rpc.session.versioning import (
    bound_version,
    elsewhere,
    forget_abandoned,
    verdict_at,
    workspace_of,
)

log = logging.getLogger(__name__)

PATHS_TOLD_MAX = 1000
"""How many restored paths one event names."""


class Restoring(msgspec.Struct, frozen=True):
    """What a restore is to do."""

    version: str | None = None
    leaf_id: str | None = None
    """Take the version bound to this entry; neither is the session's leaf."""
    paths: Sequence[str] | None = None
    """Only these, and what lies below them; also what this session did not change."""
    confirmed: Sequence[str] = ()
    """Paths to restore although somebody changed them since."""
    dry_run: bool = False
    scopes: Mapping[str, str] | None = None
    """Versions that scopes of providers are to go to, and the files only if they are named too.

    None is each one's at the leaf, unless a version of the files or paths are named.
    """


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a restore."""

    environment: Environment
    version: str | None = None
    """None where only scopes were meant."""
    safety_version: str | None = None
    restored: Sequence[str] = ()
    refused: Sequence[Denied] = ()
    left: Sequence[Denied] = ()
    scopes: Mapping[str, ScopeRestored] = {}

    @property
    def by(self) -> dict[str, str]:
        """What brought which scope where it is."""
        moved = [name for name, one in self.scopes.items() if one.reason == "restored"]
        return dict.fromkeys([*moved, *(["files"] if self.restored else [])], "restore")


async def restore(session: Session, asked: Restoring) -> Restored:
    """Bring files and scopes back to a version, or only say what would be done.

    Raises Busy, Locked, Missing `version_not_found` or `entry_not_found`, Refused `not_bound`, and
    what the workspace does; then nothing was touched.
    """
    with session.acting("restore"):
        session.refuse_unless_writable()
        leaf_row = session.leaf_row
        row = leaf_row if asked.leaf_id is None else session.tree.row_of(asked.leaf_id)
        scopes = _scopes_meant(session, asked, row)
        version = _version_meant(session, asked, row, bool(scopes))
        with anyio.CancelScope(shield=True):
            done = Restored(environment=session.environment)
            if version is not None:
                done = await _restored(session, version, asked)
            gone = await restore_scopes(session, scopes, dry_run=asked.dry_run)
            done = msgspec.structs.replace(done, scopes=gone)
            if not asked.dry_run and not done.refused:
                # Whoever asks for the files back has seen what else was on that route.
                await forget_abandoned(session)
            by = {} if asked.dry_run else done.by
            environment = await verdict_at(session, leaf_row, session.standing.abandoned, by=by)
            done = msgspec.structs.replace(done, environment=environment)
        if not asked.dry_run:
            session.standing.checked = environment
            session.standing.has_drifted &= environment.status != "restored"
            _tell_restored(session, done)
        return done


def _scopes_meant(session: Session, asked: Restoring, row: int) -> dict[str, str]:
    if asked.scopes is not None:
        return {**asked.scopes}
    if asked.version is not None or asked.paths is not None:
        return {}
    return _bound(session, row)


def _bound(session: Session, row: int) -> dict[str, str]:
    bound = bound_scopes(session, row)
    return {scope: version for scope, version in bound.items() if version is not None}


def _version_meant(session: Session, asked: Restoring, row: int, has_scopes: bool) -> str | None:
    if asked.version is not None:
        return asked.version
    are_files_named = asked.leaf_id is not None or asked.paths is not None
    if asked.scopes is not None and not are_files_named:
        return None
    if has_scopes and asked.paths is None and session.bindings.of_leaf(row) is None:
        return None
    return bound_version(session, row)


async def restore_for_move(
    session: Session, leaf_row: int, abandoned: dict[str, JsonObject]
) -> Environment:
    """Try to bring the files to where the leaf is about to go, and say how they stand then.

    Whatever fails leaves the move as it is: the verdict tells.
    """
    done = Restored(environment=session.environment)
    with anyio.CancelScope(shield=True):
        if session.workspace is not None and session.bindings.of_leaf(leaf_row) is not None:
            try:
                done = await _restored(session, bound_version(session, leaf_row), Restoring())
                if not done.refused:
                    abandoned.clear()
            except Failure as failure:
                log.info("the files of %s stay: %s", session.session_id, failure)
        gone = await restore_scopes(session, _bound(session, leaf_row))
    done = msgspec.structs.replace(done, scopes=gone)
    if done.by:
        _tell_restored(session, done)
    return await verdict_at(session, leaf_row, abandoned, by=done.by)


async def _restored(session: Session, version: str, asked: Restoring) -> Restored:
    workspace = workspace_of(session)
    safety = await workspace.snapshot()
    await _fetch(session, workspace, version)
    changes = await workspace.compare(safety.version, version)
    own = await _own(session, workspace)
    paths = None if asked.paths is None else set(asked.paths)
    plan = plan_restore(changes, own, paths, set(asked.confirmed))
    denied: dict[str, str] = {}
    if not asked.dry_run and plan.restore:
        # Written first: after a crash in the middle these changes are known to be this session's.
        await session.record(*_restore_bodies(session, version, safety, plan), durable=True)
        denied = await workspace.restore(plan.restore)
        await session.record(restored_body(sorted(denied)), durable=True)
    return Restored(
        version=version,
        safety_version=safety.version,
        restored=[one.path for one in plan.restore if one.path not in denied],
        refused=[*plan.refused, *(Denied(path, reason) for path, reason in denied.items())],
        left=plan.left,
        environment=session.environment,
    )


def _restore_bodies(
    session: Session, version: str, safety: Snapshot, plan: RestorePlan
) -> list[Body]:
    assert session.workspace is not None, "a plan was made for it"
    changes = [(one.path, one.before, one.after) for one in plan.restore]
    return [
        binding_body(
            "restore",
            session.leaf_id,
            session.workspace.kind,
            version,
            before=safety.version,
            changes=changes[start : start + CHANGES_STORED_MAX],
            folder=str(session.cwd),
        )
        for start in range(0, len(changes), CHANGES_STORED_MAX)
    ]


async def _fetch(session: Session, workspace: Workspace, version: str) -> None:
    """Keep a version here that was named in another folder."""
    for bound in session.bindings.all():
        there = elsewhere(session, workspace, bound) if bound.version == version else None
        if there is not None:
            await workspace.fetch(there, version)
            return


async def _own(session: Session, workspace: Workspace) -> dict[str, Own]:
    """What this session did to the files of its folder."""
    bindings = [one for one in session.bindings.all() if _is_here(session, workspace, one)]
    if not any(binding.more for binding in bindings):
        return own_changes(bindings)
    own = OwnChanges()
    for binding in bindings:
        own.learn(binding, await _all_changes(binding, workspace))
    return own.paths


def _is_here(session: Session, workspace: Workspace, bound: Binding) -> bool:
    # In a work tree that was made for it everything is there because of the session.
    worktrees = session.around.worktrees
    if worktrees is not None and worktrees.top_of(session.cwd) is not None:
        return True
    return elsewhere(session, workspace, bound) is None


async def _all_changes(binding: Binding, workspace: Workspace) -> Sequence[Change]:
    if not binding.more or binding.before is None or binding.version is None:
        return binding.changes
    changes = await workspace.compare(binding.before, binding.version)
    return [(one.path, one.before, one.after) for one in changes]


def _tell_restored(session: Session, done: Restored) -> None:
    session.tell(
        WorkspaceRestored(
            done.version,
            done.safety_version,
            list(done.restored[:PATHS_TOLD_MAX]),
            len(done.restored),
            done.environment,
        )
    )
