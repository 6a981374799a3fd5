"""Creating, adopting and deleting session files."""

import os
from pathlib import Path

import anyio
import pytest

from pi_rpc.core.codec import decode
from pi_rpc.core.errors import Invalid, Locked, Missing, Outside, Refused
from pi_rpc.core.ports.store import CopiedRows
from pi_rpc.store.choose import open_store
from pi_rpc.store.files import FileStore
from tests.store.samples import (
    CWD,
    CountedIds,
    chain,
    header,
    ids_of,
    line,
    message,
    names,
    texts_of,
    write_session,
)

pytestmark = pytest.mark.anyio

NAME = "2026-11-29T21-09-31-887Z_s1.jsonl"


def folders_of(root: Path) -> dict[str, list[str]]:
    return {each.name: names(each) for each in root.iterdir()} if root.exists() else {}


async def test_a_new_file_lies_where_pi_would_look_for_it(store: FileStore, root: Path) -> None:
    session = await store.create(header(), chain(1))
    path = root / "--home-u-proj--" / NAME
    assert session.path == path
    assert path.read_bytes().split(b"\n")[0] == (
        b'{"type":"session","version":3,"id":"s1","timestamp":"2026-11-29T21:09:31.887Z",'
        b'"cwd":"/home/u/proj"}'
    )
    await session.close()
    assert folders_of(root) == {"--home-u-proj--": [NAME]}


async def test_one_folder_for_all_is_used_as_it_is(tmp_path: Path) -> None:
    store = open_store(tmp_path / "root", CountedIds(), tmp_path / "flat", syncs=False)
    for session_id, cwd in (("s1", CWD), ("s2", "/w")):
        await (await store.create(header(session_id, cwd))).close()
    assert names(tmp_path) == ["flat"]
    assert [each.session_id for each in await store.listing("/w")] == ["s2"]
    assert len(await store.listing(None)) == 2


async def test_a_file_that_is_already_there_is_not_replaced(store: FileStore, root: Path) -> None:
    path = root / "--home-u-proj--" / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(b"precious")
    with pytest.raises(Refused) as caught:
        await store.create(header(), chain(1))
    assert caught.value.reason == "session_exists"
    assert path.read_bytes() == b"precious"
    assert names(path.parent) == [NAME]


