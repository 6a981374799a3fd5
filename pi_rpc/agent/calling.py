"""One batch of calls: each is checked, run, bounded and answered.

    async with Calling(calls, tools, place, stop, clock) as running:
        async for happening in running:
            ...
    outcomes = running.outcomes

Promises
- Every call is told to start once, in order, and to end once; it has one outcome, in call order.
- Calls run side by side, unless one of the tools called must be alone: then one after another.
- What a call shows while it runs is told before its end, the newest only: a reader that is slow
  costs no memory.
- A tool that fails, however it fails, gives an outcome marked as error. One of our own making is
  logged under an incident id, which the outcome names.
- After a stop no call is begun. A call that still runs when the grace is over is cancelled, and one
  that withstands even that is left behind; the outcomes of both say `abandoned`.
"""

import logging
import os
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

import anyio
import msgspec
from anyio.abc import TaskGroup

from pi_rpc.agent.background import Background
from pi_rpc.agent.stopping import Stop
from pi_rpc.core.arguments import checked
from pi_rpc.core.errors import Failure, Invalid
from pi_rpc.core.messages import Block, JsonObject, ToolCall, ToolOutcome, text_block
from pi_rpc.core.ports.clock import Clock
from pi_rpc.core.ports.tools import CallContext, Effect, Tool, ToolSettings
from pi_rpc.core.reply import QUOTED_CHARS

GRACE_S = 5.0
"""How long a call may take to end by itself after a stop: time to kill a process tree kindly."""

UNWIND_SHARE = 0.2
"""How long a cancelled call may take to unwind before it is left behind, as a part of the grace."""

_log = logging.getLogger(__name__)


class Place(msgspec.Struct, frozen=True):
    """Where calls run: what every call of a session is given alike."""

    cwd: Path
    environment: dict[str, str]
    spill_folder: Path
    settings: ToolSettings = ToolSettings()


class CallStarted(msgspec.Struct, frozen=True):
    """A call begins."""

    call: ToolCall
    effective_arguments: JsonObject
    """As the tool's schema reads them; the model's own when they cannot be read."""


class CallProgressed(msgspec.Struct, frozen=True):
    """What a call has to show so far, instead of what it showed before."""

    call_id: str
    content: list[Block]
    details: JsonObject | None


class CallEnded(msgspec.Struct, frozen=True):
    """A call is over; calls end in any order."""

    call: ToolCall
    outcome: ToolOutcome
    effect: Effect
    """The most it may have touched; `none` when it never ran."""


CallHappening = CallStarted | CallProgressed | CallEnded


@runtime_checkable
class Lenient(Protocol):
    """A tool that understands more forms of its arguments than it declares."""

    def prepared(self, arguments: JsonObject) -> JsonObject:
        """The arguments in the declared form, as far as they are understood."""
        ...


