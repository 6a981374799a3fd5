"""A compaction carried out, whoever wants it: ask for the summary, check, store, tell.

Promises
- What has started is told ended, exactly once: stored, stopped or failed, and why.
- Nothing is stored of a pass that was stopped, failed or would not help.
"""

import re
from contextlib import aclosing

import msgspec

from pi_rpc.agent.summarising import (
    Answered,
    Resumed,
    Summarised,
    SummaryOrder,
    Waiting,
    summarise,
)
from pi_rpc.core.compaction import CompactionPlan
from pi_rpc.core.entries import Body, Kind
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
from pi_rpc.core.file_lists import FileCount, FileLists
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.pins import pins_at, words_to_carry
from pi_rpc.core.ports import ModelListing, ModelRequest, StopSignal
from pi_rpc.core.projection import Projection
from pi_rpc.core.summary import (
    OWN_DETAILS,
    PinnedWords,
    missing_sections,
    stored_summary,
)
from pi_rpc.core.summary_rounds import Room, SummaryRounds, rounds_of
from pi_rpc.core.thresholds import Limits, is_effective
from pi_rpc.core.tokens import usage_total
from pi_rpc.core.tree import ROOT
from pi_rpc.session.session import Session, failure_object, iso_from_ms

_FAILED_OR_NESTED = re.compile(rb'"isError"\s*:\s*true|"nestedCalls"')


class Order(msgspec.Struct, frozen=True):
    """Why a pass is made and what it is to look at."""

    reason: CompactionReason
    focus: str = ""
    will_retry: bool = False
    is_shrunk: bool = False
    """Whether it keeps less than the settings say, because keeping as much did not help."""


class Compacted(msgspec.Struct, frozen=True):
    """A compaction that is stored."""

    entry_id: str
    summary: str
    first_kept_entry_id: str
    tokens_before: int
    tokens_after: int
    usage: JsonObject | None
    details: JsonObject
    is_effective: bool
    missing_sections: list[str]


def listing_of(session: Session) -> ModelListing | None:
    """What is known of the session's model."""
    return None if session.model is None else session.around.models.listed(*session.model)


def window_of(session: Session) -> int | None:
    """The context window of the session's model in tokens; None when unknown.

    A script given to the session may say another one for the offline model.
    """
    scripted = (session.script or {}).get("contextWindow")
    if isinstance(scripted, int) and scripted >= 0:
        return scripted or None
    listing = listing_of(session)
    return (listing.context_window or None) if listing else None


def max_output_of(session: Session) -> int:
    """The longest reply of the session's model in tokens; 0 when unknown."""
    scripted = (session.script or {}).get("maxOutput")
    if isinstance(scripted, int):
        return scripted
    listing = listing_of(session)
    return listing.max_output if listing else 0


def limits_of(session: Session) -> Limits:
    """The limits that hold for the session's model, fitted into its window."""
    provider, model_id = session.model or ("", "")
    return session.compaction.limits_for(provider, model_id).within(window_of(session))


def threshold_of(session: Session) -> int | None:
    """How many tokens fit before a compaction is due; None when the window is unknown."""
    window = window_of(session)
    return window - limits_of(session).reserve_tokens if window else None


async def carry_out(
    session: Session, plan: CompactionPlan, order: Order, stop: StopSignal
) -> Compacted:
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


