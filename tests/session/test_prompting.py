"""Words are accepted, queued or refused in one step; runs are stopped and waited for."""

from pathlib import Path

import anyio
import pytest

from pi_rpc.core.errors import Busy, Conflict, Invalid, Locked, Missing, Refused
from pi_rpc.core.events import QueueChanged, RunSettled, RunStarted
from pi_rpc.core.ports.providers import Provider
from pi_rpc.session.choosing import set_model
from pi_rpc.session.prompting import (
    QUEUED_MAX,
    Admission,
    abort,
    clear_queues,
    enqueue,
    prompt,
    remove_queued,
    wait_until_settled,
)
from tests.session.living import (
    WAIT_S,
    Door,
    Ear,
    HeldTool,
    Speaker,
    called,
    file_store,
    living_host,
    memory_store,
    opened,
    said,
    standing,
    texts,
    tools_named,
)


@pytest.mark.anyio
async def test_of_two_prompts_in_one_tick_one_starts_and_the_other_is_told_so(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker(said("one"))) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        first = prompt(session, host.tasks, "first")
        with pytest.raises(Busy) as failure:
            prompt(session, host.tasks, "second")
        assert failure.value.data == {"runId": first.run_id}
        assert await wait_until_settled(session, first.run_id) == "done"
        assert texts(session) == ["first", "one"]
        assert [one.run_id for one in ear.of(RunStarted)] == [first.run_id]
        assert [one.run_id for one in ear.of(RunSettled)] == [first.run_id]


@pytest.mark.anyio
async def test_the_second_of_two_prompts_in_one_tick_is_queued_when_it_says_so(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker(said("one"), said("two"))) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        first = prompt(session, host.tasks, "first")
        second = prompt(session, host.tasks, "second", when_busy="followUp")
        assert second.disposition == "queued"
        assert second.run_id == first.run_id
        assert await wait_until_settled(session) == "done"
        assert texts(session) == ["first", "one", "second", "two"]
        assert len(ear.of(RunSettled)) == 1


@pytest.mark.anyio
async def test_a_prompt_without_words_or_images_is_refused(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker()) as host:
        session = await opened(host, cwd)
        before = standing(session)
        with pytest.raises(Invalid) as failure:
            prompt(session, host.tasks, "")
        assert failure.value.reason == "empty_prompt"
        assert standing(session) == before


@pytest.mark.anyio
async def test_a_model_that_is_gone_refuses_the_prompt_and_records_nothing(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker()) as host:
        session = await opened(host, cwd)
        session.chosen.model = ("nobody", "none")
        before = standing(session)
        with pytest.raises(Missing) as failure:
            prompt(session, host.tasks, "hello")
        assert failure.value.reason == "model_not_found"
        session.chosen.model = None
        with pytest.raises(Refused) as refused:
            prompt(session, host.tasks, "hello")
        assert refused.value.reason == "no_model"
        session.chosen.model = ("nobody", "none")
        assert standing(session) == before
        assert session.run is None


@pytest.mark.anyio
async def test_a_session_open_to_read_takes_no_words(root: Path, cwd: Path) -> None:
    store = file_store(root)
    async with living_host(store, cwd) as host, living_host(store, cwd, series=2) as other:
        session = await opened(host, cwd)
        reading = await other.open(session.session_id, "read")
        with pytest.raises(Locked) as failure:
            prompt(reading, other.tasks, "no")
        assert failure.value.reason == "read_only"
        with pytest.raises(Locked) as failure:
            enqueue(reading, "steering", "no")
        assert failure.value.reason == "read_only"


@pytest.mark.anyio
async def test_a_move_going_on_refuses_prompts_and_queued_words(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker()) as host:
        session = await opened(host, cwd)
        with session.acting("navigate"):
            with pytest.raises(Busy):
                prompt(session, host.tasks, "no")
            with pytest.raises(Busy):
                enqueue(session, "followUp", "no")
        assert session.run is None
        assert session.queues.follow_up == []


@pytest.mark.anyio
async def test_steering_goes_with_the_next_request_and_follow_ups_wait_for_the_end(
    cwd: Path,
) -> None:
    door = Door()
    speaker = Speaker(called(("hold", "{}")), said("steered"), said("followed"))
    tool = HeldTool("hold", door, heeds_stop=False)
    async with living_host(memory_store(), cwd, speaker, tools_named(tool)) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await door.until_reached()
        enqueue(session, "followUp", "later")
        steer = prompt(session, host.tasks, "sooner", when_busy="steer")
        assert steer.disposition == "queued"
        assert ear.of(QueueChanged)[-1].steering == [{"id": steer.item_id, "text": "sooner"}]
        door.opened.set()
        assert await wait_until_settled(session) == "done"
        said_so = ["go", "", "hold done", "sooner", "steered", "later", "followed"]
        assert texts(session) == said_so
        assert ear.of(QueueChanged)[-1] == QueueChanged([], [])


