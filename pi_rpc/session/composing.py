"""The lines of new entries."""

from collections.abc import Sequence

from pi_rpc.core.codec import encode
from pi_rpc.core.entries import Body, entry_object
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.clock import Ids
from pi_rpc.core.ports.store import NewLine
from pi_rpc.core.tree import DEAD_END_KINDS, Tree


def composed(
    tree: Tree, bodies: Sequence[Body], parent: int, ids: Ids, now: str
) -> tuple[list[NewLine], list[JsonObject]]:
    """Entries that chain below a row, as lines and as the objects in them.

    Nothing hangs below a mark that is a dead end: what follows it chains past it.
    """
    lines: list[NewLine] = []
    objects: list[JsonObject] = []
    used: set[str] = set()
    next_row = len(tree)
    parent_id = tree.id_or_none(parent)
    for body in bodies:
        entry_id = _fresh_id(tree, ids, used)
        stored = entry_object(body, entry_id, parent_id, now)
        lines.append(NewLine(encode(stored), entry_id, parent, body.kind))
        objects.append(stored)
        if body.kind not in DEAD_END_KINDS:
            parent, parent_id = next_row, entry_id
        next_row += 1
    return lines, objects


def _fresh_id(tree: Tree, ids: Ids, used: set[str]) -> str:
    entry_id = ids.entry_id()
    while entry_id in used or tree.heads.row_of(entry_id) is not None:
        entry_id = ids.entry_id()
    used.add(entry_id)
    return entry_id
