"""Versions of a folder as git trees, in a repository of our own outside it.

A version is a tree object named by its content. It holds the folder's files as `files` and, where
something was left out, a list of that as `left_out`, so that a change of it is noticed too. A ref
of its own keeps each version for good.

Promises
- Nothing in the folder is touched but by `restore`, and there only files, one at a time.
- Nested repositories are files like any other; nobody's `.git` is looked into or written.
- A store that is damaged is made anew for what comes; versions it has lost are said to be missing.
"""

import hashlib
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path

import anyio.abc

from pi_rpc.core.errors import Failure, Missing, Outside, Refused
from pi_rpc.core.paths import bytes_of_path
from pi_rpc.core.ports.workspace import FileDiff, PathChange, Snapshot, Workspace
from pi_rpc.core.version_limits import VersionLimits
from pi_rpc.workspace.comparing import VERSION, Comparing
from pi_rpc.workspace.process import Processes, off_loop
from pi_rpc.workspace.putting import Putting
from pi_rpc.workspace.store import locked, store_failures
from pi_rpc.workspace.taking import VERSION_PREFIX, Site, Taking
from pi_rpc.workspace.too_much import TooMuch

log = logging.getLogger(__name__)

KEEPING_S = 600.0
"""How long copying what is borrowed may take; it runs beside everything else."""
KEEPING_TRIES_MAX = 2
"""How often that is done beside other snapshots before they have to wait for it."""


def _digest(size: int) -> "hashlib._Hash":
    summed = hashlib.sha1(usedforsecurity=False)
    summed.update(b"blob %d\0" % size)
    return summed


