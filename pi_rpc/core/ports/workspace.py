"""States of a working directory, and work trees made for sessions."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec


class LeftOut(msgspec.Struct, frozen=True, rename="camel"):
    """A path that a version does not hold."""

    path: str
    reason: str
    """too_large, unreadable."""
    size_bytes: int
    changed_ns: int = 0
    """When it was changed last; with the size it stands for the content."""


class Snapshot(msgspec.Struct, frozen=True):
    """A state of the working directory that has a name."""

    version: str
    """Made of the content: the same files have the same name."""
    left_out: Sequence[LeftOut] = ()


PathChangeKind = Literal["added", "modified", "removed"]


class PathChange(msgspec.Struct, frozen=True):
    """A path that two states differ in."""

    path: str
    """Relative to the folder, parted by slashes; see `pi_rpc.core.paths`."""
    change: PathChangeKind
    before: str | None
    """Its state in the first, None where it is absent."""
    after: str | None
    kept: bool = True
    """Whether both versions hold its content, or one of them only knows of it."""


class FileDiff(msgspec.Struct, frozen=True):
    """How one file differs between two states."""

    path: str
    change: PathChangeKind
    added: int | None
    """Lines; None where they cannot be counted."""
    removed: int | None
    patch: str | None = None


class Workspace(Protocol):
    """States of one working directory.

    Any of these raises Outside (`git_missing`, `git_failed`, `store_broken`, `versions_off`, …) or
    Overfull (`out_of_time`, `too_many_files`, `too_many_bytes`) when states cannot be named; then
    nothing has changed.
    """

    kind: str
    """What stands behind it: git, manifest, none."""

    def warm(self) -> None:
        """Begin with what a first snapshot takes long for, beside everything else."""
        ...

    async def snapshot(self, *, again: bool = False) -> Snapshot:
        """Name the present state, and keep it.

        `again`: look although there was too much in the folder the last time; else that is said
        without a look.
        """
        ...

    async def compare(
        self, one: str, other: str, *, beside: "Workspace | None" = None
    ) -> list[PathChange]:
        """What differs from one version to another, by path.

        `beside`: another folder's states, where a version is looked for too. Raises Missing
        `version_not_found`.
        """
        ...

    async def diff(self, one: str, other: str, patches: bool) -> list[FileDiff]:
        """As `compare`, with lines counted and, if wanted, patches."""
        ...

    async def restore(self, changes: Sequence[PathChange]) -> dict[str, str]:
        """Bring each path from its state `before`, the present one, to `after`, which is kept.

        A path at a time, each whole or not at all; may be done again after a crash. Paths that
        could not be brought there, with a reason: changed_meanwhile, in_the_way, write_failed,
        content_missing.
        """
        ...

    async def fetch(self, other: "Workspace", version: str) -> None:
        """Keep a version of another folder here too. Raises Missing, Refused `other_kind`."""
        ...


class Workspaces(Protocol):
    """The states of any folder."""

    def of(self, folder: Path) -> Workspace:
        """Those of a folder; the same object for the same folder, however it is spelled."""
        ...


class PathsIgnored(Protocol):
    """What ignore files say in one folder."""

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        """Whether a path in this folder is passed over."""
        ...

    def entered(self, folder: str) -> "PathsIgnored":
        """What holds in a folder below."""
        ...


IgnoringAbove = Callable[[Path], PathsIgnored]
"""What the folders above one say of it, to be entered."""


class Worktree(msgspec.Struct, frozen=True):
    """A new work tree of a repository."""

    top: Path
    cwd: Path
    """The folder in it that stands for the one it was asked for."""


class Worktrees(Protocol):
    """Work trees made for sessions."""

    async def require(self, folder: Path) -> None:
        """Raise Refused (`no_repository`, `no_commit`) where none can be made, Outside."""
        ...

    async def add(self, folder: Path) -> Worktree:
        """A new one of the repository this folder is in. Raises as `require`."""
        ...

    def top_of(self, folder: Path) -> Path | None:
        """The one made here that a folder lies in."""
        ...

    async def remove(self, top: Path, *, kept: bool) -> None:
        """Remove one; `kept`: its files have a version.

        Raises Refused (`not_ours`, `commits_would_be_lost`, `files_would_be_lost`), Outside.
        """
        ...
