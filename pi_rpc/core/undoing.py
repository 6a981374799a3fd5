"""A compaction taken back: the context without it, and what came after it kept.

What was said after the compaction is said again on a branch that parts just above it. The copies
say what the originals say in the context; they bear no usage, for what was used is counted once,
and what a provider counted was another context.

Promises
- The context after it is the context before the compaction, followed by what came after.
- Nothing is planned that would not fit.
"""

from collections.abc import Sequence

import msgspec

from pi_rpc.core.entries import MESSAGE_KINDS, Body, Kind
from pi_rpc.core.errors import Missing, Refused
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.pins import pin
from pi_rpc.core.projection import Projection, project
from pi_rpc.core.tree import ROOT, Tree

COPIED_KINDS = MESSAGE_KINDS | {
    Kind.CUSTOM_MESSAGE,
    Kind.BRANCH_SUMMARY,
    Kind.MODEL_CHANGE,
    Kind.THINKING_LEVEL_CHANGE,
    Kind.CUSTOM,
    Kind.WORKSPACE,
}
"""What goes along; names and labels hold for the whole file, marks of ours name other places."""

NO_USAGE: JsonObject = {
    "input": 0,
    "output": 0,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 0,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
}
"""Zero, and not absent: other programs read it without asking whether it is there."""


class UndoPlan(msgspec.Struct, frozen=True):
    """What takes a compaction back."""

    compaction_id: str
    below_row: int
    """Where the branch parts: just above the compaction."""
    copies: list[Body]
    source_ids: list[str]
    """The entry each copy is of."""
    pins: list[tuple[str, bool]]
    """What was pinned after the compaction, or let go."""
    tokens: int
    """Estimated size of the context after it."""

    def marks(self, copy_ids: Sequence[str]) -> list[Body]:
        """The pins once more, for the copies where a copy was pinned."""
        copy_of = dict(zip(self.source_ids, copy_ids, strict=True))
        return [pin(copy_of.get(entry_id, entry_id), holds) for entry_id, holds in self.pins]


def plan_undo(projection: Projection, tokens_max: int | None) -> UndoPlan:
    """Take back the compaction a context begins with.

    Raises Missing `no_compaction` when it begins with none, Refused `undo_would_overflow` when the
    context would have more than `tokens_max` tokens.
    """
    tree, compaction_row = projection.tree, projection.selection.compaction_row
    if compaction_row == ROOT:
        raise Missing("no_compaction", "there is no compaction on the path")
    below_row = tree.parent(compaction_row)
    after = projection.selection.rows[1 + projection.selection.kept_count :]
    copied = [row for row in after if _goes_along(projection, row)]
    before = project(tree, below_row, projection.policy)
    tokens = before.estimated_tokens() + sum(projection.tokens_of(row)[1] for row in copied)
    if tokens_max is not None and tokens > tokens_max:
        raise Refused(
            "undo_would_overflow",
            "the context would not fit the model without the compaction",
            tokens=tokens,
            limit=tokens_max,
        )
    edits = _edits_of_before(projection, set(after))
    bodies = [_copy(projection, row) for row in copied]
    source_ids = [tree.heads.id_of(row) for row in [*copied, *edits]]
    bodies += [_body(tree, row, {}) for row in edits]
    return UndoPlan(
        compaction_id=tree.heads.id_of(compaction_row),
        below_row=below_row,
        copies=bodies,
        source_ids=source_ids,
        pins=_pins(tree, after),
        tokens=tokens,
    )


def _goes_along(projection: Projection, row: int) -> bool:
    kind = projection.tree.kind(row)
    if kind not in COPIED_KINDS or projection.tree.readable(row) is None:
        return False
    # What an edit took away says nothing, so nothing of it is said again.
    return row not in projection.selection.edits or bool(projection.messages_of(row))


def _edits_of_before(projection: Projection, after: set[int]) -> list[int]:
    """Edits made after the compaction of what was said before it; others are in the copies."""
    in_force = projection.selection.edits.items()
    return sorted(edit for target, edit in in_force if edit in after and target not in after)


def _copy(projection: Projection, row: int) -> Body:
    tree = projection.tree
    kind = tree.kind(row)
    if kind in MESSAGE_KINDS:
        [message] = projection.messages_of(row) or (tree.entry(row).message or {},)
        if kind == Kind.ASSISTANT:
            message = message | {"usage": NO_USAGE}
        else:
            message = {name: value for name, value in message.items() if name != "usage"}
        return _body(tree, row, {"message": message})
    if kind == Kind.CUSTOM_MESSAGE and row in projection.selection.edits:
        return _body(tree, row, {"content": projection.messages_of(row)[0]["content"]})
    return _body(tree, row, {})


def _body(tree: Tree, row: int, changes: JsonObject) -> Body:
    entry = tree.entry(row)
    own = ("type", "id", "parentId", "usage")
    fields = {name: value for name, value in entry.object.items() if name not in own}
    return Body(entry.type, fields | changes)


def _pins(tree: Tree, after: Sequence[int]) -> list[tuple[str, bool]]:
    found = []
    for row in after:
        if tree.kind(row) == Kind.PIN:
            data = tree.entry(row).object.get("data")
            if isinstance(data, dict) and isinstance(data.get("entryId"), str):
                found.append((data["entryId"], data.get("pinned") is not False))
    return found
