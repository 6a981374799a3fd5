"""Plans for leaving a path: branch in place, fork to a new session, clone to a new session.

A plan says where the leaf goes, which entries go along and what is handed back to the caller. It
moves nothing and writes nothing; `session/` carries it out.

Promises
- A fork before a user message ends just above it; a copy at an entry ends with it.
- Copied entries form one unbroken path, and their context is the context of the source at that
  point.
- The same tree and the same arguments give the same plan.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import sub
from typing import Literal

import msgspec

from pi_rpc.core.entries import FORK, Body, Kind, custom, label, session_info
from pi_rpc.core.errors import Refused
from pi_rpc.core.messages import JsonObject, text_of
from pi_rpc.core.tree import ROOT, Tree, name_in

Position = Literal["before", "at"]

LEFT_BEHIND = frozenset({Kind.LABEL, Kind.CURSOR, Kind.FORK})
"""Entries a copy drops from the path.

Labels are made anew, marks of the old file mean nothing there.
"""


class NavigationPlan(msgspec.Struct, frozen=True):
    """Where the leaf goes inside its session."""

    leaf_row: int
    draft: str | None
    """The words of a user message that was chosen, for the caller's editor."""


def plan_navigation(tree: Tree, target_row: int) -> NavigationPlan:
    """Where choosing `target_row` leads: above what a user said, else onto the entry itself."""
    if target_row == ROOT:
        return NavigationPlan(ROOT, None)
    draft = words_of(tree, target_row)
    if draft is None:
        return NavigationPlan(target_row, None)
    return NavigationPlan(tree.parent(target_row), draft)


def words_of(tree: Tree, row: int) -> str | None:
    """The words of a user message or custom message, None for any other entry."""
    kind = tree.kind(row)
    if kind == Kind.USER:
        return text_of(tree.entry(row).message or {})
    if kind == Kind.CUSTOM_MESSAGE:
        return text_of(tree.entry(row).object)
    return None


class Kept(msgspec.Struct, frozen=True):
    """Rows first..last-1 of the source, taken over byte for byte."""

    first: int
    last: int


class Rewritten(msgspec.Struct, frozen=True):
    """A row of the source whose object must change on the way."""

    row: int
    object: JsonObject


class Made(msgspec.Struct, frozen=True):
    """An entry the copy has and the source has not."""

    body: Body
    timestamp: str | None
    """The time it bears; None for now."""


class CopyPlan(msgspec.Struct, frozen=True):
    """What a new session takes with it."""

    pieces: Sequence[Kept | Rewritten]
    """In order; each entry hangs below the one before it."""
    made: Sequence[Made]
    """Chained below the copied leaf, in order."""
    leaf_row: int
    """The source row the copy ends at, ROOT for an empty one."""
    draft: str | None


def plan_copy(tree: Tree, row: int, position: Position, source_id: str) -> CopyPlan:
    """Plan a new session that ends before the user message `row`, or at it.

    Raises Refused `fork_needs_user_message` when the position is before and it is no user message.
    """
    draft = None
    if position == "before":
        if tree.kind(row) != Kind.USER:
            raise Refused(
                "fork_needs_user_message",
                "a fork before an entry needs a user message",
                entryId=tree.heads.id_of(row),
            )
        draft = words_of(tree, row)
        row = tree.parent(row)
    path = tree.path(row)
    kinds = tree.heads.kinds_of(path)
    kept = path
    if any(kind in kinds for kind in LEFT_BEHIND):
        kept = [step for step, kind in zip(path, kinds, strict=True) if kind not in LEFT_BEHIND]
    return CopyPlan(
        pieces=tuple(_pieces(kept, _moved_boundaries(tree, path, kept), tree)),
        made=tuple(_made(tree, kept, row, source_id)),
        leaf_row=row,
        draft=draft,
    )


def _pieces(kept: list[int], moved: dict[int, str], tree: Tree) -> Iterator[Kept | Rewritten]:
    # Most paths are a few long runs of rows, so only the places where a run ends are looked at.
    steps = enumerate(map(sub, kept[1:], kept), start=1)
    starts = {place for place, step in steps if step != 1}
    if moved:
        starts |= {
            place + after for place, row in enumerate(kept) if row in moved for after in (0, 1)
        }
    bounds = [0, *sorted(starts - {0, len(kept)}), len(kept)]
    for begin, end in pairwise(bounds):
        if begin == end:
            continue
        row = kept[begin]
        if row in moved:
            yield Rewritten(row, tree.entry(row).object | {"firstKeptEntryId": moved[row]})
        else:
            yield Kept(row, row + end - begin)


def _moved_boundaries(tree: Tree, path: list[int], kept: list[int]) -> dict[int, str]:
    """Compactions whose kept boundary was dropped, and the entry that takes its place."""
    if len(path) == len(kept):
        return {}
    kinds, id_of = tree.heads.kinds, tree.heads.id_of
    stands_in: dict[str, str] = {}
    next_kept: int | None = None
    for row in reversed(path):
        if kinds[row] not in LEFT_BEHIND:
            next_kept = row
        elif next_kept is not None:
            stands_in[id_of(row)] = id_of(next_kept)
    moved = {}
    for row in kept:
        if kinds[row] == Kind.COMPACTION:
            boundary = tree.entry(row).object.get("firstKeptEntryId")
            if isinstance(boundary, str) and boundary in stands_in:
                moved[row] = stands_in[boundary]
    return moved


def _made(tree: Tree, kept: list[int], leaf_row: int, source_id: str) -> Iterator[Made]:
    labels = tree.labels()
    on_path = set(kept) if labels else set()
    for target_id, label_row in labels.items():
        target_row = tree.heads.row_of(target_id)
        if target_row is not None and target_row in on_path:
            entry = tree.entry(label_row)
            yield Made(label(target_id, entry.object["label"]), entry.timestamp or None)
    name = tree.name()
    last = tree.heads.kinds_of(kept).rfind(Kind.SESSION_INFO)
    if name != (name_in(tree.entry(kept[last]).object) if last >= 0 else None):
        yield Made(session_info(name or ""), None)
    if kept:
        data = {"v": 1, "sessionId": source_id, "entryId": tree.id_or_none(leaf_row)}
        yield Made(custom(FORK, data), None)


def fork_points(tree: Tree) -> Iterator[tuple[int, str]]:
    """User messages of every branch in file order, with their words; empty ones are left out."""
    for row in tree.rows_of_kind(Kind.USER):
        text = text_of(tree.entry(row).message or {})
        if text:
            yield row, text
