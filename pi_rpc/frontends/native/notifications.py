"""Event to notification: the words of this protocol for what a session tells."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from pi_rpc.core import events
from pi_rpc.core.events import (
    AttemptNext,
    CompactionReason,
    DeltaKind,
    Diagnostic,
    Environment,
    Outcome,
    QueueMode,
    SwapReason,
)
from pi_rpc.core.hooks import HookName
from pi_rpc.core.messages import Block, JsonObject
from pi_rpc.frontends.native.shapes import ModelRef, QueueItem


class Notice(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """What every notification about a session carries."""

    session_id: str
    runtime_id: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscription_ids: list[str]
    """The subscriptions of this client that hear it."""


class AgentStartedNotification(Notice, frozen=True, kw_only=True):
    """A run was accepted and owns the session."""

    run_id: str


class AgentAttemptEndedNotification(Notice, frozen=True, kw_only=True):
    """One bracket inside a run is over."""

    run_id: str
    next: AttemptNext


class AgentSettledNotification(Notice, frozen=True, kw_only=True, omit_defaults=True):
    """A run is over and everything of it is stored; exactly once for each accepted run."""

    run_id: str
    outcome: Outcome
    error: JsonObject | None = None
    """Why it failed: `kind`, `reason`, `message`; and `reply`, what the model's server said, where
    the last reply failed."""


class RetryScheduledNotification(Notice, frozen=True, kw_only=True):
    """A request failed for a reason that may pass, and is made again after a while."""

    run_id: str | None
    """Null for a summary that is asked for outside of runs."""
    attempt: int
    """Retries count from 1, until a reply does not fail."""
    max_attempts: int
    delay_ms: int
    error: JsonObject
    of: events.RetriedRequest
    """What is asked for again; a summary inside a run has retries of its own."""


class RetryEndedNotification(Notice, frozen=True, kw_only=True, omit_defaults=True):
    """The retries are over: with an answer that did not fail, or with this error."""

    run_id: str | None
    attempt: int
    success: bool
    of: events.RetriedRequest
    error: JsonObject | None = None


class TurnStartedNotification(Notice, frozen=True, kw_only=True):
    """A reply is about to be asked for."""

    run_id: str
    turn: int


class TurnEndedNotification(Notice, frozen=True, kw_only=True):
    """A reply and the results of its calls are stored."""

    run_id: str
    turn: int
    message_entry_id: str
    tool_result_entry_ids: list[str]


class MessageStartedNotification(Notice, frozen=True, kw_only=True):
    """A message of this role begins."""

    role: str


class MessageDeltaNotification(Notice, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """More of the message that streams; `callId` and `name` with the first delta of a call."""

    block: int
    kind: DeltaKind
    text: str
    call_id: str | None = None
    name: str | None = None


class MessageEndedNotification(Notice, frozen=True, kw_only=True):
    """A message as it is stored; authoritative over its deltas."""

    entry_id: str
    message: JsonObject


class ToolStartedNotification(Notice, frozen=True, kw_only=True):
    """A call begins, with the arguments the model gave."""

    call_id: str
    name: str
    arguments: JsonObject


class ToolProgressNotification(Notice, frozen=True, kw_only=True, omit_defaults=True):
    """What a running call has to show so far; replaces what it showed before."""

    call_id: str
    content: list[Block]
    details: JsonObject | None = None


class ToolEndedNotification(Notice, frozen=True, kw_only=True, omit_defaults=True):
    """A call is over; its result entry follows with those of its batch."""

    call_id: str
    name: str
    arguments: JsonObject
    effective_arguments: JsonObject
    content: list[Block]
    is_error: bool
    effect: str
    duration_ms: float | None = None
    details: JsonObject | None = None
    changed_by: str | None = None
    """The registration of the hook that gave the effective arguments."""


class EntryAppendedNotification(Notice, frozen=True, kw_only=True):
    """An entry is on the disk."""

    id: str
    type: str
    parent_id: str | None
    leaf_id: str | None
    """Where the leaf stands now."""


class LeafMovedNotification(Notice, frozen=True, kw_only=True):
    """The leaf went elsewhere in the tree."""

    source: str | None = msgspec.field(name="from")
    target: str | None = msgspec.field(name="to")
    op: str
    visible_leaf: str | None
    environment: Environment


class WorkspaceDriftedNotification(Notice, frozen=True, kw_only=True):
    """After a move the world does not stand, or may not stand, as the leaf has it."""

    environment: Environment


class WorkspaceRestoredNotification(Notice, frozen=True, kw_only=True):
    """The world was brought to another version because somebody asked for it."""

    version: str | None
    """Null where only scopes were meant, of which `environment` tells."""
    safety_version: str | None
    """The state of the files before, to go back to."""
    paths: list[str]
    """At most the first thousand."""
    count: int
    environment: Environment


class QueueChangedNotification(Notice, frozen=True, kw_only=True):
    """The messages that wait, whole."""

    steering: list[QueueItem]
    follow_up: list[QueueItem]
    steering_mode: QueueMode
    follow_up_mode: QueueMode


class ModelChangedNotification(Notice, frozen=True, kw_only=True):
    """Another model answers from the next request on."""

    model: ModelRef


class ThinkingChangedNotification(Notice, frozen=True, kw_only=True):
    """Another thinking level holds from the next request on."""

    thinking_level: str


class SessionRenamedNotification(Notice, frozen=True, kw_only=True):
    """The session's name; null when it has none."""

    name: str | None


