"""A path made into a context: which entries a model sees, and what they say to it.

A projection is a function of the tree, a leaf and a policy; it changes nothing and is never stored.
Its cost follows the context and never the history behind it; entries are decoded when their words
are asked for.

Promises
- The same rows, leaf and policy give the same context, extended entry by entry or made at once.
- No entry off the path is ever in it.
- Messages given out are shared and must not be changed.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, overload

import msgspec

from pi_rpc.core.context_messages import (
    edited,
    message_for_model,
    messages_of_entry,
    milliseconds_of,
    stored_messages,
)
from pi_rpc.core.entries import MESSAGE_KINDS, Kind
from pi_rpc.core.errors import Damaged
from pi_rpc.core.folding import fold
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.policy import UNTOUCHABLE_KINDS, Policy
from pi_rpc.core.selection import Selection, entry_or_none, note_edit, select
from pi_rpc.core.tokens import ContextTokens, trusted_usage
from pi_rpc.core.tree import ROOT, Tree

Form = Literal["session", "llm"]
"""`session`: the roles the file knows. `llm`: only what a provider is sent."""

MESSAGES_KEPT_ROWS = 2048
"""Rows whose messages stay decoded for the next request; what is beyond is decoded again."""

MESSAGES_OF_ROW_MAX = 2
"""A compaction says its system message and its summary, any other row one message at most."""

THINKING_OFF = "off"
"""The thinking level of a path that never says one."""

ModelChoice = tuple[str, str]
"""Provider and model id."""

SILENT_KINDS = frozenset(
    {
        Kind.UNKNOWN,
        Kind.MODEL_CHANGE,
        Kind.THINKING_LEVEL_CHANGE,
        Kind.USAGE,
        Kind.CONTEXT_EDIT,
        Kind.CUSTOM,
        Kind.LABEL,
        Kind.SESSION_INFO,
        Kind.CURSOR,
        Kind.WORKSPACE,
        Kind.PROJECTION,
        Kind.FORK,
        Kind.PIN,
    }
)
"""Kinds that never say anything to a model."""

SYSTEM_BEARERS = frozenset({Kind.SYSTEM, Kind.COMPACTION})
"""Kinds that may bear a system message."""

MODEL_KINDS = frozenset({Kind.MODEL_CHANGE, Kind.ASSISTANT})
"""Kinds that say which model answers."""

CHOOSING_KINDS = MODEL_KINDS | {Kind.THINKING_LEVEL_CHANGE}
"""Kinds that say which model answers, or how hard it thinks."""


class _Reader:
    """Reads the messages of rows, and keeps what a next request will need."""

    def __init__(self, tree: Tree, policy: Policy) -> None:
        self.tree = tree
        self.policy = policy
        self._messages: dict[tuple[int, int], tuple[JsonObject, ...]] = {}
        self._tokens: dict[tuple[int, int], tuple[int, int]] = {}
        self._usages: dict[tuple[int, int], int] = {}

    def messages(self, row: int, compaction_row: int, edit_row: int) -> tuple[JsonObject, ...]:
        kind = self.tree.heads.kinds[row]
        if kind in SILENT_KINDS or (kind == Kind.COMPACTION and row != compaction_row):
            return ()
        key = (row, edit_row)
        found = self._messages.get(key)
        if found is not None:
            return found
        made = self._made(row, kind, edit_row)
        if len(self._messages) >= MESSAGES_KEPT_ROWS:
            # The one kept last goes: of a longer context, read from end to end time and again,
            # any other rule would keep nothing that is asked for next.
            self._messages.popitem()
        self._messages[key] = made
        return made

    def _made(self, row: int, kind: int, edit_row: int) -> tuple[JsonObject, ...]:
        if kind in MESSAGE_KINDS:
            # Most rows are such, and what they say is kept here: no entry is made of them.
            messages = stored_messages(self._stored(row))
            return messages if edit_row == ROOT else self._as_edited(messages, kind, edit_row)
        entry = entry_or_none(self.tree, row)
        if entry is None:
            return ()
        messages = messages_of_entry(entry, is_checkpoint=True)
        if kind == Kind.COMPACTION and len(messages) == 1 and self.policy.makes_checkpoints:
            checkpoint = self._checkpoint(row, milliseconds_of(entry.timestamp) or 0)
            messages = ((checkpoint,) if checkpoint else ()) + messages
        return messages if edit_row == ROOT else self._as_edited(messages, kind, edit_row)

    def _stored(self, row: int) -> JsonObject:
        try:
            return self.tree.stored(row)
        except Damaged:
            # Such a line says nothing.
            return {}

    def _as_edited(
        self, messages: tuple[JsonObject, ...], kind: int, edit_row: int
    ) -> tuple[JsonObject, ...]:
        if self.policy.ignores_hand_edits and kind in UNTOUCHABLE_KINDS:
            return messages
        return edited(messages, self.tree.entry(edit_row).object["replacement"])

    def _checkpoint(self, compaction_row: int, at_ms: int) -> JsonObject | None:
        found: list[JsonObject] = []
        kinds = self.tree.heads.kinds
        for row in self.tree.upward(self.tree.parent(compaction_row)):
            if kinds[row] not in SYSTEM_BEARERS:
                continue
            entry = entry_or_none(self.tree, row)
            said = messages_of_entry(entry, is_checkpoint=True) if entry else ()
            found += [message for message in said if message.get("role") == "system"]
            # What an earlier checkpoint stands for need not be looked for again.
            if kinds[row] == Kind.COMPACTION and len(said) > 1:
                break
        folded = fold(reversed(found), self.policy.honours_replace)
        return None if folded is None else folded | {"timestamp": at_ms}

    def tokens(self, row: int, compaction_row: int, edit_row: int) -> tuple[int, int]:
        kind = self.tree.heads.kinds[row]
        if kind in SILENT_KINDS or (kind == Kind.COMPACTION and row != compaction_row):
            return 0, 0
        key = (row, edit_row)
        found = self._tokens.get(key)
        if found is not None:
            return found
        system = others = 0
        for message in self.messages(row, compaction_row, edit_row):
            if message.get("role") == "system":
                system += self.policy.tokens_of(message)
            else:
                others += self.policy.tokens_of(message)
        self._tokens[key] = (system, others)
        return system, others

    def reported(self, row: int, compaction_row: int, edit_row: int) -> int:
        """The context size a row's reply reports, 0 when it reports none that can be trusted."""
        key = (row, edit_row)
        found = self._usages.get(key)
        if found is None:
            said = self.messages(row, compaction_row, edit_row)
            found = self._usages[key] = max(map(trusted_usage, said), default=0)
        return found

    def forget_all_but(self, rows: Sequence[int]) -> None:
        kept = set(rows)
        self._usages = {key: made for key, made in self._usages.items() if key[0] in kept}
        self._messages = {key: made for key, made in self._messages.items() if key[0] in kept}
        self._tokens = {key: made for key, made in self._tokens.items() if key[0] in kept}


