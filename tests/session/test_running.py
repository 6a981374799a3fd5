"""A run is carried from its first message to its one end, whatever becomes of it on the way."""

import logging
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from pi_rpc.core.entries import Kind, message_body
from pi_rpc.core.errors import Busy
from pi_rpc.core.events import (
    AttemptEnded,
    EntryAppended,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    RunSettled,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    TurnEnded,
)
from pi_rpc.core.messages import (
    JsonObject,
    ToolCall,
    ToolOutcome,
    text_block,
    text_of,
    user_message,
)
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.ports.tools import CallContext
from pi_rpc.core.projection import MESSAGES_KEPT_ROWS
from pi_rpc.core.reply import BlockDelta, BlockStarted, Piece, ReplyStarted
from pi_rpc.session.choosing import set_active_tools, set_thinking_level
from pi_rpc.session.prompting import abort, prompt, wait_until_settled
from pi_rpc.session.session import Session
from tests.session.living import (
    WAIT_S,
    Door,
    Ear,
    HeldTool,
    Part,
    Speaker,
    called,
    file_store,
    kinds,
    living_host,
    memory_store,
    messages,
    opened,
    said,
    texts,
    tools_named,
)


def last(session: Session) -> JsonObject:
    return messages(session)[-1]


def results(session: Session) -> list[tuple[str, str, bool]]:
    return [
        (message["toolCallId"], text_of(message), message["isError"])
        for message in messages(session)
        if message["role"] == "toolResult"
    ]


@pytest.mark.anyio
async def test_a_plain_answer_is_told_in_the_order_it_happens(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("he", "llo"))) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "hi")
        await ear.until(RunSettled)
        assert ear.names == [
            "RunStarted",
            "TurnStarted",
            *("EntryAppended", "EntryAppended"),
            *("MessageStarted", "MessageEnded"),
            *("MessageStarted", "MessageEnded"),
            *("MessageStarted", "MessageDelta", "MessageDelta"),
            *("EntryAppended", "MessageEnded"),
            *("TurnEnded", "AttemptEnded", "RunSettled"),
        ]
        assert [one.role for one in ear.of(MessageStarted)] == ["system", "user", "assistant"]
        assert kinds(session)[-3:] == [Kind.SYSTEM, Kind.USER, Kind.ASSISTANT]
        assert last(session)["stopReason"] == "stop"
        [turn] = ear.of(TurnEnded)
        assert turn.message_entry_id == session.leaf_id
        assert ear.numbers == list(range(ear.numbers[0], ear.numbers[0] + len(ear.numbers)))


@pytest.mark.anyio
async def test_a_message_is_told_with_its_entry_id_after_it_is_stored(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("yes"))) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "hi")
        await ear.until(RunSettled)
        told: set[str] = set()
        for event in ear.events:
            if isinstance(event, EntryAppended):
                told.add(event.id)
            elif isinstance(event, MessageEnded):
                assert event.entry_id in told
                stored = session.tree.entry(session.tree.row_of(event.entry_id)).message
                assert stored == event.message


async def test_a_context_longer_than_what_is_kept_is_asked_whole_and_in_order(cwd: Path) -> None:
    speaker = Speaker(said("yes"))
    count = MESSAGES_KEPT_ROWS + 10
    async with living_host(memory_store(), cwd, speaker) as host:
        session = await opened(host, cwd)
        session.chosen.compaction = msgspec.structs.replace(
            session.chosen.compaction, enabled=False
        )
        await session.record(*(message_body(user_message(f"m{at}", (), at)) for at in range(count)))
        ear = Ear(session.hub)
        prompt(session, host.tasks, "hi")
        await ear.until(RunSettled)
    said_to = [text_of(one) for one in speaker.requests[0] if one["role"] == "user"]
    assert said_to == [*(f"m{at}" for at in range(count)), "hi"]


