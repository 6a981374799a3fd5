"""A run as a state machine: happenings in, commands out.

The session feeds what happened and obeys what comes back, in order. The last command of an answer
says what is fed next: Replied after Ask, Ran after Call, Drained after Drain, Waited after Wait,
Recovered after Recover, Fitted after Fit, nothing after Settle.

    Began ─ record ─ drain ─▶ ask ─▶ Replied ─ record ─▶ call ─▶ Ran ─ record ─▶ drain ─▶ ask …
                                        ├─ no calls ─▶ drain steering, then followUp ─▶ settle
                                        ├─ may pass ─▶ omit, wait ─▶ Waited ─ drain ─▶ ask …
                                        └─ no room ─▶ recover ─▶ Recovered ─ drain ─▶ ask …

Before a run settles that was not stopped, the context is fitted once more for the next one.

A run is made of attempts: a reply that failed for a passing reason ends one and another follows; so
does a follow-up that keeps the run alive.

Promises
- Each call of a recorded reply that neither failed nor was aborted is answered by exactly one
  recorded result, before anything else is asked; calls of other replies are never run.
- Every run settles, exactly once.
- A stop delivers nothing from the queues: what waits there waits on.
- Every attempt is told to end, exactly once, and every retry told of has an end.
- A failed reply that is asked for again is kept out of the context; the last failure is not.
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Literal

import msgspec

from pi_rpc.core.events import AttemptNext, Outcome, QueueMode
from pi_rpc.core.messages import (
    JsonObject,
    ToolCall,
    ToolOutcome,
    tool_calls_of,
    tool_result_message,
)
from pi_rpc.core.reply import ReplyError
from pi_rpc.core.retrying import RetryPolicy, delay_ms, error_of, is_retryable
from pi_rpc.core.thresholds import Recovery

QueueName = Literal["steering", "followUp"]
"""The queues a run drains: before its next request, or when it would otherwise end."""


class QueueModes(msgspec.Struct, frozen=True):
    """How many of the words that wait go with one request, for each queue."""

    steering: QueueMode = "one-at-a-time"
    follow_up: QueueMode = "one-at-a-time"


class Began(msgspec.Struct, frozen=True):
    """The run was admitted; `messages` start it."""

    messages: Sequence[JsonObject]


class Replied(msgspec.Struct, frozen=True):
    """The model's reply, whole or cut, as it is to be stored."""

    message: JsonObject
    chance: float = 0.0
    """A random number, at least 0 and below 1, for the wait before a retry."""
    recovery: Recovery | None = None
    """Why it failed for lack of room, if it did: it is asked for again once there is room."""


class Ran(msgspec.Struct, frozen=True):
    """What came of each call, in the order of the calls."""

    outcomes: Sequence[ToolOutcome]
    at_ms: int


class Drained(msgspec.Struct, frozen=True):
    """What a queue held and no longer holds: messages for the next request."""

    messages: Sequence[JsonObject] = ()


class Waited(msgspec.Struct, frozen=True):
    """The wait before a retry is over."""

    given_up: bool = False
    """Somebody would rather not have the retry."""


class Recovered(msgspec.Struct, frozen=True):
    """What became of a recovery: whether there is room now to ask again."""

    has_room: bool


class Fitted(msgspec.Struct, frozen=True):
    """The context was looked at, and compacted if that was due."""

    compacted: bool = False


class Stopped(msgspec.Struct, frozen=True):
    """Somebody wants the run to end; may come at any time, more than once."""


class Wanted(msgspec.Struct, frozen=True):
    """Somebody wants one more request, if nothing else leads to one; may come at any time."""


Happening = Began | Replied | Ran | Drained | Waited | Recovered | Fitted | Stopped | Wanted


class StartTurn(msgspec.Struct, frozen=True):
    """Tell that a turn begins; turns of a run are counted from 1."""

    number: int


class EndTurn(msgspec.Struct, frozen=True):
    """Tell that a turn is over: its reply and all its results are recorded."""

    number: int


