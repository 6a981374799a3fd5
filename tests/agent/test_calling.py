"""A batch of calls: checked, run beside each other, bounded, and each answered once."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.agent.calling import (
    CallEnded,
    CallHappening,
    Calling,
    CallProgressed,
    CallStarted,
    Place,
)
from pi_rpc.agent.stopping import Stop
from pi_rpc.core.errors import Missing
from pi_rpc.core.messages import JsonObject, ToolCall, ToolDeclaration, ToolOutcome, text_block
from pi_rpc.core.ports.tools import CallContext, Effect

Body = Callable[[ToolCall, CallContext], Awaitable[ToolOutcome]]

PLACE = Place(Path("/work"), {"A": "1"}, Path("/spill"))
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"count": {"type": "integer"}},
    "required": ["count"],
}


class CountedClock:
    """Every look at it takes a millisecond."""

    def __init__(self) -> None:
        self._ms = 0

    def now_ms(self) -> int:
        self._ms += 1
        return self._ms


class Tool:
    """Does what the test gave it to do."""

    effect: Effect = "workspace"

    def __init__(
        self, name: str, body: Body, *, sequential: bool = False, schema: JsonObject | None = None
    ) -> None:
        self.declaration = ToolDeclaration(name, "", schema or {"type": "object"})
        self.sequential = sequential
        self._body = body

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        return await self._body(call, context)


def said(text: str) -> ToolOutcome:
    return ToolOutcome([text_block(text)])


async def answer(call: ToolCall, context: CallContext) -> ToolOutcome:
    return said(f"{call.name} ran")


async def hang(call: ToolCall, context: CallContext) -> ToolOutcome:
    await anyio.sleep_forever()
    raise AssertionError


async def heed(call: ToolCall, context: CallContext) -> ToolOutcome:
    await context.stop.wait()
    return ToolOutcome([text_block("half")], is_error=True)


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(f"c{index}", name, {}) for index, name in enumerate(names)]


def batch(
    asked: Sequence[ToolCall], *tools: Tool, stop: anyio.Event | None = None, **options: Any
) -> Calling:
    known = {tool.declaration.name: tool for tool in tools}
    return Calling(asked, known, PLACE, stop or Stop(), CountedClock(), **options)


async def played(running: Calling) -> tuple[list[CallHappening], list[ToolOutcome]]:
    with anyio.fail_after(5):
        async with running:
            happenings = [happening async for happening in running]
    return happenings, running.outcomes


def gist(happenings: Sequence[CallHappening]) -> list[str]:
    said = []
    for one in happenings:
        match one:
            case CallStarted(call=call):
                said.append(f"start {call.id}")
            case CallProgressed(call_id=call_id):
                said.append(f"show {call_id}")
            case CallEnded(call=call):
                said.append(f"end {call.id}")
    return said


def text(outcome: ToolOutcome) -> str:
    return "".join(str(block["text"]) for block in outcome.content)


@pytest.mark.anyio
async def test_a_call_is_started_run_and_ended_with_its_outcome() -> None:
    [call] = calls("a")
    happenings, outcomes = await played(batch([call], Tool("a", answer)))
    expected = ToolOutcome([text_block("a ran")], duration_ms=1)
    assert happenings == [CallStarted(call, {}), CallEnded(call, expected, "workspace")]
    assert outcomes == [expected]


@pytest.mark.anyio
async def test_no_calls_are_over_at_once() -> None:
    assert await played(batch([])) == ([], [])


@pytest.mark.anyio
async def test_a_tool_is_given_its_place_and_the_stop() -> None:
    seen: list[CallContext] = []

    async def look(call: ToolCall, context: CallContext) -> ToolOutcome:
        seen.append(context)
        return said("")

    stop = Stop()
    await played(batch(calls("a"), Tool("a", look), stop=stop))
    [context] = seen
    assert (context.cwd, context.environment, context.spill_folder, context.stop) == (
        PLACE.cwd,
        PLACE.environment,
        PLACE.spill_folder,
        stop,
    )


@pytest.mark.anyio
async def test_calls_run_side_by_side_end_as_they_finish_and_are_answered_in_call_order() -> None:
    second_is_done = anyio.Event()

    async def slow(call: ToolCall, context: CallContext) -> ToolOutcome:
        await second_is_done.wait()
        return said("slow")

    async def fast(call: ToolCall, context: CallContext) -> ToolOutcome:
        second_is_done.set()
        return said("fast")

    asked = [*calls("slow", "fast", "none"), ToolCall("c3", "fast", {}, arguments_error="torn: {")]
    happenings, outcomes = await played(batch(asked, Tool("slow", slow), Tool("fast", fast)))
    assert gist(happenings) == [
        "start c0",
        "start c1",
        "start c2",
        "end c2",
        "start c3",
        "end c3",
        "end c1",
        "end c0",
    ]
    assert [text(outcome) for outcome in outcomes[:2]] == ["slow", "fast"]
    assert [outcome.is_error for outcome in outcomes] == [False, False, True, True]


@pytest.mark.anyio
async def test_one_sequential_tool_makes_the_whole_batch_run_in_turn() -> None:
    asked = calls("free", "alone", "none", "free")
    tools = [Tool("free", answer), Tool("alone", answer, sequential=True)]
    happenings, _ = await played(batch(asked, *tools))
    assert gist(happenings) == [
        f"{what} c{index}" for index in range(4) for what in ("start", "end")
    ]


@pytest.mark.anyio
async def test_an_unknown_tool_is_named_and_the_known_ones_with_it() -> None:
    happenings, [outcome] = await played(
        batch(calls("red"), Tool("read", answer), Tool("bash", answer))
    )
    assert outcome.is_error
    assert text(outcome) == 'There is no tool named "red". Tools: bash, read.'
    assert outcome.duration_ms is None
    assert isinstance(happenings[-1], CallEnded)
    assert happenings[-1].effect == "none"


@pytest.mark.anyio
async def test_unreadable_arguments_are_answered_with_the_reason_and_the_tool_is_not_run() -> None:
    call = ToolCall("c", "hang", {}, arguments_error='not JSON: {"a')
    _, [outcome] = await played(batch([call], Tool("hang", hang)))
    assert outcome.is_error
    assert text(outcome).endswith('not JSON: {"a')


@pytest.mark.anyio
async def test_arguments_of_the_wrong_shape_are_answered_with_what_is_wrong() -> None:
    call = ToolCall("c", "hang", {"count": "many"})
    _, [outcome] = await played(batch([call], Tool("hang", hang, schema=SCHEMA)))
    assert outcome.is_error
    assert "count: must be a whole number" in text(outcome)
    assert text(outcome).endswith('Received: {"count":"many"}')


@pytest.mark.anyio
async def test_a_tool_gets_the_arguments_as_its_schema_reads_them_and_the_outcome_says_so() -> None:
    seen: list[JsonObject] = []

    async def look(call: ToolCall, context: CallContext) -> ToolOutcome:
        seen.append(call.arguments)
        return said("")

    call = ToolCall("c", "look", {"count": "42"})
    happenings, [outcome] = await played(batch([call], Tool("look", look, schema=SCHEMA)))
    assert seen == [{"count": 42}]
    assert happenings[0] == CallStarted(call, {"count": 42})
    assert outcome.effective_arguments == {"count": 42}


@pytest.mark.anyio
async def test_a_tool_may_understand_more_forms_of_its_arguments_than_it_declares() -> None:
    class Lenient(Tool):
        def prepared(self, arguments: JsonObject) -> JsonObject:
            return {"count": arguments["number"]}

    call = ToolCall("c", "lenient", {"number": 3})
    _, [outcome] = await played(batch([call], Lenient("lenient", answer, schema=SCHEMA)))
    assert text(outcome) == "lenient ran"
    assert outcome.effective_arguments == {"count": 3}


@pytest.mark.anyio
async def test_a_failure_becomes_an_outcome_with_its_reason() -> None:
    async def miss(call: ToolCall, context: CallContext) -> ToolOutcome:
        raise Missing("file_not_found", "no such file", path="x")

    _, [outcome] = await played(batch(calls("miss"), Tool("miss", miss)))
    assert outcome == ToolOutcome(
        [text_block("no such file")],
        is_error=True,
        details={"reason": "file_not_found", "path": "x"},
        duration_ms=1,
    )


@pytest.mark.anyio
async def test_a_fault_becomes_an_outcome_and_is_logged_under_the_incident_it_names(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(call: ToolCall, context: CallContext) -> ToolOutcome:
        raise ZeroDivisionError("secret detail")

    tools = [Tool("fail", fail), Tool("answer", answer)]
    with caplog.at_level(logging.ERROR):
        _, [outcome, other] = await played(batch(calls("fail", "answer"), *tools))
    assert outcome.details is not None
    assert outcome.details["incidentId"] in text(outcome)
    assert "secret detail" not in text(outcome)
    [record] = caplog.records
    assert outcome.details["incidentId"] in record.getMessage()
    assert record.exc_info is not None
    assert text(other) == "answer ran"


@pytest.mark.anyio
async def test_a_tool_that_gives_no_outcome_is_at_fault() -> None:
    async def forget(call: ToolCall, context: CallContext) -> Any:
        return None

    _, [outcome] = await played(batch(calls("forget"), Tool("forget", forget)))
    assert outcome.is_error


@pytest.mark.anyio
async def test_progress_is_told_before_the_end_and_only_the_newest_to_a_slow_reader() -> None:
    async def show(call: ToolCall, context: CallContext) -> ToolOutcome:
        for step in range(10_000):
            context.progress.tell([text_block(str(step))], {"step": step})
        return said("done")

    happenings, _ = await played(batch(calls("show"), Tool("show", show)))
    assert gist(happenings) == ["start c0", "show c0", "end c0"]
    assert happenings[1] == CallProgressed("c0", [text_block("9999")], {"step": 9999})


@pytest.mark.anyio
async def test_progress_is_told_while_the_call_runs() -> None:
    go_on = anyio.Event()

    async def show(call: ToolCall, context: CallContext) -> ToolOutcome:
        context.progress.tell([text_block("first")])
        await go_on.wait()
        return said("done")

    running = batch(calls("show"), Tool("show", show))
    seen: list[CallHappening] = []
    with anyio.fail_after(5):
        async with running:
            async for happening in running:
                seen.append(happening)
                if isinstance(happening, CallProgressed):
                    go_on.set()
    assert gist(seen) == ["start c0", "show c0", "end c0"]


@pytest.mark.anyio
async def test_progress_after_the_end_is_dropped() -> None:
    kept: list[CallContext] = []

    async def keep(call: ToolCall, context: CallContext) -> ToolOutcome:
        kept.append(context)
        return said("")

    running = batch(calls("keep"), Tool("keep", keep))
    async with running:
        assert gist([happening async for happening in running]) == ["start c0", "end c0"]
        kept[0].progress.tell([text_block("late")])
        assert [happening async for happening in running] == []


@pytest.mark.anyio
async def test_a_stop_that_came_first_answers_every_call_and_runs_none() -> None:
    stop = Stop()
    stop.set()
    happenings, outcomes = await played(batch(calls("hang", "hang"), Tool("hang", hang), stop=stop))
    assert gist(happenings) == ["start c0", "end c0", "start c1", "end c1"]
    assert all(outcome.is_error for outcome in outcomes)
    assert all("was not run" in text(outcome) for outcome in outcomes)


async def stopped_once_blocked(running: Calling, stop: anyio.Event) -> list[CallHappening]:
    """Play the batch, and stop it when nothing moves any more."""
    happenings: list[CallHappening] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:

            async def play() -> None:
                async with running:
                    async for happening in running:
                        happenings.append(happening)

            tasks.start_soon(play)
            await anyio.wait_all_tasks_blocked()
            stop.set()
    return happenings


@pytest.mark.anyio
async def test_a_stop_lets_calls_end_with_what_they_have_and_finished_ones_keep_theirs() -> None:
    stop = Stop()
    running = batch(calls("heed", "answer"), Tool("heed", heed), Tool("answer", answer), stop=stop)
    happenings = await stopped_once_blocked(running, stop)
    assert gist(happenings)[-2:] == ["end c1", "end c0"]
    assert [text(outcome) for outcome in running.outcomes] == ["half", "answer ran"]


@pytest.mark.anyio
async def test_a_stop_in_a_batch_in_turn_answers_the_rest_without_running_it() -> None:
    stop = Stop()
    tools = [Tool("heed", heed, sequential=True), Tool("hang", hang)]
    running = batch(calls("heed", "hang"), *tools, stop=stop)
    happenings = await stopped_once_blocked(running, stop)
    assert gist(happenings) == ["start c0", "end c0", "start c1", "end c1"]
    assert "was not run" in text(running.outcomes[1])


@pytest.mark.anyio
async def test_a_call_that_ignores_the_stop_is_cancelled_and_abandoned() -> None:
    stop = Stop()
    running = batch(
        calls("hang", "answer"), Tool("hang", hang), Tool("answer", answer), stop=stop, grace_s=0.01
    )
    happenings = await stopped_once_blocked(running, stop)
    hung, answered = running.outcomes
    assert hung.is_error
    assert hung.details == {"abandoned": True}
    assert hung.duration_ms is not None
    assert text(answered) == "answer ran"
    assert gist(happenings)[-1] == "end c0"
    assert isinstance(happenings[-1], CallEnded)
    assert happenings[-1].effect == "workspace"


@pytest.mark.anyio
async def test_a_call_that_withstands_cancellation_is_left_behind_and_its_end_comes_too_late() -> (
    None
):
    stop, let_go = Stop(), anyio.Event()

    async def withstand(call: ToolCall, context: CallContext) -> ToolOutcome:
        with anyio.CancelScope(shield=True):
            await let_go.wait()
        return said("late")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as host:
            running = batch(
                calls("withstand"),
                Tool("withstand", withstand),
                stop=stop,
                grace_s=0.01,
                left_behind=host,
            )
            happenings = await stopped_once_blocked(running, stop)
            let_go.set()
    assert gist(happenings) == ["start c0", "end c0"]
    assert running.outcomes[0].details == {"abandoned": True}


@pytest.mark.anyio
async def test_what_waits_for_a_call_that_is_left_behind_is_answered_once_and_not_run() -> None:
    stop, let_go, ran = Stop(), anyio.Event(), list[str]()

    async def withstand(call: ToolCall, context: CallContext) -> ToolOutcome:
        ran.append(call.id)
        with anyio.CancelScope(shield=True):
            await let_go.wait()
        return said("late")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as host:
            running = batch(
                calls("alone", "alone", "alone"),
                Tool("alone", withstand, sequential=True),
                stop=stop,
                grace_s=0.01,
                left_behind=host,
            )
            happenings = await stopped_once_blocked(running, stop)
            let_go.set()
    assert gist(happenings) == [f"{what} c{n}" for n in range(3) for what in ("start", "end")]
    assert [one.details for one in running.outcomes] == [{"abandoned": True}, None, None]
    assert ran == ["c0"]


@pytest.mark.anyio
@pytest.mark.parametrize("outside", [False, True])
async def test_leaving_the_block_early_ends_the_calls_and_keeps_the_callers_error(
    outside: bool,
) -> None:
    ended = anyio.Event()

    async def hang_and_tell(call: ToolCall, context: CallContext) -> ToolOutcome:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    with anyio.fail_after(5):
        async with anyio.create_task_group() as host:
            running = batch(
                calls("hang"),
                Tool("hang", hang_and_tell),
                left_behind=host if outside else None,
            )
            with pytest.raises(ZeroDivisionError):
                async with running:
                    async for _ in running:
                        await anyio.wait_all_tasks_blocked()
                        raise ZeroDivisionError
            await ended.wait()
