"""Files brought back to a version, because somebody asked for it and only then.

Promises
- The state before is named first, and can be gone back to.
- What will be changed is written down before it is, so that a crash in the middle can be told.
"""

from collections.abc import Sequence

import anyio
import msgspec

from pi_rpc.core.bindings import CHANGES_STORED_MAX, Binding, Change, binding_body, restored_body
from pi_rpc.core.entries import Body
from pi_rpc.core.errors import Failure
from pi_rpc.core.events import Environment, WorkspaceRestored
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports import Snapshot, Workspace
from pi_rpc.core.restoring import Denied, Own, OwnChanges, RestorePlan, own_changes, plan_restore
from pi_rpc.session.session import Session
from pi_rpc.session.versioning import (
    bound_version,
    forget_abandoned,
    verdict_at,
    workspace_of,
)

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


class Restored(msgspec.Struct, frozen=True):
    """What came of a restore."""

    version: str
    safety_version: str
    restored: Sequence[str]
    refused: Sequence[Denied]
    left: Sequence[Denied]
    environment: Environment


async def restore(session: Session, asked: Restoring) -> Restored:
    """Bring files back to a version, or only say what would be done.

    Raises Busy, Locked, Missing `version_not_found` or `entry_not_found`, Refused `not_bound`, and
    what the workspace does; then nothing was touched.
    """
    with session.acting("restore"):
        session.refuse_unless_writable()
        leaf_row = session.leaf_row
        version = asked.version
        if version is None:
            row = leaf_row if asked.leaf_id is None else session.tree.row_of(asked.leaf_id)
            version = bound_version(session, row)
        with anyio.CancelScope(shield=True):
            done = await _restored(session, version, asked)
            if not asked.dry_run and not done.refused:
                # Whoever asks for the files back has seen what else was on that route.
                await forget_abandoned(session)
            by = "restore" if done.restored and not asked.dry_run else None
            environment = await verdict_at(session, leaf_row, session.abandoned, by=by)
            done = msgspec.structs.replace(done, environment=environment)
        if not asked.dry_run:
            session.checked = environment
            session.has_drifted = session.has_drifted and environment.status != "restored"
            _tell_restored(session, done)
        return done


async def restore_for_move(
    session: Session, leaf_row: int, abandoned: dict[str, JsonObject]
) -> Environment:
    """Try to bring the files to where the leaf is about to go, and say how they stand then.

    Whatever fails leaves the move as it is: the verdict tells.
    """
    by = None
    if session.workspace is not None and session.bindings.of_leaf(leaf_row) is not None:
        try:
            with anyio.CancelScope(shield=True):
                done = await _restored(session, bound_version(session, leaf_row), Restoring())
            if done.restored:
                by = "restore"
                _tell_restored(session, done)
            if not done.refused:
                abandoned.clear()
        except Failure:
            by = None
    return await verdict_at(session, leaf_row, abandoned, by=by)


async def _restored(session: Session, version: str, asked: Restoring) -> Restored:
    workspace = workspace_of(session)
    safety = await workspace.snapshot()
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
        )
        for start in range(0, len(changes), CHANGES_STORED_MAX)
    ]


async def _own(session: Session, workspace: Workspace) -> dict[str, Own]:
    bindings = session.bindings.all()
    if not any(binding.more for binding in bindings):
        return own_changes(bindings)
    own = OwnChanges()
    for binding in bindings:
        own.learn(binding, await _all_changes(binding, workspace))
    return own.paths


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
