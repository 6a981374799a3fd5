"""Room made by itself: when a context is too full for the next request, or was for the last.

Promises
- A compaction that does not help is not tried again until the context has grown.
- A run goes on whatever becomes of a summary; only what cannot be stored ends it.
- A recovery is tried once for an input; what it could not do is told.
"""

import msgspec

from pi_rpc.agent.stopping import Stop
from pi_rpc.core.compaction import CompactionPlan, plan_compaction
from pi_rpc.core.entries import Kind, context_edit
from pi_rpc.core.errors import Failure, Outside, Refused
from pi_rpc.core.events import CompactionEnded, CompactionReason
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.projection import Projection
from pi_rpc.core.summary import own_details
from pi_rpc.core.thresholds import (
    Limits,
    Recovery,
    has_outgrown,
    is_due,
    is_effective,
    recovery_of,
)
from pi_rpc.core.tokens import usage_total
from pi_rpc.core.tree import ROOT
from pi_rpc.session.compacting import (
    Order,
    carry_out,
    limits_of,
    max_output_of,
    threshold_of,
    window_of,
)
from pi_rpc.session.session import Session, failure_object

PASSING = ("summary_failed", "hook_failed")
"""Failures of a pass that a run survives."""

SHRINK = 4
"""A compaction that would not help keeps so many times less, once."""

GROWTH_PERCENT = 10
"""How much a context must grow before a compaction that did not help is tried again."""


def plan_that_helps(
    projection: Projection,
    limits: Limits,
    threshold: int | None,
    omitted: frozenset[int] = frozenset(),
) -> tuple[CompactionPlan | None, bool]:
    """A plan within the limits, and whether it had to keep less than they say to be of use.

    None when there is nothing to summarise, however little is kept.
    """
    found = None
    for is_shrunk in (False, True):
        keep = limits.keep_recent_tokens // (SHRINK if is_shrunk else 1)
        plan = plan_compaction(projection, keep, omitted)
        if plan is None:
            continue
        found = found or (plan, is_shrunk)
        after = plan.system_tokens + plan.kept_tokens
        fits = threshold is None or after <= threshold
        if fits and is_effective(plan.tokens_before, after):
            return plan, is_shrunk
    return found or (None, False)


async def compact_if_due(session: Session, stop: Stop) -> bool:
    """Compact when the context is too full for the next request; whether it was done.

    A pass that fails is told by its event; the request is then made with the context as it is.
    """
    threshold = threshold_of(session)
    if not session.chosen.compaction.enabled or threshold is None or stop.is_set():
        return False
    tokens = max(session.projection.tokens().total, _told_when_stopped(session))
    if not is_due(tokens, window_of(session), limits_of(session)):
        return False
    held_off = session.compaction_held_off_at
    if held_off is not None and tokens * 100 < held_off * (100 + GROWTH_PERCENT):
        return False
    plan, is_shrunk = plan_that_helps(session.projection, limits_of(session), threshold)
    reason = _reason(session)
    if plan is not None and _is_thrashing(session):
        if _last_was_shrunk(session):
            return _give_up(session, reason, tokens)
        keep = limits_of(session).keep_recent_tokens // SHRINK
        plan, is_shrunk = plan_compaction(session.projection, keep), True
    if plan is None:
        return False
    try:
        await carry_out(session, plan, Order(reason, is_shrunk=is_shrunk), stop)
    except Failure as failure:
        # Told already. What cannot be stored ends the run; what cannot be summarised does not.
        if isinstance(failure, Outside) and failure.reason not in PASSING:
            raise
        session.compaction_held_off_at = tokens
        return False
    session.compaction_held_off_at = None
    return True


