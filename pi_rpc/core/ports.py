"""The whole outside on a page: what a session needs done for it, by whom it never knows.

Each port is small enough to be written twice, and its bodies pass one contract test.
"""

from collections.abc import AsyncGenerator, Awaitable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from pi_rpc.core.entries import Header, Kind
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.heads import Heads
from pi_rpc.core.messages import Block, JsonObject, ToolCall, ToolDeclaration, ToolOutcome
from pi_rpc.core.reply import Piece


class Clock(Protocol):
    """What time it is."""

    def now_ms(self) -> int:
        """Unix time in milliseconds; never goes back within one process."""
        ...


class Ids(Protocol):
    """Names that were never used before."""

    def entry_id(self) -> str:
        """Eight hexadecimal characters; the caller redraws on a clash."""
        ...

    def unique_id(self) -> str:
        """A UUID, version 7, later ones sort after earlier ones: sessions, runtimes, runs."""
        ...


class Chance(Protocol):
    """What nobody can foresee."""

    def fraction(self) -> float:
        """At least 0, below 1, any as likely as another."""
        ...


class NewLine(msgspec.Struct, frozen=True):
    """A line to append: the encoded object without its newline, and its head."""

    raw: bytes
    entry_id: str
    parent_row: int
    """Row of the parent, which may be an earlier line of the same append; -1 for a root."""
    kind: Kind


class CopiedRows(msgspec.Struct, frozen=True):
    """Rows first..last-1 of the source session, taken over byte for byte."""

    first: int
    last: int


class StoredSession(Protocol):
    """One session as its store holds it; what was appended is there after a crash."""

    header: Header
    heads: Heads
    """One row a stored entry, in file order; grows with every append, never else."""
    diagnostics: list[Diagnostic]
    """What was odd when it was opened, one a line or entry."""
    path: Path | None
    """Where it lives; None when nowhere."""
    writable: bool
    """False when it was opened to read: appends are refused."""

    @property
    def size_bytes(self) -> int:
        """Stored bytes that are known, header included."""
        ...

    def line(self, row: int) -> bytes:
        """The stored bytes of a row, without the newline.

        Raises Outside when they cannot be read.
        """
        ...

    async def refresh(self) -> range:
        """Take in what another program appended; the rows that are new (often none).

        Raises Damaged when the stored bytes are no longer a continuation of what was read.
        """
        ...

    async def append(self, lines: Sequence[NewLine], durable: bool) -> range:
        """Append lines, each in one write; the new rows. `durable`: synced when this returns.

        All or nothing in memory: after a failure heads are as before. Raises Locked when opened to
        read, Conflict `foreign_append` when the file has grown since the last refresh, Outside
        (`disk_full`, `write_failed`) when the system refuses.
        """
        ...

    async def sync(self) -> None:
        """Everything appended so far is on the disk when this returns."""
        ...

    async def close(self) -> None:
        """Give up the lease and the handle; calling it again does nothing."""
        ...


class SessionListing(msgspec.Struct, frozen=True):
    """A stored session as a picker shows it."""

    session_id: str
    path: Path
    cwd: str
    created: str
    modified: str
    message_count: int
    first_message: str
    name: str | None = None
    parent_session: str | None = None


class Store(Protocol):
    """Where histories are kept."""

    async def create(
        self,
        header: Header,
        lines: Sequence[NewLine | CopiedRows] = (),
        source: StoredSession | None = None,
        ephemeral: bool = False,
    ) -> StoredSession:
        """A new session, open to write: all of its lines are there or it does not exist.

        Parents of copied rows are the row copied before (first: root), so copies form one path.
        Raises Refused `session_exists` for an id in use, Outside when the disk refuses.
        """
        ...

    async def open(
        self, session: str | Path, mode: Literal["own", "read"], cwd: str | None = None
    ) -> StoredSession:
        """A stored session, by id, by unambiguous beginning of an id, or by path.

        `own` takes the lease. Raises Missing `session_not_found`, Refused `ambiguous_id`, Invalid
        `not_a_session`, Locked with the owner.
        """
        ...

    async def adopt(self, path: Path, known_cwd: str) -> StoredSession:
        """Bring a file from anywhere into the store (import), open to write.

        The source is untouched.
        """
        ...

    async def listing(self, cwd: str | None) -> list[SessionListing]:
        """Every stored session, latest activity first; of one working directory if given."""
        ...

    async def delete(self, session_id: str) -> Path | None:
        """Put a session into the trash; where it lies now."""
        ...


class StopSignal(Protocol):
    """Somebody wants this act to end."""

    def is_set(self) -> bool:
        """Whether it was asked for."""
        ...

    def wait(self) -> Awaitable[object]:
        """Return once it was asked for."""
        ...


class Progress(Protocol):
    """Where a running call tells how far it is; the newest snapshot wins."""

    def tell(self, content: list[Block], details: JsonObject | None = None) -> None:
        """Show this instead of what was shown before; never blocks."""
        ...


class CallContext(msgspec.Struct, frozen=True):
    """What one run of a tool is given beside its arguments."""

    cwd: Path
    stop: StopSignal
    progress: Progress
    environment: dict[str, str]
    """Variables added for child processes."""
    spill_folder: Path
    """Where output too long to show may be kept; made on first use, mode 0700."""


Effect = Literal["none", "workspace", "outside"]
"""A call's mark on the world."""


class Tool(Protocol):
    """One thing a model may do."""

    declaration: ToolDeclaration
    effect: Effect
    """The most it may touch: `bash` says outside, for nobody can see what it reached."""
    sequential: bool
    """True when no other call of the batch may run beside it."""

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        """Do it. A failure is an outcome marked as error; Failure may be raised and becomes one.

        Must end soon after `context.stop` is set, giving what it has; whoever ignores that is
        cancelled and its outcome made up.
        """
        ...


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
    max_output: int | None = None
    """The longest reply wanted, in tokens; None for as long as the model can."""


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


class Workspace(Protocol):
    """States of the working directory."""

    async def snapshot(self) -> str | None:
        """The name of the present state; None when states cannot be named here."""
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


class Models(Protocol):
    """Which models there are and who serves them."""

    def listing(self) -> list[ModelListing]:
        """Every known model, usable ones first."""
        ...

    def provider_of(self, provider: str, model_id: str) -> Provider:
        """The provider that serves a model. Raises Missing `model_not_found`, Refused `no_key`."""
        ...

    def default(self) -> tuple[str, str] | None:
        """Provider and id of the model to start with; None when none is usable."""
        ...
