"""What came of a branch is told where the conversation goes on, or nothing has changed."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import anyio
import pytest

from pi_rpc.core.branches import CONCLUSION_PREAMBLE
from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Busy, Outside, Refused, Stopped
from pi_rpc.core.events import RetryEnded, RetryScheduled, RunSettled
from pi_rpc.core.messages import text_of
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.reply import BlockDelta, BlockEnded, BlockStarted, Piece, ReplyEnded, ReplyStarted
from pi_rpc.core.retrying import RetryPolicy
from pi_rpc.core.summary import BRANCH_PREAMBLE
from pi_rpc.session.condensing import compact, configure
from pi_rpc.session.navigating import navigate, set_label
from pi_rpc.session.prompting import abort, prompt
from pi_rpc.session.session import Session
from pi_rpc.session.summarising import SummaryWish, bring_conclusion, summarize_branch
from tests.session.living import (
    WAIT_S,
    Door,
    Ear,
    HeldTool,
    Speaker,
    living_host,
    memory_store,
    opened,
    said,
    standing,
    texts,
    tools_named,
)
from tests.session.test_compacting import ask, entries, replies, roles, talk, talking, used


def answer(session: Session, number: int) -> str:
    rows = [row for row in range(len(session.tree)) if session.tree.kind(row) == Kind.ASSISTANT]
    return session.tree.heads.id_of(rows[number])


@pytest.mark.anyio
async def test_a_summary_hangs_below_the_new_leaf(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", "NOTES")) as (host, session):
        await talk(host, session, 2)
        left, target = session.leaf_id, answer(session, 0)
        moved = await navigate(session, target, "here", SummaryWish("the tests"))
        [stored] = entries(session, Kind.BRANCH_SUMMARY)
        assert (stored["parentId"], stored["fromId"]) == (target, left)
        assert stored["summary"] == BRANCH_PREAMBLE + "NOTES"
        assert stored["fromHook"] is False
        assert (moved.summary_id, moved.summary) == (stored["id"], "made")
        assert session.tree.label_of(stored["id"]) == "here"
        assert session.tree.kind(session.leaf_row) == Kind.LABEL
        assert roles(session)[-1] == "branchSummary"


@pytest.mark.anyio
async def test_the_model_is_told_of_what_was_left_alone(cwd: Path) -> None:
    speaker = Speaker(said("a0"), said("a1"), said("NOTES"))
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        await navigate(session, answer(session, 0), None, SummaryWish("the tests"))
        told = text_of(speaker.requests[-1][-1])
        assert "Question 1." in told and "Question 0." not in told
        assert told.endswith("the tests")


@pytest.mark.anyio
async def test_a_question_that_is_chosen_comes_back_as_a_draft(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", "NOTES")) as (host, session):
        await ask(host, session, "One?")
        await ask(host, session, "Two?")
        chosen = session.tree.heads.id_of(session.leaf_row - 1)
        moved = await navigate(session, chosen, None, SummaryWish())
        assert moved.draft == "Two?"
        assert texts(session)[:2] == ["One?", "a0"] and roles(session)[-1] == "branchSummary"


@pytest.mark.anyio
async def test_going_down_leaves_nothing_behind(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1")) as (host, session):
        await talk(host, session, 2)
        leaf = session.leaf_id
        await navigate(session, answer(session, 0))
        moved = await navigate(session, leaf, None, SummaryWish())
        assert (moved.summary, moved.summary_id) == ("empty", None)
        assert session.leaf_id == leaf and not entries(session, Kind.BRANCH_SUMMARY)


@pytest.mark.anyio
@pytest.mark.parametrize("bad", [{"text": ""}, {"text": "half", "stop": "length"}])
async def test_a_summary_that_fails_moves_nothing(cwd: Path, bad: dict[str, str]) -> None:
    async with talking(cwd, replies("a0", "a1", bad, "a2")) as (host, session):
        await talk(host, session, 2)
        before = standing(session)
        with pytest.raises(Outside):
            await navigate(session, answer(session, 0), "here", SummaryWish())
        assert standing(session) == before
        assert await ask(host, session, "Go on.") == "done"


@pytest.mark.anyio
async def test_without_a_model_nothing_is_summarised_and_nothing_moves(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1")) as (host, session):
        await talk(host, session, 2)
        session.chosen.model = None
        before = standing(session)
        with pytest.raises(Refused) as caught:
            await navigate(session, answer(session, 0), "here", SummaryWish())
        assert caught.value.reason == "no_model"
        assert standing(session) == before
        assert (await navigate(session, answer(session, 0))).summary == "none"


class Ponderer(Speaker):
    """Thinks at length before it speaks, and gets no further where its reply is kept short."""

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Sequence[Piece], None]:
        yield [ReplyStarted(), BlockStarted(0, "thinking"), BlockDelta(0, "hm " * 20_000)]
        if request.max_output is not None and request.max_output < 20_000:
            yield [BlockEnded(0), ReplyEnded("length")]
            return
        yield [BlockEnded(0), BlockStarted(1, "text"), BlockDelta(1, "NOTES")]
        yield [BlockEnded(1), ReplyEnded("stop")]


@pytest.mark.anyio
async def test_a_summary_may_be_as_long_as_a_reply_of_the_model_thinking_included(
    cwd: Path,
) -> None:
    async with living_host(memory_store(), cwd, models=Ponderer()) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        moved = await navigate(session, answer(session, 0), None, SummaryWish())
        assert moved.summary == "made"
        [stored] = entries(session, Kind.BRANCH_SUMMARY)
        assert stored["summary"] == BRANCH_PREAMBLE + "NOTES"
        configure(session, keep_recent_tokens=0)
        assert (await compact(session, host.tasks)).summary.startswith("NOTES")


@pytest.mark.anyio
async def test_a_stop_moves_nothing_and_words_meanwhile_wait(cwd: Path) -> None:
    door = Door()
    speaker = Speaker(said("a0"), said("a1"), [*said("NOTES")[:3], door])
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        leaf = session.leaf_id

        async def go() -> None:
            with pytest.raises(Stopped):
                await navigate(session, answer(session, 0), None, SummaryWish())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go)
            await door.until_reached()
            prompt(session, host.tasks, "Later.", when_busy="followUp")
            await abort(session)
        assert session.leaf_id == leaf
        assert [one.text for one in session.queues.follow_up] == ["Later."]


@pytest.mark.anyio
async def test_a_branch_that_was_compacted_is_told_by_its_summary(cwd: Path) -> None:
    speaker = Speaker(said("a0"), said("a1"), said("a2"), said("OLD NOTES"), said("NOTES"))
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 3)
        configure(session, keep_recent_tokens=50)
        await compact(session, host.tasks)
        await navigate(session, answer(session, 0), None, SummaryWish())
        told = text_of(speaker.requests[-1][-1])
        assert "OLD NOTES" in told and "Question 1." not in told and "Question 2." in told


@pytest.mark.anyio
async def test_files_of_a_branch_go_along_into_later_compactions(cwd: Path) -> None:
    write = {"tools": [{"name": "write", "args": {"path": "b.txt"}}]}
    script = replies("a0", write, "a1", "NOTES", "a2", "a3", "LAST")
    async with talking(cwd, script, tools=tools_named(HeldTool("write"))) as (host, session):
        await talk(host, session, 2)
        await navigate(session, answer(session, 0), None, SummaryWish())
        [stored] = entries(session, Kind.BRANCH_SUMMARY)
        assert stored["details"]["modifiedFiles"] == ["b.txt"]
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        made = await compact(session, host.tasks)
        assert made.details["modifiedFiles"] == ["b.txt"]


@pytest.mark.anyio
async def test_another_branch_is_told_of_without_going_there(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", "a2", "NOTES")) as (host, session):
        await talk(host, session, 2)
        other = session.leaf_id
        assert other is not None
        await navigate(session, answer(session, 0))
        await ask(host, session, "Here?")
        assert await summarize_branch(session, other, SummaryWish()) == session.leaf_id
        [stored] = entries(session, Kind.BRANCH_SUMMARY)
        assert stored["fromId"] == other
        assert roles(session)[-3:] == ["user", "assistant", "branchSummary"]
        with pytest.raises(Refused) as caught:
            await summarize_branch(session, answer(session, 0), SummaryWish())
        assert caught.value.reason == "on_path"


@pytest.mark.anyio
async def test_a_branch_on_which_nothing_was_said_gives_no_entry(cwd: Path) -> None:
    async with talking(cwd, replies("a0")) as (host, session):
        await talk(host, session, 1)
        target = session.leaf_id
        await set_label(session, str(target), "here")
        moved = await navigate(session, target, None, SummaryWish())
        assert moved.summary == "empty" and session.leaf_id == target


OVERLOADED = {"error": {"status": 529, "message": "Overloaded."}}


@pytest.mark.anyio
async def test_retries_of_a_summary_inside_a_run_name_it(cwd: Path) -> None:
    script = replies(used(20_000, "a0"), used(95_000, "a1"), OVERLOADED, "NOTES", "a2")
    async with talking(cwd, script) as (host, session):
        configure(session, keep_recent_tokens=50)
        ear = Ear(session.hub)
        await talk(host, session, 3)
        [scheduled] = ear.of(RetryScheduled)
        [ended] = ear.of(RetryEnded)
        runs = [one.run_id for one in ear.of(RunSettled)]
        assert (scheduled.of, scheduled.run_id in runs) == ("summary", True)
        assert (ended.run_id, ended.of, ended.success) == (scheduled.run_id, "summary", True)


@pytest.mark.anyio
async def test_a_wait_of_a_summary_that_is_stopped_is_told_ended_once(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", OVERLOADED)) as (host, session):
        await talk(host, session, 2)
        session.chosen.retry = RetryPolicy(base_ms=60_000)
        configure(session, keep_recent_tokens=1)
        ear = Ear(session.hub)
        async with anyio.create_task_group() as tasks:

            async def make() -> None:
                with pytest.raises(Stopped):
                    await compact(session, host.tasks)

            tasks.start_soon(make)
            with anyio.fail_after(WAIT_S):
                await ear.until(RetryScheduled)
                await abort(session)
        [ended] = ear.of(RetryEnded)
        assert (ended.attempt, ended.success, ended.run_id) == (1, False, None)
        assert (ended.error or {})["reason"] == "aborted"


@pytest.mark.anyio
async def test_a_conclusion_is_brought_over_in_the_words_of_the_last_answer(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", {"text": "Half", "cutAfter": 1})) as (
        host,
        session,
    ):
        session.chosen.retry = RetryPolicy(enabled=False)
        await talk(host, session, 2)
        await ask(host, session, "More?")
        left = session.leaf_id or ""
        await navigate(session, answer(session, 0))
        brought = await bring_conclusion(session, left)
        [stored] = entries(session, Kind.CUSTOM_MESSAGE)
        assert (stored["id"], stored["parentId"]) == (brought, answer(session, 0))
        assert stored["content"] == CONCLUSION_PREAMBLE + "a1"
        assert stored["details"] == {"v": 1, "fromId": left}
        assert roles(session)[-1] == "custom"


@pytest.mark.anyio
async def test_nothing_is_brought_over_while_a_run_is_live(cwd: Path) -> None:
    door = Door()
    async with living_host(memory_store(), cwd, models=Speaker(said("a0"), [door])) as host:
        session = await opened(host, cwd)
        await ask(host, session, "One?")
        size = len(session.tree)
        prompt(session, host.tasks, "Two?")
        await door.until_reached()
        with pytest.raises(Busy):
            await bring_conclusion(session, answer(session, 0), "words")
        door.opened.set()
        assert size < len(session.tree) and not entries(session, Kind.CUSTOM_MESSAGE)
