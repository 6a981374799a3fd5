"""Time, names and chance."""

from typing import Protocol


class Clock(Protocol):
    """What time it is."""

    def now_ms(self) -> int:
        """Unix time in milliseconds; never goes back within one process."""
        ...


class Ids(Protocol):
    """Names that were never used before."""

    def entry_id(self) -> str:
        """Eight hexadecimal characters; the caller redraws on a clash."""
        ...

    def unique_id(self) -> str:
        """A UUID, version 7, later ones sort after earlier ones: sessions, runtimes, runs."""
        ...


class Chance(Protocol):
    """What nobody can foresee."""

    def fraction(self) -> float:
        """At least 0, below 1, any as likely as another."""
        ...
