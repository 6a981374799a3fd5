"""A stored session looked through, row by row, without holding up anybody; and its repair."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec
from anyio import to_thread

from pi_rpc.core.checking import MENDED_BY_REPAIR, Checker
from pi_rpc.core.errors import Refused
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.ports.store import Repaired, StoredSession
from pi_rpc.core.tree import Tree
from pi_rpc.session.host import Host

ROWS_AT_ONCE = 500
"""Rows looked at between two moments in which others may go on."""


class Checked(msgspec.Struct, frozen=True):
    """What a check has found."""

    session_id: str
    path: Path | None
    entries: int
    size_bytes: int
    problems: list[Diagnostic]

    @property
    def mended_by_repair(self) -> bool:
        """Whether a repair would mend anything."""
        return any(each.reason in MENDED_BY_REPAIR for each in self.problems)


@asynccontextmanager
async def looked_into(
    host: Host, which: str | Path
) -> AsyncGenerator[tuple[StoredSession, int], None]:
    """A session to read from end to end, beside whoever has it open, and the row of its leaf.

    Raises what opening to read raises.
    """
    live = host.reader.live_of(which)
    if live is not None and live.stored.path is None:
        # It has no file; its lines are in memory as long as it lives.
        yield live.stored, live.leaf_row
        return
    place = which if live is None or live.stored.path is None else live.stored.path
    # A reading of its own: one that is kept for others may be closed while this goes on.
    stored = await host.store.open(place, "read")
    try:
        leaf_row = Tree(stored.heads, stored.line).stored_leaf() if live is None else live.leaf_row
        yield stored, leaf_row
    finally:
        with anyio.CancelScope(shield=True):
            await stored.close()


async def chunks_of(rows: Sequence[int]) -> AsyncIterator[Sequence[int]]:
    """Rows in pieces, with a moment for others between them."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[start : start + ROWS_AT_ONCE]
        await anyio.lowlevel.checkpoint()


async def check(host: Host, which: str | Path) -> Checked:
    """Look at every line and every entry of a session. Raises what opening to read raises."""
    async with looked_into(host, which) as (stored, _):
        checker = Checker(stored.heads)
        async for rows in chunks_of(range(len(stored.heads))):
            await to_thread.run_sync(_take, checker, stored, rows)
        return Checked(
            session_id=stored.header.session_id,
            path=stored.path,
            entries=len(stored.heads),
            size_bytes=stored.size_bytes,
            problems=[*stored.diagnostics, *await to_thread.run_sync(checker.finish)],
        )


def _take(checker: Checker, stored: StoredSession, rows: Sequence[int]) -> None:
    for row in rows:
        checker.take(row, stored.line(row))


async def repair(host: Host, which: str | Path) -> Repaired:
    """Repair a session that is not open. Raises Refused `session_open`, and as the store does."""
    live = host.reader.live_of(which)
    if live is not None:
        raise Refused("session_open", "close the session first", sessionId=live.session_id)
    return await host.store.repair(which)
