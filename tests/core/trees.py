"""Trees for tests: from stored objects, held in memory."""

from itertools import pairwise
from typing import Any

from pi_rpc.core.codec import encode
from pi_rpc.core.entries import kind_of
from pi_rpc.core.heads import Heads
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.tree import ROOT, Tree

TIME = "2026-01-02T03:04:05.678Z"
TIME_MS = 1767323045678


class Growing:
    """A tree and the lines below it; `add` appends as a session would."""

    def __init__(self) -> None:
        self.heads = Heads()
        self.lines: list[bytes] = []
        self.tree = Tree(self.heads, self.lines.__getitem__)

    def add(self, stored: JsonObject) -> int:
        """Append a stored object; its row. An unknown parent makes it an orphan."""
        message = stored.get("message")
        kind = kind_of(
            str(stored.get("type")),
            message.get("role") if isinstance(message, dict) else None,
            stored.get("customType"),
        )
        parent = stored.get("parentId")
        parent_row = self.heads.row_of(parent) if isinstance(parent, str) else None
        self.lines.append(encode(stored))
        return self.heads.append(stored["id"], ROOT if parent_row is None else parent_row, kind)


def tree_of(stored: list[JsonObject]) -> Tree:
    """The tree of these entries, in file order."""
    growing = Growing()
    for entry in stored:
        growing.add(entry)
    return growing.tree


def chain(*entries: JsonObject) -> list[JsonObject]:
    """The entries, each below the one before it."""
    linked = [entries[0] | {"parentId": None}] if entries else []
    linked += [below | {"parentId": above["id"]} for above, below in pairwise(entries)]
    return linked


def entry(entry_type: str, entry_id: str, **fields: Any) -> JsonObject:
    """A stored entry without a parent."""
    base = {"type": entry_type, "id": entry_id, "parentId": None, "timestamp": TIME}
    return base | fields


def message(entry_id: str, role: str, content: Any = "", **fields: Any) -> JsonObject:
    """A stored message entry."""
    said = {"role": role, "content": content, "timestamp": TIME_MS} | fields
    return entry("message", entry_id, message=said)


def user(entry_id: str, text: str = "") -> JsonObject:
    """A question, its id by default."""
    return message(entry_id, "user", text or entry_id)


def assistant(entry_id: str, *calls: str, text: str = "", **fields: Any) -> JsonObject:
    """A reply of model p/m with calls of these ids."""
    blocks: list[JsonObject] = [{"type": "text", "text": text or entry_id}]
    blocks += [{"type": "toolCall", "id": call, "name": "read", "arguments": {}} for call in calls]
    said = {"provider": "p", "model": "m", "stopReason": "toolUse" if calls else "stop"}
    return message(entry_id, "assistant", blocks, **(said | fields))


def result(entry_id: str, call: str, text: str = "") -> JsonObject:
    """What came of a call."""
    blocks = [{"type": "text", "text": text or entry_id}]
    return message(entry_id, "toolResult", blocks, toolCallId=call, toolName="read", isError=False)


def system(entry_id: str, text: str = "", **fields: Any) -> JsonObject:
    """A system message."""
    return message(entry_id, "system", text, **fields)


def compaction(entry_id: str, first_kept: str, **fields: Any) -> JsonObject:
    """A compaction that keeps from `first_kept`; its summary is its id in capitals."""
    said = {"summary": entry_id.upper(), "firstKeptEntryId": first_kept, "tokensBefore": 1}
    return entry("compaction", entry_id, **(said | fields))


def edit(entry_id: str, target: str, replacement: Any) -> JsonObject:
    """A context edit; text stands for a replacement with that content."""
    said = {"content": replacement} if isinstance(replacement, str | list) else replacement
    return entry("context_edit", entry_id, targetId=target, replacement=said)
