"""A private git repository for the versions of one folder, whatever repository that is in.

Promises
- The user's index, refs, stash, hooks, configuration and objects are read at most, never written.
- Bytes go in and come out as they are: no filter, no line ends, no keywords.
- It needs nothing of the user's repository for good: what it borrows at first it copies later.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from pi_rpc.workspace.process import Processes, Started

CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tsymlinks = true
\tignorecase = false
\tautocrlf = false
\tsafecrlf = false
\tprotectNTFS = false
\tprotectHFS = false
\tfsmonitor = false
\tlogAllRefUpdates = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
[gc]
\tauto = 0
[maintenance]
\tauto = false
[index]
\tthreads = true
"""
ATTRIBUTES = "* -text -filter -ident -working-tree-encoding -eol\n"

LOOSE_FOLDER = "17"
LOOSE_OBJECTS_MAX = 6000
"""More loose objects than about this are packed; they are counted by one folder of 256."""

FILTERING_ATTRIBUTES = ("filter", "ident", "working-tree-encoding")


class Surrounding(msgspec.Struct, frozen=True):
    """The user's repository around a folder."""

    top: Path
    git_dir: Path
    common_dir: Path

    @property
    def objects(self) -> Path:
        """Where its objects lie."""
        return self.common_dir / "objects"

    @property
    def excludes(self) -> Path:
        """Its own ignore rules."""
        return self.common_dir / "info" / "exclude"


def surrounding_of(folder: Path) -> Surrounding | None:
    """The innermost repository a resolved folder lies in."""
    for top in (folder, *folder.parents):
        git_dir = top / ".git"
        try:
            if git_dir.is_file():
                text = git_dir.read_bytes()[:4096].decode(errors="surrogateescape")
                if not text.startswith("gitdir:"):
                    continue
                git_dir = top / text.removeprefix("gitdir:").strip()
            if not (git_dir / "HEAD").is_file():
                continue
            common = git_dir / "commondir"
            common_dir = git_dir / common.read_text().strip() if common.is_file() else git_dir
        except OSError:
            continue
        return Surrounding(top, git_dir, Path(os.path.normpath(common_dir)))
    return None


