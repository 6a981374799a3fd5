"""The workspace facts a session's file holds: which version belongs to which place in the tree.

A binding is an entry of ours (`pi_rpc.workspace`). It holds for the leaf it was written below, and
for the entry it names as `leaf`: a state is often named a moment after the leaf has gone on, and
must still be found from there.

Promises
- What is read is read once; asking again costs what was added.
- A leaf is bound only when no call that may mark the world lies between it and its binding.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, Literal

import msgspec

from pi_rpc.core.entries import WORKSPACE, Body, Kind, custom
from pi_rpc.core.messages import JsonObject, ToolCall, tool_calls_of
from pi_rpc.core.tree import INVISIBLE_KINDS, ROOT, Tree

READ_ONLY_TOOLS = frozenset({"read", "grep", "find", "ls"})
"""Tools that leave no mark; any other is taken to leave one."""

CHANGES_STORED_MAX = 2000
"""How many changed paths one binding names; of more, the two versions are compared when asked."""

LEFT_OUT_STORED_MAX = 20
"""How many paths that a version does not hold one binding names."""

At = Literal["start", "before_tools", "after_tools", "left", "manual", "restore"]
"""When a binding was written. One written by a restore says what it changed and binds nothing."""

BINDING_TIMES = frozenset({"start", "before_tools", "after_tools", "left", "manual"})

ROWS_READ_AHEAD = 512
"""Rows whose calls are looked for at once, on a long way up."""

REPLIES_READ_SINGLY_MAX = 8
"""So few replies are sooner looked at one by one."""

EffectKind = Literal["net", "ticket", "mail", "db", "process", "other"]
"""What was touched beyond the files."""

_RESULT_KINDS = frozenset({Kind.TOOL_RESULT, Kind.BASH_EXECUTION})

Change = tuple[str, str | None, str | None]
"""A path, its state before and its state after; None is absent."""


class Effect(msgspec.Struct, frozen=True):
    """Something a session did beyond its files, as somebody told us."""

    row: int
    id: str
    kind: str
    summary: str
    reversible: bool
    compensated: bool

    def as_object(self, entry_id: str) -> JsonObject:
        """As a verdict tells it."""
        return {
            "entryId": entry_id,
            "id": self.id,
            "kind": self.kind,
            "summary": self.summary,
            "reversible": self.reversible,
        }


class Binding(msgspec.Struct, frozen=True):
    """One workspace entry, read."""

    row: int
    at: str
    described: int
    """The row whose state it names beside its own place; ROOT is before the first entry."""
    version: str | None
    before: str | None
    """The version the calls began with."""
    changes: Sequence[Change]
    more: bool
    """Whether `changes` is not all of them."""
    folder: str | None = None
    """Where it was named; None in files of before this was written down."""
    denied: Sequence[str] | None = None
    """At the end of a restore, the paths announced before that were not restored after all."""


class Bindings:
    """The workspace entries of one tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._cover = 0
        self._by_row: dict[int, Binding] = {}
        self._described: dict[int, Binding] = {}
        self._seen: set[int] = set()
        self._effects: dict[str, Effect] = {}
        self._scopes: dict[str, dict[int, str]] = {}
        """By scope other than the files, the version of each place that has one."""

    def _learn(self) -> None:
        kinds, end = self._tree.heads.kinds, len(self._tree)
        row = kinds.find(Kind.WORKSPACE, self._cover)
        while row != -1:
            if not self._tree.heads.is_shadowed(row):
                self._read(row)
            row = kinds.find(Kind.WORKSPACE, row + 1)
        self._cover = end

    def _read(self, row: int) -> None:
        data = self._tree.entry(row).object.get("data")
        if not isinstance(data, dict):
            return
        binding = self._binding(row, data)
        self._by_row[row] = binding
        if binding.at in BINDING_TIMES and binding.version is not None:
            # A later route may leave from the same place in another state; the place keeps its own,
            # unless somebody asked for the new one.
            if binding.at == "manual":
                self._described[binding.described] = binding
            else:
                self._described.setdefault(binding.described, binding)
        if binding.at == "after_tools" and (binding.changes or binding.more):
            for above in self._tree.upward(binding.described):
                if self._tree.heads.kinds[above] not in _RESULT_KINDS:
                    break
                self._seen.add(above)
        for effect in _objects(data.get("effects")):
            self._learn_effect(row, effect)
        if binding.at in BINDING_TIMES:
            for scope, version in _scope_versions(data.get("scopes")):
                places = self._scopes.setdefault(scope, {})
                places[row] = version
                places.setdefault(binding.described, version)

    def _binding(self, row: int, data: JsonObject) -> Binding:
        tree = self._tree
        described = tree.parent(row)
        if "leaf" in data:
            leaf = data["leaf"]
            named = tree.heads.row_of(leaf) if isinstance(leaf, str) else None
            described = ROOT if leaf is None else described if named is None else named
        scopes = data.get("scopes")
        files = scopes.get("files") if isinstance(scopes, dict) else None
        version = files.get("version") if isinstance(files, dict) else None
        before = data.get("before")
        folder = files.get("cwd") if isinstance(files, dict) else None
        return Binding(
            row=row,
            at=str(data.get("at")),
            described=described,
            version=version if isinstance(version, str) else None,
            before=before if isinstance(before, str) else None,
            changes=tuple(_changes(data.get("changed"))),
            more=data.get("more") is True,
            folder=folder if isinstance(folder, str) else None,
            denied=_texts(data.get("denied")),
        )

    def _learn_effect(self, row: int, stored: JsonObject) -> None:
        name = stored.get("id")
        if not isinstance(name, str):
            return
        earlier = self._effects.get(name)
        self._effects[name] = Effect(
            # What is told again of an effect, such as that it was made good, moves it nowhere.
            row=row if earlier is None else earlier.row,
            id=name,
            kind=str(stored.get("kind", "other")),
            summary=str(stored.get("summary", "")),
            reversible=stored.get("reversible") is True,
            compensated=stored.get("compensated") is True,
        )

    def all(self) -> list[Binding]:
        """Every workspace entry, in file order."""
        self._learn()
        return list(self._by_row.values())

    def effects(self) -> list[Effect]:
        """Every effect that was recorded and not made good."""
        self._learn()
        return [effect for effect in self._effects.values() if not effect.compensated]

    def effect(self, effect_id: str) -> Effect | None:
        """A recorded effect by its id."""
        self._learn()
        return self._effects.get(effect_id)

    def was_seen(self, row: int) -> bool:
        """Whether the call of this result row belongs to a batch that changed the files we name."""
        self._learn()
        return row in self._seen

    def of_leaf(self, leaf_row: int) -> Binding | None:
        """The binding that holds at a leaf; None when there is none or calls came after it."""
        self._learn()
        if not self._described:
            return None
        for row, tools in calls_upward(self._tree, leaf_row):
            found = self._at(row)
            if found is not None:
                return found
            if tools:
                return None
        return self._at(ROOT)

    def unbound_top(self, leaf_row: int) -> int:
        """The highest row above a leaf that is in the same state as it, as far as calls go."""
        return self._top(leaf_row, lambda row: self._at(row) is not None)

    def _top(self, leaf_row: int, is_bound: Callable[[int], bool]) -> int:
        top = leaf_row
        for row, tools in calls_upward(self._tree, leaf_row):
            if tools or is_bound(row):
                return top
            top = row
        return top if is_bound(ROOT) else ROOT

    def scopes(self) -> frozenset[str]:
        """Scopes other than the files that some place has a version of."""
        self._learn()
        return frozenset(self._scopes)

    def scope_at(self, scope: str, leaf_row: int) -> str | None:
        """The version of a scope that holds at a leaf; None as for `of_leaf`."""
        self._learn()
        places = self._scopes.get(scope)
        if places is None:
            return None
        for row, tools in calls_upward(self._tree, leaf_row):
            if row in places:
                return places[row]
            if tools:
                return None
        return places.get(ROOT)

    def unbound_scope_top(self, scope: str, leaf_row: int) -> int:
        """As `unbound_top`, for a scope."""
        self._learn()
        return self._top(leaf_row, self._scopes.get(scope, {}).__contains__)

    def _at(self, row: int) -> Binding | None:
        found = self._by_row.get(row)
        if found is not None and found.at in BINDING_TIMES and found.version is not None:
            return found
        return self._described.get(row)