class ContextMessages(Sequence[JsonObject]):
    """The messages of a context, oldest first, as they were when it was asked for.

    Iterating, and indexing or slicing from the end (`[-1]`, `[-4:]`, `reversed`), decode only what
    they reach. `len` and an index counted from the start read the whole context once.
    """

    def __init__(self, reader: _Reader, selection: Selection, form: Form) -> None:
        self._reader = reader
        self._rows = selection.rows.copy()
        self._edits = selection.edits.copy()
        self._compaction_row = selection.compaction_row
        self._form = form
        self._newest_first: list[JsonObject] = []
        self._unread = len(self._rows)

    def _at(self, place: int) -> Sequence[JsonObject]:
        row = self._rows[place]
        edit_row = self._edits.get(row, ROOT)
        messages = self._reader.messages(row, self._compaction_row, edit_row)
        if self._form == "session":
            return messages
        sent = (message_for_model(message) for message in messages)
        return [message for message in sent if message is not None]

    def __iter__(self) -> Iterator[JsonObject]:
        if not self._unread:
            yield from reversed(self._newest_first)
            return
        for place in range(len(self._rows)):
            yield from self._at(place)

    def __reversed__(self) -> Iterator[JsonObject]:
        back = 0
        while self._has(back):
            yield self._newest_first[back]
            back += 1

    def _has(self, back: int) -> bool:
        while len(self._newest_first) <= back and self._unread:
            self._unread -= 1
            self._newest_first.extend(reversed(self._at(self._unread)))
        return back < len(self._newest_first)

    def __len__(self) -> int:
        self._has(len(self._rows) * MESSAGES_OF_ROW_MAX)
        return len(self._newest_first)

    @overload
    def __getitem__(self, index: int) -> JsonObject: ...
    @overload
    def __getitem__(self, index: slice) -> list[JsonObject]: ...
    def __getitem__(self, index: int | slice) -> JsonObject | list[JsonObject]:
        if isinstance(index, slice):
            if _is_tail(index):
                self._has(-index.start - 1)
                return self._newest_first[: -index.start][::-1]
            return list(self)[index]
        back = -index - 1 if index < 0 else len(self) - 1 - index
        if back < 0 or not self._has(back):
            raise IndexError("no message there")
        return self._newest_first[back]


