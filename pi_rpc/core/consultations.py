"""What a client may be asked before, during and after an act, and what it may answer.

The shapes are those of the wire, for a front end has nothing to add to them. Who asks, for how
long, and what holds when nobody answers is told by `session/`.
"""

from typing import Annotated, Literal

import msgspec

from pi_rpc.core.messages import Block, JsonObject

HookName = Literal[
    "input",
    "run/prepare",
    "tool/before",
    "tool/after",
    "session/before_replace",
    "session/before_tree",
]
"""The points at which a client may take part."""

OnTimeout = Literal["allow", "deny", "fail"]
"""What holds when a hook does not answer: as if it had nothing to say, as if it refused, or as if
the act itself had failed."""

HOOK_TIMEOUT_MS = 5_000
"""How long a hook may take unless it says otherwise."""

TOOL_TIMEOUT_MS = 600_000
"""How long a client's tool may take unless it says otherwise: as long as a patient user."""

COMMAND_TIMEOUT_MS = 600_000
"""How long a client's command may take unless it says otherwise."""

PERMISSION_TIMEOUT_MS = 3_600_000
"""How long a permission waits for its user; then the call is rejected, once."""

DIALOG_TIMEOUT_MS = 600_000
"""How long a dialog is shown unless whoever asks says otherwise; then its default holds."""

TIMEOUT_MS_MAX = 86_400_000
"""A day; nothing waits longer."""

TimeoutMs = Annotated[int, msgspec.Meta(ge=1, le=TIMEOUT_MS_MAX)]

TOOL_CONTENT_CHARS_MAX = 1 << 20
"""Text of one result of a client's tool; more would crowd out the conversation."""

DialogName = Literal["select", "confirm", "input", "editor"]
"""What a client may be able to show its user."""

PermissionDecision = Literal["allow_once", "allow_session", "reject_once", "reject_always"]
"""`allow_session` and `reject_always` are remembered until the session is closed."""


class InputAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `input`: leave the words, replace them, or say that they are dealt with."""

    action: Literal["continue", "transform", "handled"] = "continue"
    text: str | None = None
    """The words instead, with `transform`."""


class AddedMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message for the model beside the user's, stored as an entry of type custom_message."""

    custom_type: str
    content: str | list[Block]
    display: bool = True
    """Whether editors show it."""
    details: JsonObject | None = None


class PrepareAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `run/prepare`: messages to go behind the prompt, and sections of the system prompt."""

    messages: list[AddedMessage] = []
    sections: dict[str, str | None] = {}
    """By name; null leaves a section out. They hold for this run."""


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


class BeforeMoveAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `session/before_replace` and `session/before_tree`: whether it may happen."""

    cancel: bool = False
    reason: str | None = None


HookAnswer = InputAnswer | PrepareAnswer | BeforeToolAnswer | AfterToolAnswer | BeforeMoveAnswer

ANSWER_OF_HOOK: dict[HookName, type[HookAnswer]] = {
    "input": InputAnswer,
    "run/prepare": PrepareAnswer,
    "tool/before": BeforeToolAnswer,
    "tool/after": AfterToolAnswer,
    "session/before_replace": BeforeMoveAnswer,
    "session/before_tree": BeforeMoveAnswer,
}
"""How each hook answers; every field may be left out, so `{}` lets things go their way."""


class PermissionAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To a permission: one of the options."""

    decision: PermissionDecision
    reason: str | None = None
    """Why it is rejected; the model is told."""


class ToolAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """What came of a call of a client's tool."""

    content: list[Block]
    is_error: bool = False
    details: JsonObject | None = None
    terminate: bool = False


class ChoiceAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `ui/select`: one of the options, or none of them."""

    value: str | None = None
    """Null when the user closed the dialog."""


class ConfirmAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `ui/confirm`: yes or no."""

    confirmed: bool | None = None
    """Null when the user closed the dialog."""


class TextAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `ui/input` and `ui/editor`: what the user wrote."""

    text: str | None = None
    """Null when the user closed the dialog."""


class CommandAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A command was carried out."""


def default_on_timeout(hook: HookName) -> OnTimeout:
    """What holds for a hook that has not said: a call that nobody looked at does not run."""
    return "deny" if hook == "tool/before" else "allow"
