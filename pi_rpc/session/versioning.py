"""Leaf and files: how they stand to each other after every move, and states named on request.

Promises
- Nothing is written by merely looking.
- No verdict claims more than was checked: where a state cannot be named it says why.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from pi_rpc.core.bindings import At, Binding, binding_body, effects_body
from pi_rpc.core.entries import AddedMessage, Body, note_taken
from pi_rpc.core.errors import Failure, Overfull, Refused
from pi_rpc.core.events import Environment, ScopeVerdict, WorkspaceDrifted
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.tools import LeftRunning
from pi_rpc.core.ports.workspace import Snapshot, Workspace
from pi_rpc.core.versions import (
    Abandoned,
    abandoned_at_opening,
    abandoned_calls,
    drift_note,
    environment_of,
    environment_with,
    outside_verdict,
    verdict,
    with_offered,
)
from pi_rpc.session.checkpointing import States, scope_verdicts
from pi_rpc.session.moments import in_moments
from pi_rpc.session.session import Session

EFFECTS_WAITING_MAX = 1000
"""How many effects may wait to be written."""

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
    folder: Path | None = None,
    *,
    by: Mapping[str, str] = {},
    states: States | None = None,
) -> Environment:
    """How the world stands against a leaf of this session, after a fresh look at it.

    `folder`: another than the session's. `by`: what brought a scope where it is. `states`: what
    was just said of scopes. Raises nothing the folder or a provider can cause.
    """
    environment = await _own_verdict(session, leaf_row, abandoned, folder, by.get("files"))
    return with_offered(environment, await scope_verdicts(session, leaf_row, states, by))


async def _own_verdict(
    session: Session, leaf_row: int, abandoned: Abandoned, folder: Path | None, by: str | None
) -> Environment:
    workspace, fallback = session.workspace, verdict(session.tree, session.standing.files, leaf_row)
    if folder is not None and folder != session.cwd:
        workspaces = session.around.workspaces
        workspace = None if workspaces is None else workspaces.of(folder)
        fallback = environment_of(ScopeVerdict("unknown", "not_watched"))
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
    if kept_by(expected) != kept_by(actual):
        # Named in two ways: the names tell nothing of the files.
        return ScopeVerdict("unknown", "other_kind", expected, actual), []
    try:
        beside = elsewhere(session, workspace, bound)
        changes = await workspace.compare(expected, actual, beside=beside)
        drift = [{"path": change.path, "change": change.change} for change in changes]
    except Failure:
        # The names differ, so the files do; which ones only a store that has both could say.
        return ScopeVerdict("not_restored", "differs_unlisted", expected, actual), []
    return ScopeVerdict("not_restored", "differs", expected, actual), drift


def elsewhere(session: Session, workspace: Workspace, bound: Binding) -> Workspace | None:
    """The states of the folder that a version was named in, where that is another one."""
    workspaces = session.around.workspaces
    if workspaces is None or bound.folder is None:
        return None
    named_in = workspaces.of(Path(bound.folder))
    return None if named_in is workspace else named_in


def kept_by(version: str) -> str:
    """What a version is kept by, as its name tells."""
    return version.partition(":")[0]


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
    environment = await verdict_at(session, session.leaf_row, session.standing.abandoned)
    if session.workspace is not None:
        session.standing.checked = environment
        if environment.status == "restored":
            session.standing.has_drifted = False
    return environment


async def check_opened(session: Session) -> None:
    """The first look of a runtime, where its file says anything of the world at all."""
    if session.workspace is None:
        return
    if not session.standing.abandoned:
        session.standing.abandoned = abandoned_at_opening(session.tree, session.bindings)
    if session.standing.abandoned or session.bindings.all():
        await check(session)
        tell_drift(session)


class CopyStanding(msgspec.Struct, frozen=True):
    """How the world will stand to a copy, and what was done off its path."""

    environment: Environment
    abandoned: dict[str, JsonObject]


async def standing_of_copy(source: Session, leaf_row: int, folder: Path) -> CopyStanding | None:
    """The first look of a fork or clone up to this row, before it is made; None without versions.

    Its file must tell of the world beyond the files to whoever opens it next: what it was copied
    from may be gone by then.
    """
    if source.around.workspaces is None:
        return None
    abandoned = await departed(source, leaf_row)
    effects = source.bindings.effects()
    on_path = source.tree.those_on_path({effect.row for effect in effects}, leaf_row)
    for effect in effects:
        if effect.row not in on_path:
            entry_id = source.tree.heads.id_of(effect.row)
            abandoned[entry_id] = effect.as_object(entry_id)
    return CopyStanding(await verdict_at(source, leaf_row, abandoned, folder), abandoned)


def tell_drift(session: Session) -> None:
    """Say after a move that the world may not have gone along."""
    environment = session.standing.checked
    if session.workspace is None or environment is None:
        return
    drifted = environment.status != "restored"
    session.standing.has_drifted = session.standing.is_drift_untold = drifted
    if drifted:
        session.tell(WorkspaceDrifted(environment))


async def note_for_model(session: Session) -> AddedMessage | None:
    """What the model is told of a drift it was not told of yet, where the user wants it told."""
    if not (session.around.tells_drift and session.standing.is_drift_untold):
        return None
    session.standing.is_drift_untold = False
    return drift_note(await check(session))


async def acknowledge(session: Session) -> None:
    """Somebody took note of how things stand, and of the calls nobody can see the traces of.

    Raises Busy during a move, and what the store does; then nobody took note.
    """
    session.refuse_if_moving()
    await forget_abandoned(session)
    session.standing.has_drifted = False
    session.standing.checked = None


async def forget_abandoned(session: Session) -> None:
    """Somebody took note of what was done on routes that were left; whoever opens it next too."""
    if session.standing.abandoned and session.stored.writable:
        await session.record(note_taken(), durable=True)
    session.standing.abandoned = {}


async def departed(session: Session, leaf_row: int) -> dict[str, JsonObject]:
    """What will have been left when the leaf goes there."""
    tree, bindings = session.tree, session.bindings
    left = await in_moments(abandoned_calls(tree, bindings, session.leaf_row, leaf_row))
    return {**session.standing.abandoned, **left}


async def take_snapshot(session: Session) -> tuple[str, Snapshot]:
    """Name the state of the files and bind it to the leaf; the new entry's id.

    Raises Busy, Locked, and what the workspace does.
    """
    with session.acting("snapshot"):
        session.refuse_unless_writable()
        workspace = workspace_of(session)
        taken = await workspace.snapshot(again=True)
        session.standing.is_too_much_told = False
        [entry] = await session.record(
            snapshot_body(session, "manual", session.leaf_row, taken), durable=True
        )
        await check(session)
        return entry.id, taken


async def record_effect(session: Session, effect: JsonObject) -> str | None:
    """Write down what was done beyond the files; the entry's id.

    None during a run, whose calls may wait for their results: then it is written as soon as they
    have them. Raises Busy, Locked, Overfull `too_many_effects`.
    """
    session.refuse_if_moving()
    session.refuse_unless_writable()
    waiting = session.standing.effects
    if len(waiting) >= EFFECTS_WAITING_MAX:
        raise Overfull("too_many_effects", "too many effects wait", limit=EFFECTS_WAITING_MAX)
    waiting.append(effect)
    if session.run is not None:
        return None
    try:
        return await record_waiting_effects(session)
    except BaseException:
        session.standing.effects.remove(effect)
        raise


async def record_waiting_effects(session: Session) -> str | None:
    """Write them now that no call waits for its result; the entry's id, None for none."""
    # Taken before the first wait, so that two who write at once do not write the same.
    taken, session.standing.effects = session.standing.effects, []
    if not taken:
        return None
    try:
        [entry] = await session.record(effects_body(taken), durable=True)
    except BaseException:
        session.standing.effects[:0] = taken
        raise
    session.standing.checked = None
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
    folder = str(session.cwd)
    return binding_body(
        at, described, session.workspace.kind, taken.version, left_out, folder=folder
    )


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
