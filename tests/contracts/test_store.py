"""One promise, every body: a store of files and a store in memory."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

from pi_rpc.core.codec import decode, encode
from pi_rpc.core.entries import Kind, label
from pi_rpc.core.errors import Failure, Invalid, Locked, Missing, Refused
from pi_rpc.core.ports.store import CopiedRows, NewLine, Repaired, Store
from pi_rpc.core.searching import SearchQuery
from pi_rpc.core.tree import Tree
from pi_rpc.store.choose import open_memory_store, open_store
from tests.store.samples import (
    CWD,
    CountedIds,
    chain,
    header,
    ids_of,
    line,
    texts_of,
    write_session,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["files", "one folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    bodies: dict[str, Callable[[], Store]] = {
        "files": lambda: open_store(tmp_path / "root", CountedIds(), syncs=True),
        "one folder": lambda: open_store(tmp_path, CountedIds(), tmp_path / "flat", syncs=False),
        "memory": lambda: open_memory_store(CountedIds()),
    }
    return bodies[request.param]()


async def test_what_was_appended_is_there_when_it_is_opened_again(store: Store) -> None:
    session = await store.create(header(), chain(2))
    assert await session.append(chain(3)[2:], durable=True) == range(2, 3)
    before = texts_of(session, range(3))
    await session.close()
    again = await store.open("s1", "own")
    assert again.header.as_object() == header().as_object()
    assert ids_of(again) == ["00000001", "00000002", "00000003"]
    assert list(again.heads.parents) == [-1, 0, 1]
    assert list(again.heads.kinds) == [Kind.USER] * 3
    assert texts_of(again, range(3)) == before == [each.raw for each in chain(3)]
    assert (again.diagnostics, again.writable) == ([], True)
    await again.close()


async def test_rows_that_follow_one_another_are_read_at_once(store: Store) -> None:
    session = await store.create(header(), chain(2))
    await session.append(chain(5)[2:], durable=False)
    raws = [each.raw for each in chain(5)]
    for rows in (range(5), range(1, 4), range(4, 5), range(2, 2)):
        assert session.lines_of(rows) == [raws[row] for row in rows]
    assert [session.length(row) for row in range(5)] == [len(raw) for raw in raws]
    tree = Tree(session.heads, session.line, session.block)
    for chosen in ([0, 1, 2, 3, 4], [0, 2, 4], [4, 0, 1], [3], []):
        blocks = list(tree.blocks(chosen))
        assert [row for block, _ in blocks for row in block] == chosen
        assert [line for _, lines in blocks for line in lines.split(b"\n")] == [
            raws[row] for row in chosen
        ]
    await session.close()


async def test_an_id_that_was_made_for_a_session_is_not_looked_for(store: Store) -> None:
    session = await store.create(header(), chain(1), known_unique=True)
    await session.close()
    assert ids_of(await store.open("s1", "read")) == ["00000001"]
    with pytest.raises(Refused):
        await store.create(header(), known_unique=False)


async def test_a_parent_may_be_a_line_of_the_same_append(store: Store) -> None:
    session = await store.create(header())
    assert await session.append(chain(3), durable=False) == range(3)
    assert list(session.heads.parents) == [-1, 0, 1]
    assert session.size_bytes > sum(len(each.raw) for each in chain(3))
    await session.close()


async def test_an_empty_session_is_a_session(store: Store) -> None:
    await (await store.create(header())).close()
    again = await store.open("s1", "read")
    assert (len(again.heads), again.heads.last_row(), again.header.session_id) == (0, -1, "s1")
    await again.close()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (NewLine(b'{"a":\n1}', "0000000b", -1, Kind.USER), "newline_in_line"),
        (line("0000000b", 1, "0000000a"), "parent_missing"),
        (line("0000000b", -2, "0000000a"), "parent_missing"),
    ],
)
async def test_a_line_that_cannot_stand_changes_nothing(
    store: Store, bad: NewLine, reason: str
) -> None:
    session = await store.create(header(), chain(1))
    with pytest.raises(Invalid) as caught:
        await session.append([bad], durable=False)
    assert caught.value.reason == reason
    assert len(session.heads) == 1
    await session.append(chain(2)[1:], durable=False)
    await session.close()
    assert ids_of(await store.open("s1", "read")) == ["00000001", "00000002"]


async def test_there_is_one_writer_and_the_second_is_told_who(store: Store) -> None:
    session = await store.create(header(), chain(1))
    with pytest.raises(Locked) as caught:
        await store.open("s1", "own")
    assert caught.value.reason == "session_locked"
    assert isinstance(caught.value.data["owner"]["pid"], int)
    await session.close()
    await session.close()
    await (await store.open("s1", "own")).close()


async def test_a_reader_needs_no_lease_and_sees_what_is_appended(store: Store) -> None:
    session = await store.create(header(), chain(1))
    reader = await store.open("s1", "read")
    assert (ids_of(reader), reader.writable) == (["00000001"], False)
    assert await reader.refresh() == range(1, 1)
    await session.append(chain(3)[1:], durable=False)
    assert await reader.refresh() == range(1, 3)
    assert list(reader.heads.parents) == [-1, 0, 1]
    assert texts_of(reader, range(3)) == texts_of(session, range(3))
    with pytest.raises(Locked) as caught:
        await reader.append(chain(4)[3:], durable=False)
    assert caught.value.reason == "opened_to_read"
    await reader.close()
    await session.close()


async def test_a_closed_session_is_not_written(store: Store) -> None:
    session = await store.create(header(), chain(1))
    await session.close()
    with pytest.raises(Refused) as caught:
        await session.append(chain(2)[1:], durable=False)
    assert caught.value.reason == "session_closed"
    await session.sync()


async def test_an_id_is_used_once(store: Store) -> None:
    await (await store.create(header())).close()
    with pytest.raises(Refused) as caught:
        await store.create(header(cwd="/elsewhere"))
    assert caught.value.reason == "session_exists"


@pytest.mark.parametrize("session_id", ["a", "A1", "a.b", "a..b", "a_b-c"])
async def test_ids_of_letters_digits_and_marks_between_are_good(
    store: Store, session_id: str
) -> None:
    await (await store.create(header(session_id))).close()
    assert (await store.open(session_id, "read")).header.session_id == session_id


@pytest.mark.parametrize("session_id", ["", "-a", "a-", "a_", "_a", ".", "a b", "a/b", "日", "a\n"])
async def test_other_ids_are_refused(store: Store, session_id: str) -> None:
    with pytest.raises(Invalid) as caught:
        await store.create(header(session_id))
    assert caught.value.reason == "bad_session_id"
    assert await store.listing(None) == []


async def test_a_beginning_of_an_id_is_enough_if_it_means_one(store: Store) -> None:
    for session_id in ("abc", "abd", "ab"):
        await (await store.create(header(session_id))).close()
    assert (await store.open("abc", "read")).header.session_id == "abc"
    assert (await store.open("ab", "read")).header.session_id == "ab"
    assert (await store.open("abd", "read")).header.session_id == "abd"
    with pytest.raises(Refused) as caught:
        await store.open("a", "read")
    assert caught.value.reason == "ambiguous_id"
    assert sorted(each["sessionId"] for each in caught.value.data["candidates"]) == [
        "ab",
        "abc",
        "abd",
    ]
    for unknown in ("x", ""):
        with pytest.raises(Missing) as missing:
            await store.open(unknown, "own")
        assert missing.value.reason == "session_not_found"


async def test_the_given_directory_decides_between_beginnings(store: Store) -> None:
    await (await store.create(header("abc", "/w/one"))).close()
    await (await store.create(header("abd", "/w/two"))).close()
    assert (await store.open("ab", "read", "/w/two")).header.session_id == "abd"


async def test_copied_rows_form_one_path(store: Store) -> None:
    branch = line("0000000b", 1, "00000002", "other branch")
    source = await store.create(header("old"), [*chain(4), branch])
    rewritten = line("0000000c", 1, "00000003", "rewritten")
    pieces = [CopiedRows(1, 3), rewritten, CopiedRows(4, 5), line("0000000d", 3, "0000000b")]
    copy = await store.create(header("new"), pieces, source)
    expected = ["00000002", "00000003", "0000000c", "0000000b", "0000000d"]
    for session in (copy, await store.open("new", "read")):
        assert ids_of(session) == expected
        stored = [decode(each) for each in texts_of(session, range(5))]
        assert [each["id"] for each in stored] == expected
        assert [each["parentId"] for each in stored] == [None, *expected[:3], "0000000b"]
    assert list(copy.heads.parents) == [-1, 0, 1, 2, 3]
    assert copy.line(1) == source.line(2)
    assert decode(copy.line(3))["message"] == decode(source.line(4))["message"]
    assert len(source.heads) == 5
    await copy.append([line("0000000e", 4, "0000000d")], durable=False)
    await copy.close()
    await source.close()
    assert len((await store.open("new", "read")).heads) == 6


async def test_rows_that_are_not_there_are_not_copied(store: Store) -> None:
    source = await store.create(header("old"), chain(2))
    for pieces, given in (([CopiedRows(0, 3)], source), ([CopiedRows(0, 1)], None)):
        with pytest.raises(Invalid) as caught:
            await store.create(header("new"), pieces, given)
        assert caught.value.reason == "no_such_rows"
    with pytest.raises(Missing):
        await store.open("new", "read")
    await (await store.create(header("new"))).close()


async def test_an_ephemeral_session_is_nowhere(store: Store) -> None:
    source = await store.create(header("old"), chain(3))
    session = await store.create(header("gone"), [CopiedRows(1, 3)], source, ephemeral=True)
    assert (ids_of(session), session.path) == (["00000002", "00000003"], None)
    assert decode(session.line(0))["parentId"] is None
    await session.append([line("0000000b", 1, "00000003")], durable=True)
    with pytest.raises(Missing):
        await store.open("gone", "read")
    kept = await store.create(header("kept"), [CopiedRows(0, 3)], session)
    assert ids_of(kept) == ["00000002", "00000003", "0000000b"]


async def test_listing_tells_what_a_picker_shows(store: Store) -> None:
    session = await store.create(header("one"))
    said = {
        "role": "user",
        "content": [{"type": "text", "text": "first"}, {"type": "text", "text": "words"}],
        "timestamp": 1_700_000_000_000,
    }
    body = b'{"type":"session_info","id":"0000000b","parentId":null,"timestamp":"t","name":" n "}'
    raw = encode(
        {"type": "message", "id": "0000000a", "parentId": None, "timestamp": "t", "message": said}
    )
    await session.append([NewLine(raw, "0000000a", -1, Kind.USER)], durable=False)
    await session.append([NewLine(body, "0000000b", 0, Kind.SESSION_INFO)], durable=False)
    await session.close()
    await (await store.create(header("two", "/other"))).close()
    everything = await store.listing(None)
    assert [each.session_id for each in everything] == ["two", "one"]
    (one,) = await store.listing(CWD)
    assert (one.session_id, one.cwd, one.name, one.message_count) == ("one", CWD, "n", 1)
    assert (one.first_message, one.modified) == ("first words", "2023-11-14T22:13:20.000Z")
    assert (everything[0].first_message, everything[0].modified) == (
        "(no messages)",
        header().timestamp,
    )


async def test_a_deleted_session_is_gone_and_its_id_is_free(store: Store) -> None:
    session = await store.create(header(), chain(1))
    with pytest.raises(Locked):
        await store.delete("s1")
    await session.close()
    await store.delete("s1")
    assert await store.listing(None) == []
    with pytest.raises(Missing) as caught:
        await store.delete("s1")
    assert caught.value.reason == "session_not_found"
    await (await store.create(header())).close()


async def test_an_adopted_file_is_a_session_of_the_store(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "far" / "imp.jsonl"
    before = write_session(path, [decode(each.raw) for each in chain(2)])
    first = await store.adopt(path, "/w")
    assert (first.header.session_id, ids_of(first)) == ("s1", ["00000001", "00000002"])
    second = await store.adopt(path, "/w")
    assert second.header.session_id not in ("s1", "")
    assert second.header.parent_session == str(path)
    await second.append([line("0000000b", 1, "00000002")], durable=False)
    await first.close()
    await second.close()
    assert path.read_bytes() == before
    assert len((await store.open("s1", "read")).heads) == 2
    assert len((await store.open(second.header.session_id, "read")).heads) == 3
    assert len(await store.listing(CWD)) == 2


async def test_what_is_no_session_is_not_adopted(store: Store, tmp_path: Path) -> None:
    text = tmp_path / "README.md"
    text.write_text("# Not a session\n")
    for path, kind, reason in (
        (text, Invalid, "not_a_session"),
        (tmp_path, Invalid, "not_a_session"),
        (tmp_path / "gone.jsonl", Missing, "file_not_found"),
    ):
        with pytest.raises(Failure) as caught:
            await store.adopt(path, "/w")
        assert (type(caught.value), caught.value.reason) == (kind, reason)
    assert await store.listing(None) == []
    assert text.read_text() == "# Not a session\n"


async def test_appends_at_the_same_time_keep_rows_and_lines_together(store: Store) -> None:
    session = await store.create(header())
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                new = line(f"{number:08x}", -1, None, f"text {number}")
                tasks.start_soon(session.append, [new], number % 2 == 0)
    await session.close()
    again = await store.open("s1", "read")
    stored = [decode(each)["id"] for each in texts_of(again, range(20))]
    assert ids_of(again) == ids_of(session) == stored
    assert sorted(stored) == [f"{number:08x}" for number in range(20)]


async def test_a_kind_is_kept_through_a_file(store: Store) -> None:
    body = label("00000001", "here")
    raw = b'{"type":"label","id":"0000000b","parentId":null,"timestamp":"t","targetId":"00000001"}'
    session = await store.create(header(), [NewLine(raw, "0000000b", -1, body.kind)])
    await session.close()
    assert list((await store.open("s1", "read")).heads.kinds) == [Kind.LABEL]


async def test_words_are_found_on_every_branch_newest_first(store: Store) -> None:
    session = await store.create(header("old"), [*chain(2), line("0000000b", 0, "00000001", "Two")])
    await session.close()
    await (await store.create(header("new", "/w"), chain(1))).close()
    for _ in range(2):
        page = await store.search(SearchQuery(("text",)), None, None, 2)
        assert len(page.hits) == 2
        assert page.next_cursor is not None
        rest = await store.search(SearchQuery(("text",)), None, page.next_cursor, 2)
        assert len(rest.hits) == 1
        assert rest.next_cursor is None
        [hit] = (await store.search(SearchQuery(("two",)), CWD, None, 9)).hits
        assert (hit.session_id, hit.entry_id, hit.role) == ("old", "0000000b", "user")
        assert (hit.snippet, hit.cwd) == ("Two", CWD)
        assert (await store.search(SearchQuery(("two",)), "/w", None, 9)).hits == []
    with pytest.raises(Invalid) as caught:
        await store.search(SearchQuery(("text",)), None, "later", 9)
    assert caught.value.reason == "bad_cursor"


async def test_a_good_session_needs_no_repair_and_an_owned_one_gets_none(store: Store) -> None:
    session = await store.create(header("mine"), chain(2))
    with pytest.raises(Locked):
        await store.repair("mine")
    await session.close()
    assert await store.repair("mine") == Repaired([])
    with pytest.raises(Missing):
        await store.repair("nobody")


async def test_what_is_published_is_there_whole_and_replaces_nothing(
    store: Store, tmp_path: Path
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    assert await store.publish(tmp_path / "out", chunks()) == 6
    assert (tmp_path / "out").read_bytes() == b"onetwo"
    with pytest.raises(Refused) as caught:
        await store.publish(tmp_path / "out", chunks())
    assert caught.value.reason == "file_exists"


async def test_what_gave_up_its_rows_has_the_same_when_they_are_wanted(store: Store) -> None:
    session = await store.create(header(), chain(3))
    before = (ids_of(session), list(session.heads.parents), texts_of(session, range(3)))
    await session.prepare_to_unload()
    gave_up = session.unload()
    assert session.is_loaded is not gave_up
    await session.load()
    assert session.is_loaded
    assert (ids_of(session), list(session.heads.parents), texts_of(session, range(3))) == before
    session.unload()
    # On the spot, when nobody has loaded them.
    assert texts_of(session, range(3)) == before[2]
    session.unload()
    assert await session.append(chain(4)[3:], durable=True) == range(3, 4)
    assert ids_of(session) == [each.entry_id for each in chain(4)]
    await session.close()
    assert not session.unload()
