"""The rows of a file, given up and read again."""

import os
from pathlib import Path

import pytest

from pi_rpc.core.errors import Damaged, Failure
from pi_rpc.store.files import FileStore
from pi_rpc.store.index import index_path
from pi_rpc.store.jsonl import FileSession
from pi_rpc.store.loading import INDEX_BYTES_MIN
from tests.store.samples import (
    chain,
    header,
    ids_of,
    line,
    message,
    texts_of,
    write_session,
)

pytestmark = pytest.mark.anyio

ENTRIES = [message("0000000a", None), message("0000000b", "0000000a")]
NEW = line("0000000c", 1, "0000000b", "new")


async def unloaded(store: FileStore, path: Path, mode: str = "own") -> FileSession:
    """A session that has given up its rows."""
    session = await store.open(path, "own" if mode == "own" else "read")
    assert isinstance(session, FileSession)
    await session.prepare_to_unload()
    assert session.unload() and not session.is_loaded
    return session


async def test_what_another_program_appended_meanwhile_is_left_to_the_next_look(
    store: FileStore, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    write_session(path, ENTRIES)
    session = await unloaded(store, path)
    with path.open("ab") as file:
        file.write(NEW.raw + b"\n")
    await session.load()
    assert ids_of(session) == ["0000000a", "0000000b"]
    assert await session.refresh() == range(2, 3)
    assert ids_of(session) == ["0000000a", "0000000b", "0000000c"]
    await session.close()


@pytest.mark.parametrize("mode", ["own", "read"])
async def test_a_long_file_is_read_again_by_its_index_which_a_reader_does_not_write(
    store: FileStore, tmp_path: Path, mode: str
) -> None:
    path = tmp_path / "s.jsonl"
    write_session(path, [message("0000000a", None, "x" * INDEX_BYTES_MIN)])
    session = await unloaded(store, path, mode)
    assert index_path(path).exists() is (mode == "own")
    await session.load()
    assert ids_of(session) == ["0000000a"]
    await session.close()


async def test_an_index_that_covers_more_than_was_known_is_not_gone_by(
    store: FileStore, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    write_session(path, [message("0000000a", None, "x" * INDEX_BYTES_MIN)])
    owner = await store.open(path, "own")
    reader = await unloaded(store, path, "read")
    await owner.append([line("0000000b", 0, "0000000a")], durable=False)
    await owner.close()
    await reader.load()
    assert ids_of(reader) == ["0000000a"]
    assert await reader.refresh() == range(1, 2)
    await reader.close()


async def test_rows_are_there_after_the_file_has_lost_its_name(
    store: FileStore, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    write_session(path, ENTRIES)
    session = await unloaded(store, path)
    path.unlink()
    await session.load()
    assert ids_of(session) == ["0000000a", "0000000b"]
    with pytest.raises(Damaged) as failed:
        await session.refresh()
    assert failed.value.reason == "file_missing"
    await session.close()


@pytest.mark.parametrize("damage", ["shorter", "other"])
async def test_rows_that_are_not_to_be_had_any_more_fail_until_they_are_back(
    store: FileStore, tmp_path: Path, damage: str
) -> None:
    path = tmp_path / "s.jsonl"
    sound = write_session(path, ENTRIES)
    session = await unloaded(store, path)
    harmed = sound[:-30] if damage == "shorter" else sound.replace(b"0000000b", b"0000000f")
    with path.open("r+b") as file:
        file.write(harmed)
        file.truncate()
    for _ in range(2):
        with pytest.raises(Damaged) as failed:
            await session.load()
        assert failed.value.reason == "file_replaced" and not session.is_loaded
        with pytest.raises(Failure):
            session.line(0)
    with path.open("r+b") as file:
        file.write(sound)
    os.utime(path, ns=(1, 1))
    await session.load()
    assert len(texts_of(session, range(2))) == 2
    await session.close()


@pytest.mark.parametrize("torn", [True, False])
async def test_rows_that_later_bytes_had_a_say_in_stay(
    store: FileStore, tmp_path: Path, torn: bool
) -> None:
    path = tmp_path / "s.jsonl"
    entries = ENTRIES if torn else [message("0000000a", None), message("0000000b", "gone")]
    data = write_session(path, entries)
    if torn:
        path.write_bytes(data[:-20])
    session = await store.open(path, "own")
    assert not session.unload() and session.is_loaded
    await session.close()


async def test_a_session_that_was_unloaded_is_closed_without_being_read(
    store: FileStore, tmp_path: Path
) -> None:
    session = await store.create(header(), chain(2))
    assert session.unload()
    await session.close()
    assert not session.is_loaded
    again = await store.open("s1", "own")
    assert ids_of(again) == [each.entry_id for each in chain(2)]
    await again.close()
