"""Any part of a tree is told from any place on, parents before their children."""

from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.outline import outline
from pi_rpc.core.tree import ROOT, Tree
from tests.core.trees import tree_of, user

_trees = st.lists(st.integers(0, 20), max_size=20)
"""For each entry how far above it its parent stands, nothing above it for a root."""


def grown(steps: list[int]) -> Tree:
    return tree_of(
        [
            user(f"{row:08x}") | {"parentId": f"{row - step:08x}" if 0 < step <= row else None}
            for row, step in enumerate(steps)
        ]
    )


@given(_trees, st.integers(-1, 19), st.one_of(st.none(), st.integers(0, 4)))
def test_all_that_hangs_there_is_told_once_and_goes_on_from_any_place(
    steps: list[int], top: int, depth: int | None
) -> None:
    tree = grown(steps)
    top = top if top < len(steps) else ROOT
    places = list(outline(tree, top, depth))
    levels = {}
    for row in range(len(tree)):
        above = list(tree.upward(row))
        if top == ROOT or top in above:
            levels[row] = len(above) - 1 if top == ROOT else above.index(top)
    wanted = {row: level for row, level in levels.items() if depth is None or level <= depth}
    assert {place.row: place.level for place in places} == wanted
    assert len(places) == len(wanted)
    told = [place.row for place in places]
    for place in places:
        parent = tree.parent(place.row)
        assert parent not in wanted or told.index(parent) < told.index(place.row)
        assert list(outline(tree, top, depth, place)) == places[places.index(place) + 1 :]
