"""Whether the world went along when the leaf moved: effects read off the tree, and the verdict.

Moving the leaf changes the conversation only. Where states of the files have names, the one bound
to the leaf is compared with the one that is there. Without names the most that can be known is
whether anything between two leaves may have touched the world. What is not known is said to be
unknown.

Promises
- `restored` is said of files only when they were compared and are the same, or when nothing that
  may mark the world lies between them and the leaf.
- The verdict is a function of what it is given; asking changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pi_rpc.core.bindings import Bindings, marking_tool
from pi_rpc.core.entries import Kind
from pi_rpc.core.events import Environment, ScopeVerdict
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.tree import Tree

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
            tool = marking_tool(tree, row)
            if tool is not None:
                effects.append({"entryId": tree.heads.id_of(row), "tool": tool})
    return effects


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


DRIFT_TOLD_MAX = 1000
"""How many differing paths one verdict names; the count is always whole."""

ABANDONED_MAX = 1000
"""How many calls and effects off the path are remembered."""

FILE_TOOLS = frozenset({"edit", "write"})
"""Tools that leave no mark when they fail."""

_WORST = {"restored": 0, "unknown": 1, "not_restored": 2}

Abandoned = Mapping[str, JsonObject]
"""By entry id, what was done on routes that were left: `{entryId, tool, seen}` for a call."""


def abandoned_calls(
    tree: Tree, bindings: Bindings, source_row: int, leaf_row: int
) -> dict[str, JsonObject]:
    """Calls that may have marked the world on the way from the old leaf up to the new one's path.

    `seen`: what the call did shows in the files, so that comparing them tells of it.
    """
    ancestor = tree.common_ancestor(source_row, leaf_row)
    found: dict[str, JsonObject] = {}
    for row in tree.upward(source_row):
        if row == ancestor or len(found) >= ABANDONED_MAX:
            break
        tool = marking_tool(tree, row)
        if tool is None:
            continue
        failed = tool in FILE_TOOLS and (tree.entry(row).message or {}).get("isError") is True
        seen = failed or bindings.was_seen(row)
        found[tree.heads.id_of(row)] = {
            "entryId": tree.heads.id_of(row),
            "tool": tool,
            "seen": seen,
        }
    return found


def outside_verdict(
    tree: Tree, bindings: Bindings, leaf_row: int, abandoned: Abandoned
) -> tuple[ScopeVerdict | None, list[JsonObject]]:
    """How the world beyond the files stands against a leaf, and what was done off its path.

    None where nothing is known to have touched it.
    """
    on_path = set(tree.upward(leaf_row)) if abandoned or bindings.effects() else set()
    calls = [call for name, call in abandoned.items() if tree.heads.row_of(name) not in on_path]
    recorded = [
        effect.as_object(tree.heads.id_of(effect.row))
        for effect in bindings.effects()
        if effect.row not in on_path
    ]
    told = [*recorded, *({**call} for call in calls)]
    for one in told:
        one.pop("seen", None)
    if recorded or any("kind" in call for call in calls):
        return ScopeVerdict("not_restored", "recorded_effects"), told
    if any(call.get("seen") is False for call in calls):
        return ScopeVerdict("unknown", "unseen_calls"), told
    return None, told


def environment_with(
    files: ScopeVerdict,
    outside: ScopeVerdict | None,
    effects: Sequence[JsonObject],
    drift: Sequence[JsonObject] = (),
) -> Environment:
    """Both scopes put together; the worst of them is the whole."""
    scopes = {"files": files} | ({} if outside is None else {"external": outside})
    worst = max((scope.status for scope in scopes.values()), key=_WORST.__getitem__)
    return Environment(
        worst,
        scopes,
        list(effects[:EFFECTS_TOLD_MAX]),
        list(drift[:DRIFT_TOLD_MAX]),
        len(drift),
    )
