"""One summary: every request it takes, asked in order, each again after a failure that passes.

    async for step in summarise(provider, order, stop, clock):
        ...

Promises
- The last step is the `Summarised`; the steps before it tell of waits between attempts.
- A stop ends it at once, while a provider is silent and while it waits; nothing half is given.
- What an earlier request brought is told to the next; tokens of all of them are counted together.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence

import anyio
import anyio.lowlevel
import msgspec

from pi_rpc.agent.asking import Asking
from pi_rpc.agent.stopping import Stop
from pi_rpc.core.errors import Stopped
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.clock import Clock
from pi_rpc.core.ports.providers import ModelRequest, Provider
from pi_rpc.core.reply import ReplyError
from pi_rpc.core.retrying import RetryPolicy, delay_ms, error_of, is_retryable
from pi_rpc.core.summary import Round, joined, request_messages, summary_in
from pi_rpc.core.summary_rounds import SummaryRounds
from pi_rpc.core.turns import CANCELLED
from pi_rpc.core.usage import combined_usage


class SummaryOrder(msgspec.Struct, frozen=True):
    """What to summarise, and whom to ask."""

    rounds: SummaryRounds
    request: ModelRequest
    """The model and its settings; the messages of each request take the place of its own."""
    retry: RetryPolicy
    give_up: Stop = msgspec.field(default_factory=Stop)
    """Ends a wait between attempts: the failure before it is then for good."""


class Waiting(msgspec.Struct, frozen=True):
    """A request failed in a way that passes; the next attempt is made after a delay."""

    attempt: int
    """From 1: the further attempt that follows."""
    attempts_max: int
    delay_ms: int
    error: ReplyError


class Resumed(msgspec.Struct, frozen=True):
    """After waiting, a request was answered, or given up with this error."""

    attempt: int
    error: ReplyError | None = None


class Answered(msgspec.Struct, frozen=True):
    """A request was answered, however; replies of the offline model's script used by now."""

    script_position: int


class Summarised(msgspec.Struct, frozen=True):
    """The notes, whole."""

    text: str
    usage: JsonObject | None
    requests: int
    """How many answers it took."""


Step = Waiting | Resumed | Answered | Summarised


async def summarise(
    provider: Provider, order: SummaryOrder, stop: Stop, clock: Clock
) -> AsyncGenerator[Step, None]:
    """Ask for a summary, round by round.

    Raises Stopped `aborted` after a stop, Outside `summary_failed` for a round that failed for
    good.
    """
    asking = _Rounds(provider, order, stop, clock)
    history = order.rounds.earlier
    turn: str | None = None
    async for one in _in_turns(order.rounds.history, stop):
        async for step in asking.steps(one, history):
            yield step
        history = asking.text
    async for one in _in_turns(order.rounds.turn, stop):
        async for step in asking.steps(one, turn):
            yield step
        turn = asking.text
    yield Summarised(joined(history, turn), combined_usage(asking.usages), len(asking.usages))


async def _in_turns(rounds: Iterable[Round | None], stop: Stop) -> AsyncIterator[Round]:
    """The rounds as they are made, with a moment for others between the steps of the work."""
    for one in rounds:
        if one is not None:
            yield one
            continue
        await anyio.lowlevel.checkpoint()
        if stop.is_set():
            raise Stopped("aborted", "the summary was stopped before it was asked for")


class _Rounds:
    def __init__(self, provider: Provider, order: SummaryOrder, stop: Stop, clock: Clock) -> None:
        self._provider = provider
        self._order = order
        self._stop = stop
        self._clock = clock
        self.position = order.request.script_position
        self.usages: list[object] = []
        self.text = ""

    async def steps(self, one: Round, earlier: str | None) -> AsyncGenerator[Step, None]:
        prompt = one.prompt(earlier)
        attempt = 0
        while True:
            reply = await self._asked(prompt)
            yield Answered(self.position)
            error = error_of(reply)
            wait_ms = self._wait_ms(attempt + 1, error)
            if error is None or wait_ms is None:
                break
            attempt += 1
            yield Waiting(attempt, self._order.retry.retries_max, wait_ms, error)
            if await self._is_given_up(wait_ms):
                error = CANCELLED
                break
        # A stop ends the waiting too; it is told by whoever carries the summary out.
        if attempt and reply.get("stopReason") != "aborted":
            yield Resumed(attempt, error)
        self.text = summary_in(reply)
        self.usages.append(reply.get("usage"))

    def _wait_ms(self, attempt: int, error: ReplyError | None) -> int | None:
        if error is None or not is_retryable(error):
            return None
        return delay_ms(attempt, 0, error.retry_after_ms, self._order.retry)

    async def _asked(self, prompt: str) -> JsonObject:
        at_ms = self._clock.now_ms()
        messages: Sequence[JsonObject] = request_messages(prompt, at_ms)
        request = msgspec.structs.replace(
            self._order.request, messages=messages, script_position=self.position
        )
        async with Asking(self._provider, request, self._stop) as reply:
            async for _ in reply:
                pass
        if reply.script_position is not None:
            self.position = reply.script_position
        return reply.message(self._provider.api, at_ms, self._clock.now_ms() - at_ms)

    async def _is_given_up(self, wait_ms: int) -> bool:
        """Wait until it is time to ask again; whether somebody ended the wait."""
        over = anyio.Event()
        give_up = self._order.give_up
        with self._stop.calling(over.set), give_up.calling(over.set):
            with anyio.move_on_after(wait_ms / 1000):
                await over.wait()
        if self._stop.is_set():
            raise Stopped("aborted", "the summary was stopped while it waited to ask again")
        return give_up.is_set()
