"""That there was too much in a folder, remembered until somebody wants it looked at again.

Finding that out takes seconds, and whoever asks next would find the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pi_rpc.core.errors import Overfull

LASTING = frozenset({"too_many_files", "too_many_bytes"})
"""Reasons that hold until somebody changes the folder a lot; time that ran out is none."""


class TooMuch:
    """What was found when a folder was looked at last."""

    def __init__(self) -> None:
        self._found: Overfull | None = None

    @contextmanager
    def looking(self, *, again: bool) -> Iterator[None]:
        """Around a look at the folder. Raises what the last one did, unless `again`."""
        if self._found is not None and not again:
            found = self._found
            raise Overfull(found.reason, found.message, **found.data)
        try:
            yield
        except Overfull as failure:
            self._found = failure if failure.reason in LASTING else None
            raise
        self._found = None
