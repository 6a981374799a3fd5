# ruff: noqa: E501
# fmt: off
"""Shapes of the native protocol. Written by protocol/generate.py from the one table; do not edit.

A key that is `NotRequired` may be left out by whoever sends the object. Daemons newer than this
file may send more keys than it names.
"""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, Protocol, TypedDict, overload

METHODS = frozenset(
    {
        "initialize",
        "shutdown",
        "exit",
        "daemon/status",
        "daemon/diagnostics",
        "session/new",
        "session/open",
        "session/continue",
        "session/rename",
        "session/close",
        "session/delete",
        "session/import",
        "session/switch",
        "session/reload",
        "session/relocate",
        "session/state",
        "session/subscribe",
        "session/unsubscribe",
        "session/list",
        "session/entries",
        "session/read",
        "session/tree",
        "session/search",
        "session/check",
        "session/repair",
        "session/export",
        "branch/list",
        "branch/navigate",
        "branch/compare",
        "branch/summarize",
        "branch/bring",
        "branch/label",
        "branch/forkPoints",
        "session/fork",
        "session/clone",
        "context/get",
        "context/explain",
        "context/usage",
        "context/diff",
        "context/edit",
        "compact/preview",
        "compact/run",
        "compact/configure",
        "compact/verify",
        "compact/undo",
        "context/pin",
        "agent/prompt",
        "agent/steer",
        "agent/followUp",
        "agent/abort",
        "agent/abortRetry",
        "agent/wait",
        "queue/get",
        "queue/configure",
        "queue/edit",
        "queue/remove",
        "queue/clear",
        "context/add",
        "entry/append",
        "model/list",
        "model/set",
        "model/cycle",
        "thinking/set",
        "tool/list",
        "tool/setActive",
        "permission/list",
        "permission/forget",
        "settings/get",
        "settings/set",
        "trust/set",
        "command/list",
        "resources/list",
        "tools/register",
        "tools/unregister",
        "hooks/register",
        "hooks/unregister",
        "commands/register",
        "commands/unregister",
        "scopes/register",
        "scopes/unregister",
        "shell/run",
        "shell/abort",
        "session/stats",
        "workspace/status",
        "workspace/versions",
        "workspace/snapshot",
        "workspace/diff",
        "workspace/restore",
        "workspace/acknowledge",
        "workspace/recordEffect",
    }
)
"""Every method this file knows."""


class LeftOut(TypedDict):
    """A path that a version does not hold."""

    path: str
    reason: str
    """too_large, unreadable."""
    sizeBytes: int
    changedNs: NotRequired[int]
    """When it was changed last; with the size it stands for the content."""


class ActualVersion(TypedDict):
    """The state the files are in."""

    version: str
    leftOut: NotRequired[list[LeftOut]]
    """What it does not hold; size and time of these are watched."""


class AddedMessage(TypedDict):
    """A message for the model beside the user's, stored as an entry of type custom_message."""

    customType: str
    content: str | list[dict[str, Any]]
    display: NotRequired[bool]
    """Whether editors show it."""
    details: NotRequired[dict[str, Any] | None]


class AfterToolAnswer(TypedDict):
    """To `tool/after`: what is left out stays as the tool gave it."""

    content: NotRequired[list[dict[str, Any]] | None]
    details: NotRequired[dict[str, Any] | None]
    isError: NotRequired[bool | None]


class AgentAttemptEndedNotification(TypedDict):
    """One bracket inside a run is over."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    runId: str
    next: Literal["none", "queued", "recover", "retry"]


class Image(TypedDict):
    """An image to go with a prompt."""

    data: str
    """Base64, at most 4.5 MiB of it."""
    mimeType: str
    """image/png, image/jpeg, image/gif or image/webp."""


class AgentPromptParams(TypedDict):
    """A prompt."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    text: str
    images: NotRequired[list[Image]]
    expectedRunId: NotRequired[str | None]
    """The run the caller believes to be live."""
    whenBusy: NotRequired[Literal["followUp", "refuse", "steer"]]
    wait: NotRequired[bool]
    """Whether the answer is held until the run has settled."""


class AgentPromptResult(TypedDict):
    """What became of the words."""

    runId: str | None
    disposition: Literal["handled", "queued", "started"]
    itemId: NotRequired[str]
    """Of a queued message."""
    outcome: NotRequired[Literal["aborted", "done", "failed", "truncated"]]
    """When waited for."""


class AgentSettledNotification(TypedDict):
    """A run is over and everything of it is stored; exactly once for each accepted run."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    runId: str
    outcome: Literal["aborted", "done", "failed", "truncated"]
    error: NotRequired[dict[str, Any]]
    """Why it failed: `kind`, `reason`, `message`; and `reply`, what the model's server said, where
    the last reply failed.
    """


class AgentStartedNotification(TypedDict):
    """A run was accepted and owns the session."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    runId: str


class BashAnswer(TypedDict):
    """To `bash/before`: run the command, perhaps another, refuse it, or say what came of it."""

    action: NotRequired[Literal["allow", "block", "replace"]]
    reason: NotRequired[str | None]
    """Why it is blocked."""
    command: NotRequired[str | None]
    """With `allow`: the command to run instead."""
    output: NotRequired[str]
    """With `replace`: what it printed."""
    exitCode: NotRequired[int | None]
    """With `replace`; null for a command that was stopped."""


class BashBefore(TypedDict):
    """A command of the user's is about to run."""

    command: str
    excludeFromContext: bool


class BeforeCompact(TypedDict):
    """A compaction is planned and nothing was asked yet."""

    reason: str
    """manual, threshold, overflow."""
    tokensBefore: int
    firstKeptEntryId: str
    summarisedCount: int
    """How many entries the summary is to stand for."""
    summarisedEntryIds: list[str]
    """The newest of them, oldest first; at most a thousand."""
    willRetry: bool
    """Whether a reply that did not fit is asked for again."""
    instructions: NotRequired[str]
    """What the summary is to look at, as hooks before left it."""
    summary: NotRequired[str]
    """The summary a hook before gave."""


class BeforeCompactAnswer(TypedDict):
    """To `session/before_compact`: whether it may happen, and with which summary."""

    cancel: NotRequired[bool]
    reason: NotRequired[str | None]
    summary: NotRequired[str | None]
    """The summary; then no model is asked."""
    instructions: NotRequired[str | None]
    """What the summary is to look at instead."""
    details: NotRequired[dict[str, Any] | None]
    """With a summary: stored beside it."""


class BeforeMoveAnswer(TypedDict):
    """To `session/before_replace`: whether it may happen."""

    cancel: NotRequired[bool]
    reason: NotRequired[str | None]


class BeforeReplace(TypedDict):
    """A session is about to be replaced or copied."""

    reason: str
    """new, switch, fork, clone, import, reload, relocate."""
    entryId: NotRequired[str]
    """Where a fork ends."""
    activates: NotRequired[bool]
    """Whether the present runtime gives way; a copy may be made beside it."""


class CompactionDraft(TypedDict):
    """A summary that stands for what came before an entry."""

    type: Literal["compaction"]
    summary: str
    firstKeptEntryId: str
    """Words of a turn on the path; a result would be kept without its call."""


class ContextEditDraft(TypedDict):
    """Other content for an entry in the context, or none."""

    type: Literal["context_edit"]
    targetId: str
    replacement: NotRequired[dict[str, Any] | None]
    """An object with `content`; null leaves the entry out, a call together with its results."""


class CustomDraft(TypedDict):
    """State of a program, never shown to the model."""

    type: Literal["custom"]
    customType: str
    data: NotRequired[dict[str, Any] | None]


class CustomMessageDraft(TypedDict):
    """A message for the model."""

    type: Literal["custom_message"]
    customType: str
    content: str | list[dict[str, Any]]
    display: NotRequired[bool]
    """Whether editors show it."""
    details: NotRequired[dict[str, Any] | None]


class BeforeSettle(TypedDict):
    """Nothing is left to do in a run."""

    turn: int
    entries: list[CustomDraft | CustomMessageDraft | ContextEditDraft | CompactionDraft]
    continues: bool


class BeforeToolAnswer(TypedDict):
    """To `tool/before`: let the call run, perhaps with other arguments, or block it."""

    action: NotRequired[Literal["allow", "block"]]
    reason: NotRequired[str | None]
    """Why it is blocked; the model is told."""
    terminate: NotRequired[bool]
    """With `block`: the run may end here."""
    arguments: NotRequired[dict[str, Any] | None]
    """The arguments instead, whole; they are validated again."""


class BeforeTree(TypedDict):
    """The leaf is about to move."""

    targetId: str | None
    leafId: str | None
    ancestorId: str | None
    """Where both branches part."""
    leftCount: int
    """How many entries are left behind."""
    wantsSummary: bool
    """Whether what is left is to be summarised."""
    instructions: NotRequired[str]
    """What the summary is to look at."""


class BeforeTreeAnswer(TypedDict):
    """To `session/before_tree`: whether the leaf may move, and what is said of what is left."""

    cancel: NotRequired[bool]
    reason: NotRequired[str | None]
    summary: NotRequired[str | None]
    """The summary of what is left, where one is wanted."""
    instructions: NotRequired[str | None]
    """What the summary is to look at instead."""
    label: NotRequired[str | None]
    """A label for where the leaf goes."""


class BoundVersion(TypedDict):
    """A version and the entry that binds it."""

    version: str
    entryId: str


BoundaryAnswer = TypedDict(
    "BoundaryAnswer",
    {
        "entries": NotRequired[list[CustomDraft | CustomMessageDraft | ContextEditDraft | CompactionDraft] | None],
        "continue": NotRequired[bool | None],
    },
)
"""To `turn/ended` and `run/before_settle`: entries to write, and whether to go on."""


class BranchBringParams(TypedDict):
    """A conclusion of another branch."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    expectedLeaf: NotRequired[str | None]
    """Where the caller believes the leaf stands; checked only when given."""
    entryId: str
    """Where that branch ends, such as `other` of a comparison."""
    text: NotRequired[str | None]
    """What was concluded; the last answer on that branch unless given."""


class BranchBringResult(TypedDict):
    """The entry of type custom_message that tells of it."""

    entryId: str
    leafId: str | None


class BranchCompareParams(TypedDict):
    """Two leaves; the first is the session's own unless it is named."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    leafId: NotRequired[str | None]
    otherId: str | None


class Files(TypedDict):
    """Paths that calls named; calls that failed do not count."""

    read: list[str]
    modified: list[str]
    complete: bool
    """False when the branch is longer than what was read for this."""


class Side(TypedDict):
    """What one side has and the other has not."""

    leafId: str | None
    count: int
    entryIds: list[str]
    """Oldest first; the newest thousand when there are more."""
    text: str
    files: Files


class BranchCompareResult(TypedDict):
    """Where two leaves part, and what each has for itself."""

    commonAncestor: str | None
    leaf: Side
    other: Side


class BranchLabelParams(TypedDict):
    """A label for an entry; null or empty clears it."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    entryId: str
    label: str | None


class BranchLabelResult(TypedDict):
    """The entry that bears the label."""

    entryId: str
    leafId: str | None


class BranchListParams(TypedDict):
    """Which page of the tips."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    cursor: NotRequired[str | None]
    limit: NotRequired[int]


class Tip(TypedDict):
    """The end of a branch."""

    leafId: str
    forkedFrom: str | None
    """The entry its own part hangs below."""
    size: int
    """Entries of its own part."""
    timestamp: str
    text: str
    """The last words on it."""
    label: NotRequired[str]
    files: Files
    current: bool
    """Whether the leaf stands on it."""


class BranchListResult(TypedDict):
    """Tips in file order, a page at a time."""

    branches: list[Tip]
    leafId: str | None
    nextCursor: NotRequired[str]


