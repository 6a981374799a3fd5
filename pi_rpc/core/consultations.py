"""What a client may be asked beside hooks, and what it may answer.

The shapes are those of the wire, for a front end has nothing to add to them. Who asks, for how
long, and what holds when nobody answers is told by `session/`.
"""

from typing import Annotated, Literal

import msgspec

from pi_rpc.core.messages import Block, JsonObject

TOOL_TIMEOUT_MS = 600_000
"""How long a client's tool may take unless it says otherwise: as long as a patient user."""

COMMAND_TIMEOUT_MS = 600_000
"""How long a client's command may take unless it says otherwise."""

CHECKPOINT_TIMEOUT_MS = 5_000
"""How long the provider of a scope may take unless it says otherwise; then nothing is known."""

PERMISSION_TIMEOUT_MS = 3_600_000
"""How long a permission waits for its user; then the call is rejected, once."""

DIALOG_TIMEOUT_MS = 600_000
"""How long a dialog is shown unless whoever asks says otherwise; then its default holds."""

TIMEOUT_MS_MAX = 86_400_000
"""A day; nothing waits longer."""

TimeoutMs = Annotated[int, msgspec.Meta(ge=1, le=TIMEOUT_MS_MAX)]

DialogName = Literal["select", "confirm", "input", "editor"]
"""What a client may be able to show its user."""

PermissionDecision = Literal["allow_once", "allow_session", "reject_once", "reject_always"]
"""`allow_session` and `reject_always` are remembered until the session is closed."""


PATTERN_CHARS_MAX = 500
"""How long a pattern of the user's may be."""


class PermissionOption(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Something the user may answer."""

    decision: PermissionDecision
    label: str
    pattern: str | None = None
    """To be answered with the decision."""


class PermissionAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To a permission: one of the options."""

    decision: PermissionDecision
    reason: str | None = None
    """Why it is rejected; the model is told."""
    pattern: Annotated[str, msgspec.Meta(min_length=1, max_length=PATTERN_CHARS_MAX)] | None = None
    """What is remembered with `allow_session` and `reject_always`, instead of what they mean by
    themselves; it must fit the very call."""


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
