"""Rows in stretches."""

from array import array
from itertools import chain, pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.stretches import ASCENDING_MAX, ascending, climb, stretches

some_rows = st.sets(st.integers(0, 300)).map(sorted)


@given(some_rows)
def test_ascending_rows_are_parted_at_gaps_alone(rows: list[int]) -> None:
    found = list(stretches(rows))
    assert list(chain(*found)) == rows
    assert all(one.stop < after.start for one, after in pairwise(found))


@given(some_rows.flatmap(st.permutations))
def test_rows_in_any_order_stay_in_it(rows: list[int]) -> None:
    assert list(chain(*stretches(rows))) == rows


@given(st.integers(-1, 2**31 - 1 - ASCENDING_MAX), st.integers(0, ASCENDING_MAX))
def test_numbers_ascend_from_any_start(start: int, count: int) -> None:
    assert ascending(start, count).tolist() == list(range(start, start + count))


def walked(parents: "array[int]", row: int, above: int) -> list[int]:
    """The same path, row by row."""
    rows = []
    while row != above:
        rows.append(row)
        row = parents[row]
    return rows[::-1]


@given(st.randoms(use_true_random=False), st.sampled_from((0, 3, 60, 700)), st.booleans())
def test_a_path_is_climbed_in_the_stretches_it_has(
    random: Random, branch_every: int, reordered: bool
) -> None:
    parents = array("i")
    for row in range(3_000):
        parts = branch_every and random.randrange(branch_every) == 0
        parents.append(random.randrange(-1, row) if parts else row - 1)
    if reordered:
        # A root far down in the file, and what hung from the first one hangs below it.
        parents[0], parents[2_999] = 2_999, -1
    leaf = random.randrange(2_999)
    path = walked(parents, leaf, -1)
    for above in (-1, random.choice(path), leaf, path[0]):
        upward = list(climb(parents, leaf, above))
        assert list(chain(*reversed(upward))) == walked(parents, leaf, above)