def _is_tail(index: slice) -> bool:
    is_plain = index.stop is None and index.step in (None, 1)
    return is_plain and index.start is not None and index.start < 0


class Projection:
    """The context at one leaf under one policy."""

    def __init__(self, tree: Tree, selection: Selection, policy: Policy) -> None:
        self.tree = tree
        self.policy = policy
        self.selection = selection
        """Of a live projection it grows in place: ask for it again after an entry was appended."""
        self._reader = _Reader(tree, policy)
        self._choices: tuple[ModelChoice | None, str] | None = None

    @property
    def leaf_row(self) -> int:
        """The leaf this is the context of, ROOT before the first entry."""
        return self.selection.leaf_row

    @property
    def model(self) -> ModelChoice | None:
        """Provider and id of the model the path implies; None when it names none."""
        return self._known_choices()[0]

    @property
    def thinking_level(self) -> str:
        """The thinking level the path implies."""
        return self._known_choices()[1]

    def _known_choices(self) -> tuple[ModelChoice | None, str]:
        if self._choices is None:
            self._choices = model_and_thinking(self.tree, self.leaf_row)
        return self._choices

    def messages_of(self, row: int) -> tuple[JsonObject, ...]:
        """The messages of a selected row in the session form, edits applied; often one or none."""
        selection = self.selection
        return self._reader.messages(row, selection.compaction_row, self._edit_row(row))

    def tokens_of(self, row: int) -> tuple[int, int]:
        """Estimated tokens of a selected row: of its system messages, and of its other ones."""
        selection = self.selection
        return self._reader.tokens(row, selection.compaction_row, self._edit_row(row))

    def _edit_row(self, row: int) -> int:
        return self.selection.edits.get(row, ROOT)

    def pairs(self) -> list[tuple[str, int, JsonObject]]:
        """Every message in the session form, with the id and the row it comes from."""
        id_of = self.tree.heads.id_of
        return [
            (id_of(row), row, message)
            for row in self.selection.rows
            for message in self.messages_of(row)
        ]

    def messages(self, form: Form = "session") -> ContextMessages:
        """The context as it is now; what is appended later does not get into it."""
        return ContextMessages(self._reader, self.selection, form)

    def system(self) -> JsonObject | None:
        """The one system message that says what those of the context say; None without any."""
        kinds = self.tree.heads.kinds
        said = (
            message
            for row in self.selection.rows
            if kinds[row] in SYSTEM_BEARERS
            for message in self.messages_of(row)
        )
        return fold(said, self.policy.honours_replace)

    def tokens(self) -> ContextTokens:
        """How big the context is: the last usage that can be trusted and estimates of what follows.

        A usage counts only when neither an edit nor a compaction came after it; else all is
        estimated, the system messages as the one they fold to.
        """
        kinds = self.tree.heads.kinds
        rows, trailing = self.selection.rows, 0
        first = 0 if self.selection.compaction_row == ROOT else 1 + self.selection.kept_count
        for place in range(len(rows) - 1, first - 1, -1):
            row = rows[place]
            if kinds[row] == Kind.CONTEXT_EDIT:
                break
            if kinds[row] == Kind.ASSISTANT:
                reported = self._reader.reported(
                    row, self.selection.compaction_row, self._edit_row(row)
                )
                if reported:
                    return ContextTokens(total=reported + trailing, usage_at=row)
            trailing += sum(self.tokens_of(row))
        return ContextTokens(total=self.estimated_tokens())

    def estimated_tokens(self) -> int:
        """How big the context is by estimates alone."""
        system = self.system()
        others = sum(self.tokens_of(row)[1] for row in self.selection.rows)
        return others if system is None else others + self.policy.tokens_of(system)


