"""The derived index: as if it were not there, but faster."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_rpc.core.heads import Columns
from pi_rpc.core.ports.store import StoredSession
from pi_rpc.store.files import FileStore
from pi_rpc.store.index import index_path, read_index
from pi_rpc.store.jsonl import FileSession
from pi_rpc.store.loading import INDEX_BYTES_MIN
from tests.store.samples import ids_of, line, message, names, reasons, write_session

pytestmark = pytest.mark.anyio

TEXT = "x" * 4000
COUNT = INDEX_BYTES_MIN // len(TEXT) + 10


def entries() -> list[Any]:
    made: list[Any] = [message("00000000", None, TEXT), message("odd-é", "00000000", TEXT)]
    made += [
        message(f"{n:08x}", f"{n - 1:08x}" if n != 7 else "gone", TEXT) for n in range(1, COUNT)
    ]
    return [*made, b"garbage", message("00000003", None), message("0000ffff", "odd-é")]


def whole(session: StoredSession) -> tuple[Columns, list[bytes], list[Any], Any]:
    columns = session.heads.columns()
    texts = [session.line(row) for row in range(len(session.heads))]
    return columns, texts, session.diagnostics, session.header


async def opened(store: FileStore, path: Path) -> tuple[Columns, list[bytes], list[Any], Any]:
    session = await store.open(path, "own")
    found = whole(session)
    await session.close()
    return found


def index_of(path: Path) -> object:
    fd = os.open(path, os.O_RDONLY)
    try:
        return read_index(path, fd)
    finally:
        os.close(fd)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "s.jsonl"
    write_session(path, entries())
    return path


async def test_an_index_gives_what_a_scan_gives(store: FileStore, path: Path) -> None:
    scanned = await opened(store, path)
    assert index_of(path) is not None
    assert await opened(store, path) == scanned
    assert scanned[0].odd_ids == {1: "odd-é"}
    assert [each.reason for each in scanned[2]] == ["malformed_line", "duplicate_id", "orphan"]
    reader = await store.open(path, "read")
    assert whole(reader) == scanned


async def test_it_is_brought_up_to_date_when_the_session_is_closed(
    store: FileStore, path: Path
) -> None:
    session = await store.open(path, "own")
    await session.append([line("0000aaaa", 0, "00000000")], durable=False)
    found = whole(session)
    await session.close()
    before = index_path(path).read_bytes()
    assert await opened(store, path) == found
    assert index_path(path).read_bytes() == before
    index_path(path).unlink()
    assert await opened(store, path) == found


async def test_only_what_is_new_is_looked_at(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write_session(path, [message(f"{n:08x}", None, TEXT) for n in range(COUNT)])
    await opened(store, path)
    more = [
        message("0000aaaa", "00000005"),
        message("00000004", None),
        message("0000bbbb", "0000aaaa"),
    ]
    grown = write_session(tmp_path / "more", more).split(b"\n", 1)[1]
    with path.open("ab") as file:
        file.write(grown + b"torn")
    session = await store.open(path, "read")
    assert isinstance(session, FileSession)
    assert ids_of(session)[-3:] == ["0000aaaa", "00000004", "0000bbbb"]
    assert list(session.heads.parents)[-3:] == [5, -1, COUNT]
    assert [(each.reason, each.line) for each in session.diagnostics] == [
        ("duplicate_id", COUNT + 3),
        ("torn_line", COUNT + 5),
    ]
    found = whole(session)
    index_path(path).unlink()
    assert whole(await store.open(path, "read")) == found


def changed_in_place(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace(b"x" * 50, b"y" * 50, 1))


def replaced(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def shortened(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 10)


def index_cut(path: Path) -> None:
    os.truncate(index_path(path), 500)


def index_flipped(path: Path) -> None:
    data = bytearray(index_path(path).read_bytes())
    data[len(data) // 2] ^= 1
    index_path(path).write_bytes(data)


def index_empty(path: Path) -> None:
    index_path(path).write_bytes(b"")


def index_a_folder(path: Path) -> None:
    index_path(path).unlink()
    index_path(path).mkdir()


def orphans_parent_comes(path: Path) -> None:
    write_session(path.with_name("more"), [message("gone", None)])
    with path.open("ab") as file:
        file.write(path.with_name("more").read_bytes().split(b"\n", 1)[1])


@pytest.mark.parametrize(
    "happening",
    [
        changed_in_place,
        replaced,
        shortened,
        index_cut,
        index_flipped,
        index_empty,
        index_a_folder,
        orphans_parent_comes,
    ],
)
async def test_an_index_that_does_not_fit_is_as_if_it_were_not_there(
    store: FileStore, path: Path, tmp_path: Path, happening: Callable[[Path], None]
) -> None:
    await opened(store, path)
    happening(path)
    assert index_of(path) is None
    found = await opened(store, path)
    alone = tmp_path / "alone" / "s.jsonl"
    alone.parent.mkdir()
    shutil.copy(path, alone)
    expected = await opened(store, alone)
    assert (found[0], found[1], found[3]) == (expected[0], expected[1], expected[3])


async def test_where_no_index_can_be_written_the_session_does_without(
    store: FileStore, path: Path
) -> None:
    index_path(path).mkdir()
    session = await store.open(path, "own")
    assert reasons(session)[-1] == "index_unwritable"
    await session.close()


async def test_a_small_file_needs_none(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write_session(path, [message("0000000a", None)])
    await opened(store, path)
    assert names(tmp_path) == ["s.jsonl"]
