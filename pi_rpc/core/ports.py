"""The whole outside on a page: what a session needs done for it, by whom it never knows.

Each port is small enough to be written twice, and its bodies pass one contract test.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from pi_rpc.core.entries import Header, Kind
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.heads import Heads
from pi_rpc.core.messages import Block, JsonObject, ToolCall, ToolDeclaration, ToolOutcome
from pi_rpc.core.meter import Meter
from pi_rpc.core.reply import Piece
from pi_rpc.core.searching import SearchQuery
from pi_rpc.core.settings import Layer


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

    def length(self, row: int) -> int:
        """How many bytes `line` gives, without reading them."""
        ...

    def lines_of(self, rows: range) -> list[bytes]:
        """The stored bytes of rows that follow one another, read at once where they stand so."""
        ...

    async def refresh(self) -> range:
        """Take in what another program appended; the rows that are new (often none).

        Raises Damaged when the stored bytes are no longer a continuation of what was read.
        """
        ...

    async def append(self, lines: Sequence[NewLine], durable: bool) -> range:
        """Append lines, each in one write; the new rows. `durable`: synced when this returns.

        Memory follows the file: after a failure heads hold the lines that are whole in it, which
        may be some of these. Raises Locked when opened to
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


class SearchHit(msgspec.Struct, frozen=True):
    """An entry that holds what was looked for."""

    session_id: str
    path: Path | None
    cwd: str
    name: str | None
    entry_id: str
    role: str
    """Of a message its role; of any other entry its type."""
    at_ms: int
    snippet: str


class SearchPage(msgspec.Struct, frozen=True):
    """Hits, newest first."""

    hits: list[SearchHit]
    next_cursor: str | None = None


