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

from collections.abc import Generator, Iterable, Mapping, Sequence

import msgspec

from pi_rpc.core.bindings import Bindings, calls_asked_for, calls_upward
from pi_rpc.core.entries import AddedMessage, Kind
from pi_rpc.core.errors import Damaged
from pi_rpc.core.events import Environment, ScopeVerdict, VerdictStatus
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.tree import ROOT, Tree

EFFECTS_TOLD_MAX = 50
"""How many effects of an abandoned route are named in a verdict."""

REPLIES_LOOKED_AT_MAX = 1000
"""How many replies are looked at for calls when a session without any result is opened."""


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
        for row, tools in calls_upward(tree, start):
            if row == ancestor or len(effects) >= EFFECTS_TOLD_MAX:
                break
            effects += [{"entryId": tree.heads.id_of(row), "tool": tool} for tool in tools]
    return effects[:EFFECTS_TOLD_MAX]


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

    Only a session in which nothing ever ran is known to match any leaf of its own. A call without
    a result may have run; where there are too many replies to look for one, that is not known.
    """
    kinds = tree.heads.kinds
    ran = kinds.find(Kind.TOOL_RESULT) != -1 or kinds.find(Kind.BASH_EXECUTION) != -1
    ran = ran or _may_have_called(tree)
    return FilesAt(leaf_row, known=not ran, reason="not_watched" if ran else "nothing_ran")


def _may_have_called(tree: Tree) -> bool:
    kinds = tree.heads.kinds
    row = len(kinds)
    for _ in range(REPLIES_LOOKED_AT_MAX):
        row = kinds.rfind(Kind.ASSISTANT, 0, row)
        if row == -1:
            return False
        try:
            if calls_asked_for(tree, row):
                return True
        except Damaged:
            return True
    return kinds.rfind(Kind.ASSISTANT, 0, row) != -1


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


DRIFT_NOTED_MAX = 50
"""How many differing paths the model is told of."""

DRIFT_NOTE = "pi_rpc.drift"
"""The custom type of the message that tells it."""


def drift_note(environment: Environment) -> AddedMessage | None:
    """What the model is told when it goes on with files that may not be as it has them.

    None where they and all that somebody else keeps versions of fit.
    """
    files = environment.scopes["files"]
    others = {
        name: scope
        for name, scope in environment.scopes.items()
        if name not in ("files", "external") and scope.status != "restored"
    }
    if files.status == "restored" and not others:
        return None
    if files.status == "restored":
        text = "the files of the working directory did so too."
    elif files.status == "unknown":
        text = f"whether the files of the working directory did so is not known ({files.reason})."
    else:
        named = environment.drift[:DRIFT_NOTED_MAX]
        lines = "".join(f"\n- {one['change']}: {one['path']}" for one in named)
        more = environment.drift_count - len(named)
        rest = f"\n- and {more} more" if more > 0 else ""
        where = ", which differ from their state then:" if named else "."
        text = f"the files of the working directory did not{where}{lines}{rest}"
    for name, scope in others.items():
        did = "did not" if scope.status == "not_restored" else "may not have done so"
        text += f"\nThe {name} {did} ({scope.reason})."
    said = f"The conversation went back to an earlier point; {text}\nLook before relying on them."
    details: JsonObject = {
        "status": files.status,
        "reason": files.reason,
        "driftCount": environment.drift_count,
    }
    return AddedMessage(DRIFT_NOTE, said, details=details)


DRIFT_TOLD_MAX = 1000
"""How many differing paths one verdict names; the count is always whole."""

CURSORS_LOOKED_AT_MAX = 64
"""How many cursors that say nothing of the world are passed over, looking for one that does."""

ABANDONED_MAX = 1000
"""How many calls and effects off the path are remembered."""

ROWS_OF_MOMENT = 1024
"""Rows of a route that are looked at before others have a turn."""

FILE_TOOLS = frozenset({"edit", "write"})
"""Tools that leave no mark when they fail."""

_WORST = {"restored": 0, "unknown": 1, "not_restored": 2}

Abandoned = Mapping[str, JsonObject]
"""By entry id, what was done on routes that were left: `{entryId, tool, seen}` for a call."""


def abandoned_calls(
    tree: Tree, bindings: Bindings, source_row: int, leaf_row: int
) -> Generator[None, None, dict[str, JsonObject]]:
    """Calls that may have marked the world on the way from the old leaf up to the new one's path.

    The way may be long: a moment's work at a time. `seen`: what the call did shows in the files, so
    that comparing them tells of it.
    """
    ancestor = tree.common_ancestor(source_row, leaf_row)
    found: dict[str, JsonObject] = {}
    for place, (row, tools) in enumerate(calls_upward(tree, source_row), 1):
        if row == ancestor or len(found) >= ABANDONED_MAX:
            break
        if not place % ROWS_OF_MOMENT:
            yield
        entry_id = tree.heads.id_of(row) if tools else ""
        for number, tool in enumerate(tools):
            seen = _was_seen(tree, bindings, row, tool)
            found[_name(entry_id, number)] = {"entryId": entry_id, "tool": tool, "seen": seen}
    return found


def _name(entry_id: str, number: int) -> str:
    # Calls without results are several in one entry; any other is the only one of its own.
    return f"{entry_id} {number}" if number else entry_id


def _was_seen(tree: Tree, bindings: Bindings, row: int, tool: str) -> bool:
    if tree.kind(row) == Kind.ASSISTANT:
        return False
    failed = tool in FILE_TOOLS and (tree.entry(row).message or {}).get("isError") is True
    return failed or bindings.was_seen(row)


def abandoned_at_opening(tree: Tree, bindings: Bindings) -> dict[str, JsonObject]:
    """What the newest cursor that speaks of the world says was done on routes that were left.

    Nothing where somebody took note of it since.
    """
    environment = _newest_environment(tree)
    told = environment.get("abandonedEffects")
    if not isinstance(told, list):
        return {}
    found: dict[str, JsonObject] = {}
    for number, effect in enumerate(told[:EFFECTS_TOLD_MAX]):
        if not isinstance(effect, dict) or not isinstance(effect.get("entryId"), str):
            continue
        at = tree.heads.row_of(effect["entryId"])
        if "kind" not in effect:
            tool = str(effect.get("tool"))
            seen = at is not None and _was_seen(tree, bindings, at, tool)
            found[_name(effect["entryId"], number)] = {**effect, "tool": tool, "seen": seen}
        elif at is None:
            # Recorded in the session this one was copied from; its own are in its bindings.
            found[_name(effect["entryId"], number)] = effect
    scopes = environment.get("scopes")
    is_outside_told = isinstance(scopes, dict) and "external" in scopes
    if is_outside_told and not any(one.get("seen") is False for one in found.values()):
        # The one nobody saw is not among those that were told, or was forgotten.
        found = {name: {**one, "seen": False} for name, one in found.items()}
    return found


def _newest_environment(tree: Tree) -> JsonObject:
    kinds = tree.heads.kinds
    row = len(kinds)
    for _ in range(CURSORS_LOOKED_AT_MAX):
        row = kinds.rfind(Kind.CURSOR, 0, row)
        if row == ROOT:
            break
        data = tree.entry(row).object.get("data")
        if tree.heads.is_shadowed(row) or not isinstance(data, dict):
            continue
        environment = data.get("env")
        if isinstance(environment, dict):
            return environment
        if data.get("op") == "acknowledge":
            break
    return {}


def outside_verdict(
    tree: Tree, bindings: Bindings, leaf_row: int, abandoned: Abandoned
) -> tuple[ScopeVerdict | None, list[JsonObject]]:
    """How the world beyond the files stands against a leaf, and what was done off its path.

    None where nothing is known to have touched it.
    """
    row_of = tree.heads.row_of
    rows = {row for call in abandoned.values() if (row := row_of(call["entryId"])) is not None}
    rows |= {effect.row for effect in bindings.effects()}
    on_path = tree.those_on_path(rows, leaf_row)
    calls = [call for call in abandoned.values() if row_of(call["entryId"]) not in on_path]
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
    return Environment(
        _worst(scopes),
        scopes,
        list(effects[:EFFECTS_TOLD_MAX]),
        list(drift[:DRIFT_TOLD_MAX]),
        len(drift),
    )


def with_offered(environment: Environment, offered: Mapping[str, ScopeVerdict]) -> Environment:
    """An environment with the scopes that somebody offers beside its own."""
    scopes = environment.scopes | {**offered}
    return msgspec.structs.replace(environment, status=_worst(scopes), scopes=scopes)


def _worst(scopes: Mapping[str, ScopeVerdict]) -> VerdictStatus:
    return max((scope.status for scope in scopes.values()), key=_WORST.__getitem__)
