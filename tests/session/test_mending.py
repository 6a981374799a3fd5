"""Calls that a crash left without a result are answered before anything else is said."""

from pathlib import Path

import pytest

from pi_rpc.core.entries import message_body
from pi_rpc.core.events import EntryAppended, MessageEnded, RunSettled
from pi_rpc.core.messages import JsonObject, ToolCall, ToolOutcome, text_block, tool_result_message
from pi_rpc.session.mending import INTERRUPTED
from pi_rpc.session.prompting import prompt, wait_until_settled
from pi_rpc.session.session import Session
from tests.session.living import (
    Ear,
    Speaker,
    file_store,
    living_host,
    messages,
    opened,
    said,
)

pytestmark = pytest.mark.anyio


def asking(*ids: str, stop: str = "toolUse") -> JsonObject:
    content = [{"type": "toolCall", "id": one, "name": "bash", "arguments": {}} for one in ids]
    return {"role": "assistant", "content": content, "stopReason": stop}


def answer(call_id: str) -> JsonObject:
    return tool_result_message(ToolCall(call_id, "bash", {}), ToolOutcome([text_block("ok")]), 1)


QUESTION: JsonObject = {"role": "user", "content": "go"}


async def left_behind(session: Session, *said_before: JsonObject) -> None:
    """A history as a process that was killed leaves it."""
    await session.record(*(message_body(message) for message in said_before))


async def test_each_call_without_a_result_gets_one_before_the_next_words(
    root: Path, cwd: Path
) -> None:
    store = file_store(root)
    async with living_host(store, cwd, Speaker(said("well"))) as host:
        session = await opened(host, cwd)
        await left_behind(session, QUESTION, asking("a", "b", "c"), answer("b"))
        await host.close(session)
        again = await host.open(session.session_id)
        assert [call.id for call in again.interrupted] == ["a", "c"]
        assert again.environment.scopes["files"].reason == "not_watched"
        ear = Ear(again.hub)
        prompt(again, host.tasks, "and now?")
        await ear.until(RunSettled)
        results = [one.message for one in ear.of(MessageEnded)][:2]
        assert [one["toolCallId"] for one in results] == ["a", "c"]
        assert results[0]["content"] == [text_block(INTERRUPTED)]
        assert results[0]["isError"]
        assert results[0]["details"] == {"interrupted": True}
        roles = [message["role"] for message in messages(again)]
        assert roles == [
            *("user", "assistant", "toolResult", "toolResult", "toolResult", "user", "assistant"),
        ]
        assert again.interrupted == []


async def test_opening_writes_nothing(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        await left_behind(session, QUESTION, asking("a"))
        await host.close(session)
        again = await host.open(session.session_id, "read")
        assert again.interrupted == []
        again = await host.open(session.session_id)
        assert Ear(again.hub).of(EntryAppended) == []
        assert len(again.tree) == len(session.tree)


@pytest.mark.parametrize(
    "history",
    [
        [QUESTION],
        [QUESTION, asking("a"), answer("a")],
        [QUESTION, asking("a", stop="aborted")],
        [QUESTION, asking("a", stop="error")],
        [QUESTION, asking("a"), QUESTION],
        [QUESTION, asking("a"), answer("a"), asking(stop="stop")],
    ],
    ids=["no reply", "answered", "stopped", "failed", "gone on", "done"],
)
async def test_nothing_is_made_up_where_nothing_is_missing(
    history: list[JsonObject], root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("well"))) as host:
        session = await opened(host, cwd)
        await left_behind(session, *history)
        assert session.interrupted == []
        before = len(messages(session))
        prompt(session, host.tasks, "and now?")
        await wait_until_settled(session)
        assert len(messages(session)) == before + 2
