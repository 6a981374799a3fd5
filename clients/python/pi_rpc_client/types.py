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
        "session/list",
        "session/state",
        "session/entries",
        "session/read",
        "session/tree",
        "session/rename",
        "session/close",
        "session/delete",
        "session/import",
        "session/switch",
        "session/reload",
        "session/relocate",
        "session/subscribe",
        "session/unsubscribe",
        "branch/list",
        "branch/navigate",
        "branch/compare",
        "branch/label",
        "branch/forkPoints",
        "session/fork",
        "session/clone",
        "context/get",
        "context/explain",
        "context/usage",
        "context/diff",
        "context/edit",
        "agent/prompt",
        "agent/steer",
        "agent/followUp",
        "agent/abort",
        "agent/wait",
        "queue/get",
        "queue/remove",
        "queue/clear",
        "model/list",
        "model/set",
        "thinking/set",
        "tool/list",
        "tool/setActive",
        "workspace/status",
    }
)
"""Every method this file knows."""


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
    """Base64."""
    mimeType: str


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


class AgentStartedNotification(TypedDict):
    """A run was accepted and owns the session."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    runId: str


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
    instructions: NotRequired[str | None]


class ScopeVerdict(TypedDict):
    """How one part of the environment stands against what the leaf expects."""

    status: Literal["not_restored", "restored", "unknown"]
    reason: str
    """A stable slug: nothing_ran, no_versions, not_watched, mixed_routes."""
    expected: NotRequired[str]
    actual: NotRequired[str]


class Environment(TypedDict):
    """Whether the world went along when the leaf moved."""

    status: Literal["not_restored", "restored", "unknown"]
    """The worst of the scopes; not_restored is worse than unknown, unknown than restored."""
    scopes: dict[str, ScopeVerdict]
    abandonedEffects: NotRequired[list[dict[str, Any]]]
    """Calls on the route left behind that may have marked the world, newest first."""


class BranchNavigateResult(TypedDict):
    """Where the leaf stands, and how the world stands to it."""

    leafId: str | None
    draft: NotRequired[str]
    """The words of a user message that was chosen, for the editor."""
    summaryEntryId: NotRequired[str]
    environment: Environment


class CancelParams(TypedDict):
    """The request to withdraw."""

    id: str | int | float | None


class Capabilities(TypedDict):
    """What a client can do and wants."""

    experimental: NotRequired[bool]
    ui: NotRequired[list[str]]
    """Dialogs it can show: select, confirm, input, editor."""
    optOut: NotRequired[list[str]]
    """Exact names of notifications it does not want."""
    maxMessageBytes: NotRequired[int | None]
    """The longest message it reads."""


class ClientInfo(TypedDict):
    """Who is asking."""

    name: str
    version: NotRequired[str]


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
    """Messages of a page; all of them unless given."""


class ContextMessage(TypedDict):
    """A message, and the entry it comes from."""

    entryId: str
    message: dict[str, Any]


class ModelRef(TypedDict):
    """A model by provider and id."""

    provider: str
    modelId: str


class ContextGetResult(TypedDict):
    """What the model would be sent."""

    leafId: str | None
    messages: list[ContextMessage]
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


class Queues(TypedDict):
    """Both queues, first to be delivered first."""

    steering: list[QueueItem]
    followUp: list[QueueItem]


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
    compacting: NotRequired[bool]
    queue: Queues
    environment: Environment
    parentSession: NotRequired[str]
    draft: NotRequired[str]
    """The words of the message it was forked before, for the editor."""


class SessionBrief(TypedDict):
    """A live session in a list."""

    sessionId: str
    runtimeId: str
    running: bool
    mode: Literal["own", "read"]


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


class Done(TypedDict):
    """It is done."""


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


class ModelListResult(TypedDict):
    """All known models, usable ones first."""

    models: list[ListedModel]


class ModelSetParams(TypedDict):
    """The model to answer from the next request on."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    provider: str
    modelId: str


class ModelSetResult(TypedDict):
    """The model as it is now."""

    model: ModelRef


class NoParams(TypedDict):
    """Nothing to say."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""


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
    compacting: NotRequired[bool]
    queue: Queues
    environment: Environment
    parentSession: NotRequired[str]
    diagnostics: list[Diagnostic]


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


class QueueRemoveParams(TypedDict):
    """A waiting message to take back."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    itemId: str


class RunParams(TypedDict):
    """A run; the live one, or the last, unless it is named."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    runId: NotRequired[str | None]


class RunResult(TypedDict):
    """How it ended."""

    outcome: Literal["aborted", "done", "failed", "truncated"] | None
    """Null when no run was ever live here."""


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


class SessionClosedNotification(TypedDict):
    """A runtime is over; its last event."""

    sessionId: str
    runtimeId: str
    seq: int
    """Events of a runtime count from 1 without gaps."""
    subscriptionIds: list[str]
    """The subscriptions of this client that hear it."""
    reason: str


class SessionContinueParams(TypedDict):
    """The most recent session of a folder."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    cwd: str
    follow: NotRequired[bool]