class Record(msgspec.Struct, frozen=True):
    """Store these messages, in order."""

    messages: Sequence[JsonObject]


class Ask(msgspec.Struct, frozen=True):
    """Ask the model with the context as it is now; feed Replied."""

    stopped: bool = False
    """The run is stopped: nobody is asked, and the reply is an empty aborted one."""


class Call(msgspec.Struct, frozen=True):
    """Run these calls; feed Ran. Those with an `arguments_error` are answered by it, never run."""

    calls: Sequence[ToolCall]


class Drain(msgspec.Struct, frozen=True):
    """Take from this queue what may go with the next request; feed Drained."""

    queue: QueueName


class EndAttempt(msgspec.Struct, frozen=True):
    """Tell that an attempt is over, and what follows."""

    next: AttemptNext


class ScheduleRetry(msgspec.Struct, frozen=True):
    """Tell that the failed reply will be asked for again; retries count from 1."""

    attempt: int
    attempts_max: int
    delay_ms: int
    error: ReplyError


class Omit(msgspec.Struct, frozen=True):
    """Keep the newest reply out of the context from here on."""


class Wait(msgspec.Struct, frozen=True):
    """Wait so long, or until the run is stopped or the retry given up; feed Waited."""

    delay_ms: int


class EndRetry(msgspec.Struct, frozen=True):
    """Tell what came of the retries: a reply that did not fail, or this error."""

    attempt: int
    error: ReplyError | None = None


class Recover(msgspec.Struct, frozen=True):
    """Keep the newest reply out of the context and compact it; feed Recovered."""

    recovery: Recovery
    is_first: bool
    """False when that was done for this input already: then there is no room, and that is told."""


class Fit(msgspec.Struct, frozen=True):
    """Compact the context if it is too full for what comes next; feed Fitted."""


class Settle(msgspec.Struct, frozen=True):
    """The run is over."""

    outcome: Outcome


Command = (
    StartTurn
    | EndTurn
    | Record
    | Ask
    | Call
    | Drain
    | EndAttempt
    | ScheduleRetry
    | Omit
    | Wait
    | EndRetry
    | Recover
    | Fit
    | Settle
)

CUT_ARGUMENTS = (
    "the reply stopped at its length limit, so they may be cut and the call was not run; "
    "make the call again, in smaller parts if it is long"
)
"""What the model is told of each call in a reply that stopped at its length limit."""

CANCELLED = ReplyError("cancelled", "The retry was given up.")
"""What ended a retry that somebody stopped."""


class _Awaits(Enum):
    BEGIN = auto()
    REPLY = auto()
    OUTCOMES = auto()
    # Steering at the start of the run: the turn is open and a request follows in any case.
    FIRST_STEERING = auto()
    # Steering after results: a request follows in any case.
    STEERING = auto()
    # Steering and then follow-ups when the run would otherwise end.
    LAST_STEERING = auto()
    FOLLOW_UP = auto()
    WAITED = auto()
    RECOVERED = auto()
    FITTED = auto()
    NOTHING = auto()