class LabelChangedNotification(Notice, frozen=True, kw_only=True):
    """The label of an entry; null when it was cleared."""

    target_id: str
    label: str | None


class CompactionStartedNotification(Notice, frozen=True, kw_only=True):
    """A summary is about to be asked for."""

    reason: CompactionReason
    tokens_before: int


class CompactionEndedNotification(Notice, frozen=True, kw_only=True, omit_defaults=True):
    """A compaction is stored, or it did not come about and says why."""

    reason: CompactionReason
    entry_id: str | None = None
    """The compaction; left out when nothing was stored."""
    tokens_before: int | None = None
    tokens_after: int | None = None
    first_kept_entry_id: str | None = None
    aborted: bool = False
    will_retry: bool = False
    """Whether the reply that did not fit is asked for again."""
    error: JsonObject | None = None


class SessionOpenedNotification(Notice, frozen=True, kw_only=True, omit_defaults=True):
    """A runtime is live; the first event of each."""

    reason: str
    leaf_id: str | None
    parent_session: str | None = None
    parent: str | None = None
    """The id of the session it was forked or cloned from."""


class SessionClosedNotification(Notice, frozen=True, kw_only=True):
    """A runtime is over; its last event."""

    reason: str


class RuntimeReplacedNotification(Notice, frozen=True, kw_only=True):
    """Another runtime takes over; the last event of the old one."""

    old: str
    """Runtime id of the old one."""
    new: str
    """Runtime id of the new one."""
    old_session_id: str
    new_session_id: str
    reason: SwapReason
    rebound: bool
    """Whether these subscriptions now hear the new runtime; else they are over."""


class SessionForeignAppendNotification(Notice, frozen=True, kw_only=True):
    """Another program wrote into the file; its entries are in the tree now."""

    entry_ids: list[str]
    count: int


class ShellOutputNotification(Notice, frozen=True, kw_only=True, omit_defaults=True):
    """A command of `shell/run` has printed something: plain text, to be put after what came."""

    shell_id: str
    text: str
    skipped_chars: int = 0
    """Characters left out before this text, because they came faster than they are told."""


class SettingsChangedNotification(Notice, frozen=True, kw_only=True):
    """A setting was chosen or taken back; this is what holds now."""

    key: str
    value: Any
    layer: str
    """default, user, project, session."""


class RequestResolvedNotification(Notice, frozen=True, kw_only=True):
    """A request to the client is over: a dialog that shows it can be closed."""

    request_id: str
    kind: str
    """hook, tool, command, permission, checkpoint, select, confirm, input, editor."""
    outcome: str
    """answered, timeout, stopped, disconnected, failed."""
    hook: HookName | None = None
    """Which hook it was."""
    elapsed_ms: int | None = None
    """How long a hook took."""


class DiagnosticNotification(Notice, frozen=True, kw_only=True):
    """Something odd was met while the session lives."""

    diagnostic: Diagnostic


