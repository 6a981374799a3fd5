"""A tree, or a part of it, row by row from any place on; parents come before their children."""

from collections.abc import Iterator
from typing import NamedTuple

from pi_rpc.core.tree import ROOT, Tree


class Place(NamedTuple):
    """A row, and how far below the top it stands."""

    row: int
    level: int


def outline(
    tree: Tree, top: int, depth: int | None = None, after: Place | None = None
) -> Iterator[Place]:
    """The rows below `top` and itself, each followed by what hangs below it; of ROOT all rows.

    `depth`: at most so many levels below the first. `after`: only what follows this place. Going
    on costs what is gone through, and at the end of a branch the way back up to where it parts.
    """
    place = _first(tree, top) if after is None else _following(tree, top, depth, after)
    while place is not None:
        yield place
        place = _following(tree, top, depth, place)


def _first(tree: Tree, top: int) -> Place | None:
    row = tree.below.first(ROOT) if top == ROOT else top
    return None if row == ROOT else Place(row, 0)


def _following(tree: Tree, top: int, depth: int | None, place: Place) -> Place | None:
    row, level = place
    if depth is None or level < depth:
        child = tree.below.first(row)
        if child != ROOT:
            return Place(child, level + 1)
    parents = tree.heads.parents
    while row not in (top, ROOT):
        beside = tree.below.next(row)
        if beside != ROOT:
            return Place(beside, level)
        row, level = parents[row], level - 1
    return None
