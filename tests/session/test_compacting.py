"""A session makes room for itself and on request, and whatever goes wrong leaves it usable."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pi_rpc.core.entries import Kind, message_body
from pi_rpc.core.errors import Busy, Failure, Outside, Refused, Stopped
from pi_rpc.core.events import (
    CompactionEnded,
    CompactionStarted,
    RunSettled,
    TurnStarted,
)
from pi_rpc.core.messages import JsonObject, text_of, user_message
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.reply import Piece
from pi_rpc.core.retrying import RetryPolicy
from pi_rpc.core.summary import notes_of
from pi_rpc.session.compacting import limits_of, threshold_of
from pi_rpc.session.condensing import compact, configure, pin_entry, pin_words
from pi_rpc.session.host import Host
from pi_rpc.session.navigating import edit_context
from pi_rpc.session.prompting import abort, prompt, wait_until_settled
from pi_rpc.session.session import Session
from pi_rpc.store.memory import BLOCK_ROWS
from tests.session.living import (
    WAIT_S,
    BrittleStore,
    Disk,
    Door,
    Ear,
    HeldTool,
    Speaker,
    living_host,
    memory_store,
    opened,
    reason_of,
    said,
    texts,
    tools_named,
)

LONG = "word " * 80
"""A hundred tokens."""


@asynccontextmanager
async def talking(
    cwd: Path, script: JsonObject, **more: Any
) -> AsyncIterator[tuple[Host, Session]]:
    """A session of the offline model with this script, retries without delay."""
    async with living_host(memory_store(), cwd, **more) as host:
        session = await opened(host, cwd, script=script)
        session.chosen.retry = RetryPolicy(base_ms=0)
        yield host, session


async def ask(host: Host, session: Session, text: str) -> str | None:
    """A prompt and what became of its run."""
    prompt(session, host.tasks, text)
    with anyio.fail_after(WAIT_S):
        return await wait_until_settled(session)


def entries(session: Session, kind: Kind) -> list[JsonObject]:
    rows = range(len(session.tree))
    return [session.tree.entry(row).object for row in rows if session.tree.kind(row) == kind]


def roles(session: Session) -> list[str]:
    return [message["role"] for message in session.projection.messages("session")]


def replies(*said_: Any, **more: Any) -> JsonObject:
    """A script of replies: a text, or a whole reply."""
    listed = [{"text": one} if isinstance(one, str) else one for one in said_]
    return {"replies": listed, "contextWindow": 100_000} | more


def used(tokens: int, text: str = "ok", **more: Any) -> JsonObject:
    return {"text": text, "usage": {"input": tokens}} | more


async def talk(host: Host, session: Session, turns: int) -> None:
    for turn in range(turns):
        assert await ask(host, session, f"Question {turn}. {LONG}") == "done"


@pytest.mark.anyio
async def test_a_compaction_on_request_keeps_what_is_new(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", "a2", "NOTES")) as (host, session):
        ear = Ear(session.hub)
        await talk(host, session, 3)
        before = session.projection.tokens().total
        configure(session, keep_recent_tokens=50)
        made = await compact(session, host.tasks, "the tests")
        [stored] = entries(session, Kind.COMPACTION)
        assert list(stored)[4:] == [
            *["summary", "firstKeptEntryId", "tokensBefore", "details", "usage", "fromHook"],
            "systemMessage",
        ]
        assert (stored["summary"], stored["tokensBefore"]) == ("NOTES", before)
        assert stored["details"]["readFiles"] == [] == stored["details"]["modifiedFiles"]
        assert stored["details"]["piRpc"]["instructions"] == "the tests"
        assert stored["systemMessage"]["role"] == "system"
        assert roles(session) == ["system", "compactionSummary", "user", "assistant"]
        assert texts(session)[1:] == [f"Question 2. {LONG}", "a2"]
        assert made.first_kept_entry_id == stored["firstKeptEntryId"]
        started, ended = ear.of(CompactionStarted), ear.of(CompactionEnded)
        assert [one.reason for one in started] == ["manual"]
        assert [(one.entry_id, one.tokens_after) for one in ended] == [
            (made.entry_id, made.tokens_after)
        ]
        assert made.tokens_after == session.projection.estimated_tokens()
        assert not session.is_compacting


class Listening(Speaker):
    """A speaker that remembers requests whole."""

    def __init__(self, *replies: Any) -> None:
        super().__init__(*replies)
        self.heard: list[ModelRequest] = []

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Sequence[Piece], None]:
        self.heard.append(request)
        async for pieces in super().reply(request):
            yield pieces


@pytest.mark.anyio
async def test_a_summary_is_asked_for_apart_from_the_conversation(cwd: Path) -> None:
    speaker = Listening(said("a0"), said("a1"), said("NOTES"))
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        await compact(session, host.tasks)
        *turns, summary = speaker.heard
        assert [one.is_single for one in turns] == [False, False] and summary.is_single
        assert summary.session_id not in {one.session_id for one in turns}
        assert [message["role"] for message in summary.messages] == ["system", "user"]
        assert "toolsAdded" not in summary.messages[0]


@pytest.mark.anyio
async def test_an_entry_and_its_checkpoint_bear_one_time(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", "NOTES")) as (host, session):
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        await compact(session, host.tasks)
        entry = session.tree.entry(session.leaf_row)
        system = next(iter(session.projection.messages("session")))
        assert entry.timestamp.startswith("2026-01-02T03:04:05.")
        assert system["timestamp"] % 1000 == int(entry.timestamp[-4:-1])


@pytest.mark.anyio
async def test_a_second_compaction_brings_the_notes_of_the_first_up_to_date(cwd: Path) -> None:
    speaker = Speaker(*(said(f"a{turn}") for turn in range(2)), said("FIRST"), said("a2"))
    speaker.replies += [said("SECOND"), said("TURN")]
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        await compact(session, host.tasks)
        await ask(host, session, LONG)
        await compact(session, host.tasks)
        asked = text_of(speaker.requests[-1][-1])
        assert "<earlier-notes>\nFIRST\n</earlier-notes>" in asked
        assert "Question 1." in asked and "Question 0." not in asked
        assert notes_of(entries(session, Kind.COMPACTION)[-1]) == "SECOND"


@pytest.mark.anyio
async def test_a_split_turn_takes_a_request_of_its_own_and_both_have_the_focus(cwd: Path) -> None:
    tool = HeldTool("look")
    call = {"tools": [{"name": "look", "args": {}}], "text": LONG, "usage": {"input": 10}}
    script = replies("a0", call, {"text": "a1 " + LONG, "usage": {"input": 20}})
    script["replies"] += [used(3, "HISTORY"), used(4, "TURN")]
    async with talking(cwd, script, tools=tools_named(tool)) as (host, session):
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        await compact(session, host.tasks, "the look")
        [stored] = entries(session, Kind.COMPACTION)
        assert stored["summary"].startswith("HISTORY\n\n---\n\n")
        assert stored["summary"].endswith("TURN")
        assert stored["usage"]["input"] == 7
        assert roles(session) == ["system", "compactionSummary", "assistant"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("turns", "reason"), [(0, "nothing_to_compact"), (1, "nothing_to_compact")]
)
async def test_a_small_session_has_nothing_to_compact(cwd: Path, turns: int, reason: str) -> None:
    async with talking(cwd, replies("a0")) as (host, session):
        await talk(host, session, turns)
        ear = Ear(session.hub)
        size = session.stored.size_bytes
        with pytest.raises(Refused) as caught:
            await compact(session, host.tasks)
        assert caught.value.reason == reason
        assert ear.names == ["CompactionEnded"]
        assert ear.of(CompactionEnded)[0].error is not None
        assert session.stored.size_bytes == size


@pytest.mark.anyio
async def test_what_was_just_compacted_is_not_compacted_again(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", "NOTES", "a2")) as (host, session):
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        await compact(session, host.tasks)
        with pytest.raises(Refused) as caught:
            await compact(session, host.tasks)
        assert caught.value.reason == "already_compacted"
        assert await ask(host, session, "Still there?") == "done"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "bad",
    [
        {"text": "half", "stop": "length"},
        {"text": "look", "tools": [{"name": "read", "args": {}}]},
        {"text": ""},
        {"text": "half", "error": {"status": 400, "message": "no"}},
        {"text": "half", "error": {"status": 429, "message": "quota exceeded: billing"}},
    ],
    ids=["cut", "a call", "empty", "refused", "a quota"],
)
async def test_a_summary_that_is_none_is_never_stored(cwd: Path, bad: JsonObject) -> None:
    async with talking(cwd, replies("a0", "a1", bad, "a2")) as (host, session):
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        ear, leaf = Ear(session.hub), session.leaf_id
        with pytest.raises(Outside) as caught:
            await compact(session, host.tasks)
        assert caught.value.reason == "summary_failed"
        assert session.leaf_id == leaf and not entries(session, Kind.COMPACTION)
        [ended] = ear.of(CompactionEnded)
        assert (ended.entry_id, ended.aborted) == (None, False)
        assert ended.error is not None and ended.error["reason"] == "summary_failed"
        assert await ask(host, session, "Go on.") == "done"


@pytest.mark.anyio
async def test_failures_that_pass_are_asked_again(cwd: Path) -> None:
    busy = {"error": {"status": 529, "type": "overloaded_error", "message": "busy"}}
    async with talking(cwd, replies("a0", "a1", busy, busy, "NOTES")) as (host, session):
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        made = await compact(session, host.tasks)
        assert made.summary == "NOTES" and session.chosen.script_position == 5


@pytest.mark.anyio
async def test_a_stop_reaches_the_summary_and_stores_nothing(cwd: Path) -> None:
    door = Door()
    speaker = Speaker(said("a0"), said("a1"), [*said("NOTES")[:3], door], said("a2"), said("a3"))
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        ear, leaf = Ear(session.hub), session.leaf_id
        failures: list[Failure] = []

        async def try_it() -> None:
            with pytest.raises(Stopped) as caught:
                await compact(session, host.tasks)
            failures.append(caught.value)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(try_it)
            await door.until_reached()
            assert session.is_compacting
            with pytest.raises(Busy):
                prompt(session, host.tasks, "Now?")
            with pytest.raises(Busy):
                await compact(session, host.tasks)
            admitted = prompt(session, host.tasks, "Later.", when_busy="followUp")
            assert admitted.disposition == "queued"
            await abort(session)
        assert reason_of(failures[0]) == ("cancelled", "aborted")
        assert session.leaf_id == leaf and not session.is_compacting
        assert [one.aborted for one in ear.of(CompactionEnded)] == [True]
        assert [one.text for one in session.queues.follow_up] == ["Later."]
        assert await ask(host, session, "Go on.") == "done"


@pytest.mark.anyio
async def test_words_that_come_during_a_summary_start_a_run_after_it(cwd: Path) -> None:
    door = Door()
    speaker = Speaker(said("a0"), said("a1"), [*said("NOTES")[:3], door, *said("")[3:]])
    speaker.replies.append(said("a2"))
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        ear = Ear(session.hub)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compact, session, host.tasks)
            await door.until_reached()
            prompt(session, host.tasks, "Later.", when_busy="steer")
            door.opened.set()
        await ear.until(RunSettled)
        assert texts(session)[-2:] == ["Later.", "a2"]
        assert "compactionSummary" in roles(session)


@pytest.mark.anyio
async def test_a_caller_that_goes_away_ends_the_pass(cwd: Path) -> None:
    door = Door()
    speaker = Speaker(said("a0"), said("a1"), [*said("NOTES")[:3], door], said("a2"))
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        ear = Ear(session.hub)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compact, session, host.tasks)
            await door.until_reached()
            tasks.cancel_scope.cancel()
        [ended] = ear.of(CompactionEnded)
        assert ended.aborted and ended.entry_id is None
        assert await ask(host, session, "Go on.") == "done"


@pytest.mark.anyio
async def test_a_live_run_is_stopped_first_but_not_for_nothing(cwd: Path) -> None:
    door = Door()
    speaker = Speaker([*said("half")[:3], door])
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        prompt(session, host.tasks, "One.")
        await door.until_reached()
        with pytest.raises(Refused) as caught:
            await compact(session, host.tasks)
        assert caught.value.reason == "nothing_to_compact"
        assert session.run is not None
        await abort(session)
        # What was stopped is there now, and with nothing to keep the question is summarised.
        door = Door()
        speaker.replies += [[*said("half")[:3], door], said("NOTES"), said("TURN")]
        configure(session, keep_recent_tokens=0)
        prompt(session, host.tasks, "Two.")
        await door.until_reached()
        made = await compact(session, host.tasks)
        assert session.run is None and made.summary.endswith("TURN")


@pytest.mark.anyio
async def test_a_run_that_ends_above_the_threshold_compacts_before_it_settles(cwd: Path) -> None:
    script = replies("a0", used(83_617), "NOTES")
    async with talking(cwd, script) as (host, session):
        configure(session, keep_recent_tokens=50)
        ear = Ear(session.hub)
        await talk(host, session, 2)
        names = [one for one in ear.names if one.startswith(("Compaction", "RunSettled"))]
        assert names == ["RunSettled", "CompactionStarted", "CompactionEnded", "RunSettled"]
        assert [one.reason for one in ear.of(CompactionStarted)] == ["threshold"]


@pytest.mark.anyio
async def test_at_the_threshold_nothing_is_compacted(cwd: Path) -> None:
    async with talking(cwd, replies("a0", used(83_616))) as (host, session):
        configure(session, keep_recent_tokens=50)
        await talk(host, session, 2)
        assert session.projection.tokens().total == 83_616 == threshold_of(session)
        assert not entries(session, Kind.COMPACTION)


@pytest.mark.anyio
@pytest.mark.parametrize("off", ["disabled", "unknown window"])
async def test_nothing_is_compacted_by_itself_when_it_may_not_be(cwd: Path, off: str) -> None:
    script = replies("a0", used(900_000), "a2", "NOTES")
    if off == "unknown window":
        script["contextWindow"] = 0
    async with talking(cwd, script) as (host, session):
        configure(session, enabled=off != "disabled", keep_recent_tokens=50)
        await talk(host, session, 3)
        assert not entries(session, Kind.COMPACTION)
        # Asked for, it is done in any case.
        assert (await compact(session, host.tasks)).summary == "NOTES"


@pytest.mark.anyio
async def test_between_the_turns_of_a_run_results_stay_with_their_call(cwd: Path) -> None:
    call = {"tools": [{"name": "look", "args": {}}], "usage": {"input": 90_000}}
    script = replies("a0", call, "NOTES", "a1")
    async with talking(cwd, script, tools=tools_named(HeldTool("look"))) as (host, session):
        configure(session, keep_recent_tokens=20)
        await talk(host, session, 2)
        assert roles(session) == [
            *["system", "compactionSummary", "user", "assistant", "toolResult", "assistant"]
        ]
        assert len(entries(session, Kind.COMPACTION)) == 1


@pytest.mark.anyio
async def test_a_prompt_too_large_for_what_is_left_is_answered_after_a_compaction(
    cwd: Path,
) -> None:
    script = replies("a0", used(80_000), "NOTES", "a2")
    async with talking(cwd, script) as (host, session):
        configure(session, keep_recent_tokens=50)
        await talk(host, session, 2)
        assert not entries(session, Kind.COMPACTION)
        assert await ask(host, session, "x" * 4 * 4000) == "done"
        assert roles(session) == ["system", "compactionSummary", "user", "assistant"]


OVERFLOW = {"error": {"status": 400, "message": "prompt is too long: 9 tokens > 8"}}


@pytest.mark.anyio
async def test_an_overflow_is_omitted_compacted_and_asked_again(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", OVERFLOW, "NOTES", "a2")) as (host, session):
        configure(session, keep_recent_tokens=150)
        ear = Ear(session.hub)
        await talk(host, session, 3)
        [edit] = entries(session, Kind.CONTEXT_EDIT)
        assert edit["replacement"] is None
        [ended] = ear.of(CompactionEnded)
        assert (ended.reason, ended.will_retry, ended.error) == ("overflow", True, None)
        assert texts(session)[-2:] == [f"Question 2. {LONG}", "a2"]
        assert len(ear.of(RunSettled)) == 3 and len(ear.of(TurnStarted)) == 4


@pytest.mark.anyio
async def test_a_second_overflow_in_a_row_is_told_and_left(cwd: Path) -> None:
    script = replies("a0", "a1", OVERFLOW, "NOTES", OVERFLOW, "a3")
    async with talking(cwd, script) as (host, session):
        configure(session, keep_recent_tokens=150)
        ear = Ear(session.hub)
        await talk(host, session, 2)
        assert await ask(host, session, LONG) == "failed"
        ended = ear.of(CompactionEnded)
        assert [one.error and one.error["reason"] for one in ended] == [None, "recovery_exhausted"]
        assert await ask(host, session, "Again.") == "done"


@pytest.mark.anyio
async def test_a_recovery_whose_summary_fails_leaves_a_usable_session(cwd: Path) -> None:
    script = replies("a0", "a1", OVERFLOW, {"text": ""}, "a2")
    async with talking(cwd, script) as (host, session):
        configure(session, keep_recent_tokens=150)
        await talk(host, session, 2)
        assert await ask(host, session, LONG) == "failed"
        assert len(entries(session, Kind.CONTEXT_EDIT)) == 1
        assert not entries(session, Kind.COMPACTION)
        assert roles(session)[-1] == "user"
        assert await ask(host, session, "Again.") == "done"


@pytest.mark.anyio
async def test_an_overflow_with_nothing_to_compact_is_told_and_nothing_is_omitted(
    cwd: Path,
) -> None:
    async with talking(cwd, replies(OVERFLOW, "a1")) as (host, session):
        ear = Ear(session.hub)
        assert await ask(host, session, "Hi.") == "failed"
        [ended] = ear.of(CompactionEnded)
        assert ended.error is not None and ended.error["reason"] == "nothing_to_compact"
        assert not entries(session, Kind.CONTEXT_EDIT)


@pytest.mark.anyio
async def test_a_reply_cut_for_lack_of_room_is_asked_again(cwd: Path) -> None:
    cut = {"text": "And so", "stop": "length", "usage": {"output": 5}}
    async with talking(cwd, replies("a0", "a1", cut, "NOTES", "a2")) as (host, session):
        configure(session, keep_recent_tokens=150)
        await talk(host, session, 3)
        assert "And so" not in texts(session)
        assert texts(session)[-1] == "a2"


@pytest.mark.anyio
async def test_a_reply_cut_at_the_models_own_limit_stays(cwd: Path) -> None:
    cut = {"text": "And so", "stop": "length", "usage": {"output": 40}}
    async with talking(cwd, replies("a0", cut, maxOutput=40)) as (host, session):
        configure(session, keep_recent_tokens=50)
        await talk(host, session, 1)
        assert await ask(host, session, LONG) == "truncated"
        assert texts(session)[-1] == "And so"


@pytest.mark.anyio
async def test_an_answer_in_a_context_that_no_longer_fits_is_kept_and_not_asked_again(
    cwd: Path,
) -> None:
    async with talking(cwd, replies("a0", used(100_001), "NOTES")) as (host, session):
        configure(session, keep_recent_tokens=50)
        ear = Ear(session.hub)
        await talk(host, session, 2)
        assert [one.reason for one in ear.of(CompactionStarted)] == ["overflow"]
        assert [one.will_retry for one in ear.of(CompactionEnded)] == [False]
        assert texts(session)[-1] == "ok"
        assert not entries(session, Kind.CONTEXT_EDIT)


@pytest.mark.anyio
async def test_room_for_a_context_that_did_not_fit_is_made_however_little_is_freed(
    cwd: Path,
) -> None:
    notes = "n" * 4 * 95_000
    async with talking(cwd, replies("a0", used(100_001), notes, "a2")) as (host, session):
        configure(session, keep_recent_tokens=50)
        ear = Ear(session.hub)
        await talk(host, session, 2)
        [ended] = ear.of(CompactionEnded)
        assert (ended.reason, ended.error, ended.entry_id is None) == ("overflow", None, False)


@pytest.mark.anyio
async def test_a_failed_answer_stays_and_its_context_is_compacted(cwd: Path) -> None:
    refused = {"text": "x" * 80, "error": {"status": 400, "message": "no"}}
    script = replies("a0", used(83_600), refused, "NOTES")
    async with talking(cwd, script) as (host, session):
        configure(session, keep_recent_tokens=50)
        await talk(host, session, 2)
        ear = Ear(session.hub)
        assert await ask(host, session, "x" * 40) == "failed"
        assert [one.reason for one in ear.of(CompactionStarted)] == ["threshold"]
        assert ear.names.index("CompactionEnded") < ear.names.index("RunSettled")
        assert texts(session)[-1] == "x" * 80


@pytest.mark.anyio
async def test_a_compaction_that_would_not_help_is_given_up_until_the_context_grows(
    cwd: Path,
) -> None:
    long_notes = "n" * 4 * 90_000
    script = replies("a0", used(90_000), long_notes, used(90_100), used(99_500), "NOTES")
    async with talking(cwd, script) as (host, session):
        configure(session, keep_recent_tokens=50)
        ear = Ear(session.hub)
        await talk(host, session, 2)
        [ended] = ear.of(CompactionEnded)
        assert ended.error is not None and ended.error["reason"] == "compaction_ineffective"
        await talk(host, session, 1)
        assert len(ear.of(CompactionEnded)) == 1
        await talk(host, session, 1)
        assert [one.entry_id is None for one in ear.of(CompactionEnded)] == [True, False]


@pytest.mark.anyio
async def test_on_request_a_compaction_that_frees_little_is_made_and_says_so(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", "n" * 4000)) as (host, session):
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        ear = Ear(session.hub)
        made = await compact(session, host.tasks)
        assert not made.effective
        assert "DiagnosticTold" in ear.names


@pytest.mark.anyio
async def test_pinned_words_outlast_every_compaction(cwd: Path) -> None:
    script = replies("a0", "a1", "NOTES", "a2", "NOTES", "NOTES", "a3", "NOTES", "NOTES")
    async with talking(cwd, script) as (host, session):
        await talk(host, session, 1)
        question = session.tree.heads.id_of(session.leaf_row - 1)
        await pin_entry(session, question, True)
        words, _ = await pin_words(session, "The key is 4711.")
        configure(session, keep_recent_tokens=30)
        for turn in range(3):
            await ask(host, session, f"Next {turn}. {LONG}")
            if turn:
                await compact(session, host.tasks)
                context = "\n".join(text_of(one) for one in session.projection.messages("llm"))
                assert "The key is 4711." in context and "Question 0." in context
        pins = entries(session, Kind.COMPACTION)[-1]["details"]["piRpc"]["pins"]
        assert pins == [question, words]
        await pin_entry(session, words, False)
        await ask(host, session, LONG)
        await compact(session, host.tasks)
        assert "4711" not in entries(session, Kind.COMPACTION)[-1]["summary"]


@pytest.mark.anyio
async def test_a_summary_that_cannot_be_stored_is_told_and_the_next_one_stands_alone(
    cwd: Path,
) -> None:
    disk, speaker = Disk(), Speaker(said("a0"), said("a1"), said("LOST"), said("KEPT"))
    store = BrittleStore(memory_store(), disk)
    async with living_host(store, cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        ear, leaf = Ear(session.hub), session.leaf_id
        disk.is_full = True
        with pytest.raises(Outside) as caught:
            await compact(session, host.tasks)
        assert caught.value.reason == "disk_full"
        [ended] = ear.of(CompactionEnded)
        assert ended.error is not None and ended.error["reason"] == "disk_full"
        assert session.leaf_id == leaf
        disk.is_full = False
        made = await compact(session, host.tasks)
        [stored] = entries(session, Kind.COMPACTION)
        assert (stored["id"], stored["parentId"]) == (made.entry_id, leaf)
        assert "KEPT" in stored["summary"] and "LOST" not in "".join(texts(session))


@pytest.mark.anyio
async def test_an_image_that_is_hidden_leaves_its_words_and_stops_no_compaction(
    cwd: Path,
) -> None:
    image = {"type": "image", "data": "iVBORw0KGgo=" * 1000, "mimeType": "image/png"}
    speaker = Speaker(said("a0"), said("a1"), said("NOTES"), said("a2"))
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        prompt(session, host.tasks, "See this.", [image])
        assert await wait_until_settled(session) == "done"
        shown = session.tree.heads.id_of(session.leaf_row - 1)
        assert "iVBOR" in str(speaker.requests[-1])
        text = {"type": "text", "text": "See this."}
        await edit_context(session, [shown], {"content": [text]}, pairs=True)
        assert texts(session) == ["See this.", "a0"]
        assert image in session.tree.entry(session.tree.row_of(shown)).object["message"]["content"]
        await ask(host, session, LONG)
        configure(session, keep_recent_tokens=50)
        await compact(session, host.tasks)
        await ask(host, session, "And now?")
        assert "iVBOR" not in str(speaker.requests[1:])
        assert "See this." in str(speaker.requests[2])


@pytest.mark.anyio
async def test_a_conversation_longer_than_the_window_is_summarised_in_rounds(cwd: Path) -> None:
    script = {
        "replies": [],
        "default": {"text": "ok"},
        "contextWindow": 4000,
        "summaries": "byRule",
        "enforceWindow": True,
    }
    async with talking(cwd, script) as (host, session):
        configure(session, enabled=False, keep_recent_tokens=50)
        session.chosen.script = script | {"enforceWindow": False}
        for turn in range(12):
            await ask(host, session, f"Question {turn}. {'x' * 4000}")
        session.chosen.script = script
        made = await compact(session, host.tasks)
        assert made.details["piRpc"]["requests"] > 3
        assert made.tokens_after < 4000 < made.tokens_before


@pytest.mark.anyio
async def test_settings_of_a_session_hold_for_it_alone(cwd: Path) -> None:
    async with talking(cwd, replies()) as (host, session):
        configure(session, keep_recent_tokens=7, reserve_tokens=5)
        limits = limits_of(session)
        assert (limits.reserve_tokens, limits.keep_recent_tokens) == (5, 7)
        other = await opened(host, cwd)
        assert limits_of(other).keep_recent_tokens == 20_000
        with pytest.raises(Failure):
            configure(session, keep_recent_tokens=-1)


@pytest.mark.anyio
async def test_a_session_that_is_closed_during_a_summary_closes(cwd: Path) -> None:
    door = Door()
    speaker = Speaker(said("a0"), said("a1"), [*said("NOTES")[:3], door])
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)

        async def try_it() -> None:
            with pytest.raises(Stopped):
                await compact(session, host.tasks)

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(try_it)
                await door.until_reached()
                await host.close(session)
        assert session.closed


@pytest.mark.anyio
async def test_others_have_their_turn_while_a_long_history_is_told(cwd: Path) -> None:
    speaker = Speaker(said("NOTES"), said("TURN"))
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        asked = [message_body(user_message(f"Question {turn}.", (), turn)) for turn in range(2000)]
        await session.record(*asked)
        configure(session, keep_recent_tokens=50)
        turns = 0

        async def take_turns() -> None:
            nonlocal turns
            while not speaker.requests:
                turns += 1
                await anyio.lowlevel.checkpoint()

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take_turns)
                await compact(session, host.tasks)
        assert turns >= len(asked) // BLOCK_ROWS
        told = text_of(speaker.requests[0][-1])
        assert "[User]: Question 0.\n\n[User]: Question 1.\n\n" in told


@pytest.mark.anyio
async def test_a_stop_reaches_a_long_history_while_it_is_told(cwd: Path) -> None:
    speaker = Speaker()
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await session.record(*(message_body(user_message(LONG, (), 1)) for _ in range(2000)))
        configure(session, keep_recent_tokens=50)
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(abort, session)
                with pytest.raises(Stopped):
                    await compact(session, host.tasks)
        assert not speaker.requests
        assert not entries(session, Kind.COMPACTION)
