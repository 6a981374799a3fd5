"""Who is at work in which folder: so that each session knows its own changes.

Two states of a folder tell what changed between them, not who did it. While nobody else is at work
it was us. Else a path is ours only if one of our calls named it, or if our command can have changed
it and nobody else's can.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.paths import text_of_path
from pi_rpc.core.ports.workspace import PathChange
from pi_rpc.core.versions import FILE_TOOLS


class Batch:
    """Calls of one session, from the state before them to the state after."""

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder = folder
        self.owner = owner
        """The session; two batches of one are its own whoever of them it was."""
        self.claims: set[str] = set()
        """Paths its calls named."""
        self.is_open = False
        """Whether a call of it may change what it did not name."""
        self.met: list[Batch] = []
        """Batches of others in the same folder at the same time."""

    def claim(self, tool: str, arguments: JsonObject) -> None:
        """Take note of a call."""
        path = arguments.get("path")
        if tool not in FILE_TOOLS or not isinstance(path, str):
            self.is_open = True
            return
        full = os.path.realpath(self.folder / path)
        root = os.path.join(os.path.realpath(self.folder), "")  # noqa: PTH118
        if full.startswith(root):
            self.claims.add(text_of_path(os.fsencode(full[len(root) :])))

    def own(self, changes: Sequence[PathChange]) -> list[PathChange]:
        """Those of the changes that are this batch's."""
        paths = {change.path for change in changes}
        if not self.met and (self.is_open or not self.claims <= paths):
            # A call that named a file in another way than versions do leaves its claim unmatched.
            return list(changes)
        taken = {path for other in self.met for path in other.claims}
        anybodys = self.is_open and not any(other.is_open for other in self.met)
        return [
            change
            for change in changes
            if change.path in self.claims or (anybodys and change.path not in taken)
        ]


class Batches:
    """All batches that are going on."""

    def __init__(self) -> None:
        self._live: list[Batch] = []

    def begin(self, folder: Path, owner: str) -> Batch:
        """A batch of a session begins in a folder."""
        batch = Batch(folder, owner)
        for other in self._in_reach(folder):
            if other.owner != owner:
                other.met.append(batch)
                batch.met.append(other)
        self._live.append(batch)
        return batch

    def end(self, batch: Batch) -> None:
        """It is over; ending it again does nothing."""
        if batch in self._live:
            self._live.remove(batch)

    def _in_reach(self, folder: Path) -> Iterable[Batch]:
        return [
            other
            for other in self._live
            if other.folder == folder
            or other.folder.is_relative_to(folder)
            or folder.is_relative_to(other.folder)
        ]