class BranchNavigateParams(TypedDict):
    """Where to go."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    expectedLeaf: NotRequired[str | None]
    """Where the caller believes the leaf stands; checked only when given."""
    targetId: str | None
    """An entry; null is before the first one."""
    label: NotRequired[str | None]
    """A label for the target."""
    restore: NotRequired[Literal["none", "try"]]
    """Whether to try to bring the files along."""
    summarize: NotRequired[bool]
    """Whether what is left is summarised, for the branch where it goes on."""
    instructions: NotRequired[str | None]
    """What the summary is to look at above all."""
    replaceInstructions: NotRequired[bool]
    """Whether the instructions are all that is asked of the model."""


class ScopeVerdict(TypedDict):
    """How one part of the environment stands against what the leaf expects."""

    status: Literal["not_restored", "restored", "unknown"]
    reason: str
    """A stable slug: equal, differs, nothing_ran, not_bound, not_watched, unseen_calls, …"""
    expected: NotRequired[str]
    """The version bound to the leaf."""
    actual: NotRequired[str]
    """The version that is there."""
    by: NotRequired[str]
    """What brought it there, when something did: restore."""


class Environment(TypedDict):
    """Whether the world went along when the leaf moved."""

    status: Literal["not_restored", "restored", "unknown"]
    """The worst of the scopes; not_restored is worse than unknown, unknown than restored."""
    scopes: dict[str, ScopeVerdict]
    abandonedEffects: NotRequired[list[dict[str, Any]]]
    """Calls and effects on routes left behind that may have marked the world."""
    drift: NotRequired[list[dict[str, Any]]]
    """Paths that differ from what the leaf expects, `{path, change}`; at most a thousand."""
    driftCount: NotRequired[int]
    """How many there are."""


class BranchNavigateResult(TypedDict):
    """Where the leaf stands, and how the world stands to it."""

    leafId: str | None
    draft: NotRequired[str]
    """The words of a user message that was chosen, for the editor."""
    draftTruncated: NotRequired[bool]
    """They are too long for the client, and are read where they stand."""
    summaryEntryId: NotRequired[str]
    summary: NotRequired[Literal["empty", "made", "none"]]
    """`empty` when it was asked for and nothing was said on what was left: there is no entry."""
    environment: Environment


class BranchSummarizeParams(TypedDict):
    """Another branch, to be told of on this one."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    expectedLeaf: NotRequired[str | None]
    """Where the caller believes the leaf stands; checked only when given."""
    entryId: str
    """Where that branch ends."""
    instructions: NotRequired[str | None]
    replaceInstructions: NotRequired[bool]


class BranchSummarizeResult(TypedDict):
    """The summary."""

    leafId: str | None
    summaryEntryId: NotRequired[str]
    summary: Literal["empty", "made", "none"]


class CancelParams(TypedDict):
    """The request to withdraw."""

    id: str | int | float | None


class Capabilities(TypedDict):
    """What a client can do and wants."""

    experimental: NotRequired[bool]
    ui: NotRequired[list[str]]
    """Dialogs it can show: select, confirm, input, editor. Others are never asked for."""
    optOut: NotRequired[list[str]]
    """Exact names of notifications it does not want."""
    maxMessageBytes: NotRequired[int | None]
    """The longest message it reads."""
    permissions: NotRequired[bool]
    """Whether it answers `permission/request`; without it nobody is asked."""


class Checked(TypedDict):
    """A sentence or request of the user, and whether the notes tell of it."""

    entryId: str
    text: str
    mentioned: bool


class CheckpointAnswer(TypedDict):
    """To `workspace/checkpoint`: the state the scope is in now, or what came of going back."""

    version: NotRequired[str | None]
    """The name of the present state, by which it can be gone back to; null when it has none."""
    same: NotRequired[bool | None]
    """Whether the state `expected` holds; left out, the two names are compared."""
    restored: NotRequired[bool]
    """To `restore`: it is at `expected` again; with `dryRun`, it could be."""
    reason: NotRequired[str | None]
    """Why there is no version, or why it did not go back; for people."""


class ChoiceAnswer(TypedDict):
    """To `ui/select`: one of the options, or none of them."""

    value: NotRequired[str | None]
    """Null when the user closed the dialog."""


class ClientCommand(TypedDict):
    """A command that the client carries out."""

    name: str
    description: NotRequired[str]
    argumentHint: NotRequired[str | None]
    timeoutMs: NotRequired[int]


class ClientHook(TypedDict):
    """A point where the client takes part."""

    name: Literal["bash/before", "input", "message/ended", "request/context", "request/payload", "run/before_settle", "run/prepare", "run/settled", "session/before_compact", "session/before_replace", "session/before_tree", "session/closing", "session/started", "tool/after", "tool/before", "turn/ended"]
    tools: NotRequired[list[str]]
    """For hooks on tools: patterns of names; none means all."""
    timeoutMs: NotRequired[int]
    onTimeout: NotRequired[Literal["allow", "deny", "fail"] | None]
    """What holds without an answer; `deny` for `tool/before`, else `allow`."""
    order: NotRequired[int]
    """Lower is asked first; equal ones in the order of registration."""
    showsProgress: NotRequired[bool]
    """For `tool/after`: whether output may be shown before it was asked."""
    roles: NotRequired[list[str]]
    """For `message/ended`: roles of messages; none means all."""
    holdsDeltas: NotRequired[bool]
    """For `message/ended`: whether a reply is told to nobody before it was asked; then there are no
    `message/delta`.
    """
    lastMessages: NotRequired[int]
    """For `request/context`: how many of the newest messages it is shown."""


class ClientInfo(TypedDict):
    """Who is asking."""

    name: str
    version: NotRequired[str]


class ClientScope(TypedDict):
    """A part of the world beyond the files that the client keeps versions of."""

    name: str
    """Such as `database` or `container`; not `files` or `external`."""
    timeoutMs: NotRequired[int]


class ClientTool(TypedDict):
    """A tool that the client runs."""

    name: str
    description: str
    inputSchema: dict[str, Any]
    """JSON Schema of the arguments object."""
    mode: NotRequired[Literal["parallel", "sequential"]]
    """Whether other calls of a batch may run beside it."""
    effect: NotRequired[Literal["none", "outside", "workspace"]]
    """The most it may touch."""
    timeoutMs: NotRequired[int]


class ClientToolProgressParams(TypedDict):
    """What a client's tool has to show so far, instead of what it showed before."""

    sessionId: str
    callId: str
    content: list[dict[str, Any]]
    details: NotRequired[dict[str, Any] | None]


class CommandAnswer(TypedDict):
    """A command was carried out."""


class CommandExecuteParams(TypedDict):
    """A command that the user gave."""

    requestId: str
    """Names the question; it stays when the question is put again."""
    sessionId: str
    runtimeId: str
    runId: NotRequired[str]
    deadlineMs: int
    """How long the answer is waited for, from when the question was put first."""
    registrationId: str
    name: str
    arguments: str
    """What stands behind the name, as it was written."""


class ListedCommand(TypedDict):
    """A name that a prompt may begin with, after a slash."""

    name: str
    source: Literal["client", "extension", "prompt", "skill"]
    description: NotRequired[str]
    argumentHint: NotRequired[str]
    path: NotRequired[str]
    origin: NotRequired[Literal["project", "user"]]


class CommandListResult(TypedDict):
    """The commands of a session, in the order a name is looked for."""

    commands: list[ListedCommand]


class CommandsRegisterParams(TypedDict):
    """Commands that the client carries out."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    """The open session it holds for; without it, every session, also those opened later."""
    commands: list[ClientCommand]


class CompactConfigureParams(TypedDict):
    """How this runtime compacts by itself; what is left out stays as it is."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    enabled: NotRequired[bool | None]
    reserveTokens: NotRequired[int | None]
    """Tokens kept free for the answer."""
    keepRecentTokens: NotRequired[int | None]
    """The newest tokens that are kept as they are."""


class CompactConfigureResult(TypedDict):
    """What holds now."""

    enabled: bool
    reserveTokens: int
    keepRecentTokens: int
    effectiveReserveTokens: int
    """Fitted into the model's window."""
    effectiveKeepRecentTokens: int
    window: NotRequired[int]
    """Left out when unknown: then nothing is compacted by itself."""


class CompactPreviewParams(TypedDict):
    """What to plan; nothing is written."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    leafId: NotRequired[str | None]
    """The session's own leaf unless it is named."""
    keepRecentTokens: NotRequired[int | None]
    """Instead of what the settings say."""
    policy: NotRequired[Literal["default", "pi3"]]
    """`pi3` cuts where Pi would."""
    withFiles: NotRequired[bool]
    """False leaves out the files: to find them, all that is summarised must be read."""


class PlannedFiles(TypedDict):
    """Paths that calls named; calls that failed do not count."""

    read: list[str]
    modified: list[str]


class CompactPreviewResult(TypedDict):
    """What a compaction would do; entries that say nothing are in none of the lists."""

    leafId: str | None
    firstKeptEntryId: str | None
    """Null when there is nothing to do; `reason` says why."""
    reason: NotRequired[str]
    """already_compacted or nothing_to_compact."""
    isSplitTurn: bool
    """Whether what is kept begins inside a turn."""
    tokensBefore: int
    tokensAfter: int
    """Estimated, without the summary, which is not known yet."""
    keepRecentTokens: int
    """The budget that was used."""
    messagesToSummarize: list[str]
    turnPrefix: list[str]
    kept: list[str]
    files: NotRequired[PlannedFiles]
    """Left out when it was not wanted."""
    previousCompactionId: NotRequired[str]
    window: NotRequired[int]
    policy: str


class CompactRunParams(TypedDict):
    """A compaction to make now."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    instructions: NotRequired[str | None]
    """What the summary is to look at above all."""


class CompactRunResult(TypedDict):
    """The compaction that was stored."""

    entryId: str
    summary: str
    firstKeptEntryId: str
    tokensBefore: int
    tokensAfter: int
    usage: NotRequired[dict[str, Any]]
    details: dict[str, Any]
    effective: bool
    """False when it freed less than a tenth of the context."""
    missingSections: list[str]
    """Headings the model left out of its notes."""


class CompactUndoParams(TypedDict):
    """The last compaction of the path."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    expectedLeaf: NotRequired[str | None]
    """Where the caller believes the leaf stands; checked only when given."""


class CompactUndoResult(TypedDict):
    """Where the leaf stands without it."""

    compactionId: str
    leafId: str | None
    copies: dict[str, str]
    """Entries that came after it, and the copy of each on the new branch."""
    tokens: int
    """Estimated size of the context now."""
    environment: Environment


class CompactVerifyParams(TypedDict):
    """Which summary to check; the last one of the path unless it is named."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    compactionId: NotRequired[str | None]
    ask: NotRequired[bool]
    """Whether the model of an open session is shown the summary alone and asked to restate it. Only
    while the session is quiet. Nothing of it is stored; `restated` bears what it used.
    """
    recompact: NotRequired[bool]
    """Whether to take the compaction back and make it again with what is missing as its focus. Only
    of the last compaction of an open session, and only when there are findings.
    """


class FilesCheck(TypedDict):
    """What the states of the files say of a summary."""

    status: Literal["compared", "unknown"]
    reason: NotRequired[str | None]
    """Why it is unknown: not_open, no_versions, not_bound, or what a comparison failed of."""
    version: NotRequired[str | None]
    otherVersion: NotRequired[str | None]
    changed: NotRequired[list[str]]
    """Paths that differ from one to the other, relative to the folder."""
    count: NotRequired[int]


class Finding(TypedDict):
    """One thing to look at."""

    slug: Literal["changed_file_missing", "changed_file_not_restated", "claimed_file_unchanged", "constraint_missing", "constraint_not_restated", "failure_missing", "file_missing", "file_without_evidence", "goal_not_restated", "next_step_missing", "next_step_not_restated", "path_without_evidence", "pin_missing", "request_missing", "request_not_restated", "restated_file_without_evidence", "section_missing"]
    entryId: NotRequired[str]
    path: NotRequired[str]
    text: NotRequired[str]
    """The words in question, or the name of a section."""


class OnDisk(TypedDict):
    """A file the summary names."""

    path: str
    exists: bool


class PinCheck(TypedDict):
    """What became of a pin."""

    entryId: str
    status: Literal["carried", "kept", "missing"]


class Restated(TypedDict):
    """What a model restated, that was shown the summary and nothing else."""

    goal: str
    constraints: list[Checked]
    """Prohibitions of the user and of the notes, and whether they were restated."""
    changedFiles: list[str]
    """Paths it names as changed."""
    nextSteps: str
    usage: NotRequired[dict[str, Any] | None]


class CompactVerifyResult(TypedDict):
    """The summary held against what it was made of."""

    compactionId: str
    ok: bool
    """Whether there are no findings."""
    findings: list[Finding]
    summarized: list[str]
    missingSections: list[str]
    files: PlannedFiles
    """What the summary is stored with."""
    evidence: PlannedFiles
    """What calls that succeeded name, earlier summaries included."""
    disk: list[OnDisk]
    """The files it names, as they stand in the working directory."""
    versions: FilesCheck
    """What the states of the files say, where the session's folder has them."""
    pins: list[PinCheck]
    constraints: list[Checked]
    unanswered: list[Checked]
    failures: list[Checked]
    nextSteps: str
    restated: NotRequired[Restated]
    recompacted: NotRequired[CompactRunResult]