class Calling(AsyncIterator[CallHappening]):
    """A batch while it runs: enter it, iterate it once for what happens, take the outcomes.

    Calls run in `left_behind` when given, so that one which withstands cancellation does not hold
    this batch up; without it, leaving the block waits for such a call.
    """

    def __init__(
        self,
        calls: Sequence[ToolCall],
        tools: Mapping[str, Tool],
        place: Place,
        stop: Stop,
        clock: Clock,
        *,
        grace_s: float = GRACE_S,
        left_behind: TaskGroup | None = None,
    ) -> None:
        self._tools = tools
        self._place = place
        self._stop = stop
        self._clock = clock
        self._grace_s = grace_s
        self._left_behind = left_behind
        self._running = [_Running(self, index, call) for index, call in enumerate(calls)]
        self._in_turn = deque[_Running]()
        """Calls that wait for the one before them to end."""
        self._giving_up = anyio.CancelScope()
        self._unended = len(calls)
        # Keyed by call and kind: a newer progress takes the place of the one nobody has read.
        self._unread: dict[tuple[int, type[CallHappening]], CallHappening] = {}
        self._news = anyio.Event()
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        tasks = self._left_behind
        if tasks is None:
            tasks = await self._open.enter_async_context(Background())
        self._start = tasks.start_soon
        self._open.callback(self._leave)
        self._open.enter_context(self._stop.calling(self._give_up_soon))
        self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._open.__aexit__(kind, raised, trace)

    async def __anext__(self) -> CallHappening:
        while not self._unread:
            if not self._unended:
                raise StopAsyncIteration
            self._news = anyio.Event()
            await self._news.wait()
        return self._unread.pop(next(iter(self._unread)))

    @property
    def outcomes(self) -> list[ToolOutcome]:
        """What came of each call, in call order; to be read when the iteration is over."""
        outcomes = [one.outcome for one in self._running if one.outcome is not None]
        assert len(outcomes) == len(self._running), "the batch still runs"
        return outcomes

    def tell(self, index: int, happening: CallHappening) -> None:
        """Put up what happened to a call for the reader."""
        self._unread[index, type(happening)] = happening
        self._news.set()

    def end(self, running: "_Running", outcome: ToolOutcome, effect: Effect) -> None:
        """Settle a call."""
        running.outcome = outcome
        self._unended -= 1
        self.tell(running.index, CallEnded(running.call, outcome, effect))

    def _begin(self) -> None:
        tools = (self._tools.get(one.call.name) for one in self._running)
        if any(tool is not None and tool.sequential for tool in tools):
            self._in_turn.extend(self._running)
            self._begin_next()
            return
        prepared = [(running, self._prepare(running)) for running in self._running]
        for running, ready in prepared:
            if ready is not None:
                self._start(self._run, running, *ready)

    def _begin_next(self) -> None:
        while self._in_turn:
            running = self._in_turn.popleft()
            ready = self._prepare(running)
            if ready is not None:
                self._start(self._run, running, *ready)
                return

    def _prepare(self, running: "_Running") -> tuple[Tool, ToolCall] | None:
        """The tool, and the call as it will run; None when it is answered already."""
        call = running.call
        tool = self._tools.get(call.name)
        problem = None
        effective = call
        if self._stop.is_set():
            problem = "The call was not run: it was stopped before it began."
        elif tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            problem = f'There is no tool named "{call.name}". Tools: {known}.'
        elif call.arguments_error is not None:
            problem = f"The arguments of {call.name} could not be used: {call.arguments_error}"
        else:
            try:
                given = call.arguments
                prepared = tool.prepared(given) if isinstance(tool, Lenient) else given
                arguments = checked(prepared, tool.declaration.parameters)
                effective = msgspec.structs.replace(call, arguments=arguments)
            except Invalid as invalid:
                problem = (
                    f"The arguments of {call.name} are not what it takes:\n{invalid.message}\n"
                    f"Received: {_quoted(call.arguments)}"
                )
        self.tell(running.index, CallStarted(call, effective.arguments))
        if tool is not None and problem is None:
            return tool, effective
        assert problem is not None, "a tool that is not there is a problem"
        self.end(running, _failed(problem), "none")
        return None

    async def _run(self, running: "_Running", tool: Tool, call: ToolCall) -> None:
        place = self._place
        context = CallContext(
            place.cwd,
            self._stop,
            running,
            place.environment,
            place.spill_folder,
            place.settings,
        )
        running.began(call, tool.effect, self._clock.now_ms())
        with running.scope:
            outcome = await _fenced(tool, call, context)
        if running.scope.cancelled_caught:
            outcome = self._abandoned()
        self._end_run(running, outcome)

    def _end_run(self, running: "_Running", outcome: ToolOutcome) -> None:
        if running.outcome is not None:
            # It was given up before it ended, and the next one has begun.
            return
        self.end(running, *self._ended(running, outcome))
        self._begin_next()

    def _ended(self, running: "_Running", outcome: ToolOutcome) -> tuple[ToolOutcome, Effect]:
        if not outcome.ran:
            return outcome, "none"
        changes: JsonObject = {}
        if running.began_ms is not None and outcome.duration_ms is None:
            changes["duration_ms"] = self._clock.now_ms() - running.began_ms
        given = outcome.effective_arguments is not None
        if not given and running.effective_arguments != running.call.arguments:
            changes["effective_arguments"] = running.effective_arguments
        return msgspec.structs.replace(outcome, **changes), running.effect

    def _give_up_soon(self) -> None:
        self._start(self._give_up)

    async def _give_up(self) -> None:
        with self._giving_up:
            await anyio.sleep(self._grace_s)
            self._cancel()
            await anyio.sleep(self._grace_s * UNWIND_SHARE)
            for running in self._running:
                if running.outcome is None:
                    self._end_run(running, self._abandoned())

    def _leave(self) -> None:
        self._in_turn.clear()
        self._giving_up.cancel()
        self._cancel()

    def _cancel(self) -> None:
        for running in self._running:
            if running.outcome is None:
                running.scope.cancel()

    def _abandoned(self) -> ToolOutcome:
        return _failed(
            f"The call was stopped, did not end within {self._grace_s:g} s and was abandoned; "
            "what it had done by then is not known.",
            {"abandoned": True},
        )


class _Running:
    """One call of the batch, and the place where it tells its progress."""

    def __init__(self, batch: Calling, index: int, call: ToolCall) -> None:
        self.index = index
        self.call = call
        self.scope = anyio.CancelScope()
        self.outcome: ToolOutcome | None = None
        self.effective_arguments = call.arguments
        self.effect: Effect = "none"
        self.began_ms: int | None = None
        self._batch = batch

    def began(self, effective: ToolCall, effect: Effect, at_ms: int) -> None:
        self.effective_arguments = effective.arguments
        self.effect = effect
        self.began_ms = at_ms

    def tell(self, content: list[Block], details: JsonObject | None = None) -> None:
        # What a call that is over or left behind has to show comes too late.
        if self.outcome is None:
            self._batch.tell(self.index, CallProgressed(self.call.id, content, details))


async def _fenced(tool: Tool, call: ToolCall, context: CallContext) -> ToolOutcome:
    try:
        outcome = await tool.run(call, context)
        if not isinstance(outcome, ToolOutcome):
            raise TypeError(f"a tool gives a ToolOutcome, not {type(outcome).__name__}")
        return outcome
    except Failure as failure:
        return _failed(failure.message, {"reason": failure.reason, **failure.data})
    except Exception:
        incident = os.urandom(8).hex()
        _log.exception("incident %s: the tool %s failed", incident, call.name)
        return _failed(
            f"The tool {call.name} failed by a fault of its own (incident {incident}).",
            {"incidentId": incident},
        )


def _quoted(arguments: JsonObject) -> str:
    text = msgspec.json.encode(arguments).decode()
    return text if len(text) <= QUOTED_CHARS else f"{text[:QUOTED_CHARS]}…"


def _failed(text: str, details: JsonObject | None = None) -> ToolOutcome:
    return ToolOutcome([text_block(text)], is_error=True, details=details)
