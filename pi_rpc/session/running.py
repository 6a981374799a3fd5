"""The loop: do what the turn machine says, until it says settle.

Promises
- Every accepted run is told settled, exactly once, after everything of it is stored.
- What cannot be stored ends the run as failed and says why; a run never raises.
- Words taken from a queue that could not be stored wait there again.
"""

import logging
import uuid
from collections import deque
from collections.abc import Sequence

import anyio

from pi_rpc.agent.asking import Asking
from pi_rpc.agent.background import Background
from pi_rpc.agent.calling import CallEnded, Calling, CallProgressed, CallStarted, Place
from pi_rpc.agent.stopping import Stop
from pi_rpc.core.entries import (
    Body,
    body_of_message,
    context_edit,
    custom_message,
    model_change,
    thinking_level_change,
)
from pi_rpc.core.errors import Failure, Stopped
from pi_rpc.core.events import (
    AttemptEnded,
    MessageEnded,
    MessageStarted,
    Outcome,
    RetryEnded,
    RetryScheduled,
    RunSettled,
    RunStarted,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from pi_rpc.core.hooks import RunSettledTold
from pi_rpc.core.messages import (
    JsonObject,
    ToolCall,
    ToolOutcome,
    tool_calls_of,
)
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.reply import BlockStarted, Fold, Piece, ReplyError
from pi_rpc.core.retrying import error_of
from pi_rpc.core.turns import (
    Ask,
    Began,
    Call,
    Command,
    Drain,
    Drained,
    EndAttempt,
    EndRetry,
    EndTurn,
    Fit,
    Fitted,
    Omit,
    QueueName,
    Ran,
    Record,
    Recover,
    Recovered,
    Replied,
    ScheduleRetry,
    Settle,
    StartTurn,
    Wait,
    Waited,
)
from pi_rpc.core.versions import files_after_calls
from pi_rpc.session.attending import Attending, payload_hooks, prepare_run, tell_settled
from pi_rpc.session.binding import RunVersions
from pi_rpc.session.declaring import Declaring
from pi_rpc.session.deltas import Deltas
from pi_rpc.session.live import LiveRun
from pi_rpc.session.making_room import compact_if_due, recover, recovery_of_reply
from pi_rpc.session.mending import answer_interrupted_calls, record_added, record_shell_results
from pi_rpc.session.preferring import asking_settings, prefer_again, tool_settings
from pi_rpc.session.queues import Queued
from pi_rpc.session.session import Session, failure_object
from pi_rpc.session.versioning import SESSION_VARIABLE, note_for_model

log = logging.getLogger(__name__)


async def run_until_settled(session: Session, live: LiveRun, message: JsonObject) -> None:
    """Carry a run from its first message to its end."""
    runner = _Runner(session, live)
    outcome: Outcome = "failed"
    error: JsonObject | None = None
    try:
        session.tell(RunStarted(live.run_id))
        async with Background() as tasks:
            outcome = await runner.obey(message, RunVersions(session, tasks))
        if outcome == "failed" and runner.reply_error is not None:
            error = reply_failure(runner.reply_error)
        await record_added(session)
        await record_shell_results(session)
    except Failure as failure:
        outcome, error = "failed", failure_object(failure)
    except Exception:
        incident = uuid.uuid4().hex
        log.exception("incident %s: a run of session %s broke", incident, session.session_id)
        outcome = "failed"
        error = {"kind": "internal", "reason": "unexpected", "incident": incident}
    finally:
        runner.put_back()
        _settle(session, live, outcome, error)
    await tell_settled(session, RunSettledTold(run_id=live.run_id, outcome=outcome, error=error))


def _settle(session: Session, live: LiveRun, outcome: Outcome, error: JsonObject | None) -> None:
    live.outcome = outcome
    session.run = None
    session.last_run = live
    # Only a run that broke has left these open.
    if live.attempt_open:
        session.tell(AttemptEnded(live.run_id, "none"))
    if live.retry:
        session.tell(RetryEnded(live.run_id, live.retry, False, error))
    session.tell(RunSettled(live.run_id, outcome, error))
    live.settled.set()


def reply_failure(error: ReplyError) -> JsonObject:
    """Why a run failed whose last reply did; `reply` is the failure as that reply has it."""
    return {
        "kind": "outside",
        "reason": "reply_failed",
        "message": error.message,
        "reply": error.as_object(),
    }


class _Runner:
    """One run being carried out."""

    def __init__(self, session: Session, live: LiveRun) -> None:
        self.session = session
        self.live = live
        self.effects: set[str] = set()
        self.message_id = ""
        self.result_ids: list[str] = []
        self.assistant_told = False
        self.reply_error: ReplyError | None = None
        """Why the last reply failed, if it did."""
        self.taken: list[tuple[QueueName, Queued]] = []
        """Words that left their queue and are not stored yet."""
        self.declaring = Declaring(session)
        self.attending = Attending(session, live)
        self.added: list[Body] = []
        """Messages that go behind the prompt and are not stored yet."""
        self.added_waited = 0
        """How many of them waited for a prompt."""

    async def obey(self, message: JsonObject, versions: RunVersions) -> Outcome:
        self.versions = versions
        versions.begin()
        session, run_id = self.session, self.live.run_id
        await answer_interrupted_calls(session)
        await record_added(session)
        await record_shell_results(session)
        await self._record_choices()
        await prefer_again(session)
        await self._prepare(message)
        feed = self.live.machine.feed
        commands = deque[Command](feed(Began(self._starting(message))))
        while True:
            command = commands.popleft()
            match command:
                case StartTurn(number=number):
                    self.message_id, self.result_ids = "", []
                    self.live.attempt_open = True
                    session.tell(TurnStarted(run_id, number))
                case Record(messages=messages):
                    await self._record(messages)
                case Ask(stopped=stopped):
                    if not stopped:
                        if self.declaring.may_have_changed:
                            await self._declare()
                        await compact_if_due(session, self.live.stop)
                    reply = await self._reply(stopped)
                    self.reply_error = error_of(reply)
                    chance = session.around.chance.fraction()
                    commands.extend(feed(Replied(reply, chance, recovery_of_reply(session, reply))))
                case Call(calls=calls):
                    outcomes = await self._call(calls)
                    commands.extend(feed(Ran(outcomes, session.around.clock.now_ms())))
                case Drain(queue=queue):
                    drained = self._drained(queue)
                    if queue == "followUp" and not drained and await self.attending.nothing_left():
                        drained = self._drained("steering") or self._drained("followUp")
                    commands.extend(feed(Drained(drained)))
                case EndTurn(number=number):
                    await self._end_turn(number)
                case EndAttempt(next=following):
                    self.live.attempt_open = False
                    session.tell(AttemptEnded(run_id, following))
                case ScheduleRetry():
                    self._tell_retry(command)
                case Omit():
                    await session.record(context_edit(self.message_id, None))
                case Wait(delay_ms=delay_ms):
                    commands.extend(feed(await wait_for_retry(self.live, delay_ms)))
                case EndRetry(attempt=attempt, error=error):
                    self.live.retry = 0
                    told = None if error is None else error.as_object()
                    session.tell(RetryEnded(run_id, attempt, error is None, told))
                case Recover(recovery=recovery, is_first=is_first):
                    reply_id = self.message_id
                    has_room = await recover(session, recovery, reply_id, is_first, self.live.stop)
                    commands.extend(feed(Recovered(has_room)))
                case Fit():
                    compacted = await compact_if_due(session, self.live.stop)
                    commands.extend(feed(Fitted(compacted)))
                case Settle(outcome=outcome):
                    await versions.end()
                    return outcome

    def _tell_retry(self, command: ScheduleRetry) -> None:
        self.live.retry = command.attempt
        self.session.tell(
            RetryScheduled(
                self.live.run_id,
                command.attempt,
                command.attempts_max,
                command.delay_ms,
                command.error.as_object(),
            )
        )

    async def _record_choices(self) -> None:
        """Write down model and thinking level where the branch implies others."""
        session = self.session
        bodies: list[Body] = []
        if session.chosen.model is not None and session.projection.model != session.chosen.model:
            bodies.append(model_change(*session.chosen.model))
        if session.projection.thinking_level != session.chosen.thinking_level:
            bodies.append(thinking_level_change(session.chosen.thinking_level))
        if bodies:
            await session.record(*bodies)

    async def _prepare(self, message: JsonObject) -> None:
        """Let hooks add to the run. A run that one refuses has its words stored all the same."""
        session, declaring = self.session, self.declaring
        try:
            prepared = await prepare_run(session, message, declaring.active_names, self.live.stop)
        except Stopped:
            # What was prompted is stored, and answered by an aborted reply.
            return
        except Failure:
            await session.record(body_of_message(message))
            raise
        declaring.sections, declaring.tool_names = prepared.sections, prepared.tools
        declaring.system_prompt = prepared.system_prompt
        note = await note_for_model(session)
        messages = prepared.messages if note is None else [*prepared.messages, note]
        waited = session.queues.next_prompt if message["role"] == "user" else []
        self.added_waited = len(waited)
        self.added = [
            *(body_of_message(one) for one in waited),
            *(custom_message(one) for one in messages),
        ]

    def _starting(self, message: JsonObject) -> list[JsonObject]:
        patch = self.declaring.patch()
        return [message] if patch is None else [patch, message]

    async def _declare(self) -> None:
        patch = self.declaring.patch()
        if patch is not None:
            await self._record([patch])

    async def _record(self, messages: Sequence[JsonObject]) -> None:
        session = self.session
        for message in messages:
            if message["role"] == "assistant":
                await self.versions.before_reply([call.name for call in tool_calls_of(message)])
        messages = await self.attending.to_store(messages)
        before = session.leaf_row
        bodies = [body_of_message(message) for message in messages]
        entries = await session.record(*bodies, *self.added)
        self.taken.clear()
        self.added.clear()
        if self.added_waited:
            del session.queues.next_prompt[: self.added_waited]
            self.added_waited = 0
        for entry, message in zip(entries, messages, strict=False):
            if message["role"] != "assistant" or not self.assistant_told:
                session.tell(MessageStarted(message["role"]))
            session.tell(MessageEnded(entry.id, message), weight=len(str(message)))
            if message["role"] == "assistant":
                self.message_id = entry.id
            elif message["role"] == "toolResult":
                self.result_ids.append(entry.id)
        self.assistant_told = False
        if any(message["role"] == "toolResult" for message in messages):
            marked = bool(self.effects)
            self.effects.clear()
            self.versions.results_recorded(marked)
            session.standing.files = files_after_calls(
                session.tree, session.standing.files, before, session.leaf_row, marked
            )

    async def _reply(self, stopped: bool) -> JsonObject:
        session, clock = self.session, self.session.around.clock
        assert session.chosen.model is not None, "a run is admitted only with a model"
        provider, model_id = session.chosen.model
        serving = session.around.models.provider_of(provider, model_id)
        at_ms = clock.now_ms()
        if stopped:
            empty = Fold()
            empty.cut("aborted")
            return empty.message(provider, model_id, serving.api, at_ms, 0)
        adjust = payload_hooks(session)
        request = ModelRequest(
            provider=provider,
            model_id=model_id,
            thinking_level=session.chosen.thinking_level,
            messages=self.declaring.as_forced(await self.attending.request()),
            session_id=session.session_id,
            script=session.chosen.script,
            script_position=session.chosen.script_position,
            adjust=adjust,
            asking=asking_settings(session),
            # Hooks in this process may change in place what they are shown.
            kept=session.history.kept_by_provider if adjust is None else {},
        )
        session.last_asked_row = session.leaf_row
        self.versions.name_state_after()
        deltas = Deltas(session.hub)
        is_held = self.attending.holds_deltas
        async with Asking(serving, request, self.live.stop) as reply:
            async for pieces in reply:
                if not self.assistant_told:
                    self.assistant_told = True
                    session.tell(MessageStarted("assistant"))
                if self.versions.are_kept:
                    self._look_ahead(pieces)
                if not is_held:
                    deltas.tell(pieces)
                await self._give_way()
        deltas.flush()
        if reply.script_position is not None:
            session.chosen.script_position = reply.script_position
        return reply.message(serving.api, at_ms, clock.now_ms() - at_ms)

    def _look_ahead(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if isinstance(piece, BlockStarted) and piece.name is not None:
                self.versions.expect(piece.name)

    async def _give_way(self) -> None:
        """Wait for listeners that lag; a stop ends that, for one may never read again."""
        hub, stop = self.session.hub, self.live.stop
        if stop.is_set() or not hub.is_full:
            return
        waiting = anyio.CancelScope()
        with stop.calling(waiting.cancel), waiting:
            await hub.wait_until_free()

    async def _call(self, calls: Sequence[ToolCall]) -> list[ToolOutcome]:
        session = self.session
        environment = child_environment(session)
        place = Place(session.cwd, environment, session.spill_folder, tool_settings(session))
        tools = self.declaring.tools()
        async with Calling(
            calls,
            tools,
            place,
            self.live.stop,
            session.around.clock,
            grace_s=session.around.grace_s,
            left_behind=session.around.left_behind,
        ) as batch:
            async for happening in batch:
                match happening:
                    case CallStarted(call=call):
                        session.tell(ToolStarted(call.id, call.name, call.arguments))
                    case CallProgressed(call_id=call_id, content=content, details=details):
                        session.tell(
                            ToolProgressed(call_id, content, details), weight=len(str(content))
                        )
                    case CallEnded():
                        self._tell_ended(happening)
                await self._give_way()
        return batch.outcomes

    def _tell_ended(self, happening: CallEnded) -> None:
        call, outcome = happening.call, happening.outcome
        if happening.effect != "none":
            self.effects.add(happening.effect)
            self.versions.call_ended(call.name, outcome.effective_arguments or call.arguments)
        effective = outcome.effective_arguments
        self.session.tell(
            ToolEnded(
                call.id,
                call.name,
                call.arguments,
                call.arguments if effective is None else effective,
                outcome.content,
                outcome.is_error,
                happening.effect,
                outcome.duration_ms,
                outcome.details,
                outcome.changed_by,
            ),
            weight=len(str(outcome.content)),
        )

    def _drained(self, queue: QueueName) -> list[JsonObject]:
        session = self.session
        waiting = session.queues.named(queue)
        # A stop may have come since the machine wanted this: it delivers nothing.
        if not waiting or self.live.stop.is_set():
            return []
        takes_all = session.queue_mode(queue) == "all"
        taken, waiting[:] = (waiting[:], []) if takes_all else (waiting[:1], waiting[1:])
        self.taken = [(queue, item) for item in taken]
        session.tell_queues()
        return [item.message for item in taken]

    def put_back(self) -> None:
        """Let words that were taken and could not be stored wait again."""
        for queue, item in reversed(self.taken):
            self.session.queues.named(queue).insert(0, item)
        if self.taken:
            self.taken.clear()
            self.session.tell_queues()

    async def _end_turn(self, number: int) -> None:
        session, live = self.session, self.live
        with anyio.CancelScope(shield=True):
            await session.sync()
        await self.attending.turn_ended(number, self.message_id, self.result_ids)
        session.tell(TurnEnded(live.run_id, number, self.message_id, list(self.result_ids)))
        await record_added(session)


async def wait_for_retry(live: LiveRun, delay_ms: int) -> Waited:
    """Wait until a retry is due, or until somebody ends the wait."""
    pause = live.pause = Stop()
    if not live.stop.is_set():
        with anyio.move_on_after(delay_ms / 1000):
            await pause.wait()
    live.pause = None
    return Waited(given_up=pause.is_set() and not live.stop.is_set())


def child_environment(session: Session) -> dict[str, str]:
    """Variables that tell a command which session runs it."""
    variables = {SESSION_VARIABLE: session.session_id}
    if session.stored.path is not None:
        variables["PI_SESSION_FILE"] = str(session.stored.path)
    if session.chosen.model is not None:
        variables["PI_PROVIDER"], variables["PI_MODEL"] = session.chosen.model
    variables["PI_REASONING_LEVEL"] = session.chosen.thinking_level
    return variables