class CompactionEndedNotification(TypedDict):
    """A compaction is stored, or it did not come about and says why."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    reason: Literal["manual", "overflow", "threshold"]
    entryId: NotRequired[str]
    """The compaction; left out when nothing was stored."""
    tokensBefore: NotRequired[int]
    tokensAfter: NotRequired[int]
    firstKeptEntryId: NotRequired[str]
    aborted: NotRequired[bool]
    willRetry: NotRequired[bool]
    """Whether the reply that did not fit is asked for again."""
    error: NotRequired[dict[str, Any]]


class CompactionPart(TypedDict):
    """The compaction a context begins with, or that there is none."""

    entryId: str | None
    firstKeptEntryId: str | None
    mode: Literal["boundary_missing", "none", "range", "retain_none"]
    keptCount: int
    checkpoint: bool
    """Whether it gives the context its system message."""
    olderIgnored: list[str]
    """Compactions in the kept range."""


class CompactionStartedNotification(TypedDict):
    """A summary is about to be asked for."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    reason: Literal["manual", "overflow", "threshold"]
    tokensBefore: int


class ConfirmAnswer(TypedDict):
    """To `ui/confirm`: yes or no."""

    confirmed: NotRequired[bool | None]
    """Null when the user closed the dialog."""


class ContextAddParams(TypedDict):
    """A message for the model that is not the user's."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    customType: str
    """Whose it is and what it means, `myHost.note`; names that begin with `pi_rpc.` are ours."""
    content: str | list[dict[str, Any]]
    """Text and images."""
    display: NotRequired[bool]
    """Whether editors show it."""
    details: NotRequired[dict[str, Any] | None]
    """For programs; never sent to the model."""
    deliver: NotRequired[Literal["followUp", "nextPrompt", "record", "steer"]]
    """During a run `record` waits for the turn's end, `steer` and `followUp` go to the queues;
    `nextPrompt` waits until the user prompts and goes behind those words.
    """
    triggersRun: NotRequired[bool]
    """Whether it starts a run when none is live."""


class ContextAddResult(TypedDict):
    """What became of it."""

    disposition: str
    """recorded, started, queued, waiting."""
    entryId: NotRequired[str]
    runId: NotRequired[str]
    itemId: NotRequired[str]
    """Of a queued message."""


class ContextChange(TypedDict):
    """Other content for a message, or none."""

    entryId: str
    content: NotRequired[str | list[dict[str, Any]] | None]
    """Null leaves the message out, a call together with its results."""


class ContextAnswer(TypedDict):
    """To `request/context`: changes of this one request, which are not stored."""

    change: NotRequired[list[ContextChange]]
    append: NotRequired[list[str | list[dict[str, Any]]]]
    """Messages of the user's to go last."""


class ContextDiffParams(TypedDict):
    """Two leaves of one session."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    leafId: NotRequired[str | None]
    """The one; the session's own leaf unless it is named."""
    otherId: NotRequired[str | None]
    """The other; where the last request was made unless it is named."""
    policy: NotRequired[Literal["default", "pi3"]]


class ContextDiffResult(TypedDict):
    """How the other context differs from the one."""

    leafId: str | None
    otherId: str | None
    added: list[str]
    removed: list[str]
    changed: list[str]
    commonPrefix: int
    """Messages both begin with; a provider's cache reaches as far."""


class Replacement(TypedDict):
    """Another content: a text, or content blocks."""

    content: str | list[dict[str, Any]]


class ContextEditParams(TypedDict):
    """What the model is shown instead of an entry; null omits it."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    targetId: NotRequired[str | None]
    targetIds: NotRequired[list[str]]
    """Several entries at once."""
    replacement: Replacement | None
    pairs: NotRequired[bool]
    """Whether an omitted call takes its results along, and a result its call."""


class ContextEditResult(TypedDict):
    """The entry that makes the edit hold on this branch."""

    entryId: str
    entryIds: list[str]
    """Of every edit that was written."""
    leafId: str | None


class ContextGetParams(TypedDict):
    """Which form of the context, and which page."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    leafId: NotRequired[str | None]
    policy: NotRequired[Literal["default", "pi3"]]
    form: NotRequired[Literal["llm", "session"]]
    """`session`: the roles the file knows; `llm`: only what a provider is sent."""
    cursor: NotRequired[str | None]
    limit: NotRequired[int | None]
    """Messages of a page; as many as one answer carries unless given."""


class ContextsContextMessage(TypedDict):
    """A message, and the entry it comes from; one too long for the client without its content."""

    entryId: str
    message: dict[str, Any]


class ModelRef(TypedDict):
    """A model by provider and id."""

    provider: str
    modelId: str


class ContextGetResult(TypedDict):
    """What the model would be sent."""

    leafId: str | None
    messages: list[ContextsContextMessage]
    model: NotRequired[ModelRef]
    thinkingLevel: str
    tokens: int
    """A reported usage and estimates of what followed, or estimates alone."""
    nextCursor: NotRequired[str]


class ContextParams(TypedDict):
    """A leaf whose context is meant; the session's own unless it is named."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    leafId: NotRequired[str | None]
    policy: NotRequired[Literal["default", "pi3"]]


class ContextPart(TypedDict):
    """How full the context is at the leaf."""

    tokens: int | None
    """Null after a compaction until a reply reports its usage."""
    percent: float | None
    window: int
    reserve: int
    """Tokens of it that are kept free for the answer, as the session is configured."""
    estimate: int
    method: str
    usageEntryId: NotRequired[str]
    policy: str


class ContextPinParams(TypedDict):
    """An entry of the path to pin, or words; one of the two."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    entryId: NotRequired[str | None]
    text: NotRequired[str | None]
    pinned: NotRequired[bool]
    """False lets an entry go."""


class ContextPinResult(TypedDict):
    """What is pinned."""

    entryId: str
    """The entry whose words are pinned; for words a new one."""
    pinEntryId: str
    """The mark on the path."""
    leafId: str | None
    pinned: bool


class ContextUsage(TypedDict):
    """The size of a context in tokens. The five parts are estimates and add up to `estimate`."""

    system: int
    """Prompt text and sections, patches folded."""
    tools: int
    """Tool declarations."""
    summary: int
    """Summaries of what was compacted, and of branches left."""
    messages: int
    """Questions, answers, shell output and words of programs."""
    toolResults: int
    total: int
    """The best number there is: a reported usage and estimates of what followed, or `estimate`."""
    tokens: int | None
    """`total`, but None after a compaction until a reply reports its usage."""
    estimate: int
    method: Literal["estimate", "unknown", "usage"]
    """What `tokens` was read from; `unknown` when it is None."""
    usageEntryId: str | None
    """The reply whose usage was trusted."""
    window: int | None
    """The model's context window; None when unknown."""
    reserve: int
    """Tokens kept free for the answer."""
    percent: float | None
    """`tokens` of the window, may exceed 100; None when either is unknown."""
    policy: str


class QueueItem(TypedDict):
    """A message that waits for the model."""

    id: str
    text: str
    truncated: NotRequired[bool]
    """The text is only the beginning, for a client that reads no longer messages."""


class Queues(TypedDict):
    """Both queues, first to be delivered first."""

    steering: list[QueueItem]
    followUp: list[QueueItem]
    steeringMode: Literal["all", "one-at-a-time"]
    """How many of them go with one request."""
    followUpMode: Literal["all", "one-at-a-time"]


class CopiedState(TypedDict):
    """A new session made from a path of another."""

    sessionId: str
    runtimeId: str
    seq: int
    """Number of the runtime's last event."""
    subscriptionId: NotRequired[str]
    path: NotRequired[str]
    cwd: str
    name: NotRequired[str]
    mode: Literal["own", "read"]
    leafId: str | None
    visibleLeafId: str | None
    """The nearest entry at or above the leaf that is a step of the conversation."""
    entryCount: int
    model: NotRequired[ModelRef]
    thinkingLevel: str
    running: bool
    runId: NotRequired[str]
    compacting: bool
    """Whether a summary of the context is being made."""
    queue: Queues
    interrupted: NotRequired[list[str]]
    """Ids of calls that no result answers; each gets one when the next run begins."""
    environment: Environment
    parentSession: NotRequired[str]
    draft: NotRequired[str]
    """The words of the message it was forked before, for the editor."""
    draftTruncated: NotRequired[bool]
    """They are too long for the client, and are read where they stand."""


class SessionBrief(TypedDict):
    """A live session in a list."""

    sessionId: str
    runtimeId: str
    running: bool
    mode: Literal["own", "read"]
    loaded: bool
    """Whether its history is in memory; if not, whatever needs it brings it back."""


class DaemonStatus(TypedDict):
    """What the daemon is doing."""

    version: str
    pid: int
    uptimeS: float
    sessions: list[SessionBrief]
    shuttingDown: NotRequired[bool]


class Diagnostic(TypedDict):
    """Something odd that stopped nothing."""

    severity: Literal["error", "info", "warning"]
    reason: str
    """A stable slug."""
    text: str
    """For people."""
    line: NotRequired[int]
    """Line of the file, counted from 1 with the header."""
    offset: NotRequired[int]
    """Where the line begins, in bytes."""
    path: NotRequired[str]
    entryId: NotRequired[str]


class DiagnosticNotification(TypedDict):
    """Something odd was met while the session lives."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    diagnostic: Diagnostic


class Diagnostics(TypedDict):
    """What was odd since the start."""

    diagnostics: list[Diagnostic]


class DialogOption(TypedDict):
    """Something that can be chosen."""

    value: str
    label: str


class DiffedFile(TypedDict):
    """How one file differs."""

    path: str
    change: Literal["added", "modified", "removed"]
    added: int | None
    """Lines; null where they cannot be counted."""
    removed: int | None
    patch: NotRequired[str]
    """Only on request, and for text; files beyond a megabyte of patches have none."""


class Done(TypedDict):
    """It is done."""


class EntryAppendParams(TypedDict):
    """State of a program, kept in the session's file."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    customType: str
    """Names that begin with `pi_rpc.` are ours."""
    data: NotRequired[dict[str, Any] | None]


class EntryAppendResult(TypedDict):
    """Where it stands."""

    entryId: str


class EntryAppendedNotification(TypedDict):
    """An entry is on the disk."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    id: str
    type: str
    parentId: str | None
    leafId: str | None
    """Where the leaf stands now."""


class ModelPart(TypedDict):
    """The model the path implies."""

    provider: str
    modelId: str


class OffPath(TypedDict):
    """Entries of the file that are not on the path."""

    count: int
    types: dict[str, int]


class TokenPart(TypedDict):
    """How big the context is."""

    total: int
    """By estimates the sum over the included messages; else the usage and what followed it."""
    system: int
    conversation: int
    notSent: int
    """Estimated, of included messages no provider is sent: failed replies and the like."""
    method: Literal["estimate", "usage"]
    usageEntryId: str | None


class Verdict(TypedDict):
    """What became of one entry of the path."""

    id: str
    type: str
    decision: Literal["exclude", "include", "replace", "state"]
    reason: str
    tokens: int
    """Estimated; of an excluded entry what its own words would have cost."""
    role: NotRequired[str]
    roles: NotRequired[list[str]]
    """Instead of `role` when the entry says several messages."""
    messages: NotRequired[int]
    """How many messages of the context it gave; 0 unless included or replaced."""
    editId: NotRequired[str]
    """The context edit that decided."""


class ExplainedContext(TypedDict):
    """The receipt of a projection, and the room there is."""

    policy: dict[str, Any]
    sessionId: str
    leafId: str | None
    pathLength: int
    rootId: str | None
    fileEntryCount: int
    fileBytes: int
    compaction: CompactionPart
    entries: list[Verdict]
    """Every entry of the path once, in path order, but the compaction in force comes first."""
    excludedTypes: dict[str, int]
    """Entries of the path that say nothing, by type."""
    offPath: OffPath
    messages: int
    tokens: TokenPart
    model: ModelPart | None
    thinkingLevel: str
    diagnostics: list[Diagnostic]
    digest: str
    v: NotRequired[int]
    window: int | None
    """The model's context window in tokens; null when unknown."""
    reserve: int
    """Tokens kept free for the answer, as the session is configured."""


