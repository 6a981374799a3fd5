"""Versions of a folder as lists of files beside copies of their bytes, where there is no git.

A copy is named by its content and kept once. A file whose size, times and inode are as they were
when it was read is not read again.

Promises
- Nothing in the folder is touched but by `restore`, and there only files, one at a time.
- A list is kept only after all copies it names.
- Ignore files hold as git has them; without git nobody knows which ignored files are tracked.
"""

import hashlib
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from pi_rpc.core.errors import Missing, Outside, Overfull, Refused
from pi_rpc.core.paths import bytes_of_path, text_of_path
from pi_rpc.core.ports.workspace import (
    FileDiff,
    IgnoringAbove,
    LeftOut,
    PathChange,
    PathsIgnored,
    Snapshot,
    Workspace,
)
from pi_rpc.core.version_limits import VersionLimits
from pi_rpc.workspace.manifests import (
    Manifest,
    Seen,
    compared,
    decode_manifest,
    decode_seen,
    digest_of,
    line_diff,
)
from pi_rpc.workspace.process import Processes, off_loop
from pi_rpc.workspace.putting import LINK_MODE, Putting, mode_of
from pi_rpc.workspace.store import Journal, home_of, locked, store_failures
from pi_rpc.workspace.too_much import TooMuch

VERSION_PREFIX = "copy:"
VERSION = re.compile(r"copy:[0-9a-f]{64}")
PATCH_BYTES_MAX = 1024 * 1024
"""How long all patches of a diff may be together; later files have none."""
YOUNG_NS = 50_000_000
"""A file changed so shortly before it was read may change again within one tick of its clock."""
_CHUNK_BYTES = 1024 * 1024


