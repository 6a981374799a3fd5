"""What listeners of a session know of its file."""

from array import array
from bisect import bisect_right


class Told:
    """After which event which row was the last that those knew of who heard it."""

    def __init__(self, row: int) -> None:
        self._seqs = array("Q", [0])
        self._rows = array("i", [row])

    def add(self, seq: int, row: int) -> None:
        """The event with this number told of a row."""
        self._seqs.append(seq)
        self._rows.append(row)

    def row_at(self, seq: int) -> int:
        """The last row known to who heard the events up to a number, -1 for none."""
        return self._rows[bisect_right(self._seqs, seq) - 1]
