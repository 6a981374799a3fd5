"""Room made by itself: what counts as too full, and what else goes on meanwhile."""

from pathlib import Path

import anyio
import pytest

from pi_rpc.core.entries import Kind, message_body
from pi_rpc.core.events import CompactionEnded, CompactionStarted, RunSettled
from pi_rpc.core.messages import JsonObject, text_of, user_message
from pi_rpc.session.condensing import compact, configure, pin_words
from pi_rpc.session.making_room import recovery_of_reply
from pi_rpc.session.prompting import prompt
from tests.session.living import (
    WAIT_S,
    Door,
    Ear,
    Speaker,
    living_host,
    memory_store,
    opened,
    said,
    texts,
)
from tests.session.test_compacting import (
    LONG,
    OVERFLOW,
    ask,
    entries,
    replies,
    talk,
    talking,
    used,
)

SMALL = {"contextWindow": 400}
"""A window of which three hundred tokens are free for the context."""


def stopped(tokens: int) -> JsonObject:
    usage = {"input": tokens, "output": 1, "cacheRead": 0, "cacheWrite": 0}
    reply = {"role": "assistant", "content": [], "provider": "offline", "model": "scripted"}
    return {**reply, "stopReason": "aborted", "usage": usage, "timestamp": 1}


@pytest.mark.anyio
async def test_a_stopped_answer_tells_how_full_the_context_is_for_the_next_words(
    cwd: Path,
) -> None:
    async with talking(cwd, replies("a0", "a1", "NOTES", "a2")) as (host, session):
        configure(session, keep_recent_tokens=50)
        await talk(host, session, 2)
        asked = message_body(user_message("And?", (), 1))
        await session.record(asked, message_body(stopped(83_616)))
        assert not entries(session, Kind.COMPACTION)
        ear = Ear(session.hub)
        assert await ask(host, session, "So?") == "done"
        assert [one.reason for one in ear.of(CompactionStarted)] == ["threshold"]


@pytest.mark.anyio
async def test_a_model_that_reports_no_usage_is_compacted_by_estimates(cwd: Path) -> None:
    script = replies(*(used(0, f"a{turn}") for turn in range(3)), used(0, "NOTES"), **SMALL)
    async with talking(cwd, script) as (host, session):
        ear = Ear(session.hub)
        await talk(host, session, 3)
        assert [one.reason for one in ear.of(CompactionStarted)] == ["threshold"]
        assert [one.error for one in ear.of(CompactionEnded)] == [None]


@pytest.mark.anyio
async def test_a_pass_on_request_stops_the_one_that_goes_on_by_itself(cwd: Path) -> None:
    door = Door()
    speaker = Speaker(said("a0"), said("a1"), [*said("NOTES")[:3], door], said("MINE"), said("a2"))
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        session.chosen.script = dict(SMALL)
        ear = Ear(session.hub)
        prompt(session, host.tasks, LONG)
        with anyio.fail_after(WAIT_S):
            await door.until_reached()
            made = await compact(session, host.tasks)
        assert made.summary == "MINE"
        told = [(one.reason, one.aborted) for one in ear.of(CompactionEnded)]
        assert told == [("threshold", True), ("manual", False)]
        names = [name for name in ear.names if name.startswith("Compaction")]
        assert names == ["CompactionStarted", "CompactionEnded"] * 2
        assert len(ear.of(RunSettled)) == 1
        assert await ask(host, session, "Go on.") == "done"


@pytest.mark.anyio
async def test_pinned_words_outlast_a_recovery(cwd: Path) -> None:
    script = replies("a0", OVERFLOW, "NOTES", "TURN", "a1")
    async with talking(cwd, script) as (host, session):
        await pin_words(session, "The key is 4711.")
        await talk(host, session, 1)
        configure(session, keep_recent_tokens=150)
        assert await ask(host, session, LONG) == "done"
        [stored] = entries(session, Kind.COMPACTION)
        assert stored["details"]["piRpc"]["reason"] == "overflow"
        context = "\n".join(text_of(one) for one in session.projection.messages("llm"))
        assert "The key is 4711." in context and texts(session)[-1] == "a1"


@pytest.mark.anyio
async def test_a_failed_reply_of_another_model_is_no_reason_to_make_room(cwd: Path) -> None:
    async with talking(cwd, replies("a0")) as (_, session):
        failed = stopped(9) | {"stopReason": "error", "errorMessage": "prompt is too long"}
        assert recovery_of_reply(session, failed) == "overflow"
        assert recovery_of_reply(session, failed | {"model": "another"}) is None