@pytest.mark.anyio
async def test_the_second_run_says_nothing_again_that_still_holds(cwd: Path) -> None:
    speaker = Speaker(said("one"), said("two"))
    async with living_host(memory_store(), cwd, speaker, tools_named(HeldTool("t"))) as host:
        session = await opened(host, cwd)
        for text in ("a", "b"):
            prompt(session, host.tasks, text)
            await wait_until_settled(session)
        assert kinds(session).count(Kind.SYSTEM) == 1
        set_active_tools(session, [])
        speaker.replies.append(said("three"))
        prompt(session, host.tasks, "c")
        await wait_until_settled(session)
        assert kinds(session).count(Kind.SYSTEM) == 2
        patch = session.tree.entry(list(session.tree.rows_of_kind(Kind.SYSTEM))[-1]).message
        assert patch is not None
        assert patch["toolsRemoved"] == [{"name": "t"}]


@pytest.mark.anyio
async def test_calls_run_side_by_side_and_their_results_stand_in_call_order(cwd: Path) -> None:
    slow, fast = Door(), Door()
    first = HeldTool("slow", slow, heeds_stop=False)
    second = HeldTool("fast", fast, heeds_stop=False)
    speaker = Speaker(called(("slow", "{}"), ("fast", "{}"), ("none", "{}")), said("done"))
    async with living_host(memory_store(), cwd, speaker, tools_named(first, second)) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await slow.until_reached()
        await fast.until_reached()
        fast.opened.set()
        await ear.until(ToolEnded, 2)
        slow.opened.set()
        assert await wait_until_settled(session) == "done"
        assert [one.call_id for one in ear.of(ToolStarted)] == ["c0", "c1", "c2"]
        assert [one.call_id for one in ear.of(ToolEnded)] == ["c2", "c1", "c0"]
        assert [(call, is_error) for call, _, is_error in results(session)] == [
            ("c0", False),
            ("c1", False),
            ("c2", True),
        ]
        turn = ear.of(TurnEnded)[0]
        rows = [session.tree.row_of(entry_id) for entry_id in turn.tool_result_entry_ids]
        assert [session.tree.kind(row) for row in rows] == [Kind.TOOL_RESULT] * 3


@pytest.mark.anyio
async def test_a_tool_that_fails_is_an_error_result_and_the_run_goes_on(
    cwd: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(HeldTool):
        async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
            raise RuntimeError("a mistake")

    speaker = Speaker(called(("broken", "{}")), said("pity"))
    async with living_host(memory_store(), cwd, speaker, tools_named(Broken("broken"))) as host:
        session = await opened(host, cwd)
        prompt(session, host.tasks, "go")
        with caplog.at_level(logging.CRITICAL):
            assert await wait_until_settled(session) == "done"
        [(_, text, is_error)] = results(session)
        assert is_error
        assert "incident" in text
        assert texts(session)[-1] == "pity"


@pytest.mark.anyio
async def test_progress_of_a_tool_is_told_before_its_end(cwd: Path) -> None:
    class Telling(HeldTool):
        async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
            context.progress.tell([text_block("half")])
            await anyio.lowlevel.checkpoint()
            return ToolOutcome([text_block("whole")])

    speaker = Speaker(called(("t", "{}")), said("ok"))
    async with living_host(memory_store(), cwd, speaker, tools_named(Telling("t"))) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled)
        order = [one for one in ear.names if one.startswith("Tool")]
        assert order == ["ToolStarted", "ToolProgressed", "ToolEnded"]
        assert ear.of(ToolProgressed)[0].content == [text_block("half")]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("before", "text"),
    [
        pytest.param([], "", id="before-anything-came"),
        pytest.param([ReplyStarted(), BlockStarted(0, "text")], "", id="before-the-first-text"),
        pytest.param(
            [ReplyStarted(), BlockStarted(0, "text"), BlockDelta(0, "half a")],
            "half a",
            id="mid-text",
        ),
    ],
)
async def test_a_run_stopped_while_the_model_speaks_keeps_what_it_said(
    before: Sequence[Piece], text: str, root: Path, cwd: Path
) -> None:
    door = Door()
    speaker = Speaker([*before, door], said("again"))
    async with living_host(file_store(root), cwd, speaker) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await door.until_reached()
        with anyio.fail_after(WAIT_S):
            assert await abort(session) == "aborted"
        assert last(session)["stopReason"] == "aborted"
        assert text_of(last(session)) == text
        assert "".join(one.text for one in ear.of(MessageDelta)) == text
        assert [one.outcome for one in ear.of(RunSettled)] == ["aborted"]
        prompt(session, host.tasks, "next")
        assert await wait_until_settled(session) == "done"
        assert [text_of(one) for one in messages(session)] == ["go", text, "next", "again"]