class SessionDeleteResult(TypedDict):
    """Where the file lies now."""

    trashedTo: NotRequired[str]


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
    compacting: NotRequired[bool]
    queue: Queues
    environment: Environment
    parentSession: NotRequired[str]


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
    """With a gap: the leaf's id, for session/entries or session/read."""
    state: SessionState
    pending: list[dict[str, Any]]
    """Requests to the client that wait for an answer."""


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


class WordsParams(TypedDict):
    """Words for the model."""

    progressToken: NotRequired[str | int | None]
    """Names the `$/progress` notifications of this request, if any are wanted."""
    sessionId: str
    text: str
    images: NotRequired[list[Image]]
    expectedRunId: NotRequired[str | None]
    """The run the caller believes to be live."""


class WorkspaceStatusResult(TypedDict):
    """Whether the world went along with the leaf."""

    cwd: str
    leafId: str | None
    environment: Environment


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
    | QueueChangedMessage
    | ModelChangedMessage
    | ThinkingChangedMessage
    | SessionRenamedMessage
    | LabelChangedMessage
    | SessionOpenedMessage
    | SessionClosedMessage
    | RuntimeReplacedMessage
    | SessionForeignAppendMessage
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
    async def call(self, method: Literal["session/list"], params: SessionListParams | None = None) -> SessionListResult: ...

    @overload
    async def call(self, method: Literal["session/state"], params: SessionParams) -> SessionState: ...

    @overload
    async def call(self, method: Literal["session/entries"], params: SessionEntriesParams | None = None) -> SessionEntriesResult: ...

    @overload
    async def call(self, method: Literal["session/read"], params: SessionReadParams | None = None) -> SessionReadResult: ...

    @overload
    async def call(self, method: Literal["session/tree"], params: SessionTreeParams | None = None) -> SessionTreeResult: ...

    @overload
    async def call(self, method: Literal["session/rename"], params: SessionRenameParams) -> SessionRenameResult: ...

    @overload
    async def call(self, method: Literal["session/close"], params: SessionParams) -> Done: ...

    @overload
    async def call(self, method: Literal["session/delete"], params: SessionParams) -> SessionDeleteResult: ...

    @overload
    async def call(self, method: Literal["session/import"], params: SessionImportParams) -> OpenedState: ...

    @overload
    async def call(self, method: Literal["session/switch"], params: SessionSwitchParams) -> OpenedState: ...

    @overload
    async def call(self, method: Literal["session/reload"], params: SessionParams) -> OpenedState: ...

    @overload
    async def call(self, method: Literal["session/relocate"], params: SessionRelocateParams) -> OpenedState: ...

    @overload
    async def call(self, method: Literal["session/subscribe"], params: SessionSubscribeParams) -> SessionSubscribeResult: ...

    @overload
    async def call(self, method: Literal["session/unsubscribe"], params: SessionUnsubscribeParams) -> Done: ...

    @overload
    async def call(self, method: Literal["branch/list"], params: BranchListParams | None = None) -> BranchListResult: ...

    @overload
    async def call(self, method: Literal["branch/navigate"], params: BranchNavigateParams) -> BranchNavigateResult: ...

    @overload
    async def call(self, method: Literal["branch/compare"], params: BranchCompareParams) -> BranchCompareResult: ...

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
    async def call(self, method: Literal["agent/prompt"], params: AgentPromptParams) -> AgentPromptResult: ...

    @overload
    async def call(self, method: Literal["agent/steer"], params: WordsParams) -> AgentPromptResult: ...

    @overload
    async def call(self, method: Literal["agent/followUp"], params: WordsParams) -> AgentPromptResult: ...

    @overload
    async def call(self, method: Literal["agent/abort"], params: RunParams) -> RunResult: ...

    @overload
    async def call(self, method: Literal["agent/wait"], params: RunParams) -> RunResult: ...

    @overload
    async def call(self, method: Literal["queue/get"], params: SessionParams) -> Queues: ...

    @overload
    async def call(self, method: Literal["queue/remove"], params: QueueRemoveParams) -> QueueItem: ...

    @overload
    async def call(self, method: Literal["queue/clear"], params: SessionParams) -> Queues: ...

    @overload
    async def call(self, method: Literal["model/list"], params: NoParams | None = None) -> ModelListResult: ...

    @overload
    async def call(self, method: Literal["model/set"], params: ModelSetParams) -> ModelSetResult: ...

    @overload
    async def call(self, method: Literal["thinking/set"], params: ThinkingSetParams) -> ThinkingSetResult: ...

    @overload
    async def call(self, method: Literal["tool/list"], params: SessionParams) -> ToolListResult: ...

    @overload
    async def call(self, method: Literal["tool/setActive"], params: ToolSetActiveParams) -> ToolListResult: ...

    @overload
    async def call(self, method: Literal["workspace/status"], params: SessionParams) -> WorkspaceStatusResult: ...

    async def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Call a method and return its result. Raises PiRpcError, DaemonEndedError."""
        return await self.request(method, params)

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Call any method, known to these types or not."""
        ...
