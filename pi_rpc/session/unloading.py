"""The memory of sessions nobody needs: given back, and there again before anybody sees it.

A session that is unloaded stays open: its id, its runtime, its lease, the numbers of its events,
those who hear them, and what was chosen for it. Only what can be read again is let go.

Promises
- Nothing is told, and nothing a client can ask for is another than before.
- A session where anything goes on, waits or is asked for is left alone.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

import anyio

from pi_rpc.core.errors import Failure
from pi_rpc.core.idleness import Resting, UnloadRules, to_unload
from pi_rpc.core.ports.clock import Clock
from pi_rpc.session.reading import LiveSessions
from pi_rpc.session.session import Session


class Unloading:
    """Watches who needs which session."""

    def __init__(
        self,
        live: LiveSessions,
        clock: Clock,
        rules: UnloadRules,
        trim: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._live = live
        self._clock = clock
        self._rules = rules
        self._trim = trim
        self._needed_ms: dict[str, int] = {}
        """By runtime, when it was needed last as far as was seen."""
        self._unloaded: set[str] = set()
        """The ids of sessions that may have to be loaded first."""

    @property
    def is_anything_unloaded(self) -> bool:
        """Whether a request may have to wait for a session to be loaded."""
        return bool(self._unloaded)

    def is_unloaded(self, session_id: str) -> bool:
        """Whether a live session has to be loaded before it is of use."""
        session = self._live.find(session_id) if session_id in self._unloaded else None
        return session is not None and not session.is_loaded

    async def load(self, session_ids: Iterable[str]) -> None:
        """Have these sessions in memory.

        One that is not to be had is left as it is: whoever needs its history meets the failure, and
        whoever closes it does not.
        """
        for session_id in session_ids:
            session = self._live.find(session_id) if session_id in self._unloaded else None
            if session is None:
                continue
            try:
                await session.load()
            except Failure:
                continue
            self._unloaded.discard(session_id)

    @contextmanager
    def holding(self, session_ids: Iterable[str]) -> Iterator[None]:
        """These sessions are needed while a request is answered."""
        held = [one for name in session_ids if (one := self._live.find(name)) is not None]
        for session in held:
            session.holds += 1
        try:
            yield
        finally:
            for session in held:
                session.holds -= 1
                session.is_needed = True

    async def watch(self) -> None:
        """Look from time to time, for ever."""
        while self._rules.idle_ms:
            await anyio.sleep(self._rules.look_every_ms / 1000)
            await self.look()

    async def look(self) -> None:
        """Unload whoever may go now."""
        now_ms = self._clock.now_ms()
        loaded = [session for session in self._live.sessions if session.is_loaded]
        resting = [self._seen(session, now_ms) for session in loaded]
        going = set(to_unload(resting, now_ms, self._rules))
        gone = False
        for session in loaded:
            if session.session_id in going:
                await session.stored.prepare_to_unload()
                # Somebody may have come meanwhile.
                if is_quiet(session) and not session.is_needed and session.unload():
                    gone = True
                    self._unloaded.add(session.session_id)
        if gone and self._trim is not None:
            await self._trim()
        live = self._live.sessions
        self._unloaded = {one.session_id for one in live if not one.is_loaded}
        runtimes = {one.runtime_id for one in live}
        self._needed_ms = {one: at for one, at in self._needed_ms.items() if one in runtimes}

    def _seen(self, session: Session, now_ms: int) -> Resting:
        quiet = is_quiet(session)
        if session.is_needed or not quiet:
            session.is_needed = False
            self._needed_ms[session.runtime_id] = now_ms
        needed_ms = self._needed_ms.setdefault(session.runtime_id, now_ms)
        return Resting(session.session_id, needed_ms, quiet)


def is_quiet(session: Session) -> bool:
    """Whether a session may give up its history: nothing goes on or waits, and a file has it.

    What another process writes into is shown as it grows to whoever hears it, so that one stays.
    """
    goes_on = session.run or session.is_moving or session.is_writing or session.shells
    summarises = session.live_pass or session.is_compacting
    waits = session.queues.steering or session.queues.follow_up or session.unwritten
    speaks = session.looked_at or session.wording.locked() or session.holds
    follows = not session.stored.writable and session.hub.listeners
    asks = session.around.consulting.is_asked_for(session.session_id)
    stays = session.closed or session.stored.path is None
    return not (stays or goes_on or summarises or waits or speaks or follows or asks)
