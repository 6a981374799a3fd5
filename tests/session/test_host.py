"""Live sessions are made, opened, copied, replaced and closed; a failure leaves the old one."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from pi_rpc.core.entries import Kind, message_body
from pi_rpc.core.errors import Busy, Failure, Invalid, Locked, Missing, Outside, Refused, Stopped
from pi_rpc.core.events import (
    EntryAppended,
    Event,
    RunSettled,
    RuntimeReplaced,
    SessionClosed,
    SessionOpened,
)
from pi_rpc.core.messages import user_message
from pi_rpc.session.building import Copied, Copying, Opening
from pi_rpc.session.host import Host
from pi_rpc.session.hub import Hub
from pi_rpc.session.navigating import rename, set_label
from pi_rpc.session.prompting import enqueue, prompt, wait_until_settled
from pi_rpc.session.session import Session
from tests.session.living import (
    WAIT_S,
    BrittleStore,
    Disk,
    Door,
    Ear,
    Speaker,
    context_of,
    file_store,
    living_host,
    memory_store,
    messages,
    opened,
    reason_of,
    said,
    standing,
    texts,
)


class Following(Ear):
    """Hears a runtime and, at a swap, the one that takes over."""

    def __init__(self, host: Host, session: Session) -> None:
        super().__init__(session.hub)
        self._host = host
        self.runtimes: list[str] = []

    def hear(self, hub: Hub, seq: int, event: Event) -> None:
        super().hear(hub, seq, event)
        self.runtimes.append(hub.runtime_id)
        if isinstance(event, RuntimeReplaced):
            hub.detach(self)
            self._host.session(event.new_session_id).hub.attach(self)


def copying(reason: str = "clone", entry_id: str | None = None, **more: object) -> Copying:
    fields: dict[str, object] = {
        "reason": reason,
        "entry_id": entry_id,
        "position": "before" if reason == "fork" else "at",
        "cwd": None,
        "new_session_id": None,
        "activate": True,
    }
    return Copying(**(fields | more))  # type: ignore[arg-type]


async def asked(host: Host, session: Session, *questions: str) -> None:
    for question in questions:
        prompt(session, host.tasks, question)
        assert await wait_until_settled(session) == "done"


def questions_of(session: Session) -> list[str]:
    return [session.tree.heads.id_of(row) for row in session.tree.rows_of_kind(Kind.USER)]


def files(root: Path) -> list[Path]:
    return sorted(root.rglob("*.jsonl"))


@pytest.mark.anyio
async def test_a_new_session_is_on_the_disk_at_once_and_opens_again(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await host.new(Opening(str(cwd), "chosen", "a\nname", thinking_level="low"))
        assert session.hub.since(0) == [
            (1, SessionOpened("new", session.leaf_id)),
        ]
        await host.close(session)
        again = await host.open("chosen")
        assert again.tree.name() == "a name"
        assert (again.chosen.thinking_level, again.leaf_id) == ("low", session.leaf_id)
        assert again.runtime_id != session.runtime_id


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"cwd": "not/absolute"}, ("invalid", "cwd_not_absolute")),
        ({"cwd": "/there/is/no/such/folder"}, ("missing", "cwd_missing")),
        ({"session_id": "../out"}, ("invalid", "bad_session_id")),
        ({"session_id": "x" * 129}, ("invalid", "bad_session_id")),
        ({"session_id": "taken"}, ("refused", "session_exists")),
        ({"model": ("no", "model")}, ("missing", "model_not_found")),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
async def test_a_new_session_that_cannot_be_leaves_nothing_behind(
    fields: dict[str, object], wanted: tuple[str, str], root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd) as host:
        await host.new(Opening(str(cwd), "taken"))
        before = files(root)
        with pytest.raises(Failure) as failure:
            await host.new(Opening(**({"cwd": str(cwd)} | fields)))  # type: ignore[arg-type]
        assert reason_of(failure.value) == wanted
        assert files(root) == before
        assert len(host.sessions) == 1


@pytest.mark.anyio
async def test_opening_twice_at_once_gives_one_runtime(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        await host.close(session)
        found: list[Session] = []

        async def open_it() -> None:
            found.append(await host.open(session.session_id))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(open_it)
        assert len({one.runtime_id for one in found}) == 1
        assert len(host.sessions) == 1


@pytest.mark.anyio
async def test_opening_by_id_and_by_path_at_once_gives_one_runtime(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        assert session.stored.path is not None
        names: list[str | Path] = [session.session_id, session.stored.path]
        names.append(session.session_id[:-1])
        await host.close(session)
        found: list[Session] = []

        async def open_it(name: str | Path) -> None:
            found.append(await host.open(name))

        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(open_it, name)
        assert len({one.runtime_id for one in found}) == 1


@pytest.mark.anyio
async def test_the_lease_keeps_a_second_host_out_until_the_first_lets_go(
    root: Path, cwd: Path
) -> None:
    store = file_store(root)
    async with living_host(store, cwd) as host, living_host(store, cwd, series=2) as other:
        session = await opened(host, cwd)
        with pytest.raises(Locked) as failure:
            await other.open(session.session_id)
        assert failure.value.data["owner"]["pid"]
        assert other.sessions == []
        await host.close(session)
        assert (await other.open(session.session_id)).stored.writable


@pytest.mark.anyio
async def test_whoever_only_reads_goes_on_reading_when_it_may_not_write(
    root: Path, cwd: Path
) -> None:
    store = file_store(root)
    async with living_host(store, cwd) as host, living_host(store, cwd, series=2) as other:
        session = await opened(host, cwd)
        reading = await other.open(session.session_id, "read")
        ear = Ear(reading.hub)
        with pytest.raises(Locked):
            await other.open(session.session_id, "own")
        assert other.find(session.session_id) is reading
        assert not reading.closed
        assert ear.of(SessionClosed) == []
        await host.close(session)
        owned = await other.open(session.session_id, "own")
        assert owned.stored.writable
        assert other.find(session.session_id) is owned
        assert reading.closed
        assert ear.of(SessionClosed) == [SessionClosed("reopened")]


@pytest.mark.anyio
async def test_a_session_whose_folder_is_gone_says_what_can_be_done(
    root: Path, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    async with living_host(file_store(root), tmp_path) as host:
        session = await opened(host, gone)
        await host.close(session)
        gone.rmdir()
        with pytest.raises(Missing) as failure:
            await host.open(session.session_id)
        assert failure.value.reason == "cwd_missing"
        assert failure.value.data["choices"] == ["open_with_cwd", "open_to_read", "fork_with_cwd"]
        elsewhere = await host.open(session.session_id, cwd=str(tmp_path))
        assert elsewhere.cwd == tmp_path
        assert elsewhere.header.cwd == str(gone)


@pytest.mark.anyio
async def test_closing_stops_the_run_stores_it_and_tells_the_end_last(
    root: Path, cwd: Path
) -> None:
    door = Door()
    async with living_host(file_store(root), cwd, Speaker([*said("half")[:3], door])) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await door.until_reached()
        with anyio.fail_after(WAIT_S):
            await host.close(session)
        assert ear.names[-2:] == ["RunSettled", "SessionClosed"]
        assert len(ear.of(SessionClosed)) == len(ear.of(RunSettled)) == 1
        with pytest.raises(Stopped) as failure:
            prompt(session, host.tasks, "no")
        assert failure.value.reason == "runtime_over"
        with pytest.raises(Missing):
            host.session(session.session_id)
        again = await host.open(session.session_id)
        assert messages(again)[-1]["stopReason"] == "aborted"
        await host.close(session)
        assert host.find(session.session_id) is again


@pytest.mark.anyio
async def test_a_fork_ends_before_its_question_and_replaces_the_runtime(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first", "second")
        assert session.stored.path is not None
        before, ear = session.stored.path.read_bytes(), Following(host, session)
        anchor = session.tree.parent(session.tree.row_of(questions_of(session)[1]))
        wanted = context_of(session.tree, anchor)
        copied = await host.copy(session, copying("fork", questions_of(session)[1]))
        fork = copied.session
        assert copied.draft == "second"
        assert list(fork.projection.messages("session")) == wanted
        assert fork.header.parent_session == str(session.stored.path)
        assert ear.names == ["RuntimeReplaced", "SessionOpened"]
        assert ear.events[1] == SessionOpened(
            "fork", fork.leaf_id, str(session.stored.path), session.session_id
        )
        assert ear.numbers[1] == 1
        assert host.sessions == [fork]
        assert session.stored.path.read_bytes() == before


@pytest.mark.anyio
async def test_a_copy_beside_its_source_leaves_both_live(root: Path, cwd: Path) -> None:
    speaker = Speaker(said("1"), said("left"), said("right"))
    async with living_host(file_store(root), cwd, speaker) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        ear = Ear(session.hub)
        clone = (await host.copy(session, copying(activate=False))).session
        assert ear.events == []
        await asked(host, session, "l")
        await asked(host, clone, "r")
        assert texts(session) == ["first", "1", "l", "left"]
        assert texts(clone) == ["first", "1", "r", "right"]


@pytest.mark.anyio
async def test_copying_to_another_folder_knows_nothing_of_its_files(
    root: Path, cwd: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with living_host(file_store(root), cwd, Speaker(said("1"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        clone = (await host.copy(session, copying(cwd=str(elsewhere)))).session
        assert (clone.cwd, clone.header.cwd) == (elsewhere, str(elsewhere))
        assert clone.environment.status == "unknown"
        assert clone.environment.scopes["files"].reason == "not_watched"


@pytest.mark.anyio
async def test_a_fork_needs_a_question_and_a_copy_an_entry(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        before = standing(session)
        reasons: list[tuple[str, str]] = []
        for act in (copying("fork", session.leaf_id), copying("fork", "nowhere1")):
            with pytest.raises(Failure) as failure:
                await host.copy(session, act)
            reasons.append(reason_of(failure.value))
        assert reasons == [
            ("refused", "fork_needs_user_message"),
            ("missing", "entry_not_found"),
        ]
        assert standing(session) == before
        assert host.sessions == [session]
        assert len(files(root)) == 1


@pytest.mark.anyio
async def test_a_copy_during_a_run_stores_the_stopped_turn_in_the_old_file(
    root: Path, cwd: Path
) -> None:
    door = Door()
    async with living_host(file_store(root), cwd, Speaker([*said("half")[:3], door])) as host:
        session = await opened(host, cwd)
        ear = Following(host, session)
        prompt(session, host.tasks, "go")
        await door.until_reached()
        with anyio.fail_after(WAIT_S):
            clone = (await host.copy(session, copying())).session
        assert ear.names[-3:] == ["RunSettled", "RuntimeReplaced", "SessionOpened"]
        stored = await host.open(session.session_id)
        assert messages(stored)[-1]["stopReason"] == "aborted"
        assert texts(clone) == ["go", "half"]


Swap = Callable[[Host, Session, Path], Awaitable[object]]

SWAPS: dict[str, Swap] = {
    "clone": lambda host, session, cwd: host.copy(session, copying()),
    "new": lambda host, session, cwd: host.new_replacing(session, Opening(str(cwd))),
    "new in no folder": lambda host, session, cwd: host.new_replacing(session, Opening("/no/dir")),
    "switch": lambda host, session, cwd: host.switch(session, "nowhere", None),
    "import": lambda host, session, cwd: host.import_file(Path("/no/file"), None, session),
}


@pytest.mark.anyio
@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS)
async def test_a_swap_that_fails_leaves_the_old_runtime_live(
    swap: Swap, root: Path, cwd: Path
) -> None:
    disk = Disk()
    store = BrittleStore(file_store(root), disk)
    async with living_host(store, cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        ear, before = Ear(session.hub), standing(session)
        disk.is_full = True
        with pytest.raises(Failure) as failure:
            await swap(host, session, cwd)
        disk.is_full = False
        assert failure.value.data["recovered"] is True
        assert host.sessions == [session]
        assert standing(session) == before
        assert ear.events == []
        assert len(files(root)) == 1
        await asked(host, session, "second")
        assert texts(session) == ["first", "1", "second", "2"]


@pytest.mark.anyio
async def test_two_swaps_at_once_are_one_swap_and_one_busy(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        ear = Ear(session.hub)
        done: list[Copied] = []
        refused: list[Busy | Stopped] = []

        async def clone() -> None:
            try:
                done.append(await host.copy(session, copying()))
            except (Busy, Stopped) as failure:
                refused.append(failure)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clone)
            tasks.start_soon(clone)
        assert len(done) == len(refused) == 1
        assert len(ear.of(RuntimeReplaced)) == 1
        assert host.sessions == [done[0].session]


@pytest.mark.anyio
async def test_switching_takes_the_other_sessions_place_and_back(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"))) as host:
        first, second = await opened(host, cwd), await opened(host, cwd)
        await asked(host, first, "first")
        await host.close(first)
        ear = Following(host, second)
        back = await host.switch(second, first.session_id, None)
        assert texts(back) == ["first", "1"]
        assert host.sessions == [back]
        assert ear.names == ["RuntimeReplaced", "SessionOpened"]
        with pytest.raises(Refused) as failure:
            await host.switch(back, first.session_id, None)
        assert failure.value.reason == "same_session"
        assert failure.value.data == {}


@pytest.mark.anyio
async def test_switching_to_a_session_that_is_live_tells_no_second_start(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd) as host:
        first, second = await opened(host, cwd), await opened(host, cwd)
        ear, there = Ear(first.hub), Ear(second.hub)
        assert await host.switch(first, second.session_id, None) is second
        assert ear.names == ["RuntimeReplaced"]
        assert there.events == []
        assert host.sessions == [second]


async def refused(act: Awaitable[object], failures: list[Failure]) -> None:
    try:
        await act
    except Failure as failure:
        failures.append(failure)


@pytest.mark.anyio
async def test_nobody_is_switched_to_a_session_that_is_being_closed(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"))) as host:
        first, second = await opened(host, cwd), await opened(host, cwd)
        failures: list[Failure] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.close, second)
            tasks.start_soon(refused, host.switch(first, second.session_id, None), failures)
        assert [reason_of(one) for one in failures] == [("busy", "move_in_progress")]
        assert failures[0].data == {"act": "close", "recovered": True}
        assert host.sessions == [first]
        await asked(host, first, "still here")


@pytest.mark.anyio
async def test_of_two_sessions_that_take_each_others_place_one_does(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"))) as host:
        first, second = await opened(host, cwd), await opened(host, cwd)
        failures: list[Failure] = []
        async with anyio.create_task_group() as tasks:
            for old, new in ((first, second), (second, first)):
                tasks.start_soon(refused, host.switch(old, new.session_id, None), failures)
        assert [reason_of(one) for one in failures] == [("busy", "move_in_progress")]
        [left] = host.sessions
        assert not left.closed
        await asked(host, left, "here")


@pytest.mark.anyio
async def test_a_live_session_is_switched_to_by_the_beginning_of_its_id(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd) as host:
        first, second = await opened(host, cwd), await opened(host, cwd, session_id="other-one")
        assert await host.switch(first, "other", None) is second


@pytest.mark.anyio
@pytest.mark.parametrize("ends", ["close", "clone"])
async def test_opening_a_session_whose_runtime_is_ending_makes_a_new_one(
    ends: str, root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        found: list[Session] = []

        async def end() -> None:
            await (host.close(session) if ends == "close" else host.copy(session, copying()))

        async def open_again() -> None:
            found.append(await host.open(session.session_id))

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(end)
                tasks.start_soon(open_again)
        [again] = found
        assert again is not session
        assert host.find(session.session_id) is again
        await asked(host, again, "second")
        assert texts(again) == ["first", "1", "second", "2"]


@pytest.mark.anyio
async def test_a_reload_stands_where_the_runtime_stood(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        ear = Following(host, session)
        fresh = await host.relocate(session, None, "reload")
        assert fresh.session_id == session.session_id
        assert fresh.runtime_id != session.runtime_id
        assert (fresh.leaf_id, texts(fresh)) == (session.leaf_id, texts(session))
        assert ear.names == ["RuntimeReplaced", "SessionOpened"]
        await asked(host, fresh, "second")
        assert texts(fresh) == ["first", "1", "second", "2"]


@pytest.mark.anyio
async def test_what_waits_for_the_model_still_waits_after_a_reload(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"))) as host:
        session = await opened(host, cwd)
        enqueue(session, "followUp", "later")
        fresh = await host.relocate(session, None, "reload")
        assert [item.text for item in fresh.queues.follow_up] == ["later"]


@pytest.mark.anyio
@pytest.mark.parametrize("end", ["reload", "close", "clone"])
async def test_a_change_under_way_is_told_before_the_runtime_ends(
    end: str, root: Path, cwd: Path
) -> None:
    disk = Disk()
    async with living_host(BrittleStore(file_store(root), disk), cwd) as host:
        session = await opened(host, cwd)
        [entry] = await session.record(message_body(user_message("here", (), 1)))
        ear, disk.door = Ear(session.hub), Door()
        found: list[Session] = []

        async def finish() -> None:
            if end == "close":
                await host.close(session)
            elif end == "clone":
                found.append((await host.copy(session, copying())).session)
            else:
                found.append(await host.relocate(session, None, "reload"))

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(set_label, session, entry.id, "mark")
                await disk.door.until_reached()
                tasks.start_soon(finish)
                await anyio.wait_all_tasks_blocked()
                disk.door.opened.set()
        last = "SessionClosed" if end == "close" else "RuntimeReplaced"
        assert ear.names == ["EntryAppended", "LabelChanged", last]
        for fresh in found:
            assert fresh.tree.label_of(entry.id) == "mark"
            if end == "reload":
                assert fresh.leaf_id == ear.of(EntryAppended)[0].id


@pytest.mark.anyio
async def test_importing_copies_the_file_and_leaves_its_source(
    root: Path, cwd: Path, tmp_path: Path
) -> None:
    async with (
        living_host(file_store(root), cwd, Speaker(said("1"))) as host,
        living_host(file_store(tmp_path / "other"), cwd, Speaker(), series=2) as other,
    ):
        session = await opened(host, cwd)
        await asked(host, session, "first")
        assert session.stored.path is not None
        before = session.stored.path.read_bytes()
        imported = await other.import_file(session.stored.path, None, None)
        assert texts(imported) == ["first", "1"]
        assert session.stored.path.read_bytes() == before
        again = await other.import_file(session.stored.path, None, None)
        assert again.session_id != imported.session_id
        with pytest.raises(Missing):
            await other.import_file(tmp_path / "none.jsonl", None, None)
        junk = tmp_path / "junk.jsonl"
        junk.write_text("not a session\n")
        with pytest.raises(Invalid):
            await other.import_file(junk, None, None)
        assert len(files(tmp_path / "other")) == 2


@pytest.mark.anyio
async def test_deleting_closes_and_hides_the_session(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        await host.view(session.session_id)
        trashed = await host.delete(session.session_id)
        assert trashed is not None
        assert trashed.exists()
        assert ear.of(SessionClosed) == [SessionClosed("deleted")]
        with pytest.raises(Missing):
            await host.open(session.session_id)
        assert await host.store.listing(None) == []


@pytest.mark.anyio
async def test_closing_everything_stops_all_runs_together(root: Path, cwd: Path) -> None:
    doors = [Door(), Door()]
    speaker = Speaker(*[[*said("half")[:3], door] for door in doors])
    async with living_host(file_store(root), cwd, speaker) as host:
        sessions = [await opened(host, cwd) for _ in doors]
        ears = [Ear(session.hub) for session in sessions]
        for session, door in zip(sessions, doors, strict=True):
            prompt(session, host.tasks, "go")
            await door.until_reached()
        with anyio.fail_after(WAIT_S):
            await host.close_all()
        assert host.sessions == []
        for ear in ears:
            assert [one.outcome for one in ear.of(RunSettled)] == ["aborted"]
            assert ear.names[-1] == "SessionClosed"


@pytest.mark.anyio
async def test_closing_everything_waits_for_a_move_under_way(root: Path, cwd: Path) -> None:
    disk = Disk()
    async with living_host(BrittleStore(file_store(root), disk), cwd, Speaker(said("1"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        disk.door = Door()
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(host.copy, session, copying())
                await disk.door.until_reached()
                tasks.start_soon(host.close_all)
                await anyio.wait_all_tasks_blocked()
                disk.door.opened.set()
        assert host.sessions == []


@pytest.mark.anyio
async def test_an_ephemeral_session_and_its_copies_leave_no_file(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"))) as host:
        session = await opened(host, cwd, ephemeral=True)
        await asked(host, session, "first")
        clone = (await host.copy(session, copying(activate=False))).session
        assert clone.stored.path is None
        assert texts(clone) == ["first", "1"]
        await rename(clone, "named")
        assert files(root) == []


@pytest.mark.anyio
async def test_a_new_session_the_disk_refuses_is_not_there(root: Path, cwd: Path) -> None:
    disk = Disk()
    async with living_host(BrittleStore(memory_store(), disk), cwd) as host:
        disk.is_full = True
        with pytest.raises(Outside):
            await opened(host, cwd)
        assert host.sessions == []


async def test_no_more_sessions_are_live_than_the_limit_says(tmp_path: Path) -> None:
    async with living_host(memory_store(), tmp_path) as living:
        host = Host(living.store, living.around, living.tasks, "test", live_sessions_max=1)
        session = await opened(host, tmp_path)
        with pytest.raises(Refused) as caught:
            await opened(host, tmp_path)
        assert (caught.value.reason, caught.value.data) == ("too_many_sessions", {"limit": 1})
        await host.close(session)
        await opened(host, tmp_path)
        await host.close_all()
