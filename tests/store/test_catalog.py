"""Folders and names, finding and listing."""

import os
from pathlib import Path

import pytest

from pi_rpc.core.errors import Missing, Refused
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.store import SessionListing
from pi_rpc.store.catalog import HEADER_BYTES_MAX, Catalog, folder_name
from pi_rpc.store.database import Database
from pi_rpc.store.summary import ASKED_SINGLY_MAX
from tests.store.samples import CWD, header, message, write_session


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path)


def head(session_id: str, cwd: str = CWD, **fields: object) -> JsonObject:
    return header(session_id, cwd).as_object() | fields


def add(catalog: Catalog, session_id: str, cwd: str = CWD, name: str | None = None) -> Path:
    path = catalog.folder(cwd) / (name or f"2026-01-01T00-00-00-000Z_{session_id}.jsonl")
    write_session(path, [], head(session_id, cwd))
    return path


def listed(listings: list[SessionListing]) -> list[str]:
    return [each.session_id for each in listings]


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("/home/u/proj", "--home-u-proj--"),
        ("/home/u/proj/", "--home-u-proj--"),
        ("/home/u/x/../proj", "--home-u-proj--"),
        ("/", "----"),
        ("/a/b:c d", "--a-b-c d--"),
        ("/a\\b", "--a-b--"),
        ("/a/日本", "--a-日本--"),
    ],
)
def test_a_folder_is_named_after_the_directory(cwd: str, name: str) -> None:
    assert folder_name(cwd) == name


def test_the_home_directory_is_spelled_out() -> None:
    assert folder_name("~/x") == folder_name(str(Path.home() / "x"))


def test_a_very_long_directory_still_has_a_folder_of_its_own() -> None:
    first, second = folder_name("/a" + "/long日" * 100), folder_name("/b" + "/long日" * 100)
    assert first != second
    assert all(len(os.fsencode(each)) <= 255 for each in (first, second))


def test_two_directories_with_one_folder_are_told_apart(catalog: Catalog) -> None:
    add(catalog, "one", "/w/a-b/c")
    add(catalog, "two", "/w/a/b-c")
    assert catalog.folder("/w/a-b/c") == catalog.folder("/w/a/b-c")
    assert listed(catalog.listing("/w/a-b/c")) == ["one"]
    assert listed(catalog.listing("/w/a/b-c/")) == ["two"]
    assert sorted(listed(catalog.listing(None))) == ["one", "two"]


def test_bad_neighbours_do_not_hide_good_ones(catalog: Catalog) -> None:
    folder = add(catalog, "good").parent
    (folder / "text.jsonl").write_bytes(b"# text\n")
    (folder / "empty.jsonl").touch()
    (folder / "binary.jsonl").write_bytes(bytes(range(256)) * 10)
    (folder / "folder.jsonl").mkdir()
    (folder / "dangling.jsonl").symlink_to("nowhere")
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    os.mkfifo(folder / "pipe.jsonl")
    (folder / ".hidden.jsonl").write_bytes((folder / "text.jsonl").read_bytes())
    write_session(folder / "other.txt", [], head("other"))
    write_session(
        folder / "odd.jsonl", [message("a", None) | {"message": None}, 7, {"x": 1}], head("odd")
    )
    assert sorted(listed(catalog.listing(CWD))) == ["good", "odd"]
    assert catalog.find("good", None).name.endswith("_good.jsonl")


def test_linked_folders_and_files_are_listed_once(catalog: Catalog, tmp_path: Path) -> None:
    path = add(catalog, "one")
    elsewhere = tmp_path.parent / f"{tmp_path.name}-far"
    write_session(elsewhere / "far.jsonl", [], head("far", "/far"))
    (tmp_path / "linked").symlink_to(elsewhere)
    (path.parent / "again.jsonl").symlink_to(path)
    assert sorted(listed(catalog.listing(None))) == ["far", "one"]
    assert catalog.find("far", None) == elsewhere / "far.jsonl"
    assert catalog.find("one", None) == path


