"""Leaf and files: how they stand to each other after every move, and states named on request.

Promises
- Nothing is written by merely looking.
- No verdict claims more than was checked: where a state cannot be named it says why.
"""

import msgspec

from pi_rpc.core.bindings import At, binding_body, effects_body
from pi_rpc.core.consultations import AddedMessage
from pi_rpc.core.entries import Body, cursor, note_taken
from pi_rpc.core.errors import Failure, Refused
from pi_rpc.core.events import Environment, ScopeVerdict, WorkspaceDrifted
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports import LeftRunning, Snapshot, Workspace
from pi_rpc.core.versions import (
    Abandoned,
    abandoned_at_opening,
    abandoned_calls,
    drift_note,
    environment_with,
    outside_verdict,
    verdict,
)
from pi_rpc.session.session import Session

SESSION_VARIABLE = "PI_SESSION_ID"
"""By this variable a command knows which session runs it, and so do all it starts."""


async def still_running(session: Session) -> list[LeftRunning] | None:
    """Processes of this session's commands; None where that cannot be known."""
    if session.around.find_running is None:
        return None
    return await session.around.find_running(SESSION_VARIABLE, session.session_id)


async def verdict_at(
    session: Session,
    leaf_row: int,
    abandoned: Abandoned,
    copy: Session | None = None,
    by: str | None = None,
) -> Environment:
    """How the world stands against a leaf of this session, after a fresh look at the files.

    With a copy, how that one's folder stands. Raises nothing the folder can cause.
    """
    seen = copy or session
    workspace = seen.workspace
    fallback = verdict(seen.tree, seen.files, leaf_row if copy is None else copy.leaf_row)
    if workspace is None:
        return fallback
    outside, effects = outside_verdict(session.tree, session.bindings, leaf_row, abandoned)
    if workspace.kind == "none":
        # Nobody compares files here, so any call counts as unseen already.
        files = await _why_unknown(workspace, fallback.scopes["files"])
        recorded = [effect for effect in effects if "kind" in effect]
        told = [*recorded, *fallback.abandoned_effects]
        return environment_with(files, outside if recorded else None, told)
    found, drift = await _files_verdict(session, leaf_row, workspace, by)
    files = found or await _why_unknown(workspace, fallback.scopes["files"])
    return environment_with(files, outside, effects, drift)


async def _files_verdict(
    session: Session, leaf_row: int, workspace: Workspace, by: str | None
) -> tuple[ScopeVerdict | None, list[JsonObject]]:
    """None when no version is bound to the leaf."""
    bound = session.bindings.of_leaf(leaf_row)
    if bound is None or bound.version is None:
        return None, []
    expected = bound.version
    try:
        actual = (await workspace.snapshot()).version
    except Failure as failure:
        return ScopeVerdict("unknown", failure.reason, expected=expected), []
    if actual == expected:
        return ScopeVerdict("restored", "equal", expected, actual, by), []
    drift: list[JsonObject] = []
    try:
        changes = await workspace.compare(expected, actual)
        drift = [{"path": change.path, "change": change.change} for change in changes]
    except Failure:
        # The names differ, so the files do; which ones only a store that has both could say.
        drift = []
    return ScopeVerdict("not_restored", "differs", expected, actual), drift


async def _why_unknown(workspace: Workspace, files: ScopeVerdict) -> ScopeVerdict:
    if files.reason != "no_versions":
        return files
    if workspace.kind != "none":
        return ScopeVerdict("unknown", "not_bound")
    try:
        await workspace.snapshot()
    except Failure as failure:
        return ScopeVerdict("unknown", failure.reason)
    return files


async def check(session: Session) -> Environment:
    """Look again how the world stands to the leaf; changes nothing."""
    environment = await verdict_at(session, session.leaf_row, session.abandoned)
    if session.workspace is not None:
        session.checked = environment
        if environment.status == "restored":
            session.has_drifted = False
    return environment


async def check_opened(session: Session) -> None:
    """The first look of a runtime, where its file says anything of the world at all."""
    if session.workspace is None:
        return
    if not session.abandoned:
        session.abandoned = abandoned_at_opening(session.tree, session.bindings)
    if session.abandoned or session.bindings.all():
        await check(session)
        tell_drift(session)


