"""Compaction by request: previewed, made now, configured, pinned against.

Promises
- A preview writes nothing and asks nobody.
- One pass at a time: who asks while one is made is told busy. Words for the model that come
  meanwhile and may wait do, and start a run when it is over, unless it was stopped.
"""

import anyio.abc
import msgspec

from pi_rpc.core.compaction import CompactionPlan, plan_compaction
from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Failure, Invalid, Refused
from pi_rpc.core.events import CompactionEnded
from pi_rpc.core.pins import check_pin, check_size, pin, pinned_message, pins_at
from pi_rpc.core.projection import Projection
from pi_rpc.core.thresholds import CompactionSettings
from pi_rpc.core.tree import ROOT
from pi_rpc.session.compacting import Compacted, Order, carry_out, limits_of
from pi_rpc.session.prompting import abort, start_from_queue
from pi_rpc.session.session import Session, failure_object


def refusal_to_compact(projection: Projection) -> Refused:
    """Why there is no plan: `already_compacted`, `nothing_to_compact`."""
    leaf_row = projection.leaf_row
    if leaf_row != ROOT and projection.tree.kind(leaf_row) == Kind.COMPACTION:
        return Refused("already_compacted", "nothing was said since the last compaction")
    return Refused("nothing_to_compact", "all there is would be kept: the context is too small")


def _planned(session: Session) -> CompactionPlan:
    if session.chosen.model is None:
        raise Refused("no_model", "no model is chosen, and none is usable by itself")
    plan = plan_compaction(session.projection, limits_of(session).keep_recent_tokens)
    if plan is None:
        raise refusal_to_compact(session.projection)
    return plan


async def compact(
    session: Session, tasks: anyio.abc.TaskGroup, instructions: str = ""
) -> Compacted:
    """Compact now; a live run is stopped first, if there is anything to compact.

    Raises Busy during another move, Refused `no_model`, `already_compacted` or
    `nothing_to_compact`, Stopped `aborted`, Outside `summary_failed`.
    """
    session.refuse_unless_writable()
    session.refuse_if_moving()
    try:
        with session.moving("compact"):
            return await _compact(session, instructions)
    finally:
        start_from_queue(session, tasks)


async def _compact(session: Session, instructions: str) -> Compacted:
    try:
        if session.run is not None:
            # A run is not stopped for nothing.
            _planned(session)
            await abort(session)
        plan = _planned(session)
    except Failure as failure:
        session.tell(CompactionEnded("manual", error=failure_object(failure)))
        raise
    with session.summarising() as live:
        order = Order("manual", focus=instructions)
        compacted = await carry_out(session, plan, order, live.stop)
    session.compaction_held_off_at = None
    return compacted


def configure(
    session: Session,
    enabled: bool | None = None,
    reserve_tokens: int | None = None,
    keep_recent_tokens: int | None = None,
) -> CompactionSettings:
    """Change how this runtime compacts; what is None stays.

    Values given here hold for every model of the session. Raises Invalid
    `bad_compaction_settings`.
    """
    for name, value in (
        ("reserveTokens", reserve_tokens),
        ("keepRecentTokens", keep_recent_tokens),
    ):
        if value is not None and value < 0:
            raise Invalid("bad_compaction_settings", f"{name} must be 0 or more", at=name)
    held = session.chosen.compaction
    says_tokens = reserve_tokens is not None or keep_recent_tokens is not None
    session.chosen.compaction = msgspec.structs.replace(
        held,
        enabled=held.enabled if enabled is None else enabled,
        reserve_tokens=held.reserve_tokens if reserve_tokens is None else reserve_tokens,
        keep_recent_tokens=(
            held.keep_recent_tokens if keep_recent_tokens is None else keep_recent_tokens
        ),
        model_overrides={} if says_tokens else held.model_overrides,
    )
    session.compaction_held_off_at = None
    return session.chosen.compaction


async def pin_entry(session: Session, entry_id: str, pinned: bool) -> str:
    """Pin an entry of the path, or let it go; the id of the mark.

    Raises Missing `entry_not_found`, Refused as `check_pin` does, and `not_pinned`.
    """
    session.refuse_if_moving()
    row = session.tree.row_of(entry_id)
    held = any(one.row == row for one in pins_at(session.tree, session.leaf_row))
    if pinned:
        check_pin(session.projection, row)
    elif not held:
        raise Refused("not_pinned", "the entry is not pinned on this path", entryId=entry_id)
    [entry] = await session.record(pin(entry_id, pinned), durable=True)
    return entry.id


async def pin_words(session: Session, text: str) -> tuple[str, str]:
    """Give words an entry the model sees from here on, and pin it: ids of the entry and the mark.

    Raises Invalid `empty_prompt`, Refused `pins_too_large`, Busy during a move or a run.
    """
    session.refuse_unless_quiet()
    if not text.strip():
        raise Invalid("empty_prompt", "words to pin are needed")
    held = pins_at(session.tree, session.leaf_row)
    check_size([*(one.text for one in held), text], session.around.policy)
    # Two appends: a mark names an entry that must exist. Between them the words are said already.
    [words] = await session.record(pinned_message(text))
    [mark] = await session.record(pin(words.id), durable=True)
    return words.id, mark.id
