"""Versions as copied files: chosen without git, read once, honest about damage."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.abc
import pytest

from pi_rpc.core.errors import Outside, Overfull
from pi_rpc.core.version_limits import VersionLimits
from pi_rpc.tools.choose import ignoring_by_git
from pi_rpc.workspace.choose import choose_workspaces
from pi_rpc.workspace.copies import CopiedWorkspaces, _Look
from pi_rpc.workspace.process import Processes
from pi_rpc.workspace.too_much import LASTING

pytestmark = pytest.mark.anyio

LONG_AGO_NS = 1_600_000_000_000_000_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def tasks() -> AsyncIterator[anyio.abc.TaskGroup]:
    async with anyio.create_task_group() as group:
        yield group


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("a\n")
    return folder


def copies(tmp_path: Path) -> CopiedWorkspaces:
    return CopiedWorkspaces(tmp_path / "versions", VersionLimits(), ignoring_by_git)


async def test_without_git_files_are_copied(
    tmp_path: Path, folder: Path, tasks: anyio.abc.TaskGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen = choose_workspaces(
        True, tmp_path / "versions", tasks, ignoring_above=ignoring_by_git
    ).of(folder)
    assert chosen.kind == "manifest"
    one = await chosen.snapshot()
    (folder / "a.txt").write_text("later\n")
    other = await chosen.snapshot()
    assert await chosen.restore(await chosen.compare(other.version, one.version)) == {}
    assert (folder / "a.txt").read_text() == "a\n"


async def test_versions_are_the_same_for_whoever_asks_next(tmp_path: Path, folder: Path) -> None:
    one = await copies(tmp_path).of(folder).snapshot()
    (folder / "a.txt").write_text("later\n")
    again = copies(tmp_path).of(folder)
    other = await again.snapshot()
    [change] = await again.compare(one.version, other.version)
    assert (change.path, change.change) == ("a.txt", "modified")


async def test_a_change_that_leaves_size_and_time_alone_is_seen(
    tmp_path: Path, folder: Path
) -> None:
    workspace = copies(tmp_path).of(folder)
    os.utime(folder / "a.txt", ns=(LONG_AGO_NS, LONG_AGO_NS))
    one = await workspace.snapshot()
    (folder / "a.txt").write_text("b\n")
    os.utime(folder / "a.txt", ns=(LONG_AGO_NS, LONG_AGO_NS))
    assert (await workspace.snapshot()).version != one.version


async def test_a_copy_that_is_gone_is_made_again_and_missed_till_then(
    tmp_path: Path, folder: Path
) -> None:
    workspace = copies(tmp_path).of(folder)
    one = await workspace.snapshot()
    (folder / "a.txt").write_text("later\n")
    other = await workspace.snapshot()
    for path in (tmp_path / "versions").rglob("files/*/*"):
        path.unlink()
    changes = await workspace.compare(other.version, one.version)
    assert await workspace.restore(changes) == {"a.txt": "content_missing"}
    assert (folder / "a.txt").read_text() == "later\n"
    assert await workspace.snapshot() == other
    [diff] = await workspace.diff(one.version, other.version, patches=True)
    assert (diff.added, diff.patch) == (None, None)


def test_a_file_that_grows_while_it_is_read_is_read_no_further(
    tmp_path: Path, folder: Path
) -> None:
    # As if it had been short enough when it was measured.
    look = _Look(folder, tmp_path / "versions", VersionLimits(file_bytes=1), Processes())
    with pytest.raises(Overfull) as caught:
        look._read(str(folder / "a.txt"))
    assert caught.value.reason == "file_grows"
    assert caught.value.reason not in LASTING


async def test_a_damaged_list_is_told(tmp_path: Path, folder: Path) -> None:
    workspace = copies(tmp_path).of(folder)
    one = await workspace.snapshot()
    (folder / "a.txt").write_text("later\n")
    other = await workspace.snapshot()
    name = one.version.removeprefix("copy:")
    [kept] = (tmp_path / "versions").rglob(f"versions/{name}")
    kept.write_bytes(b"no list")
    with pytest.raises(Outside) as caught:
        await workspace.compare(one.version, other.version)
    assert caught.value.reason == "store_broken"


async def test_what_search_programs_pass_over_is_kept(tmp_path: Path, folder: Path) -> None:
    (folder / ".ignore").write_text("a.txt\n")
    workspace = copies(tmp_path).of(folder)
    one = await workspace.snapshot()
    (folder / "a.txt").write_text("later\n")
    assert (await workspace.snapshot()).version != one.version
