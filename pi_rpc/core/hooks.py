"""The points at which somebody may take part: what is told there, and what may be answered.

One table, for code in this process and for clients alike. The shapes are those of the wire, for a
front end has nothing to add to them. Who is asked, in which order, and what holds when nobody
answers is told by `session/`.
"""

from typing import Literal

import msgspec

from pi_rpc.core.drafts import Draft
from pi_rpc.core.entries import AddedMessage
from pi_rpc.core.grants import Grant
from pi_rpc.core.messages import Block, JsonObject

HookName = Literal[
    "session/started",
    "session/closing",
    "session/before_replace",
    "session/before_tree",
    "session/before_compact",
    "input",
    "run/prepare",
    "request/context",
    "request/payload",
    "message/ended",
    "tool/before",
    "tool/after",
    "turn/ended",
    "run/before_settle",
    "run/settled",
    "bash/before",
]
"""The points at which a client or an extension may take part."""

OnTimeout = Literal["allow", "deny", "fail"]
"""What holds when a hook does not answer: as if it had nothing to say, as if it refused, or as if
the act itself had failed."""

HOOK_TIMEOUT_MS = 5_000
"""How long a hook may take unless it says otherwise."""

CONTEXT_MESSAGES_DEFAULT = 20
"""How many of the newest messages `request/context` is shown unless it says otherwise."""

CONTEXT_MESSAGES_MAX = 1000
"""How many it may want; a whole conversation with every request is what this avoids."""

CONTINUES_MAX = 100
"""How often hooks may have one run go on; more is a run that never ends."""