async def test_a_session_whose_lines_cannot_be_had_does_not_exist(
    store: FileStore, root: Path, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    write_session(path, [message("0000000a", None), message("0000000b", "0000000a")])
    source = await store.open(path, "read")
    os.truncate(path, path.stat().st_size - 9)
    with pytest.raises(Outside) as caught:
        await store.create(header(), [CopiedRows(0, 2)], source)
    assert caught.value.reason == "read_failed"
    assert folders_of(root) == {"--home-u-proj--": []}


async def test_the_same_id_asked_for_twice_at_once_is_made_once(store: FileStore) -> None:
    made: list[object] = []

    async def make() -> None:
        try:
            made.append(await store.create(header(), chain(3)))
        except Refused as error:
            made.append(error.reason)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(make)
    assert made.count("session_exists") == 3


async def test_copied_lines_are_the_same_bytes_where_the_parent_stays(
    store: FileStore, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    entries: list[object] = [message("0000000a", None)]
    spaced = b'{"type":"label","id":"0000000b","parentId":"0000000a","timestamp":"t", "n": 1.50}'
    moved = b'{"timestamp":"t", "parentId":"0000000a","id":"0000000d","type":"label"}\r'
    entries += [spaced, b"garbage", message("0000000c", "0000000b"), moved]
    write_session(path, entries)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    source = await store.open(path, "read")
    copy = await store.create(header("new"), [CopiedRows(0, 5 - 1)], source)
    expected = texts_of(source, range(3))
    assert texts_of(copy, range(3)) == expected
    assert decode(copy.line(3)) == decode(moved) | {"parentId": "0000000c"}
    await copy.close()
    again = await store.open("new", "own")
    assert ids_of(again) == ["0000000a", "0000000b", "0000000c", "0000000d"]
    assert (list(again.heads.parents), again.diagnostics) == ([-1, 0, 1, 2], [])
    assert again.line(1) == spaced
    await again.append([line("0000000e", 3, "0000000d")], durable=False)
    assert again.line(4) == line("0000000e", 3, "0000000d").raw
    await again.close()


async def test_a_source_may_grow_or_close_while_it_is_copied(store: FileStore) -> None:
    source = await store.create(header("old"), chain(200))
    copies: list[list[str]] = []

    async def copy() -> None:
        made = await store.create(header("new"), [CopiedRows(0, 200)], source)
        copies.append(ids_of(made))
        await made.close()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(copy)
            await anyio.lowlevel.checkpoint()
            await source.append([line("0000ffff", 199, "000000c8")], durable=False)
            await source.close()
    assert copies == [ids_of(source)[:200]]


async def test_adopting_takes_a_free_name_and_a_free_id(
    store: FileStore, root: Path, tmp_path: Path
) -> None:
    path = tmp_path / "imp.jsonl"
    write_session(path, [b"garbage", message("0000000a", None)])
    data = b"before\n" + path.read_bytes()
    path.write_bytes(data)
    for number in range(2):
        session = await store.adopt(path, "/w")
        stored = (
            root / "--home-u-proj--" / ("imp-1.jsonl" if number else "imp.jsonl")
        ).read_bytes()
        assert ids_of(session) == ["0000000a"]
        assert session.heads.row_of("0000000a") == 0
        if number == 0:
            assert stored == data
        else:
            old, new = data.split(b"\n"), stored.split(b"\n")
            assert [old[0], *old[2:]] == [new[0], *new[2:]]
            assert decode(new[1]) == session.header.as_object()
        await session.close()
    assert path.read_bytes() == data
    assert folders_of(root) == {"--home-u-proj--": ["imp-1.jsonl", "imp.jsonl"]}


async def test_a_file_of_the_store_is_adopted_in_place(store: FileStore, root: Path) -> None:
    created = await store.create(header(), chain(1))
    with pytest.raises(Locked):
        assert created.path is not None
        await store.adopt(created.path, "/w")
    await created.close()
    session = await store.adopt(created.path, "/w")
    assert (session.path, session.header.session_id) == (created.path, "s1")
    await session.close()
    assert folders_of(root) == {"--home-u-proj--": [NAME]}


async def test_a_file_that_names_no_directory_is_filed_under_the_one_given(
    store: FileStore, root: Path, tmp_path: Path
) -> None:
    path = tmp_path / ".hidden.txt"
    write_session(path, [], {"type": "session", "version": 3, "id": "old", "timestamp": "t"})
    await (await store.adopt(path, "/w/x")).close()
    assert folders_of(root) == {"--w-x--": ["hidden.jsonl"]}
    assert [each.session_id for each in await store.listing("/w/x")] == ["old"]


async def test_what_is_no_session_leaves_nothing_behind(
    store: FileStore, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"# text\n")
    with pytest.raises(Invalid):
        await store.adopt(tmp_path / "a.jsonl", "/w")
    assert folders_of(root) == {}


async def test_a_deleted_session_lies_in_the_trash(store: FileStore, root: Path) -> None:
    places = []
    for _ in range(2):
        session = await store.create(header(), chain(1))
        await session.close()
        before = session.path.read_bytes() if session.path else b""
        place = await store.delete("s1")
        assert place is not None
        assert place.read_bytes() == before
        places.append(place.relative_to(root))
    folder = Path(".trash/--home-u-proj--")
    assert places == [folder / NAME, folder / NAME.replace(".jsonl", "-1.jsonl")]
    assert names(root / "--home-u-proj--") == []
    assert await store.listing(None) == []
    with pytest.raises(Missing):
        await store.open("s1", "read")


async def test_a_session_from_a_second_store_is_found_and_locked(
    store: FileStore, root: Path
) -> None:
    other = open_store(root, CountedIds(), syncs=False)
    session = await other.create(header(), chain(1))
    assert [each.session_id for each in await store.listing(None)] == ["s1"]
    with pytest.raises(Locked):
        await store.open("s1", "own")
    await session.close()
    await (await store.open("s1", "own")).close()


async def test_a_link_is_no_second_door(store: FileStore, tmp_path: Path) -> None:
    path, link = tmp_path / "s.jsonl", tmp_path / "link.jsonl"
    write_session(path, [])
    link.symlink_to(path)
    session = await store.open(path, "own")
    with pytest.raises(Locked):
        await store.open(link, "own")
    await session.close()
