"""States of the files named around the calls of a run, and bound to its entries.

Promises
- A binding is never written between a call and its result.
- A snapshot holds up only the calls of its own session, and no stream.
"""

from collections.abc import Sequence

import anyio
import anyio.abc
import msgspec

from pi_rpc.core.bindings import At, binding_body, calls_upward
from pi_rpc.core.errors import Failure
from pi_rpc.core.events import Diagnostic, DiagnosticTold, ScopeVerdict
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.workspace import Snapshot, Workspace
from pi_rpc.core.tree import ROOT
from pi_rpc.core.versions import environment_with, outside_verdict, with_offered
from pi_rpc.session.batches import Batch
from pi_rpc.session.checkpointing import RunCheckpoints
from pi_rpc.session.consulted_tools import all_tools
from pi_rpc.session.session import Session
from pi_rpc.session.standing import Untied
from pi_rpc.session.versioning import record_waiting_effects, snapshot_body

CALLS_WAIT_S = 3.0
"""How long calls wait for the state before them; a first look at a huge folder takes longer."""


TOO_MUCH = frozenset({"too_many_files", "too_many_bytes"})
"""Reasons for which a folder is not looked at again until somebody asks for it."""


class RunVersions:
    """Versions around the calls of one run.

    The state after a batch is named while the model is asked again; the state before the next one
    as soon as the reply is seen to call something. Only a call waits for its state before.
    """

    def __init__(
        self, session: Session, tasks: anyio.abc.TaskGroup, wait_s: float = CALLS_WAIT_S
    ) -> None:
        self._wait_s = wait_s
        self._session = session
        self._tasks = tasks
        self._kept_in = session.workspace
        self._checkpoints = RunCheckpoints(session, tasks)
        self._before: _Taking | None = None
        self._binding: anyio.Event | None = None
        self._batch: Batch | None = None
        self._taken_before: Snapshot | None = None
        self._results_row: int | None = None
        """The last result of a batch whose state after is not being named yet."""

    @property
    def _workspace(self) -> Workspace | None:
        workspace = self._kept_in
        if workspace is None or workspace.kind == "none":
            return None
        return workspace

    @property
    def are_kept(self) -> bool:
        """Whether states of this session's files have names at all."""
        return self._workspace is not None

    def begin(self) -> None:
        """A run begins: what a first version takes long for can be done meanwhile."""
        if self._workspace is not None and any(map(self._marks, self._session.chosen.active_tools)):
            self._workspace.warm()

    def _marks(self, name: str) -> bool:
        tool = all_tools(self._session).get(name)
        return tool is not None and tool.effect != "none"

    def expect(self, name: str) -> None:
        """The reply that streams calls this tool."""
        if self._marks(name):
            self._checkpoints.expect()
            self._expect()

    def _expect(self) -> None:
        if self._workspace is None or self._before is not None:
            return
        # The batch before must be over: its state after is not this one's state before.
        if self._results_row is not None or not self._is_bound:
            return
        session = self._session
        self._batch = session.around.batches.begin(session.cwd, session.session_id)
        self._before = _Taking(self._session, self._workspace, self._tasks)

    @property
    def _is_bound(self) -> bool:
        return self._binding is None or self._binding.is_set()

    async def before_reply(self, names: Sequence[str]) -> None:
        """Bind what is to be bound before a reply that calls these tools is recorded."""
        await self.settle()
        await record_waiting_effects(self._session)
        for name in names:
            self.expect(name)
        await self._take_before(binds=True)
        await self._checkpoints.before(binds=True)

    async def before_command(self, *, binds: bool) -> None:
        """Name the state before a command of the user; `binds`: nothing keeps it from the leaf."""
        self._checkpoints.expect()
        self._expect()
        await self._take_before(binds=binds)
        await self._checkpoints.before(binds=binds)

    async def _take_before(self, *, binds: bool) -> None:
        if self._before is None:
            return
        standing, row = self._session.standing, self._session.leaf_row
        taken = self._taken_before = await self._before.result(self._wait_s)
        self._before = None
        if binds:
            await bind_before_commands(self._session)
        elif taken is not None and standing.before_commands is None:
            standing.before_commands = row, taken
        if taken is None or not binds:
            return
        session, leaf_row = self._session, self._session.leaf_row
        bound = session.bindings.of_leaf(leaf_row)
        described = session.bindings.unbound_top(leaf_row) if bound is None else leaf_row
        if bound is not None and bound.version == taken.version:
            if session.tree.has_ancestor(leaf_row, bound.row):
                return
            # Named on another route: named here again, a copy of this path has it too.
            described = bound.described
        at: At = "start" if bound is None else "before_tools"
        await session.record(snapshot_body(session, at, described, taken))

    def call_ended(self, name: str, arguments: JsonObject) -> None:
        """A call that may have marked the world is over."""
        self._checkpoints.call_ended()
        if self._batch is not None:
            self._batch.claim(name, arguments)

    def results_recorded(self, marked: bool) -> None:
        """The results of a batch are recorded at the leaf."""
        if self._batch is None:
            return
        if marked and self._taken_before is not None:
            self._results_row = self._session.leaf_row
        else:
            # Without a state before nobody can tell what was changed, so the leaf stays unbound.
            self._end_batch()

    def name_state_after(self) -> None:
        """Begin to name the state after the last batch, beside whatever comes next."""
        if self._results_row is None or self._workspace is None or self._batch is None:
            return
        row, self._results_row = self._results_row, None
        self._binding = anyio.Event()
        self._tasks.start_soon(self._bind_after, self._workspace, self._batch, row)

    async def _bind_after(self, workspace: Workspace, batch: Batch, result_row: int) -> None:
        assert self._binding is not None, "it was begun"
        session = self._session
        assert self._taken_before is not None, "without a state before nothing is bound"
        before = self._taken_before.version
        try:
            taken = await workspace.snapshot()
            changes = batch.own(await workspace.compare(before, taken.version))
            body = binding_body(
                "after_tools",
                session.tree.heads.id_of(result_row),
                workspace.kind,
                taken.version,
                [msgspec.to_builtins(one) for one in taken.left_out],
                before=before,
                changes=[(one.path, one.before, one.after) for one in changes],
                folder=str(session.cwd),
            )
            await session.record(body)
            note_equal(session, taken)
        except Failure as failure:
            tell_failed(session, failure)
        finally:
            self._end_batch()
            self._binding.set()

    async def keep_for_later(self) -> None:
        """A command of the user is over before its result can be written: note what it did."""
        try:
            if self._batch is None or self._workspace is None or self._taken_before is None:
                return
            taken = await self._workspace.snapshot()
            compared = await self._workspace.compare(self._taken_before.version, taken.version)
            changes = self._batch.own(compared)
            untied = Untied(self._taken_before.version, taken.version, changes)
            self._session.standing.untied.append(untied)
        except Failure as failure:
            tell_failed(self._session, failure)
        finally:
            self._end_batch()

    def _end_batch(self) -> None:
        if self._batch is not None:
            self._session.around.batches.end(self._batch)
            self._batch = None

    async def settle(self) -> None:
        """Return once everything that was begun is bound."""
        self.name_state_after()
        if self._binding is not None:
            await self._binding.wait()

    async def end(self) -> None:
        """The run is over: bind what is left to bind."""
        await self.settle()
        await record_waiting_effects(self._session)
        self._end_batch()
        offered = await self._checkpoints.end()
        checked = self._session.standing.checked
        if checked is not None:
            self._session.standing.checked = with_offered(checked, offered)