class Told(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """What every point tells beside session and run."""


class SessionStarted(Told, frozen=True, kw_only=True):
    """A runtime is live."""

    reason: str
    """new, open, or what it took the place for: fork, clone, switch, import, reload, relocate."""
    parent_session_id: str | None = None
    """The session it was copied from."""


class SessionClosing(Told, frozen=True, kw_only=True):
    """A runtime ends; its run has settled, its file is still open."""

    reason: str
    """closed, deleted, reopened, shutdown, or the reason of the swap."""
    next_session_id: str | None = None
    """The session that takes its place."""


class BeforeReplace(Told, frozen=True, kw_only=True):
    """A session is about to be replaced or copied."""

    reason: str
    """new, switch, fork, clone, import, reload, relocate."""
    entry_id: str | None = None
    """Where a fork ends."""
    activates: bool = True
    """Whether the present runtime gives way; a copy may be made beside it."""


class BeforeTree(Told, frozen=True, kw_only=True):
    """The leaf is about to move."""

    target_id: str | None
    leaf_id: str | None
    ancestor_id: str | None
    """Where both branches part."""
    left_count: int
    """How many entries are left behind."""
    wants_summary: bool
    """Whether what is left is to be summarised."""
    instructions: str = ""
    """What the summary is to look at."""


class BeforeCompact(Told, frozen=True, kw_only=True):
    """A compaction is planned and nothing was asked yet."""

    reason: str
    """manual, threshold, overflow."""
    tokens_before: int
    first_kept_entry_id: str
    summarised_count: int
    """How many entries the summary is to stand for."""
    summarised_entry_ids: list[str]
    """The newest of them, oldest first; at most a thousand."""
    will_retry: bool
    """Whether a reply that did not fit is asked for again."""
    instructions: str = ""
    """What the summary is to look at, as hooks before left it."""
    summary: str | None = None
    """The summary a hook before gave."""


class Input(Told, frozen=True, kw_only=True):
    """Words came and are not admitted yet."""

    text: str
    images: int
    """How many images go with them."""
    way: Literal["prompt", "steer", "followUp"]
    source: Literal["client", "extension"] = "client"


class RunPrepare(Told, frozen=True, kw_only=True):
    """A run is admitted; nothing of it is stored."""

    message: JsonObject
    """What starts it."""
    tools: list[str]
    """The tools the model is told of."""
    system_prompt: str | None = None
    """The whole prompt of this run, where a hook before wants one."""


class ContextMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message as the model would see it, and the entry it stands in."""

    entry_id: str
    message: JsonObject


class RequestContext(Told, frozen=True, kw_only=True):
    """The model is about to be asked."""

    turn: int
    count: int
    """How many messages the request has, system messages left out."""
    messages: list[ContextMessage]
    """The newest of them, as many as the registration wants, as hooks before left them."""


class RequestPayload(Told, frozen=True, kw_only=True):
    """What goes over the net; never headers, never keys."""

    provider: str
    model_id: str
    api: str
    payload: JsonObject


class MessageEndedTold(Told, frozen=True, kw_only=True):
    """A message is whole and not stored yet."""

    message: JsonObject


class ToolBefore(Told, frozen=True, kw_only=True):
    """A call is about to run."""

    call_id: str
    name: str
    arguments: JsonObject
    """As hooks before left them; validated."""
    effect: str
    """The most it may touch: none, workspace, outside."""


class ToolAfter(Told, frozen=True, kw_only=True):
    """A call has run, nobody has seen its result."""

    call_id: str
    name: str
    arguments: JsonObject
    """The model's own."""
    effective_arguments: JsonObject
    """Those that were run."""
    content: list[Block]
    is_error: bool
    details: JsonObject | None = None


class TurnEndedTold(Told, frozen=True, kw_only=True):
    """A reply and its results are stored."""

    turn: int
    message_entry_id: str
    tool_result_entry_ids: list[str]
    entries: list[Draft]
    """What hooks before want written."""
    continues: bool
    """Whether one of them wants the run to go on."""


class BeforeSettle(Told, frozen=True, kw_only=True):
    """Nothing is left to do in a run."""

    turn: int
    entries: list[Draft]
    continues: bool


class RunSettledTold(Told, frozen=True, kw_only=True):
    """A run is over, everything of it is stored, another may be started."""

    run_id: str
    outcome: str
    error: JsonObject | None = None


class BashBefore(Told, frozen=True, kw_only=True):
    """A command of the user's is about to run."""

    command: str
    exclude_from_context: bool


class NothingSaid(msgspec.Struct, frozen=True, rename="camel"):
    """To a point where one only looks on."""


class InputAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `input`: leave the words, replace them, or say that they are dealt with."""

    action: Literal["continue", "transform", "handled"] = "continue"
    text: str | None = None
    """The words instead, with `transform`."""
    images: list[Block] | None = None
    """The images instead, with `transform`; left out, they stay."""


class PrepareAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `run/prepare`: what this run begins with."""

    messages: list[AddedMessage] = []
    """They go behind the prompt."""
    sections: dict[str, str | None] = {}
    """Sections of the system prompt, by name; null leaves one out. They hold for this run."""
    tools: list[str] | None = None
    """The tools the model is told of in this run, of those the session has."""
    system_prompt: str | None = None
    """The whole prompt of this run's requests; it is not stored."""


class ContextChange(msgspec.Struct, frozen=True, rename="camel"):
    """Other content for a message, or none."""

    entry_id: str
    content: str | list[Block] | None = None
    """Null leaves the message out, a call together with its results."""


class ContextAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `request/context`: changes of this one request, which are not stored."""

    change: list[ContextChange] = []
    append: list[str | list[Block]] = []
    """Messages of the user's to go last."""


class PayloadAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `request/payload`: what to send instead."""

    payload: JsonObject | None = None


class MessageAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `message/ended`: what is stored and told; role, calls and all else stay."""

    content: str | list[Block] | None = None
    """Other content; signatures over what was there before are taken off."""
    annotations: JsonObject | None = None
    """Said beside the message, never to the model."""


class BeforeToolAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `tool/before`: let the call run, perhaps with other arguments, or block it."""

    action: Literal["allow", "block"] = "allow"
    reason: str | None = None
    """Why it is blocked; the model is told."""
    terminate: bool = False
    """With `block`: the run may end here."""
    arguments: JsonObject | None = None
    """The arguments instead, whole; they are validated again."""


class AfterToolAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `tool/after`: what is left out stays as the tool gave it."""

    content: list[Block] | None = None
    details: JsonObject | None = None
    is_error: bool | None = None


class BoundaryAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `turn/ended` and `run/before_settle`: entries to write, and whether to go on."""

    entries: list[Draft] | None = None
    """All that is to be written, what hooks before wanted included; left out, that stays."""
    continues: bool | None = msgspec.field(name="continue", default=None)
    """Whether the model is asked once more; left out, what hooks before wanted stays."""


class BeforeMoveAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `session/before_replace`: whether it may happen."""

    cancel: bool = False
    reason: str | None = None


class BeforeTreeAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `session/before_tree`: whether the leaf may move, and what is said of what is left."""

    cancel: bool = False
    reason: str | None = None
    summary: str | None = None
    """The summary of what is left, where one is wanted."""
    instructions: str | None = None
    """What the summary is to look at instead."""
    label: str | None = None
    """A label for where the leaf goes."""


class BeforeCompactAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `session/before_compact`: whether it may happen, and with which summary."""

    cancel: bool = False
    reason: str | None = None
    summary: str | None = None
    """The summary; then no model is asked."""
    instructions: str | None = None
    """What the summary is to look at instead."""
    details: JsonObject | None = None
    """With a summary: stored beside it."""


class BashAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `bash/before`: run the command, perhaps another, refuse it, or say what came of it."""

    action: Literal["allow", "block", "replace"] = "allow"
    reason: str | None = None
    """Why it is blocked."""
    command: str | None = None
    """With `allow`: the command to run instead."""
    output: str = ""
    """With `replace`: what it printed."""
    exit_code: int | None = 0
    """With `replace`; null for a command that was stopped."""


HookAnswer = (
    NothingSaid
    | InputAnswer
    | PrepareAnswer
    | ContextAnswer
    | PayloadAnswer
    | MessageAnswer
    | BeforeToolAnswer
    | AfterToolAnswer
    | BoundaryAnswer
    | BeforeMoveAnswer
    | BeforeTreeAnswer
    | BeforeCompactAnswer
    | BashAnswer
)


class HookPoint(msgspec.Struct, frozen=True):
    """One point: what is told, what may be answered, and what holds without an answer."""

    told: type[Told]
    answer: type[HookAnswer]
    grant: Grant
    default: OnTimeout = "allow"
    is_local: bool = False
    """Whether only code in this process may take part."""


HOOKS: dict[HookName, HookPoint] = {
    "session/started": HookPoint(SessionStarted, NothingSaid, "sessions"),
    "session/closing": HookPoint(SessionClosing, NothingSaid, "sessions"),
    "session/before_replace": HookPoint(BeforeReplace, BeforeMoveAnswer, "sessions"),
    "session/before_tree": HookPoint(BeforeTree, BeforeTreeAnswer, "sessions"),
    "session/before_compact": HookPoint(BeforeCompact, BeforeCompactAnswer, "sessions"),
    "input": HookPoint(Input, InputAnswer, "words"),
    "run/prepare": HookPoint(RunPrepare, PrepareAnswer, "prompt"),
    "request/context": HookPoint(RequestContext, ContextAnswer, "prompt"),
    "request/payload": HookPoint(RequestPayload, PayloadAnswer, "payloads", is_local=True),
    "message/ended": HookPoint(MessageEndedTold, MessageAnswer, "words"),
    # A call that nobody looked at does not run.
    "tool/before": HookPoint(ToolBefore, BeforeToolAnswer, "tools", "deny"),
    "tool/after": HookPoint(ToolAfter, AfterToolAnswer, "tools"),
    "turn/ended": HookPoint(TurnEndedTold, BoundaryAnswer, "prompt"),
    "run/before_settle": HookPoint(BeforeSettle, BoundaryAnswer, "prompt"),
    "run/settled": HookPoint(RunSettledTold, NothingSaid, "words"),
    "bash/before": HookPoint(BashBefore, BashAnswer, "tools"),
}
"""Every point; each field of an answer may be left out, so `{}` lets things go their way."""