@pytest.mark.anyio
async def test_a_call_stopped_mid_arguments_is_kept_and_never_run(cwd: Path) -> None:
    door, tool = Door(), HeldTool("t")
    parts: list[Part] = [
        ReplyStarted(),
        BlockStarted(0, "toolCall", "c0", "t"),
        BlockDelta(0, '{"path": "a'),
        door,
    ]
    async with living_host(memory_store(), cwd, Speaker(parts), tools_named(tool)) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await door.until_reached()
        assert await abort(session) == "aborted"
        assert last(session)["stopReason"] == "aborted"
        assert [block["type"] for block in last(session)["content"]] == ["toolCall"]
        assert results(session) == []
        assert tool.calls == []
        assert [one.text for one in ear.of(MessageDelta)] == ["", '{"path": "a']


@pytest.mark.anyio
async def test_a_stop_among_parallel_tools_keeps_the_real_result_of_the_one_that_ended(
    cwd: Path,
) -> None:
    held = Door()
    quick, slow = HeldTool("quick"), HeldTool("slow", held)
    speaker = Speaker(called(("quick", "{}"), ("slow", "{}")))
    async with living_host(memory_store(), cwd, speaker, tools_named(quick, slow)) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await held.until_reached()
        await ear.until(ToolEnded)
        with anyio.fail_after(WAIT_S):
            assert await abort(session) == "aborted"
        assert results(session) == [
            ("c0", "quick done", False),
            ("c1", "stopped as asked", True),
        ]
        assert last(session)["stopReason"] == "aborted"
        assert last(session)["content"] == []
        assert len(ear.of(RunSettled)) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("withstands", [False, True], ids=["cancellable", "not-even-cancellable"])
async def test_a_tool_that_ignores_the_stop_is_abandoned_within_the_grace(
    withstands: bool, cwd: Path
) -> None:
    door = Door()
    tool = HeldTool("deaf", door, heeds_stop=False, withstands=withstands)
    async with living_host(
        memory_store(), cwd, Speaker(called(("deaf", "{}"))), tools_named(tool)
    ) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await door.until_reached()
        with anyio.fail_after(WAIT_S):
            assert await abort(session) == "aborted"
        [(call_id, _, is_error)] = results(session)
        assert (call_id, is_error) == ("c0", True)
        [ended] = ear.of(ToolEnded)
        assert ended.details == {"abandoned": True}
        assert len(ear.of(RunSettled)) == 1
        door.opened.set()


@pytest.mark.anyio
async def test_a_reply_that_breaks_off_fails_the_run_and_keeps_its_text(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker([*said("half")[:3], None])) as host:
        session = await opened(host, cwd)
        prompt(session, host.tasks, "go")
        assert await wait_until_settled(session) == "failed"
        assert last(session)["stopReason"] == "error"
        assert text_of(last(session)) == "half"


