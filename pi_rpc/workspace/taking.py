"""One snapshot of a folder while it is taken: look, choose, take in, name.

What is unchanged is told by git from its index, without reading a file; what is new or changed is
chosen here, so that limits hold and whatever is left out has a name.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from pi_rpc.core.errors import Missing, Outside, Overfull
from pi_rpc.core.paths import text_of_path
from pi_rpc.core.ports.workspace import LeftOut, Snapshot
from pi_rpc.core.version_limits import VersionLimits
from pi_rpc.workspace.left_out import decode_left_out, encode_left_out
from pi_rpc.workspace.process import Processes
from pi_rpc.workspace.putting import mode_of
from pi_rpc.workspace.repository import Repository, Surrounding, names, surrounding_of
from pi_rpc.workspace.store import Journal

VERSION_PREFIX = "git:"
TRIES_MAX = 3
"""How often a snapshot begins again when files come and go while it looks."""
CHUNK_PATHS = 5000
"""Paths handed to git at once: so much is kept when time runs out on a first snapshot."""
NESTING_MAX = 100
"""How many repositories inside repositories are looked into by one snapshot."""


class Site:
    """One folder, where its versions are kept, and what is remembered from snapshot to snapshot."""

    def __init__(self, folder: Path, home: Path, limits: VersionLimits) -> None:
        self.folder = folder
        self.home = home
        self.limits = limits
        self.repository = Repository(home)
        self.journal = Journal(home)
        self.around: tuple[Surrounding | None, bool] | None = None
        """The repository around it when last looked, and whether that one ignores it."""
        self.last: tuple[str, bytes, str] | None = None
        """The last tree of files, list of what was left out, and the version they make."""


class Taking:
    """One snapshot while it is taken; the store is locked."""

    def __init__(self, site: Site, processes: Processes) -> None:
        self._site = site
        self._repository = site.repository
        self._folder = site.folder
        self._limits = site.limits
        self._processes = processes
        self._top = site.folder
        self._scope = ""
        self._left_out: dict[bytes, LeftOut] = {}
        self._extra: list[bytes] = []

    def _git(self, *words: str, given: bytes = b"") -> bytes:
        return self._repository.start(self._processes, self._top, words, given).wait()

    def taken(self) -> Snapshot:
        """Take it. Raises Outside, Overfull, Missing `cwd_missing`."""
        if not self._folder.is_dir():
            raise Missing("cwd_missing", f"{self._folder} is not there", path=str(self._folder))
        self._site.journal.clear()
        self._prepare()
        for _ in range(TRIES_MAX):
            try:
                self._take_in()
                break
            except Outside as failure:
                # A file that went away between the look and the reading fails the whole list.
                failed = failure
        else:
            raise failed
        return self._named()

    def _prepare(self) -> None:
        repository = self._repository
        if not repository.exists:
            self._site.last = None
            shutil.rmtree(repository.git_dir, ignore_errors=True)
            repository.make(self._processes)
        repository.drop_stale_locks()
        around = surrounding_of(self._folder)
        known = self._site.around
        if known is None or known[0] != around:
            repository.honour(self._processes, around, self._folder)
            known = self._site.around = (around, self._is_ignored(around))
        if known[1]:
            # A folder its repository ignores is looked at as if it stood alone.
            around = None
        if around is not None:
            self._top = around.top
            self._scope = "" if around.top == self._folder else _slashed(self._folder, around.top)
        self._begin_index(around)

    def _is_ignored(self, around: Surrounding | None) -> bool:
        if around is None or around.top == self._folder:
            return False
        words = ["check-ignore", "-q", "--no-index", _slashed(self._folder, around.top)]
        started = self._repository.start(self._processes, around.top, words, literal=False)
        return started.status() == 0

    def _begin_index(self, around: Surrounding | None) -> None:
        mark = self._site.home / "top"
        wanted = os.fsencode(self._top) + b"\0" + self._scope.encode()
        index = self._repository.index
        if index.exists() and mark.exists() and mark.read_bytes() == wanted:
            return
        index.unlink(missing_ok=True)
        if around is not None:
            self._extra = self._repository.seed(self._processes, around, self._scope)
        if not index.exists():
            self._git("read-tree", "--empty")
        mark.write_bytes(wanted)

    def _take_in(self) -> None:
        scope = ["--", *([self._scope] if self._scope else [])]
        start = self._repository.start
        changed = start(
            self._processes,
            self._top,
            ["diff-files", "-z", "--name-status", "--no-renames", *scope],
        )
        new = start(
            self._processes,
            self._top,
            ["ls-files", "-o", "-z", "--exclude-standard", *scope],
        )
        gone: list[bytes] = []
        candidates: list[bytes] = []
        told = iter(changed.wait().split(b"\0")[:-1])
        for status, path in zip(told, told, strict=False):
            (gone if status == b"D" else candidates).append(path)
        candidates += self._with_nested(names(new.wait()))
        candidates += self._extra
        self._left_out = {}
        added = self._chosen(candidates, gone)
        self._drop(gone)
        for first in range(0, len(added), CHUNK_PATHS):
            self._repository.take_in(self._processes, self._top, added[first : first + CHUNK_PATHS])
        self._extra = []

    def _with_nested(self, found: Iterable[bytes]) -> Iterator[bytes]:
        nested = 0
        waiting = list(found)
        while waiting:
            path = waiting.pop()
            if not path.endswith(b"/"):
                yield path
                continue
            nested += 1
            if nested > NESTING_MAX:
                raise Overfull(
                    "too_many_files", "too many nested repositories", limitCount=NESTING_MAX
                )
            waiting += [path + name for name in self._inside(path)]

    def _inside(self, path: bytes) -> list[bytes]:
        """Files of a repository inside the folder that are not known yet."""
        inner = Path(os.fsdecode(os.fsencode(self._top) + b"/" + path))
        nested = Repository(self._site.home)
        nested.index = nested.index.with_name("nested-index")
        nested.index.unlink(missing_ok=True)
        words = ["ls-files", "-o", "-z", "--exclude-standard"]
        return list(names(nested.start(self._processes, inner, words).wait()))

    def _chosen(self, candidates: list[bytes], gone: list[bytes]) -> list[bytes]:
        """Those a version shall hold; what it cannot hold is noted, or added to what is gone."""
        limits = self._limits
        if len(candidates) > limits.files:
            raise Overfull(
                "too_many_files",
                f"{len(candidates)} files have changed or are new",
                limitCount=limits.files,
            )
        chosen: list[bytes] = []
        total = 0
        top = os.fsencode(self._top) + b"/"
        for path in candidates:
            try:
                status = os.lstat(top + path)
            except OSError:
                gone.append(path)
                continue
            reason = self._reason_against(status, top + path)
            if reason is None:
                chosen.append(path)
                total += status.st_size
                continue
            gone.append(path)
            if reason != "not_a_file":
                # Size and time stand for the content nobody keeps.
                name = text_of_path(self._below(path))
                self._left_out[path] = LeftOut(name, reason, status.st_size, status.st_mtime_ns)
        if total > limits.bytes:
            raise Overfull(
                "too_many_bytes", f"{total} bytes have changed or are new", limitBytes=limits.bytes
            )
        return chosen

    def _reason_against(self, status: os.stat_result, path: bytes) -> str | None:
        mode = mode_of(status)
        if mode is None:
            return "not_a_file"
        if status.st_size > self._limits.file_bytes:
            return "too_large"
        if mode != "120000" and not os.access(path, os.R_OK):
            return "unreadable"
        return None

    def _below(self, path: bytes) -> bytes:
        return path[len(self._scope.encode()) + 1 :] if self._scope else path

    def _drop(self, paths: list[bytes]) -> None:
        if paths:
            given = b"".join(path + b"\0" for path in paths)
            self._git("update-index", "--force-remove", "-z", "--stdin", given=given)

    def _named(self) -> Snapshot:
        raw = self._written()
        left_out = encode_left_out(self._left_out.values())
        shown = tuple(decode_left_out(left_out))
        last, repository = self._site.last, self._repository
        if last is not None and last[:2] == (raw, left_out) and repository.keeps(last[2]):
            return Snapshot(VERSION_PREFIX + last[2], shown)
        rows = b"40000 files\0" + bytes.fromhex(raw)
        if left_out:
            rows += b"100644 left_out\0" + bytes.fromhex(repository.store("blob", left_out))
        tree = repository.store("tree", rows)
        repository.keep(tree)
        self._site.last = (raw, left_out, tree)
        return Snapshot(VERSION_PREFIX + tree, shown)

    def _written(self) -> str:
        words = ["write-tree", *([f"--prefix={self._scope}/"] if self._scope else [])]
        try:
            return self._git(*words).strip().decode()
        except Outside as failure:
            if not self._scope or "not found" not in failure.message:
                raise
            return self._repository.store("tree", b"")


def _slashed(folder: Path, top: Path) -> str:
    return folder.relative_to(top).as_posix()