def marking_tool(tree: Tree, row: int) -> str | None:
    """The tool of a call that may have marked the world, `shell` for a command of the user."""
    kind = tree.heads.kinds[row]
    if kind == Kind.BASH_EXECUTION:
        return "shell"
    if kind != Kind.TOOL_RESULT:
        return None
    message = tree.entry(row).message or {}
    name = message.get("toolName")
    return None if str(name) in READ_ONLY_TOOLS else str(name)


def calls_upward(tree: Tree, start: int) -> Iterator[tuple[int, Sequence[str]]]:
    """Rows from `start` to its root, each with the tools whose calls may have marked the world.

    A call counts at its result. One that has none anywhere may have run all the same, until a
    crash: it counts at the reply that asked for it.
    """
    answered: set[str] = set()
    kinds = tree.heads.kinds
    for rows in _ahead(tree, start):
        asking = _asking(tree, rows)
        for row in rows:
            tools: Sequence[str] = ()
            if kinds[row] == Kind.ASSISTANT:
                tools = _unanswered_tools(tree, row, answered) if row in asking else ()
            elif kinds[row] in _RESULT_KINDS:
                if kinds[row] == Kind.TOOL_RESULT:
                    answered.add(_answered_id(tree, row))
                tool = marking_tool(tree, row)
                tools = () if tool is None else (tool,)
            yield row, tools