@pytest.mark.anyio
async def test_a_provider_with_a_mistake_of_its_own_settles_the_run_as_failed(
    cwd: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Mistaken(Speaker):
        async def reply(self, request: ModelRequest) -> AsyncGenerator[Sequence[Piece], None]:
            yield [ReplyStarted()]
            raise RuntimeError("a mistake")

    async with living_host(memory_store(), cwd, Mistaken()) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        with caplog.at_level(logging.CRITICAL):
            prompt(session, host.tasks, "go")
            settled = await ear.until(RunSettled)
        assert settled.outcome == "failed"
        assert settled.error is not None
        assert settled.error["kind"] == "internal"
        assert settled.error["incident"]
        assert session.run is None
        assert len(ear.of(AttemptEnded)) == 1


@pytest.mark.anyio
async def test_a_full_listener_makes_only_its_own_session_wait(cwd: Path) -> None:
    many = said(*"abcdefgh")
    async with living_host(memory_store(), cwd, Speaker(many, many)) as host:
        slow, quick = await opened(host, cwd), await opened(host, cwd)
        lagging, listening = Ear(slow.hub), Ear(quick.hub)
        lagging.is_full = lagging.is_pressed = True
        prompt(slow, host.tasks, "go")
        await lagging.until_true(lambda: lagging.waits == 1)
        prompt(quick, host.tasks, "go")
        assert await wait_until_settled(quick) == "done"
        assert slow.run is not None
        assert "".join(one.text for one in listening.of(MessageDelta)) == "abcdefgh"
        assert lagging.of(MessageDelta) == []
        lagging.catch_up()
        assert await wait_until_settled(slow) == "done"
        assert "".join(one.text for one in lagging.of(MessageDelta)) == "abcdefgh"
        assert lagging.numbers == list(range(2, 2 + len(lagging.numbers)))


@pytest.mark.anyio
async def test_a_run_is_stopped_although_its_listener_never_reads_again(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker(said("half", " a word"))) as host:
        session = await opened(host, cwd)
        stalled = Ear(session.hub)
        stalled.is_full = True
        prompt(session, host.tasks, "go")
        await stalled.until_true(lambda: stalled.waits == 1)
        with anyio.fail_after(WAIT_S):
            assert await abort(session) == "aborted"
        assert last(session)["stopReason"] == "aborted"


@pytest.mark.anyio
async def test_a_model_and_thinking_level_chosen_meanwhile_are_written_once(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker(said("a"), said("b"))) as host:
        session = await opened(host, cwd)
        await set_thinking_level(session, "high")
        for text in ("x", "y"):
            prompt(session, host.tasks, text)
            await wait_until_settled(session)
        assert kinds(session).count(Kind.MODEL_CHANGE) == 1
        assert kinds(session).count(Kind.THINKING_LEVEL_CHANGE) == 2


@pytest.mark.anyio
async def test_moves_of_the_leaf_are_refused_while_a_run_goes_on(cwd: Path) -> None:
    door = Door()
    async with living_host(memory_store(), cwd, Speaker([door, *said("x")])) as host:
        session = await opened(host, cwd)
        run_id = prompt(session, host.tasks, "go").run_id
        await door.until_reached()
        with pytest.raises(Busy) as failure, session.acting("navigate"):
            pass
        assert failure.value.data == {"runId": run_id}
        door.opened.set()
        await wait_until_settled(session)


@pytest.mark.anyio
async def test_a_command_is_told_which_session_runs_it(root: Path, cwd: Path) -> None:
    class Looking(HeldTool):
        seen: dict[str, Any] = {}

        async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
            self.seen = {"cwd": context.cwd, **context.environment}
            return ToolOutcome([text_block("seen")])

    tool = Looking("look")
    speaker = Speaker(called(("look", "{}")), said("ok"))
    async with living_host(file_store(root), cwd, speaker, tools_named(tool)) as host:
        session = await opened(host, cwd)
        prompt(session, host.tasks, "go")
        await wait_until_settled(session)
        assert tool.seen == {
            "cwd": cwd,
            "PI_SESSION_ID": session.session_id,
            "PI_SESSION_FILE": str(session.stored.path),
            "PI_PROVIDER": "speaker",
            "PI_MODEL": "one",
            "PI_REASONING_LEVEL": "off",
        }
