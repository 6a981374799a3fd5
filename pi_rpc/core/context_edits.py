"""Plans for editing the context: other words for an entry, or none, without touching the history.

Promises
- A plan is refused before anything is written, and for the first rule that it breaks.
- A planned omission leaves no call without its results and no result without its call, unless the
  caller said that it may.
"""

from collections.abc import Iterable, Sequence

from pi_rpc.core.context_messages import (
    EDITABLE_KINDS,
    edited,
    fitted,
    is_replacement,
    messages_of_entry,
)
from pi_rpc.core.entries import KIND_OF_ROLE, Body, Kind, context_edit
from pi_rpc.core.errors import Invalid, Refused
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.pairing import pairing_of, with_partners
from pi_rpc.core.policy import OURS
from pi_rpc.core.projection import Projection, project
from pi_rpc.core.tree import Tree

ROLE_OF_KIND = {kind: role for role, kind in KIND_OF_ROLE.items()} | {Kind.CUSTOM_MESSAGE: "custom"}
"""The role an editable entry speaks in."""


def plan_context_edit(
    tree: Tree,
    leaf_row: int,
    target_ids: Sequence[str],
    replacement: JsonObject | None,
    pairs: bool = True,
) -> list[Body]:
    """The entries that give the targets another content, or omit them for None, in path order.

    With `pairs` an omission takes along the results of a call and the call of a result. Raises, in
    this order, Invalid `bad_replacement` and `no_target`, Missing `entry_not_found`, Refused
    `not_on_path`, `not_editable` and, with `pairs`, `would_orphan_result`.
    """
    if not is_replacement(replacement):
        raise Invalid("bad_replacement", "a replacement is null or an object with content")
    if not target_ids:
        raise Invalid("no_target", "no entry to edit is named")
    targets = [tree.row_of(target_id) for target_id in dict.fromkeys(target_ids)]
    _check_on_path(tree, leaf_row, targets)
    for row in targets:
        if tree.kind(row) not in EDITABLE_KINDS:
            entry_id = tree.heads.id_of(row)
            raise Refused("not_editable", "only words of a turn may be edited", entryId=entry_id)
    projection = project(tree, leaf_row, OURS)
    planned = set(targets)
    if pairs:
        if replacement is None:
            planned = _whole_pairs(projection, planned)
        _check_pairs(projection, planned, replacement)
    selected = [row for row in projection.selection.rows if row in planned]
    # A target from before the last compaction says nothing now, but may after a navigation.
    ordered = sorted(planned.difference(selected)) + selected
    return [
        context_edit(tree.heads.id_of(row), _fitting(tree.kind(row), replacement))
        for row in ordered
    ]


def _check_on_path(tree: Tree, leaf_row: int, targets: list[int]) -> None:
    sought = set(targets)
    for row in tree.upward(leaf_row):
        sought.discard(row)
        if not sought:
            return
    for row in targets:
        if row in sought:
            entry_id = tree.heads.id_of(row)
            raise Refused("not_on_path", "the entry is on another branch", entryId=entry_id)


def _whole_pairs(projection: Projection, rows: set[int]) -> set[int]:
    said = projection.pairs()
    pairing = pairing_of(message for _, _, message in said)
    pairs = ((said[result][1], said[asking][1]) for result, asking in pairing.asked_at.items())
    return with_partners(rows, pairs)


def _check_pairs(projection: Projection, planned: set[int], replacement: JsonObject | None) -> None:
    tree = projection.tree

    def after(row: int) -> tuple[JsonObject, ...]:
        if row not in planned:
            return projection.messages_of(row)
        own = messages_of_entry(tree.entry(row), is_checkpoint=True)
        return edited(own, replacement)

    rows = projection.selection.rows
    before = _orphans((row, message) for row in rows for message in projection.messages_of(row))
    made = _orphans((row, message) for row in rows for message in after(row)) - before
    if made:
        ids = [tree.heads.id_of(row) for row in sorted(made)]
        raise Refused(
            "would_orphan_result", "a result would be left without its call", entryIds=ids
        )


def _orphans(said: Iterable[tuple[int, JsonObject]]) -> set[int]:
    told = list(said)
    return {told[place][0] for place in pairing_of(message for _, message in told).orphans}


def _fitting(kind: Kind, replacement: JsonObject | None) -> JsonObject | None:
    if replacement is None:
        return None
    return {"content": fitted(ROLE_OF_KIND[kind], replacement["content"])}
