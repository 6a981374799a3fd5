"""One live session: the runtime that owns a history.

`record` is the only write path: an entry is stored, then it joins the tree, then it is told.
Everything else a session does is a function in a file beside this one.

Promises
- Memory follows disk: after a failed append the tree, the leaf and the context are as before.
- Entries of one `record` stand together in the file and chain below each other.
- One act moves the leaf at a time; the loser is told who holds the session.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import anyio
import anyio.abc
import msgspec

from pi_rpc.core.bindings import Bindings
from pi_rpc.core.codec import encode
from pi_rpc.core.entries import Body, Entry, Header, entry_object
from pi_rpc.core.errors import Busy, Conflict, Failure, Locked, Stopped
from pi_rpc.core.events import (
    Diagnostic,
    EntryAppended,
    Environment,
    Event,
    ForeignAppended,
    Outcome,
    QueueChanged,
    QueueMode,
    SwapReason,
)
from pi_rpc.core.messages import JsonObject, ToolCall
from pi_rpc.core.pairing import interrupted_calls
from pi_rpc.core.permissions import PermissionPolicy, PermissionRule
from pi_rpc.core.policy import OURS, Policy
from pi_rpc.core.ports import (
    Chance,
    Clock,
    FindRunning,
    Ids,
    Instructions,
    KeptSettings,
    Models,
    NewLine,
    Preferences,
    Resources,
    Shell,
    StoredSession,
    Tool,
    Trust,
    Workspaces,
    Worktrees,
)
from pi_rpc.core.projection import LiveProjection
from pi_rpc.core.retrying import RetryPolicy
from pi_rpc.core.settings import Effective
from pi_rpc.core.stats import SessionCount
from pi_rpc.core.thresholds import CompactionSettings
from pi_rpc.core.tree import DEAD_END_KINDS, Tree
from pi_rpc.core.turns import QueueModes, QueueName, Run
from pi_rpc.core.versions import FilesAt, files_at_opening, verdict
from pi_rpc.session.batches import Batches
from pi_rpc.session.consulting import Consulting
from pi_rpc.session.hub import Hub

FOREIGN_RETRIES_MAX = 8
"""How often an append gives way to another program that keeps writing into the same file."""

FOREIGN_IDS_TOLD_MAX = 1000
"""How many ids of foreign entries one event names."""

ENDING_ACTS = frozenset(("close", *get_args(SwapReason)))
"""Moves that end a runtime, or may."""


class Foreseen:
    """Chance that leaves nothing open: always 0."""

    def fraction(self) -> float:
        """0."""
        return 0.0


class Surroundings(msgspec.Struct, frozen=True):
    """What a runtime is given to work with."""

    clock: Clock
    ids: Ids
    models: Models
    tools: dict[str, Tool]
    spill_root: Path
    """Where output too long to show is kept, a folder for each session."""
    left_behind: anyio.abc.TaskGroup
    """Where tools run, so that one which withstands being stopped holds up nobody."""
    shell: Shell
    grace_s: float = 5.0
    """How long a stopped tool may take to end before it is abandoned."""
    sync_each_entry: bool = True
    """Whether an entry is synced before it is told; else at turn ends and moves only."""
    policy: Policy = OURS
    compaction: CompactionSettings = CompactionSettings()
    """What a session starts with; each may be told otherwise."""
    retry: RetryPolicy = RetryPolicy()
    queue_modes: QueueModes = QueueModes()
    chance: Chance = Foreseen()
    consulting: Consulting = msgspec.field(default_factory=Consulting)
    """What clients offered to do, and what they are asked."""
    permissions: PermissionPolicy = PermissionPolicy()
    preferences: Preferences | None = None
    """Settings and trust in files; None where there are none."""
    instructions: Instructions | None = None
    """Context files, skills and templates; None where there are none."""
    workspaces: Workspaces | None = None
    """States of folders; None where nobody asks for them."""
    find_running: FindRunning | None = None
    """Finds what commands left running; None where nobody looks."""
    worktrees: Worktrees | None = None
    """Work trees for forks; None where none are made."""
    batches: Batches = msgspec.field(default_factory=Batches)
    diagnostics: list[Diagnostic] = []
    """What was odd when the daemon was put together."""
    require_acknowledge: bool = False
    """Whether no prompt is taken after a drift before somebody took note of it."""
    tells_drift: bool = False
    """Whether the model is told when it goes on with files that did not go back with it."""


class Queued(msgspec.Struct, frozen=True):
    """Words that wait for the model."""

    id: str
    text: str
    message: JsonObject

    def as_object(self) -> JsonObject:
        """As it is told."""
        return {"id": self.id, "text": self.text}


class LiveRun:
    """A run that was accepted and has not settled."""

    def __init__(
        self, run_id: str, retry: RetryPolicy | None = None, *, makes_room: bool = False
    ) -> None:
        self.run_id = run_id
        self.machine = Run(retry, makes_room=makes_room)
        self.stop = anyio.Event()
        self.pause: anyio.Event | None = None
        """While a retry is waited for; set by whoever wants the wait to end."""
        self.attempt_open = False
        self.retry = 0
        """The number of the retry that was told of and has not ended; 0 for none."""
        self.settled = anyio.Event()
        self.outcome: Outcome | None = None


class LiveShell:
    """A command the user runs that has not ended."""

    def __init__(self) -> None:
        self.stop = anyio.Event()
        self.ended = anyio.Event()


class LivePass:
    """A summary somebody asked for, while no run is live."""

    def __init__(self) -> None:
        self.stop = anyio.Event()
        self.ended = anyio.Event()


class Session:
    """The one live machinery of a session."""

    def __init__(
        self, stored: StoredSession, cwd: Path, runtime_id: str, around: Surroundings
    ) -> None:
        self.stored = stored
        self.cwd = cwd
        self.around = around
        self.tree = Tree(stored.heads, stored.line)
        self.leaf_row = self.tree.stored_leaf()
        self.projection = LiveProjection(self.tree, self.leaf_row, around.policy)
        self.hub = Hub(stored.header.session_id, runtime_id)
        self.files: FilesAt = files_at_opening(self.tree, self.leaf_row)
        self.workspace = None if around.workspaces is None else around.workspaces.of(cwd)
        self.bindings = Bindings(self.tree)
        self.abandoned: dict[str, JsonObject] = {}
        """By entry id, calls on routes that were left and may have marked the world."""
        self.checked: Environment | None = None
        """What was found when somebody last looked how the files stand to the leaf."""
        self.has_no_versions = False
        """Whether there is too much in the folder for its states to be named, as was found out."""
        self.has_drifted = False
        """Whether a move was not followed by the world and nobody took note of it yet."""
        self.is_drift_untold = False
        """Whether the model was not told of a drift yet."""
        self.diagnostics = list(stored.diagnostics)
        self.model = self._restored_model()
        self.thinking_level = self.projection.thinking_level
        self.run: LiveRun | None = None
        self.last_run: LiveRun | None = None
        self.steering: list[Queued] = []
        self.follow_up: list[Queued] = []
        self.shells: dict[str, LiveShell] = {}
        """Commands the user runs that have not ended."""
        self.unwritten: list[JsonObject] = []
        """Results of such commands that wait for the run or move to be over."""
        self.script: JsonObject | None = None
        self.script_position = 0
        self.active_tools: list[str] = list(around.tools)
        self.permissions = around.permissions
        self.own_settings: JsonObject = {}
        """What was set for this session alone."""
        self.kept = KeptSettings([], Trust(False, "nobody"), [])
        self.effective: Effective | None = None
        self.resources = Resources()
        self.noticed: list[Diagnostic] = []
        """What was odd about settings and instructions when they were looked at last."""
        self.remembered: list[PermissionRule] = []
        """What the user said "for this session", newest last."""
        self.wording = anyio.Lock()
        """Held while words of the user are looked at; others wait their turn."""
        self.looked_at: list[anyio.Event] = []
        """Stops of prompts that hooks are looking at, and of commands of clients."""
        for _, tool in around.consulting.tools(stored.header.session_id):
            self.activate(tool.declaration.name)
        self.cursor_seq = 0
        self.last_asked_row: int | None = None
        """The leaf the model was asked at last, None before the first request."""
        self.retry = around.retry
        self.queue_modes = around.queue_modes
        self.counted = SessionCount(self.tree)
        self.compaction = around.compaction
        self.is_compacting = False
        self.live_pass: LivePass | None = None
        """A pass outside of runs; one inside is stopped with its run."""
        self.has_words_waiting = False
        """Whether words came during such a pass, which are to start a run after it."""
        self.compaction_held_off_at: int | None = None
        """How big the context was when a compaction did not help; None when the last one did."""
        self._act: str | None = None
        self._environment: tuple[tuple[FilesAt, int], Environment] | None = None
        self._writing = anyio.Lock()
        self._told_seqs = array("Q", [0])
        self._told_rows = array("i", [len(self.tree) - 1])
        """After which events which row was the last that somebody knew of who heard them."""
        self._moved = anyio.Event()
        """Set when the move that is going on is over; replaced by the next."""
        self.closed = False

    def _restored_model(self) -> tuple[str, str] | None:
        recorded = self.projection.model
        if recorded is None:
            return self.around.models.default()
        try:
            self.around.models.provider_of(*recorded)
        except Failure as failure:
            fallback = self.around.models.default()
            instead = "none" if fallback is None else "/".join(fallback)
            self.diagnostics.append(
                Diagnostic(
                    "warning",
                    "model_unavailable",
                    f"{'/'.join(recorded)} cannot be used ({failure.message}); using {instead}",
                )
            )
            return fallback
        return recorded

    @property
    def header(self) -> Header:
        """The file's first line."""
        return self.stored.header

    @property
    def session_id(self) -> str:
        """The durable name."""
        return self.stored.header.session_id

    @property
    def runtime_id(self) -> str:
        """The name of this machinery."""
        return self.hub.runtime_id

    @property
    def leaf_id(self) -> str | None:
        """Where the leaf stands, None before the first entry."""
        return self.tree.id_or_none(self.leaf_row)

    @property
    def spill_folder(self) -> Path:
        """Where output of this session's tools too long to show is kept."""
        return self.around.spill_root / self.session_id

    @property
    def environment(self) -> Environment:
        """How the working directory stands against the leaf."""
        if self.checked is not None:
            return self.checked
        asked = (self.files, self.leaf_row)
        if self._environment is None or self._environment[0] != asked:
            self._environment = (asked, verdict(self.tree, *asked))
        return self._environment[1]

    def activate(self, name: str) -> None:
        """Let the model be told of one more tool from the next run on."""
        if name not in self.active_tools:
            self.active_tools = [*self.active_tools, name]

    def tell(self, event: Event, weight: int = 0) -> None:
        """Publish an event; `weight` is the length of its text in characters."""
        self.hub.publish(event, weight)

    def queue(self, name: QueueName) -> list[Queued]:
        """The words that wait in a queue, first to be delivered first."""
        return self.steering if name == "steering" else self.follow_up

    def queue_mode(self, name: QueueName) -> QueueMode:
        """How many of them go with one request."""
        modes = self.queue_modes
        return modes.steering if name == "steering" else modes.follow_up

    def tell_queues(self) -> None:
        """Publish both queues, whole."""
        self.tell(
            QueueChanged(
                [item.as_object() for item in self.steering],
                [item.as_object() for item in self.follow_up],
                self.queue_modes.steering,
                self.queue_modes.follow_up,
            )
        )

    @property
    def is_moving(self) -> bool:
        """Whether a move is going on."""
        return self._act is not None

    @property
    def is_ending(self) -> bool:
        """Whether a move is going on after which this runtime may be over."""
        return self._act in ENDING_ACTS

    @property
    def interrupted(self) -> list[ToolCall]:
        """Calls of the newest reply that no result answers, while no run is live."""
        if self.run is not None or not self.stored.writable:
            return []
        return interrupted_calls(self.projection.messages("session"))

    @contextmanager
    def acting(self, act: str) -> Iterator[None]:
        """Hold the session for a move. Raises Busy naming the act or run that holds it."""
        self.refuse_unless_quiet()
        with self.moving(act):
            yield

    @contextmanager
    def moving(self, act: str) -> Iterator[None]:
        """Hold the session for a move that itself deals with a live run."""
        self.refuse_if_moving()
        self._act, self._moved = act, anyio.Event()
        try:
            yield
        finally:
            self._act = None
            self._moved.set()

    async def wait_until_unmoved(self) -> None:
        """Return when no move is going on."""
        while self._act is not None:
            await self._moved.wait()

    async def wait_until_written(self) -> None:
        """Return when every record that had begun is stored and told."""
        async with self._writing:
            pass

    @contextmanager
    def summarising(self) -> Iterator[LivePass]:
        """A summary is asked for within a move: it can be stopped, and words may wait for it."""
        self.live_pass = LivePass()
        try:
            yield self.live_pass
        finally:
            self.live_pass.ended.set()
            self.live_pass = None

    def refuse_if_moving(self) -> None:
        """Raise Busy when a move is going on, Stopped when this runtime is over."""
        if self.closed:
            raise Stopped("runtime_over", "this runtime is over", runtimeId=self.runtime_id)
        if self._act is not None:
            raise Busy("move_in_progress", f"the session is busy: {self._act}", act=self._act)

    def refuse_unless_quiet(self) -> None:
        """Raise Busy when a run or a move is going on."""
        self.refuse_if_moving()
        if self.run is not None:
            raise Busy("run_in_progress", "a run is going on", runId=self.run.run_id)

    def refuse_unless_leaf(self, expected: str | None) -> None:
        """Raise Conflict when the leaf is not where the caller thinks it is."""
        if expected != self.leaf_id:
            raise Conflict(
                "leaf_conflict", "the leaf has moved", expected=expected, actual=self.leaf_id
            )

    def refuse_unless_writable(self) -> None:
        """Raise Locked when this session was opened to read only."""
        if not self.stored.writable:
            raise Locked("read_only", "the session is open to read only")

    async def record(
        self, *bodies: Body, below: int | None = None, durable: bool = False
    ) -> list[Entry]:
        """Append entries at the leaf, or below a given row, and tell of them.

        The leaf goes to the last of them; a mark that is a dead end leaves it on the row above.
        `durable`: synced before it is told, whatever the settings say. The caller goes on without a
        wait after the last is told, so what it then tells belongs to the same act. Raises Locked,
        Outside or Damaged as the store does; then those entries hold that are whole in the file,
        often none.
        """
        self.refuse_unless_writable()
        # An append that has begun is carried to its end: a cancelled caller must not leave lines on
        # the disk that nobody was told of.
        recorded: list[Entry] = []
        with anyio.CancelScope(shield=True):
            recorded += await self._record(bodies, below, durable)
        return recorded

    async def _record(
        self, bodies: Sequence[Body], below: int | None, durable: bool
    ) -> list[Entry]:
        async with self._writing:
            parent = self.leaf_row if below is None else below
            entries, failure = await self._append(bodies, parent, durable)
            before = self.leaf_row
            told: list[tuple[int, EntryAppended]] = []
            for entry in entries:
                self._advance(entry, moved=below is not None)
                parent_id = entry.object["parentId"]
                event = EntryAppended(entry.id, entry.type, parent_id, self.leaf_id)
                told.append((entry.row, event))
            if self.leaf_row != before:
                self.cursor_seq += 1
            for row, event in told:
                self._tell_of(row, event)
            if failure is not None:
                raise failure
            return entries

    async def _append(
        self, bodies: Sequence[Body], parent: int, durable: bool
    ) -> tuple[list[Entry], Failure | None]:
        """The entries that are in the file now, and what kept it from being all of them."""
        durable = durable or self.around.sync_each_entry
        for _ in range(FOREIGN_RETRIES_MAX):
            self._take_in(await self.stored.refresh())
            lines, objects = self._composed(bodies, parent)
            first = len(self.tree)
            failure: Failure | None = None
            try:
                await self.stored.append(lines, durable)
            except Conflict:
                continue
            except Failure as met:
                failure = met
            rows = range(first, len(self.tree))
            return [
                self.tree.learn(row, stored) for row, stored in zip(rows, objects, strict=False)
            ], failure
        raise Conflict("foreign_append", "another program keeps writing into this session's file")

    def _composed(
        self, bodies: Sequence[Body], parent: int
    ) -> tuple[list[NewLine], list[JsonObject]]:
        now = iso_from_ms(self.around.clock.now_ms())
        lines: list[NewLine] = []
        objects: list[JsonObject] = []
        used: set[str] = set()
        next_row = len(self.tree)
        parent_id = self.tree.id_or_none(parent)
        for body in bodies:
            entry_id = self._fresh_id(used)
            stored = entry_object(body, entry_id, parent_id, now)
            lines.append(NewLine(encode(stored), entry_id, parent, body.kind))
            objects.append(stored)
            if body.kind not in DEAD_END_KINDS:
                parent, parent_id = next_row, entry_id
            next_row += 1
        return lines, objects

    def _fresh_id(self, used: set[str]) -> str:
        entry_id = self.around.ids.entry_id()
        while entry_id in used or self.tree.heads.row_of(entry_id) is not None:
            entry_id = self.around.ids.entry_id()
        used.add(entry_id)
        return entry_id

    def _advance(self, entry: Entry, moved: bool) -> None:
        row = self.tree.parent(entry.row) if entry.kind in DEAD_END_KINDS else entry.row
        if moved or entry.kind in DEAD_END_KINDS:
            self.leaf_row = row
            self.projection.rebase(row)
        else:
            self.leaf_row = row
            self.projection.extend(row)

    def _take_in(self, rows: range) -> None:
        if not rows:
            return
        ids = [self.tree.heads.id_of(row) for row in rows[:FOREIGN_IDS_TOLD_MAX]]
        self._tell_of(rows[-1], ForeignAppended(ids, len(rows)))

    def _tell_of(self, row: int, event: Event) -> None:
        self.tell(event)
        self._told_seqs.append(self.hub.seq)
        self._told_rows.append(row)

    def last_told(self, seq: int) -> int | None:
        """The last row that somebody knows who heard events up to a number, -1 for none.

        None for a number that was never told.
        """
        if not 0 <= seq <= self.hub.seq:
            return None
        return self._told_rows[bisect_right(self._told_seqs, seq) - 1]

    async def follow_file(self) -> range:
        """Look for what another program appended and tell of it; a reader's leaf goes along."""
        async with self._writing:
            rows = await self.stored.refresh()
            if rows and not self.stored.writable:
                self.leaf_row = self.tree.stored_leaf()
                self.projection.rebase(self.leaf_row)
            self._take_in(rows)
            return rows

    async def sync(self) -> None:
        """Everything told so far survives a loss of power when this returns."""
        if self.stored.writable:
            await self.stored.sync()

    def run_named(self, run_id: str | None) -> LiveRun | None:
        """The live run, if it is the one meant.

        Raises Conflict `run_conflict` when it is another.
        """
        if run_id is not None and (self.run is None or self.run.run_id != run_id):
            actual = self.run.run_id if self.run is not None else None
            if self.last_run is not None and self.last_run.run_id == run_id:
                return None
            raise Conflict("run_conflict", "another run is live", expected=run_id, actual=actual)
        return self.run


def iso_from_ms(at_ms: int) -> str:
    """A time as the format writes it: ISO 8601, UTC, milliseconds, `Z`."""
    moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def failure_object(failure: Failure) -> JsonObject:
    """A failure as history and events carry it."""
    return {"kind": failure.kind, "reason": failure.reason, "message": failure.message} | (
        failure.data
    )
