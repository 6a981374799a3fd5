"""Differences of two texts, as a patch for programs and as a display for people; pure.

Lines end with a newline and nothing else, so a carriage return is part of its line: a patch keeps
it, the display hides it.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

import msgspec

from pi_rpc.core.messages import JsonObject

CONTEXT_LINES = 4
"""Unchanged lines shown on each side of a change."""
COMPARED_LINES_MAX = 2000
"""Longest stretch compared line by line; the time grows with its square."""
DIFF_BYTES_MAX = 256 * 1024
"""Largest diff that is kept; beyond it nobody reads, and every session file would carry it."""


class Change(msgspec.Struct, frozen=True):
    """Lines `old_start..old_end-1` became lines `new_start..new_end-1`, counted from 0."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def lines_of(text: str) -> list[str]:
    """The lines, each with its newline; the last may have none."""
    lines = text.split("\n")
    kept = [f"{line}\n" for line in lines[:-1]]
    return [*kept, lines[-1]] if lines[-1] else kept


def changes_between(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Where two texts differ, in order."""
    start, old_end, new_end = 0, len(old), len(new)
    while start < min(old_end, new_end) and old[start] == new[start]:
        start += 1
    while min(old_end, new_end) > start and old[old_end - 1] == new[new_end - 1]:
        old_end, new_end = old_end - 1, new_end - 1
    if start == old_end and start == new_end:
        return []
    if max(old_end, new_end) - start > COMPARED_LINES_MAX:
        return [Change(start, old_end, start, new_end)]
    # Common lines are no anchors (autojunk): comparing many equal lines would take cubic time.
    matcher = SequenceMatcher(None, old[start:old_end], new[start:new_end])
    return [
        Change(start + old_from, start + old_to, start + new_from, start + new_to)
        for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes()
        if tag != "equal"
    ]


def diff_details(path: str, old: Sequence[str], new: Sequence[str]) -> JsonObject:
    """`patch`, `diff` and `firstChangedLine`; `diffOmitted` for the first two if too large."""
    return details_of(path, old, new, changes_between(old, new))


def details_of(
    path: str, old: Sequence[str], new: Sequence[str], changes: Sequence[Change]
) -> JsonObject:
    """The same, for changes that are known already."""
    if not changes:
        return {}
    first = {"firstChangedLine": changes[0].new_start + 1}
    size = 0
    for change in changes:
        for line in _surroundings(old, new, change):
            size += len(line)
            if size > DIFF_BYTES_MAX:
                return {**first, "diffOmitted": True}
    return {"patch": _patch(path, old, new, changes), "diff": _display(old, new, changes), **first}


def _surroundings(old: Sequence[str], new: Sequence[str], change: Change) -> Iterator[str]:
    yield from old[max(0, change.old_start - CONTEXT_LINES) : change.old_end + CONTEXT_LINES]
    yield from new[change.new_start : change.new_end]


def _hunks(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Changes whose contexts meet stand together."""
    hunk: list[Change] = []
    for change in changes:
        if hunk and change.old_start - hunk[-1].old_end > 2 * CONTEXT_LINES:
            yield hunk
            hunk = []
        hunk.append(change)
    yield hunk


class _Line(msgspec.Struct, frozen=True):
    sign: str
    number: int
    text: str


def _lines_shown(old: Sequence[str], new: Sequence[str], hunk: Sequence[Change]) -> Iterator[_Line]:
    """Removed and unchanged lines count in the old text, added ones in the new."""
    at = max(0, hunk[0].old_start - CONTEXT_LINES)
    end = min(len(old), hunk[-1].old_end + CONTEXT_LINES)
    for change in hunk:
        yield from (_Line(" ", i + 1, old[i]) for i in range(at, change.old_start))
        yield from (_Line("-", i + 1, old[i]) for i in range(change.old_start, change.old_end))
        yield from (_Line("+", i + 1, new[i]) for i in range(change.new_start, change.new_end))
        at = change.old_end
    yield from (_Line(" ", i + 1, old[i]) for i in range(at, end))


def _patch(path: str, old: Sequence[str], new: Sequence[str], changes: Sequence[Change]) -> str:
    parts = [f"--- {path}\n+++ {path}\n"]
    for hunk in _hunks(changes):
        lines = list(_lines_shown(old, new, hunk))
        removed = sum(line.sign != "+" for line in lines)
        added = sum(line.sign != "-" for line in lines)
        lead = min(CONTEXT_LINES, hunk[0].old_start)
        old_range = _range(hunk[0].old_start - lead, removed)
        new_range = _range(hunk[0].new_start - lead, added)
        parts.append(f"@@ -{old_range} +{new_range} @@\n")
        for line in lines:
            end = "" if line.text.endswith("\n") else "\n\\ No newline at end of file\n"
            parts.append(f"{line.sign}{line.text}{end}")
    return "".join(parts)


def _range(start: int, count: int) -> str:
    # An empty range is named by the line before it.
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def _display(old: Sequence[str], new: Sequence[str], changes: Sequence[Change]) -> str:
    width = len(str(max(len(old), len(new))))
    shown: list[str] = []
    for hunk in _hunks(changes):
        if shown:
            shown.append(f" {' ' * width} ...")
        shown += _displayed(_lines_shown(old, new, hunk), width)
    return "\n".join(shown)


def _displayed(lines: Iterable[_Line], width: int) -> Iterator[str]:
    for line in lines:
        text = line.text.removesuffix("\n").removesuffix("\r")
        yield f"{line.sign}{line.number:>{width}} {text}"
