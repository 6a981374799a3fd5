"""What the disk refuses is told in our own words, and leaves everything as it was."""

from pathlib import Path

import pytest

from pi_rpc.core.errors import Outside
from pi_rpc.store.files import FileStore
from pi_rpc.store.loading import load_to_own
from tests.store.samples import CountedIds, header, names, write_session

pytestmark = pytest.mark.anyio


def in_the_way(path: Path) -> None:
    """A file where a folder is wanted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"in the way")


async def test_a_session_that_cannot_be_made_is_not_there(store: FileStore, root: Path) -> None:
    in_the_way(root)
    with pytest.raises(Outside) as caught:
        await store.create(header())
    assert caught.value.reason == "create_failed"
    assert names(root.parent) == ["sessions"]


async def test_a_session_that_cannot_be_moved_stays(store: FileStore, root: Path) -> None:
    session = await store.create(header())
    await session.close()
    in_the_way(root / ".trash")
    with pytest.raises(Outside) as caught:
        await store.delete("s1")
    assert caught.value.reason == "delete_failed"
    await (await store.open("s1", "own")).close()


def test_a_file_that_cannot_be_kept_is_not_migrated(tmp_path: Path) -> None:
    # The name of the old file beside it would be longer than names may be.
    path = tmp_path / ("x" * 245 + ".jsonl")
    old = {"type": "session", "id": "old", "timestamp": "t", "cwd": "/"}
    before = write_session(path, [{"type": "message", "message": {}}], old)
    with pytest.raises(Outside) as caught:
        load_to_own(path, CountedIds(), header(), syncs=False)
    assert caught.value.reason == "migration_failed"
    assert path.read_bytes() == before
    assert names(tmp_path) == [path.name]
