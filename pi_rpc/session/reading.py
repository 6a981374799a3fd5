"""Sessions to look at, without a lease: reading is not opening.

A live session is looked at where it lives. Others are read from the store and kept for a while, a
few at a time, and looked at again for what was appended each time they are asked for.
"""

from pathlib import Path
from typing import Protocol

import anyio
import msgspec

from pi_rpc.core.entries import Header
from pi_rpc.core.errors import Failure
from pi_rpc.core.policy import OURS
from pi_rpc.core.ports.store import Store, StoredSession
from pi_rpc.core.projection import LiveProjection
from pi_rpc.core.tree import Tree
from pi_rpc.session.counting import Counting
from pi_rpc.session.folders import real_path
from pi_rpc.session.session import Session

KEPT_VIEWS_MAX = 8
"""How many stored sessions that nobody opened are kept ready for the next question."""


class View(msgspec.Struct, frozen=True):
    """A session as questions see it."""

    tree: Tree
    leaf_row: int
    stored: StoredSession
    live: Session | None
    projection: LiveProjection
    counted: Counting

    @property
    def header(self) -> Header:
        """The file's first line."""
        return self.stored.header


_Kept = tuple[StoredSession, Tree, LiveProjection, Counting]


class LiveSessions(Protocol):
    """Where live sessions are found."""

    @property
    def sessions(self) -> list[Session]:
        """All of them."""
        ...

    def find(self, session_id: str) -> Session | None:
        """The live session of this id."""
        ...


class Reader:
    """Views of sessions, live or stored."""

    def __init__(self, store: Store, live: LiveSessions) -> None:
        self._store = store
        self._live = live
        self._kept: dict[str, _Kept] = {}
        self._reading = anyio.Lock()

    async def view(self, which: str | Path) -> View:
        """Raises Missing `session_not_found`, Invalid `not_a_session`, Outside."""
        live = self.live_of(which)
        if live is not None:
            await live.load()
            if not live.stored.writable:
                await live.follow_file()
            return View(
                live.tree, live.leaf_row, live.stored, live, live.projection, live.history.counted
            )
        async with self._reading:
            key = str(which)
            kept = self._kept.pop(key, None)
            if kept is not None:
                kept = await self._refreshed(kept)
            if kept is None:
                stored = await self._store.open(which, "read")
                tree = Tree(stored.heads, stored.line, stored.block)
                projection = LiveProjection(tree, tree.stored_leaf(), OURS)
                kept = (stored, tree, projection, Counting(tree))
            self._kept[key] = kept
            while len(self._kept) > KEPT_VIEWS_MAX:
                await self._kept.pop(next(iter(self._kept)))[0].close()
        stored, tree, projection, counted = kept
        return View(tree, tree.stored_leaf(), stored, None, projection, counted)

    def live_of(self, which: str | Path) -> Session | None:
        """The live session meant, by id or by path."""
        if isinstance(which, str):
            return self._live.find(which)
        meant = real_path(which)
        for session in self._live.sessions:
            path = session.stored.path
            if meant is not None and path is not None and real_path(path) == meant:
                session.is_needed = True
                return session
        return None

    async def _refreshed(self, kept: _Kept) -> _Kept | None:
        stored, tree, projection, _ = kept
        try:
            rows = await stored.refresh()
        except Failure:
            # The file was replaced or is gone: what it is now must be found out afresh.
            await stored.close()
            return None
        if rows:
            projection.rebase(tree.stored_leaf())
        return kept

    async def forget(self, session_id: str) -> None:
        """Keep nothing of a session that goes away."""
        async with self._reading:
            for key, (stored, *_) in list(self._kept.items()):
                if stored.header.session_id == session_id:
                    del self._kept[key]
                    await stored.close()

    async def close(self) -> None:
        """Let go of every kept file."""
        while self._kept:
            await self._kept.popitem()[1][0].close()
