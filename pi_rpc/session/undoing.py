"""Taking a compaction back, append-only: a branch without it that says again what came after."""

import msgspec

from pi_rpc.core.entries import Entry, cursor
from pi_rpc.core.events import Environment, LeafMoved
from pi_rpc.core.undoing import UndoPlan, plan_undo
from pi_rpc.core.versions import FilesAt
from pi_rpc.session.compacting import threshold_of, window_of
from pi_rpc.session.session import Session


class Undone(msgspec.Struct, frozen=True):
    """Where the leaf stands without the compaction."""

    compaction_id: str
    leaf_id: str | None
    copies: dict[str, str]
    """Entries that came after the compaction, and the copy of each on the new branch."""
    tokens: int
    environment: Environment


async def undo_compaction(session: Session) -> Undone:
    """Go back to the context without the last compaction of the path; what came after is kept.

    Raises Missing `no_compaction`, Refused `undo_would_overflow`, Busy during a run or a move.
    """
    with session.acting("undo"):
        session.refuse_unless_writable()
        limit = threshold_of(session) if session.chosen.compaction.enabled else window_of(session)
        plan = plan_undo(session.projection, limit)
        source_id, environment = session.leaf_id, session.environment
        copies = await _record(session, plan, environment)
        if environment.status == "restored":
            # The copies stand for the calls whose marks the folder bears.
            session.standing.files = FilesAt(session.leaf_row)
        visible_id = session.tree.id_or_none(session.tree.visible(session.leaf_row))
        session.tell(LeafMoved(source_id, session.leaf_id, "undo", visible_id, environment))
        session.compaction_held_off_at = None
        return Undone(
            plan.compaction_id,
            session.leaf_id,
            dict(zip(plan.source_ids, (entry.id for entry in copies), strict=True)),
            plan.tokens,
            environment,
        )


async def _record(session: Session, plan: UndoPlan, environment: Environment) -> list[Entry]:
    if not plan.copies and not plan.pins:
        target_id = session.tree.id_or_none(plan.below_row)
        # Only what was found by looking speaks of all that was left behind.
        told = None if session.standing.checked is None else msgspec.to_builtins(environment)
        mark = cursor(target_id, session.leaf_id, target_id, told)
        await session.record(mark, below=plan.below_row, durable=True)
        return []
    if not plan.copies:
        await session.record(*plan.marks(()), below=plan.below_row, durable=True)
        return []
    copies = await session.record(*plan.copies, below=plan.below_row, durable=True)
    marks = plan.marks([entry.id for entry in copies])
    if marks:
        await session.record(*marks, durable=True)
    return copies
