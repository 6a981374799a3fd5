"""Hooks of a run: what it begins with, what one request shows, what is stored, what comes after.

Promises
- Where nobody takes part a run pays for one look into a set at each point.
- Drafts of one boundary are written together or not at all.
- A hook cannot keep a run from being stored, nor make it go on without end.
"""

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from pi_rpc.core.context_messages import EDITABLE_ROLES, message_for_model
from pi_rpc.core.drafts import CompactionDraft, DraftPlan, check_added, plan_drafts
from pi_rpc.core.entries import Body
from pi_rpc.core.errors import Failure, Invalid, Stopped
from pi_rpc.core.events import Diagnostic, DiagnosticTold
from pi_rpc.core.file_lists import FileLists
from pi_rpc.core.hook_changes import Said, changed_context, changed_message, shown_context
from pi_rpc.core.hooks import (
    CONTINUES_MAX,
    BeforeSettle,
    BoundaryAnswer,
    ContextAnswer,
    HookName,
    MessageAnswer,
    MessageEndedTold,
    PayloadAnswer,
    PrepareAnswer,
    RequestContext,
    RequestPayload,
    RunPrepare,
    RunSettledTold,
    TurnEndedTold,
)
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.pins import pins_at, words_to_carry
from pi_rpc.core.ports.providers import AdjustPayload
from pi_rpc.core.ports.tools import StopSignal
from pi_rpc.core.projection import MESSAGES_KEPT_ROWS
from pi_rpc.core.prompt import is_section_name
from pi_rpc.core.stamps import stamp_at
from pi_rpc.core.summary import stored_summary
from pi_rpc.core.turns import Wanted
from pi_rpc.session.consulting import Hook
from pi_rpc.session.hooking import (
    Grace,
    answer_or_none,
    observe,
    tell_overruled,
    tell_unusable,
)
from pi_rpc.session.live import LiveRun
from pi_rpc.session.moments import in_moments
from pi_rpc.session.session import Session

MESSAGE_ENDED: HookName = "message/ended"
TURN_ENDED: HookName = "turn/ended"
BEFORE_SETTLE: HookName = "run/before_settle"

RUNNABLE_ROLES = ("user", "toolResult")
"""What a request may end with."""


async def prepare_run(
    session: Session, message: JsonObject, tools: list[str], stop: StopSignal
) -> PrepareAnswer:
    """What hooks have a run begin with, put together: messages in order, the last word on the rest.

    Raises Stopped, and what the refusal of a hook raises.
    """
    held = PrepareAnswer()
    for offer, hook in session.around.consulting.hooks(session.session_id, "run/prepare"):
        told = RunPrepare(
            message=message,
            tools=tools if held.tools is None else held.tools,
            system_prompt=held.system_prompt,
        )
        answer: PrepareAnswer | None = await answer_or_none(session, offer, hook, told, stop)
        if answer is not None:
            held = _put_together(session, hook, held, answer)
    return held


def _put_together(
    session: Session, hook: Hook, held: PrepareAnswer, answer: PrepareAnswer
) -> PrepareAnswer:
    sections = dict(held.sections)
    for name, text in answer.sections.items():
        if is_section_name(name):
            sections[name] = text
        else:
            tell_unusable(session, hook, f"{name[:64]!r} is no name of a section")
    messages = [*held.messages]
    for added in answer.messages:
        try:
            check_added(added)
        except Invalid as problem:
            tell_unusable(session, hook, problem.message)
        else:
            messages.append(added)
    if answer.system_prompt is not None and held.system_prompt not in (None, answer.system_prompt):
        tell_overruled(session, hook, "system prompt")
    return PrepareAnswer(
        messages,
        sections,
        held.tools if answer.tools is None else answer.tools,
        held.system_prompt if answer.system_prompt is None else answer.system_prompt,
    )


async def request_messages(session: Session, turn: int, stop: StopSignal) -> list[JsonObject]:
    """The messages of one request as hooks leave them; what the file has does not change.

    Raises Stopped, and what the refusal of a hook raises.
    """
    hooks = session.around.consulting.hooks(session.session_id, "request/context")
    said = [
        Said(entry_id, sent)
        for entry_id, _, message in session.projection.pairs()
        if (sent := message_for_model(message)) is not None
    ]
    for offer, hook in hooks:
        count, shown = shown_context(said, hook.last_messages)
        told = RequestContext(turn=turn, count=count, messages=shown)
        answer: ContextAnswer | None = await answer_or_none(session, offer, hook, told, stop)
        if answer is None:
            continue
        try:
            said = changed_context(said, answer, session.around.clock.now_ms())
        except Invalid as problem:
            tell_unusable(session, hook, problem.message)
    return [one.message for one in said]


def payload_hooks(session: Session) -> AdjustPayload | None:
    """How what goes over the net is to be changed; None when nobody takes part.

    A stop closes the request, and with it the question.
    """
    hooks = session.around.consulting.hooks(session.session_id, "request/payload")
    if not hooks:
        return None

    async def adjust(provider: str, model_id: str, api: str, payload: JsonObject) -> JsonObject:
        for offer, hook in hooks:
            told = RequestPayload(provider=provider, model_id=model_id, api=api, payload=payload)
            answer: PayloadAnswer | None = await answer_or_none(session, offer, hook, told, None)
            if answer is not None and answer.payload is not None:
                payload = answer.payload
        return payload

    return adjust


async def _to_store(session: Session, message: JsonObject, stop: StopSignal) -> JsonObject:
    role, name = str(message.get("role")), MESSAGE_ENDED
    if role not in EDITABLE_ROLES:
        return message
    for offer, hook in session.around.consulting.hooks(session.session_id, name, role=role):
        told = MessageEndedTold(message=message)
        try:
            answer: MessageAnswer | None = await answer_or_none(session, offer, hook, told, stop)
            if answer is not None:
                message = changed_message(message, answer)
        except Failure as failure:
            tell_unusable(session, hook, failure.message)
    return message