class GitWorkspace:
    """The states of one folder."""

    kind = "git"

    def __init__(
        self,
        folder: Path,
        home: Path,
        tasks: anyio.abc.TaskGroup,
        limits: VersionLimits | None = None,
    ) -> None:
        self._site = Site(folder, home, limits or VersionLimits())
        self._tasks = tasks
        self._too_much = TooMuch()
        self._is_keeping = False
        self._is_warm = False

    @property
    def home(self) -> Path:
        """Where the versions lie."""
        return self._site.home

    def warm(self) -> None:
        """Begin with what a first snapshot takes long for, beside everything else."""
        if not self._is_warm and not self._site.repository.index.exists():
            self._is_warm = True
            self._tasks.start_soon(self._warm)

    async def _warm(self) -> None:
        try:
            await self.snapshot()
        except Failure as failure:
            # Whoever asks for a version is told the same.
            log.info("no version of %s yet: %s", self._site.folder, failure)

    async def snapshot(self, *, again: bool = False) -> Snapshot:
        """Name the present state, and keep it. Raises Outside, Overfull."""
        is_first = not self._site.repository.index.exists()
        time_s = self._site.limits.first_s if is_first else self._site.limits.next_s
        with self._too_much.looking(again=again):
            taken = await off_loop(self._snapshot, time_s)
        self._keep_soon()
        return taken

    def _snapshot(self, processes: Processes) -> Snapshot:
        with locked(self._site.home, processes), store_failures(self._site.home):
            try:
                return Taking(self._site, processes).taken()
            except Outside as failure:
                if failure.reason != "git_failed":
                    raise
                processes.check()
                # A store that git cannot read helps nobody: begin again, once.
                self._site.repository.index.unlink(missing_ok=True)
                self._site.last = None
                if not self._is_sound(processes):
                    shutil.rmtree(self._site.repository.git_dir, ignore_errors=True)
                return Taking(self._site, processes).taken()

    def _is_sound(self, processes: Processes) -> bool:
        try:
            self._git(processes, "rev-list", "--objects", "--all", "--quiet")
        except Outside:
            return False
        return True

    def _git(self, processes: Processes, *words: str, given: bytes = b"") -> bytes:
        return self._site.repository.start(processes, self._site.home, words, given).wait()

    async def compare(
        self, one: str, other: str, *, beside: Workspace | None = None
    ) -> list[PathChange]:
        """What differs from one version to another. Raises Missing, Outside, Overfull."""
        if one == other:
            return []
        repository = self._site.repository
        if isinstance(beside, GitWorkspace):
            repository = repository.beside(beside._site.repository)

        def act(processes: Processes) -> list[PathChange]:
            with store_failures(self._site.home):
                return Comparing(repository, processes).changes(one, other)

        return await off_loop(act, self._site.limits.next_s)

    async def diff(self, one: str, other: str, patches: bool) -> list[FileDiff]:
        """As `compare`, with lines counted and, if wanted, patches."""

        def act(processes: Processes) -> list[FileDiff]:
            with store_failures(self._site.home):
                return Comparing(self._site.repository, processes).diffs(one, other, patches)

        return await off_loop(act, self._site.limits.next_s)

    async def restore(self, changes: Sequence[PathChange]) -> dict[str, str]:
        """Bring paths from their present state to another. Raises Outside before any is touched."""

        def act(processes: Processes) -> dict[str, str]:
            with locked(self._site.home, processes), store_failures(self._site.home):
                self._site.journal.clear()
                return self._restored(processes, changes)

        return await off_loop(act, self._site.limits.first_s)

    def _restored(self, processes: Processes, changes: Sequence[PathChange]) -> dict[str, str]:
        putting = Putting(self._site.folder, self._site.journal, _digest)
        denied: dict[str, str] = {}
        # What goes away goes first: a file may stand where a folder is wanted.
        for unwanted in changes:
            if unwanted.after is None:
                with _denials(denied, unwanted.path):
                    putting.remove(bytes_of_path(unwanted.path), unwanted.before)
        wanted = [
            (change, *change.after.partition(":")[::2])
            for change in changes
            if change.after is not None
        ]
        given = b"".join(name.encode() + b"\n" for _, _, name in wanted)
        words = ["cat-file", "--batch", "--buffer"]
        started = self._site.repository.start(processes, self._site.home, words, given)
        with started.output() as out:
            for change, mode, _ in wanted:
                head = out.readline().split()
                if head[-1:] == [b"missing"]:
                    denied[change.path] = "content_missing"
                    continue
                content = out.read(int(head[2]))
                out.read(1)
                with _denials(denied, change.path):
                    name = bytes_of_path(change.path)
                    putting.put(name, change.before, mode, content)
        self._site.journal.clear()
        return denied

    async def fetch(self, other: Workspace, version: str) -> None:
        """Keep a version of another folder here too. Raises Missing, Refused `other_kind`."""
        if not isinstance(other, GitWorkspace) or not VERSION.fullmatch(version):
            raise Refused("other_kind", "that version is kept in another way", version=version)
        source = other._site.repository
        if self._site.repository.keeps(version.removeprefix(VERSION_PREFIX)):
            return

        def act(processes: Processes) -> None:
            with locked(self._site.home, processes), store_failures(self._site.home):
                if not self._site.repository.exists:
                    self._site.repository.make(processes)
                tree = version.removeprefix(VERSION_PREFIX)
                if tree not in source.versions():
                    raise Missing("version_not_found", f"{version!r} is not kept", version=version)
                kept = f"refs/versions/{tree}:refs/versions/{tree}"
                words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]
                self._git(processes, *words, str(source.git_dir), kept)

        await off_loop(act, self._site.limits.first_s)

    @property
    def leans(self) -> bool:
        """Whether versions still need objects of the user's repository."""
        return self._site.repository.alternates.exists()

    def _keep_soon(self) -> None:
        wanted = self.leans or self._site.repository.has_many_pieces()
        if wanted and not self._is_keeping:
            self._is_keeping = True
            self._tasks.start_soon(self._keep)

    async def kept(self) -> None:
        """Copy what is borrowed, so that the user's clean-up loses nothing; pack what is loose.

        Done by itself in the background after a snapshot. Raises Outside, Overfull.
        """
        await off_loop(self._kept, KEEPING_S)

    async def _keep(self) -> None:
        try:
            await self.kept()
        except Failure as failure:
            log.warning(
                "versions of %s still lean on its repository: %s", self._site.folder, failure
            )
        finally:
            self._is_keeping = False

    def _kept(self, processes: Processes) -> None:
        repository = self._site.repository
        with store_failures(self._site.home):
            for _ in range(KEEPING_TRIES_MAX):
                # The long part needs no lock; only a version named meanwhile may still borrow.
                before = repository.versions()
                repository.pack(processes)
                with locked(self._site.home, processes):
                    if repository.versions() == before:
                        repository.alternates.unlink(missing_ok=True)
                        return
            with locked(self._site.home, processes):
                repository.pack(processes)
                repository.alternates.unlink(missing_ok=True)


class _denials:  # noqa: N801
    """Notes why a file was not touched, and goes on."""

    def __init__(self, denied: dict[str, str], path: str) -> None:
        self._denied = denied
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, raised: BaseException | None, trace: object) -> bool:
        if isinstance(raised, Refused):
            self._denied[self._path] = raised.reason
            return True
        if isinstance(raised, OSError):
            self._denied[self._path] = "write_failed"
            return True
        return False