class CopiedWorkspace:
    """The states of one folder."""

    kind = "manifest"

    def __init__(
        self, folder: Path, home: Path, limits: VersionLimits, ignoring_above: IgnoringAbove
    ) -> None:
        self._folder = folder
        self._home = home
        self._limits = limits
        self._ignoring_above = ignoring_above
        self._journal = Journal(home)
        self._too_much = TooMuch()

    def warm(self) -> None:
        """Nothing to begin with: the first snapshot copies every file, and not beside a run."""

    async def snapshot(self, *, again: bool = False) -> Snapshot:
        """Name the present state, and keep it. Raises Outside, Overfull, Missing."""

        def act(processes: Processes) -> Snapshot:
            with locked(self._home, processes), store_failures(self._home):
                if not self._folder.is_dir():
                    raise Missing("cwd_missing", f"{self._folder} is not there")
                self._journal.clear()
                look = _Look(self._folder, self._home, self._limits, processes)
                manifest = look.taken(self._ignoring_above(self._folder))
                raw = manifest.encoded()
                name = digest_of(raw)
                _keep(self._home / "versions" / name, raw)
                left_out = tuple(sorted(manifest.left_out, key=lambda one: one.path))
                return Snapshot(VERSION_PREFIX + name, left_out)

        is_first = not (self._home / "seen").exists()
        with self._too_much.looking(again=again):
            return await off_loop(act, self._limits.first_s if is_first else self._limits.next_s)

    def _manifest(self, version: str) -> Manifest:
        gone = Missing("version_not_found", f"{version!r} is not kept here", version=version)
        if not VERSION.fullmatch(version):
            raise gone
        name = version.removeprefix(VERSION_PREFIX)
        try:
            raw = (self._home / "versions" / name).read_bytes()
        except FileNotFoundError:
            raise gone from None
        if digest_of(raw) != name:
            raise Outside("store_broken", f"{version} is damaged", retryable=False)
        return decode_manifest(raw)

    async def compare(
        self, one: str, other: str, *, beside: Workspace | None = None
    ) -> list[PathChange]:
        """What differs from one version to another. Raises Missing, Outside, Overfull."""
        if one == other:
            return []

        def found(version: str) -> Manifest:
            try:
                return self._manifest(version)
            except Missing:
                if not isinstance(beside, CopiedWorkspace):
                    raise
                return beside._manifest(version)

        def act(processes: Processes) -> list[PathChange]:
            with store_failures(self._home):
                return compared(found(one), found(other))

        return await off_loop(act, self._limits.next_s)

    async def diff(self, one: str, other: str, patches: bool) -> list[FileDiff]:
        """As `compare`, with lines counted and, if wanted, patches."""

        def act(processes: Processes) -> list[FileDiff]:
            with store_failures(self._home):
                changes = compared(self._manifest(one), self._manifest(other))
                return self._diffed(processes, changes, patches)

        return await off_loop(act, self._limits.next_s)

    def _diffed(
        self, processes: Processes, changes: Sequence[PathChange], patches: bool
    ) -> list[FileDiff]:
        found, total = [], 0
        for change in changes:
            processes.check()
            texts = [self._content(state) for state in (change.before, change.after)]
            before, after = texts
            told = None
            if change.kept and before is not None and after is not None:
                told = line_diff(change.path, before, after)
            added, removed, patch = told or (None, None, None)
            total += len(patch or "")
            wanted = patches and total <= PATCH_BYTES_MAX
            patch = patch if wanted else None
            found.append(FileDiff(change.path, change.change, added, removed, patch))
        return found

    def _content(self, state: str | None) -> bytes | None:
        """The bytes of a state; of none, nothing. None where they are kept no more."""
        if state is None:
            return b""
        try:
            return _copy_of(self._home, state.partition(":")[2]).read_bytes()
        except FileNotFoundError:
            return None

    async def restore(self, changes: Sequence[PathChange]) -> dict[str, str]:
        """Bring paths from their present state to another. Raises Outside before any is touched."""

        def act(processes: Processes) -> dict[str, str]:
            with locked(self._home, processes), store_failures(self._home):
                self._journal.clear()
                putting = Putting(self._folder, self._journal, lambda size: hashlib.sha256())
                denied: dict[str, str] = {}
                # What goes away goes first: a file may stand where a folder is wanted.
                for change in sorted(changes, key=lambda one: one.after is not None):
                    reason = self._put(putting, change)
                    if reason is not None:
                        denied[change.path] = reason
                self._journal.clear()
                return denied

        return await off_loop(act, self._limits.first_s)

    def _put(self, putting: Putting, change: PathChange) -> str | None:
        name = bytes_of_path(change.path)
        try:
            if change.after is None:
                putting.remove(name, change.before)
                return None
            mode, _, digest = change.after.partition(":")
            content = self._content(change.after)
            if content is None or digest_of(content) != digest:
                return "content_missing"
            putting.put(name, change.before, mode, content)
        except Refused as refused:
            return refused.reason
        except OSError:
            return "write_failed"
        return None

    async def fetch(self, other: Workspace, version: str) -> None:
        """Keep a version of another folder here too. Raises Missing, Refused `other_kind`."""
        if not isinstance(other, CopiedWorkspace):
            raise Refused("other_kind", "that version is kept in another way", version=version)

        def act(processes: Processes) -> None:
            with locked(self._home, processes), store_failures(self._home):
                manifest = other._manifest(version)
                for state in manifest.files.values():
                    processes.check()
                    content = other._content(state)
                    if content is not None:
                        _keep(_copy_of(self._home, state.partition(":")[2]), content)
                name = version.removeprefix(VERSION_PREFIX)
                _keep(self._home / "versions" / name, manifest.encoded())

        await off_loop(act, self._limits.first_s)


class CopiedWorkspaces:
    """One workspace for each folder, shared by whoever works in it."""

    def __init__(self, root: Path, limits: VersionLimits, ignoring_above: IgnoringAbove) -> None:
        self._root = root
        self._limits = limits
        self._ignoring_above = ignoring_above
        self._made: dict[Path, CopiedWorkspace] = {}

    def of(self, folder: Path) -> Workspace:
        """That of a folder, links resolved."""
        resolved = folder.resolve()
        found = self._made.get(resolved)
        if found is None:
            # Beside the store git would have: the two know nothing of each other.
            home = home_of(self._root, resolved) / "copies"
            found = CopiedWorkspace(resolved, home, self._limits, self._ignoring_above)
            self._made[resolved] = found
        return found


