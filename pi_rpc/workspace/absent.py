"""No versions of any folder: every question is answered with the reason why."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from pi_rpc.core.errors import Failure
from pi_rpc.core.ports.workspace import FileDiff, PathChange, Snapshot, Workspace


class AbsentWorkspace:
    """A folder whose states cannot be named."""

    kind = "none"

    def __init__(self, why: Callable[[], Failure]) -> None:
        self._why = why

    def warm(self) -> None:
        """Nothing to begin with."""

    def _refuse(self) -> NoReturn:
        raise self._why()

    async def snapshot(self, *, again: bool = False) -> Snapshot:
        """Raises the reason why not; so does everything here."""
        self._refuse()

    async def compare(
        self, one: str, other: str, *, beside: Workspace | None = None
    ) -> list[PathChange]:
        """Raises the reason why not."""
        self._refuse()

    async def diff(self, one: str, other: str, patches: bool) -> list[FileDiff]:
        """Raises the reason why not."""
        self._refuse()

    async def restore(self, changes: Sequence[PathChange]) -> dict[str, str]:
        """Raises the reason why not."""
        self._refuse()

    async def fetch(self, other: Workspace, version: str) -> None:
        """Raises the reason why not."""
        self._refuse()


class AbsentWorkspaces:
    """No folder has versions."""

    def __init__(self, why: Callable[[], Failure]) -> None:
        self._why = why

    def of(self, folder: Path) -> AbsentWorkspace:
        """The same nothing for any folder."""
        return AbsentWorkspace(self._why)
