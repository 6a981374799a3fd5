"""`record` is the one way into a history: stored, in the tree, told; or nothing at all."""

from pathlib import Path

import anyio
import pytest

from pi_rpc.core.codec import decode
from pi_rpc.core.entries import Body, label, message_body, session_info
from pi_rpc.core.errors import Busy, Conflict, Locked, Outside, Stopped
from pi_rpc.core.events import EntryAppended, ForeignAppended, RunSettled
from pi_rpc.core.messages import user_message
from pi_rpc.core.stamps import stamp_at
from pi_rpc.session.prompting import prompt, wait_until_settled
from pi_rpc.session.session import Session
from tests.session.living import (
    WAIT_S,
    BrittleStore,
    Disk,
    Door,
    Ear,
    append_foreign,
    file_store,
    living_host,
    memory_store,
    opened,
    standing,
    texts,
)


def words(text: str) -> Body:
    return message_body(user_message(text, (), 1))


def lines_of(session: Session) -> list[object]:
    assert session.stored.path is not None
    return [decode(line) for line in session.stored.path.read_bytes().split(b"\n")[1:] if line]


@pytest.mark.anyio
async def test_a_recorded_entry_is_on_the_disk_in_the_tree_and_told(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        ear, before = Ear(session.hub), session.leaf_id
        [entry] = await session.record(words("hello"))
        assert lines_of(session)[-1] == entry.object
        assert session.leaf_id == entry.id
        assert session.tree.row_of(entry.id) == len(session.tree) - 1
        assert texts(session) == ["hello"]
        assert ear.events == [EntryAppended(entry.id, "message", before, entry.id)]


@pytest.mark.anyio
async def test_entries_of_one_record_chain_below_each_other(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        before = session.leaf_id
        ear = Ear(session.hub)
        first, second = await session.record(words("one"), words("two"))
        assert (first.parent_id, second.parent_id) == (before, first.id)
        assert session.leaf_id == second.id
        assert ear.events == [
            EntryAppended(first.id, "message", before, first.id),
            EntryAppended(second.id, "message", first.id, second.id),
        ]
        assert texts(session) == ["one", "two"]


@pytest.mark.anyio
async def test_a_record_below_another_row_moves_the_leaf_there(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        start = session.leaf_row
        await session.record(words("left"))
        [right] = await session.record(words("right"), below=start)
        assert session.leaf_id == right.id
        assert texts(session) == ["right"]
        assert len(session.tree.children(start)) == 2


@pytest.mark.anyio
async def test_nothing_is_told_before_it_is_stored(root: Path, cwd: Path) -> None:
    disk = Disk()
    async with living_host(BrittleStore(file_store(root), disk), cwd) as host:
        session = await opened(host, cwd)
        ear, before = Ear(session.hub), standing(session)
        disk.door = Door()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.record, words("slow"))
            await disk.door.until_reached()
            assert standing(session) == before
            assert ear.events == []
            disk.door.opened.set()
        assert texts(session) == ["slow"]
        assert ear.names == ["EntryAppended"]


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["files", "memory"])
async def test_an_append_that_fails_leaves_everything_as_it_was(
    kind: str, root: Path, cwd: Path
) -> None:
    disk = Disk()
    store = file_store(root) if kind == "files" else memory_store()
    async with living_host(BrittleStore(store, disk), cwd) as host:
        session = await opened(host, cwd)
        await session.record(words("kept"))
        ear, before = Ear(session.hub), standing(session)
        disk.is_full = True
        with pytest.raises(Outside) as failure:
            await session.record(words("lost"), session_info("lost too"))
        assert failure.value.reason == "disk_full"
        assert standing(session) == before
        assert ear.events == []
        disk.is_full = False
        await session.record(words("after"))
        assert texts(session) == ["kept", "after"]


@pytest.mark.anyio
async def test_a_run_whose_words_cannot_be_stored_settles_failed_and_the_session_lives(
    root: Path, cwd: Path
) -> None:
    disk = Disk()
    async with living_host(BrittleStore(file_store(root), disk), cwd) as host:
        session = await opened(host, cwd)
        ear, before = Ear(session.hub), standing(session)[:-1]
        disk.is_full = True
        admission = prompt(session, host.tasks, "hello")
        settled = await ear.until(RunSettled)
        assert (settled.run_id, settled.outcome) == (admission.run_id, "failed")
        assert settled.error is not None
        assert (settled.error["kind"], settled.error["reason"]) == ("outside", "disk_full")
        assert standing(session)[:-1] == before
        disk.is_full = False
        prompt(session, host.tasks, "again")
        assert await wait_until_settled(session) == "done"
        assert texts(session)[0] == "again"
        assert len(ear.of(RunSettled)) == 2


@pytest.mark.anyio
async def test_a_cancelled_caller_does_not_tear_a_record(root: Path, cwd: Path) -> None:
    disk = Disk()
    async with living_host(BrittleStore(file_store(root), disk), cwd) as host:
        session = await opened(host, cwd)
        ear, disk.door = Ear(session.hub), Door()
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.record, words("begun"))
                await disk.door.until_reached()
                tasks.cancel_scope.cancel()
                disk.door.opened.set()
        assert texts(session) == ["begun"]
        assert len(ear.of(EntryAppended)) == 1
        assert lines_of(session)[-1] == session.tree.entry(session.leaf_row).object


