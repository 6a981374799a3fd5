"""Where a context is cut for a compaction: what is summarised, what is kept as it is.

A plan is read off a projection; it asks nobody and writes nothing. The span it divides begins at
the kept boundary of the previous compaction, so what that one kept is summarised by this one.

Promises
- Each message of the span is summarised or kept, never both and never neither; system messages
  are in neither, for the checkpoint stands for them.
- A call and its result are never parted (rules of our own; `pi3` does as Pi does).
- The same projection and the same limits give the same plan. Its cost follows what is kept, not
  what is summarised.
"""

from functools import cached_property
from itertools import compress

import msgspec

from pi_rpc.core.context_messages import message_for_model
from pi_rpc.core.entries import Kind
from pi_rpc.core.messages import JsonObject, tool_calls_of
from pi_rpc.core.policy import PI3, Policy
from pi_rpc.core.projection import SILENT_KINDS, Projection
from pi_rpc.core.told import Told
from pi_rpc.core.tree import ROOT

SURE_KINDS = frozenset(
    {
        Kind.SYSTEM,
        Kind.USER,
        Kind.ASSISTANT,
        Kind.TOOL_RESULT,
        Kind.BASH_EXECUTION,
        Kind.CUSTOM_MESSAGE,
    }
)
"""Kinds that say something whenever no edit takes it away; others are looked into."""

NEVER_TOLD = SILENT_KINDS | {Kind.SYSTEM, Kind.COMPACTION}
"""Kinds that are neither summarised nor kept: a checkpoint or nothing stands for them."""

_PERHAPS = 2
_TELLING = bytes(
    0 if kind in NEVER_TOLD else 1 if kind in SURE_KINDS else _PERHAPS for kind in range(256)
)
"""By kind: says nothing, says something unless an edit took it away, must be looked into."""

CUT_ROLES = frozenset(
    {"user", "assistant", "bashExecution", "custom", "branchSummary", "compactionSummary"}
)
"""Roles a kept range may begin with; never a result, whose call would be missing."""

TURN_ROLES = frozenset({"user", "bashExecution", "custom", "branchSummary"})
"""Roles that begin a turn: words a reply answers."""

ROLE_OF_KIND = {
    Kind.SYSTEM: "system",
    Kind.USER: "user",
    Kind.ASSISTANT: "assistant",
    Kind.TOOL_RESULT: "toolResult",
    Kind.BASH_EXECUTION: "bashExecution",
    Kind.CUSTOM_MESSAGE: "custom",
}


class CompactionPlan(msgspec.Struct, frozen=True, dict=True):
    """What a compaction would do, as rows of the tree in context order.

    The ranges hold silent rows too; what they tell leaves those out.
    """

    projection: Projection
    """Of a copy: what is appended while a plan is carried out does not get into it."""
    leaf_row: int
    """The leaf it was made for."""
    first_kept_id: str
    is_split_turn: bool
    """Whether the kept range begins inside a turn, whose first part is then summarised apart."""
    tokens_before: int
    history: list[int]
    prefix: list[int]
    """The first part of a split turn; empty without one."""
    kept: list[int]
    kept_tokens: int
    """Estimated tokens that stay as they are."""
    system: JsonObject | None
    """The system message the compaction will bear; None when the context has none."""
    system_tokens: int
    previous_row: int
    """The compaction the context begins with, ROOT for none."""

    @property
    def previous_id(self) -> str | None:
        """The previous compaction's entry."""
        return self.projection.tree.id_or_none(self.previous_row)

    @property
    def previous_summary(self) -> str | None:
        """What the previous compaction told, as it is stored; None without one."""
        if self.previous_row == ROOT:
            return None
        said = self.projection.messages_of(self.previous_row)
        return str(said[-1].get("summary", "")) if said else None

    @cached_property
    def told_history(self) -> Told:
        """What the history says."""
        return Told(self.projection, self.history)

    @cached_property
    def told_prefix(self) -> Told:
        """What the first part of a split turn says."""
        return Told(self.projection, self.prefix)

    def speaking(self, rows: list[int]) -> list[int]:
        """The rows of a range that say something beside what system messages say."""
        kinds = self.projection.tree.heads.kinds
        telling = self.projection.tree.heads.kinds_of(rows).translate(_TELLING)
        may_speak = compress(rows, telling)
        edits = self.projection.selection.edits
        if not edits and _PERHAPS not in telling:
            return list(may_speak)
        return [
            row
            for row in may_speak
            if (kinds[row] in SURE_KINDS and row not in edits) or self.projection.messages_of(row)
        ]


