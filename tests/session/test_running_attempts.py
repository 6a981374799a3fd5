"""Runs of several attempts: failures asked again, waits ended early, words in queues kept safe."""

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest

from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Refused
from pi_rpc.core.events import (
    AttemptEnded,
    Event,
    QueueChanged,
    RetryEnded,
    RetryScheduled,
    RunSettled,
    ToolEnded,
    ToolStarted,
)
from pi_rpc.core.messages import JsonObject, text_of
from pi_rpc.core.reply import ReplyEnded, ReplyError, ReplyStarted
from pi_rpc.core.retrying import RetryPolicy
from pi_rpc.core.turns import QueueModes
from pi_rpc.session.choosing import set_model
from pi_rpc.session.hub import Hub
from pi_rpc.session.prompting import (
    abort,
    abort_retry,
    configure_queues,
    edit_queued,
    enqueue,
    prompt,
    wait_until_settled,
)
from pi_rpc.session.session import Session
from tests.session.living import (
    WAIT_S,
    BrittleStore,
    Disk,
    Door,
    Ear,
    HeldTool,
    Part,
    Speaker,
    called,
    kinds,
    living_host,
    memory_store,
    messages,
    opened,
    said,
    texts,
    tools_named,
)

pytestmark = pytest.mark.anyio

QUICK = RetryPolicy(base_ms=1)
SLOW = RetryPolicy(base_ms=50_000)


def failing(kind: str = "overloaded") -> Sequence[Part]:
    return [ReplyStarted(), ReplyEnded("error", error=ReplyError(kind, "not now", 529))]


def words(queue: list[JsonObject]) -> list[str]:
    return [item["text"] for item in queue]


async def test_a_retry_asks_exactly_what_was_asked_before(cwd: Path) -> None:
    speaker = Speaker(failing(), failing("network"), said("here"))
    async with living_host(memory_store(), cwd, speaker, retry=QUICK) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "hi")
        assert await wait_until_settled(session) == "done"
        assert speaker.requests[0] == speaker.requests[1] == speaker.requests[2]
        assert [(one.attempt, one.delay_ms) for one in ear.of(RetryScheduled)] == [(1, 1), (2, 2)]
        assert [(one.attempt, one.success) for one in ear.of(RetryEnded)] == [(2, True)]
        assert [one.next for one in ear.of(AttemptEnded)] == ["retry", "retry", "none"]
        assert kinds(session).count(Kind.CONTEXT_EDIT) == 2
        assert texts(session) == ["hi", "here"]


async def test_chance_shortens_the_wait(cwd: Path) -> None:
    speaker = Speaker(failing())
    async with living_host(memory_store(), cwd, speaker, retry=SLOW, chance=0.5) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "hi")
        assert (await ear.until(RetryScheduled)).delay_ms == 43_750
        await abort(session)


class Upon:
    """A listener that does something as soon as an event is told that fits."""

    is_pressed = is_full = False

    def __init__(self, fits: Callable[[Event], bool], act: Callable[[], None]) -> None:
        self._fits = fits
        self._act = act

    def hear(self, hub: Hub, seq: int, event: Event) -> None:
        if self._fits(event):
            self._act()

    async def wait_until_free(self) -> None:
        """It always is."""


async def test_a_retry_given_up_fails_its_run_and_another_may_begin(cwd: Path) -> None:
    async with living_host(
        memory_store(), cwd, Speaker(failing(), said("here")), retry=SLOW
    ) as host:
        session = await opened(host, cwd)
        with pytest.raises(Refused) as refused:
            await abort_retry(session)
        assert refused.value.reason == "no_retry"
        ear = Ear(session.hub)
        prompt(session, host.tasks, "hi")
        await ear.until_true(lambda: session.run is not None and session.run.pause is not None)
        with anyio.fail_after(WAIT_S):
            assert await abort_retry(session) == "failed"
        assert [one.next for one in ear.of(AttemptEnded)] == ["retry"]
        assert ear.of(RetryEnded)[0].error == {
            "kind": "cancelled",
            "providerMessage": "The retry was given up.",
        }
        prompt(session, host.tasks, "again")
        assert await wait_until_settled(session) == "done"


async def test_a_run_that_breaks_before_a_retry_ends_what_it_told_of(cwd: Path) -> None:
    disk = Disk()
    store = BrittleStore(memory_store(), disk)
    async with living_host(store, cwd, Speaker(failing()), retry=QUICK) as host:
        session = await opened(host, cwd)
        session.hub.attach(Upon(lambda event: isinstance(event, RetryScheduled), disk.fill))
        ear = Ear(session.hub)
        prompt(session, host.tasks, "hi")
        settled = await ear.until(RunSettled)
        assert settled.outcome == "failed"
        assert settled.error is not None
        assert settled.error["reason"] == "disk_full"
        assert [one.next for one in ear.of(AttemptEnded)] == ["retry"]
        [ended] = ear.of(RetryEnded)
        assert (ended.attempt, ended.success, ended.error) == (1, False, settled.error)


