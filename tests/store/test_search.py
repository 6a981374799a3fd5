"""The cache of listings and words: never truth, never in the way, always the same answers."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi_rpc.core.ports.store import SearchPage
from pi_rpc.core.searching import SearchQuery, place_of, terms_of
from pi_rpc.store.choose import open_store
from pi_rpc.store.database import Database
from pi_rpc.store.files import FileStore
from pi_rpc.store.hits import Hits
from pi_rpc.store.search import Searcher
from tests.store.samples import CWD, CountedIds, header, message, write_session

pytestmark = pytest.mark.anyio


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "agent" / "catalog.sqlite"


@pytest.fixture
def cached(root: Path, cache: Path) -> FileStore:
    return again(root, cache)


def again(root: Path, cache: Path | None) -> FileStore:
    """The store as another process has it."""
    return open_store(root, CountedIds(), syncs=False, cache=cache)


def at(entry_id: str, text: str, at_ms: int, role: str = "user") -> dict[str, object]:
    stored = message(entry_id, None, text, role)
    stored["message"]["timestamp"] = at_ms
    return stored


def write(store: FileStore, session_id: str, *entries: object, cwd: str = CWD) -> Path:
    path = store.catalog.folder(cwd) / f"{session_id}.jsonl"
    write_session(path, entries, header(session_id, cwd).as_object())
    return path


def add(path: Path, *entries: object) -> None:
    data = write_session(path.with_name("more"), entries).partition(b"\n")[2]
    path.with_name("more").unlink()
    with path.open("ab") as file:
        file.write(data)


async def look(store: FileStore, words: str, limit: int = 50, cwd: str | None = None) -> list[str]:
    page = await store.search(SearchQuery(terms_of(words)), cwd, None, limit)
    return ids_of(page)


def ids_of(page: SearchPage) -> list[str]:
    return [f"{hit.session_id}/{hit.entry_id}" for hit in page.hits]


def indexed(cache: Path) -> int:
    with closing(sqlite3.connect(cache)) as connection:
        return int(connection.execute("SELECT count(*) FROM entries").fetchone()[0])


async def test_hits_are_the_same_from_files_and_from_the_index(root: Path, cache: Path) -> None:
    store = again(root, cache)
    write(store, "s1", at("a", "Needle in hay", 5), at("b", "hay", 6), at("c", "NEEDLES", 9))
    write(store, "s2", at("d", "a needle", 7), at("e", "needle é ß", 5), cwd="/w")
    expected = ["s1/c", "s2/d", "s1/a", "s2/e"]
    for _ in range(3):
        assert await look(again(root, cache), "needle") == expected
        assert await look(again(root, None), "needle") == expected
    assert indexed(cache) == 5
    assert await look(store, "needle", cwd="/w") == ["s2/d", "s2/e"]
    assert await look(store, "SS é") == ["s2/e"]
    assert await look(store, "needle hay") == ["s1/a"]
    assert await look(store, "éé") == []


async def test_pages_go_on_where_the_last_one_ended(root: Path, cache: Path) -> None:
    for place in (cache, None):
        store = again(root, place)
        write(store, "s1", *(at(f"a{n}", "word", n // 2) for n in range(7)))
        write(store, "s2", *(at(f"b{n}", "word", n // 2) for n in range(6)))
        for _ in range(2):
            found, cursor = [], None
            while True:
                page = await store.search(SearchQuery(("word",)), None, cursor, 4)
                found += ids_of(page)
                cursor = page.next_cursor
                if cursor is None:
                    break
                assert len(page.hits) == 4
                assert place_of(cursor).age <= 0
            assert found == [
                *("s1/a6", "s1/a4", "s1/a5", "s2/b4", "s2/b5", "s1/a2", "s1/a3", "s2/b2", "s2/b3"),
                *("s1/a0", "s1/a1", "s2/b0", "s2/b1"),
            ]


async def test_what_is_new_is_read_and_nothing_else(
    cached: FileStore, root: Path, cache: Path
) -> None:
    path = write(cached, "s", at("a", "first needle", 1))
    assert await look(cached, "needle") == ["s/a"]
    # Bytes of the middle that changed unseen would be found only by whoever reads them again.
    add(path, at("b", "second needle", 2))
    assert await look(again(root, cache), "needle") == ["s/b", "s/a"]
    assert indexed(cache) == 2
    with path.open("ab") as file:
        file.write(b'{"type":"message","id":"c"')
    assert await look(cached, "needle") == ["s/b", "s/a"]
    add(path)
    with path.open("ab") as file:
        file.write(b',"message":{"role":"user","content":"third needle","timestamp":3}}')
    assert await look(cached, "needle") == ["s/c", "s/b", "s/a"]
    assert indexed(cache) == 2


async def test_a_file_that_is_another_is_read_anew(cached: FileStore, cache: Path) -> None:
    path = write(cached, "s", at("a", "needle", 1), at("b", "hay", 2))
    assert await look(cached, "needle") == ["s/a"]
    changed = path.read_bytes().replace(b"needle", b"nettle").replace(b"hay", b"needle hay")
    path.unlink()
    path.write_bytes(changed)
    assert await look(cached, "needle") == ["s/b"]
    assert await look(cached, "nettle") == ["s/a"]
    assert indexed(cache) == 2
    path.unlink()
    assert await look(cached, "needle") == []


async def test_words_of_files_that_are_gone_are_forgotten(
    cached: FileStore, root: Path, cache: Path
) -> None:
    write(cached, "s", at("a", "needle", 1))
    gone = write(cached, "t", at("a", "needle", 1))
    assert len(await look(cached, "needle")) == 2
    gone.unlink()
    assert await look(again(root, cache), "needle") == ["s/a"]
    assert indexed(cache) == 1


async def test_an_index_that_lies_is_found_out(cached: FileStore, cache: Path) -> None:
    write(cached, "s", at("a", "needle", 1), at("b", "needle", 2))
    assert len(await look(cached, "needle")) == 2
    with closing(sqlite3.connect(cache)) as connection:
        connection.execute("UPDATE entries SET offset = offset + 1, length = length - 1")
        connection.commit()
    assert await look(cached, "needle") == ["s/b", "s/a"]
    assert await look(cached, "needle") == ["s/b", "s/a"]


def damage(cache: Path) -> Iterator[None]:
    """Everything a cache can be but good."""
    yield
    cache.write_bytes(b"no database at all" * 100)
    yield
    data = bytearray(cache.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    cache.write_bytes(data)
    yield
    with closing(sqlite3.connect(cache)) as connection:
        connection.execute("DROP TABLE files")
    yield
    with closing(sqlite3.connect(cache)) as connection:
        connection.execute("PRAGMA user_version = 99")
    yield
    cache.unlink()
    yield
    cache.write_bytes(b"")
    yield


async def test_a_damaged_cache_is_made_anew(cached: FileStore, root: Path, cache: Path) -> None:
    write(cached, "s", at("a", "needle", 1))
    for _ in damage(cache):
        # The first answer may be without a cache, the one after it has one again.
        for _ in range(2):
            fresh = again(root, cache)
            assert await look(fresh, "needle") == ["s/a"]
            assert [each.session_id for each in await fresh.listing(None)] == ["s"]
        assert indexed(cache) == 1


async def test_a_cache_held_by_another_process_holds_up_nobody(
    cached: FileStore, root: Path, cache: Path
) -> None:
    path = write(cached, "s", at("a", "needle", 1))
    await look(cached, "needle")
    with closing(sqlite3.connect(cache, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        add(path, at("b", "needle", 2))
        assert await look(cached, "needle") == ["s/b", "s/a"]
        assert [each.message_count for each in await again(root, cache).listing(None)] == [2]
        other.execute("ROLLBACK")
        other.execute("BEGIN EXCLUSIVE")
        assert await look(again(root, cache), "needle") == ["s/b", "s/a"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
async def test_a_cache_that_cannot_be_written_is_done_without(root: Path, cache: Path) -> None:
    cache.parent.mkdir()
    cache.parent.chmod(0o500)
    store = again(root, cache)
    write(store, "s", at("a", "needle", 1))
    assert await look(store, "needle") == ["s/a"]
    cache.parent.chmod(0o700)


async def test_a_cache_in_the_place_of_a_folder_or_a_link_is_done_without(
    root: Path, cache: Path, tmp_path: Path
) -> None:
    store = again(root, cache)
    write(store, "s", at("a", "needle", 1))
    for _ in misplaced(cache, tmp_path / "elsewhere"):
        assert await look(store, "needle") == ["s/a"]


def misplaced(cache: Path, elsewhere: Path) -> Iterator[None]:
    cache.mkdir(parents=True)
    yield
    cache.rmdir()
    cache.symlink_to(elsewhere)
    yield
    assert not elsewhere.exists()


def modes(*paths: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in paths]


async def test_the_cache_is_the_users_alone(cached: FileStore, cache: Path) -> None:
    write(cached, "s", at("a", "needle", 1))
    before = os.umask(0)
    try:
        await look(cached, "needle")
    finally:
        os.umask(before)
    assert modes(cache, cache.parent) == [0o600, 0o700]


async def test_a_listing_comes_out_of_the_cache(cached: FileStore, root: Path, cache: Path) -> None:
    entries = [
        at("a", "hello", 5),
        {"type": "session_info", "id": "n", "parentId": "a", "name": "N"},
    ]
    path = write(cached, "s", *entries)
    listed = await cached.listing(None)
    with closing(sqlite3.connect(cache)) as connection:
        [(stored,)] = connection.execute("SELECT listed FROM files").fetchall()
        assert b'"hello"' in stored
        connection.execute("UPDATE files SET listed = ?", [stored.replace(b"hello", b"other")])
        connection.commit()
    [fresh] = await again(root, cache).listing(None)
    assert fresh.first_message == "other"
    add(path, at("b", "more", 9))
    [grown] = await again(root, cache).listing(None)
    assert (grown.message_count, grown.first_message) == (2, "other")
    [plain] = await again(root, None).listing(None)
    assert (plain.message_count, plain.first_message, plain.name) == (2, "hello", "N")
    assert listed[0].name == fresh.name == "N"


async def test_odd_words_are_kept_as_they_are(cached: FileStore, root: Path, cache: Path) -> None:
    name = "\ud83d\0 é"
    path = write(cached, "s", {"type": "session_info", "id": "n", "parentId": None, "name": name})
    assert [each.name for each in await cached.listing(None)] == [name]
    assert [each.name for each in await again(root, cache).listing(None)] == [name]
    add(path, at("b", "needle \ud83d\0 x", 9))
    for _ in range(2):
        assert await look(cached, "needle") == ["s/b"]


def test_an_index_of_too_much_that_is_gone_is_made_anew(cache: Path, cached: FileStore) -> None:
    path = write(cached, "s", *(at(f"a{n}", "needle", n) for n in range(4)))
    listing = cached.catalog.listing(None)
    searcher = Searcher(Database(cache), gone_entries_max=2)
    for turn in range(4):
        hits = Hits(SearchQuery(("needle",)), None, 9)
        assert len(searcher.search(listing, hits, lambda: False).hits) == 4
        path.write_bytes(path.read_bytes() + b" " * turn)
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    with closing(sqlite3.connect(cache)) as connection:
        rows = connection.execute("SELECT count(*) FROM words WHERE words MATCH 'nee'").fetchone()[
            0
        ]
    assert rows < 12


def test_a_search_nobody_waits_for_ends(cached: FileStore, cache: Path) -> None:
    write(cached, "s", at("a", "needle", 1))
    hits = Hits(SearchQuery(("needle",)), None, 9)
    page = Searcher(Database(cache)).search(cached.catalog.listing(None), hits, lambda: True)
    assert page.hits == []


WORDS = st.text("aAbßé日 \n\"%_*'", min_size=0, max_size=12)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(WORDS, max_size=8), query=WORDS)
async def test_any_words_are_found_alike_with_and_without_the_index(
    texts: list[str], query: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("search")
    root, cache = folder / "sessions", folder / "catalog.sqlite"
    store = again(root, cache)
    write(store, "s", *(at(f"a{n}", text, n) for n, text in enumerate(texts)))
    if not query.replace('"', "").strip():
        return
    await look(store, "zzz")
    with_index = await look(store, query)
    assert with_index == await look(again(root, None), query)
