"""What rows of a context say, gone through in bulk: for a summariser, or for the files they name.

Promises
- It is read anew each time, a moment's work at a time; not all of it is in memory at once.
- Lines that nobody changed say the same as their messages; they are only not decoded whole.
"""

from collections.abc import Generator, Iterator, Sequence
from itertools import repeat

from pi_rpc.core.entries import Kind
from pi_rpc.core.file_lists import FileCount, FileLists
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.projection import SILENT_KINDS, Projection
from pi_rpc.core.transcript import parts_of, parts_of_lines

EVER_TOLD = frozenset(Kind) - SILENT_KINDS - {Kind.SYSTEM}
"""Kinds that a summariser may be told of: others say nothing, or a checkpoint says it."""

MOMENT_ROWS = 64
"""Rows that are decoded in a moment."""


class Told:
    """What some rows of a projection say, in order; system messages are left out."""

    def __init__(self, projection: Projection, rows: list[int]) -> None:
        self._projection = projection
        self._rows = projection.tree.heads.of_kinds(rows, EVER_TOLD)
        self._files: FileLists | None = None

    def __iter__(self) -> Iterator[JsonObject]:
        """The messages."""
        for row in self._rows:
            yield from self._messages(row)

    def newest_first(self) -> Iterator[JsonObject | None]:
        """The messages from the last one on, as far as somebody asks; None after each moment."""
        for count, row in enumerate(reversed(self._rows), 1):
            yield from self._messages(row)
            if count % MOMENT_ROWS == 0:
                yield None

    def parts(self) -> Iterator[list[str]]:
        """The same as a summariser is told it: in stretches, each a moment's work."""
        files = FileCount()
        for rows, lines in self._blocks():
            found: list[str] = []
            said = repeat(None) if lines is None else parts_of_lines(lines, files)
            for row, parts in zip(rows, said, strict=False):
                if parts is not None:
                    found += parts
                    continue
                messages = list(self._messages(row))
                files.add_messages(messages)
                for message in messages:
                    found += parts_of(message)
            yield found
        self._files = files.lists()

    def files(self, counts_failed: bool = False) -> Generator[None, None, FileLists]:
        """Which files its calls name; where a summariser was told all of it, known from that."""
        if self._files is not None and not counts_failed:
            return self._files
        files = FileCount(counts_failed)
        for rows, lines in self._blocks():
            if lines is None or not files.add_lines(lines):
                for row in rows:
                    files.add_messages(self._messages(row))
            yield
        return files.lists()

    def _blocks(self) -> Iterator[tuple[Sequence[int], bytes | None]]:
        """Rows and their lines; None for lines where they are not what the context says."""
        edits = self._projection.selection.edits.keys()
        for rows, lines in self._projection.tree.blocks(self._rows):
            yield rows, lines if edits.isdisjoint(rows) else None

    def _messages(self, row: int) -> Iterator[JsonObject]:
        said = self._projection.messages_of(row)
        return (message for message in said if message.get("role") != "system")
