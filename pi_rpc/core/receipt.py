"""What a context was made of, and why: the record by which it can be checked later.

Promises
- Every entry of the path is named once, with a decision and its reason; no other entry is named.
- The messages of the included entries are the messages of the context.
- The digest follows the path, the leaf and the policy alone, not the clock, the file's place or the
  process: the same history gives the same digest anywhere.
"""

from collections import Counter
from hashlib import sha256
from typing import Literal

import msgspec

from pi_rpc.core.codec import canonical
from pi_rpc.core.context_messages import (
    EDITABLE_ROLES,
    is_kept_from_model,
    is_replacement,
    message_for_model,
    messages_of_entry,
    milliseconds_of,
)
from pi_rpc.core.entries import CUSTOM_KINDS, KIND_OF_TYPE, MESSAGE_KINDS, Entry, Kind
from pi_rpc.core.events import Diagnostic, Severity
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.pairing import pairing_of
from pi_rpc.core.policy import UNTOUCHABLE_KINDS, Policy
from pi_rpc.core.projection import Projection, project
from pi_rpc.core.selection import Mode, entry_or_none
from pi_rpc.core.tokens import FAILED_STOPS
from pi_rpc.core.tree import ROOT, Tree

Decision = Literal["include", "replace", "exclude", "state"]
"""`state`: an entry that never says anything to a model but changes what holds."""

INCLUDED_REASONS = {Kind.CUSTOM_MESSAGE: "custom_message", Kind.BRANCH_SUMMARY: "branch_summary"}

STATE_REASONS = {
    Kind.MODEL_CHANGE: "model",
    Kind.THINKING_LEVEL_CHANGE: "thinking",
    Kind.CONTEXT_EDIT: "edit",
    Kind.LABEL: "label",
    Kind.SESSION_INFO: "info",
    Kind.USAGE: "usage",
    Kind.CUSTOM: "custom",
    Kind.PROJECTION: "custom",
    Kind.FORK: "custom",
    Kind.PIN: "custom",
    Kind.CURSOR: "cursor",
    Kind.WORKSPACE: "workspace",
}

UNPAIRED_TEXTS = {
    "open_call": "a tool call without a result",
    "orphan_result": "a tool result without its call",
}

_TIMED_KINDS = frozenset({Kind.CUSTOM_MESSAGE, Kind.BRANCH_SUMMARY, Kind.COMPACTION})