def clean_environment() -> dict[str, str]:
    """The variables git runs with: ours without what would point it elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


class Repository:
    """The private repository, and git run on it."""

    def __init__(self, home: Path) -> None:
        self.git_dir = home / "repository"
        self.index = home / "index"
        self.ignore_file: str | None = None
        """Ignore rules of the user's own beside those in the folder."""

    @property
    def exists(self) -> bool:
        """Whether it has been made; one that lost parts is none."""
        return all((self.git_dir / name).exists() for name in ("HEAD", "objects", "refs", "config"))

    @property
    def alternates(self) -> Path:
        """Where it says whose objects it borrows."""
        return self.git_dir / "objects" / "info" / "alternates"

    def make(self, processes: Processes) -> None:
        """Make it, empty. Raises Outside."""
        self.index.unlink(missing_ok=True)
        command = ["git", "init", "--quiet", "--bare", "--template=", str(self.git_dir)]
        environment = clean_environment() | _NO_CONFIG
        processes.start(command, environment, self.git_dir.parent).wait()
        (self.git_dir / "info").mkdir(exist_ok=True)
        (self.git_dir / "info" / "attributes").write_text(ATTRIBUTES)
        (self.git_dir / "config").write_text(CONFIG)

    def start(
        self,
        processes: Processes,
        top: Path,
        words: Sequence[str],
        given: bytes = b"",
        *,
        literal: bool = True,
    ) -> Started:
        """Start git here, with `top` as its working tree; `literal`: names are no patterns."""
        environment = (
            clean_environment()
            | _NO_CONFIG
            | {
                "GIT_DIR": str(self.git_dir),
                "GIT_WORK_TREE": str(top),
                "GIT_INDEX_FILE": str(self.index),
                "GIT_LITERAL_PATHSPECS": "1" if literal else "0",
                "GIT_NO_REPLACE_OBJECTS": "1",
            }
        )
        own = [] if self.ignore_file is None else ["-c", f"core.excludesFile={self.ignore_file}"]
        return processes.start(["git", *own, *words], environment, top, given)

    def honour(self, processes: Processes, around: Surrounding | None, folder: Path) -> None:
        """Take over the ignore rules the user has outside the folder's own files."""
        environment = clean_environment() if around is None else _of_user(around)
        words = ["git", "config", "--type=path", "--get", "core.excludesFile"]
        named = processes.start(words, environment, folder).wait((0, 1, 128)).rstrip(b"\n")
        self.ignore_file = os.fsdecode(named) or None
        rules = b""
        if around is not None and around.excludes.is_file():
            rules = around.excludes.read_bytes()
        (self.git_dir / "info" / "exclude").write_bytes(rules)

    def drop_stale_locks(self) -> None:
        """Remove what a killed git left; whoever calls holds the store's own lock."""
        self.index.with_name("index.lock").unlink(missing_ok=True)

    def seed(self, processes: Processes, around: Surrounding, scope: str) -> list[bytes]:
        """Begin with the user's own index and objects, where bytes are surely the same.

        Gives the tracked paths of the scope that were not taken over, to be looked at by whoever
        snapshots: ignore rules do not hold for what is tracked.
        """
        if not self._can_borrow(around):
            return self._tracked(processes, around, scope)
        self.alternates.parent.mkdir(exist_ok=True)
        self.alternates.write_text(f"{around.objects}\n")
        # With its time, for git tells by it which files may have changed in the same moment.
        shutil.copy2(around.git_dir / "index", self.index)
        words = ["ls-files", "-s", "-v", "-z"]
        rows = list(_rows(self.start(processes, around.top, words).wait()))
        inside = f"{scope}/".encode() if scope else b""
        plain = [row for row in rows if row.is_plain and row.path.startswith(inside)]
        kept = self._unfiltered(processes, around, self._same_size(processes, around, plain))
        dropped = {row.path for row in rows} - kept
        given = b"".join(path + b"\0" for path in sorted(dropped))
        if given:
            words = ["update-index", "--force-remove", "-z", "--stdin"]
            self.start(processes, around.top, words, given).wait()
        gone = {row.path for row in rows if row.mode == b"160000"}
        return sorted(path for path in dropped - gone if path.startswith(inside))

    def _tracked(self, processes: Processes, around: Surrounding, scope: str) -> list[bytes]:
        words = ["ls-files", "-s", "-v", "-z", "--", *([scope] if scope else [])]
        out = processes.start(["git", *words], _of_user(around), around.top).wait(range(256))
        return sorted({row.path for row in _rows(out) if row.mode != b"160000"})

    def _can_borrow(self, around: Surrounding) -> bool:
        try:
            config = (around.common_dir / "config").read_text(errors="replace").lower()
        except OSError:
            return False
        if "objectformat" in config or "partialclone" in config or "promisor" in config:
            return False
        name = str(around.objects)
        if "\n" in name or name[0] in '"#':
            return False
        index = around.git_dir / "index"
        # A split index lies in two files, of which the other may go away at any time.
        return index.is_file() and not any(around.git_dir.glob("sharedindex.*"))

    def _same_size(
        self, processes: Processes, around: Surrounding, rows: list["_Row"]
    ) -> list["_Row"]:
        """Entries whose stored content is as long as the file is: line ends were not changed."""
        given = b"".join(row.object + b"\n" for row in rows)
        words = ["cat-file", "--batch-check=%(objectsize)", "--buffer"]
        told = self.start(processes, around.top, words, given).wait().split(b"\n")[:-1]
        top = os.fsencode(around.top) + b"/"
        same = []
        for row, size in zip(rows, told, strict=True):
            with suppress(OSError):
                if size.isdigit() and os.lstat(top + row.path).st_size == int(size):
                    same.append(row)
        return same

    def _unfiltered(
        self, processes: Processes, around: Surrounding, rows: list["_Row"]
    ) -> set[bytes]:
        """Paths the user's attributes leave as they are."""
        given = b"".join(row.path + b"\0" for row in rows)
        words = ["git", "check-attr", "-z", "--stdin", *FILTERING_ATTRIBUTES]
        told = processes.start(words, _of_user(around), around.top, given).wait().split(b"\0")
        filtered = {
            path
            for path, value in zip(told[::3], told[2::3], strict=False)
            if value not in (b"unspecified", b"unset")
        }
        return {row.path for row in rows} - filtered

    def versions(self) -> frozenset[str]:
        """The names of everything that is kept."""
        try:
            return frozenset(os.listdir(self.git_dir / "refs" / "versions"))  # noqa: PTH208
        except FileNotFoundError:
            return frozenset()

    def pack(self, processes: Processes) -> None:
        """Copy what is borrowed and pack what is loose. Raises Outside."""
        words = ["repack", "-a", "-d", "-q", "--window=0"]
        self.start(processes, self.git_dir, words).wait()

    def has_many_loose(self) -> bool:
        """Whether packing is worth it."""
        folder = self.git_dir / "objects" / LOOSE_FOLDER
        try:
            return len(os.listdir(folder)) * 256 > LOOSE_OBJECTS_MAX  # noqa: PTH208
        except FileNotFoundError:
            return False


_NO_CONFIG = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
}


def _of_user(around: Surrounding) -> dict[str, str]:
    return clean_environment() | {
        "GIT_DIR": str(around.git_dir),
        "GIT_WORK_TREE": str(around.top),
    }


class _Row(msgspec.Struct, frozen=True):
    """One entry of an index."""

    tag: bytes
    mode: bytes
    object: bytes
    stage: bytes
    path: bytes

    @property
    def is_plain(self) -> bool:
        """Whether the file is as git would see it: no conflict, nothing assumed, no repository."""
        return self.tag == b"H" and self.stage == b"0" and self.mode != b"160000"


def _rows(out: bytes) -> Iterator[_Row]:
    for line in out.split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        tag, mode, name, stage = facts.split(b" ")
        yield _Row(tag, mode, name, stage, path)


def names(out: bytes) -> Iterable[bytes]:
    """Names that end with a zero byte each."""
    return out.split(b"\0")[:-1]