class ForkPoint(TypedDict):
    """A user message to fork before."""

    entryId: str
    text: str


class ForkPointsParams(TypedDict):
    """Which page of the fork points."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    cursor: NotRequired[str | None]
    limit: NotRequired[int]


class ForkPointsResult(TypedDict):
    """User messages of every branch, in file order."""

    points: list[ForkPoint]
    nextCursor: NotRequired[str]


class FoundEntry(TypedDict):
    """An entry that holds what was looked for, on whatever branch."""

    sessionId: str
    path: NotRequired[str]
    cwd: str
    name: NotRequired[str]
    entryId: str
    role: str
    """Of a message its role; of any other entry its type."""
    timestamp: NotRequired[str]
    snippet: str
    """The words around the first place, blanks run together."""


class HookCallParams(TypedDict):
    """A point that the client wants to take part in."""

    requestId: str
    """Names the question; it stays when the question is put again."""
    sessionId: str
    runtimeId: str
    runId: NotRequired[str]
    deadlineMs: int
    """How long the answer is waited for, from when the question was put first."""
    registrationId: str
    hook: Literal["bash/before", "input", "message/ended", "request/context", "request/payload", "run/before_settle", "run/prepare", "run/settled", "session/before_compact", "session/before_replace", "session/before_tree", "session/closing", "session/started", "tool/after", "tool/before", "turn/ended"]
    payload: dict[str, Any]
    """What the point tells; its shape bears the point's name."""


class HooksContextMessage(TypedDict):
    """A message as the model would see it, and the entry it stands in."""

    entryId: str
    message: dict[str, Any]


class HooksRegisterParams(TypedDict):
    """Points where the client takes part."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    """The open session it holds for; without it, every session, also those opened later."""
    hooks: list[ClientHook]


class InitializeParams(TypedDict):
    """The handshake."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    protocolVersion: int
    """The newest version the client speaks."""
    clientInfo: ClientInfo
    capabilities: NotRequired[Capabilities]


class ServerCapabilities(TypedDict):
    """What this daemon offers beside the methods of the version."""

    experimental: bool
    """Whether experimental names are let through for this client."""
    framings: list[str]
    progress: bool
    catchUp: bool


class ServerInfo(TypedDict):
    """Who answers."""

    name: str
    version: str


class WireLimits(TypedDict):
    """Limits of a connection; beyond them a coded error is answered."""

    inboundBytes: int
    outboundBytes: int
    nesting: int
    batch: int
    inFlight: int
    """Requests that may wait for their handlers at once."""


class InitializeResult(TypedDict):
    """The handshake's answer."""

    protocolVersion: int
    serverInfo: ServerInfo
    capabilities: ServerCapabilities
    limits: WireLimits
    diagnostics: list[Diagnostic]


class Input(TypedDict):
    """Words came and are not admitted yet."""

    text: str
    images: int
    """How many images go with them."""
    way: Literal["followUp", "prompt", "steer"]
    source: NotRequired[Literal["client", "extension"]]


class InputAnswer(TypedDict):
    """To `input`: leave the words, replace them, or say that they are dealt with."""

    action: NotRequired[Literal["continue", "handled", "transform"]]
    text: NotRequired[str | None]
    """The words instead, with `transform`."""
    images: NotRequired[list[dict[str, Any]] | None]
    """The images instead, with `transform`; left out, they stay."""


class LabelChangedNotification(TypedDict):
    """The label of an entry; null when it was cleared."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    targetId: str
    label: str | None


LeafMovedNotification = TypedDict(
    "LeafMovedNotification",
    {
        "sessionId": str,
        "runtimeId": str,
        "seq": int,
        "subscriptionIds": list[str],
        "from": str | None,
        "to": str | None,
        "op": str,
        "visibleLeaf": str | None,
        "environment": Environment,
    },
)
"""The leaf went elsewhere in the tree."""


class LeftRunning(TypedDict):
    """A process that a command of a session started and that still runs."""

    pid: int
    command: str


class ListedModel(TypedDict):
    """A model that may be chosen."""

    provider: str
    modelId: str
    name: str
    contextWindow: NotRequired[int]
    """Tokens."""
    maxOutput: NotRequired[int]
    reasoning: bool
    usable: bool
    whyNot: NotRequired[str]
    input: list[str]
    """What it takes: text, image."""
    priceInput: NotRequired[float]
    """US dollars for a million tokens; absent when unknown."""
    priceOutput: NotRequired[float]


class ListedResource(TypedDict):
    """A file that goes into the prompt or can be called for."""

    kind: Literal["append_system", "context", "prompt", "skill", "system"]
    path: str
    sha256: str
    """Of its bytes."""
    origin: Literal["project", "user"]
    name: NotRequired[str]


class ListedSession(TypedDict):
    """A stored session as a picker shows it."""

    sessionId: str
    path: str
    cwd: str
    name: NotRequired[str]
    created: str
    modified: str
    messageCount: int
    firstMessage: str
    parentSession: NotRequired[str]


class ListedTool(TypedDict):
    """A tool the model may have."""

    name: str
    description: str
    parameters: dict[str, Any]
    effect: Literal["none", "outside", "workspace"]
    active: bool


class MessageAnswer(TypedDict):
    """To `message/ended`: what is stored and told; role, calls and all else stay."""

    content: NotRequired[str | list[dict[str, Any]] | None]
    """Other content; signatures over what was there before are taken off."""
    annotations: NotRequired[dict[str, Any] | None]
    """Said beside the message, never to the model."""


class MessageDeltaNotification(TypedDict):
    """More of the message that streams; `callId` and `name` with the first delta of a call."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    block: int
    kind: Literal["text", "thinking", "toolArguments"]
    text: str
    callId: NotRequired[str]
    name: NotRequired[str]


class MessageEndedNotification(TypedDict):
    """A message as it is stored; authoritative over its deltas."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    entryId: str
    message: dict[str, Any]


class MessageEndedTold(TypedDict):
    """A message is whole and not stored yet."""

    message: dict[str, Any]


class MessageStartedNotification(TypedDict):
    """A message of this role begins."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    role: str


class ModelChangedNotification(TypedDict):
    """Another model answers from the next request on."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    model: ModelRef


class ModelCycleParams(TypedDict):
    """Which way."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    direction: NotRequired[Literal["next", "previous"]]


class ModelCycleResult(TypedDict):
    """The model as it is now; the same as before where there is no other."""

    model: ModelRef | None
    thinkingLevel: str
    isScoped: bool
    """Whether the setting `enabledModels` said which models to go through."""


class ModelListParams(TypedDict):
    """Which part of the list."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    cursor: NotRequired[str | None]


class ModelListResult(TypedDict):
    """All known models, usable ones first; a page of them where a client reads no more at once."""

    models: list[ListedModel]
    nextCursor: NotRequired[str]


class ModelSetParams(TypedDict):
    """The model to answer from the next request on: provider and id, or a pattern."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    provider: NotRequired[str | None]
    modelId: NotRequired[str | None]
    pattern: NotRequired[str | None]
    """A part of an id or name, perhaps with a provider before it and `:level` behind it."""


class ModelSetResult(TypedDict):
    """The model as it is now."""

    model: ModelRef
    thinkingLevel: str


class NamedVersion(TypedDict):
    """A version as an entry of the session names it."""

    entryId: str
    at: str
    """start, before_tools, after_tools, manual; or restore, which binds nothing."""
    version: str
    leafId: str | None
    """The entry it holds for beside the one above it."""
    timestamp: str
    changes: list[str]
    """Paths this session's calls changed since the version before; at most a hundred."""
    changeCount: int


class NoParams(TypedDict):
    """Nothing to say."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""


class NotRestored(TypedDict):
    """A path that differs and was not touched."""

    path: str
    reason: str


class NothingSaid(TypedDict):
    """To a point where one only looks on."""


class OpenedState(TypedDict):
    """An open session, and what was odd about its file."""

    sessionId: str
    runtimeId: str
    seq: int
    """Number of the runtime's last event."""
    subscriptionId: NotRequired[str]
    path: NotRequired[str]
    cwd: str
    name: NotRequired[str]
    mode: Literal["own", "read"]
    leafId: str | None
    visibleLeafId: str | None
    """The nearest entry at or above the leaf that is a step of the conversation."""
    entryCount: int
    model: NotRequired[ModelRef]
    thinkingLevel: str
    running: bool
    runId: NotRequired[str]
    compacting: bool
    """Whether a summary of the context is being made."""
    queue: Queues
    interrupted: NotRequired[list[str]]
    """Ids of calls that no result answers; each gets one when the next run begins."""
    environment: Environment
    parentSession: NotRequired[str]
    diagnostics: list[Diagnostic]


class PayloadAnswer(TypedDict):
    """To `request/payload`: what to send instead."""

    payload: NotRequired[dict[str, Any] | None]


class PendingRequest(TypedDict):
    """A request to the client that waits for an answer; it is sent again."""

    requestId: str
    method: Literal["command/execute", "hook/call", "permission/request", "tool/execute", "ui/confirm", "ui/editor", "ui/input", "ui/select", "workspace/checkpoint"]
    params: dict[str, Any]


class PermissionAnswer(TypedDict):
    """To a permission: one of the options."""

    decision: Literal["allow_once", "allow_session", "reject_always", "reject_once"]
    reason: NotRequired[str | None]
    """Why it is rejected; the model is told."""
    pattern: NotRequired[str | None]
    """What is remembered with `allow_session` and `reject_always`, instead of what they mean by
    themselves; it must fit the very call.
    """


class PermissionRule(TypedDict):
    """What holds for calls of a tool, or for those of them that a pattern fits."""

    decision: Literal["allow", "ask", "deny"]
    tool: NotRequired[str]
    """A name; `*` and `?` stand for any characters and any one."""
    pattern: NotRequired[str | None]
    """Of the call's subject: a command, or a path as seen from the folder, an absolute one where it
    lies elsewhere. ` *` at the end fits nothing, too. None fits every call.
    """
    exact: NotRequired[str | None]
    """The subject itself, as a user allowed it."""
    inside: NotRequired[bool]
    """Whether it holds for paths inside the folder alone."""


class PermissionForgetParams(TypedDict):
    """What is to be forgotten."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    rule: NotRequired[PermissionRule | None]
    """As `permission/list` has it; left out, everything."""


class PermissionPolicy(TypedDict):
    """The rules of a session."""

    default: NotRequired[Literal["allow", "ask", "deny"]]
    """Where no rule fits. None: ask before a call that may leave a mark, where somebody answers;
    where nobody does, allow.
    """
    outside: NotRequired[Literal["allow", "ask", "deny"]]
    """The same for calls that lead out of the folder, reading ones too; None: as any other."""
    rules: NotRequired[list[PermissionRule]]
    """The first that fits holds; but one that denies wins wherever it stands."""


class PermissionListResult(TypedDict):
    """Rules of the settings, and what was remembered."""

    policy: PermissionPolicy
    remembered: list[PermissionRule]
    """What the user said "for this session", oldest first."""


class PermissionOption(TypedDict):
    """Something the user may answer."""

    decision: Literal["allow_once", "allow_session", "reject_always", "reject_once"]
    label: str
    pattern: NotRequired[str]
    """To be answered with the decision."""


class PermissionRequestParams(TypedDict):
    """A call that needs the user's permission."""

    requestId: str
    """Names the question; it stays when the question is put again."""
    sessionId: str
    runtimeId: str
    runId: NotRequired[str]
    deadlineMs: int
    """How long the answer is waited for, from when the question was put first."""
    callId: str
    name: str
    arguments: dict[str, Any]
    """As they will run."""
    effect: Literal["none", "outside", "workspace"]
    subject: str
    """The command it is about, or where its path leads, as seen from the folder; empty when it has
    neither.
    """
    isOutside: bool
    """Whether its path leads out of the session's folder, as far as is known."""
    preview: NotRequired[dict[str, Any]]
    """What a file would become, where the tool can say so: `patch`, `diff`, `firstChangedLine`; or
    the `problem` that keeps it from being done.
    """
    options: list[PermissionOption]


