"""What a session tells its listeners, and what is said about what was odd.

An event is plain data about something that has happened; entries are on the disk before the event
that bears them exists. The hub numbers events, a front end gives them the words of its protocol.
"""

from typing import Any, Literal

import msgspec

from pi_rpc.core.messages import Block, JsonObject

Severity = Literal["info", "warning", "error"]
Outcome = Literal["done", "aborted", "failed", "truncated"]
"""How a run ended: an answer, a stop, a failure, or an answer cut at the output limit."""
AttemptNext = Literal["retry", "recover", "queued", "none"]
CompactionReason = Literal["manual", "threshold", "overflow"]
QueueMode = Literal["one-at-a-time", "all"]
"""How many of the words that wait go with one request."""
DeltaKind = Literal["text", "thinking", "toolArguments"]
SwapReason = Literal["new", "switch", "fork", "clone", "import", "reload", "relocate"]
VerdictStatus = Literal["restored", "not_restored", "unknown"]


class Diagnostic(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Something odd that stopped nothing."""

    severity: Severity
    reason: str
    """A stable slug."""
    text: str
    """For people."""
    line: int | None = None
    """Line of the file, counted from 1 with the header."""
    offset: int | None = None
    """Where the line begins, in bytes."""
    path: str | None = None
    entry_id: str | None = None


class ScopeVerdict(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """How one part of the environment stands against what the leaf expects."""

    status: VerdictStatus
    reason: str
    """A stable slug: equal, differs, nothing_ran, not_bound, not_watched, unseen_calls, …"""
    expected: str | None = None
    """The version bound to the leaf."""
    actual: str | None = None
    """The version that is there."""
    by: str | None = None
    """What brought it there, when something did: restore."""


class Environment(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Whether the world went along when the leaf moved."""

    status: VerdictStatus
    """The worst of the scopes; not_restored is worse than unknown, unknown than restored."""
    scopes: dict[str, ScopeVerdict]
    abandoned_effects: list[JsonObject] = []
    """Calls and effects on routes left behind that may have marked the world."""
    drift: list[JsonObject] = []
    """Paths that differ from what the leaf expects, `{path, change}`; at most a thousand."""
    drift_count: int = 0
    """How many there are."""


class RunStarted(msgspec.Struct, frozen=True):
    """A run was accepted and owns the session."""

    run_id: str


class AttemptEnded(msgspec.Struct, frozen=True):
    """One bracket inside a run is over; `next` says what follows."""

    run_id: str
    next: AttemptNext


class RunSettled(msgspec.Struct, frozen=True):
    """A run is over and everything of it is stored; told exactly once for each."""

    run_id: str
    outcome: Outcome
    error: JsonObject | None = None


RetriedRequest = Literal["reply", "summary"]
"""What is asked for again: the next reply of a run, or a summary."""


class RetryScheduled(msgspec.Struct, frozen=True):
    """A request failed for a reason that may pass, and is made again after a while."""

    run_id: str | None
    """None for a summary that is asked for outside of runs."""
    attempt: int
    """Retries count from 1, until a reply does not fail."""
    attempts_max: int
    delay_ms: int
    error: JsonObject
    of: RetriedRequest = "reply"


class RetryEnded(msgspec.Struct, frozen=True):
    """The retries are over: with an answer that did not fail, or with this error."""

    run_id: str | None
    attempt: int
    success: bool
    error: JsonObject | None = None
    of: RetriedRequest = "reply"


class TurnStarted(msgspec.Struct, frozen=True):
    """A reply is about to be asked for; turns of a run count from 1."""

    run_id: str
    turn: int


class TurnEnded(msgspec.Struct, frozen=True):
    """A reply and the results of its calls are stored."""

    run_id: str
    turn: int
    message_entry_id: str
    tool_result_entry_ids: list[str]


class MessageStarted(msgspec.Struct, frozen=True):
    """A message of this role begins; only an assistant's is followed by deltas."""

    role: str


class MessageDelta(msgspec.Struct, frozen=True, gc=False):
    """More of the message that streams; the ended message is authoritative."""

    block: int
    kind: DeltaKind
    text: str
    call_id: str | None = None
    """With the first delta of a call, and only there."""
    name: str | None = None


class MessageEnded(msgspec.Struct, frozen=True):
    """A message as it is stored."""

    entry_id: str
    message: JsonObject


class ToolStarted(msgspec.Struct, frozen=True):
    """A call begins, with the arguments the model gave."""

    call_id: str
    name: str
    arguments: JsonObject


class ToolProgressed(msgspec.Struct, frozen=True):
    """What a running call has to show so far; replaces what it showed before."""

    call_id: str
    content: list[Block]
    details: JsonObject | None = None


class ToolEnded(msgspec.Struct, frozen=True):
    """A call is over; its result entry follows when the whole batch is."""

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


class EntryAppended(msgspec.Struct, frozen=True):
    """An entry is on the disk."""

    id: str
    type: str
    parent_id: str | None
    leaf_id: str | None
    """Where the leaf stands now; a cursor moves it without becoming it."""


class LeafMoved(msgspec.Struct, frozen=True):
    """The leaf went elsewhere in the tree."""

    source: str | None
    target: str | None
    op: str
    visible_leaf_id: str | None
    environment: Environment


class WorkspaceDrifted(msgspec.Struct, frozen=True):
    """After a move the world does not stand, or may not stand, as the leaf has it."""

    environment: Environment


class WorkspaceRestored(msgspec.Struct, frozen=True):
    """The world was brought to another version because somebody asked for it."""

    version: str | None
    """Null where only scopes were meant, of which `environment` tells."""
    safety_version: str | None
    """The state of the files before, to go back to."""
    paths: list[str]
    """At most the first thousand."""
    count: int
    environment: Environment


class QueueChanged(msgspec.Struct, frozen=True):
    """The words that wait, whole."""

    steering: list[JsonObject]
    follow_up: list[JsonObject]
    steering_mode: QueueMode = "one-at-a-time"
    follow_up_mode: QueueMode = "one-at-a-time"


class ModelChanged(msgspec.Struct, frozen=True):
    """Another model answers from the next request on."""

    provider: str
    model_id: str


class ThinkingChanged(msgspec.Struct, frozen=True):
    """Another thinking level holds from the next request on."""

    thinking_level: str


class SessionRenamed(msgspec.Struct, frozen=True):
    """The session's name, None when it has none."""

    name: str | None


class LabelChanged(msgspec.Struct, frozen=True):
    """The label of an entry, None when it was cleared."""

    target_id: str
    label: str | None


class CompactionStarted(msgspec.Struct, frozen=True):
    """A summary is about to be asked for; an end follows in any case."""

    reason: CompactionReason
    tokens_before: int


class CompactionEnded(msgspec.Struct, frozen=True):
    """A compaction is stored, or it did not come about and says why.

    A recovery that has nothing left to try ends without having started.
    """

    reason: CompactionReason
    entry_id: str | None = None
    """The compaction; None when nothing was stored."""
    tokens_before: int | None = None
    tokens_after: int | None = None
    first_kept_entry_id: str | None = None
    aborted: bool = False
    will_retry: bool = False
    """Whether the reply that did not fit is asked for again."""
    error: JsonObject | None = None


class SessionOpened(msgspec.Struct, frozen=True):
    """A runtime is live; the first event of each, told exactly once."""

    reason: str
    """new, open, or the reason of the swap that made it."""
    leaf_id: str | None
    parent_session: str | None = None
    """The file it was copied from, as its header has it."""
    parent: str | None = None
    """The id of the session it was copied from."""


class SessionClosed(msgspec.Struct, frozen=True):
    """A runtime is over; the last event of each that was not replaced."""

    reason: str


class RuntimeReplaced(msgspec.Struct, frozen=True):
    """Another runtime takes over; the last event of the old one."""

    old_runtime_id: str
    old_session_id: str
    new_runtime_id: str
    new_session_id: str
    reason: SwapReason


class ForeignAppended(msgspec.Struct, frozen=True):
    """Another program wrote into the file; its entries are in the tree now."""

    entry_ids: list[str]
    """At most the first thousand."""
    count: int


class ShellPrinted(msgspec.Struct, frozen=True):
    """A command the user runs has printed something."""

    shell_id: str
    text: str
    skipped_chars: int = 0
    """Characters left out before this text, because they came faster than they are told."""


class SettingsChanged(msgspec.Struct, frozen=True):
    """A setting was chosen or taken back; this is what holds now."""

    key: str
    value: Any
    layer: str


class RequestResolved(msgspec.Struct, frozen=True):
    """A question to a client is over, with or without an answer."""

    request_id: str
    kind: str
    """hook, tool, command, permission, checkpoint, select, confirm, input, editor."""
    outcome: str
    """answered, timeout, stopped, disconnected, failed."""
    hook: str | None = None
    """Which hook it was."""
    elapsed_ms: int | None = None
    """How long a hook took."""


class DiagnosticTold(msgspec.Struct, frozen=True):
    """Something odd was met while the session lives."""

    diagnostic: Diagnostic


Event = (
    RunStarted
    | AttemptEnded
    | RunSettled
    | RetryScheduled
    | RetryEnded
    | TurnStarted
    | TurnEnded
    | MessageStarted
    | MessageDelta
    | MessageEnded
    | ToolStarted
    | ToolProgressed
    | ToolEnded
    | EntryAppended
    | LeafMoved
    | WorkspaceDrifted
    | WorkspaceRestored
    | QueueChanged
    | ModelChanged
    | ThinkingChanged
    | SessionRenamed
    | LabelChanged
    | CompactionStarted
    | CompactionEnded
    | SessionOpened
    | SessionClosed
    | RuntimeReplaced
    | ForeignAppended
    | ShellPrinted
    | SettingsChanged
    | RequestResolved
    | DiagnosticTold
)
