"""A session that goes on in another folder: what differs there is named, what is there is left."""

import shutil
from pathlib import Path

import pytest

from pi_rpc.core.ports.workspace import Snapshot
from pi_rpc.session.building import Copying
from pi_rpc.session.navigating import navigate
from pi_rpc.session.restoring import Restoring, restore
from pi_rpc.session.versioning import check
from pi_rpc.workspace.absent import AbsentWorkspace
from pi_rpc.workspace.store import home_of
from tests.session.versioned import drift, files_scope, working
from tests.workspace.repositories import plain_tree

pytestmark = pytest.mark.anyio


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another folder with one file that both have, one it alone has, and one that differs."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "same").write_text("same")
    (other / "more").write_text("more")
    (other / "a").write_text("theirs")
    return other


def clone_into(folder: Path) -> Copying:
    return Copying("clone", None, "at", str(folder), None, activate=False)


DRIFT = [("a", "modified"), ("more", "added")]


async def test_a_copy_in_another_folder_is_told_what_differs_there(
    tmp_path: Path, cwd: Path, other: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        await work.writes(session, a="ours", same="same")
        copy = (await work.host.copy(session, clone_into(other))).session
        assert files_scope(copy.environment) == ("not_restored", "differs")
        assert drift(copy.environment) == DRIFT
        session_id = copy.session_id
        await work.host.close(copy)
        again = await work.host.open(session_id)
        assert drift(again.environment) == DRIFT


async def test_a_session_moved_to_another_folder_is_told_what_differs_there(
    tmp_path: Path, cwd: Path, other: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        await work.writes(session, a="ours", same="same")
        moved = await work.host.relocate(session, str(other), "relocate")
        assert files_scope(moved.environment) == ("not_restored", "differs")
        assert drift(moved.environment) == DRIFT


async def test_files_of_another_folder_are_not_taken_for_those_the_session_made(
    tmp_path: Path, cwd: Path, other: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        start = session.leaf_id
        await work.writes(session, a="ours", same="same")
        moved = await work.host.relocate(session, str(other), "relocate")
        before = plain_tree(other)
        done = await restore(moved, Restoring())
        assert ([*done.restored], done.refused) == ([], [])
        assert {one.reason for one in done.left} == {"not_ours"}
        await navigate(moved, start, restore="try")
        done = await restore(moved, Restoring(paths=["same"], confirmed=["same"]))
        assert [(one.path, one.reason) for one in done.refused] == [("same", "not_created_here")]
        assert plain_tree(other) == before


async def test_a_file_of_the_other_folder_comes_along_where_it_is_asked_for(
    tmp_path: Path, cwd: Path, other: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        await work.writes(session, a="ours", same="same")
        moved = await work.host.relocate(session, str(other), "relocate")
        done = await restore(moved, Restoring(paths=["a"], confirmed=["a"]))
        assert list(done.restored) == ["a"]
        assert (other / "a").read_text() == "ours"
        undone = await restore(moved, Restoring(version=done.safety_version))
        assert list(undone.restored) == ["a"]
        assert (other / "a").read_text() == "theirs"


async def test_where_the_other_folders_versions_are_gone_no_list_is_pretended(
    tmp_path: Path, cwd: Path, other: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        await work.writes(session, a="ours")
        shutil.rmtree(home_of(tmp_path / "versions", cwd))
        moved = await work.host.relocate(session, str(other), "relocate")
        assert files_scope(moved.environment) == ("not_restored", "differs_unlisted")
        assert drift(moved.environment) == []


class Otherwise(AbsentWorkspace):
    """A folder whose states are named in another way."""

    kind = "manifest"

    def __init__(self) -> None:
        super().__init__(lambda: AssertionError("nothing else is asked"))  # type: ignore[arg-type,return-value]

    async def snapshot(self, *, again: bool = False) -> Snapshot:
        return Snapshot("copy:1")


async def test_names_of_two_kinds_tell_nothing_of_the_files(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        await work.writes(session, a="1")
        session.workspace = Otherwise()
        assert files_scope(await check(session)) == ("unknown", "other_kind")