def test_nothing_is_made_by_looking(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "sessions")
    assert catalog.listing(None) == catalog.listing("/w") == []
    with pytest.raises(Missing):
        catalog.find("x", "/w")
    assert list(tmp_path.iterdir()) == []


def test_an_id_in_full_comes_before_a_beginning(catalog: Catalog) -> None:
    longer, exact = add(catalog, "abc"), add(catalog, "ab", name="any.jsonl")
    assert catalog.find("ab", None) == exact
    assert catalog.find("abc", None) == longer


def test_two_files_of_one_session_are_not_chosen_between(catalog: Catalog) -> None:
    first, second = add(catalog, "one"), add(catalog, "one", name="copy.jsonl")
    add(catalog, "two", "/w")
    add(catalog, "two", "/x")
    assert catalog.find("one", None) == first
    assert catalog.find("two", "/x").parent == catalog.folder("/x")
    first.rename(first.with_name("moved.jsonl"))
    with pytest.raises(Refused) as caught:
        catalog.find("one", None)
    assert caught.value.reason == "ambiguous_id"
    assert {each["path"] for each in caught.value.data["candidates"]} == {
        str(first.with_name("moved.jsonl")),
        str(second),
    }


@pytest.mark.parametrize(("extra", "found"), [(0, True), (1, False)])
def test_a_header_is_looked_for_in_the_first_part_only(
    catalog: Catalog, extra: int, found: bool
) -> None:
    path = catalog.folder(CWD) / "big.jsonl"
    short = write_session(path, [], head("big", pad=""))[:-1]
    padded = head("big", pad="x" * (HEADER_BYTES_MAX + extra - len(short)))
    path.write_bytes(write_session(path, [], padded)[:-1])
    assert path.stat().st_size == HEADER_BYTES_MAX + extra
    assert (catalog.find_exact("big") == path) is found
    assert listed(catalog.listing(CWD)) == ["big"]


def said(entry_id: str, role: str, content: object, at: object, stamp: str = "t") -> JsonObject:
    base = {"type": "message", "id": entry_id, "parentId": None, "timestamp": stamp}
    return base | {"message": {"role": role, "content": content, "timestamp": at}}


def text(*texts: str) -> list[JsonObject]:
    return [{"type": "text", "text": each} for each in texts]


def test_a_listing_tells_of_every_branch(catalog: Catalog) -> None:
    path = catalog.folder(CWD) / "s.jsonl"
    entries = [
        said("a1", "system", "prompt", 10**15),
        said("a2", "user", [{"type": "image", "data": "", "mimeType": "image/png"}], 1000),
        said("a3", "user", text("one", "two"), 2000),
        said("a4", "assistant", text("answer"), 4000),
        said("a5", "toolResult", text("r"), 10**15),
        said("a6", "user", text("other branch"), 3000),
        {"type": "session_info", "id": "a7", "parentId": None, "timestamp": "t", "name": "first"},
        {"type": "session_info", "id": "a8", "parentId": None, "timestamp": "t", "name": "  last "},
        {"type": "label", "id": "a9", "parentId": None, "timestamp": "t", "targetId": "a1"},
    ]
    write_session(path, entries, head("s", parentSession="/far.jsonl"))
    assert catalog.listing(CWD) == [
        SessionListing(
            session_id="s",
            file=str(path),
            cwd=CWD,
            created=header().timestamp,
            modified="1970-01-01T00:00:04.000Z",
            message_count=6,
            first_message="one two",
            name="last",
            parent_session="/far.jsonl",
        )
    ]


