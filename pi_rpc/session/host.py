"""All live sessions: made, opened, copied, replaced and closed.

Promises
- A session has at most one runtime here, and through its lease at most one in the world.
- When an act that replaces a runtime fails, the old runtime is live as before.
- Start events come once a runtime; nothing of an old runtime comes after the notice of its end.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import anyio
import anyio.abc

from pi_rpc.core.branching import CopyPlan
from pi_rpc.core.errors import Failure, Missing, Refused
from pi_rpc.core.events import RuntimeReplaced, SessionClosed, SwapReason
from pi_rpc.core.hooks import BeforeReplace, SessionClosing
from pi_rpc.core.meter import Meter
from pi_rpc.core.ports.store import Store
from pi_rpc.session.building import Builder, Copied, Copying, Opening, plan_of
from pi_rpc.session.folders import folder, folder_of
from pi_rpc.session.hooking import ask_before, tell_closing
from pi_rpc.session.lifetime import begin, settle
from pi_rpc.session.prompting import clear_queues, interrupt_summary
from pi_rpc.session.reading import Reader, View
from pi_rpc.session.session import Session
from pi_rpc.session.surroundings import Surroundings
from pi_rpc.session.unloading import Unloading
from pi_rpc.session.versioning import check_opened, tell_drift
from pi_rpc.session.worktrees import require_place

log = logging.getLogger(__name__)

Build = Callable[[], Awaitable[Session]]
"""Makes the runtime that takes over, once the old run is settled."""

LIVE_SESSIONS_MAX = 1000
"""How many sessions may be live at once; each costs a lease, an open file and its tree."""


class Host:
    """Every live session of this daemon."""

    def __init__(
        self,
        store: Store,
        around: Surroundings,
        tasks: anyio.abc.TaskGroup,
        version: str,
        live_sessions_max: int = LIVE_SESSIONS_MAX,
    ) -> None:
        self.store = store
        self.around = around
        self.tasks = tasks
        self.version = version
        self._live_sessions_max = live_sessions_max
        self._builder = Builder(store, around)
        self.reader = Reader(store, self)
        self.unloading = Unloading(self, around.clock, around.unloading, around.trim)
        self._live: dict[str, Session] = {}
        # One at a time takes or gives up a lease, so that no two of ours meet at one file, however
        # it is named.
        self._leasing = anyio.Lock()

    @property
    def sessions(self) -> list[Session]:
        """The live sessions, oldest runtime first."""
        return list(self._live.values())

    def find(self, session_id: str) -> Session | None:
        """The live session of this id."""
        found = self._live.get(session_id)
        if found is not None:
            found.is_needed = True
        return found

    def session(self, session_id: str) -> Session:
        """The live session of this id. Raises Missing `session_not_open`."""
        found = self.find(session_id)
        if found is None:
            raise Missing(
                "session_not_open",
                "no such session is open: open it with session/open first",
                sessionId=session_id,
            )
        return found

    async def new(self, opening: Opening) -> Session:
        """Make a session and its runtime; stored at once, for an empty session is a session.

        Raises Missing `cwd_missing`, Invalid `bad_session_id`, Refused `session_exists`.
        """
        # What has begun is carried to its end: no file is left that nobody was told of.
        with anyio.CancelScope(shield=True):
            session = await self._build_new(opening)
        return self._announce(session, "new")

    async def _build_new(self, opening: Opening) -> Session:
        self._refuse_when_full()
        return await self._builder.new(opening)

    async def open(
        self,
        which: str | Path,
        mode: Literal["own", "read"] = "own",
        cwd: str | None = None,
        meter: Meter | None = None,
    ) -> Session:
        """The runtime of a stored session: the live one, or a new one that takes the lease.

        Raises Missing `session_not_found` or `cwd_missing` (with choices), Locked with the owner,
        Invalid `not_a_session`.
        """
        session = await self._open_now(which, mode, cwd, meter)
        while session.is_ending:
            # What may be over in a moment is not what was asked for.
            await session.wait_until_unmoved()
            session = await self._open_now(which, mode, cwd, meter)
        return session

    async def _open_now(
        self, which: str | Path, mode: Literal["own", "read"], cwd: str | None, meter: Meter | None
    ) -> Session:
        live = self.reader.live_of(which)
        if live is not None and (live.stored.writable or mode == "read"):
            await live.load()
            return live
        async with self._leasing:
            live = self.reader.live_of(which) or await self._live_by_beginning(which, cwd)
            if live is not None and (live.stored.writable or mode == "read"):
                await live.load()
                return live
            # Whoever only looked on gives way to whoever wants to write, once that is possible.
            session = await self._build_opened(which, mode, cwd, live, meter)
            self._announce(session, "open")
        # The look at the files may take a moment; other sessions are opened meanwhile.
        await check_opened(session)
        return session

    async def _live_by_beginning(self, which: str | Path, cwd: str | None) -> Session | None:
        if not any(session.session_id.startswith(str(which)) for session in self.sessions):
            return None
        # Whether the beginning of an id means one session only the store can say.
        stored = await self.store.open(which, "read", cwd)
        await stored.close()
        return self.find(stored.header.session_id)

    async def _build_opened(
        self,
        which: str | Path,
        mode: Literal["own", "read"],
        cwd: str | None,
        giving_way: Session | None = None,
        meter: Meter | None = None,
    ) -> Session:
        self._refuse_when_full()
        stored = await self.store.open(which, mode, cwd, meter)
        try:
            where = folder_of(stored, mode, cwd)
            live = self._live.get(stored.header.session_id)
            if live is not None and live is not giving_way:
                raise Refused(
                    "session_open_elsewhere",
                    "a session of this id is open from another file",
                    sessionId=live.session_id,
                    path=str(live.stored.path),
                )
            if giving_way is not None:
                with giving_way.moving("close"):
                    await tell_closing(giving_way, SessionClosing(reason="reopened"))
                    await self._end(giving_way, "reopened")
            return await self._builder.runtime(stored, where)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await stored.close()
            raise

    async def copy(self, source: Session, copying: Copying) -> Copied:
        """A new session from a path of this one.

        Raises Missing, Refused and Busy; then nothing was made.
        """
        await interrupt_summary(source)
        source.refuse_if_moving()
        plan = plan_of(source, copying)
        await require_place(source, copying.place)
        if not copying.activate:
            await ask_before(source, copying.foretold(source))
            with source.moving(copying.reason), anyio.CancelScope(shield=True):
                session = await self._build_copy(source, plan, copying)
            self._announce(session, copying.reason, source.session_id)
            tell_drift(session)
            return Copied(session, plan.draft)

        leaf_row = source.leaf_row

        async def build() -> Session:
            # The run that was settled may have moved the leaf the plan was made for.
            settled = plan if source.leaf_row == leaf_row else plan_of(source, copying)
            return await self._build_copy(source, settled, copying)

        session = await self.replace(
            source,
            build,
            copying.reason,
            settles_first=True,
            told=copying.foretold(source),
        )
        tell_drift(session)
        return Copied(session, plan.draft)

    async def _build_copy(self, source: Session, plan: CopyPlan, copying: Copying) -> Session:
        self._refuse_when_full()
        return await self._builder.copy(source, plan, copying)

    async def replace(
        self,
        old: Session,
        build: Build,
        reason: SwapReason,
        *,
        settles_first: bool,
        told: BeforeReplace | None = None,
    ) -> Session:
        """Swap a runtime: settle the old run, build the new, commit, close the old, tell.

        When building fails the old runtime is live as before and the failure says `recovered`.
        With `settles_first` the new one is made of what the old run leaves behind; otherwise it is
        built before, so that a target which cannot be had stops no run.
        """
        await interrupt_summary(old)
        old.refuse_if_moving()
        await ask_before(old, told or BeforeReplace(reason=reason))
        # Nothing of this may be left half done, so a caller that goes away does not stop it.
        with old.moving(reason), anyio.CancelScope(shield=True):
            if settles_first:
                await settle(old)
            try:
                new = await build()
            except Failure as failure:
                failure.data.setdefault("recovered", True)
                raise
            await settle(old)
            await tell_closing(old, SessionClosing(reason=reason, next_session_id=new.session_id))
            await self._hand_over(old, new, reason)
        return new

    async def _hand_over(self, old: Session, new: Session, reason: SwapReason) -> None:
        fresh = self._live.get(new.session_id) is not new
        self._live.pop(old.session_id, None)
        self._live[new.session_id] = new
        if new.session_id != old.session_id:
            # Words that wait belong to the session that ends here: they are taken back, told so.
            clear_queues(old)
        old.closed = True
        if new.stored is not old.stored:
            async with self._leasing:
                await old.stored.close()
        old.tell(
            RuntimeReplaced(old.runtime_id, old.session_id, new.runtime_id, new.session_id, reason)
        )
        if fresh:
            parent = old.session_id if reason in ("fork", "clone") else None
            self._announce(new, reason, parent)

    async def switch(self, old: Session, which: str | Path, cwd: str | None) -> Session:
        """Replace a runtime by that of another stored session."""
        live = self.reader.live_of(which)
        if live is old:
            raise Refused("same_session", "this session is already the one that is open")

        with ExitStack() as held:

            async def build() -> Session:
                async with self._leasing:
                    found = self.reader.live_of(which) or await self._live_by_beginning(which, cwd)
                    if found is None:
                        return await self._build_opened(which, "own", cwd)
                    # Whoever takes the place of another must not go away meanwhile.
                    held.enter_context(found.moving("switch"))
                    await found.load()
                    return found

            session = await self.replace(old, build, "switch", settles_first=False)
        await check_opened(session)
        return session

    async def new_replacing(self, old: Session, opening: Opening) -> Session:
        """Replace a runtime by that of a new session."""

        async def build() -> Session:
            return await self._build_new(opening)

        return await self.replace(old, build, "new", settles_first=False)

    async def import_file(self, path: Path, cwd: str | None, replaced: Session | None) -> Session:
        """Bring a session file from anywhere into the store and open it.

        Raises Missing `file_not_found` or `cwd_missing`, Invalid `not_a_session`, Refused
        `session_open` for a file whose session is open here; then nothing stays behind.
        """
        live = self.reader.live_of(path)
        if live is not None:
            raise Refused(
                "session_open",
                "its session is open: session/clone makes another, session/reload opens it anew",
                sessionId=live.session_id,
            )

        async def build() -> Session:
            self._refuse_when_full()
            return await self._builder.imported(path, cwd)

        if replaced is not None:
            session = await self.replace(replaced, build, "import", settles_first=False)
        else:
            with anyio.CancelScope(shield=True):
                session = self._announce(await build(), "import")
        await check_opened(session)
        return session

    async def relocate(self, old: Session, cwd: str | None, reason: SwapReason) -> Session:
        """A fresh runtime of the same session, in another folder if one is given (not stored)."""
        where = folder(cwd) if cwd is not None else old.cwd

        async def build() -> Session:
            return await self._builder.again(old, where)

        session = await self.replace(old, build, reason, settles_first=True)
        await check_opened(session)
        return session

    async def close(self, session: Session, reason: str = "closed") -> None:
        """End a runtime: its run is stopped and stored, its lease given up."""
        if session.closed:
            return
        await interrupt_summary(session)
        with session.moving("close"):
            await settle(session)
            await tell_closing(session, SessionClosing(reason=reason))
            with anyio.CancelScope(shield=True):
                async with self._leasing:
                    await self._end(session, reason)

    async def _end(self, session: Session, reason: str) -> None:
        clear_queues(session)
        session.closed = True
        self._live.pop(session.session_id, None)
        await session.stored.close()
        session.tell(SessionClosed(reason))

    async def delete(self, session_id: str) -> Path | None:
        """Put a session into the trash, its runtime closed first."""
        live = self._live.get(session_id)
        if live is not None and live.stored.writable:
            await self.close(live, "deleted")
        await self.reader.forget(session_id)
        trashed = await self.store.delete(session_id)
        # Whoever only looks on has no say in it: what another owns stays, and so does the look.
        if live is not None and not live.closed:
            await self.close(live, "deleted")
        return trashed

    async def close_all(self) -> None:
        """End every runtime, those with runs first stopped together.

        Failures are logged, not raised.
        """
        ended: set[str] = set()
        # A move that was under way may leave another runtime behind.
        while left := [one for one in self.sessions if one.runtime_id not in ended]:
            ended.update(session.runtime_id for session in left)
            async with anyio.create_task_group() as tasks:
                for session in left:
                    tasks.start_soon(self._close_quietly, session)
        await self.reader.close()

    async def _close_quietly(self, session: Session) -> None:
        with session.asking_nobody():
            await session.wait_until_unmoved()
        try:
            await self.close(session, "shutdown")
        except Failure as failure:
            log.error("session %s did not close: %r", session.session_id, failure)

    async def view(self, which: str | Path) -> View:
        """A session to look at: the live one if it is, else what is stored, without a lease."""
        return await self.reader.view(which)

    def _announce(self, session: Session, reason: str, parent: str | None = None) -> Session:
        self._live[session.session_id] = session
        begin(session, self.tasks, reason, parent)
        return session

    def _refuse_when_full(self) -> None:
        limit = self._live_sessions_max
        if len(self._live) >= limit:
            raise Refused("too_many_sessions", "too many sessions are live", limit=limit)
