"""Long work that is done a moment at a time: a generator that yields after each, and returns."""

from collections.abc import Generator
from typing import TypeVar

_Result = TypeVar("_Result")


def finished(work: Generator[None, None, _Result]) -> _Result:
    """The result of such work, done without letting anybody else have a turn."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: _Result = end.value
            return result
