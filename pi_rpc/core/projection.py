"""A path made into a context: which entries a model sees, and what they say to it.

A projection is a function of the tree, a leaf and a policy; it changes nothing and is never stored.
Its cost follows the context and never the history behind it; entries are decoded when their words
are asked for.

Promises
- The same rows, leaf and policy give the same context, extended entry by entry or made at once.
- No entry off the path is ever in it.
- Messages given out are shared and must not be changed.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal, overload

import msgspec

from pi_rpc.core.choices import THINKING_OFF, Choices, ModelChoice, choices_at
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

SIZED_ROWS = 256
"""So many rows are sized in one or two milliseconds, when they must be read for it."""

MESSAGES_KEPT_ROWS = 2048
"""Rows whose messages stay decoded for the next request; what is beyond is decoded again."""

MOMENT_ROWS = 128
"""How many rows are read in one moment, where others have their turn in between."""

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


class _Said(msgspec.Struct):
    """What a row says, in both forms; the same objects each time."""

    session: tuple[JsonObject, ...]
    made: tuple[JsonObject, ...] | None = None

    def llm(self) -> tuple[JsonObject, ...]:
        if self.made is None:
            sent = (message_for_model(message) for message in self.session)
            self.made = tuple(message for message in sent if message is not None)
        return self.made


class _Reader:
    """Reads the messages of rows, and keeps what a next request will need."""

    def __init__(self, tree: Tree, policy: Policy) -> None:
        self.tree = tree
        self.policy = policy
        self._messages: dict[tuple[int, int], _Said] = {}
        self._tokens: dict[tuple[int, int], tuple[int, int]] = {}
        self._usages: dict[tuple[int, int], int] = {}
        self.changes = 0
        """How often rows were not only added, but left out or made to say something else."""
        self._sent: list[JsonObject] = []
        """What the first rows say in the llm form, for a request that goes on from there."""
        self._sent_rows = 0

    def messages(
        self, row: int, compaction_row: int, edit_row: int, form: Form = "session"
    ) -> tuple[JsonObject, ...]:
        kind = self.tree.heads.kinds[row]
        if kind in SILENT_KINDS or (kind == Kind.COMPACTION and row != compaction_row):
            return ()
        key = (row, edit_row)
        found = self._messages.get(key)
        if found is None:
            found = _Said(self._made(row, kind, edit_row))
            self._keep(key, found)
        return found.session if form == "session" else found.llm()

    def _keep(self, key: tuple[int, int], made: "_Said") -> None:
        if len(self._messages) >= MESSAGES_KEPT_ROWS:
            # The one kept last goes: of a longer context, read from end to end time and again,
            # any other rule would keep nothing that is asked for next.
            self._messages.popitem()
        self._messages[key] = made

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

    def sent(
        self, rows: Sequence[int], compaction_row: int, edits: Mapping[int, int]
    ) -> Sequence[JsonObject]:
        """All that the rows say in the llm form, oldest first, none of which changed."""
        goes_on = self._sent_rows <= len(rows) <= MESSAGES_KEPT_ROWS
        new = [
            message
            for row in (rows[self._sent_rows :] if goes_on else rows)
            for message in self.messages(row, compaction_row, edits.get(row, ROOT), "llm")
        ]
        if not goes_on:
            return new
        self._sent += new
        self._sent_rows = len(rows)
        return self._sent

    def note_change(self) -> None:
        """Rows were left out, or say something else from here on."""
        self.changes += 1
        self._sent, self._sent_rows = [], 0

    def forget_all_but(self, rows: Sequence[int]) -> None:
        self.note_change()
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
        self._changes = reader.changes
        self._newest_first: list[JsonObject] = []
        self._unread = len(self._rows)

    def listed(self) -> Generator[None, None, list[JsonObject]]:
        """All of them in a list, read a moment at a time."""
        made: list[JsonObject] = []
        for place in range(len(self._rows)):
            made += self._at(place)
            if place % MOMENT_ROWS == MOMENT_ROWS - 1:
                yield
        return made

    def _at(self, place: int) -> Sequence[JsonObject]:
        row = self._rows[place]
        edit_row = self._edits.get(row, ROOT)
        return self._reader.messages(row, self._compaction_row, edit_row, self._form)

    def __iter__(self) -> Iterator[JsonObject]:
        # `list` asks for the length between making this and using it, and that reads everything.
        if self._unread:
            yield from chain.from_iterable(map(self._at, range(len(self._rows))))
        else:
            yield from reversed(self._newest_first)

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
        if self._form == "llm" and self._changes == self._reader.changes:
            rows = self._rows[: self._unread]
            earlier = self._reader.sent(rows, self._compaction_row, self._edits)
        else:
            earlier = list(chain.from_iterable(map(self._at, range(self._unread))))
        self._newest_first += earlier[::-1]
        self._unread = 0
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


class Sizes(msgspec.Struct):
    """Estimated tokens of the first rows of a context, system messages left out."""

    changes: int = 0
    """After how many changes of what is read."""
    rows: int = 0
    summary: int = 0
    """Summaries of what was compacted, and of branches left."""
    messages: int = 0
    tool_results: int = 0

    @property
    def total(self) -> int:
        """Of all parts."""
        return self.summary + self.messages + self.tool_results


class Projection:
    """The context at one leaf under one policy."""

    def __init__(self, tree: Tree, selection: Selection, policy: Policy) -> None:
        self.tree = tree
        self.policy = policy
        self.selection = selection
        """Of a live projection it grows in place: ask for it again after an entry was appended."""
        self._reader = _Reader(tree, policy)
        self._choices: Choices | None = None
        """Of this leaf, or of one where it stood before."""
        self._sizes = Sizes()
        self._bearers: list[int] = []
        """Holds: of the first rows those that may bear a system message."""
        self._bearers_looked_at = (0, 0)
        """How many rows that were, after how many changes."""

    @property
    def leaf_row(self) -> int:
        """The leaf this is the context of, ROOT before the first entry."""
        return self.selection.leaf_row

    @property
    def model(self) -> ModelChoice | None:
        """Provider and id of the model the path implies; None when it names none."""
        return self._choices_here().model

    @property
    def thinking_level(self) -> str:
        """The thinking level the path implies."""
        return self._choices_here().level or THINKING_OFF

    def _choices_here(self) -> Choices:
        if self._choices is None or self._choices.leaf_row != self.leaf_row:
            self._choices = choices_at(self.tree, self.leaf_row, self._choices)
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
        said = (message for row in self._system_rows() for message in self.messages_of(row))
        return fold(said, self.policy.honours_replace)

    def _system_rows(self) -> list[int]:
        rows, changes = self.selection.rows, self._reader.changes
        start, at_changes = self._bearers_looked_at
        if at_changes != changes:
            self._bearers, start = [], 0
        self._bearers += self.tree.heads.of_kinds(rows[start:], SYSTEM_BEARERS)
        self._bearers_looked_at = (len(rows), changes)
        return self._bearers

    def sizing(self) -> "Generator[None, None, Sizes]":
        """Estimated tokens of the parts of the context: a moment's work at a time.

        What was sized before is not looked at again.
        """
        kinds = self.tree.heads.kinds
        while True:
            if self._sizes.changes != self._reader.changes:
                self._sizes = Sizes(changes=self._reader.changes)
            sizes = self._sizes
            rows = self.selection.rows[sizes.rows : sizes.rows + SIZED_ROWS]
            if not rows:
                return sizes
            for row in rows:
                tokens = self.tokens_of(row)[1]
                match kinds[row]:
                    case Kind.COMPACTION | Kind.BRANCH_SUMMARY:
                        sizes.summary += tokens
                    case Kind.TOOL_RESULT:
                        sizes.tool_results += tokens
                    case _:
                        sizes.messages += tokens
            sizes.rows += len(rows)
            yield

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

    def as_it_stands(self) -> "Projection":
        """The same context, which stays so whatever is appended later."""
        held = self.selection
        rows, edits = held.rows.copy(), held.edits.copy()
        selection = msgspec.structs.replace(held, rows=rows, edits=edits)
        return Projection(self.tree, selection, self.policy)

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
        if kind == Kind.COMPACTION:
            self._reselect(row)
        else:
            self.selection.rows.append(row)
            if kind == Kind.CONTEXT_EDIT:
                note_edit(self.tree, row, self.selection.edits)
                self._reader.note_change()
            self.selection = msgspec.structs.replace(self.selection, leaf_row=row)

    def rebase(self, leaf_row: int) -> None:
        """Stand at another leaf; what both contexts share stays decoded."""
        if leaf_row == self.leaf_row:
            return
        self._reselect(leaf_row)

    def _reselect(self, leaf_row: int) -> None:
        self.selection = select(self.tree, leaf_row)
        self._reader.forget_all_but(self.selection.rows)


def project(tree: Tree, leaf_row: int, policy: Policy) -> Projection:
    """The context at a leaf under a policy; nothing but its rows is read until it is asked for."""
    return Projection(tree, select(tree, leaf_row), policy)
