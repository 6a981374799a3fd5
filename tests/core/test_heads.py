"""The head of every entry, as columns."""

from array import array
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.entries import Kind
from pi_rpc.core.heads import BLOCK_ROWS, Columns, Heads, cut_circles

ids = st.one_of(
    st.integers(0, 2**32 - 1).map(lambda number: f"{number:08x}"),
    st.sampled_from(
        ["00000000", "0000", "ABCDEF01", "", "root", "0193f000-0000-7000-8000-000000000001"]
    ),
    st.text(max_size=3),
)


@given(st.lists(ids, max_size=40))
def test_an_id_names_the_first_row_that_has_it(drawn: list[str]) -> None:
    heads = Heads()
    for entry_id in drawn:
        heads.append(entry_id, len(heads) - 1, Kind.USER)
    assert [heads.id_of(row) for row in range(len(heads))] == drawn
    assert heads.ids_of(list(range(len(heads)))) == drawn
    for row, entry_id in enumerate(drawn):
        first = drawn.index(entry_id)
        assert heads.row_of(entry_id) == first
        assert heads.is_shadowed(row) == (row != first)
        assert heads.parents[row] == (row - 1 if row == first else -1)
    assert heads.last_row() == (drawn.index(drawn[-1]) if drawn else -1)


@given(st.lists(ids, max_size=40), st.integers(0, 40), st.lists(ids, max_size=9))
def test_sorted_ids_change_no_answer(drawn: list[str], at: int, asked: list[str]) -> None:
    plain, quick = Heads(), Heads()
    for place, entry_id in enumerate(drawn):
        if place == at:
            quick.sort_ids()
        plain.append(entry_id, -1, Kind.USER)
        quick.append(entry_id, -1, Kind.USER)
    assert quick.columns() == plain.columns()
    assert quick.unsorted_rows == (len(drawn) - at if at < len(drawn) else len(drawn))
    assert [quick.row_of(each) for each in drawn + asked] == [
        plain.row_of(each) for each in drawn + asked
    ]


def test_many_ids_are_sorted_in_blocks() -> None:
    heads = Heads()
    count = BLOCK_ROWS * 2 + 10
    spread = array("I", [number * 2_654_435_761 % 2**32 for number in range(count)])
    heads.extend(Columns(spread.tobytes(), array("i", [-1]) * count, bytes(count), {}))
    heads.sort_ids()
    heads.append("ffffff00", -1, Kind.USER)
    heads.sort_ids()
    assert heads.unsorted_rows == 0
    for row in (0, BLOCK_ROWS - 1, BLOCK_ROWS, count - 1, count):
        assert heads.row_of(heads.id_of(row)) == row
    assert heads.row_of("ffffff01") is None
    heads.truncate(5)
    assert (heads.row_of("ffffff00"), heads.unsorted_rows) == (None, 5)


@given(st.lists(ids, max_size=30), st.integers(0, 30))
def test_rows_taken_back_were_never_there(drawn: list[str], kept: int) -> None:
    kept = min(kept, len(drawn))
    heads, short = Heads(), Heads()
    for entry_id in drawn:
        heads.append(entry_id, -1, Kind.USER)
    for entry_id in drawn[:kept]:
        short.append(entry_id, -1, Kind.USER)
    heads.truncate(kept)
    assert heads.columns() == short.columns()
    assert [heads.row_of(entry_id) for entry_id in drawn] == [short.row_of(each) for each in drawn]


def test_an_id_is_found_only_where_a_row_begins() -> None:
    heads = Heads()
    heads.append("11223344", -1, Kind.USER)
    heads.append("55667788", 0, Kind.USER)
    assert heads.row_of("33445566") is None
    assert heads.row_of("55667788") == 1


def test_an_id_of_zeros_is_no_row_with_another_kind_of_id() -> None:
    heads = Heads()
    heads.append("not-hex", -1, Kind.USER)
    assert heads.row_of("00000000") is None
    heads.append("00000000", 0, Kind.USER)
    assert heads.row_of("00000000") == 1


@pytest.mark.parametrize("parent", [-2, 1, 5])
def test_a_parent_is_a_row_that_is_there(parent: int) -> None:
    heads = Heads()
    heads.append("00000001", -1, Kind.USER)
    with pytest.raises(IndexError):
        heads.append("00000002", parent, Kind.USER)
    assert len(heads) == 1


def test_rows_of_another_session_are_added_as_one_path() -> None:
    source, target = Heads(), Heads()
    for entry_id, parent in (("0000000a", -1), ("odd", 0), ("0000000c", 0), ("0000000d", 2)):
        source.append(entry_id, parent, Kind.ASSISTANT)
    target.append("00000001", -1, Kind.USER)
    assert target.extend_path(source, 1, 4) == range(1, 4)
    assert [target.id_of(row) for row in range(4)] == ["00000001", "odd", "0000000c", "0000000d"]
    assert list(target.parents) == [-1, 0, 1, 2]
    assert target.row_of("odd") == 1


@given(st.lists(st.integers(-1, 14), min_size=1, max_size=15))
def test_every_walk_up_ends_after_circles_are_cut(drawn: list[int]) -> None:
    parents = array(
        "i", [-1 if at in (row,) or at >= len(drawn) else at for row, at in enumerate(drawn)]
    )
    before = list(parents)
    cut = cut_circles(parents, 0, [row for row, at in enumerate(parents) if at > row])
    for row in range(len(parents)):
        walked = [row]
        while (above := parents[walked[-1]]) != -1:
            walked.append(above)
            assert len(walked) <= len(parents)
    assert [row for row, at in enumerate(parents) if at != before[row]] == sorted(cut)


def test_a_hundred_thousand_rows_take_less_than_a_megabyte() -> None:
    heads = Heads()
    for number in range(1000):
        heads.append(f"{number:08x}", number - 1, Kind.USER)
    columns = heads.columns()
    held = len(columns.ids) + columns.parents.itemsize * len(columns.parents) + len(columns.kinds)
    assert held == 9 * 1000


@given(
    st.lists(st.sampled_from((Kind.USER, Kind.ASSISTANT, Kind.LABEL)), max_size=40), st.randoms()
)
def test_rows_of_certain_kinds_are_found_among_some(kinds: list[Kind], random: Random) -> None:
    heads = Heads()
    for row, kind in enumerate(kinds):
        heads.append(f"{row:08x}", row - 1, kind)
    some = random.sample(range(len(kinds)), len(kinds) // 2)
    for rows in (some, sorted(some)):
        assert heads.kinds_of(rows) == bytes(kinds[row] for row in rows)
        assert heads.of_kinds(rows, frozenset({Kind.USER, Kind.LABEL})) == [
            row for row in rows if kinds[row] != Kind.ASSISTANT
        ]