class PrepareAnswer(TypedDict):
    """To `run/prepare`: what this run begins with."""

    messages: NotRequired[list[AddedMessage]]
    """They go behind the prompt."""
    sections: NotRequired[dict[str, str | None]]
    """Sections of the system prompt, by name; null leaves one out. They hold for this run."""
    tools: NotRequired[list[str] | None]
    """The tools the model is told of in this run, of those the session has."""
    systemPrompt: NotRequired[str | None]
    """The whole prompt of this run's requests; it is not stored."""


class ProgressValue(TypedDict):
    """One step of long work."""

    kind: Literal["begin", "end", "report"]
    message: NotRequired[str]
    fraction: NotRequired[float]
    """From 0 to 1."""


class ProgressNotification(TypedDict):
    """How far long work has come, under the token its request carried."""

    token: str | int
    value: ProgressValue


class QueueChangedNotification(TypedDict):
    """The messages that wait, whole."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    steering: list[QueueItem]
    followUp: list[QueueItem]
    steeringMode: Literal["all", "one-at-a-time"]
    followUpMode: Literal["all", "one-at-a-time"]


class QueueConfigureParams(TypedDict):
    """How many waiting messages go with one request; what is left out stays as it is."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    steeringMode: NotRequired[Literal["all", "one-at-a-time"] | None]
    followUpMode: NotRequired[Literal["all", "one-at-a-time"] | None]


class QueueConfigureResult(TypedDict):
    """The modes as they are now."""

    steeringMode: Literal["all", "one-at-a-time"]
    followUpMode: Literal["all", "one-at-a-time"]


class QueueEditParams(TypedDict):
    """Other words or another place for a waiting message; its id and its images stay."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    itemId: str
    text: NotRequired[str | None]
    position: NotRequired[int | None]
    """Place in its queue, from 0."""


class QueueRemoveParams(TypedDict):
    """A waiting message to take back."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    itemId: str


class RegistrationResult(TypedDict):
    """The offer stands until it is taken back or the connection ends."""

    registrationId: str


class RepairStep(TypedDict):
    """One thing that was done to a file."""

    action: Literal["line_kept_as_entry", "lines_parted", "newline_added", "parent_mended"]
    text: str
    offset: NotRequired[int]
    """Where it stood in the old file, in bytes."""
    entryId: NotRequired[str]


class RequestContext(TypedDict):
    """The model is about to be asked."""

    turn: int
    count: int
    """How many messages the request has, system messages left out."""
    messages: list[HooksContextMessage]
    """The newest of them, as many as the registration wants, as hooks before left them."""


class RequestPayload(TypedDict):
    """What goes over the net; never headers, never keys."""

    provider: str
    modelId: str
    api: str
    payload: dict[str, Any]


class RequestResolvedNotification(TypedDict):
    """A request to the client is over: a dialog that shows it can be closed."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    requestId: str
    kind: str
    """hook, tool, command, permission, checkpoint, select, confirm, input, editor."""
    outcome: str
    """answered, timeout, stopped, disconnected, failed."""
    hook: NotRequired[Literal["bash/before", "input", "message/ended", "request/context", "request/payload", "run/before_settle", "run/prepare", "run/settled", "session/before_compact", "session/before_replace", "session/before_tree", "session/closing", "session/started", "tool/after", "tool/before", "turn/ended"] | None]
    """Which hook it was."""
    elapsedMs: NotRequired[int | None]
    """How long a hook took."""


class Trust(TypedDict):
    """Whether the files of a project may steer what is done in it."""

    trusted: bool
    decidedBy: Literal["flag", "nobody", "nothing_requires", "saved", "setting"]
    """`nobody`: the user would have to be asked, so it is not trusted."""
    requires: NotRequired[list[str]]
    """The files and folders that want trust."""
    savedAt: NotRequired[str]
    """The folder whose saved decision holds."""


class ResourceListResult(TypedDict):
    """The files, in the order they are used."""

    files: list[ListedResource]
    diagnostics: list[Diagnostic]
    """What was skipped or is odd, each with its path."""
    trust: Trust


class RetryEndedNotification(TypedDict):
    """The retries are over: with an answer that did not fail, or with this error."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    runId: str | None
    attempt: int
    success: bool
    of: Literal["reply", "summary"]
    error: NotRequired[dict[str, Any]]


class RetryScheduledNotification(TypedDict):
    """A request failed for a reason that may pass, and is made again after a while."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    runId: str | None
    """Null for a summary that is asked for outside of runs."""
    attempt: int
    """Retries count from 1, until a reply does not fail."""
    maxAttempts: int
    delayMs: int
    error: dict[str, Any]
    of: Literal["reply", "summary"]
    """What is asked for again; a summary inside a run has retries of its own."""


class RunParams(TypedDict):
    """A run; the live one, or the last, unless it is named."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    runId: NotRequired[str | None]


class RunPrepare(TypedDict):
    """A run is admitted; nothing of it is stored."""

    message: dict[str, Any]
    """What starts it."""
    tools: list[str]
    """The tools the model is told of."""
    systemPrompt: NotRequired[str]
    """The whole prompt of this run, where a hook before wants one."""


class RunResult(TypedDict):
    """How it ended."""

    outcome: Literal["aborted", "done", "failed", "truncated"] | None
    """Null when no run was ever live here, or it was no run's."""


class RunSettledTold(TypedDict):
    """A run is over, everything of it is stored, another may be started."""

    runId: str
    outcome: str
    error: NotRequired[dict[str, Any]]


class RuntimeReplacedNotification(TypedDict):
    """Another runtime takes over; the last event of the old one."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    old: str
    """Runtime id of the old one."""
    new: str
    """Runtime id of the new one."""
    oldSessionId: str
    newSessionId: str
    reason: Literal["clone", "fork", "import", "new", "reload", "relocate", "switch"]
    rebound: bool
    """Whether these subscriptions now hear the new runtime; else they are over."""


class ScopeRestored(TypedDict):
    """What came of bringing one scope back."""

    version: str
    """Where it was to go."""
    restored: bool
    """Whether its provider says it is there; of a dry run, that it could be."""
    reason: str
    """equal, restored, refused, no_provider, provider_timeout, …"""
    safetyVersion: NotRequired[str | None]
    """The state before, where it has a name; restore to it to undo."""
    said: NotRequired[str | None]
    """What the provider says of it."""


class ScopesRegisterParams(TypedDict):
    """Parts of the world that the client keeps versions of."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    """The open session it holds for; without it, every session, also those opened later."""
    scopes: list[ClientScope]


class SessionCheckResult(TypedDict):
    """What is wrong with a session, line by line and entry by entry; nothing was changed."""

    sessionId: str
    path: NotRequired[str]
    entries: int
    sizeBytes: int
    problems: list[Diagnostic]
    """`info` is as it may be, `warning` costs something, `error` is lost until it is repaired."""
    mendedByRepair: bool
    """Whether session/repair would mend any of them."""


class SessionCloneParams(TypedDict):
    """A clone of the active path."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    expectedLeaf: NotRequired[str | None]
    """Where the caller believes the leaf stands; checked only when given."""
    activate: NotRequired[bool]
    """Whether it replaces the runtime it comes from; else both live."""
    cwd: NotRequired[str | None]
    """Another folder for it; its header then names that one."""
    newSessionId: NotRequired[str | None]
    follow: NotRequired[bool]


class WorktreeOfEnded(TypedDict):
    """The work tree that was made for a session."""

    path: str
    removed: bool
    reason: NotRequired[str]
    """Why it is still there: not_asked, in_use, commits_would_be_lost, files_would_be_lost, ..."""
    version: NotRequired[str]
    """The version of its files that is kept when they are removed."""


class SessionCloseResult(TypedDict):
    """It is closed."""

    worktree: NotRequired[WorktreeOfEnded]
    """Only for a session that stood in a work tree made for it."""


class SessionClosedNotification(TypedDict):
    """A runtime is over; its last event."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    reason: str


class SessionClosing(TypedDict):
    """A runtime ends; its run has settled, its file is still open."""

    reason: str
    """closed, deleted, reopened, shutdown, or the reason of the swap."""
    nextSessionId: NotRequired[str]
    """The session that takes its place."""


class SessionContinueParams(TypedDict):
    """The most recent session of a folder."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    cwd: str
    follow: NotRequired[bool]


class SessionDeleteResult(TypedDict):
    """Where the file lies now."""

    trashedTo: NotRequired[str]
    worktree: NotRequired[WorktreeOfEnded]
    """Only for a session that stood in a work tree made for it."""


class SessionEndParams(TypedDict):
    """Which session ends, and whether the work tree made for it goes too."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    removeWorktree: NotRequired[bool]


class SessionEntriesParams(TypedDict):
    """Entries in the order of the file."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    since: NotRequired[str | None]
    """Only entries after this one."""
    limit: NotRequired[int]


class SessionEntriesResult(TypedDict):
    """A page of entries."""

    entries: list[Any]
    """The stored objects."""
    leafId: str | None
    nextCursor: NotRequired[str]
    """To be given as `since` for the next page."""


class SessionExportParams(TypedDict):
    """A session, and the form to write it in."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    format: NotRequired[Literal["html", "jsonl", "markdown"]]
    target: NotRequired[str | None]
    """Absolute path of a file that is not there yet; unless given, a new name in the session's
    working directory.
    """
    branches: NotRequired[Literal["all", "path"] | None]
    """Every branch, as the file has it, or one path. JSON lines hold all unless told otherwise,
    pages for people one path.
    """
    leafId: NotRequired[str | None]
    """The end of the path; the session's leaf unless it is named."""
    redact: NotRequired[bool]
    """Whether what looks like a key, a token or a password is taken out."""


class SessionExportResult(TypedDict):
    """What was written."""

    path: str
    sizeBytes: int
    entries: int
    redactions: int
    """How often something was taken out."""
    skipped: int
    """Entries that could not be read."""


class SessionForeignAppendNotification(TypedDict):
    """Another program wrote into the file; its entries are in the tree now."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    entryIds: list[str]
    count: int


class SessionForkParams(TypedDict):
    """Where to fork."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    expectedLeaf: NotRequired[str | None]
    """Where the caller believes the leaf stands; checked only when given."""
    activate: NotRequired[bool]
    """Whether it replaces the runtime it comes from; else both live."""
    cwd: NotRequired[str | None]
    """Another folder for it; its header then names that one."""
    newSessionId: NotRequired[str | None]
    follow: NotRequired[bool]
    entryId: str
    position: NotRequired[Literal["at", "before"]]
    """`before` a user message, or `at` any entry."""
    worktree: NotRequired[bool]
    """Make it a git work tree of its own to stand in, instead of `cwd`."""


class SessionImportParams(TypedDict):
    """A session file from anywhere."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    path: str
    cwd: NotRequired[str | None]
    replaces: NotRequired[str | None]
    follow: NotRequired[bool]


class SessionListParams(TypedDict):
    """Which sessions to list."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    cwd: NotRequired[str | None]
    query: NotRequired[str | None]
    """Only sessions whose name, first message, folder or id holds this text."""
    sort: NotRequired[Literal["created", "modified", "name"]]
    cursor: NotRequired[str | None]
    limit: NotRequired[int]


class SessionListResult(TypedDict):
    """A page of the list."""

    sessions: list[ListedSession]
    nextCursor: NotRequired[str]


class SessionNewParams(TypedDict):
    """A new session."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    cwd: str
    """Absolute path of an existing folder."""
    sessionId: NotRequired[str | None]
    name: NotRequired[str | None]
    ephemeral: NotRequired[bool]
    """Kept in memory only."""
    parentSession: NotRequired[str | None]
    model: NotRequired[ModelRef | None]
    thinkingLevel: NotRequired[Literal["high", "low", "max", "medium", "minimal", "off", "xhigh"] | None]
    replaces: NotRequired[str | None]
    """Id of an open session whose runtime the new one replaces."""
    script: NotRequired[dict[str, Any] | None]
    """The offline model's script for this session."""
    follow: NotRequired[bool]


class SessionOpenParams(TypedDict):
    """A stored session to open; the beginning of an id will do where it is unambiguous."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    mode: NotRequired[Literal["own", "read"]]
    cwd: NotRequired[str | None]
    """Run there instead of in the folder the session records; not stored."""
    follow: NotRequired[bool]


class SessionOpenedNotification(TypedDict):
    """A runtime is live; the first event of each."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    reason: str
    leafId: str | None
    parentSession: NotRequired[str]
    parent: NotRequired[str]
    """The id of the session it was forked or cloned from."""