_TYPE_OF_KIND = (
    {kind: name for name, kind in KIND_OF_TYPE.items()}
    | {Kind(kind): "message" for kind in MESSAGE_KINDS}
    | {Kind(kind): "custom" for kind in CUSTOM_KINDS}
)


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What became of one entry of the path."""

    id: str
    type: str
    decision: Decision
    reason: str
    tokens: int
    """Estimated; of an excluded entry what its own words would have cost."""
    role: str | None = None
    roles: list[str] | None = None
    """Instead of `role` when the entry says several messages."""
    messages: int = 0
    """How many messages of the context it gave; 0 unless included or replaced."""
    edit_id: str | None = None
    """The context edit that decided."""


class CompactionPart(msgspec.Struct, frozen=True, rename="camel"):
    """The compaction a context begins with, or that there is none."""

    entry_id: str | None
    first_kept_entry_id: str | None
    mode: Mode
    kept_count: int
    checkpoint: bool
    """Whether it gives the context its system message."""
    older_ignored: list[str]
    """Compactions in the kept range."""


class OffPath(msgspec.Struct, frozen=True, rename="camel"):
    """Entries of the file that are not on the path."""

    count: int
    types: dict[str, int]


class TokenPart(msgspec.Struct, frozen=True, rename="camel"):
    """How big the context is."""

    total: int
    """By estimates the sum over the included messages; else the usage and what followed it."""
    system: int
    conversation: int
    not_sent: int
    """Estimated, of included messages no provider is sent: failed replies and the like."""
    method: Literal["usage", "estimate"]
    usage_entry_id: str | None


class ModelPart(msgspec.Struct, frozen=True, rename="camel"):
    """The model the path implies."""

    provider: str
    model_id: str


class Receipt(msgspec.Struct, frozen=True, rename="camel"):
    """The record of one projection."""

    policy: JsonObject
    session_id: str
    leaf_id: str | None
    path_length: int
    root_id: str | None
    file_entry_count: int
    file_bytes: int
    compaction: CompactionPart
    entries: list[Verdict]
    """Every entry of the path once, in path order, but the compaction in force comes first."""
    excluded_types: dict[str, int]
    """Entries of the path that say nothing, by type."""
    off_path: OffPath
    messages: int
    tokens: TokenPart
    model: ModelPart | None
    thinking_level: str
    diagnostics: list[Diagnostic]
    digest: str
    v: int = 1

    def header(self) -> JsonObject:
        """The record without its entries, short enough to be kept beside each request."""
        told: JsonObject = msgspec.to_builtins(self)
        return {name: value for name, value in told.items() if name != "entries"}


def explain(tree: Tree, leaf_row: int, policy: Policy, session_id: str, file_bytes: int) -> Receipt:
    """The record of the context at a leaf. Reads the whole path, to tell what each entry costs."""
    projection = project(tree, leaf_row, policy)
    path = tree.path(leaf_row)
    judge = _Judge(projection)
    compaction_row = projection.selection.compaction_row
    listed = [compaction_row] if compaction_row != ROOT else []
    listed += [row for row in path if row != compaction_row]
    verdicts = [judge.verdict(row) for row in listed]
    silent = Counter(one.type for one in verdicts if not one.messages)
    messages = judge.messages
    model = projection.model
    leaf_id = tree.id_or_none(leaf_row)
    return Receipt(
        policy=policy.as_object(),
        session_id=session_id,
        leaf_id=leaf_id,
        path_length=len(path),
        root_id=tree.id_or_none(path[0]) if path else None,
        file_entry_count=len(tree),
        file_bytes=file_bytes,
        compaction=_compaction_part(projection),
        entries=verdicts,
        excluded_types=dict(sorted(silent.items())),
        off_path=_off_path(tree, path),
        messages=len(messages),
        tokens=_token_part(projection, [message for _, message in messages]),
        model=ModelPart(*model) if model else None,
        thinking_level=projection.thinking_level,
        diagnostics=[*judge.diagnostics, *_unpaired(messages)],
        digest=_digest(policy, leaf_id, messages),
    )


class _Judge:
    """Goes through the entries of a path and notes what it meets on the way."""

    def __init__(self, projection: Projection) -> None:
        self.projection = projection
        self.tree = projection.tree
        self.policy = projection.policy
        self.diagnostics: list[Diagnostic] = []
        self._by_row: dict[int, tuple[JsonObject, ...]] = {}
        self._selected = frozenset(projection.selection.rows)
        if projection.selection.mode == "boundary_missing":
            self._note(
                "warning",
                "boundary_missing",
                "what this compaction keeps is not on its path",
                projection.selection.compaction_row,
            )

    @property
    def messages(self) -> list[tuple[str, JsonObject]]:
        """Included messages with the ids they come from, in context order."""
        id_of = self.tree.heads.id_of
        return [
            (id_of(row), message)
            for row in self.projection.selection.rows
            for message in self._by_row.get(row, ())
        ]

    def _note(self, severity: Severity, reason: str, text: str, row: int) -> None:
        entry_id = self.tree.heads.id_of(row)
        self.diagnostics.append(Diagnostic(severity, reason, text, entry_id=entry_id))

    def verdict(self, row: int) -> Verdict:
        kind = self.tree.kind(row)
        entry = entry_or_none(self.tree, row)
        if entry is None:
            self._note("error", "unreadable_line", "a stored line cannot be read", row)
            return self._silent(row, "malformed")
        if kind in STATE_REASONS:
            if kind == Kind.CONTEXT_EDIT and row in self._selected:
                self._check_edit(entry)
            reason = STATE_REASONS[kind]
            return Verdict(entry.id, entry.type, "state", reason, tokens=0)
        if kind == Kind.UNKNOWN:
            return self._silent(row, "unknown_type")
        if kind in MESSAGE_KINDS and entry.message is None:
            self._note("warning", "malformed_message", "a message entry without a message", row)
            return self._silent(row, "malformed")
        if row not in self._selected:
            return self._left_out(entry)
        if kind in _TIMED_KINDS and milliseconds_of(entry.timestamp) is None:
            self._note("info", "invalid_timestamp", "a time that cannot be read counts as 0", row)
        return self._selected_verdict(entry)

    def _silent(self, row: int, reason: str) -> Verdict:
        entry_type = _type_of(self.tree, row)
        return Verdict(self.tree.heads.id_of(row), entry_type, "exclude", reason, tokens=0)

    def _left_out(self, entry: Entry) -> Verdict:
        reason = "summarised"
        if entry.kind == Kind.SYSTEM:
            reason = "system_folded"
        elif entry.kind == Kind.COMPACTION:
            reason = "older_compaction"
        return self._excluded(entry, reason)

    def _excluded(self, entry: Entry, reason: str, edit_id: str | None = None) -> Verdict:
        messages = messages_of_entry(entry, is_checkpoint=True)
        return self._told(entry, "exclude", reason, messages, edit_id)

    def _selected_verdict(self, entry: Entry) -> Verdict:
        row, kind = entry.row, entry.kind
        if kind == Kind.COMPACTION and row != self.projection.selection.compaction_row:
            return self._excluded(entry, "older_compaction")
        edit_row = self.projection.selection.edits.get(row, ROOT)
        if self.policy.ignores_hand_edits and kind in UNTOUCHABLE_KINDS:
            edit_row = ROOT
        messages = self.projection.messages_of(row)
        if not messages:
            if edit_row != ROOT:
                return self._excluded(entry, "omitted", self.tree.heads.id_of(edit_row))
            return self._excluded(entry, "empty_summary")
        if is_kept_from_model(messages[0]) and not self.policy.counts_private_shell:
            return self._excluded(entry, "bash_excluded")
        self._by_row[row] = messages
        if edit_row != ROOT and messages[0].get("role") in EDITABLE_ROLES:
            edit_id = self.tree.heads.id_of(edit_row)
            return self._told(entry, "replace", "edited", messages, edit_id)
        return self._told(entry, "include", _included_reason(entry, messages), messages)

    def _told(
        self,
        entry: Entry,
        decision: Decision,
        reason: str,
        messages: tuple[JsonObject, ...],
        edit_id: str | None = None,
    ) -> Verdict:
        roles = [str(message.get("role", "")) for message in messages]
        return Verdict(
            id=entry.id,
            type=entry.type,
            decision=decision,
            reason=reason,
            tokens=sum(map(self.policy.tokens_of, messages)),
            role=roles[0] if len(roles) == 1 else None,
            roles=roles if len(roles) > 1 else None,
            messages=0 if decision == "exclude" else len(messages),
            edit_id=edit_id,
        )

    def _check_edit(self, edit: Entry) -> None:
        fields = edit.object
        target = fields.get("targetId")
        if not isinstance(target, str) or not is_replacement(fields.get("replacement", "")):
            self._note("warning", "malformed_edit", "a context edit that says nothing", edit.row)
            return
        target_row = self.tree.heads.row_of(target)
        if target_row is None or not self.policy.ignores_hand_edits:
            return
        if target_row in self._selected and self.tree.kind(target_row) in UNTOUCHABLE_KINDS:
            self._note("warning", "ignored_edit", "its target may not be edited", edit.row)


def _included_reason(entry: Entry, messages: tuple[JsonObject, ...]) -> str:
    if entry.kind == Kind.COMPACTION:
        is_made = len(messages) > 1 and not isinstance(entry.object.get("systemMessage"), dict)
        return "checkpoint_fallback" if is_made else "checkpoint"
    return INCLUDED_REASONS.get(entry.kind, "message")


def _type_of(tree: Tree, row: int) -> str:
    known = _TYPE_OF_KIND.get(tree.kind(row))
    if known is not None:
        return known
    entry = entry_or_none(tree, row)
    return entry.type if entry else ""


def _compaction_part(projection: Projection) -> CompactionPart:
    tree, selection = projection.tree, projection.selection
    row = selection.compaction_row
    if row == ROOT:
        return CompactionPart(None, None, "none", 0, False, [])
    first_kept = tree.entry(row).object.get("firstKeptEntryId")
    return CompactionPart(
        entry_id=tree.heads.id_of(row),
        first_kept_entry_id=first_kept if isinstance(first_kept, str) else None,
        mode=selection.mode,
        kept_count=selection.kept_count,
        checkpoint=any(said.get("role") == "system" for said in projection.messages_of(row)),
        older_ignored=[tree.heads.id_of(older) for older in selection.older_compactions(tree)],
    )


def _off_path(tree: Tree, path: list[int]) -> OffPath:
    kinds = tree.heads.kinds
    on_path = Counter(kinds[row] for row in path)
    types: Counter[str] = Counter()
    for known, name in _TYPE_OF_KIND.items():
        types[name] += kinds.count(known) - on_path[known]
    if kinds.count(Kind.UNKNOWN) > on_path[Kind.UNKNOWN]:
        rows = set(path)
        for row, kind in enumerate(kinds):
            if kind == Kind.UNKNOWN and row not in rows:
                types[_type_of(tree, row)] += 1
    found = {name: count for name, count in sorted(types.items()) if count}
    return OffPath(count=len(tree) - len(path), types=found)


def _token_part(projection: Projection, messages: list[JsonObject]) -> TokenPart:
    system = conversation = not_sent = 0
    for message in messages:
        tokens = projection.policy.tokens_of(message)
        if message.get("role") == "system":
            system += tokens
        else:
            conversation += tokens
        if message_for_model(message) is None or message.get("stopReason") in FAILED_STOPS:
            not_sent += tokens
    counted = projection.tokens()
    by_usage = counted.usage_at is not None
    return TokenPart(
        total=counted.total if by_usage else system + conversation,
        system=system,
        conversation=conversation,
        not_sent=not_sent,
        method="usage" if by_usage else "estimate",
        usage_entry_id=projection.tree.id_or_none(
            ROOT if counted.usage_at is None else counted.usage_at
        ),
    )


def _unpaired(messages: list[tuple[str, JsonObject]]) -> list[Diagnostic]:
    pairing = pairing_of(message for _, message in messages)
    # What the last message calls for may still be running.
    places = [(place, "open_call") for place in pairing.unanswered if place < len(messages) - 1]
    places += [(place, "orphan_result") for place in pairing.orphans]
    return [
        Diagnostic("warning", reason, UNPAIRED_TEXTS[reason], entry_id=messages[place][0])
        for place, reason in sorted(places)
    ]


def _digest(policy: Policy, leaf_id: str | None, messages: list[tuple[str, JsonObject]]) -> str:
    told = [
        [entry_id, message.get("role"), sha256(canonical(message)).hexdigest()]
        for entry_id, message in messages
    ]
    return "sha256:" + sha256(canonical([policy.as_object(), leaf_id, told])).hexdigest()
