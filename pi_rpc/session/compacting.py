"""A compaction carried out, whoever wants it: ask for the summary, check, store, tell.

Promises
- What has started is told ended, exactly once: stored, stopped or failed, and why.
- Nothing is stored of a pass that was stopped, failed or would not help.
"""

from contextlib import aclosing

import msgspec

from pi_rpc.agent.stopping import Stop
from pi_rpc.agent.summarising import (
    Answered,
    Resumed,
    Summarised,
    SummaryOrder,
    Waiting,
    summarise,
)
from pi_rpc.core.compaction import CompactionPlan
from pi_rpc.core.entries import Body
from pi_rpc.core.errors import Conflict, Failure, Refused, Stopped
from pi_rpc.core.events import (
    CompactionEnded,
    CompactionReason,
    CompactionStarted,
    Diagnostic,
    DiagnosticTold,
    RetryEnded,
    RetryScheduled,
)
from pi_rpc.core.hooks import BeforeCompact, BeforeCompactAnswer
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.pins import pins_at, words_to_carry
from pi_rpc.core.ports.providers import ModelListing, ModelRequest
from pi_rpc.core.stamps import stamp_at
from pi_rpc.core.summarised_files import files_of
from pi_rpc.core.summary import (
    OWN_DETAILS,
    PinnedWords,
    missing_sections,
    stored_summary,
)
from pi_rpc.core.summary_rounds import Room, SummaryRounds, rounds_of
from pi_rpc.core.thresholds import Limits, is_effective
from pi_rpc.core.tokens import usage_total
from pi_rpc.session.hooking import ask_before_compact
from pi_rpc.session.moments import in_moments
from pi_rpc.session.preferring import asking_settings
from pi_rpc.session.session import Session, failure_object

ENTRY_IDS_TOLD_MAX = 1000
"""How many of the entries to be summarised hooks are told by name."""


class Order(msgspec.Struct, frozen=True):
    """Why a pass is made and what it is to look at."""

    reason: CompactionReason
    focus: str = ""
    will_retry: bool = False
    is_shrunk: bool = False
    """Whether it keeps less than the settings say, because keeping as much did not help."""


class Compacted(msgspec.Struct, frozen=True):
    """A compaction, drafted and then stored."""

    entry_id: str
    """Empty before it is stored."""
    summary: str
    first_kept_entry_id: str
    tokens_before: int
    tokens_after: int
    usage: JsonObject | None
    details: JsonObject
    effective: bool
    """Whether it frees a tenth of the context at the least."""
    missing_sections: list[str]


def listing_of(session: Session) -> ModelListing | None:
    """What is known of the session's model."""
    model = session.chosen.model
    return None if model is None else session.around.models.listed(*model)


def window_of(session: Session) -> int | None:
    """The context window of the session's model in tokens; None when unknown.

    A script given to the session may say another one for the offline model.
    """
    scripted = (session.chosen.script or {}).get("contextWindow")
    if isinstance(scripted, int) and scripted >= 0:
        return scripted or None
    listing = listing_of(session)
    return (listing.context_window or None) if listing else None


def max_output_of(session: Session) -> int:
    """The longest reply of the session's model in tokens; 0 when unknown."""
    scripted = (session.chosen.script or {}).get("maxOutput")
    if isinstance(scripted, int):
        return scripted
    listing = listing_of(session)
    return listing.max_output if listing else 0


def limits_of(session: Session) -> Limits:
    """The limits that hold for the session's model, fitted into its window."""
    provider, model_id = session.chosen.model or ("", "")
    return session.chosen.compaction.limits_for(provider, model_id).within(window_of(session))


def threshold_of(session: Session) -> int | None:
    """How many tokens fit before a compaction is due; None when the window is unknown."""
    window = window_of(session)
    return window - limits_of(session).reserve_tokens if window else None