class Run:
    """One run, from its first message until it is settled."""

    def __init__(self, policy: RetryPolicy | None = None, *, makes_room: bool = False) -> None:
        """`makes_room`: whether the context is looked at before the run ends."""
        self._policy = policy or RetryPolicy()
        self._makes_room = makes_room
        self._awaits = _Awaits.BEGIN
        self._turn = 0
        self._calls: Sequence[ToolCall] = ()
        self._stopped = False
        self._wants_more = False
        self._last_stop = ""
        self._retry = 0
        """The number of the retry that was told of and has not ended; 0 for none."""
        self._made_room = False
        """Whether a recovery was tried since the last input or good reply."""
        self._end: tuple[Outcome, ReplyError | None] = ("done", None)
        """How the run will end, while the context is looked at before that."""
        self._has_looked = False
        """Whether that was done since the last turn began."""

    @property
    def turn(self) -> int:
        """The number of the newest turn; 0 before the first."""
        return self._turn

    @property
    def wants_more(self) -> bool:
        """Whether one more request is wanted since the last was made."""
        return self._wants_more

    @property
    def is_settled(self) -> bool:
        """Whether Settle was given."""
        return self._awaits is _Awaits.NOTHING

    def feed(self, happening: Happening) -> Sequence[Command]:
        """What is to be done now, in order.

        Stopped gives nothing to do: who carries out the present command ends it early, and what it
        came to is fed as ever. Wanted gives nothing to do either: it is heeded when the run would
        otherwise end well. Any happening but the one awaited is a mistake of the caller.
        """
        match happening, self._awaits:
            case Stopped(), _:
                self._stopped = True
                return ()
            case Wanted(), _:
                self._wants_more = True
                return ()
            case Began(messages=messages), _Awaits.BEGIN:
                return (self._start_turn(), Record(messages), *self._after_start())
            case Replied(), _Awaits.REPLY:
                return self._replied(happening)
            case Ran(outcomes=outcomes, at_ms=at_ms), _Awaits.OUTCOMES:
                return self._ran(outcomes, at_ms)
            case Drained(messages=messages), _:
                return self._drained(messages)
            case Waited(given_up=given_up), _Awaits.WAITED:
                return self._waited(given_up)
            case Recovered(has_room=has_room), _Awaits.RECOVERED:
                return self._recovered(has_room)
            case Fitted(compacted=compacted), _Awaits.FITTED:
                return self._fitted(compacted)
            case _:
                raise AssertionError(f"{happening!r} came while the run awaits {self._awaits.name}")

    def _replied(self, reply: Replied) -> Sequence[Command]:
        message = reply.message
        self._last_stop = str(message.get("stopReason", ""))
        record, end = Record((message,)), EndTurn(self._turn)
        if reply.recovery is not None and not self._stopped and not tool_calls_of(message):
            return (record, end, self._recover(message, reply.recovery))
        if self._last_stop == "error":
            return (record, end, *self._failed(message, reply.chance))
        if self._last_stop == "aborted":
            return (record, end, *self._settle("aborted", CANCELLED))
        self._made_room = self._made_room and self._last_stop == "length"
        done: Sequence[Command] = (record, *self._end_retry(None))
        calls = tool_calls_of(message)
        if not calls:
            return (*done, end, *self._before_end())
        if self._last_stop == "length":
            calls = [msgspec.structs.replace(call, arguments_error=CUT_ARGUMENTS) for call in calls]
        self._calls = calls
        self._awaits = _Awaits.OUTCOMES
        return (*done, Call(calls))

    def _failed(self, message: JsonObject, chance: float) -> Sequence[Command]:
        error = error_of(message)
        assert error is not None, "a reply that failed says so"
        wait_ms = None
        if is_retryable(error) and not self._stopped:
            wait_ms = delay_ms(self._retry + 1, chance, error.retry_after_ms, self._policy)
        if wait_ms is None:
            return self._last_look("failed", error)
        self._retry += 1
        self._awaits = _Awaits.WAITED
        scheduled = ScheduleRetry(self._retry, self._policy.retries_max, wait_ms, error)
        return (EndAttempt("retry"), scheduled, Omit(), Wait(wait_ms))

    def _recover(self, message: JsonObject, recovery: Recovery) -> Recover:
        is_first, self._made_room = not self._made_room, True
        self._end = (
            ("failed", error_of(message)) if self._last_stop == "error" else ("truncated", None)
        )
        self._awaits = _Awaits.RECOVERED
        return Recover(recovery, is_first)

    def _recovered(self, has_room: bool) -> Sequence[Command]:
        outcome, error = self._end
        if has_room and not self._stopped:
            begun = (EndAttempt("recover"), self._start_turn())
            return (*begun, self._drain("steering", _Awaits.FIRST_STEERING))
        if outcome == "failed":
            return self._settle(outcome, error)
        return (*self._end_retry(None), *self._before_end())

    def _last_look(self, outcome: Outcome, error: ReplyError | None = None) -> Sequence[Command]:
        if not self._makes_room or self._has_looked or self._stopped:
            return self._settle(outcome, error)
        self._has_looked = True
        self._end = (outcome, error)
        self._awaits = _Awaits.FITTED
        return (Fit(),)

    def _fitted(self, compacted: bool) -> Sequence[Command]:
        outcome, error = self._end
        if outcome == "failed" or self._stopped or not compacted:
            return self._settle(outcome, error)
        # Words may have come in meanwhile.
        return (self._drain("steering", _Awaits.LAST_STEERING),)

    def _waited(self, given_up: bool) -> Sequence[Command]:
        if self._stopped or given_up:
            # The attempt before has ended, and no other has begun.
            return (*self._end_retry(CANCELLED), self._end_run("failed"))
        return (self._start_turn(), self._drain("steering", _Awaits.FIRST_STEERING))

    def _ran(self, outcomes: Sequence[ToolOutcome], at_ms: int) -> Sequence[Command]:
        results = [
            tool_result_message(call, outcome, at_ms)
            for call, outcome in zip(self._calls, outcomes, strict=True)
        ]
        self._calls = ()
        recorded = (Record(results), EndTurn(self._turn))
        if all(outcome.terminate for outcome in outcomes):
            return (*recorded, *self._before_end())
        if self._stopped:
            # The reply to these results is an aborted one, so that the history says who ended it.
            return (*recorded, self._start_turn(), self._ask())
        return (*recorded, self._drain("steering", _Awaits.STEERING))

    def _drained(self, messages: Sequence[JsonObject]) -> Sequence[Command]:
        self._made_room = self._made_room and not messages
        drained = (Record(messages),) if messages else ()
        match self._awaits:
            case _Awaits.FIRST_STEERING:
                return (*drained, self._ask())
            case _Awaits.STEERING:
                return (self._start_turn(), *drained, self._ask())
            case _Awaits.LAST_STEERING if messages:
                return (self._start_turn(), *drained, self._ask())
            case _Awaits.FOLLOW_UP if messages:
                return (EndAttempt("queued"), self._start_turn(), *drained, self._ask())
            case _Awaits.LAST_STEERING if not self._stopped:
                return (self._drain("followUp", _Awaits.FOLLOW_UP),)
            case _Awaits.FOLLOW_UP if self._wants_more and not self._stopped:
                return (self._start_turn(), self._drain("steering", _Awaits.FIRST_STEERING))
            case _Awaits.LAST_STEERING | _Awaits.FOLLOW_UP:
                return self._last_look(self._outcome())
            case _:
                raise AssertionError(
                    f"a queue was drained while the run awaits {self._awaits.name}"
                )

    def _after_start(self) -> Sequence[Command]:
        if self._stopped:
            return (self._ask(),)
        return (self._drain("steering", _Awaits.FIRST_STEERING),)

    def _before_end(self) -> Sequence[Command]:
        if self._stopped:
            return self._settle("aborted")
        return (self._drain("steering", _Awaits.LAST_STEERING),)

    def _outcome(self) -> Outcome:
        return "truncated" if self._last_stop == "length" else "done"

    def _start_turn(self) -> StartTurn:
        self._turn += 1
        self._has_looked = False
        return StartTurn(self._turn)

    def _ask(self) -> Ask:
        self._wants_more = False
        self._awaits = _Awaits.REPLY
        return Ask(self._stopped)

    def _drain(self, queue: QueueName, awaits: _Awaits) -> Drain:
        self._awaits = awaits
        return Drain(queue)

    def _end_retry(self, error: ReplyError | None) -> Sequence[Command]:
        attempt, self._retry = self._retry, 0
        return (EndRetry(attempt, error),) if attempt else ()

    def _settle(self, outcome: Outcome, error: ReplyError | None = None) -> Sequence[Command]:
        return (EndAttempt("none"), *self._end_retry(error), self._end_run(outcome))

    def _end_run(self, outcome: Outcome) -> Settle:
        self._awaits = _Awaits.NOTHING
        return Settle("aborted" if self._stopped else outcome)