class SessionParams(TypedDict):
    """A request to an open session."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str


class SessionReadParams(TypedDict):
    """The conversation from a leaf upward."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    leafId: NotRequired[str | None]
    before: NotRequired[str | None]
    """Only entries above this one: the `nextCursor` of the page before."""
    limit: NotRequired[int]


class SessionReadResult(TypedDict):
    """A page of a path, oldest first."""

    entries: list[Any]
    leafId: str | None
    nextCursor: NotRequired[str]


class SessionRelocateParams(TypedDict):
    """Another working directory; not stored in the file."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    cwd: str


class SessionRenameParams(TypedDict):
    """A new name; nothing but blanks clears it."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    name: str


class SessionRenameResult(TypedDict):
    """The name as it is now."""

    name: str | None


class SessionRenamedNotification(TypedDict):
    """The session's name; null when it has none."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    name: str | None


class SessionRepairResult(TypedDict):
    """What was done; no steps when there was nothing to do."""

    steps: list[RepairStep]
    backup: NotRequired[str]
    """Where the old file lies, byte for byte, when a new one took its place."""


class SessionSearchParams(TypedDict):
    """What to look for, and where."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    query: str
    """Words that must all be there, in any case and order; quotes hold several together."""
    cwd: NotRequired[str | None]
    """Only sessions of this working directory."""
    roles: NotRequired[list[str] | None]
    """Only entries of these: roles of messages, or entry types such as `compaction`."""
    since: NotRequired[str | None]
    """Only what was said at this ISO 8601 time or after it."""
    until: NotRequired[str | None]
    """Only what was said before this ISO 8601 time."""
    cursor: NotRequired[str | None]
    limit: NotRequired[int]


class SessionSearchResult(TypedDict):
    """A page of hits, newest first."""

    hits: list[FoundEntry]
    nextCursor: NotRequired[str]


class SessionStarted(TypedDict):
    """A runtime is live."""

    reason: str
    """new, open, or what it took the place for: fork, clone, switch, import, reload, relocate."""
    parentSessionId: NotRequired[str]
    """The session it was copied from."""


class SessionState(TypedDict):
    """An open session as it stands."""

    sessionId: str
    runtimeId: str
    seq: int
    """Number of the runtime's last event."""
    subscriptionId: NotRequired[str]
    path: NotRequired[str]
    cwd: str
    name: NotRequired[str]
    mode: Literal["own", "read"]
    leafId: str | None
    visibleLeafId: str | None
    """The nearest entry at or above the leaf that is a step of the conversation."""
    entryCount: int
    model: NotRequired[ModelRef]
    thinkingLevel: str
    running: bool
    runId: NotRequired[str]
    compacting: bool
    """Whether a summary of the context is being made."""
    queue: Queues
    interrupted: NotRequired[list[str]]
    """Ids of calls that no result answers; each gets one when the next run begins."""
    environment: Environment
    parentSession: NotRequired[str]


class SessionStatsParams(TypedDict):
    """What to count."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    scope: NotRequired[Literal["path", "session", "since"]]
    """`session`: every entry of every branch; `path`: from the root to the leaf."""
    since: NotRequired[str | None]
    """Only entries of the path below this one; alone it is enough."""
    leafId: NotRequired[str | None]
    """The end of the path; the session's own leaf unless it is named."""


class Share(TypedDict):
    """What one model, or all tools and summaries, used."""

    key: str
    cost: float
    costText: str
    tokens: int


class Tokens(TypedDict):
    """Tokens that were used."""

    input: int
    output: int
    cacheRead: int
    cacheWrite: int
    total: int
    """Of the four before it."""
    reported: int
    """Of the providers' own totals, which may count more."""


class StatsPart(TypedDict):
    """Counts of some entries."""

    entries: int
    messages: dict[str, int]
    """By role."""
    totalMessages: int
    toolCalls: int
    tokens: Tokens
    cost: float
    costText: str
    """The same, as an exact decimal."""
    costKnown: bool
    """False when tokens were used and no price is known."""


class SessionStatsResult(TypedDict):
    """Counts of the scope, and how full the context is."""

    entries: int
    messages: dict[str, int]
    """By role."""
    totalMessages: int
    toolCalls: int
    tokens: Tokens
    cost: float
    costText: str
    """The same, as an exact decimal."""
    costKnown: bool
    """False when tokens were used and no price is known."""
    sessionId: str
    path: NotRequired[str]
    scope: Literal["path", "session", "since"]
    leafId: str | None
    breakdown: list[Share]
    """By `provider/model`, dearest first; tools and summaries together."""
    context: NotRequired[ContextPart]
    """Left out when the window is unknown."""
    byBranch: NotRequired[StatsPart]
    """Of what is not on the path: the price of routes that were left. Of a whole session."""
    inherited: NotRequired[StatsPart]
    """Of what was copied when this session was made; counted above as well."""
    diagnostics: NotRequired[list[Diagnostic]]


class Since(TypedDict):
    """The last event a client has seen."""

    runtimeId: str
    seq: int


class SessionSubscribeParams(TypedDict):
    """Hear a session's events."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    follow: NotRequired[bool]
    """Whether to hear the runtime that replaces this one."""
    since: NotRequired[Since | None]


class SessionSubscribeResult(TypedDict):
    """A subscription, and the state it starts from."""

    subscriptionId: str
    runtimeId: str
    seq: int
    gap: NotRequired[bool]
    """True when events after `since` are gone: read entries from `cursor` on."""
    cursor: NotRequired[str]
    """With a gap: what was missed stands after this entry in session/entries; null: all may be."""
    state: SessionState
    pending: list[PendingRequest]
    """Requests to the client that wait for an answer; each is sent again."""


class SessionSwitchParams(TypedDict):
    """Another stored session to take the place of this one, by id or by path."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    targetSessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    cwd: NotRequired[str | None]
    follow: NotRequired[bool]


class SessionTreeParams(TypedDict):
    """Which part of the tree."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    root: NotRequired[str | None]
    """Only this entry and what hangs below it."""
    depth: NotRequired[int | None]
    """At most so many steps below the roots shown."""
    limit: NotRequired[int]
    cursor: NotRequired[str | None]


class TreeNode(TypedDict):
    """An entry as a tree view shows it."""

    id: str
    parentId: str | None
    type: str
    label: NotRequired[str]
    role: NotRequired[str]
    text: NotRequired[str]
    """The start of what it says."""
    timestamp: str
    children: int


class SessionTreeResult(TypedDict):
    """A page of the tree: a flat list, parents before their children."""

    nodes: list[TreeNode]
    leafId: str | None
    nextCursor: NotRequired[str]


class SessionUnsubscribeParams(TypedDict):
    """A subscription to end."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    subscriptionId: str


class SettingState(TypedDict):
    """A setting as it holds, and the layer it comes from."""

    value: Any
    layer: Literal["default", "project", "session", "user"]


class SettingsChangedNotification(TypedDict):
    """A setting was chosen or taken back; this is what holds now."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    key: str
    value: Any
    layer: str
    """default, user, project, session."""


class SettingsLayer(TypedDict):
    """A settings file that was looked at."""

    name: Literal["default", "project", "session", "user"]
    path: NotRequired[str]


class SettingsGetResult(TypedDict):
    """What a session goes by."""

    settings: dict[str, SettingState]
    """By their place in the file."""
    layers: list[SettingsLayer]
    """Each goes over those before it; a project that is not trusted has none."""
    trust: Trust
    diagnostics: list[Diagnostic]


class SettingsSetParams(TypedDict):
    """A setting to choose."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    key: str
    value: Any
    """Null takes it back, so that what holds without it holds."""
    scope: NotRequired[Literal["session", "user"]]
    """`user` writes it into the user's settings file."""


class ShellAbortResult(TypedDict):
    """How many commands were stopped."""

    stopped: int


class ShellOutputNotification(TypedDict):
    """A command of `shell/run` has printed something: plain text, to be put after what came."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    shellId: str
    text: str
    skippedChars: NotRequired[int]
    """Characters left out before this text, because they came faster than they are told."""


class ShellRunParams(TypedDict):
    """A command for a shell in the session's folder."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    command: str
    shellId: NotRequired[str | None]
    """What its `shell/output` is to be told under; one is made when it is left out."""
    excludeFromContext: NotRequired[bool]
    """Whether the result is kept from the model."""


class ShellRunResult(TypedDict):
    """What came of it."""

    output: str
    """Plain text, stdout and stderr together; its end when it is long."""
    exitCode: NotRequired[int]
    """Left out when it was stopped."""
    cancelled: bool
    truncated: bool
    fullOutputPath: NotRequired[str]
    """A file with the bytes as they came, when the output is long."""
    entryId: NotRequired[str]
    """Left out while a run or a move is going on: the result is written when that is over."""


class StoredParams(TypedDict):
    """A question about a session, open or only stored; by id or by path."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]


class TextAnswer(TypedDict):
    """To `ui/input` and `ui/editor`: what the user wrote."""

    text: NotRequired[str | None]
    """Null when the user closed the dialog."""


class ThinkingChangedNotification(TypedDict):
    """Another thinking level holds from the next request on."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    thinkingLevel: str


class ThinkingSetParams(TypedDict):
    """The thinking level from the next request on."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    level: Literal["high", "low", "max", "medium", "minimal", "off", "xhigh"]


class ThinkingSetResult(TypedDict):
    """The level as it is now."""

    thinkingLevel: str


class ToolAfter(TypedDict):
    """A call has run, nobody has seen its result."""

    callId: str
    name: str
    arguments: dict[str, Any]
    """The model's own."""
    effectiveArguments: dict[str, Any]
    """Those that were run."""
    content: list[dict[str, Any]]
    isError: bool
    details: NotRequired[dict[str, Any]]


class ToolAnswer(TypedDict):
    """What came of a call of a client's tool."""

    content: list[dict[str, Any]]
    isError: NotRequired[bool]
    details: NotRequired[dict[str, Any] | None]
    terminate: NotRequired[bool]


class ToolBefore(TypedDict):
    """A call is about to run."""

    callId: str
    name: str
    arguments: dict[str, Any]
    """As hooks before left them; validated."""
    effect: str
    """The most it may touch: none, workspace, outside."""


class ToolEndedNotification(TypedDict):
    """A call is over; its result entry follows with those of its batch."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    callId: str
    name: str
    arguments: dict[str, Any]
    effectiveArguments: dict[str, Any]
    content: list[dict[str, Any]]
    isError: bool
    effect: str
    durationMs: NotRequired[float]
    details: NotRequired[dict[str, Any]]
    changedBy: NotRequired[str]
    """The registration of the hook that gave the effective arguments."""


class ToolExecuteParams(TypedDict):
    """A call of a tool that the client runs; `tool/progress` may be sent meanwhile."""

    requestId: str
    """Names the question; it stays when the question is put again."""
    sessionId: str
    runtimeId: str
    runId: NotRequired[str]
    deadlineMs: int
    """How long the answer is waited for, from when the question was put first."""
    registrationId: str
    callId: str
    name: str
    arguments: dict[str, Any]
    """Validated by the tool's schema."""
    cwd: str


class ToolListResult(TypedDict):
    """The tools of a session."""

    tools: list[ListedTool]


class ToolProgressNotification(TypedDict):
    """What a running call has to show so far; replaces what it showed before."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    callId: str
    content: list[dict[str, Any]]
    details: NotRequired[dict[str, Any]]


class ToolSetActiveParams(TypedDict):
    """The tools the model is told of, in this order."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    names: list[str]


class ToolStartedNotification(TypedDict):
    """A call begins, with the arguments the model gave."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    callId: str
    name: str
    arguments: dict[str, Any]


class ToolsRegisterParams(TypedDict):
    """Tools that the client runs."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    """The open session it holds for; without it, every session, also those opened later."""
    tools: list[ClientTool]


class TrustSetParams(TypedDict):
    """Whether the files of a session's folder may steer what is done in it."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    trusted: bool | None
    """Null forgets what was decided."""


class TurnEndedNotification(TypedDict):
    """A reply and the results of its calls are stored."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    runId: str
    turn: int
    messageEntryId: str
    toolResultEntryIds: list[str]


class TurnEndedTold(TypedDict):
    """A reply and its results are stored."""

    turn: int
    messageEntryId: str
    toolResultEntryIds: list[str]
    entries: list[CustomDraft | CustomMessageDraft | ContextEditDraft | CompactionDraft]
    """What hooks before want written."""
    continues: bool
    """Whether one of them wants the run to go on."""


class TurnStartedNotification(TypedDict):
    """A reply is about to be asked for."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    runId: str
    turn: int