async def carry_out(session: Session, plan: CompactionPlan, order: Order, stop: Stop) -> Compacted:
    """Summarise and store what a plan says, told from start to end.

    Raises Stopped `aborted`, Outside `summary_failed`, Refused `compaction_ineffective`, Conflict
    when the leaf has left the planned path, and what storing raises; then nothing was stored.
    """
    session.is_compacting = True
    session.tell(CompactionStarted(order.reason, plan.tokens_before))
    ended: CompactionEnded | None = None
    try:
        compacted = await _pass(session, plan, order, stop)
        ended = CompactionEnded(
            order.reason,
            compacted.entry_id,
            compacted.tokens_before,
            compacted.tokens_after,
            compacted.first_kept_entry_id,
            will_retry=order.will_retry,
        )
        return compacted
    except Failure as failure:
        is_aborted = isinstance(failure, Stopped)
        ended = CompactionEnded(
            order.reason,
            tokens_before=plan.tokens_before,
            aborted=is_aborted,
            error=failure_object(failure),
        )
        raise
    finally:
        session.is_compacting = False
        # Withdrawn by its caller: whoever started it is gone, the listeners are not.
        session.tell(
            ended or CompactionEnded(order.reason, tokens_before=plan.tokens_before, aborted=True)
        )


async def _pass(session: Session, plan: CompactionPlan, order: Order, stop: Stop) -> Compacted:
    said = await _said_before(session, plan, order, stop)
    if said.instructions is not None:
        order = msgspec.structs.replace(order, focus=said.instructions)
    if said.summary is not None:
        made = Summarised(said.summary, None, 0)
    else:
        room = Room(window_of(session), limits_of(session).reserve_tokens, session.around.policy)
        made = await ask_for_summary(session, rounds_of(plan, room, order.focus), stop)
    compacted = await _drafted(session, plan, order, made, said.details or {})
    _refuse_unless_worth_it(session, compacted, order)
    _refuse_unless_planned(session, plan)
    body = _body_of(session, plan, compacted, is_from_hook=said.summary is not None)
    [entry] = await session.record(body, durable=True)
    if not compacted.effective:
        text = "the compaction freed less than a tenth of the context"
        told = Diagnostic("warning", "compaction_ineffective", text, entry_id=entry.id)
        session.tell(DiagnosticTold(told))
    return msgspec.structs.replace(compacted, entry_id=entry.id)


async def _drafted(
    session: Session, plan: CompactionPlan, order: Order, made: Summarised, more: JsonObject
) -> Compacted:
    """What would be stored of the notes; `more` is what a hook has put beside them."""
    carried = words_to_carry(pins_at(session.tree, plan.leaf_row), plan.kept)
    files = await in_moments(files_of(plan))
    own = {OWN_DETAILS: _own_details(made, carried, order, session)}
    summary = stored_summary(made.text, carried, files)
    told: JsonObject = {"role": "compactionSummary", "summary": summary}
    after = session.around.policy.tokens_of(told) + plan.system_tokens + plan.kept_tokens
    return Compacted(
        entry_id="",
        summary=summary,
        first_kept_entry_id=plan.first_kept_id,
        tokens_before=plan.tokens_before,
        tokens_after=after,
        usage=made.usage,
        details=more | files.as_details() | own,
        effective=is_effective(plan.tokens_before, after),
        missing_sections=missing_sections(made.text),
    )


def _refuse_unless_worth_it(session: Session, compacted: Compacted, order: Order) -> None:
    # Asked for, or wanted by a model that refused, it is made whatever our estimates say.
    if order.reason != "threshold":
        return
    threshold = threshold_of(session)
    if not compacted.effective or (threshold is not None and compacted.tokens_after > threshold):
        raise Refused(
            "compaction_ineffective",
            "the compaction would free too little",
            tokensBefore=compacted.tokens_before,
            tokensAfter=compacted.tokens_after,
        )


def _body_of(
    session: Session, plan: CompactionPlan, compacted: Compacted, *, is_from_hook: bool
) -> Body:
    at_ms = session.around.clock.now_ms()
    fields: JsonObject = {
        # The checkpoint bears the entry's own time, so the entry cannot wait to be given one.
        "timestamp": stamp_at(at_ms),
        "summary": compacted.summary,
        "firstKeptEntryId": compacted.first_kept_entry_id,
        "tokensBefore": compacted.tokens_before,
        "details": compacted.details,
    }
    if compacted.usage is not None and usage_total({"usage": compacted.usage}):
        fields["usage"] = compacted.usage
    fields["fromHook"] = is_from_hook
    if plan.system is not None:
        fields["systemMessage"] = plan.system | {"timestamp": at_ms}
    return Body("compaction", fields)


