"""Hostile files, names and places: nothing hangs, nothing leaves its folder, nothing is lost."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi_rpc.core.codec import encode
from pi_rpc.core.errors import Failure
from pi_rpc.core.searching import SearchQuery
from pi_rpc.core.tree import Tree
from pi_rpc.store.choose import open_store
from pi_rpc.store.files import FileStore
from tests.store.samples import CWD, CountedIds, header, message, names, write_session

pytestmark = pytest.mark.anyio

WAIT_S = 5

IDS = st.sampled_from(["0000000a", "0000000b", "odd", "", "../x", "\0", "é"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | IDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ["session", "message", "compaction", "context_edit", "label", "custom", "x"]
        )
        | VALUES,
        "id": IDS | VALUES,
        "parentId": IDS | VALUES,
        "timestamp": VALUES,
        "message": VALUES
        | st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "toolResult", "system"]) | VALUES},
            optional={"content": VALUES, "timestamp": VALUES, "toolCallId": VALUES},
        ),
        "version": VALUES,
        "cwd": VALUES,
        "firstKeptEntryId": VALUES,
        "targetId": VALUES,
        "name": VALUES,
        "summary": VALUES,
    },
)
LINES = st.one_of(FIELDS.map(encode), st.binary(max_size=30), st.just(b"[" * 3000))
HEADERS = st.one_of(
    st.just(encode(header().as_object())),
    FIELDS.map(lambda each: encode(each | {"type": "session"})),
    LINES,
)


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(head=HEADERS, lines=st.lists(LINES, max_size=8), end=st.sampled_from([b"", b"\n", b"\r\n"]))
async def test_any_file_is_read_or_refused_and_never_changed_by_looking(
    tmp_path_factory: pytest.TempPathFactory, head: bytes, lines: list[bytes], end: bytes
) -> None:
    root = tmp_path_factory.mktemp("hostile")
    store = open_store(root / "sessions", CountedIds(), syncs=False, cache=root / "cache.sqlite")
    path = store.catalog.folder(CWD) / "s.jsonl"
    path.parent.mkdir(parents=True)
    data = b"\n".join([head, *lines]) + end
    path.write_bytes(data)
    with anyio.fail_after(WAIT_S):
        for _ in range(2):
            await store.listing(None)
            await store.search(SearchQuery(("a",)), None, None, 9)
            await store.search(SearchQuery(("compaction",)), None, None, 9)
        assert path.read_bytes() == data
        try:
            session = await store.open(path, "read")
        except Failure:
            return
        tree = Tree(session.heads, session.line)
        for row in range(len(tree)):
            tree.path(row)
            session.line(row)
        tree.tips()
        await session.close()
        assert path.read_bytes() == data
        # Whoever owns it may append; what stood there stays there.
        owned = await store.open(path, "own")
        await owned.close()
        kept = [
            each.read_bytes() for each in path.parent.glob("s.jsonl*") if each.suffix != ".lock"
        ]
        assert any(each.startswith(data) for each in kept)


@pytest.mark.parametrize(
    "session_id",
    [
        "../out",
        "..",
        ".",
        "a/b",
        "/etc/passwd",
        "a\0b",
        "a\n",
        "-",
        ".hidden",
        "a" * 300,
        "x.jsonl/..",
        "～",
    ],
)
async def test_no_id_leads_out_of_the_folder(
    store: FileStore, root: Path, tmp_path: Path, session_id: str
) -> None:
    before = below(tmp_path)
    for act in (
        lambda: store.create(header(session_id)),
        lambda: store.open(session_id, "own"),
        lambda: store.open(session_id, "read"),
        lambda: store.delete(session_id),
        lambda: store.repair(session_id),
    ):
        with pytest.raises(Failure):
            await act()
    made = below(tmp_path) - before
    assert all(root in (each, each.parent) for each in made)
    assert not any(each.is_file() for each in made)


def below(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_socket(path: Path) -> None:
    # Its name may be short only.
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
    finally:
        os.chdir(here)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_circle(path: Path) -> None:
    path.symlink_to(path.name)


def nowhere(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("make", [a_pipe, a_folder, a_socket, a_device, a_circle, nowhere])
async def test_what_is_no_file_is_refused_at_once_and_hides_nothing(
    store: FileStore, make: Callable[[Path], None]
) -> None:
    folder = store.catalog.folder(CWD)
    write_session(folder / "good.jsonl", [message("a", None, "needle")])
    odd = folder / "odd.jsonl"
    make(odd)
    with anyio.fail_after(WAIT_S):
        assert [each.session_id for each in await store.listing(None)] == ["s1"]
        assert len((await store.search(SearchQuery(("needle",)), None, None, 9)).hits) == 1
        for act in (
            lambda: store.open(odd, "own"),
            lambda: store.open(odd, "read"),
            lambda: store.adopt(odd, CWD),
            lambda: store.repair(odd),
        ):
            with pytest.raises(Failure):
                await act()
    assert not any(each.name.endswith((".lock", ".index")) for each in folder.iterdir())


async def test_an_export_follows_no_link_and_replaces_nothing(
    store: FileStore, tmp_path: Path
) -> None:
    async def chunks() -> object:
        yield b"new"

    aims = {"link": tmp_path / "aim", "there": tmp_path / "there"}
    (tmp_path / "link").symlink_to(aims["link"])
    (tmp_path / "there").write_bytes(b"old")
    for name in aims:
        with pytest.raises(Failure) as caught:
            await store.publish(tmp_path / name, chunks())
        assert caught.value.reason == "file_exists"
    with pytest.raises(Failure) as caught:
        await store.publish(tmp_path / "no" / "where", chunks())
    assert caught.value.reason == "folder_missing"
    assert names(tmp_path) == ["link", "there"]
    assert await store.publish(tmp_path / "fresh", chunks()) == 3
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o600


async def test_an_export_that_breaks_off_leaves_nothing(store: FileStore, tmp_path: Path) -> None:
    async def chunks() -> object:
        yield b"new"
        raise Failure("broken")

    with pytest.raises(Failure):
        await store.publish(tmp_path / "fresh", chunks())
    assert names(tmp_path) == []