class ProgressValue(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One step of long work."""

    kind: Literal["begin", "report", "end"]
    message: str | None = None
    fraction: float | None = None
    """From 0 to 1."""


class ProgressNotification(msgspec.Struct, frozen=True, rename="camel"):
    """How far long work has come, under the token its request carried."""

    token: str | int
    value: ProgressValue


Row = tuple[str, type[Notice], Callable[[Any], dict[str, Any]]]


def _fields(event: Any) -> dict[str, Any]:
    return {name: getattr(event, name) for name in event.__struct_fields__}


def _queue_fields(event: events.QueueChanged) -> dict[str, Any]:
    return {
        "steering": [QueueItem(**item) for item in event.steering],
        "follow_up": [QueueItem(**item) for item in event.follow_up],
        "steering_mode": event.steering_mode,
        "follow_up_mode": event.follow_up_mode,
    }


def _retry_fields(event: events.RetryScheduled) -> dict[str, Any]:
    fields = _fields(event)
    return fields | {"max_attempts": fields.pop("attempts_max")}


def _moved_fields(event: events.LeafMoved) -> dict[str, Any]:
    fields = _fields(event)
    return fields | {"visible_leaf": fields.pop("visible_leaf_id")}


def _replaced_fields(event: events.RuntimeReplaced) -> dict[str, Any]:
    return {
        "old": event.old_runtime_id,
        "new": event.new_runtime_id,
        "old_session_id": event.old_session_id,
        "new_session_id": event.new_session_id,
        "reason": event.reason,
    }


NOTIFICATION_OF: dict[type, Row] = {
    events.RunStarted: ("agent/started", AgentStartedNotification, _fields),
    events.AttemptEnded: ("agent/attemptEnded", AgentAttemptEndedNotification, _fields),
    events.RunSettled: ("agent/settled", AgentSettledNotification, _fields),
    events.RetryScheduled: ("retry/scheduled", RetryScheduledNotification, _retry_fields),
    events.RetryEnded: ("retry/ended", RetryEndedNotification, _fields),
    events.TurnStarted: ("turn/started", TurnStartedNotification, _fields),
    events.TurnEnded: ("turn/ended", TurnEndedNotification, _fields),
    events.MessageStarted: ("message/started", MessageStartedNotification, _fields),
    events.MessageDelta: ("message/delta", MessageDeltaNotification, _fields),
    events.MessageEnded: ("message/ended", MessageEndedNotification, _fields),
    events.ToolStarted: ("tool/started", ToolStartedNotification, _fields),
    events.ToolProgressed: ("tool/progress", ToolProgressNotification, _fields),
    events.ToolEnded: ("tool/ended", ToolEndedNotification, _fields),
    events.EntryAppended: ("entry/appended", EntryAppendedNotification, _fields),
    events.LeafMoved: ("leaf/moved", LeafMovedNotification, _moved_fields),
    events.WorkspaceDrifted: ("workspace/drifted", WorkspaceDriftedNotification, _fields),
    events.WorkspaceRestored: ("workspace/restored", WorkspaceRestoredNotification, _fields),
    events.QueueChanged: ("queue/changed", QueueChangedNotification, _queue_fields),
    events.ModelChanged: (
        "model/changed",
        ModelChangedNotification,
        lambda event: {"model": ModelRef(event.provider, event.model_id)},
    ),
    events.ThinkingChanged: ("thinking/changed", ThinkingChangedNotification, _fields),
    events.SessionRenamed: ("session/renamed", SessionRenamedNotification, _fields),
    events.LabelChanged: ("label/changed", LabelChangedNotification, _fields),
    events.CompactionStarted: ("compaction/started", CompactionStartedNotification, _fields),
    events.CompactionEnded: ("compaction/ended", CompactionEndedNotification, _fields),
    events.SessionOpened: ("session/opened", SessionOpenedNotification, _fields),
    events.SessionClosed: ("session/closed", SessionClosedNotification, _fields),
    events.RuntimeReplaced: ("runtime/replaced", RuntimeReplacedNotification, _replaced_fields),
    events.ForeignAppended: (
        "session/foreignAppend",
        SessionForeignAppendNotification,
        _fields,
    ),
    events.ShellPrinted: ("shell/output", ShellOutputNotification, _fields),
    events.SettingsChanged: ("settings/changed", SettingsChangedNotification, _fields),
    events.RequestResolved: ("request/resolved", RequestResolvedNotification, _fields),
    events.DiagnosticTold: ("diagnostic", DiagnosticNotification, _fields),
}
"""For each event: its name on the wire, its shape, and the shape's own fields."""
