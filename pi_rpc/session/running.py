"""The loop: do what the turn machine says, until it says settle.

Promises
- Every accepted run is told settled, exactly once, after everything of it is stored.
- What cannot be stored ends the run as failed and says why; a run never raises.
"""

import logging
import uuid
from collections import deque
from collections.abc import Sequence

import anyio

from pi_rpc.agent.asking import Asking
from pi_rpc.agent.background import Background
from pi_rpc.agent.calling import CallEnded, Calling, CallProgressed, CallStarted, Place
from pi_rpc.core.entries import Body, message_body, model_change, thinking_level_change
from pi_rpc.core.errors import Failure
from pi_rpc.core.events import (
    AttemptEnded,
    MessageEnded,
    MessageStarted,
    Outcome,
    QueueChanged,
    RunSettled,
    RunStarted,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from pi_rpc.core.messages import JsonObject, ToolCall, ToolDeclaration, ToolOutcome
from pi_rpc.core.ports import ModelRequest
from pi_rpc.core.prompt import Declared, declared_for, declared_in, system_patch
from pi_rpc.core.reply import Fold
from pi_rpc.core.turns import (
    Ask,
    Began,
    Call,
    Command,
    Drain,
    Drained,
    EndTurn,
    QueueName,
    Ran,
    Record,
    Replied,
    Settle,
    StartTurn,
)
from pi_rpc.core.versions import files_after_calls
from pi_rpc.session.deltas import Deltas
from pi_rpc.session.session import LiveRun, Session, failure_object

log = logging.getLogger(__name__)

OFFLINE_API = "offline"
"""What a stored reply names as its api until providers name their own."""


async def run_until_settled(session: Session, live: LiveRun, message: JsonObject) -> None:
    """Carry a run from its first message to its end."""
    outcome: Outcome = "failed"
    error: JsonObject | None = None
    try:
        session.tell(RunStarted(live.run_id))
        outcome = await _Runner(session, live).obey(message)
    except Failure as failure:
        error = failure_object(failure)
    except Exception:
        incident = uuid.uuid4().hex
        log.exception("incident %s: a run of session %s broke", incident, session.session_id)
        error = {"kind": "internal", "reason": "unexpected", "incident": incident}
    finally:
        _settle(session, live, outcome, error)


def _settle(session: Session, live: LiveRun, outcome: Outcome, error: JsonObject | None) -> None:
    live.outcome = outcome
    session.run = None
    session.last_run = live
    session.tell(AttemptEnded(live.run_id, "none"))
    session.tell(RunSettled(live.run_id, outcome, error))
    live.settled.set()


class _Runner:
    """One run being carried out."""

    def __init__(self, session: Session, live: LiveRun) -> None:
        self.session = session
        self.live = live
        self.effects: set[str] = set()
        self.message_id = ""
        self.result_ids: list[str] = []
        self.assistant_told = False

    async def obey(self, message: JsonObject) -> Outcome:
        await self._record_choices()
        feed = self.live.machine.feed
        commands = deque[Command](feed(Began(self._starting(message))))
        while True:
            match commands.popleft():
                case StartTurn(number=number):
                    self.message_id, self.result_ids = "", []
                    self.session.tell(TurnStarted(self.live.run_id, number))
                case Record(messages=messages):
                    await self._record(messages)
                case Ask(stopped=stopped):
                    commands.extend(feed(Replied(await self._reply(stopped))))
                case Call(calls=calls):
                    outcomes = await self._call(calls)
                    commands.extend(feed(Ran(outcomes, self.session.around.clock.now_ms())))
                case Drain(queue=queue):
                    commands.extend(feed(Drained(self._drained(queue))))
                case EndTurn(number=number):
                    await self._end_turn(number)
                case Settle(outcome=outcome):
                    return outcome

    async def _record_choices(self) -> None:
        """Write down model and thinking level where the branch implies others."""
        session = self.session
        bodies: list[Body] = []
        if session.model is not None and session.projection.model != session.model:
            bodies.append(model_change(*session.model))
        if session.projection.thinking_level != session.thinking_level:
            bodies.append(thinking_level_change(session.thinking_level))
        if bodies:
            await session.record(*bodies)

    def _starting(self, message: JsonObject) -> list[JsonObject]:
        now = self.session.around.clock.now_ms()
        patch = system_patch(self._declared(), self._wanted(), now)
        return [message] if patch is None else [patch, message]

    def _wanted(self) -> Declared:
        return declared_for(str(self.session.cwd), active_declarations(self.session))

    def _declared(self) -> Declared:
        return declared_in(self.session.projection.system())

    async def _record(self, messages: Sequence[JsonObject]) -> None:
        session = self.session
        before = session.leaf_row
        entries = await session.record(*(message_body(message) for message in messages))
        for entry, message in zip(entries, messages, strict=True):
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
            session.files = files_after_calls(
                session.tree, session.files, before, session.leaf_row, marked
            )

    async def _reply(self, stopped: bool) -> JsonObject:
        session, clock = self.session, self.session.around.clock
        assert session.model is not None, "a run is admitted only with a model"
        provider, model_id = session.model
        at_ms = clock.now_ms()
        if stopped:
            empty = Fold()
            empty.cut("aborted")
            return empty.message(provider, model_id, OFFLINE_API, at_ms, 0)
        request = ModelRequest(
            provider=provider,
            model_id=model_id,
            thinking_level=session.thinking_level,
            messages=session.projection.messages("llm"),
            session_id=session.session_id,
            script=session.script,
            script_position=session.script_position,
        )
        session.last_asked_row = session.leaf_row
        serving = session.around.models.provider_of(provider, model_id)
        deltas = Deltas(session.hub)
        async with Asking(serving, request, self.live.stop) as reply:
            async for pieces in reply:
                if not self.assistant_told:
                    self.assistant_told = True
                    session.tell(MessageStarted("assistant"))
                deltas.tell(pieces)
                await self._give_way()
        deltas.flush()
        if reply.script_position is not None:
            session.script_position = reply.script_position
        return reply.message(OFFLINE_API, at_ms, clock.now_ms() - at_ms)

    async def _give_way(self) -> None:
        """Wait for listeners that lag; a stop ends that, for one may never read again."""
        hub, stop = self.session.hub, self.live.stop
        if stop.is_set() or not hub.is_full:
            return
        async with Background() as tasks:
            waiting = anyio.CancelScope()
            tasks.start_soon(_cancel_on_stop, waiting, stop)
            with waiting:
                await hub.wait_until_free()

    async def _call(self, calls: Sequence[ToolCall]) -> list[ToolOutcome]:
        session = self.session
        place = Place(session.cwd, child_environment(session), session.spill_folder)
        tools = {name: session.around.tools[name] for name in session.active_tools}
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
            ),
            weight=len(str(outcome.content)),
        )

    def _drained(self, queue: QueueName) -> list[JsonObject]:
        session = self.session
        waiting = session.steering if queue == "steering" else session.follow_up
        if not waiting:
            return []
        taken = waiting.pop(0)
        session.tell(
            QueueChanged(
                [item.as_object() for item in session.steering],
                [item.as_object() for item in session.follow_up],
            )
        )
        return [taken.message]

    async def _end_turn(self, number: int) -> None:
        with anyio.CancelScope(shield=True):
            await self.session.sync()
        self.session.tell(
            TurnEnded(self.live.run_id, number, self.message_id, list(self.result_ids))
        )


async def _cancel_on_stop(scope: anyio.CancelScope, stop: anyio.Event) -> None:
    await stop.wait()
    scope.cancel()


def active_declarations(session: Session) -> list[ToolDeclaration]:
    """The tools a model is told of, in their order."""
    return [session.around.tools[name].declaration for name in session.active_tools]


def child_environment(session: Session) -> dict[str, str]:
    """Variables that tell a command which session runs it."""
    variables = {"PI_SESSION_ID": session.session_id}
    if session.stored.path is not None:
        variables["PI_SESSION_FILE"] = str(session.stored.path)
    if session.model is not None:
        variables["PI_PROVIDER"], variables["PI_MODEL"] = session.model
    variables["PI_REASONING_LEVEL"] = session.thinking_level
    return variables
