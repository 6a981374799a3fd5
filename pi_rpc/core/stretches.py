"""Rows in stretches: those that follow each other, taken together.

A path goes through the file mostly row by row, so what columns say of it can be cut out in a few
pieces instead of being looked up for each row.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal

ASCENDING_MAX = 512
"""So many rows are compared at once."""

SINGLY_ROWS = 32
"""So many rows are looked at one by one before more are expected to follow."""

_ORDER: Literal["little", "big"] = "little" if array("i", (1,)).tobytes()[0] else "big"
_STEPS = int.from_bytes(array("i", range(ASCENDING_MAX)).tobytes(), _ORDER)
_ONES = int.from_bytes(array("i", [1] * ASCENDING_MAX).tobytes(), _ORDER)


def ascending(start: int, count: int) -> "array[int]":
    """So many numbers from `start` on, at most ASCENDING_MAX."""
    if start < 0:
        return array("i", range(start, start + count))
    # As one long number it takes a tenth of the time, and millions of rows pass here.
    numbers = (_STEPS + start * _ONES).to_bytes(4 * ASCENDING_MAX, _ORDER)
    return array("i", numbers)[:count]


def climb(parents: "array[int]", row: int, above: int) -> Iterator[range]:
    """The path from below `above` (an ancestor, or -1) to a row: its stretches, the lowest first.

    In a stretch each row hangs below the one before it.
    """
    last, singly = row, 0
    while row != above:
        if singly == SINGLY_ROWS:
            while (first := row - ASCENDING_MAX) >= above and parents[
                first + 1 : row + 1
            ] == ascending(first, ASCENDING_MAX):
                row = first
            # The gap is nearer than that, or the end is.
            singly = SINGLY_ROWS - ASCENDING_MAX
            continue
        parent = parents[row]
        if parent == row - 1:
            singly += 1
        else:
            yield range(row, last + 1)
            last, singly = parent, 0
        row = parent
    if last != above:
        yield range(above + 1, last + 1)


def stretches(rows: list[int]) -> Iterator[range]:
    """Distinct rows as ranges without a gap, in their order.

    Of rows that do not ascend, as in files other programs reordered, each is a range by itself.
    """

    def ahead(place: int) -> int:
        return rows[place] - place

    if rows != sorted(rows):
        yield from (range(row, row + 1) for row in rows)
        return
    start, end = 0, len(rows)
    while start < end:
        first, step = start, 1
        # In ever longer steps while there is no gap, then closer to where it is.
        while start + step < end and ahead(start + step) == ahead(first):
            start += step
            step *= 2
        beyond = range(start + 1, min(start + step, end))
        start += 1 + bisect_right(beyond, ahead(first), key=ahead)
        yield range(rows[first], rows[first] + start - first)
