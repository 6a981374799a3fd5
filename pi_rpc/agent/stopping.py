"""The wish that something ends, said once: to look at, to wait for, or to be called by.

A task that only waits for a stop costs more than most calls it watches over; a callback costs
nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio


class Stop:
    """A stop signal that calls back."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._acts: dict[object, Callable[[], None]] = {}

    def set(self) -> None:
        """Let it end; from the second time on nothing happens."""
        if self._event.is_set():
            return
        self._event.set()
        acts, self._acts = self._acts, {}
        for act in acts.values():
            act()

    def is_set(self) -> bool:
        """Whether it is to end."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Return when it is to end."""
        await self._event.wait()

    @contextmanager
    def calling(self, act: Callable[[], None]) -> Iterator[None]:
        """Have `act` called when it is set before the block is left; at once when it is already."""
        if self._event.is_set():
            act()
            yield
            return
        key = object()
        self._acts[key] = act
        try:
            yield
        finally:
            self._acts.pop(key, None)
