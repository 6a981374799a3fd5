"""Moving the leaf inside its session, and labels and edits that hang on a place in the tree.

A move is durable before it is reported: without its mark on the disk the move did not happen.
"""

from typing import Literal

import msgspec

from pi_rpc.core.branches import segment
from pi_rpc.core.branching import NavigationPlan, plan_navigation
from pi_rpc.core.context_edits import plan_context_edit
from pi_rpc.core.entries import Body, Entry, cursor, label, session_info
from pi_rpc.core.errors import Invalid
from pi_rpc.core.events import Environment, LabelChanged, LeafMoved, SessionRenamed
from pi_rpc.core.hooks import BeforeTree
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.tree import ROOT
from pi_rpc.session.checkpointing import bind_left
from pi_rpc.session.hooking import ask_before_tree
from pi_rpc.session.restoring import restore_for_move
from pi_rpc.session.session import Session
from pi_rpc.session.summarising import SummaryWish, branch_summary
from pi_rpc.session.versioning import (
    check,
    departed,
    tell_drift,
    verdict_at,
)

Restore = Literal["none", "try"]
SummaryMade = Literal["none", "made", "empty"]
"""`none`: not asked for. `empty`: nothing was said on what was left, so there is no entry."""


class Navigated(msgspec.Struct, frozen=True):
    """Where a navigation ended."""

    leaf_id: str | None
    draft: str | None
    environment: Environment
    summary_id: str | None = None
    """The summary of what was left."""
    summary: SummaryMade = "none"


async def navigate(
    session: Session,
    target_id: str | None,
    label_text: str | None = None,
    wish: SummaryWish | None = None,
    restore: Restore = "none",
) -> Navigated:
    """Move the leaf to `target_id`, or above it where the user spoke; None is before all.

    With a wish, what is left is summarised first and the summary hangs below the new leaf. Raises
    Busy while a run or another move holds the session, Missing `entry_not_found`, and what
    `branch_summary` does; then the leaf is where it was.
    """
    session.refuse_unless_quiet()
    session.refuse_unless_writable()
    given = None
    if session.tree.row_or_root(target_id) != session.leaf_row:
        wish, label_text, given = await _as_hooks_want(session, target_id, label_text, wish)
    with session.acting("navigate"):
        tree = session.tree
        target_row = tree.row_or_root(target_id)
        if target_row == session.leaf_row:
            return Navigated(session.leaf_id, None, await check(session))
        plan = plan_navigation(tree, target_row)
        source_id = session.leaf_id
        if wish is not None:
            ancestor = tree.common_ancestor(session.leaf_row, target_row)
            with session.summarising() as live:
                left = await branch_summary(
                    session, session.leaf_row, ancestor, wish, live.stop, given=given
                )
            if left is not None:
                environment = await _prepared(session, plan, restore)
                mark = _mark(session, plan, target_id, environment)
                bodies = [*_told_of_world(session, mark), left]
                return await _go_with_summary(session, plan, bodies, label_text, environment)
        environment = await _prepared(session, plan, restore)
        if plan.leaf_row != session.leaf_row or label_text:
            mark = _mark(session, plan, target_id, environment)
            marks = [mark]
            if label_text and target_id is not None:
                # A label hangs below the new leaf and so makes the move durable by itself.
                marks = [*_told_of_world(session, mark), label(target_id, label_text)]
            await session.record(*marks, below=plan.leaf_row, durable=True)
            session.tell(
                LeafMoved(
                    source_id,
                    session.leaf_id,
                    "navigate",
                    tree.id_or_none(tree.visible(session.leaf_row)),
                    environment,
                )
            )
            if label_text and target_id is not None:
                session.tell(LabelChanged(target_id, label_text))
            tell_drift(session)
        made: SummaryMade = "none" if wish is None else "empty"
        return Navigated(session.leaf_id, plan.draft, environment, summary=made)