async def _at_boundary(
    session: Session, name: HookName, told: TurnEndedTold | BeforeSettle, stop: StopSignal
) -> bool:
    hooks = session.around.consulting.hooks(session.session_id, name)
    plan = DraftPlan([])
    for offer, hook in hooks:
        try:
            answer: BoundaryAnswer | None = await answer_or_none(session, offer, hook, told, stop)
        except Stopped:
            # A boundary that was not looked at to its end brings nothing.
            return False
        if answer is None:
            continue
        entries = told.entries if answer.entries is None else answer.entries
        try:
            plan = plan_drafts(session.tree, session.leaf_row, entries)
        except Failure as problem:
            tell_unusable(session, hook, problem.message)
            continue
        wanted = told.continues if answer.continues is None else answer.continues
        told = msgspec.structs.replace(told, entries=entries, continues=wanted)
    bodies = [*plan.bodies]
    if plan.compaction is not None:
        bodies.append(_compaction(session, plan.compaction))
    if bodies:
        await session.record(*bodies, durable=plan.compaction is not None)
    return told.continues


def _compaction(session: Session, draft: CompactionDraft) -> Body:
    at_ms = session.around.clock.now_ms()
    rows, first = session.projection.selection.rows, session.tree.row_of(draft.first_kept_entry_id)
    kept = rows[rows.index(first) :] if first in rows else ()
    carried = words_to_carry(pins_at(session.tree, session.leaf_row), kept)
    fields: JsonObject = {
        "timestamp": stamp_at(at_ms),
        "summary": stored_summary(draft.summary, carried, FileLists([], [])),
        "firstKeptEntryId": draft.first_kept_entry_id,
        "tokensBefore": session.projection.tokens().total,
        "fromHook": True,
    }
    system = session.projection.system()
    if system is not None:
        fields["systemMessage"] = system | {"timestamp": at_ms}
    return Body("compaction", fields)


class Attending:
    """Who takes part in one run, from its first request to its last turn."""

    def __init__(self, session: Session, live: LiveRun) -> None:
        self._session = session
        self._live = live
        self._continued = 0
        """How often hooks had the run go on."""

    async def request(self) -> Sequence[JsonObject]:
        """The messages of the next request; what the file has does not change.

        Raises what the refusal of a hook raises.
        """
        session, live = self._session, self._live
        if session.around.consulting.has_hooks("request/context"):
            # A request that is stopped is not made.
            with suppress(Stopped):
                return await request_messages(session, live.machine.turn, live.stop)
        messages = session.projection.messages("llm")
        if len(session.projection.selection.rows) <= MESSAGES_KEPT_ROWS:
            return messages
        # Most of a context as long as this is decoded anew for each request.
        return await in_moments(messages.listed())

    async def to_store(self, messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """Messages as hooks leave them before they are stored; whatever a hook does, they are."""
        if not self._session.around.consulting.has_hooks(MESSAGE_ENDED):
            return messages
        return [await _to_store(self._session, message, self._grace) for message in messages]

    @property
    def holds_deltas(self) -> bool:
        """Whether a reply is told to nobody before hooks have seen it whole."""
        consulting = self._session.around.consulting
        if not consulting.has_hooks(MESSAGE_ENDED):
            return False
        hooks = consulting.hooks(self._session.session_id, MESSAGE_ENDED, role="assistant")
        return any(hook.holds_deltas for _, hook in hooks)

    @property
    def _grace(self) -> Grace:
        return Grace(self._live.stop, self._session.around.grace_s)

    async def turn_ended(self, turn: int, message_id: str, result_ids: Sequence[str]) -> None:
        """Let hooks write when a turn is over, and have the run go on."""
        if not self._session.around.consulting.has_hooks(TURN_ENDED):
            return
        told = TurnEndedTold(
            turn=turn,
            message_entry_id=message_id,
            tool_result_entry_ids=list(result_ids),
            entries=[],
            continues=False,
        )
        self._heed(await _at_boundary(self._session, TURN_ENDED, told, self._grace))

    async def nothing_left(self) -> bool:
        """The same when nothing is left to do; whether anybody was asked, so that words may have
        come meanwhile.
        """
        session, live = self._session, self._live
        if live.stop.is_set() or live.machine.wants_more:
            return False
        if not session.around.consulting.has_hooks(BEFORE_SETTLE):
            return False
        told = BeforeSettle(turn=live.machine.turn, entries=[], continues=False)
        self._heed(await _at_boundary(session, BEFORE_SETTLE, told, live.stop))
        return True

    def _heed(self, continues: bool) -> None:
        queues = self._session.queues
        if not continues or self._live.stop.is_set() or queues.steering or queues.follow_up:
            return
        last = self._session.projection.messages("llm")[-1:]
        if not last or last[0].get("role") not in RUNNABLE_ROLES:
            text = "a hook wants the run to go on, but the context ends with a reply"
        elif self._continued >= CONTINUES_MAX:
            text = f"hooks wanted the run to go on {CONTINUES_MAX} times; it ends here"
        else:
            self._continued += 1
            self._live.machine.feed(Wanted())
            return
        self._session.tell(DiagnosticTold(Diagnostic("warning", "hook_error", text)))


async def tell_settled(session: Session, told: RunSettledTold) -> None:
    """Let those who look on know that a run is over; what they prompt is admitted after all."""
    if not session.around.consulting.has_hooks("run/settled"):
        return
    async with session.wording:
        await observe(session, "run/settled", told)