def plan_compaction(
    projection: Projection, keep_recent_tokens: int, omitted: frozenset[int] = frozenset()
) -> CompactionPlan | None:
    """The plan that keeps about the newest `keep_recent_tokens`; None when nothing is to be done.

    Nothing is to be done right after a compaction, and when all of the span would be kept. Rows in
    `omitted` are taken to be edited away: what a recovery would do first.
    """
    tree = projection.tree
    if projection.leaf_row == ROOT or tree.kind(projection.leaf_row) == Kind.COMPACTION:
        return None
    span = _Span(projection, omitted)
    cut, reached = span.cut(keep_recent_tokens)
    if reached and span.suffix_is_omitted(cut):
        cut += 1
    boundary = span.silent_before(cut)
    turn = span.turn_start(cut, boundary)
    history_end = boundary if turn is None else turn
    if not span.says_anything(span.start, boundary):
        return None
    rows = span.rows
    kept = rows[boundary:]
    system = projection.system()
    return CompactionPlan(
        projection=projection.as_it_stands(),
        leaf_row=projection.leaf_row,
        first_kept_id=tree.heads.id_of(rows[boundary]),
        is_split_turn=turn is not None,
        tokens_before=projection.tokens().total,
        history=rows[span.start : history_end],
        prefix=[] if turn is None else rows[turn:boundary],
        kept=kept,
        kept_tokens=sum(projection.tokens_of(row)[1] for row in kept),
        system=system,
        system_tokens=0 if system is None else projection.policy.tokens_of(system),
        previous_row=rows[0] if span.start else ROOT,
    )


def follows_pi(policy: Policy) -> bool:
    """Whether a policy wants Pi's own cuts, oddities included."""
    return policy.id == PI3.id


