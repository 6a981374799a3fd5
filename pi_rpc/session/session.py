"""One live session: the runtime that owns a history.

`record` is the only write path: an entry is stored, then it joins the tree, then it is told.
Everything else a session does is a function in a file beside this one.

Promises
- Memory follows disk: after a failed append the tree, the leaf and the context are as before.
- Entries of one `record` stand together in the file and chain below each other.
- One act moves the leaf at a time; the loser is told who holds the session.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import anyio

from pi_rpc.core.bindings import Bindings
from pi_rpc.core.entries import Body, Entry, Header
from pi_rpc.core.errors import Busy, Conflict, Failure, Locked, Stopped
from pi_rpc.core.events import (
    EntryAppended,
    Environment,
    Event,
    ForeignAppended,
    QueueChanged,
    QueueMode,
    SwapReason,
)
from pi_rpc.core.messages import JsonObject, ToolCall
from pi_rpc.core.pairing import interrupted_calls
from pi_rpc.core.ports.store import StoredSession
from pi_rpc.core.projection import LiveProjection
from pi_rpc.core.stamps import stamp_at
from pi_rpc.core.tree import ROOT, Tree
from pi_rpc.core.turns import QueueName
from pi_rpc.core.versions import FilesAt, files_at_opening, verdict
from pi_rpc.session.chosen import Guidance, first_choice
from pi_rpc.session.composing import composed
from pi_rpc.session.history import History
from pi_rpc.session.hub import Hub
from pi_rpc.session.live import LivePass, LiveRun, LiveShell
from pi_rpc.session.queues import Queues
from pi_rpc.session.standing import Standing
from pi_rpc.session.surroundings import Surroundings
from pi_rpc.session.told import Told

FOREIGN_RETRIES_MAX = 8
"""How often an append gives way to another program that keeps writing into the same file."""

FOREIGN_IDS_TOLD_MAX = 1000
"""How many ids of foreign entries one event names."""

ENDING_ACTS = frozenset(("close", *get_args(SwapReason)))
"""Moves that end a runtime, or may."""


class Session:
    """The one live machinery of a session."""

    def __init__(
        self, stored: StoredSession, cwd: Path, runtime_id: str, around: Surroundings
    ) -> None:
        self.stored = stored
        self.cwd = cwd
        self.around = around
        self._history: History | None = History(stored, around.policy)
        self._left_at = ROOT
        """Where the leaf stood when the history was given up."""
        self.is_needed = True
        """Whether anybody asked for this session since somebody looked; they take it back."""
        self.holds = 0
        """How many requests are being answered that need it."""
        self.hub = Hub(stored.header.session_id, runtime_id)
        self.workspace = None if around.workspaces is None else around.workspaces.of(cwd)
        self.standing = Standing(files_at_opening(self.tree, self.leaf_row))
        self.diagnostics = list(stored.diagnostics)
        self.chosen, odd = first_choice(self.session_id, self.projection, around)
        self.diagnostics += odd
        self.guidance = Guidance()
        self.queues = Queues()
        self.run: LiveRun | None = None
        self.last_run: LiveRun | None = None
        self.shells: dict[str, LiveShell] = {}
        """Commands the user runs that have not ended."""
        self.unwritten: list[JsonObject] = []
        """Results of such commands that wait for the run or move to be over."""
        self.wording = anyio.Lock()
        """Held while words of the user are looked at; others wait their turn."""
        self.looked_at: list[anyio.Event] = []
        """Stops of prompts that hooks are looking at, and of commands of clients."""
        self.asks_nobody = False
        self.cursor_seq = 0
        self.last_asked_row: int | None = None
        """The leaf the model was asked at last, None before the first request."""
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
        self._told = Told(len(self.tree) - 1)
        self._moved = anyio.Event()
        """Set when the move that is going on is over; replaced by the next."""
        self.closed = False

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
    def history(self) -> History:
        """Its tree in memory, with all that follows from it.

        Raises what `StoredSession.load` raises, where it was given up and is not to be had again.
        """
        # Whoever foresees it has awaited `load`; any other waits here, on the spot.
        return self._history or self._restored()

    def _restored(self) -> History:
        if self._history is None:
            self._history = History(self.stored, self.around.policy, self._left_at)
        return self._history

    @property
    def tree(self) -> Tree:
        """Who hangs below whom."""
        return self.history.tree

    @property
    def leaf_row(self) -> int:
        """The row of the leaf."""
        return self._left_at if self._history is None else self._history.leaf_row

    @property
    def projection(self) -> LiveProjection:
        """The context at the leaf."""
        return self.history.projection

    @property
    def bindings(self) -> Bindings:
        """Which version of the files belongs to which place."""
        return self.history.bindings

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
        if self.standing.checked is not None:
            return self.standing.checked
        asked = (self.standing.files, self.leaf_row)
        if self._environment is None or self._environment[0] != asked:
            self._environment = (asked, verdict(self.tree, *asked))
        return self._environment[1]

    def tell(self, event: Event, weight: int = 0) -> None:
        """Publish an event; `weight` is the length of its text in characters."""
        self.hub.publish(event, weight)

    def queue_mode(self, name: QueueName) -> QueueMode:
        """How many of them go with one request."""
        modes = self.chosen.queue_modes
        return modes.steering if name == "steering" else modes.follow_up

    def tell_queues(self) -> None:
        """Publish both queues, whole."""
        queues, modes = self.queues, self.chosen.queue_modes
        self.tell(
            QueueChanged(
                [item.as_object() for item in queues.steering],
                [item.as_object() for item in queues.follow_up],
                modes.steering,
                modes.follow_up,
            )
        )

    @property
    def is_loaded(self) -> bool:
        """Whether its history is in memory."""
        return self._history is not None

    def unload(self) -> bool:
        """Give up the history in memory; whether it was done.

        Nothing else changes, and it comes back with whatever needs it.
        """
        if self._history is None or not self.stored.unload():
            return False
        self._left_at, self._history = self._history.leaf_row, None
        return True

    async def load(self) -> None:
        """Have the history in memory, read beside the loop. Raises as `StoredSession.load`."""
        if self._history is None:
            await self.stored.load()
            self._restored()

    @property
    def is_writing(self) -> bool:
        """Whether a record is under way."""
        return self._writing.locked()

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

    @contextmanager
    def asking_nobody(self) -> Iterator[None]:
        """Whatever is asked outside of runs meanwhile ends at once: nobody may hold this up."""
        self.asks_nobody = True
        for stop in self.looked_at:
            stop.set()
        try:
            yield
        finally:
            self.asks_nobody = False

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
                self.history.advance(entry, moved=below is not None)
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
            now = stamp_at(self.around.clock.now_ms())
            lines, objects = composed(self.tree, bodies, parent, self.around.ids, now)
            first = len(self.tree)
            failure: Failure | None = None
            try:
                await self.stored.append(lines, durable)
            except Conflict:
                # Only then is there something to look for: an append looks at the file itself.
                self._take_in(await self.stored.refresh())
                continue
            except Failure as met:
                failure = met
            rows = range(first, len(self.tree))
            return [
                self.tree.learn(row, stored) for row, stored in zip(rows, objects, strict=False)
            ], failure
        raise Conflict("foreign_append", "another program keeps writing into this session's file")

    def _take_in(self, rows: range) -> None:
        if not rows:
            return
        ids = [self.tree.heads.id_of(row) for row in rows[:FOREIGN_IDS_TOLD_MAX]]
        self._tell_of(rows[-1], ForeignAppended(ids, len(rows)))

    def _tell_of(self, row: int, event: Event) -> None:
        self.tell(event)
        self._told.add(self.hub.seq, row)

    def last_told(self, seq: int) -> int | None:
        """The last row that somebody knows who heard events up to a number, -1 for none.

        None for a number that was never told.
        """
        return self._told.row_at(seq) if 0 <= seq <= self.hub.seq else None

    async def follow_file(self) -> range:
        """Look for what another program appended and tell of it; a reader's leaf goes along."""
        async with self._writing:
            rows = await self.stored.refresh()
            if rows and not self.stored.writable:
                self.history.stand_at(self.tree.stored_leaf())
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


def failure_object(failure: Failure) -> JsonObject:
    """A failure as history and events carry it."""
    return {"kind": failure.kind, "reason": failure.reason, "message": failure.message} | (
        failure.data
    )