async def _as_hooks_want(
    session: Session, target_id: str | None, label_text: str | None, wish: SummaryWish | None
) -> tuple[SummaryWish | None, str | None, str | None]:
    """The wish and the label as hooks leave them, and the summary that one gave."""
    if not session.around.consulting.has_hooks("session/before_tree"):
        return wish, label_text, None
    tree = session.tree
    ancestor = tree.common_ancestor(session.leaf_row, tree.row_or_root(target_id))
    told = BeforeTree(
        target_id=target_id,
        leaf_id=session.leaf_id,
        ancestor_id=tree.id_or_none(ancestor),
        left_count=len(segment(tree, session.leaf_row, ancestor)),
        wants_summary=wish is not None,
        instructions="" if wish is None else wish.focus,
    )
    said = await ask_before_tree(session, told)
    if wish is not None and said.instructions is not None:
        wish = msgspec.structs.replace(wish, focus=said.instructions)
    return wish, label_text or said.label, said.summary


async def _prepared(session: Session, plan: NavigationPlan, restore: Restore) -> Environment:
    """How the files will stand to the new leaf, brought there first if that is wanted."""
    states = await bind_left(session, plan.leaf_row)
    abandoned = await departed(session, plan.leaf_row)
    if restore == "try":
        environment = await restore_for_move(session, plan.leaf_row, abandoned)
    else:
        environment = await verdict_at(session, plan.leaf_row, abandoned, states=states)
    if session.workspace is not None:
        session.standing.abandoned, session.standing.checked = abandoned, environment
    return environment


async def _go_with_summary(
    session: Session,
    plan: NavigationPlan,
    bodies: list[Body],
    label_text: str | None,
    environment: Environment,
) -> Navigated:
    tree, source_id = session.tree, session.leaf_id
    # The summary hangs below the new leaf and so makes the move durable by itself.
    [*_, entry] = await session.record(*bodies, below=plan.leaf_row, durable=True)
    if label_text:
        await session.record(label(entry.id, label_text), durable=True)
    visible_id = tree.id_or_none(tree.visible(session.leaf_row))
    session.tell(LeafMoved(source_id, session.leaf_id, "navigate", visible_id, environment))
    if label_text:
        session.tell(LabelChanged(entry.id, label_text))
    tell_drift(session)
    return Navigated(session.leaf_id, plan.draft, environment, entry.id, "made")


def _mark(
    session: Session, plan: NavigationPlan, target_id: str | None, environment: Environment
) -> Body:
    leaf_id = session.tree.id_or_none(plan.leaf_row)
    return cursor(leaf_id, session.leaf_id, target_id, msgspec.to_builtins(environment))


def _told_of_world(session: Session, mark: Body) -> list[Body]:
    # What a cursor says of the world must outlast this process, whatever else makes the move hold.
    return [mark] if session.standing.abandoned or session.bindings.all() else []


async def set_label(session: Session, target_id: str, text: str | None) -> Entry:
    """Label an entry, or clear its label with None or an empty text.

    Raises Missing, Busy, Locked.
    """
    session.refuse_if_moving()
    session.tree.row_of(target_id)
    [entry] = await session.record(label(target_id, text), durable=True)
    session.tell(LabelChanged(target_id, text or None))
    return entry


async def rename(session: Session, name: str) -> str | None:
    """Name the session; line breaks become spaces and nothing but blanks clears the name."""
    session.refuse_if_moving()
    await session.record(session_info(one_line(name)), durable=True)
    session.tell(SessionRenamed(session.tree.name()))
    return session.tree.name()


def one_line(name: str) -> str:
    """A name as it is stored: each run of line breaks one space, no blanks around it."""
    parts = name.replace("\r", "\n").split("\n")
    return " ".join(part for part in parts if part).strip()


async def edit_context(
    session: Session, target_ids: list[str], replacement: JsonObject | None, pairs: bool
) -> list[Entry]:
    """Show the model another content for entries of the path, or none.

    Raises Invalid, Missing and Refused as `plan_context_edit` does, Busy during a move.
    """
    session.refuse_if_moving()
    if not target_ids:
        raise Invalid("no_target", "an edit needs a target")
    bodies = plan_context_edit(session.tree, session.leaf_row, target_ids, replacement, pairs=pairs)
    return await session.record(*bodies, durable=True)


def visible_leaf_id(session: Session) -> str | None:
    """The nearest step of the conversation at or above the leaf."""
    if session.leaf_row == ROOT:
        return None
    return session.tree.id_or_none(session.tree.visible(session.leaf_row))