class _Look:
    """One walk through the folder; the store is locked."""

    def __init__(
        self, folder: Path, home: Path, limits: VersionLimits, processes: Processes
    ) -> None:
        self._root = os.fspath(folder)
        self._home = home
        self._limits = limits
        self._processes = processes
        self._files: dict[str, str] = {}
        self._left_out: list[LeftOut] = []
        self._seen: dict[str, Seen] = {}
        self._copied_files = 0
        self._copied_bytes = 0
        self._kept = _copies_in(home)
        self._before = _seen_before(home)

    def taken(self, above: PathsIgnored) -> Manifest:
        """The list of what is there, every copy it names kept."""
        waiting = [(self._root, above)]
        while waiting:
            self._processes.check()
            folder, outer = waiting.pop()
            ignored = outer.entered(folder)
            for entry in self._entries(folder):
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name == ".git" or ignored.is_ignored(entry.path, is_folder):
                    continue
                if is_folder:
                    waiting.append((entry.path, ignored))
                else:
                    self._take(entry)
        _replace(self._home / "seen", msgspec.msgpack.encode(self._seen))
        return Manifest(self._files, self._left_out)

    def _entries(self, folder: str) -> list["os.DirEntry[str]"]:
        try:
            with os.scandir(folder) as found:
                return list(found)
        except FileNotFoundError:
            return []
        except OSError:
            if folder == self._root:
                raise
            status = os.lstat(folder)
            self._leave_out(folder, "unreadable", status)
            return []

    def _name(self, path: str) -> str:
        return text_of_path(os.fsencode(path[len(self._root) + 1 :]))

    def _leave_out(self, path: str, reason: str, status: os.stat_result) -> None:
        found = LeftOut(self._name(path), reason, status.st_size, status.st_mtime_ns)
        self._left_out.append(found)

    def _take(self, entry: "os.DirEntry[str]") -> None:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return
        mode = mode_of(status)
        if mode is None:
            return
        if status.st_size > self._limits.file_bytes:
            self._leave_out(entry.path, "too_large", status)
            return
        name = self._name(entry.path)
        before = self._before.get(name)
        if before is not None and self._is_same(before, status, mode):
            self._files[name], self._seen[name] = before.state, before
            return
        self._count(status.st_size)
        looked_ns = time.time_ns()
        try:
            state = self._copied(entry.path, mode)
        except FileNotFoundError:
            return
        except PermissionError:
            self._leave_out(entry.path, "unreadable", status)
            return
        self._files[name] = state
        if max(status.st_mtime_ns, status.st_ctime_ns) < looked_ns - YOUNG_NS:
            facts = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
            self._seen[name] = Seen(*facts, state)

    def _is_same(self, before: Seen, status: os.stat_result, mode: str) -> bool:
        facts = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        known = (before.size, before.changed_ns, before.inode_changed_ns, before.inode)
        digest = before.state.removeprefix(f"{mode}:")
        return facts == known and digest in self._kept

    def _count(self, size: int) -> None:
        self._processes.check()
        self._copied_files += 1
        self._copied_bytes += size
        if self._copied_files > self._limits.files:
            raise Overfull(
                "too_many_files", "too many files are new", limitCount=self._limits.files
            )
        if self._copied_bytes > self._limits.bytes:
            raise Overfull("too_many_bytes", "too much is new", limitBytes=self._limits.bytes)

    def _copied(self, path: str, mode: str) -> str:
        content = _target(path) if mode == LINK_MODE else self._read(path)
        digest = digest_of(content)
        if digest not in self._kept:
            _keep(_copy_of(self._home, digest), content)
            self._kept.add(digest)
        return f"{mode}:{digest}"

    def _read(self, path: str) -> bytes:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            # It may have grown since it was measured; what is too long now is read no further.
            content = file.read(self._limits.file_bytes + 1)
        if len(content) > self._limits.file_bytes:
            raise Overfull("file_grows", f"{path} grows", limitBytes=self._limits.file_bytes)
        return content


def _target(path: str) -> bytes:
    return os.fsencode(os.readlink(path))  # noqa: PTH115


def _copy_of(home: Path, digest: str) -> Path:
    return home / "files" / digest[:2] / digest


def _copies_in(home: Path) -> set[str]:
    found: set[str] = set()
    with suppress(FileNotFoundError):
        for shelf in os.scandir(home / "files"):
            found.update(name for name in os.listdir(shelf.path) if len(name) == 64)  # noqa: PTH208
    return found


def _seen_before(home: Path) -> dict[str, Seen]:
    try:
        return dict(decode_seen((home / "seen").read_bytes()))
    except (FileNotFoundError, msgspec.MsgspecError):
        # Only a cache: without it every file is read again.
        return {}


def _keep(path: Path, content: bytes) -> None:
    """Write what is not there yet, whole or not at all."""
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, content)


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_bytes(content)
    temporary.replace(path)
