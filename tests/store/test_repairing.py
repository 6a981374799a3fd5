"""Repair: every byte is kept, every entry keeps its place, and nothing odd is left."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi_rpc.core.codec import encode
from pi_rpc.core.errors import Damaged, Invalid, Locked, Refused
from pi_rpc.core.ports.store import Repaired
from pi_rpc.core.scanner import Scanner
from pi_rpc.core.tree import Tree
from pi_rpc.store.choose import open_store
from pi_rpc.store.files import FileStore
from pi_rpc.store.repairing import NewFileLine, refuse_unless_whole, repair_file
from tests.store.samples import CountedIds, header, ids_of, message, names, reasons, write_session

pytestmark = pytest.mark.anyio

A, B, C, D = "0000000a", "0000000b", "0000000c", "0000000d"


@pytest.fixture
def path(root: Path) -> Path:
    return root / "s.jsonl"


def repaired(path: Path) -> Repaired:
    return repair_file(path, CountedIds(), syncs=False)


def actions(done: Repaired) -> list[str]:
    return [step.action for step in done.steps]


async def parents_of(store: FileStore, path: Path) -> dict[str, str | None]:
    session = await store.open(path, "read")
    heads = session.heads
    found = {
        heads.id_of(row): None if heads.parents[row] < 0 else heads.id_of(heads.parents[row])
        for row in range(len(heads))
        if not heads.is_shadowed(row)
    }
    await session.close()
    return found


async def leaf_of(store: FileStore, path: Path) -> str | None:
    session = await store.open(path, "read")
    tree = Tree(session.heads, session.line)
    found = tree.id_or_none(tree.visible(tree.stored_leaf()))
    await session.close()
    return found


def raw(entry_id: str, parent: str | None, text: str = "hi") -> bytes:
    return encode(message(entry_id, parent, text))


GOOD = [message(A, None), message(B, A)]


def test_a_good_file_is_left_alone(path: Path) -> None:
    data = write_session(path, GOOD)
    assert repaired(path) == Repaired([])
    assert path.read_bytes() == data
    assert names(path.parent) == ["s.jsonl"]


def test_a_missing_newline_is_added_to_the_file_itself(path: Path) -> None:
    data = write_session(path, GOOD)
    path.write_bytes(data[:-1])
    inode = path.stat().st_ino
    assert actions(repaired(path)) == ["newline_added"]
    assert path.read_bytes() == data
    assert (path.stat().st_ino, names(path.parent)) == (inode, ["s.jsonl"])


@pytest.mark.parametrize(
    ("lines", "done"),
    [
        ([raw(A, None), b"garbage", raw(B, A)], ["line_kept_as_entry"]),
        ([raw(A, None), b"7", b'{"type":"message"}', raw(B, A)], ["line_kept_as_entry"] * 2),
        ([raw(A, None), raw(B, A), b'{"type":"mess'], ["line_kept_as_entry"]),
        ([raw(A, None) + raw(B, A), raw(C, B)], ["lines_parted"]),
        ([raw(A, None), b'{"type":"message","id' + raw(B, A)], ["line_kept_as_entry"]),
        ([raw(A, None), raw(B, A)[:-9] + b"}}", raw(C, B)], ["line_kept_as_entry"]),
        ([raw(A, None), raw(B, "ffffffff")], ["parent_mended"]),
        ([raw(A, B), raw(B, A)], ["parent_mended"]),
        ([raw(A, A), raw(B, A)], ["parent_mended"]),
        ([raw(A, None), raw(B, A), raw(A, B, "again"), raw(C, B)], ["line_kept_as_entry"]),
        ([raw(A, None), raw(B, A), raw(A, B, "again")], ["line_kept_as_entry"]),
        ([raw(A, None), encode(header("two").as_object()), raw(B, A)], ["line_kept_as_entry"]),
        ([raw(A, None), b"\0\0\0", raw(B, A)], ["line_kept_as_entry"]),
        ([b"\xff\xfe not text", raw(A, None)], ["line_kept_as_entry"]),
    ],
)
async def test_what_is_damaged_is_mended_and_kept(
    store: FileStore, path: Path, lines: list[bytes], done: list[str]
) -> None:
    data = write_session(path, lines)
    before = await parents_of(store, path), await leaf_of(store, path)
    result = repaired(path)
    assert actions(result) == done
    assert result.backup == path.with_name("s.jsonl.bak")
    assert result.backup.read_bytes() == data
    after = await parents_of(store, path)
    assert {each: after[each] for each in before[0]} == before[0]
    assert await leaf_of(store, path) == before[1]
    again = await store.open(path, "read")
    assert reasons(again) == []
    await again.close()
    assert repaired(path) == Repaired([])


def test_what_was_no_entry_stands_as_text_in_one(path: Path) -> None:
    write_session(path, [raw(A, None), b"garbage \xe2\x82\xac", b"\xff", raw(B, A)])
    repaired(path)
    lines = path.read_bytes().split(b"\n")
    assert (
        b'"customType":"pi_rpc.unparsed","data":{"v":1,"text":"garbage \xe2\x82\xac"}' in lines[2]
    )
    assert b'"base64":"/w=="' in lines[3]
    assert (lines[1], lines[4]) == (raw(A, None), raw(B, A))


def test_each_repair_keeps_the_file_it_found(path: Path) -> None:
    for _ in range(3):
        with path.open("ab") if path.exists() else _begun(path) as file:
            file.write(b"garbage\n" + raw(os.urandom(4).hex(), None) + b"\n")
        repaired(path)
    assert names(path.parent) == [
        "s.jsonl",
        "s.jsonl-1.bak",
        "s.jsonl-2.bak",
        "s.jsonl.bak",
    ]


def _begun(path: Path) -> Any:
    write_session(path, [])
    return path.open("ab")


@pytest.mark.parametrize("data", [b"", b"# a page\n", b"\n\n", b'{"type":"message"}\n'])
def test_what_is_no_session_is_not_touched(path: Path, data: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(Invalid) as caught:
        repaired(path)
    assert caught.value.reason == "not_a_session"
    assert path.read_bytes() == data
    assert names(path.parent) == ["s.jsonl"]


def test_an_old_file_is_not_repaired_but_migrated(path: Path) -> None:
    head = {"type": "session", "id": "old", "timestamp": "t", "cwd": "/"}
    data = write_session(path, [{"type": "message", "message": {}}, b"garbage"], head)
    with pytest.raises(Refused) as caught:
        repaired(path)
    assert caught.value.reason == "old_version"
    assert path.read_bytes() == data


@pytest.mark.parametrize("after", [[raw(A, None)], [raw(A, None), raw(B, None)], [raw(B, A)] * 2])
def test_a_successor_that_lost_or_moved_an_entry_never_takes_the_name(
    path: Path, after: list[bytes]
) -> None:
    before = write_session(path, GOOD)
    scanner = Scanner()
    scanner.take(before, len(before))
    write_session(path, after)
    fd = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(Damaged) as caught:
            refuse_unless_whole(fd, [NewFileLine(0), NewFileLine(1)], scanner.finish(b""))
    finally:
        os.close(fd)
    assert caught.value.reason == "repair_failed"


async def test_a_file_somebody_owns_is_not_repaired(store: FileStore, root: Path) -> None:
    session = await store.create(header("mine"))
    with pytest.raises(Locked):
        await store.repair("mine")
    await session.close()
    assert await store.repair("mine") == Repaired([])
    assert [name for name in names(root) if name.endswith(".bak")] == []


LINES = st.one_of(
    st.binary(max_size=20),
    st.builds(
        raw,
        st.sampled_from([A, B, C, D, "odd", ""]),
        st.sampled_from([None, A, B, C, D, "odd", "gone"]),
        st.text(max_size=5),
    ),
    st.builds(lambda line, cut: line[:cut], st.just(raw(A, None)), st.integers(0, 160)),
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lines=st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"", b"\r\n", b"\n\n"])), max_size=9)
)
async def test_any_damage_is_mended_and_no_entry_moves(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[bytes, bytes]]
) -> None:
    path = tmp_path_factory.mktemp("repair") / "s.jsonl"
    store = open_store(path.parent, CountedIds(), syncs=False)
    data = write_session(path, []) + b"".join(line + end for line, end in lines)
    path.write_bytes(data)
    session = await store.open(path, "read")
    careful = not any(each in ("orphan",) for each in reasons(session))
    before = await parents_of(store, path)
    await session.close()
    result = repaired(path)
    after = await parents_of(store, path)
    if careful:
        assert {each: after.get(each) for each in before} == before
    again = await store.open(path, "read")
    assert set(reasons(again)) <= {"forward_parent"}
    assert len(set(ids_of(again))) == len(ids_of(again))
    await again.close()
    kept = path if result.backup is None else result.backup
    assert kept.read_bytes().startswith(data)
    assert repaired(path) == Repaired([])