def _ahead(tree: Tree, start: int) -> Iterator[list[int]]:
    """Rows upward, more and more at a time: most questions end after a few."""
    rows, wanted = [], 1
    for row in tree.upward(start):
        rows.append(row)
        if len(rows) == wanted:
            yield rows
            rows, wanted = [], min(8 * wanted, ROWS_READ_AHEAD)
    yield rows


def _asking(tree: Tree, rows: list[int]) -> Container[int]:
    """The replies among rows, without many that ask for no call."""
    replies = [row for row in rows if tree.heads.kinds[row] == Kind.ASSISTANT]
    if len(replies) <= REPLIES_READ_SINGLY_MAX:
        return replies
    asking: set[int] = set()
    for block, lines in tree.blocks(sorted(replies)):
        if b'"toolCall"' in lines:
            asking.update(block)
    return asking


def calls_asked_for(tree: Tree, row: int) -> Sequence[ToolCall]:
    """The calls of a reply; none for one that failed or was stopped, whose calls are never run."""
    # Most replies of a long talk call nothing, which their bytes tell without being decoded.
    if b'"toolCall"' not in tree.line(row):
        return ()
    message = tree.entry(row).message or {}
    return () if message.get("stopReason") in ("error", "aborted") else tool_calls_of(message)


def _unanswered_tools(tree: Tree, row: int, answered: set[str]) -> Sequence[str]:
    calls = calls_asked_for(tree, row)
    waiting = {
        call.id: call.name
        for call in calls
        if call.id not in answered and call.name not in READ_ONLY_TOOLS
    }
    # An id may be used again further up, by a call that these results do not answer.
    answered.difference_update(call.id for call in calls)
    if waiting:
        for call_id in _answers_below(tree, row):
            waiting.pop(call_id, None)
    return tuple(waiting.values())


def _answers_below(tree: Tree, row: int) -> Iterator[str]:
    below = list(tree.children(row))
    while below:
        child = below.pop()
        kind = tree.kind(child)
        if kind == Kind.TOOL_RESULT:
            yield _answered_id(tree, child)
        elif kind not in INVISIBLE_KINDS:
            continue
        below += tree.children(child)


def _answered_id(tree: Tree, row: int) -> str:
    return str((tree.entry(row).message or {}).get("toolCallId"))


def binding_body(  # noqa: PLR0917
    at: At,
    described: str | None,
    kind: str,
    version: str,
    left_out: Sequence[JsonObject] = (),
    before: str | None = None,
    changes: Sequence[Change] = (),
    folder: str | None = None,
) -> Body:
    """The entry that names the state of the files here, and what calls changed in them."""
    files: JsonObject = {"kind": kind, "version": version}
    if folder is not None:
        files["cwd"] = folder
    if left_out:
        files["leftOut"] = list(left_out[:LEFT_OUT_STORED_MAX])
        files["leftOutCount"] = len(left_out)
    data: JsonObject = {"v": 1, "at": at, "leaf": described, "scopes": {"files": files}}
    if before is not None:
        data["before"] = before
        data["changed"] = [list(change) for change in changes[:CHANGES_STORED_MAX]]
        if len(changes) > CHANGES_STORED_MAX:
            data["more"] = True
    return custom(WORKSPACE, data)


def restored_body(denied: Sequence[str]) -> Body:
    """The entry that ends a restore: all that was announced is done, but for these paths."""
    return custom(WORKSPACE, {"v": 1, "at": "restore", "scopes": {}, "denied": list(denied)})


def effects_body(effects: Sequence[JsonObject]) -> Body:
    """The entry that records what was done beyond the files."""
    return custom(WORKSPACE, {"v": 1, "at": "manual", "scopes": {}, "effects": list(effects)})


def _objects(value: Any) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _scope_versions(value: Any) -> Iterator[tuple[str, str]]:
    for scope, kept in value.items() if isinstance(value, dict) else ():
        version = kept.get("version") if isinstance(kept, dict) else None
        if scope != "files" and isinstance(version, str):
            yield scope, version


def _texts(value: Any) -> list[str] | None:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else None


def _changes(value: Any) -> Iterator[Change]:
    for one in value if isinstance(value, list) else []:
        match one:
            case [str(path), None | str() as before, None | str() as after]:
                yield path, before, after
