"""Pins: entries of the path whose words stand in every summary as they are.

A pin is an entry of ours on the path, so it is branch-relative and goes along with a fork. Words
that are pinned without an entry of their own are first given one. When a compaction summarises a
pinned entry, its words are put behind the notes; another program reads them as part of the summary.

Promises
- Whatever compacts, pinned words are in the context after it: kept, or behind the notes.
- Words that an edit took away or changed are pinned as the edit left them.
"""

from collections.abc import Iterable, Sequence

import msgspec

from pi_rpc.core.context_messages import EDITABLE_KINDS, edited, messages_of_entry
from pi_rpc.core.entries import PIN, Body, Kind, custom
from pi_rpc.core.errors import Refused
from pi_rpc.core.messages import text_of
from pi_rpc.core.policy import Policy
from pi_rpc.core.projection import Projection
from pi_rpc.core.selection import entry_or_none, note_edit
from pi_rpc.core.summary import PinnedWords
from pi_rpc.core.tokens import tokens_of_units
from pi_rpc.core.tree import Tree

PINNED_TOKENS_MAX = 8000
"""Estimated tokens that may be pinned on one path: they are in every request."""

PINNED_TYPE = "pi_rpc.pinned"
"""The custom message that gives words an entry of their own."""


class Pin(msgspec.Struct, frozen=True):
    """An entry that is pinned, and its words at a leaf."""

    entry_id: str
    row: int
    text: str


def pin(entry_id: str, pinned: bool = True) -> Body:
    """The mark that pins an entry, or lets it go."""
    return custom(PIN, {"v": 1, "entryId": entry_id, "pinned": pinned})


def pinned_message(text: str) -> Body:
    """An entry for words to pin that the model is to see from here on."""
    fields = {"customType": PINNED_TYPE, "content": text, "display": True}
    return Body("custom_message", fields)


def pins_at(tree: Tree, leaf_row: int) -> list[Pin]:
    """What is pinned on the path of a leaf, in path order; entries left without words say "".

    Costs nothing in a session without pins.
    """
    if tree.heads.kinds.find(Kind.PIN) == -1:
        return []
    path = tree.path(leaf_row)
    kinds = tree.heads.kinds
    pinned: dict[str, bool] = {}
    edits: dict[int, int] = {}
    for row in path:
        if kinds[row] == Kind.PIN:
            entry = entry_or_none(tree, row)
            data = entry.object.get("data") if entry else None
            if isinstance(data, dict) and isinstance(data.get("entryId"), str):
                pinned[data["entryId"]] = data.get("pinned") is not False
        elif kinds[row] == Kind.CONTEXT_EDIT:
            note_edit(tree, row, edits)
    on_path = set(path)
    rows = (tree.heads.row_of(entry_id) for entry_id, holds in pinned.items() if holds)
    found = sorted(row for row in rows if row is not None and row in on_path)
    return [Pin(tree.heads.id_of(row), row, _words(tree, row, edits.get(row))) for row in found]


def _words(tree: Tree, row: int, edit_row: int | None) -> str:
    entry = entry_or_none(tree, row)
    said = messages_of_entry(entry, is_checkpoint=False) if entry else ()
    if edit_row is not None:
        said = edited(said, tree.entry(edit_row).object["replacement"])
    return "\n".join(text_of(message) for message in said).strip()


def words_to_carry(pins: Iterable[Pin], kept: Iterable[int]) -> list[PinnedWords]:
    """Pinned words a summary must carry: those of entries that are not kept themselves."""
    stays = set(kept)
    return [
        PinnedWords(one.entry_id, one.text) for one in pins if one.text and one.row not in stays
    ]


def check_pin(projection: Projection, row: int) -> None:
    """Raises Refused when an entry cannot be pinned at this leaf.

    `not_on_path`, `not_pinnable` for an entry without words of a turn, `pins_too_large`.
    """
    tree, leaf_row = projection.tree, projection.leaf_row
    entry_id = tree.heads.id_of(row)
    if not tree.has_ancestor(leaf_row, row):
        raise Refused("not_on_path", "the entry is on another branch", entryId=entry_id)
    if tree.kind(row) not in EDITABLE_KINDS:
        raise Refused("not_pinnable", "only words of a turn may be pinned", entryId=entry_id)
    others = [one.text for one in pins_at(tree, leaf_row) if one.row != row]
    check_size([*others, _words(tree, row, None)], projection.policy)


def check_size(texts: Sequence[str], policy: Policy) -> None:
    """Raises Refused `pins_too_large` when so much may not be pinned."""
    tokens = sum(tokens_of_units(policy.text_units(text)) for text in texts)
    if tokens > PINNED_TOKENS_MAX:
        raise Refused(
            "pins_too_large",
            "so much would be pinned that little else fits",
            tokens=tokens,
            limit=PINNED_TOKENS_MAX,
        )
