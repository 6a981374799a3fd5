"""The leaf moves inside its session; labels, names and edits hang where they should."""

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Busy, Failure, Locked, Missing, Outside
from pi_rpc.core.events import LabelChanged, LeafMoved, SessionRenamed
from pi_rpc.session.host import Host
from pi_rpc.session.navigating import (
    edit_context,
    navigate,
    one_line,
    rename,
    set_label,
    visible_leaf_id,
)
from pi_rpc.session.prompting import prompt, wait_until_settled
from pi_rpc.session.session import Session
from tests.session.living import (
    WAIT_S,
    BrittleStore,
    Disk,
    Door,
    Ear,
    HeldTool,
    Speaker,
    called,
    file_store,
    kinds,
    living_host,
    opened,
    reason_of,
    said,
    standing,
    texts,
    tools_named,
)


async def asked(host: Host, session: Session, *questions: str) -> None:
    for question in questions:
        prompt(session, host.tasks, question)
        assert await wait_until_settled(session) == "done"


def ids_of(session: Session, kind: Kind) -> list[str]:
    return [session.tree.heads.id_of(row) for row in session.tree.rows_of_kind(kind)]


async def reopened(host: Host, session: Session) -> Session:
    await host.close(session)
    return await host.open(session.session_id)


@pytest.mark.anyio
async def test_to_a_question_leads_above_it_and_hands_its_words_back(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first", "second")
        ear, old_leaf = Ear(session.hub), session.leaf_id
        second = ids_of(session, Kind.USER)[1]
        answer = ids_of(session, Kind.ASSISTANT)[0]
        moved = await navigate(session, second)
        assert (moved.leaf_id, moved.draft) == (answer, "second")
        assert moved.environment.status == "restored"
        assert texts(session) == ["first", "1"]
        assert ear.names == ["EntryAppended", "LeafMoved"]
        [told] = ear.of(LeafMoved)
        assert (told.source, told.target, told.op) == (old_leaf, answer, "navigate")
        assert (await reopened(host, session)).leaf_id == answer


@pytest.mark.anyio
async def test_the_mark_of_a_move_is_a_dead_end(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("other"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        [question] = ids_of(session, Kind.USER)
        await navigate(session, question)
        mark = session.tree.entry(len(session.tree) - 1)
        assert mark.kind == Kind.CURSOR
        assert mark.object["data"]["leaf"] == mark.parent_id == session.leaf_id
        await asked(host, session, "again")
        again = session.tree.entry(session.tree.row_of(ids_of(session, Kind.USER)[1]))
        assert again.parent_id == mark.parent_id
        assert list(session.tree.children(mark.row)) == []


@pytest.mark.anyio
async def test_a_mark_torn_by_a_crash_leaves_the_leaf_where_it_was_and_says_so(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first", "second")
        old_leaf, path = session.leaf_id, session.stored.path
        await navigate(session, ids_of(session, Kind.ASSISTANT)[0])
        await host.close(session)
        assert path is not None
        os.truncate(path, path.stat().st_size - 20)
        again = await host.open(session.session_id)
        assert again.leaf_id == old_leaf
        assert [each.reason for each in again.diagnostics] == ["torn_line"]
        assert texts(again) == ["first", "1", "second", "2"]


@pytest.mark.anyio
async def test_opening_again_and_again_adds_nothing_to_a_file(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        assert session.stored.path is not None
        before = session.stored.path.read_bytes()
        for _ in range(20):
            session = await reopened(host, session)
            assert texts(session) == ["first", "1"]
        await host.close(session)
        assert session.stored.path is not None
        assert session.stored.path.read_bytes() == before


@pytest.mark.anyio
async def test_to_before_everything_empties_the_context_also_after_reopening(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        assert (await navigate(session, None)).leaf_id is None
        assert texts(session) == []
        session = await reopened(host, session)
        assert (session.leaf_id, texts(session)) == (None, [])
        await asked(host, session, "new root")
        assert texts(session) == ["new root", "2"]
        assert len(session.tree.children(-1)) == 3


@pytest.mark.anyio
async def test_to_where_the_leaf_is_nothing_happens(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        before = standing(session)
        moved = await navigate(session, session.leaf_id, "not set")
        assert (moved.leaf_id, moved.draft) == (session.leaf_id, None)
        assert standing(session) == before


@pytest.mark.anyio
async def test_there_and_back_are_two_marks(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first", "second")
        end, start = session.leaf_id, ids_of(session, Kind.ASSISTANT)[0]
        await navigate(session, start)
        await navigate(session, start)
        await navigate(session, end)
        assert kinds(session).count(Kind.CURSOR) == 2
        assert session.leaf_id == end
        assert session.cursor_seq >= 2


@pytest.mark.anyio
async def test_a_label_given_with_a_move_is_its_mark_and_becomes_the_leaf(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first", "second")
        ear = Ear(session.hub)
        second = ids_of(session, Kind.USER)[1]
        moved = await navigate(session, second, "try again")
        assert moved.draft == "second"
        assert session.tree.kind(session.leaf_row) == Kind.LABEL
        assert session.tree.label_of(second) == "try again"
        assert visible_leaf_id(session) == ids_of(session, Kind.ASSISTANT)[0]
        assert Kind.CURSOR not in kinds(session)
        assert ear.of(LabelChanged) == [LabelChanged(second, "try again")]
        assert (await reopened(host, session)).leaf_id == moved.leaf_id


@pytest.mark.anyio
async def test_a_move_to_nowhere_changes_nothing(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"))) as host:
        session = await opened(host, cwd)
        before = standing(session)
        with pytest.raises(Missing) as failure:
            await navigate(session, "nowhere1")
        assert reason_of(failure.value) == ("missing", "entry_not_found")
        assert standing(session) == before
        with session.acting("still free"):
            pass


@pytest.mark.anyio
async def test_a_move_that_cannot_be_stored_did_not_happen(root: Path, cwd: Path) -> None:
    disk = Disk()
    async with living_host(BrittleStore(file_store(root), disk), cwd, Speaker(said("1"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        ear, before = Ear(session.hub), standing(session)
        disk.is_full = True
        with pytest.raises(Outside):
            await navigate(session, ids_of(session, Kind.USER)[0])
        assert standing(session) == before
        assert ear.events == []
        disk.is_full = False
        assert (await navigate(session, ids_of(session, Kind.USER)[0])).draft == "first"


@pytest.mark.anyio
async def test_a_move_during_a_run_is_refused_with_its_name(root: Path, cwd: Path) -> None:
    door = Door()
    async with living_host(file_store(root), cwd, Speaker([door, *said("1")])) as host:
        session = await opened(host, cwd)
        start = session.leaf_id
        run_id = prompt(session, host.tasks, "go").run_id
        await door.until_reached()
        with pytest.raises(Busy) as failure:
            await navigate(session, start)
        assert failure.value.data == {"runId": run_id}
        door.opened.set()
        await wait_until_settled(session)


@pytest.mark.anyio
async def test_what_ran_on_the_route_left_behind_is_said_and_never_called_restored(
    root: Path, cwd: Path
) -> None:
    speaker = Speaker(said("1"), called(("write", "{}")), said("written"), said("3"))
    tools = tools_named(HeldTool("write"))
    async with living_host(file_store(root), cwd, speaker, tools) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first", "write it")
        end, before = session.leaf_id, ids_of(session, Kind.ASSISTANT)[0]
        away = await navigate(session, before)
        assert away.environment.status == "unknown"
        assert [one["tool"] for one in away.environment.abandoned_effects] == ["write"]
        back = await navigate(session, end)
        assert back.environment.status == "restored"
        stored = session.tree.entry(len(session.tree) - 1).object["data"]["env"]
        assert stored["status"] == "restored"


@pytest.mark.anyio
async def test_labels_are_set_replaced_and_cleared_on_any_branch(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        target = ids_of(session, Kind.ASSISTANT)[0]
        await navigate(session, ids_of(session, Kind.USER)[0])
        ear = Ear(session.hub)
        for text in ("one", "two", None):
            entry = await set_label(session, target, text)
            assert session.leaf_id == entry.id
        assert session.tree.label_of(target) is None
        assert [one.label for one in ear.of(LabelChanged)] == ["one", "two", None]
        with pytest.raises(Missing):
            await set_label(session, "nowhere1", "no")


@pytest.mark.anyio
async def test_a_name_is_one_line_and_blanks_clear_it(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker()) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        assert await rename(session, " a\r\n\nb ") == "a b"
        assert (await reopened(host, session)).tree.name() == "a b"
        session = host.session(session.session_id)
        ear_again = Ear(session.hub)
        assert await rename(session, " \n ") is None
        assert ear.of(SessionRenamed) == [SessionRenamed("a b")]
        assert ear_again.of(SessionRenamed) == [SessionRenamed(None)]
        assert one_line("x\ny") == "x y"


@pytest.mark.anyio
async def test_an_edit_holds_on_its_branch_and_the_entry_stays(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first", "second")
        first = ids_of(session, Kind.USER)[0]
        await edit_context(session, [first], {"content": "shorter"}, pairs=True)
        assert texts(session) == ["shorter", "1", "second", "2"]
        await edit_context(session, [ids_of(session, Kind.USER)[1]], None, pairs=True)
        assert texts(session) == ["shorter", "1", "2"]
        session = await reopened(host, session)
        assert texts(session) == ["shorter", "1", "2"]
        await navigate(session, ids_of(session, Kind.ASSISTANT)[0])
        assert texts(session) == ["first", "1"]


Change = Callable[[Session], Coroutine[Any, Any, object]]

CHANGES: dict[str, Change] = {
    "label": lambda session: set_label(session, str(session.leaf_id), "mark"),
    "name": lambda session: rename(session, "named"),
    "edit": lambda session: edit_context(
        session, ids_of(session, Kind.USER), {"content": "x"}, pairs=True
    ),
    "move": lambda session: navigate(session, ids_of(session, Kind.USER)[0]),
}


@pytest.mark.anyio
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_change_whose_caller_is_cancelled_is_still_told_whole(
    change: Change, root: Path, cwd: Path
) -> None:
    told: list[list[str]] = []
    for cancelled in (False, True):
        disk = Disk()
        store = BrittleStore(file_store(root), disk)
        async with living_host(store, cwd, Speaker(said("1")), series=3 + cancelled) as host:
            session = await opened(host, cwd)
            await asked(host, session, "first")
            ear, disk.door = Ear(session.hub), Door()
            with anyio.fail_after(WAIT_S):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(change, session)
                    await disk.door.until_reached()
                    if cancelled:
                        tasks.cancel_scope.cancel()
                    disk.door.opened.set()
            told.append(ear.names)
    assert told[0] == told[1]


@pytest.mark.anyio
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_session_open_to_read_refuses_every_change(
    change: Change, root: Path, cwd: Path
) -> None:
    store = file_store(root)
    async with (
        living_host(store, cwd, Speaker(said("1"))) as host,
        living_host(store, cwd, Speaker(), series=2) as other,
    ):
        session = await opened(host, cwd)
        await asked(host, session, "first")
        reading = await other.open(session.session_id, "read")
        before = standing(reading)
        with pytest.raises(Locked) as failure:
            await change(reading)
        assert failure.value.reason == "read_only"
        assert standing(reading) == before


@pytest.mark.anyio
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_move_going_on_refuses_every_change(change: Change, root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        failures: list[Failure] = []
        with session.acting("clone"):
            before = standing(session)
            with pytest.raises(Busy) as failure:
                await change(session)
            failures.append(failure.value)
            assert standing(session) == before
        assert failures[0].data == {"act": "clone"}
