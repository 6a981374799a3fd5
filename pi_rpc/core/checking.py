"""What is wrong with the entries of a session, beyond what its lines show: every row decoded.

A checker is given the rows in file order and holds little of them: the calls that were made, and
which of them were answered.

Promises
- Every row is looked at; one that cannot be read is told, and stops nothing.
- What is told is bounded; the rest is counted.
"""

from collections.abc import Iterable

from pi_rpc.core.codec import decode
from pi_rpc.core.entries import MESSAGE_KINDS, Kind
from pi_rpc.core.errors import Damaged
from pi_rpc.core.events import Diagnostic, Severity
from pi_rpc.core.heads import Heads
from pi_rpc.core.line_heads import split_glued
from pi_rpc.core.messages import JsonObject, tool_calls_of

PROBLEMS_MAX = 1000
"""More than a person reads."""

MENDED_BY_REPAIR = frozenset(
    {
        *("torn_line", "malformed_line", "nul_bytes", "glued_line", "not_an_object", "missing_id"),
        *("second_header", "duplicate_id", "orphan", "self_parent", "cycle", "unreadable_entry"),
    }
)
"""Reasons that are gone after a repair; what entries say to each other no program can mend."""

_FAILED = ("error", "aborted")


class Checker:
    """Finds what is wrong with entries; `take` is given every row once, in order."""

    def __init__(self, heads: Heads) -> None:
        self._heads = heads
        self._callers: dict[str, list[int]] = {}
        self._answered: set[tuple[str, int]] = set()
        self._results: list[tuple[int, str]] = []
        self._problems: list[Diagnostic] = []
        self._untold = 0

    def take(self, row: int, line: bytes) -> None:
        """Look at the stored line of a row."""
        try:
            stored = decode(line)
        except Damaged as error:
            self._take_unreadable(row, line, error.message)
            return
        if not isinstance(stored, dict):
            self._tell("error", "unreadable_entry", "its line holds no object", row)
            return
        kind = self._heads.kinds[row]
        if kind in MESSAGE_KINDS:
            self._take_message(row, stored)
        elif kind == Kind.COMPACTION:
            self._take_compaction(row, stored)
        elif kind in (Kind.CONTEXT_EDIT, Kind.LABEL):
            self._take_target(row, kind, stored)

    def _take_unreadable(self, row: int, line: bytes, why: str) -> None:
        if split_glued(line) is not None:
            why = "another record stands on its line"
        self._tell("error", "unreadable_entry", why, row)

    def _take_message(self, row: int, stored: JsonObject) -> None:
        message = stored.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            self._tell("warning", "message_missing", "a message entry without a message", row)
            return
        if message["role"] == "assistant" and message.get("stopReason") not in _FAILED:
            for call in tool_calls_of(message):
                self._callers.setdefault(call.id, []).append(row)
        elif message["role"] == "toolResult":
            call_id = message.get("toolCallId")
            self._results.append((row, call_id if isinstance(call_id, str) else ""))

    def _take_compaction(self, row: int, stored: JsonObject) -> None:
        kept = stored.get("firstKeptEntryId")
        if not isinstance(kept, str):
            return
        boundary = self._heads.row_of(kept)
        if boundary is None or not self._is_above(boundary, row):
            text = f"the first entry it keeps, {kept}, is not on its path: the context keeps none"
            self._tell("warning", "boundary_missing", text, row)

    def _take_target(self, row: int, kind: int, stored: JsonObject) -> None:
        target = stored.get("targetId")
        found = self._heads.row_of(target) if isinstance(target, str) else None
        if kind == Kind.LABEL:
            if found is None:
                self._tell("info", "label_target_missing", "it labels no entry", row)
        elif found is None or not self._is_above(found, row):
            text = "what it edits is not on its path: it changes nothing"
            self._tell("warning", "edit_target_missing", text, row)

    def _is_above(self, above: int, row: int) -> bool:
        parents = self._heads.parents
        while row >= 0 and row != above:
            row = parents[row]
        return row == above

    def finish(self) -> list[Diagnostic]:
        """Everything that is wrong."""
        for row, call_id in self._results:
            caller = self._caller_above(row, self._callers.get(call_id, ()))
            if caller is None:
                self._tell("info", "orphan_result", "no call above it has its id", row)
            else:
                self._answered.add((call_id, caller))
        for call_id, rows in self._callers.items():
            for row in rows:
                if (call_id, row) not in self._answered:
                    text = f"nothing answers its call {call_id}; the model is told so"
                    self._tell("info", "call_without_result", text, row)
        if self._untold:
            text = f"{self._untold} more entries have something wrong"
            self._problems.append(Diagnostic("warning", "more_diagnostics", text))
        return self._problems

    def _caller_above(self, row: int, callers: Iterable[int]) -> int | None:
        wanted = set(callers)
        parents, row = self._heads.parents, self._heads.parents[row]
        while wanted and row >= 0:
            if row in wanted:
                return row
            row = parents[row]
        return None

    def _tell(self, severity: Severity, reason: str, text: str, row: int) -> None:
        if len(self._problems) < PROBLEMS_MAX:
            entry_id = self._heads.id_of(row)
            self._problems.append(Diagnostic(severity, reason, text, entry_id=entry_id))
        else:
            self._untold += 1