async def check_copy(source: Session, copy: Session, leaf_row: int) -> None:
    """The first look of a fork or clone, which was copied up to this row of its open source."""
    if copy.workspace is None:
        return
    abandoned = departed(source, leaf_row)
    on_path = set(source.tree.upward(leaf_row))
    for effect in source.bindings.effects():
        if effect.row not in on_path:
            entry_id = source.tree.heads.id_of(effect.row)
            abandoned[entry_id] = effect.as_object(entry_id)
    copy.checked = await verdict_at(source, leaf_row, abandoned, copy)
    copy.abandoned = abandoned
    if "external" in copy.checked.scopes:
        # Its file must tell whoever opens it next; what it was copied from may be gone by then.
        told = msgspec.to_builtins(copy.checked)
        await copy.record(cursor(copy.leaf_id, None, copy.leaf_id, told), durable=True)


def tell_drift(session: Session) -> None:
    """Say after a move that the world may not have gone along."""
    environment = session.checked
    if session.workspace is None or environment is None:
        return
    session.has_drifted = session.is_drift_untold = environment.status != "restored"
    if session.has_drifted:
        session.tell(WorkspaceDrifted(environment))


async def note_for_model(session: Session) -> AddedMessage | None:
    """What the model is told of a drift it was not told of yet, where the user wants it told."""
    if not (session.around.tells_drift and session.is_drift_untold):
        return None
    session.is_drift_untold = False
    return drift_note(await check(session))


async def acknowledge(session: Session) -> None:
    """Somebody took note of how things stand, and of the calls nobody can see the traces of.

    Raises Busy during a move, and what the store does; then nobody took note.
    """
    session.refuse_if_moving()
    await forget_abandoned(session)
    session.has_drifted = False
    session.checked = None


async def forget_abandoned(session: Session) -> None:
    """Somebody took note of what was done on routes that were left; whoever opens it next too."""
    if session.abandoned and session.stored.writable:
        await session.record(note_taken(), durable=True)
    session.abandoned = {}


def departed(session: Session, leaf_row: int) -> dict[str, JsonObject]:
    """What will have been left when the leaf goes there."""
    left = abandoned_calls(session.tree, session.bindings, session.leaf_row, leaf_row)
    return {**session.abandoned, **left}


async def take_snapshot(session: Session) -> tuple[str, Snapshot]:
    """Name the state of the files and bind it to the leaf; the new entry's id.

    Raises Busy, Locked, and what the workspace does.
    """
    with session.acting("snapshot"):
        session.refuse_unless_writable()
        workspace = workspace_of(session)
        taken = await workspace.snapshot()
        session.has_no_versions = False
        [entry] = await session.record(
            snapshot_body(session, "manual", session.leaf_row, taken), durable=True
        )
        await check(session)
        return entry.id, taken


async def record_effect(session: Session, effect: JsonObject) -> str:
    """Write down what was done beyond the files; the entry's id. Raises Busy, Locked."""
    session.refuse_if_moving()
    session.refuse_unless_writable()
    [entry] = await session.record(effects_body([effect]), durable=True)
    session.checked = None
    return entry.id


def workspace_of(session: Session) -> Workspace:
    """The states of the session's folder. Raises Refused `no_versions` where none are kept."""
    if session.workspace is None:
        raise Refused("no_versions", "this daemon keeps no versions of files")
    return session.workspace


def snapshot_body(session: Session, at: At, described_row: int, taken: Snapshot) -> Body:
    assert session.workspace is not None, "somebody took the snapshot"
    left_out = [msgspec.to_builtins(one) for one in taken.left_out]
    described = session.tree.id_or_none(described_row)
    return binding_body(at, described, session.workspace.kind, taken.version, left_out)


def bound_version(session: Session, leaf_row: int) -> str:
    """The version bound to a leaf. Raises Refused `not_bound`."""
    bound = session.bindings.of_leaf(leaf_row)
    if bound is None or bound.version is None:
        raise Refused(
            "not_bound",
            "no version of the files is bound to this entry",
            entryId=session.tree.id_or_none(leaf_row),
        )
    return bound.version
