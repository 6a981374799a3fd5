"""Files of older versions."""

import shutil
from pathlib import Path

import pytest

from pi_rpc.core.codec import decode
from pi_rpc.core.entries import UNPARSED
from pi_rpc.core.errors import Locked
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.store import StoredSession
from pi_rpc.store.files import FileStore
from tests.store.samples import header, ids_of, line, message, names, write_session

pytestmark = pytest.mark.anyio

LEGACY = Path(__file__).parents[1] / "parity" / "recordings" / "legacy"


def objects(session: StoredSession) -> list[JsonObject]:
    return [decode(session.line(row)) for row in range(len(session.heads))]


def head(version: int | None) -> JsonObject:
    stored = header().as_object()
    del stored["version"]
    return stored if version is None else stored | {"version": version}


def said(role: str = "user", **fields: object) -> JsonObject:
    return {"type": "message", "timestamp": "t", "message": {"role": role}, **fields}


async def test_an_old_file_is_owned_as_a_new_one_and_kept(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    before = write_session(path, [said(), said("hookMessage")], head(None))
    session = await store.open(path, "own")
    assert session.header.version == 3
    assert list(session.heads.parents) == [-1, 0]
    assert [entry["message"]["role"] for entry in objects(session)] == ["user", "custom"]
    assert session.diagnostics == []
    await session.append([line("0000000c", 1, ids_of(session)[1])], durable=False)
    await session.close()
    assert path.with_name("s.jsonl.v1.bak").read_bytes() == before
    assert names(tmp_path) == ["s.jsonl", "s.jsonl.v1.bak"]
    again = await store.open(path, "own")
    assert (ids_of(again), again.header.version) == (ids_of(session), 3)
    await again.close()
    assert names(tmp_path) == ["s.jsonl", "s.jsonl.v1.bak"]


async def test_reading_an_old_file_changes_nothing(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    before = write_session(path, [said(), said()], head(1))
    session = await store.open(path, "read")
    assert (list(session.heads.parents), session.header.version) == ([-1, 0], 3)
    assert (session.path, session.writable) == (path, False)
    with pytest.raises(Locked):
        await session.append([], durable=False)
    assert path.read_bytes() == before
    assert names(tmp_path) == ["s.jsonl"]


async def test_a_file_that_lost_its_version_keeps_its_ids(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    before = write_session(path, [message("0000000a", None), message("0000000b", None)], head(None))
    session = await store.open(path, "own")
    assert (ids_of(session), list(session.heads.parents)) == (["0000000a", "0000000b"], [-1, -1])
    assert session.header.version == 3
    await session.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", ["3", 4])
async def test_newer_files_stay_as_they_are(
    store: FileStore, tmp_path: Path, version: object
) -> None:
    path = tmp_path / "s.jsonl"
    entry = said("hookMessage", id="0000000a", parentId=None)
    before = write_session(path, [entry], head(None) | {"version": version})
    session = await store.open(path, "own")
    assert objects(session) == [entry]
    await session.close()
    assert path.read_bytes() == before


async def test_lines_that_cannot_be_read_are_carried_over(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    first = said(id="0000000a", parentId=None)
    second = said(id="0000000b", parentId="0000000a")
    write_session(path, [b"garb\xffage", first, b"half {", second, b"torn"], head(2))
    session = await store.open(path, "own")
    kept = [entry for entry in objects(session) if entry["type"] == "custom"]
    assert [entry["customType"] for entry in kept] == [UNPARSED] * 3
    texts = [
        {"v": 1, "base64": "Z2FyYv9hZ2U="},
        {"v": 1, "text": "half {"},
        {"v": 1, "text": "torn"},
    ]
    assert [entry["data"] for entry in kept] == texts
    assert [entry["parentId"] for entry in kept] == [None, "0000000a", "0000000a"]
    assert session.heads.id_of(session.heads.last_row()) == "0000000b"
    assert session.diagnostics == []
    await session.close()


async def test_numbers_of_kept_files_go_on(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    for _ in range(2):
        write_session(path, [said()], head(1))
        await (await store.open(path, "own")).close()
    assert names(tmp_path) == ["s.jsonl", "s.jsonl.v1-1.bak", "s.jsonl.v1.bak"]


async def test_the_file_behind_a_link_is_the_one_made_new(store: FileStore, tmp_path: Path) -> None:
    path, link = tmp_path / "s.jsonl", tmp_path / "link.jsonl"
    write_session(path, [said()], head(1))
    link.symlink_to("s.jsonl")
    await (await store.open(link, "own")).close()
    assert link.is_symlink()
    assert b'"version":3' in path.read_bytes()


async def test_an_old_file_can_be_adopted(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    before = write_session(path, [said(), said()], head(1))
    session = await store.adopt(path, "/w")
    assert list(session.heads.parents) == [-1, 0]
    await session.close()
    assert path.read_bytes() == before
    assert names(tmp_path) == ["old.jsonl", "sessions"]


@pytest.mark.skipif(not LEGACY.is_dir(), reason="the recordings are not in this checkout")
@pytest.mark.parametrize("version", [1, 2])
async def test_old_files_become_what_pi_makes_of_them(
    store: FileStore, tmp_path: Path, version: int
) -> None:
    path = tmp_path / "s.jsonl"
    shutil.copy(LEGACY / f"v{version}.jsonl", path)
    path.chmod(0o600)
    session = await store.open(path, "own")
    recorded = (LEGACY / f"v{version}.migrated.jsonl").read_bytes().strip().split(b"\n")
    theirs = [decode(each) for each in recorded]
    ours = [session.header.as_object(), *objects(session)]
    renamed = dict(zip((each["id"] for each in ours), (each["id"] for each in theirs), strict=True))

    def as_theirs(value: object) -> object:
        return renamed.get(value, value) if isinstance(value, str) else value

    named = [
        stored | {name: as_theirs(stored[name]) for name in ID_FIELDS if name in stored}
        for stored in ours
    ]
    assert named == theirs
    await session.close()


ID_FIELDS = ("id", "parentId", "firstKeptEntryId", "targetId", "fromId")