async def test_all_that_waits_goes_at_once_when_the_queue_says_so(cwd: Path) -> None:
    speaker = Speaker(said("one"), said("two"))
    async with living_host(memory_store(), cwd, speaker) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        assert configure_queues(session, "all", None) == QueueModes("all", "one-at-a-time")
        configure_queues(session, None, "all")
        configure_queues(session, None, "all")
        assert len(ear.of(QueueChanged)) == 2
        for text in ("s1", "s2"):
            enqueue(session, "steering", text)
        for text in ("f1", "f2"):
            enqueue(session, "followUp", text)
        prompt(session, host.tasks, "go")
        assert await wait_until_settled(session) == "done"
        assert texts(session) == ["go", "s1", "s2", "one", "f1", "f2", "two"]
        assert [one.next for one in ear.of(AttemptEnded)] == ["queued", "none"]
        assert ear.of(QueueChanged)[-1] == QueueChanged([], [], "all", "all")


async def test_a_reworded_message_keeps_its_id_its_images_and_its_time(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker(said("one"))) as host:
        session = await opened(host, cwd)
        image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
        enqueue(session, "followUp", "first", [image])
        second = enqueue(session, "followUp", "second").item_id
        before = session.queues.follow_up[0]
        edited = edit_queued(session, before.id, "", 1)
        assert edited.id == before.id
        assert edited.message["content"] == [{"type": "text", "text": ""}, image]
        assert edited.message["timestamp"] == before.message["timestamp"]
        assert [item.id for item in session.queues.follow_up] == [second, before.id]


async def test_words_taken_from_a_queue_wait_again_when_they_cannot_be_stored(cwd: Path) -> None:
    disk = Disk()
    async with living_host(BrittleStore(memory_store(), disk), cwd, Speaker(said("one"))) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        for text in ("f1", "f2"):
            enqueue(session, "followUp", text)

        session.hub.attach(
            Upon(
                lambda event: isinstance(event, QueueChanged) and len(event.follow_up) == 1,
                disk.fill,
            )
        )
        prompt(session, host.tasks, "go")
        settled = await ear.until(RunSettled)
        assert settled.outcome == "failed"
        assert words(ear.of(QueueChanged)[-1].follow_up) == ["f1", "f2"]
        assert [item.text for item in session.queues.follow_up] == ["f1", "f2"]
        disk.is_full = False


async def test_a_stop_between_the_results_and_the_next_request_delivers_nothing(
    cwd: Path,
) -> None:
    disk = Disk()
    speaker = Speaker(called(("t", "{}")))
    store = BrittleStore(memory_store(), disk)
    async with living_host(store, cwd, speaker, tools_named(HeldTool("t"))) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await ear.until(ToolStarted)
        enqueue(session, "steering", "wait")
        disk.door = Door()
        await ear.until(ToolEnded)
        await disk.door.until_reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(abort, session)
            await anyio.wait_all_tasks_blocked()
            disk.door.opened.set()
        assert ear.of(RunSettled)[0].outcome == "aborted"
        assert [item.text for item in session.queues.steering] == ["wait"]
        assert messages(session)[-1]["stopReason"] == "aborted"
        assert "wait" not in [text_of(message) for message in messages(session)]


async def test_a_failed_run_leaves_the_queues_as_they_are(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker(failing("unauthorized"))) as host:
        session: Session = await opened(host, cwd)
        enqueue(session, "followUp", "later")
        prompt(session, host.tasks, "go")
        assert await wait_until_settled(session) == "failed"
        assert [item.text for item in session.queues.follow_up] == ["later"]


async def test_a_model_chosen_while_a_tool_runs_answers_the_next_request_of_the_run(
    cwd: Path,
) -> None:
    door = Door()
    speaker = Speaker(called(("t", "{}")), said("done"))
    tool = HeldTool("t", door, heeds_stop=False)
    async with living_host(memory_store(), cwd, speaker, tools_named(tool)) as host:
        session = await opened(host, cwd)
        prompt(session, host.tasks, "go")
        await door.until_reached()
        await set_model(session, "speaker", "two")
        door.opened.set()
        assert await wait_until_settled(session) == "done"
        assert kinds(session)[-4:] == [
            *(Kind.ASSISTANT, Kind.MODEL_CHANGE, Kind.TOOL_RESULT, Kind.ASSISTANT),
        ]
        replies = [message for message in messages(session) if message["role"] == "assistant"]
        assert [reply["model"] for reply in replies] == ["one", "two"]


async def test_a_prompt_told_of_the_end_of_a_run_starts_another(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker(said("one"), said("two"))) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        again = iter(["next"])

        def prompt_again() -> None:
            for text in again:
                prompt(session, host.tasks, text)

        session.hub.attach(Upon(lambda event: isinstance(event, RunSettled), prompt_again))
        prompt(session, host.tasks, "first")
        await ear.until(RunSettled, 2)
        assert texts(session) == ["first", "one", "next", "two"]
