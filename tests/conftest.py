"""What tests of several rooms stand on: counted time, counted names, the one async backend."""

import pytest

START_MS = 1_767_323_045_678
"""2026-01-02T03:04:05.678Z."""


class CountedClock:
    """Time that passes only by being asked for: one millisecond each time."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> int:
        """Milliseconds."""
        self._now_ms += 1
        return self._now_ms


class CountedIds:
    """Names that count; `series` keeps those of several apart."""

    def __init__(self, series: int = 0) -> None:
        self._series = series
        self._entries = 0
        self._uniques = 0

    def entry_id(self) -> str:
        """Eight hexadecimal characters."""
        self._entries += 1
        return f"{self._series:02x}{self._entries:06x}"

    def unique_id(self) -> str:
        """The form of a UUID, version 7."""
        self._uniques += 1
        return f"00000000-0000-7000-80{self._series:02x}-{self._uniques:012x}"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> CountedClock:
    return CountedClock()


@pytest.fixture
def ids() -> CountedIds:
    return CountedIds()