async def _said_before(
    session: Session, plan: CompactionPlan, order: Order, stop: Stop
) -> BeforeCompactAnswer:
    """What hooks want of the pass; nothing where nobody takes part."""
    if not session.around.consulting.has_hooks("session/before_compact"):
        return BeforeCompactAnswer()
    rows, id_of = plan.history + plan.prefix, session.tree.heads.id_of
    told = BeforeCompact(
        reason=order.reason,
        tokens_before=plan.tokens_before,
        first_kept_entry_id=plan.first_kept_id,
        summarised_count=len(rows),
        summarised_entry_ids=[id_of(row) for row in rows[-ENTRY_IDS_TOLD_MAX:]],
        will_retry=order.will_retry,
        instructions=order.focus,
    )
    return await ask_before_compact(session, told, stop)


def _own_details(
    made: Summarised, carried: list[PinnedWords], order: Order, session: Session
) -> JsonObject:
    own: JsonObject = {
        "v": 1,
        "reason": order.reason,
        "notesLength": len(made.text),
        "requests": made.requests,
        "policy": session.around.policy.id,
    }
    if carried:
        own["pins"] = [pin.entry_id for pin in carried]
    if order.is_shrunk:
        own["shrunk"] = True
    if order.focus:
        own["instructions"] = order.focus
    return own


def _refuse_unless_planned(session: Session, plan: CompactionPlan) -> None:
    """Raise Conflict when what was planned no longer fits where the leaf stands."""
    tree = session.tree
    is_below = tree.has_ancestor(session.leaf_row, plan.leaf_row)
    compaction_row = session.projection.selection.compaction_row
    if not is_below or compaction_row != plan.projection.selection.compaction_row:
        raise Conflict(
            "leaf_conflict",
            "the leaf has left the path that was summarised",
            expected=tree.id_or_none(plan.leaf_row),
            actual=session.leaf_id,
        )


async def ask_for_summary(session: Session, rounds: SummaryRounds, stop: Stop) -> Summarised:
    """Ask the session's model for notes; retries are told of.

    Raises Refused `no_model`, Stopped and Outside as `summarise` does.
    """
    if session.chosen.model is None:
        raise Refused("no_model", "no model is chosen, and none is usable by itself")
    provider, model_id = session.chosen.model
    serving = session.around.models.provider_of(provider, model_id)
    request = ModelRequest(
        provider=provider,
        model_id=model_id,
        thinking_level=session.chosen.thinking_level,
        messages=(),
        session_id=session.around.ids.unique_id(),
        script=session.chosen.script,
        script_position=session.chosen.script_position,
        asking=asking_settings(session),
        is_single=True,
    )
    retries = _Retries(session)
    order = SummaryOrder(rounds, request, session.chosen.retry, retries.give_up)
    steps = summarise(serving, order, stop, session.around.clock)
    try:
        async with aclosing(steps):
            async for step in steps:
                match step:
                    case Answered(script_position=position):
                        session.chosen.script_position = position
                    case Waiting():
                        retries.scheduled(step)
                    case Resumed(error=error):
                        retries.ended(None if error is None else error.as_object())
                    case Summarised():
                        return step
    except Failure as failure:
        retries.ended(failure_object(failure))
        raise
    finally:
        # Withdrawn by its caller while it waited: the listeners are still there.
        retries.ended(failure_object(Stopped("aborted", "the summary was withdrawn")))
    raise AssertionError("a summary ends with what was summarised")


class _Retries:
    """Tells of the retries of a summary, which may be given up; each series is told ended once."""

    def __init__(self, session: Session) -> None:
        self.give_up = Stop()
        self._session = session
        self._live = session.run or session.live_pass
        self._run_id = session.run.run_id if session.run is not None else None
        self._open = 0

    def scheduled(self, step: Waiting) -> None:
        self._open = step.attempt
        if self._live is not None:
            self._live.pause = self.give_up
        error = step.error.as_object()
        told = RetryScheduled(
            self._run_id, step.attempt, step.attempts_max, step.delay_ms, error, "summary"
        )
        self._session.tell(told)

    def ended(self, error: JsonObject | None) -> None:
        attempt, self._open = self._open, 0
        if self._live is not None and self._live.pause is self.give_up:
            self._live.pause = None
        if attempt:
            self._session.tell(RetryEnded(self._run_id, attempt, error is None, error, "summary"))
