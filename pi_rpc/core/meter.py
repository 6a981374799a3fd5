"""How far long work has come."""


class Meter:
    """How far a piece of long work has come: filled in by who works, looked at by who tells."""

    def __init__(self) -> None:
        self.done = 0
        self.total = 0
        """In the unit of `done`; 0 before it is known."""

    @property
    def fraction(self) -> float | None:
        """From 0 to 1; None before anything is known."""
        return min(self.done / self.total, 1.0) if self.total else None
