"""Who answers, and which models there are."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from pi_rpc.core.events import Diagnostic
from pi_rpc.core.images import ImageLimits
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.reply import Piece
from pi_rpc.core.retrying import RequestRetries

AdjustPayload = Callable[[str, str, str, JsonObject], Awaitable[JsonObject]]
"""Provider, model id, API and what would go over the net; gives what is to go instead."""


class AskingSettings(msgspec.Struct, frozen=True):
    """How a session wants models asked."""

    thinking_budgets: dict[str, int] = {}
    """Tokens for thinking by level, where they are not to be the usual ones."""
    sends_images: bool = True
    begin_s: float = 300.0
    """How long an answer may take to begin, the connection included."""
    idle_s: float = 300.0
    """How long a provider may be silent; models that think at length say nothing for minutes."""
    total_s: float = 3600.0
    """How long a whole reply may take. Any of these is infinite where it is not bounded."""
    retries: RequestRetries = RequestRetries()


class ModelRequest(msgspec.Struct, frozen=True):
    """What a provider is asked."""

    provider: str
    model_id: str
    thinking_level: str
    messages: Sequence[JsonObject]
    """The projected context in the llm form, oldest first.

    May decode lazily, so index sparingly.
    """
    session_id: str
    script: JsonObject | None = None
    """For the offline model: the script of this session instead of the daemon's."""
    script_position: int = 0
    """For the offline model: how many replies of the script this session has used."""
    is_single: bool = False
    """Whether no later request begins with the same words: then a cache is of no use."""
    max_output: int | None = None
    """The longest reply wanted, in tokens; None for as long as the model can."""
    adjust: AdjustPayload | None = None
    """Called once with what goes over the net, where something does. Raises Failure."""
    asking: AskingSettings = AskingSettings()
    kept: dict[str, object] = {}
    """What providers keep of a session's context to go on from with its next request."""


class Provider(Protocol):
    """Who answers."""

    @property
    def api(self) -> str:
        """What a stored reply names as the api it came through: `offline`, `anthropic-messages`."""
        ...

    def reply(self, request: ModelRequest) -> AsyncGenerator[Sequence[Piece], None]:
        """Stream a reply in batches of pieces; the last piece of the last batch is `ReplyEnded`.

        Never raises for what the model or the net did: that is an ended reply with an error. Holds
        no cancel scope across a yield, so it may be closed at any point.
        """
        ...


class ModelListing(msgspec.Struct, frozen=True):
    """A model that may be chosen."""

    provider: str
    model_id: str
    name: str
    context_window: int
    """Tokens; 0 when unknown."""
    max_output: int
    reasoning: bool
    usable: bool
    why_not: str | None = None
    input: tuple[str, ...] = ("text",)
    """What it takes: text, image."""
    price_input: float | None = None
    """US dollars for a million tokens; None when unknown."""
    price_output: float | None = None
    image_limits: ImageLimits = ImageLimits()
    thinking_default: str = "off"
    """The level a session begins with where nothing says otherwise."""


class Models(Protocol):
    """Which models there are and who serves them."""

    def listing(self) -> list[ModelListing]:
        """Every known model, usable ones first."""
        ...

    def listed(self, provider: str, model_id: str) -> ModelListing | None:
        """One of them, or None; costs little, however many there are."""
        ...

    def provider_of(self, provider: str, model_id: str) -> Provider:
        """The provider that serves a model. Raises Missing `model_not_found`, Refused `no_key`."""
        ...

    def check_script(self, script: JsonObject) -> None:
        """Refuse what is no script for the offline model. Raises Invalid `bad_script`."""
        ...

    def default(self) -> tuple[str, str] | None:
        """Provider and id of the model to start with; None when none is usable."""
        ...

    def diagnostics(self) -> list[Diagnostic]:
        """What is odd about the user's models and keys; no text of it holds a key."""
        ...