class RepairStep(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One thing that was done to a file."""

    action: Literal["newline_added", "line_kept_as_entry", "parent_mended", "lines_parted"]
    text: str
    offset: int | None = None
    """Where it stood in the old file, in bytes."""
    entry_id: str | None = None


class Repaired(msgspec.Struct, frozen=True):
    """What a repair has done; no steps when there was nothing to do."""

    steps: list[RepairStep]
    backup: Path | None = None
    """The old file, byte for byte; None when the file only grew."""


class Store(Protocol):
    """Where histories are kept."""

    async def create(
        self,
        header: Header,
        lines: Sequence[NewLine | CopiedRows] = (),
        source: StoredSession | None = None,
        ephemeral: bool = False,
        *,
        known_unique: bool = False,
    ) -> StoredSession:
        """A new session, open to write: all of its lines are there or it does not exist.

        `known_unique`: the id was made for this session, so no other is looked for. Parents of
        copied rows are the row copied before (first: root), so copies form one path.
        Raises Refused `session_exists` for an id in use, Outside when the disk refuses.
        """
        ...

    async def open(
        self,
        session: str | Path,
        mode: Literal["own", "read"],
        cwd: str | None = None,
        meter: Meter | None = None,
    ) -> StoredSession:
        """A stored session, by id, by unambiguous beginning of an id, or by path.

        `own` takes the lease. The meter counts what is read. Raises Missing `session_not_found`,
        Refused `ambiguous_id`, Invalid `not_a_session`, Locked with the owner.
        """
        ...

    async def adopt(self, path: Path, known_cwd: str) -> StoredSession:
        """Bring a file from anywhere into the store (import), open to write.

        The source is untouched.
        """
        ...

    async def listing(self, cwd: str | None, meter: Meter | None = None) -> list[SessionListing]:
        """Every stored session, latest activity first; of one working directory if given."""
        ...

    async def delete(self, session_id: str) -> Path | None:
        """Put a session into the trash; where it lies now."""
        ...

    async def search(
        self, query: SearchQuery, cwd: str | None, cursor: str | None, limit: int
    ) -> SearchPage:
        """Entries of every branch that a query means, newest first; of one directory if given."""
        ...

    async def repair(self, session: str | Path) -> Repaired:
        """Make a session readable to the end, losing no byte: by an append, or by a new file.

        Raises what `open` raises, Locked among them; then nothing was done.
        """
        ...

    async def publish(self, target: Path, chunks: AsyncIterable[bytes]) -> int:
        """Write a new file anywhere, whole or not at all, for the user alone; its size.

        Raises Refused `file_exists`, Missing `folder_missing`, Outside when the disk refuses.
        """
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


class Printed(Protocol):
    """Where a command's output goes while it runs."""

    def tell(self, text: str, skipped_chars: int) -> None:
        """Plain text that follows what was told before; never blocks.

        `skipped_chars` were left out before it, because they came faster than they are told.
        """
        ...


class ShellOutcome(msgspec.Struct, frozen=True):
    """What came of a command the user ran."""

    output: str
    """Plain text, its end when it is long."""
    exit_code: int | None
    """As shells count; None when it was stopped."""
    cancelled: bool
    truncated: bool
    full_output_path: str | None = None
    """A file with the bytes as they came, when the output is long."""


class Shell(Protocol):
    """Runs commands of the user: no time limit, no variables of a session."""

    async def run(
        self, command: str, cwd: Path, spill_folder: Path, stop: StopSignal, printed: Printed
    ) -> ShellOutcome:
        """See a command to its end; a stop ends it with its children, and keeps its output.

        Raises Missing `cwd_missing`, Outside `start_failed`; then nothing was run.
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


class LeftOut(msgspec.Struct, frozen=True, rename="camel"):
    """A path that a version does not hold."""

    path: str
    reason: str
    """too_large, unreadable."""
    size_bytes: int
    changed_ns: int = 0
    """When it was changed last; with the size it stands for the content."""


class Snapshot(msgspec.Struct, frozen=True):
    """A state of the working directory that has a name."""

    version: str
    """Made of the content: the same files have the same name."""
    left_out: Sequence[LeftOut] = ()


PathChangeKind = Literal["added", "modified", "removed"]


class PathChange(msgspec.Struct, frozen=True):
    """A path that two states differ in."""

    path: str
    """Relative to the folder, parted by slashes; see `pi_rpc.core.paths`."""
    change: PathChangeKind
    before: str | None
    """Its state in the first, None where it is absent."""
    after: str | None
    kept: bool = True
    """Whether both versions hold its content, or one of them only knows of it."""


class FileDiff(msgspec.Struct, frozen=True):
    """How one file differs between two states."""

    path: str
    change: PathChangeKind
    added: int | None
    """Lines; None where they cannot be counted."""
    removed: int | None
    patch: str | None = None


class Workspace(Protocol):
    """States of one working directory.

    Any of these raises Outside (`git_missing`, `git_failed`, `store_broken`, `versions_off`, …) or
    Overfull (`out_of_time`, `too_many_files`, `too_many_bytes`) when states cannot be named; then
    nothing has changed.
    """

    kind: str
    """What stands behind it: git, manifest, none."""

    def warm(self) -> None:
        """Begin with what a first snapshot takes long for, beside everything else."""
        ...

    async def snapshot(self) -> Snapshot:
        """Name the present state, and keep it."""
        ...

    async def compare(self, one: str, other: str) -> list[PathChange]:
        """What differs from one version to another, by path.

        Raises Missing `version_not_found`.
        """
        ...

    async def diff(self, one: str, other: str, patches: bool) -> list[FileDiff]:
        """As `compare`, with lines counted and, if wanted, patches."""
        ...

    async def restore(self, changes: Sequence[PathChange]) -> dict[str, str]:
        """Bring each path from its state `before`, the present one, to `after`, which is kept.

        A path at a time, each whole or not at all; may be done again after a crash. Paths that
        could not be brought there, with a reason: changed_meanwhile, in_the_way, write_failed,
        content_missing.
        """
        ...

    async def fetch(self, other: "Workspace", version: str) -> None:
        """Keep a version of another folder here too. Raises Missing, Refused `other_kind`."""
        ...


class Workspaces(Protocol):
    """The states of any folder."""

    def of(self, folder: Path) -> Workspace:
        """Those of a folder; the same object for the same folder, however it is spelled."""
        ...


class LeftRunning(msgspec.Struct, frozen=True):
    """A process that a command of a session started and that still runs."""

    pid: int
    command: str


FindRunning = Callable[[str, str], Awaitable[list[LeftRunning] | None]]
"""Processes started with this variable at this value; None where the system does not tell."""


class PathsIgnored(Protocol):
    """What ignore files say in one folder."""

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        """Whether a path in this folder is passed over."""
        ...

    def entered(self, folder: str) -> "PathsIgnored":
        """What holds in a folder below."""
        ...


IgnoringAbove = Callable[[Path], PathsIgnored]
"""What the folders above one say of it, to be entered."""


class Worktree(msgspec.Struct, frozen=True):
    """A new work tree of a repository."""

    top: Path
    cwd: Path
    """The folder in it that stands for the one it was asked for."""


class Worktrees(Protocol):
    """Work trees made for sessions."""

    async def require(self, folder: Path) -> None:
        """Raise Refused (`no_repository`, `no_commit`) where none can be made, Outside."""
        ...

    async def add(self, folder: Path) -> Worktree:
        """A new one of the repository this folder is in. Raises as `require`."""
        ...

    def top_of(self, folder: Path) -> Path | None:
        """The one made here that a folder lies in."""
        ...

    async def remove(self, top: Path, *, kept: bool) -> None:
        """Remove one; `kept`: its files have a version.

        Raises Refused (`not_ours`, `commits_would_be_lost`, `files_would_be_lost`), Outside.
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


class Trust(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Whether the files of a project may steer what is done in it."""

    trusted: bool
    decided_by: Literal["flag", "nothing_requires", "saved", "setting", "nobody"]
    """`nobody`: the user would have to be asked, so it is not trusted."""
    requires: list[str] = []
    """The files and folders that want trust."""
    saved_at: str | None = None
    """The folder whose saved decision holds."""


class KeptSettings(msgspec.Struct, frozen=True):
    """The settings files of a folder, as they are now."""

    layers: list[Layer]
    """The user's, then the project's when it is trusted."""
    trust: Trust
    diagnostics: list[Diagnostic]


class Preferences(Protocol):
    """What users and projects have chosen, in files that other programs read and write too."""

    async def read(self, cwd: Path) -> KeptSettings:
        """The settings for a folder; what cannot be read is empty and told."""
        ...

    async def write(self, key: str, value: Any) -> None:
        """Change one of the user's settings, and nothing else of the file; None takes it out.

        Raises Refused `settings_unreadable`, Locked `settings_locked`, Outside `write_failed`; then
        nothing has changed.
        """
        ...

    async def decide_trust(self, folder: Path, trusted: bool | None) -> None:
        """Save a decision for a folder and those in it; None forgets it. Raises as `write` does."""
        ...


class LoadedFile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A file that went into the prompt or can be called for."""

    kind: Literal["context", "system", "append_system", "skill", "prompt"]
    path: str
    sha256: str
    name: str | None = None
    description: str | None = None
    argument_hint: str | None = None
    is_hidden: bool = False
    """A skill that only the user calls."""
    origin: Literal["user", "project"] = "user"
    text: str = ""
    """Without byte order mark; of skills and prompts with the frontmatter."""


class Resources(msgspec.Struct, frozen=True):
    """Everything found for a folder, in the order it is used; of one name the first counts."""

    files: tuple[LoadedFile, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


class ResourceQuery(msgspec.Struct, frozen=True):
    """Where to look."""

    cwd: Path
    trusted: bool = False
    context_files: Literal["all", "repository", "trusted", "none"] = "all"
    skills: tuple[str, ...] = ()
    """More files and folders, of the user's settings and a trusted project's."""
    prompts: tuple[str, ...] = ()


class Instructions(Protocol):
    """Files that tell the model how to work: context files, prompts, skills."""

    async def load(self, query: ResourceQuery) -> Resources:
        """What is there now; an unchanged file is not read again."""
        ...

    async def text(self, path: Path) -> str:
        """The text of one of them as it is now. Raises Missing `file_not_found`, Outside."""
        ...
