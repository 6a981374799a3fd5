"""A session in a file: what is special to files."""

import os
import stat
import sys
import tempfile
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi_rpc.core.codec import decode
from pi_rpc.core.errors import Conflict, Damaged, Failure, Invalid, Missing, Outside
from pi_rpc.core.heads import UNSORTED_ROWS_MAX
from pi_rpc.store.choose import open_store
from pi_rpc.store.files import FileStore
from pi_rpc.store.jsonl import GAP_BYTES_MAX
from tests.store.samples import (
    CountedIds,
    chain,
    header,
    ids_of,
    line,
    message,
    names,
    reasons,
    stored_lines,
    texts_of,
    write_session,
)

pytestmark = pytest.mark.anyio

ENTRIES = [message("0000000a", None), message("0000000b", "0000000a")]
NEW = line("0000000c", 1, "0000000b", "new")


def modes(folder: Path) -> set[tuple[str, int]]:
    return {
        ("file" if each.is_file() else "folder", stat.S_IMODE(each.stat().st_mode))
        for each in (folder, *folder.rglob("*"))
    }


async def test_a_torn_tail_is_kept_aside(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    before = write_session(path, ENTRIES)[:-20]
    path.write_bytes(before)
    session = await store.open(path, "own")
    torn_at = before.rfind(b"\n") + 1
    assert ids_of(session) == ["0000000a"]
    assert [(each.reason, each.offset, each.line) for each in session.diagnostics] == [
        ("torn_line", torn_at, 3)
    ]
    assert path.read_bytes() == before
    added = line("0000000c", 0, "0000000a")
    await session.append([added], durable=False)
    assert path.read_bytes() == before + b"\n" + added.raw + b"\n"
    assert session.line(1) == added.raw
    await session.close()
    again = await store.open(path, "read")
    assert (ids_of(again), reasons(again)) == (["0000000a", "0000000c"], ["malformed_line"])


async def test_a_whole_last_line_gets_its_newline_with_the_first_append(
    store: FileStore, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    before = write_session(path, ENTRIES)[:-1]
    path.write_bytes(before)
    session = await store.open(path, "own")
    assert (ids_of(session), reasons(session)) == (["0000000a", "0000000b"], [])
    await session.close()
    assert path.read_bytes() == before
    session = await store.open(path, "own")
    await session.append([NEW], durable=False)
    assert path.read_bytes() == before + b"\n" + NEW.raw + b"\n"
    assert texts_of(session, range(1, 3)) == [before.split(b"\n")[-1], NEW.raw]
    await session.close()


async def test_an_empty_file_gets_a_header_at_once_when_it_is_owned(
    store: FileStore, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    path.touch()
    with pytest.raises(Invalid):
        await store.open(path, "read")
    assert path.read_bytes() == b""
    session = await store.open(path, "own", "/w")
    stored = decode(path.read_bytes())
    assert (stored["type"], stored["version"], stored["cwd"]) == ("session", 3, "/w")
    assert session.header.as_object() == stored
    await session.append([line("0000000c", -1, None)], durable=False)
    await session.close()
    assert ids_of(await store.open(path, "read")) == ["0000000c"]


@pytest.mark.parametrize(
    "data",
    [
        b"\n\n",
        b"# README\n",
        b'{"type":"message","id":"0000000a"}\n',
        b'{"type":"session","id":7}\n',
        b"\xef\xbb\xbf" + b'{"type":"session","id":"s"}\n',
        b"\0" * 100,
    ],
)
async def test_what_is_no_session_is_refused_and_untouched(
    store: FileStore, tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    for mode in ("own", "read"):
        with pytest.raises(Invalid) as caught:
            await store.open(path, mode)  # type: ignore[arg-type]
        assert caught.value.reason == "not_a_session"
    assert path.read_bytes() == data
    assert names(tmp_path) == ["s.jsonl"]


async def test_pipes_folders_and_devices_are_refused_without_waiting(
    store: FileStore, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with anyio.fail_after(5):
        for path in (tmp_path / "pipe.jsonl", tmp_path, Path("/dev/null")):
            with pytest.raises(Invalid) as caught:
                await store.open(path, "own")
            assert caught.value.reason == "not_a_session"
    assert names(tmp_path) == ["pipe.jsonl"]


@pytest.mark.parametrize("name", ["gone.jsonl", "gone/gone.jsonl", "a\0b.jsonl"])
async def test_a_path_that_leads_nowhere_makes_no_session(
    store: FileStore, tmp_path: Path, name: str
) -> None:
    for mode in ("own", "read"):
        with pytest.raises(Missing) as caught:
            await store.open(tmp_path / name, mode)  # type: ignore[arg-type]
        assert caught.value.reason == "session_not_found"
    assert names(tmp_path) == []


async def test_what_another_program_appended_is_noticed_and_taken_in(
    store: FileStore, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    write_session(path, ENTRIES)
    session = await store.open(path, "own")
    foreign = stored_lines([message("0000000f", "0000000a"), b"garbage"])[1:]
    with path.open("ab") as file:
        file.write(b"".join(each + b"\n" for each in foreign))
    with pytest.raises(Conflict) as caught:
        await session.append([NEW], durable=False)
    assert caught.value.reason == "foreign_append"
    assert caught.value.data["actual"] == path.stat().st_size
    assert await session.refresh() == range(2, 3)
    assert (session.line(2), session.heads.parents[2]) == (foreign[0], 0)
    assert reasons(session) == ["malformed_line"]
    await session.append([NEW], durable=False)
    await session.close()
    again = await store.open(path, "read")
    assert ids_of(again) == ["0000000a", "0000000b", "0000000f", "0000000c"]


async def test_a_line_another_program_is_still_writing_is_waited_for(
    store: FileStore, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    write_session(path, ENTRIES)
    session = await store.open(path, "read")
    raw = stored_lines([message("0000000f", "0000000b")])[1]
    with path.open("ab", buffering=0) as file:
        file.write(raw[:30])
        assert await session.refresh() == range(2, 2)
        file.write(raw[30:])
        assert await session.refresh() == range(2, 3)
        file.write(b"\n" + raw.replace(b"0f", b"0e") + b"\n")
        assert await session.refresh() == range(3, 4)
    assert ids_of(session) == ["0000000a", "0000000b", "0000000f", "0000000e"]
    assert texts_of(session, range(2, 4)) == [raw, raw.replace(b"0f", b"0e")]


async def test_a_last_line_that_grows_is_another_line(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(write_session(path, ENTRIES)[:-1])
    session = await store.open(path, "read")
    with path.open("ab") as file:
        file.write(b"more\n")
    with pytest.raises(Damaged) as caught:
        await session.refresh()
    assert caught.value.reason == "file_replaced"


@pytest.mark.parametrize(
    ("happening", "reason"),
    [
        (lambda path: path.unlink(), "file_missing"),
        (lambda path: path.write_bytes(b""), "file_replaced"),
        (lambda path: os.truncate(path, 200), "file_replaced"),
        (lambda path: (path.rename(path.with_name("b")), path.write_bytes(b"x")), "file_replaced"),
    ],
)
async def test_a_file_that_is_not_what_it_was_is_not_written(
    store: FileStore, tmp_path: Path, happening: object, reason: str
) -> None:
    path = tmp_path / "s.jsonl"
    write_session(path, ENTRIES)
    session = await store.open(path, "own")
    assert callable(happening)
    happening(path)
    before = path.read_bytes() if path.exists() else None
    for act in (lambda: session.append([NEW], durable=False), session.refresh):
        with pytest.raises(Damaged) as caught:
            await act()
        assert caught.value.reason == reason
    assert (path.read_bytes() if path.exists() else None) == before
    assert len(session.heads) == 2
    await session.close()


async def test_reading_leaves_no_trace(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    before = write_session(path, [message(f"{n:08x}", None, "x" * 3000) for n in range(400)])[:-1]
    path.write_bytes(before)
    stamp = path.stat()
    session = await store.open(path, "read")
    await session.refresh()
    await session.sync()
    await session.close()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, stamp.st_mtime_ns)
    assert names(tmp_path) == ["s.jsonl"]


async def test_what_is_written_is_nobody_elses(store: FileStore, root: Path) -> None:
    session = await store.create(header(), chain(1))
    assert session.path is not None
    found = modes(root)
    await session.close()
    assert found == {("file", 0o600), ("folder", 0o700)}


async def test_the_path_stays_the_one_that_was_asked_for(store: FileStore, tmp_path: Path) -> None:
    path, link = tmp_path / "s.jsonl", tmp_path / "link.jsonl"
    write_session(path, ENTRIES)
    link.symlink_to(path)
    session = await store.open(link, "own")
    assert session.path == link
    await session.append([NEW], durable=True)
    await session.close()
    assert link.is_symlink()
    assert path.read_bytes().endswith(NEW.raw + b"\n")


async def test_a_row_that_cannot_be_read_is_a_failure_of_that_row(
    store: FileStore, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    write_session(path, ENTRIES)
    session = await store.open(path, "read")
    os.truncate(path, path.stat().st_size - 5)
    assert decode(session.line(0))["id"] == "0000000a"
    with pytest.raises(Outside) as caught:
        session.line(1)
    assert caught.value.reason == "read_failed"
    await session.close()
    with pytest.raises(Outside):
        session.line(0)


async def test_what_stands_between_rows_is_not_read_with_them(
    store: FileStore, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    write_session(path, ENTRIES)
    before = path.read_bytes()
    noise = b"\n" * (GAP_BYTES_MAX + 100)
    path.write_bytes(before + noise + NEW.raw + b"\n")
    session = await store.open(path, "read")
    rows = range(len(session.heads))
    assert ids_of(session)[-1] == "0000000c"
    assert session.lines_of(rows) == [session.line(row) for row in rows]
    await session.close()
    with pytest.raises(Outside):
        session.lines_of(rows)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everything")
async def test_a_file_that_may_not_be_written_can_be_read(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(write_session(path, ENTRIES)[:-1])
    path.chmod(0o400)
    with pytest.raises(Outside) as caught:
        await store.open(path, "own")
    assert (caught.value.reason, caught.value.data["errno"]) == ("open_failed", "EACCES")
    assert ids_of(await store.open(path, "read")) == ["0000000a", "0000000b"]
    path.chmod(0o000)
    with pytest.raises(Outside):
        await store.open(path, "read")


FILL = """
import os, resource, sys, anyio
from pathlib import Path
from pi_rpc.core.errors import Outside
from pi_rpc.store.choose import open_store
from tests.store.samples import CountedIds, ids_of, line

async def main(path, room):
    store = open_store(path.parent, CountedIds(), syncs=False)
    session = await store.open(path, "own")
    size = path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, resource.RLIM_INFINITY))
    new = [line("0000000c", 1, "0000000b", "c" * 50), line("0000000d", 2, "0000000c", "d" * 50)]
    try:
        await session.append(new, durable=True)
    except Outside as error:
        print(error.reason, len(session.heads), path.stat().st_size - size)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    again = line("0000000e", 1, "0000000b", "e")
    await session.append([again], durable=True)
    print(session.line(len(session.heads) - 1) == again.raw, ids_of(session))
    await session.close()

anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
"""


@pytest.mark.parametrize("room", [0, 1, 60, 150, 260])
async def test_a_write_that_fails_leaves_in_memory_what_is_whole_in_the_file(
    store: FileStore, tmp_path: Path, room: int
) -> None:
    path = tmp_path / "s.jsonl"
    before = write_session(path, ENTRIES)
    command = [sys.executable, "-c", FILL, str(path), str(room)]
    ran = await anyio.run_process(command, check=False)
    assert ran.stderr == b""
    first = line("0000000c", 1, "0000000b", "c" * 50)
    whole = ["0000000c"] if room > len(first.raw) else []
    held = ["0000000a", "0000000b", *whole]
    assert ran.stdout.decode().splitlines() == [
        f"write_failed {len(held)} {room}",
        f"True {[*held, '0000000e']}",
    ]
    assert path.read_bytes().startswith(before)
    session = await store.open(path, "read")
    assert ids_of(session) == [*held, "0000000e"]
    assert decode(session.line(len(session.heads) - 1))["parentId"] == "0000000b"


@given(st.binary(max_size=200), st.booleans(), st.integers(0, 3))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_bytes_are_opened_or_refused_and_only_grow(
    data: bytes, headed: bool, appends: int
) -> None:
    async def work(folder: Path) -> None:
        store = open_store(folder, CountedIds(), syncs=False)
        path = folder / "s.jsonl"
        before = (write_session(path, ENTRIES) if headed else b"") + data
        path.write_bytes(before)
        try:
            session = await store.open(path, "own")
        except Failure as error:
            assert (error.reason, headed) == ("not_a_session", False)
            assert path.read_bytes() == before
            return
        for number in range(appends):
            last = session.heads.last_row()
            parent = None if last < 0 else session.heads.id_of(last)
            await session.append([line(f"{number:08x}", last, parent)], durable=False)
        assert path.read_bytes().startswith(before)
        found, texts = ids_of(session), texts_of(session, range(len(session.heads)))
        parents = list(session.heads.parents)
        await session.close()
        again = await store.open(path, "read")
        assert (ids_of(again), texts_of(again, range(len(again.heads)))) == (found, texts)
        assert list(again.heads.parents) == parents
        await again.close()

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(work, Path(folder))


async def test_appends_to_a_long_session_look_through_few_rows(store: FileStore) -> None:
    session = await store.create(header(), chain(UNSORTED_ROWS_MAX + 2))
    assert session.heads.unsorted_rows == UNSORTED_ROWS_MAX + 2
    last = f"{UNSORTED_ROWS_MAX + 2:08x}"
    again = [line("ffffff0a", UNSORTED_ROWS_MAX + 1, last), line("00000001", 0, last)]
    await session.append(again, durable=False)
    assert session.heads.unsorted_rows == 2
    assert session.heads.row_of("ffffff0a") == UNSORTED_ROWS_MAX + 2
    assert session.heads.row_of("00000001") == 0
    await session.close()
