"""Tasks that run beside a block and end with it.

A task group put around a caller's block would wrap the caller's own errors into a group; here they
pass as they were raised.
"""

from types import TracebackType

import anyio
from anyio.abc import TaskGroup


class Background:
    """`async with Background() as tasks:`; what still runs when the block ends is cancelled."""

    def __init__(self) -> None:
        self._tasks = anyio.create_task_group()

    async def __aenter__(self) -> TaskGroup:
        await self._tasks.__aenter__()
        return self._tasks

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tasks.cancel_scope.cancel()
        # A cancellation is the group's to know of, any other error is between block and caller.
        if isinstance(raised, Exception):
            await self._tasks.__aexit__(None, None, None)
        else:
            await self._tasks.__aexit__(kind, raised, trace)