class LiveProjection(Projection):
    """The context at a leaf that moves: each appended entry costs what it is, not what came before.

    Promises
    - After any number of `extend` and `rebase` it equals a projection made at once.
    """

    def __init__(self, tree: Tree, leaf_row: int, policy: Policy) -> None:
        super().__init__(tree, select(tree, leaf_row), policy)

    def extend(self, row: int) -> None:
        """Take in the entry that was appended at the leaf; it becomes the leaf.

        An entry that hangs elsewhere, or a compaction, selects anew.
        """
        kind = self.tree.heads.kinds[row]
        if self.tree.parent(row) != self.leaf_row:
            self.rebase(row)
            return
        choices = self._choices
        if kind == Kind.COMPACTION:
            self._reselect(row)
        else:
            self.selection.rows.append(row)
            if kind == Kind.CONTEXT_EDIT:
                note_edit(self.tree, row, self.selection.edits)
            self.selection = msgspec.structs.replace(self.selection, leaf_row=row)
        if choices is not None and kind in CHOOSING_KINDS:
            model, level = choices_of(self.tree, row)
            self._choices = (model or choices[0], level or choices[1])

    def rebase(self, leaf_row: int) -> None:
        """Stand at another leaf; what both contexts share stays decoded."""
        if leaf_row == self.leaf_row:
            return
        self._choices = None
        self._reselect(leaf_row)

    def _reselect(self, leaf_row: int) -> None:
        self.selection = select(self.tree, leaf_row)
        self._reader.forget_all_but(self.selection.rows)


def project(tree: Tree, leaf_row: int, policy: Policy) -> Projection:
    """The context at a leaf under a policy; nothing but its rows is read until it is asked for."""
    return Projection(tree, select(tree, leaf_row), policy)


def model_and_thinking(tree: Tree, leaf_row: int) -> tuple[ModelChoice | None, str]:
    """The model and the thinking level a whole path implies, entries behind a compaction included.

    The model is that of the last model change or assistant message, failed and omitted ones too;
    the level is that of the last change, `off` without any. The walk ends when both are found.
    """
    kinds, parents = tree.heads.kinds, tree.heads.parents
    model: ModelChoice | None = None
    level: str | None = None
    sought = set(CHOOSING_KINDS)
    row = leaf_row
    while row != ROOT and sought:
        if kinds[row] in sought:
            said_model, said_level = choices_of(tree, row)
            if said_model is not None:
                model = said_model
                sought -= MODEL_KINDS
            if said_level is not None:
                level = said_level
                sought.discard(Kind.THINKING_LEVEL_CHANGE)
        row = parents[row]
    return model, level or THINKING_OFF


def choices_of(tree: Tree, row: int) -> tuple[ModelChoice | None, str | None]:
    """The model and the thinking level that one row chooses; None for what it says nothing of."""
    entry = entry_or_none(tree, row)
    if entry is None:
        return None, None
    fields = entry.object
    if entry.kind == Kind.THINKING_LEVEL_CHANGE:
        level = fields.get("thinkingLevel")
        return None, level if isinstance(level, str) and level else None
    if entry.kind == Kind.MODEL_CHANGE:
        provider, model_id = fields.get("provider"), fields.get("modelId")
    elif entry.kind == Kind.ASSISTANT:
        message = entry.message or {}
        provider, model_id = message.get("provider"), message.get("model")
    else:
        return None, None
    if isinstance(provider, str) and isinstance(model_id, str):
        return (provider, model_id), None
    return None, None