@pytest.mark.anyio
async def test_words_queued_while_idle_go_with_the_next_run(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker(said("one"))) as host:
        session = await opened(host, cwd)
        admission = enqueue(session, "steering", "before")
        assert admission == Admission(None, "queued", admission.item_id)
        prompt(session, host.tasks, "go")
        await wait_until_settled(session)
        assert texts(session) == ["go", "before", "one"]


@pytest.mark.anyio
async def test_a_queued_message_is_taken_back_by_its_id_once(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker()) as host:
        session = await opened(host, cwd)
        one = enqueue(session, "steering", "same")
        two = enqueue(session, "steering", "same")
        assert one.item_id is not None
        assert two.item_id is not None
        assert remove_queued(session, one.item_id).text == "same"
        assert [item.id for item in session.queues.steering] == [two.item_id]
        with pytest.raises(Missing) as failure:
            remove_queued(session, one.item_id)
        assert failure.value.data == {"itemId": one.item_id}


@pytest.mark.anyio
async def test_clearing_gives_back_what_waited_and_tells_only_when_something_did(
    cwd: Path,
) -> None:
    async with living_host(memory_store(), cwd, Speaker()) as host:
        session = await opened(host, cwd)
        enqueue(session, "steering", "a")
        enqueue(session, "followUp", "b")
        ear = Ear(session.hub)
        steering, follow_up = clear_queues(session)
        assert [item.text for item in steering + follow_up] == ["a", "b"]
        assert clear_queues(session) == ([], [])
        assert ear.events == [QueueChanged([], [])]


@pytest.mark.anyio
async def test_queues_are_bounded(cwd: Path) -> None:
    async with living_host(memory_store(), cwd, Speaker()) as host:
        session = await opened(host, cwd)
        for _ in range(QUEUED_MAX):
            enqueue(session, "followUp", "x")
        with pytest.raises(Refused) as failure:
            enqueue(session, "followUp", "x")
        assert failure.value.reason == "queue_full"
        enqueue(session, "steering", "the other queue has room")


@pytest.mark.anyio
async def test_an_abort_answers_when_the_session_is_quiet_and_the_queues_wait_on(
    cwd: Path,
) -> None:
    door = Door()
    speaker = Speaker([*said("half")[:3], door], said("next"))
    async with living_host(memory_store(), cwd, speaker) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        run_id = prompt(session, host.tasks, "go").run_id
        await door.until_reached()
        enqueue(session, "steering", "s")
        enqueue(session, "followUp", "f")
        with anyio.fail_after(WAIT_S):
            assert await abort(session, run_id) == "aborted"
        assert session.run is None
        queues = session.queues
        assert [item.text for item in queues.steering + queues.follow_up] == ["s", "f"]
        assert len(ear.of(RunSettled)) == 1
        assert await abort(session) == "aborted"
        assert await abort(session, run_id) == "aborted"


@pytest.mark.anyio
async def test_abort_of_a_prompt_that_was_only_admitted_stops_it(cwd: Path) -> None:
    speaker = Speaker()
    async with living_host(memory_store(), cwd, speaker) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        with anyio.fail_after(WAIT_S):
            assert await abort(session) == "aborted"
        assert speaker.requests == []
        assert texts(session) == ["go", ""]
        assert [one.outcome for one in ear.of(RunSettled)] == ["aborted"]


@pytest.mark.anyio
async def test_stopping_a_run_that_is_not_live_names_the_one_that_is(cwd: Path) -> None:
    door = Door()
    async with living_host(memory_store(), cwd, Speaker([door, *said("x")])) as host:
        session = await opened(host, cwd)
        assert await abort(session) is None
        assert await wait_until_settled(session) is None
        run_id = prompt(session, host.tasks, "go").run_id
        with pytest.raises(Conflict) as failure:
            await abort(session, "another")
        assert failure.value.reason == "run_conflict"
        assert failure.value.data == {"expected": "another", "actual": run_id}
        assert session.run is not None
        door.opened.set()
        assert await wait_until_settled(session, run_id) == "done"


@pytest.mark.anyio
async def test_a_prompt_after_another_model_was_chosen_goes_to_that_one(cwd: Path) -> None:
    class Two(Speaker):
        def provider_of(self, provider: str, model_id: str) -> Provider:
            return self

    async with living_host(memory_store(), cwd, Two(said("hi"))) as host:
        session = await opened(host, cwd)
        await set_model(session, "speaker", "two")
        prompt(session, host.tasks, "go")
        await wait_until_settled(session)
        message = session.tree.entry(session.leaf_row).message
        assert message is not None
        assert message["model"] == "two"