async def bind_before_commands(session: Session) -> None:
    """Bind the state commands of the user began with, where no other is bound and no call came."""
    held, session.standing.before_commands = session.standing.before_commands, None
    if held is None or session.bindings.of_leaf(session.leaf_row) is not None:
        return
    row, before = held
    if not _has_called_since(session, row):
        described = session.bindings.unbound_top(session.leaf_row)
        await session.record(snapshot_body(session, "start", described, before))


def _has_called_since(session: Session, start: int) -> bool:
    for row, tools in calls_upward(session.tree, session.leaf_row):
        if row == start:
            return False
        if tools:
            return True
    return start != ROOT


def note_equal(session: Session, taken: Snapshot) -> None:
    """The files were just found to be as the leaf has them."""
    outside, effects = outside_verdict(
        session.tree, session.bindings, session.leaf_row, session.standing.abandoned
    )
    same = ScopeVerdict("restored", "equal", taken.version, taken.version)
    session.standing.checked = environment_with(same, outside, effects)


def tell_failed(session: Session, failure: Failure) -> None:
    """Say that a state could not be named, which stops nothing."""
    if failure.reason not in TOO_MUCH:
        _tell_unbound(session, failure.message)
    elif not session.standing.is_too_much_told:
        # The folder is not looked at again for every batch, and nobody wants to hear it as often.
        session.standing.is_too_much_told = True
        _tell_unbound(session, f"{failure.message}; workspace/snapshot looks again")


def _tell_unbound(session: Session, why: str) -> None:
    # Calls go on without: the leaf stays unbound, and every verdict finds out why.
    text = f"the state of the files could not be named: {why}"
    session.tell(DiagnosticTold(Diagnostic("warning", "versions_unavailable", text)))


class _Taking:
    """A snapshot that is being taken."""

    def __init__(self, session: Session, workspace: Workspace, tasks: anyio.abc.TaskGroup) -> None:
        self._session = session
        self._workspace = workspace
        self._done = anyio.Event()
        self._taken: Snapshot | None = None
        tasks.start_soon(self._take)

    async def _take(self) -> None:
        try:
            self._taken = await self._workspace.snapshot()
        except Failure as failure:
            tell_failed(self._session, failure)
        finally:
            self._done.set()

    async def result(self, wait_s: float) -> Snapshot | None:
        """The snapshot; None when there is none, or none within the time."""
        with anyio.move_on_after(wait_s) as waiting:
            await self._done.wait()
        if waiting.cancelled_caught:
            _tell_unbound(self._session, f"it takes longer than {wait_s:g} s")
        return self._taken
