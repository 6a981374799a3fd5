"""Whether the world went along when the leaf moved: effects read off the tree, and the verdict.

Moving the leaf changes the conversation only. Without named workspace versions the most that can be
known is whether anything between two leaves may have touched the world. What is not known is said
to be unknown.

Promises
- `restored` is said only when nothing that may mark the world lies between files and leaf.
- The verdict is a function of the tree and of where the files stand; asking changes nothing.
"""

from collections.abc import Iterable

import msgspec

from pi_rpc.core.entries import Kind
from pi_rpc.core.events import Environment, ScopeVerdict
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.tree import Tree

READ_ONLY_TOOLS = frozenset({"read", "grep", "find", "ls"})
"""Tools that leave no mark; any other is taken to leave one."""

EFFECTS_TOLD_MAX = 50
"""How many effects of an abandoned route are named in a verdict."""


class FilesAt(msgspec.Struct, frozen=True):
    """Where in the tree the files of the working directory stand, as far as this process saw."""

    row: int
    """The leaf after the last call that may have marked the world."""
    known: bool = True
    """False when nobody watched, or when calls of several routes mixed: no leaf fits any more."""
    reason: str = "nothing_ran"


def effects_between(tree: Tree, one: int, other: int) -> list[JsonObject]:
    """Calls on either way from the common ancestor that may have marked the world, newest first.

    At most EFFECTS_TOLD_MAX, each `{entryId, tool}`.
    """
    ancestor = tree.common_ancestor(one, other)
    effects: list[JsonObject] = []
    for start in (one, other):
        for row in tree.upward(start):
            if row == ancestor or len(effects) >= EFFECTS_TOLD_MAX:
                break
            tool = _marking_tool(tree, row)
            if tool is not None:
                effects.append({"entryId": tree.heads.id_of(row), "tool": tool})
    return effects


def _marking_tool(tree: Tree, row: int) -> str | None:
    kind = tree.heads.kinds[row]
    if kind == Kind.BASH_EXECUTION:
        return "shell"
    if kind != Kind.TOOL_RESULT:
        return None
    message = tree.entry(row).message or {}
    name = message.get("toolName")
    return None if name in READ_ONLY_TOOLS else str(name)


def verdict(tree: Tree, files: FilesAt, leaf_row: int) -> Environment:
    """How the working directory stands against `leaf_row`."""
    if not files.known:
        return environment_of(ScopeVerdict("unknown", files.reason))
    effects = effects_between(tree, files.row, leaf_row)
    if effects:
        return environment_of(ScopeVerdict("unknown", "no_versions"), effects)
    return environment_of(ScopeVerdict("restored", "nothing_ran"))


def environment_of(files: ScopeVerdict, effects: Iterable[JsonObject] = ()) -> Environment:
    """An environment whose only scope is the files."""
    return Environment(files.status, {"files": files}, list(effects))


def files_at_opening(tree: Tree, leaf_row: int) -> FilesAt:
    """Where the files stand when a session is opened: nobody watched them since.

    Only a session in which nothing ever ran is known to match any leaf of its own.
    """
    kinds = tree.heads.kinds
    ran = kinds.find(Kind.TOOL_RESULT) != -1 or kinds.find(Kind.BASH_EXECUTION) != -1
    return FilesAt(leaf_row, known=not ran, reason="not_watched" if ran else "nothing_ran")


def files_after_calls(
    tree: Tree, files: FilesAt, before_row: int, after_row: int, marked: bool
) -> FilesAt:
    """Where the files stand once a batch of calls has run on this path.

    `marked`: whether one of them may have marked the world, and not only by the name of its tool:
    a call that was refused before it ran left everything as it was.
    """
    if not files.known:
        return files
    if verdict(tree, files, before_row).status != "restored":
        return FilesAt(after_row, known=False, reason="mixed_routes") if marked else files
    return FilesAt(after_row)