@pytest.mark.anyio
async def test_records_made_at_once_stand_one_after_the_other(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(session.record, words(f"{number} a"), words(f"{number} b"))
        said = texts(session)
        assert sorted(said[::2]) == [f"{number} a" for number in range(10)]
        assert [one[0] for one in said[::2]] == [one[0] for one in said[1::2]]
        assert ear.numbers == list(range(ear.numbers[0], ear.numbers[0] + 20))


@pytest.mark.anyio
async def test_a_foreign_line_is_taken_in_and_told_before_the_next_append_and_our_leaf_stays(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        [mine] = await session.record(words("mine"))
        ear = Ear(session.hub)
        assert session.stored.path is not None
        append_foreign(session.stored.path, "f0000001", mine.parent_id)
        [next_one] = await session.record(words("mine too"))
        assert ear.events == [
            ForeignAppended(["f0000001"], 1),
            EntryAppended(next_one.id, "message", mine.id, next_one.id),
        ]
        assert texts(session) == ["mine", "mine too"]
        assert session.tree.entry(session.tree.row_of("f0000001")).parent_id == mine.parent_id


@pytest.mark.anyio
async def test_following_the_file_tells_what_came_and_moves_only_a_readers_leaf(
    root: Path, cwd: Path
) -> None:
    store = file_store(root)
    async with living_host(store, cwd) as host, living_host(store, cwd, series=2) as other:
        session = await opened(host, cwd)
        reading = await other.open(session.session_id, "read")
        [mine] = await session.record(words("mine"))
        ear = Ear(reading.hub)
        assert len(await reading.follow_file()) == 1
        assert (reading.leaf_id, texts(reading)) == (mine.id, ["mine"])
        assert ear.events == [ForeignAppended([mine.id], 1)]
        assert len(await reading.follow_file()) == 0
        assert session.stored.path is not None
        append_foreign(session.stored.path, "f0000001", mine.id)
        await session.follow_file()
        assert session.leaf_id == mine.id


@pytest.mark.anyio
async def test_a_session_open_to_read_refuses_to_record(root: Path, cwd: Path) -> None:
    store = file_store(root)
    async with living_host(store, cwd) as host, living_host(store, cwd, series=2) as other:
        session = await opened(host, cwd)
        reading = await other.open(session.session_id, "read")
        before = standing(reading)
        with pytest.raises(Locked) as failure:
            await reading.record(words("no"))
        assert failure.value.reason == "read_only"
        assert standing(reading) == before


@pytest.mark.anyio
async def test_a_label_becomes_the_leaf_and_a_later_one_counts(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        [target] = await session.record(words("here"))
        await session.record(label(target.id, "one"))
        [second] = await session.record(label(target.id, "two"))
        assert session.leaf_id == second.id
        assert session.tree.label_of(target.id) == "two"


@pytest.mark.anyio
async def test_one_move_at_a_time_and_the_loser_is_told_who_holds_the_session(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        with session.acting("navigate"):
            with pytest.raises(Busy) as failure, session.acting("fork"):
                pass
            assert failure.value.reason == "move_in_progress"
            assert failure.value.data == {"act": "navigate"}
        with session.acting("fork"):
            pass
        await host.close(session)
        with pytest.raises(Stopped), session.moving("fork"):
            pass


@pytest.mark.anyio
async def test_a_leaf_that_moved_is_a_conflict_that_names_both(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        session.refuse_unless_leaf(session.leaf_id)
        with pytest.raises(Conflict) as failure:
            session.refuse_unless_leaf("elsewhere")
        assert failure.value.reason == "leaf_conflict"
        assert failure.value.data == {"expected": "elsewhere", "actual": session.leaf_id}


@pytest.mark.anyio
async def test_an_id_already_in_the_file_is_not_given_again(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        assert session.stored.path is not None
        # The names of this host count, so the one after next is known.
        taken = f"01{int(session.leaf_id or '', 16) % 0x1000000 + 2:06x}"
        append_foreign(session.stored.path, taken, session.leaf_id)
        first, second = await session.record(words("one"), words("two"))
        assert taken not in (first.id, second.id)
        assert texts(session) == ["one", "two"]


def test_times_are_written_as_the_format_has_them() -> None:
    assert stamp_at(1_767_323_045_678) == "2026-01-02T03:04:05.678Z"
    assert stamp_at(0) == "1970-01-01T00:00:00.000Z"