class UiConfirmParams(TypedDict):
    """A question that is answered with yes or no."""

    requestId: str
    """Names the question; it stays when the question is put again."""
    sessionId: str
    runtimeId: str
    runId: NotRequired[str]
    deadlineMs: int
    """How long the answer is waited for, from when the question was put first."""
    title: str
    message: NotRequired[str]
    default: NotRequired[bool]
    """What holds without an answer."""


class UiEditorParams(TypedDict):
    """A text to edit."""

    requestId: str
    """Names the question; it stays when the question is put again."""
    sessionId: str
    runtimeId: str
    runId: NotRequired[str]
    deadlineMs: int
    """How long the answer is waited for, from when the question was put first."""
    title: str
    message: NotRequired[str]
    text: NotRequired[str]
    """What stands in it at first."""
    default: NotRequired[str]
    """What holds without an answer."""


class UiInputParams(TypedDict):
    """A line of text."""

    requestId: str
    """Names the question; it stays when the question is put again."""
    sessionId: str
    runtimeId: str
    runId: NotRequired[str]
    deadlineMs: int
    """How long the answer is waited for, from when the question was put first."""
    title: str
    message: NotRequired[str]
    placeholder: NotRequired[str]
    default: NotRequired[str]
    """What holds without an answer."""


class UiSelectParams(TypedDict):
    """A choice of one."""

    requestId: str
    """Names the question; it stays when the question is put again."""
    sessionId: str
    runtimeId: str
    runId: NotRequired[str]
    deadlineMs: int
    """How long the answer is waited for, from when the question was put first."""
    title: str
    message: NotRequired[str]
    options: list[DialogOption]
    default: NotRequired[str]
    """The value that holds without an answer; null for none."""


class UnregisterParams(TypedDict):
    """The registration to take back."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    registrationId: str


class WordsParams(TypedDict):
    """Words for the model."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    text: str
    images: NotRequired[list[Image]]
    expectedRunId: NotRequired[str | None]
    """The run the caller believes to be live."""


class WorkspaceAcknowledgeResult(TypedDict):
    """How the world stands, of which somebody took note."""

    environment: Environment


class WorkspaceCheckpointParams(TypedDict):
    """A scope of the client's is asked for its present state, or to go back to one."""

    requestId: str
    """Names the question; it stays when the question is put again."""
    sessionId: str
    runtimeId: str
    runId: NotRequired[str]
    deadlineMs: int
    """How long the answer is waited for, from when the question was put first."""
    registrationId: str
    scope: str
    act: Literal["checkpoint", "restore"]
    """`checkpoint`: name the present state and keep it. `restore`: go back to `expected`."""
    at: Literal["after_tools", "before_tools", "look", "move", "restore"]
    """before_tools, after_tools, move, look, restore."""
    leafId: str | None
    """The entry it is asked at."""
    expected: str | None
    """The version bound to where the leaf stands or goes; to `restore`, the one to go back to."""
    dryRun: bool
    """Of `restore`: only say whether it could."""


class WorkspaceDiffParams(TypedDict):
    """Two states: versions, or those bound to two entries. The first is the leaf's own unless it is
    named, the second the files as they are now.
    """

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    version: NotRequired[str | None]
    leafId: NotRequired[str | None]
    otherVersion: NotRequired[str | None]
    otherLeafId: NotRequired[str | None]
    patches: NotRequired[bool]
    paths: NotRequired[list[str] | None]


class WorkspaceDiffResult(TypedDict):
    """What differs from the first state to the second."""

    version: str
    otherVersion: str
    files: list[DiffedFile]
    """At most five thousand."""
    count: int
    added: int
    """Lines in all files."""
    removed: int


class WorkspaceDriftedNotification(TypedDict):
    """After a move the world does not stand, or may not stand, as the leaf has it."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    environment: Environment


class WorkspaceRecordEffectParams(TypedDict):
    """Something that was done beyond the files."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    kind: Literal["db", "mail", "net", "other", "process", "ticket"]
    summary: str
    reversible: NotRequired[bool]
    compensated: NotRequired[bool]
    """It was made good, or never took effect."""
    effectId: NotRequired[str | None]
    """An effect recorded before, to say more of it; else a new one."""


class WorkspaceRecordEffectResult(TypedDict):
    """It is written down, or will be as soon as the calls of a run have their results."""

    effectId: str
    entryId: str | None
    """Null during a run."""
    leafId: str | None


class WorkspaceRestoreParams(TypedDict):
    """Which files to bring back, and to what."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    version: NotRequired[str | None]
    leafId: NotRequired[str | None]
    """The version bound to this entry; with neither, the one bound to the leaf."""
    paths: NotRequired[list[str] | None]
    """Only these, files or folders; then also files this session did not change."""
    dryRun: NotRequired[bool]
    """Only say what would be done."""
    confirm: NotRequired[list[str]]
    """Files to restore although they were changed since, or not by this session."""
    scopes: NotRequired[dict[str, str] | None]
    """Versions that scopes of providers are to go to; files go along only when named too. Left out,
    each goes to its version at the entry, unless a version of files or paths are named.
    """


class WorkspaceRestoreResult(TypedDict):
    """What was restored, what was refused, and what nobody asked for."""

    restored: list[str]
    refused: list[NotRestored]
    left: list[NotRestored]
    version: str | None
    """Null where only scopes were meant."""
    safetyVersion: str | None
    """The state of the files before; restore to it to undo."""
    scopes: NotRequired[dict[str, ScopeRestored]]
    """What came of each scope of a provider."""
    dryRun: bool
    environment: Environment


class WorkspaceRestoredNotification(TypedDict):
    """The world was brought to another version because somebody asked for it."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    version: str | None
    """Null where only scopes were meant, of which `environment` tells."""
    safetyVersion: str | None
    """The state of the files before, to go back to."""
    paths: list[str]
    """At most the first thousand."""
    count: int
    environment: Environment


class WorkspaceSnapshotResult(TypedDict):
    """The state of the files has a name, and the leaf is bound to it."""

    version: str
    entryId: str
    leafId: str | None
    leftOut: NotRequired[list[LeftOut]]
    environment: Environment


class WorkspaceStatusResult(TypedDict):
    """Whether the world goes along with the leaf, after a fresh look."""

    cwd: str
    leafId: str | None
    status: Literal["not_restored", "restored", "unknown"]
    scopes: dict[str, ScopeVerdict]
    drift: NotRequired[list[dict[str, Any]]]
    driftCount: NotRequired[int]
    abandonedEffects: NotRequired[list[dict[str, Any]]]
    environment: Environment
    bound: NotRequired[BoundVersion]
    """The version that holds at the leaf."""
    actual: NotRequired[ActualVersion]
    kind: str
    """How versions are kept: git, manifest, none."""
    unavailable: NotRequired[str]
    """Why there are none, when there are none."""
    acknowledged: bool
    """False while a drift after a move was not taken note of."""
    processes: NotRequired[list[LeftRunning]]
    """What this session's commands started and still runs, at most a hundred; null: not known."""


class WorkspaceVersionsParams(TypedDict):
    """Which page of the versions."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: NotRequired[str | None]
    path: NotRequired[str | None]
    cursor: NotRequired[str | None]
    limit: NotRequired[int]


class WorkspaceVersionsResult(TypedDict):
    """Versions in file order, a page at a time."""

    versions: list[NamedVersion]
    nextCursor: NotRequired[str]


class AgentStartedMessage(TypedDict):
    """`agent/started` as it comes."""

    method: Literal["agent/started"]
    params: AgentStartedNotification


class AgentAttemptEndedMessage(TypedDict):
    """`agent/attemptEnded` as it comes."""

    method: Literal["agent/attemptEnded"]
    params: AgentAttemptEndedNotification


class AgentSettledMessage(TypedDict):
    """`agent/settled` as it comes."""

    method: Literal["agent/settled"]
    params: AgentSettledNotification


class RetryScheduledMessage(TypedDict):
    """`retry/scheduled` as it comes."""

    method: Literal["retry/scheduled"]
    params: RetryScheduledNotification


class RetryEndedMessage(TypedDict):
    """`retry/ended` as it comes."""

    method: Literal["retry/ended"]
    params: RetryEndedNotification


class TurnStartedMessage(TypedDict):
    """`turn/started` as it comes."""

    method: Literal["turn/started"]
    params: TurnStartedNotification


class TurnEndedMessage(TypedDict):
    """`turn/ended` as it comes."""

    method: Literal["turn/ended"]
    params: TurnEndedNotification


class MessageStartedMessage(TypedDict):
    """`message/started` as it comes."""

    method: Literal["message/started"]
    params: MessageStartedNotification


class MessageDeltaMessage(TypedDict):
    """`message/delta` as it comes."""

    method: Literal["message/delta"]
    params: MessageDeltaNotification


class MessageEndedMessage(TypedDict):
    """`message/ended` as it comes."""

    method: Literal["message/ended"]
    params: MessageEndedNotification


class ToolStartedMessage(TypedDict):
    """`tool/started` as it comes."""

    method: Literal["tool/started"]
    params: ToolStartedNotification


class ToolProgressMessage(TypedDict):
    """`tool/progress` as it comes."""

    method: Literal["tool/progress"]
    params: ToolProgressNotification


class ToolEndedMessage(TypedDict):
    """`tool/ended` as it comes."""

    method: Literal["tool/ended"]
    params: ToolEndedNotification


class EntryAppendedMessage(TypedDict):
    """`entry/appended` as it comes."""

    method: Literal["entry/appended"]
    params: EntryAppendedNotification


class LeafMovedMessage(TypedDict):
    """`leaf/moved` as it comes."""

    method: Literal["leaf/moved"]
    params: LeafMovedNotification


class WorkspaceDriftedMessage(TypedDict):
    """`workspace/drifted` as it comes."""

    method: Literal["workspace/drifted"]
    params: WorkspaceDriftedNotification


class WorkspaceRestoredMessage(TypedDict):
    """`workspace/restored` as it comes."""

    method: Literal["workspace/restored"]
    params: WorkspaceRestoredNotification


class QueueChangedMessage(TypedDict):
    """`queue/changed` as it comes."""

    method: Literal["queue/changed"]
    params: QueueChangedNotification


class ModelChangedMessage(TypedDict):
    """`model/changed` as it comes."""

    method: Literal["model/changed"]
    params: ModelChangedNotification


class ThinkingChangedMessage(TypedDict):
    """`thinking/changed` as it comes."""

    method: Literal["thinking/changed"]
    params: ThinkingChangedNotification


class SessionRenamedMessage(TypedDict):
    """`session/renamed` as it comes."""

    method: Literal["session/renamed"]
    params: SessionRenamedNotification


class LabelChangedMessage(TypedDict):
    """`label/changed` as it comes."""

    method: Literal["label/changed"]
    params: LabelChangedNotification


class CompactionStartedMessage(TypedDict):
    """`compaction/started` as it comes."""

    method: Literal["compaction/started"]
    params: CompactionStartedNotification


class CompactionEndedMessage(TypedDict):
    """`compaction/ended` as it comes."""

    method: Literal["compaction/ended"]
    params: CompactionEndedNotification


class SessionOpenedMessage(TypedDict):
    """`session/opened` as it comes."""

    method: Literal["session/opened"]
    params: SessionOpenedNotification


class SessionClosedMessage(TypedDict):
    """`session/closed` as it comes."""

    method: Literal["session/closed"]
    params: SessionClosedNotification


class RuntimeReplacedMessage(TypedDict):
    """`runtime/replaced` as it comes."""

    method: Literal["runtime/replaced"]
    params: RuntimeReplacedNotification


class SessionForeignAppendMessage(TypedDict):
    """`session/foreignAppend` as it comes."""

    method: Literal["session/foreignAppend"]
    params: SessionForeignAppendNotification


class ShellOutputMessage(TypedDict):
    """`shell/output` as it comes."""

    method: Literal["shell/output"]
    params: ShellOutputNotification


class SettingsChangedMessage(TypedDict):
    """`settings/changed` as it comes."""

    method: Literal["settings/changed"]
    params: SettingsChangedNotification


class RequestResolvedMessage(TypedDict):
    """`request/resolved` as it comes."""

    method: Literal["request/resolved"]
    params: RequestResolvedNotification


class DiagnosticMessage(TypedDict):
    """`diagnostic` as it comes."""

    method: Literal["diagnostic"]
    params: DiagnosticNotification


class ProgressMessage(TypedDict):
    """`$/progress` as it comes."""

    method: Literal["$/progress"]
    params: ProgressNotification


Notification = (
    AgentStartedMessage
    | AgentAttemptEndedMessage
    | AgentSettledMessage
    | RetryScheduledMessage
    | RetryEndedMessage
    | TurnStartedMessage
    | TurnEndedMessage
    | MessageStartedMessage
    | MessageDeltaMessage
    | MessageEndedMessage
    | ToolStartedMessage
    | ToolProgressMessage
    | ToolEndedMessage
    | EntryAppendedMessage
    | LeafMovedMessage
    | WorkspaceDriftedMessage
    | WorkspaceRestoredMessage
    | QueueChangedMessage
    | ModelChangedMessage
    | ThinkingChangedMessage
    | SessionRenamedMessage
    | LabelChangedMessage
    | CompactionStartedMessage
    | CompactionEndedMessage
    | SessionOpenedMessage
    | SessionClosedMessage
    | RuntimeReplacedMessage
    | SessionForeignAppendMessage
    | ShellOutputMessage
    | SettingsChangedMessage
    | RequestResolvedMessage
    | DiagnosticMessage
    | ProgressMessage
)
"""One of the server's notifications; `method` tells which."""