class _Span:
    """The places of a context a compaction may divide."""

    def __init__(self, projection: Projection, omitted: frozenset[int]) -> None:
        selection = projection.selection
        self.projection = projection
        self.rows = selection.rows
        self.kinds = projection.tree.heads.kinds
        self.omitted = omitted
        self.as_pi = follows_pi(projection.policy)
        begins_with_summary = selection.compaction_row != ROOT and bool(
            projection.messages_of(selection.compaction_row)
        )
        self.start = 1 if begins_with_summary else 0

    def says(self, place: int) -> bool:
        row = self.rows[place]
        kind = self.kinds[row]
        if kind in SILENT_KINDS or row in self.omitted:
            return False
        if kind in SURE_KINDS and row not in self.projection.selection.edits:
            return True
        return bool(self.projection.messages_of(row))

    def roles(self, place: int) -> tuple[str, ...]:
        if not self.says(place):
            return ()
        row = self.rows[place]
        known = ROLE_OF_KIND.get(Kind(self.kinds[row]))
        if known is not None:
            return (known,)
        return tuple(str(message.get("role")) for message in self.projection.messages_of(row))

    def may_begin(self, place: int) -> bool:
        if self.kinds[self.rows[place]] == Kind.COMPACTION:
            return False
        return any(role in CUT_ROLES for role in self.roles(place))

    def starts_turn(self, place: int) -> bool:
        return any(role in TURN_ROLES for role in self.roles(place))

    def tokens(self, place: int) -> int:
        row = self.rows[place]
        if row in self.omitted:
            return 0
        system, others = self.projection.tokens_of(row)
        # A system message is never in the kept range, so its tokens are no reason to keep less.
        return system + others if self.as_pi else others

    def cut(self, keep_recent_tokens: int) -> tuple[int, bool]:
        """Where the kept range begins by the budget, and whether the budget was reached."""
        total = 0
        for place in range(len(self.rows) - 1, self.start - 1, -1):
            tokens = self.tokens(place)
            total += tokens
            if tokens and total >= keep_recent_tokens:
                return self._paired(self._beginning_at(place)), True
        return self._first_beginning(self.start, len(self.rows)), False

    def _beginning_at(self, place: int) -> int:
        end = len(self.rows)
        found = self._first_beginning(place, end, missing=end)
        if found < end:
            return found
        before = range(place - 1, self.start - 1, -1)
        return next((one for one in before if self.may_begin(one)), self.start)

    def _first_beginning(self, place: int, end: int, missing: int | None = None) -> int:
        found = (one for one in range(place, end) if self.may_begin(one))
        return next(found, self.start if missing is None else missing)

    def _paired(self, cut: int) -> int:
        """The cut, moved up to the call of any kept result whose call would be summarised."""
        if self.as_pi:
            return cut
        while (orphans := self._orphans(cut)) and cut > self.start:
            found = self._asking(orphans, cut)
            if found is None:
                return cut
            cut = found
        return cut

    def _orphans(self, cut: int) -> set[str]:
        asked: set[str] = set()
        orphans: set[str] = set()
        for place in range(cut, len(self.rows)):
            kind = self.kinds[self.rows[place]]
            if kind == Kind.ASSISTANT:
                asked |= self._call_ids(place)
            elif kind == Kind.TOOL_RESULT:
                for message in self.projection.messages_of(self.rows[place]):
                    orphans.add(str(message.get("toolCallId")))
                    orphans -= asked
        return orphans

    def _asking(self, orphans: set[str], cut: int) -> int | None:
        for place in range(cut - 1, self.start - 1, -1):
            if self.kinds[self.rows[place]] != Kind.ASSISTANT or not self.says(place):
                continue
            if orphans & self._call_ids(place):
                return place
        return None

    def _call_ids(self, place: int) -> set[str]:
        said = self.projection.messages_of(self.rows[place])
        return {call.id for message in said for call in tool_calls_of(message)}

    def suffix_is_omitted(self, cut: int) -> bool:
        """Whether all after the cut is edited away, failed replies among it.

        Then the cut entry is the big input nobody answered: it must be summarised itself.
        """
        omitted = {self.rows[place] for place in range(cut + 1, len(self.rows))}
        omitted = {row for row in omitted if self._is_omitted(row)}
        if not any(self.kinds[row] == Kind.ASSISTANT for row in omitted):
            return False
        for place in range(cut + 1, len(self.rows)):
            row = self.rows[place]
            if self.kinds[row] == Kind.COMPACTION or (row not in omitted and self.says(place)):
                return False
            if self.kinds[row] == Kind.CONTEXT_EDIT and self._replaces_other(row, omitted):
                return False
        return True

    def _is_omitted(self, row: int) -> bool:
        if row in self.omitted:
            return True
        edit_row = self.projection.selection.edits.get(row)
        if edit_row is None:
            return False
        return self.projection.tree.entry(edit_row).object["replacement"] is None

    def _replaces_other(self, edit_row: int, omitted: set[int]) -> bool:
        tree = self.projection.tree
        fields = tree.entry(edit_row).object
        if fields.get("replacement") is None:
            return False
        target = fields.get("targetId")
        target_row = tree.heads.row_of(target) if isinstance(target, str) else None
        return target_row not in omitted

    def silent_before(self, cut: int) -> int:
        """The first of the silent places directly before the cut: they stay with what is kept."""
        while cut > self.start and not self.says(cut - 1):
            if self.kinds[self.rows[cut - 1]] == Kind.COMPACTION:
                break
            cut -= 1
        return cut

    def turn_start(self, cut: int, boundary: int) -> int | None:
        """Where the turn begins that the cut parts; None when the cut parts none."""
        # Pi asks the first kept entry, which may be a label or a rename that says nothing, and then
        # takes a whole turn for the beginning of one.
        asked = boundary if self.as_pi else self._first_saying(cut)
        if asked is not None and self.starts_turn(asked):
            return None
        above = range(boundary if self.as_pi else cut, self.start - 1, -1)
        return next((place for place in above if self.starts_turn(place)), None)

    def _first_saying(self, place: int) -> int | None:
        return next((one for one in range(place, len(self.rows)) if self.says(one)), None)

    def says_anything(self, start: int, end: int) -> bool:
        for place in range(start, end):
            kind = self.kinds[self.rows[place]]
            if kind in (Kind.SYSTEM, Kind.COMPACTION) or not self.says(place):
                continue
            if self.as_pi:
                return True
            said = self.projection.messages_of(self.rows[place])
            if any(message_for_model(message) is not None for message in said):
                return True
        return False