@pytest.mark.parametrize(
    ("entries", "modified"),
    [
        ([], header().timestamp),
        ([said("a", "user", "x", None, "2026-01-02T03:04:05.678Z")], "2026-01-02T03:04:05.678Z"),
        ([said("a", "user", "x", True, "later")], header().timestamp),
        ([said("a", "user", "x", 1e300)], header().timestamp),
        ([said("a", "toolResult", "x", 5)], header().timestamp),
        (
            [{"message": {"timestamp": 7000, "role": "user"}, "type": "message"}],
            "1970-01-01T00:00:07.000Z",
        ),
    ],
)
def test_the_time_is_that_of_the_latest_words(
    catalog: Catalog, entries: list[JsonObject], modified: str
) -> None:
    write_session(catalog.folder(CWD) / "s.jsonl", entries, head("s"))
    assert [each.modified for each in catalog.listing(CWD)] == [modified]


def test_the_latest_activity_comes_first_and_the_file_time_breaks_a_tie(catalog: Catalog) -> None:
    for name, at, file_s in (("a", 1000, 9), ("b", 2000, 1), ("c", 2000, 2), ("d", None, 5)):
        path = catalog.folder(CWD) / f"{name}.jsonl"
        entries = [] if at is None else [said("a1", "user", "x", at)]
        write_session(path, entries, head(name) | {"timestamp": "1970-01-01T00:00:03.000Z"})
        os.utime(path, (file_s, file_s))
    assert listed(catalog.listing(CWD)) == ["d", "c", "b", "a"]


def test_many_summaries_are_asked_of_the_cache_at_once(tmp_path: Path) -> None:
    database = Database(tmp_path / "cache" / "c.sqlite")
    first = Catalog(tmp_path / "sessions", None, database)
    count = ASKED_SINGLY_MAX + 10
    paths = [add(first, f"s{number}") for number in range(count)]
    found = first.listing(None)
    paths[0].unlink()
    again = Catalog(tmp_path / "sessions", None, database).listing(None)
    wanted = [each for each in found if each.file != str(paths[0])]
    assert (len(again), again) == (count - 1, wanted)
    few = Catalog(tmp_path / "sessions", None, database)
    assert few.listing(None) == wanted


def test_what_the_cache_says_is_read_on_and_listed_as_without_it(tmp_path: Path) -> None:
    root, database = tmp_path / "sessions", Database(tmp_path / "cache" / "c.sqlite")

    def fresh(*, cached: bool = True) -> Catalog:
        return Catalog(root, None, database if cached else None)

    path = fresh().folder(CWD) / "s.jsonl"
    data = write_session(path, [], head("s"))
    more = write_session(path.with_name("m"), [said("a1", "user", "first", 3000)])
    later = write_session(path.with_name("m"), [said("a2", "user", "then", 9000)])
    grown = [line.split(b"\n", 1)[1] for line in (more, later)]
    for some in (b"", grown[0], b"", grown[1], b""):
        data += some
        path.write_bytes(data)
        told = fresh().listing(CWD)
        assert told == fresh(cached=False).listing(CWD)
        assert told == fresh().listing(CWD)
    assert (told[0].message_count, told[0].first_message) == (2, "first")
    path.write_bytes(grown[1])
    assert fresh().listing(CWD) == fresh(cached=False).listing(CWD) == []


def test_a_listing_follows_the_file(catalog: Catalog) -> None:
    path = catalog.folder(CWD) / "s.jsonl"
    data = write_session(path, [said("a1", "user", "first", 1000)], head("s"))
    counts = []
    more = write_session(path.with_name("m"), [said("a2", "user", "x", 2000)]).split(b"\n", 1)[1]
    for grown in (b"", more[:50], more[50:-1], b"\n" + more, b""):
        data += grown
        with path.open("r+b") as file:
            file.write(data)
        counts.append([(each.message_count, each.modified[17:19]) for each in catalog.listing(CWD)])
    assert counts == [[(1, "01")], [(1, "01")], [(2, "02")], [(3, "02")], [(3, "02")]]
    write_session(path, [], head("s"))
    assert [each.message_count for each in catalog.listing(CWD)] == [0]
    path.unlink()
    assert catalog.listing(CWD) == []
