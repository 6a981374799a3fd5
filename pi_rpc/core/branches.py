"""What stands on the branches of a tree: their tips, what each has for itself, where two part."""

from collections.abc import Iterable, Sequence

import msgspec

from pi_rpc.core.entries import Body, Kind
from pi_rpc.core.messages import text_of, tool_calls_of
from pi_rpc.core.tokens import FAILED_STOPS
from pi_rpc.core.tree import Tree

ROWS_READ_MAX = 500
"""How many rows of one branch are read for its files and words; older ones are counted only."""

TEXT_CHARS_MAX = 200
"""How much of a message a picker shows."""


CONCLUSION_TYPE = "pi_rpc.conclusion"
"""The custom message that brings over what another branch came to."""

CONCLUSION_PREAMBLE = "Concluded on another branch of this conversation:\n\n"


class FilesTouched(msgspec.Struct, frozen=True):
    """Paths that calls of a branch named, sorted; calls whose result is an error do not count."""

    read: list[str]
    modified: list[str]
    complete: bool = True
    """False when the branch is longer than what was read."""


class Branch(msgspec.Struct, frozen=True):
    """One tip and what it has for itself."""

    tip_row: int
    fork_row: int
    """The row its own part hangs below, ROOT when it shares nothing."""
    size: int
    """Entries of its own part."""
    text: str
    """The last words said on it."""
    files: FilesTouched


def branch_at(tree: Tree, tip_row: int) -> Branch:
    """What a tip has for itself, from the last place where the tree parts."""
    own = tree.below.to_parting(tip_row)
    fork_row = tree.parent(own[-1])
    return Branch(tip_row, fork_row, len(own), last_words(tree, own), files_touched(tree, own))


def segment(tree: Tree, row: int, ancestor: int) -> list[int]:
    """Rows below `ancestor` down to `row`, newest first."""
    rows = []
    for above in tree.upward(row):
        if above == ancestor:
            break
        rows.append(above)
    return rows


def last_words(tree: Tree, newest_first: Iterable[int]) -> str:
    """The start of the newest text of a user or assistant among rows, newest first."""
    for count, row in enumerate(newest_first):
        if count >= ROWS_READ_MAX:
            break
        if tree.heads.kinds[row] in (Kind.USER, Kind.ASSISTANT):
            text = words_shown(tree, row)
            if text:
                return text
    return ""


def last_answer(tree: Tree, newest_first: Iterable[int]) -> str:
    """The whole text of the newest reply among rows that did not fail and says something."""
    for row in newest_first:
        if tree.heads.kinds[row] == Kind.ASSISTANT:
            message = tree.entry(row).message or {}
            text = text_of(message).strip()
            if text and message.get("stopReason") not in FAILED_STOPS:
                return text
    return ""


def conclusion(text: str, from_id: str) -> Body:
    """An entry that tells the model what was concluded on another branch, as words of a user."""
    return Body(
        "custom_message",
        {
            "customType": CONCLUSION_TYPE,
            "content": CONCLUSION_PREAMBLE + text,
            "display": True,
            "details": {"v": 1, "fromId": from_id},
        },
    )


def words_shown(tree: Tree, row: int) -> str:
    """The start of what an entry says, as one line; empty for entries that say nothing."""
    entry = tree.entry(row)
    if entry.message is not None:
        text = text_of(entry.message)
    elif entry.kind == Kind.CUSTOM_MESSAGE:
        text = text_of(entry.object)
    else:
        said = entry.object.get("summary") or entry.object.get("name") or entry.object.get("label")
        text = said if isinstance(said, str) else ""
    return " ".join(text[: TEXT_CHARS_MAX * 2].split())[:TEXT_CHARS_MAX]


def files_touched(tree: Tree, newest_first: Sequence[int]) -> FilesTouched:
    """Paths named by calls among rows given newest first."""
    failed: set[str] = set()
    read: set[str] = set()
    modified: set[str] = set()
    for row in newest_first[:ROWS_READ_MAX]:
        kind = tree.heads.kinds[row]
        if kind not in (Kind.ASSISTANT, Kind.TOOL_RESULT):
            continue
        message = tree.entry(row).message or {}
        if kind == Kind.TOOL_RESULT:
            # Results stand below their call, so newest first they are met before it.
            if message.get("isError"):
                failed.add(str(message.get("toolCallId")))
            continue
        for call in tool_calls_of(message):
            path = call.arguments.get("path")
            if call.id in failed or not isinstance(path, str) or not path:
                continue
            if call.name in ("write", "edit"):
                modified.add(path)
            elif call.name == "read":
                read.add(path)
    return FilesTouched(
        sorted(read - modified), sorted(modified), len(newest_first) <= ROWS_READ_MAX
    )