def _told_when_stopped(session: Session) -> int:
    """How big the context was by the last reply, where that was stopped; else 0.

    Such a reply is no measure of what follows it, but the request before it was as big as it says.
    """
    projection, kinds = session.projection, session.tree.heads.kinds
    rows, first = projection.selection.rows, projection.selection.kept_end
    for row in reversed(rows[first:]):
        if kinds[row] == Kind.CONTEXT_EDIT:
            return 0
        if kinds[row] == Kind.ASSISTANT:
            said = projection.messages_of(row)
            is_stopped = bool(said) and said[0].get("stopReason") == "aborted"
            return usage_total(said[0]) if is_stopped else 0
    return 0


def _reason(session: Session) -> CompactionReason:
    """`overflow` when the last answer shows that its context did not fit, though nobody said so."""
    projection = session.projection
    usage_row = projection.tokens().usage_at
    if usage_row is None:
        return "threshold"
    [reply] = projection.messages_of(usage_row)
    is_own = session.chosen.model == (reply.get("provider"), reply.get("model"))
    has_overflowed = is_own and has_outgrown(reply, window_of(session))
    return "overflow" if has_overflowed else "threshold"


def _is_thrashing(session: Session) -> bool:
    """Whether the last compaction was so recent that one more would follow every answer."""
    selection = session.projection.selection
    if selection.compaction_row == ROOT:
        return False
    kinds = session.tree.heads.kinds
    after = selection.rows[selection.kept_end :]
    return sum(kinds[row] == Kind.ASSISTANT for row in after) <= 1


def _last_was_shrunk(session: Session) -> bool:
    entry = session.tree.entry(session.projection.selection.compaction_row)
    return own_details(entry.object).get("shrunk") is True


def _give_up(session: Session, reason: CompactionReason, tokens: int) -> bool:
    session.compaction_held_off_at = tokens
    session.tell(CompactionEnded(reason, tokens_before=tokens, error=_ineffective(tokens)))
    return False


def _ineffective(tokens: int, after: int | None = None) -> JsonObject:
    failure = Refused(
        "compaction_ineffective",
        "a compaction would free too little to be worth its request",
        tokensBefore=tokens,
        **({} if after is None else {"tokensAfter": after}),
    )
    return failure_object(failure)


def recovery_of_reply(session: Session, reply: JsonObject) -> Recovery | None:
    """Why a reply failed for lack of room; None when it did not, or nothing may be done about it.

    A reply of another model than the session's own says nothing of the room there is now.
    """
    if not session.chosen.compaction.enabled or session.chosen.model != (
        reply.get("provider"),
        reply.get("model"),
    ):
        return None
    return recovery_of(reply, window_of(session), max_output_of(session))


async def recover(
    session: Session, recovery: Recovery, reply_id: str, is_first: bool, stop: Stop
) -> bool:
    """Make room for a reply that failed for lack of it: omit it, compact; whether to ask again.

    Once for each input: a second failure in a row is told and left as it is. Nothing is omitted
    when there is nothing to compact.
    """
    told = CompactionEnded("overflow", tokens_before=session.projection.tokens().total)
    if not session.chosen.compaction.enabled or stop.is_set():
        return False
    if not is_first:
        failure = Refused("recovery_exhausted", f"the {recovery} came again after a compaction")
        session.tell(msgspec.structs.replace(told, error=failure_object(failure)))
        return False
    reply_row = session.tree.row_of(reply_id)
    plan, is_shrunk = plan_that_helps(
        session.projection, limits_of(session), threshold_of(session), frozenset({reply_row})
    )
    if plan is None:
        failure = Refused(
            "nothing_to_compact", "there is nothing before it that could be summarised"
        )
        session.tell(msgspec.structs.replace(told, error=failure_object(failure)))
        return False
    await session.record(context_edit(reply_id, None), durable=True)
    keep = limits_of(session).keep_recent_tokens // (SHRINK if is_shrunk else 1)
    plan = plan_compaction(session.projection, keep)
    assert plan is not None, "what could be summarised before the omission can be after it"
    order = Order("overflow", will_retry=True, is_shrunk=is_shrunk)
    try:
        await carry_out(session, plan, order, stop)
    except Failure as failure:
        if isinstance(failure, Outside) and failure.reason not in PASSING:
            raise
        return False
    return True
