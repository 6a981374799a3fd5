"""What a session has used, counted on request without making other sessions wait."""

import anyio

from pi_rpc.core.stats import SessionCount, Totals
from pi_rpc.core.tree import Tree
from pi_rpc.session.moments import in_moments


class Counting:
    """The totals of a session, taken further for one asker after the other."""

    def __init__(self, tree: Tree) -> None:
        self._count = SessionCount(tree)
        self._turn = anyio.Lock(fast_acquire=True)

    async def at(self, leaf_row: int) -> SessionCount:
        """The totals with every entry in them, on and off the path to a leaf.

        They hold until the caller waits for anything.
        """
        async with self._turn:
            await in_moments(self._count.taking_in(leaf_row))
        return self._count

    async def inherited(self) -> Totals | None:
        """The totals of what was copied when this session was made, None for nothing."""
        return await in_moments(self._count.inherited())
