"""Shapes that several methods share."""

from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from pi_rpc.core.errors import Invalid
from pi_rpc.core.events import Diagnostic, Environment, QueueMode

JsonObject = dict[str, Any]
ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]

NAME_CHARS_SHOWN_MAX = 1000
"""How much is shown of a name or label; the whole stands in its entry."""

PAGE_BYTES_MAX = 8 * 1024 * 1024
"""Stored bytes that one page of a list carries at most, but for a single entry that is larger."""


class Params(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What every request may carry beside its own words."""

    progress_token: str | int | None = None
    """Names the `$/progress` notifications of this request, if any are wanted."""


class Result(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """An answer; what is not known or does not apply is left out."""


class NoParams(Params, frozen=True, kw_only=True):
    """Nothing to say."""


class Done(Result, frozen=True, kw_only=True):
    """It is done."""


class ModelRef(msgspec.Struct, frozen=True, rename="camel"):
    """A model by provider and id."""

    provider: str
    model_id: str


class SessionParams(Params, frozen=True, kw_only=True):
    """A request to an open session."""

    session_id: str


class StoredParams(Params, frozen=True, kw_only=True):
    """A question about a session, open or only stored; by id or by path."""

    session_id: str | None = None
    path: str | None = None

    @property
    def which(self) -> str | Path:
        """The session meant. Raises Invalid when it is named twice or not at all."""
        if (self.session_id is None) == (self.path is None):
            raise Invalid("name_one", "give either sessionId or path")
        return self.session_id if self.session_id is not None else Path(str(self.path))


class MoveParams(SessionParams, frozen=True, kw_only=True):
    """A request that moves a leaf."""

    expected_leaf: str | None | UnsetType = UNSET
    """Where the caller believes the leaf stands; checked only when given."""


class QueueItem(Result, frozen=True, kw_only=True):
    """A message that waits for the model."""

    id: str
    text: str
    truncated: bool = False
    """The text is only the beginning, for a client that reads no longer messages."""


class Queues(Result, frozen=True, kw_only=True):
    """Both queues, first to be delivered first."""

    steering: list[QueueItem]
    follow_up: list[QueueItem]
    steering_mode: QueueMode
    """How many of them go with one request."""
    follow_up_mode: QueueMode


class SessionState(Result, frozen=True, kw_only=True):
    """An open session as it stands."""

    session_id: str
    runtime_id: str
    seq: int
    """Number of the runtime's last event."""
    subscription_id: str | None = None
    path: str | None = None
    cwd: str
    name: str | None = None
    mode: Literal["own", "read"]
    leaf_id: str | None
    visible_leaf_id: str | None
    """The nearest entry at or above the leaf that is a step of the conversation."""
    entry_count: int
    model: ModelRef | None = None
    thinking_level: str
    running: bool
    run_id: str | None = None
    compacting: bool
    """Whether a summary of the context is being made."""
    queue: Queues
    interrupted: list[str] = []
    """Ids of calls that no result answers; each gets one when the next run begins."""
    environment: Environment
    parent_session: str | None = None


class OpenedState(SessionState, frozen=True, kw_only=True):
    """An open session, and what was odd about its file."""

    diagnostics: list[Diagnostic]


class CopiedState(SessionState, frozen=True, kw_only=True):
    """A new session made from a path of another."""

    draft: str | None = None
    """The words of the message it was forked before, for the editor."""
    draft_truncated: bool = False
    """They are too long for the client, and are read where they stand."""
