"""Long work of the core done on the event loop, without making other sessions wait for its end."""

from collections.abc import Generator
from typing import TypeVar

import anyio.lowlevel

_Result = TypeVar("_Result")


async def in_moments(work: Generator[None, None, _Result]) -> _Result:
    """Do work that yields after each moment; the others have their turn in between."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: _Result = end.value
            return result
        await anyio.lowlevel.checkpoint()