async def _pass(
    session: Session, plan: CompactionPlan, order: Order, stop: StopSignal
) -> Compacted:
    room = Room(window_of(session), limits_of(session).reserve_tokens, session.around.policy)
    made = await ask_for_summary(session, rounds_of(plan, room, order.focus), stop)
    carried = words_to_carry(pins_at(session.tree, plan.leaf_row), plan.kept)
    files = files_of(plan)
    details = files.as_details() | {OWN_DETAILS: _own_details(made, carried, order, session)}
    summary = stored_summary(made.text, carried, files)
    after, system = _expected_tokens(session, plan, summary)
    threshold = threshold_of(session)
    is_good = is_effective(plan.tokens_before, after)
    fits = threshold is None or after <= threshold
    # Asked for, or wanted by a model that refused, it is made whatever our estimates say.
    if order.reason == "threshold" and not (is_good and fits):
        raise Refused(
            "compaction_ineffective",
            "the compaction would free too little",
            tokensBefore=plan.tokens_before,
            tokensAfter=after,
        )
    _refuse_unless_planned(session, plan)
    at_ms = session.around.clock.now_ms()
    fields: JsonObject = {
        # The checkpoint bears the entry's own time, so the entry cannot wait to be given one.
        "timestamp": iso_from_ms(at_ms),
        "summary": summary,
        "firstKeptEntryId": plan.first_kept_id,
        "tokensBefore": plan.tokens_before,
        "details": details,
    }
    if made.usage is not None and usage_total({"usage": made.usage}):
        fields["usage"] = made.usage
    fields["fromHook"] = False
    if system is not None:
        fields["systemMessage"] = system | {"timestamp": at_ms}
    [entry] = await session.record(Body("compaction", fields), durable=True)
    if not is_good:
        text = "the compaction freed less than a tenth of the context"
        told = Diagnostic("warning", "compaction_ineffective", text, entry_id=entry.id)
        session.tell(DiagnosticTold(told))
    return Compacted(
        entry_id=entry.id,
        summary=summary,
        first_kept_entry_id=plan.first_kept_id,
        tokens_before=plan.tokens_before,
        tokens_after=after,
        usage=made.usage,
        details=details,
        is_effective=is_good,
        missing_sections=missing_sections(made.text),
    )


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


def _expected_tokens(
    session: Session, plan: CompactionPlan, summary: str
) -> tuple[int, JsonObject | None]:
    policy = session.around.policy
    system = session.projection.system()
    told: JsonObject = {"role": "compactionSummary", "summary": summary}
    after = policy.tokens_of(told) + plan.kept_tokens
    return after if system is None else after + policy.tokens_of(system), system


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


def files_of(plan: CompactionPlan, counts_failed: bool = False) -> FileLists:
    """Files named by what a plan summarises, and by the summaries that it stands on."""
    count = FileCount(counts_failed)
    tree = plan.projection.tree
    if plan.previous_row != ROOT:
        previous = tree.entry(plan.previous_row).object
        if previous.get("fromHook") is not True:
            count.add_details(previous.get("details"))
    rows = plan.history + plan.prefix
    for row in rows:
        if tree.heads.kinds[row] == Kind.BRANCH_SUMMARY:
            summary = tree.entry(row).object
            if summary.get("fromHook") is not True:
                count.add_details(summary.get("details"))
    calling = [row for row in rows if _may_name_files(plan.projection, row)]
    count.add_messages(list(plan.told(calling)))
    return count.lists()


def _may_name_files(projection: Projection, row: int) -> bool:
    # A long history is mostly words; only lines that bear a call or a failure need be decoded.
    tree = projection.tree
    match tree.heads.kinds[row]:
        case Kind.ASSISTANT:
            return b'"toolCall"' in tree.line(row)
        case Kind.TOOL_RESULT:
            return _FAILED_OR_NESTED.search(tree.line(row)) is not None
        case _:
            return False


async def ask_for_summary(session: Session, rounds: SummaryRounds, stop: StopSignal) -> Summarised:
    """Ask the session's model for notes; retries are told of.

    Raises Refused `no_model`, Stopped and Outside as `summarise` does.
    """
    if session.model is None:
        raise Refused("no_model", "no model is chosen, and none is usable by itself")
    provider, model_id = session.model
    serving = session.around.models.provider_of(provider, model_id)
    request = ModelRequest(
        provider=provider,
        model_id=model_id,
        thinking_level=session.thinking_level,
        messages=(),
        session_id=session.around.ids.unique_id(),
        script=session.script,
        script_position=session.script_position,
    )
    order = SummaryOrder(rounds, request, session.retry)
    steps = summarise(serving, order, stop, session.around.clock)
    retries = _Retries(session)
    try:
        async with aclosing(steps):
            async for step in steps:
                match step:
                    case Answered(script_position=position):
                        session.script_position = position
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
    """Tells of the retries of a summary; each series is told ended once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._run_id = session.run.run_id if session.run is not None else None
        self._open = 0

    def scheduled(self, step: Waiting) -> None:
        self._open = step.attempt
        error = step.error.as_object()
        told = RetryScheduled(
            self._run_id, step.attempt, step.attempts_max, step.delay_ms, error, "summary"
        )
        self._session.tell(told)

    def ended(self, error: JsonObject | None) -> None:
        attempt, self._open = self._open, 0
        if attempt:
            self._session.tell(RetryEnded(self._run_id, attempt, error is None, error, "summary"))