class Calls(Protocol):
    """`call`, typed for each method."""

    @overload
    async def call(self, method: Literal["initialize"], params: InitializeParams) -> InitializeResult: ...

    @overload
    async def call(self, method: Literal["shutdown"], params: NoParams | None = None) -> Done: ...

    @overload
    async def call(self, method: Literal["exit"], params: NoParams | None = None) -> Done: ...

    @overload
    async def call(self, method: Literal["daemon/status"], params: NoParams | None = None) -> DaemonStatus: ...

    @overload
    async def call(self, method: Literal["daemon/diagnostics"], params: NoParams | None = None) -> Diagnostics: ...

    @overload
    async def call(self, method: Literal["session/new"], params: SessionNewParams) -> SessionState: ...

    @overload
    async def call(self, method: Literal["session/open"], params: SessionOpenParams | None = None) -> OpenedState: ...

    @overload
    async def call(self, method: Literal["session/continue"], params: SessionContinueParams) -> OpenedState: ...

    @overload
    async def call(self, method: Literal["session/rename"], params: SessionRenameParams) -> SessionRenameResult: ...

    @overload
    async def call(self, method: Literal["session/close"], params: SessionEndParams) -> SessionCloseResult: ...

    @overload
    async def call(self, method: Literal["session/delete"], params: SessionEndParams) -> SessionDeleteResult: ...

    @overload
    async def call(self, method: Literal["session/import"], params: SessionImportParams) -> OpenedState: ...

    @overload
    async def call(self, method: Literal["session/switch"], params: SessionSwitchParams) -> OpenedState: ...

    @overload
    async def call(self, method: Literal["session/reload"], params: SessionParams) -> OpenedState: ...

    @overload
    async def call(self, method: Literal["session/relocate"], params: SessionRelocateParams) -> OpenedState: ...

    @overload
    async def call(self, method: Literal["session/state"], params: SessionParams) -> SessionState: ...

    @overload
    async def call(self, method: Literal["session/subscribe"], params: SessionSubscribeParams) -> SessionSubscribeResult: ...

    @overload
    async def call(self, method: Literal["session/unsubscribe"], params: SessionUnsubscribeParams) -> Done: ...

    @overload
    async def call(self, method: Literal["session/list"], params: SessionListParams | None = None) -> SessionListResult: ...

    @overload
    async def call(self, method: Literal["session/entries"], params: SessionEntriesParams | None = None) -> SessionEntriesResult: ...

    @overload
    async def call(self, method: Literal["session/read"], params: SessionReadParams | None = None) -> SessionReadResult: ...

    @overload
    async def call(self, method: Literal["session/tree"], params: SessionTreeParams | None = None) -> SessionTreeResult: ...

    @overload
    async def call(self, method: Literal["session/search"], params: SessionSearchParams) -> SessionSearchResult: ...

    @overload
    async def call(self, method: Literal["session/check"], params: StoredParams | None = None) -> SessionCheckResult: ...

    @overload
    async def call(self, method: Literal["session/repair"], params: StoredParams | None = None) -> SessionRepairResult: ...

    @overload
    async def call(self, method: Literal["session/export"], params: SessionExportParams | None = None) -> SessionExportResult: ...

    @overload
    async def call(self, method: Literal["branch/list"], params: BranchListParams | None = None) -> BranchListResult: ...

    @overload
    async def call(self, method: Literal["branch/navigate"], params: BranchNavigateParams) -> BranchNavigateResult: ...

    @overload
    async def call(self, method: Literal["branch/compare"], params: BranchCompareParams) -> BranchCompareResult: ...

    @overload
    async def call(self, method: Literal["branch/summarize"], params: BranchSummarizeParams) -> BranchSummarizeResult: ...

    @overload
    async def call(self, method: Literal["branch/bring"], params: BranchBringParams) -> BranchBringResult: ...

    @overload
    async def call(self, method: Literal["branch/label"], params: BranchLabelParams) -> BranchLabelResult: ...

    @overload
    async def call(self, method: Literal["branch/forkPoints"], params: ForkPointsParams | None = None) -> ForkPointsResult: ...

    @overload
    async def call(self, method: Literal["session/fork"], params: SessionForkParams) -> CopiedState: ...

    @overload
    async def call(self, method: Literal["session/clone"], params: SessionCloneParams) -> CopiedState: ...

    @overload
    async def call(self, method: Literal["context/get"], params: ContextGetParams | None = None) -> ContextGetResult: ...

    @overload
    async def call(self, method: Literal["context/explain"], params: ContextParams | None = None) -> ExplainedContext: ...

    @overload
    async def call(self, method: Literal["context/usage"], params: ContextParams | None = None) -> ContextUsage: ...

    @overload
    async def call(self, method: Literal["context/diff"], params: ContextDiffParams | None = None) -> ContextDiffResult: ...

    @overload
    async def call(self, method: Literal["context/edit"], params: ContextEditParams) -> ContextEditResult: ...

    @overload
    async def call(self, method: Literal["compact/preview"], params: CompactPreviewParams | None = None) -> CompactPreviewResult: ...

    @overload
    async def call(self, method: Literal["compact/run"], params: CompactRunParams) -> CompactRunResult: ...

    @overload
    async def call(self, method: Literal["compact/configure"], params: CompactConfigureParams) -> CompactConfigureResult: ...

    @overload
    async def call(self, method: Literal["compact/verify"], params: CompactVerifyParams | None = None) -> CompactVerifyResult: ...

    @overload
    async def call(self, method: Literal["compact/undo"], params: CompactUndoParams) -> CompactUndoResult: ...

    @overload
    async def call(self, method: Literal["context/pin"], params: ContextPinParams) -> ContextPinResult: ...

    @overload
    async def call(self, method: Literal["agent/prompt"], params: AgentPromptParams) -> AgentPromptResult: ...

    @overload
    async def call(self, method: Literal["agent/steer"], params: WordsParams) -> AgentPromptResult: ...

    @overload
    async def call(self, method: Literal["agent/followUp"], params: WordsParams) -> AgentPromptResult: ...

    @overload
    async def call(self, method: Literal["agent/abort"], params: RunParams) -> RunResult: ...

    @overload
    async def call(self, method: Literal["agent/abortRetry"], params: RunParams) -> RunResult: ...

    @overload
    async def call(self, method: Literal["agent/wait"], params: RunParams) -> RunResult: ...

    @overload
    async def call(self, method: Literal["queue/get"], params: SessionParams) -> Queues: ...

    @overload
    async def call(self, method: Literal["queue/configure"], params: QueueConfigureParams) -> QueueConfigureResult: ...

    @overload
    async def call(self, method: Literal["queue/edit"], params: QueueEditParams) -> QueueItem: ...

    @overload
    async def call(self, method: Literal["queue/remove"], params: QueueRemoveParams) -> QueueItem: ...

    @overload
    async def call(self, method: Literal["queue/clear"], params: SessionParams) -> Queues: ...

    @overload
    async def call(self, method: Literal["context/add"], params: ContextAddParams) -> ContextAddResult: ...

    @overload
    async def call(self, method: Literal["entry/append"], params: EntryAppendParams) -> EntryAppendResult: ...

    @overload
    async def call(self, method: Literal["model/list"], params: ModelListParams | None = None) -> ModelListResult: ...

    @overload
    async def call(self, method: Literal["model/set"], params: ModelSetParams) -> ModelSetResult: ...

    @overload
    async def call(self, method: Literal["model/cycle"], params: ModelCycleParams) -> ModelCycleResult: ...

    @overload
    async def call(self, method: Literal["thinking/set"], params: ThinkingSetParams) -> ThinkingSetResult: ...

    @overload
    async def call(self, method: Literal["tool/list"], params: SessionParams) -> ToolListResult: ...

    @overload
    async def call(self, method: Literal["tool/setActive"], params: ToolSetActiveParams) -> ToolListResult: ...

    @overload
    async def call(self, method: Literal["permission/list"], params: SessionParams) -> PermissionListResult: ...

    @overload
    async def call(self, method: Literal["permission/forget"], params: PermissionForgetParams) -> PermissionListResult: ...

    @overload
    async def call(self, method: Literal["settings/get"], params: SessionParams) -> SettingsGetResult: ...

    @overload
    async def call(self, method: Literal["settings/set"], params: SettingsSetParams) -> SettingState: ...

    @overload
    async def call(self, method: Literal["trust/set"], params: TrustSetParams) -> Trust: ...

    @overload
    async def call(self, method: Literal["command/list"], params: SessionParams) -> CommandListResult: ...

    @overload
    async def call(self, method: Literal["resources/list"], params: SessionParams) -> ResourceListResult: ...

    @overload
    async def call(self, method: Literal["tools/register"], params: ToolsRegisterParams) -> RegistrationResult: ...

    @overload
    async def call(self, method: Literal["tools/unregister"], params: UnregisterParams) -> Done: ...

    @overload
    async def call(self, method: Literal["hooks/register"], params: HooksRegisterParams) -> RegistrationResult: ...

    @overload
    async def call(self, method: Literal["hooks/unregister"], params: UnregisterParams) -> Done: ...

    @overload
    async def call(self, method: Literal["commands/register"], params: CommandsRegisterParams) -> RegistrationResult: ...

    @overload
    async def call(self, method: Literal["commands/unregister"], params: UnregisterParams) -> Done: ...

    @overload
    async def call(self, method: Literal["scopes/register"], params: ScopesRegisterParams) -> RegistrationResult: ...

    @overload
    async def call(self, method: Literal["scopes/unregister"], params: UnregisterParams) -> Done: ...

    @overload
    async def call(self, method: Literal["shell/run"], params: ShellRunParams) -> ShellRunResult: ...

    @overload
    async def call(self, method: Literal["shell/abort"], params: SessionParams) -> ShellAbortResult: ...

    @overload
    async def call(self, method: Literal["session/stats"], params: SessionStatsParams | None = None) -> SessionStatsResult: ...

    @overload
    async def call(self, method: Literal["workspace/status"], params: SessionParams) -> WorkspaceStatusResult: ...

    @overload
    async def call(self, method: Literal["workspace/versions"], params: WorkspaceVersionsParams | None = None) -> WorkspaceVersionsResult: ...

    @overload
    async def call(self, method: Literal["workspace/snapshot"], params: SessionParams) -> WorkspaceSnapshotResult: ...

    @overload
    async def call(self, method: Literal["workspace/diff"], params: WorkspaceDiffParams) -> WorkspaceDiffResult: ...

    @overload
    async def call(self, method: Literal["workspace/restore"], params: WorkspaceRestoreParams) -> WorkspaceRestoreResult: ...

    @overload
    async def call(self, method: Literal["workspace/acknowledge"], params: SessionParams) -> WorkspaceAcknowledgeResult: ...

    @overload
    async def call(self, method: Literal["workspace/recordEffect"], params: WorkspaceRecordEffectParams) -> WorkspaceRecordEffectResult: ...

    async def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Call a method and return its result. Raises PiRpcError, DaemonEndedError."""
        return await self.request(method, params)

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Call any method, known to these types or not."""
        ...
