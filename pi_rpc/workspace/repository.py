"""A private git repository for the versions of one folder, whatever repository that is in.

Promises
- The user's index, refs, stash, hooks, configuration and objects are read at most, never written.
- Bytes go in and come out as they are: no filter, no line ends, no keywords.
- It needs nothing of the user's repository for good: what it borrows at first it copies later.
"""

import copy
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from pi_rpc.workspace.objects import put_object, put_whole
from pi_rpc.workspace.process import Processes, Started
from pi_rpc.workspace.reading import head_of

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
PACKS_MAX = 40
"""More packs than this are made one: each is looked into for every object."""

TOGETHER_MIN = 500
"""So many files are written into one pack; a file for each object costs several times as much."""
TOGETHER = ("-c", "core.bigFileThreshold=1", "-c", "pack.compression=1")
TOGETHER_SINCE = (2, 37)
"""The first git whose `update-index` writes one pack for all, and not one for each."""
RULES_BYTES_MAX = 1 << 20
"""More of the user's ignore rules or configuration is not looked at."""

TEMPORARY_PACK = "tmp_pack_"
TEMPORARY_PACK_AGE_S = 3600.0
"""What a killed git left of a pack is removed when it is so old that nobody writes it any more."""

# Else git gives memory back to the system, and asks for it again, with every single file.
_MEMORY = {"MALLOC_TOP_PAD_": "4194304", "MALLOC_TRIM_THRESHOLD_": "67108864"}

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
                text = head_of(git_dir, 4096).decode(errors="surrogateescape")
                if not text.startswith("gitdir:"):
                    continue
                git_dir = top / text.removeprefix("gitdir:").strip()
            if not (git_dir / "HEAD").is_file():
                continue
            common = git_dir / "commondir"
            named = (
                head_of(common, 4096).decode(errors="surrogateescape") if common.is_file() else ""
            )
            common_dir = git_dir / named.strip()
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
        self._writes_together: bool | None = None
        self._other_objects: Path | None = None

    def beside(self, other: "Repository") -> "Repository":
        """This one, for reading: what it does not hold is looked for in the other."""
        both = copy.copy(self)
        both._other_objects = other.git_dir / "objects"
        return both

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
            | _MEMORY
        )
        if self._other_objects is not None:
            name = str(self._other_objects).replace("\\", "\\\\").replace('"', '\\"')
            environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = f'"{name}"'
        own = [] if self.ignore_file is None else ["-c", f"core.excludesFile={self.ignore_file}"]
        return processes.start(["git", *own, *words], environment, top, given)

    def take_in(self, processes: Processes, top: Path, paths: Sequence[bytes]) -> None:
        """Bring the index to what these files are now, their content stored. Raises Outside."""
        words = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]
        if len(paths) >= TOGETHER_MIN and self._can_write_together(processes):
            self._drop_stale_packs()
            words = [*TOGETHER, *words]
        self.start(processes, top, words, b"".join(path + b"\0" for path in paths)).wait()

    def _can_write_together(self, processes: Processes) -> bool:
        if self._writes_together is None:
            told = processes.start(["git", "version"], clean_environment(), self.git_dir).wait()
            found = re.search(rb"(\d+)\.(\d+)", told)
            version = (int(found[1]), int(found[2])) if found else (0, 0)
            self._writes_together = version >= TOGETHER_SINCE
        return self._writes_together

    def _drop_stale_packs(self) -> None:
        before_s = time.time() - TEMPORARY_PACK_AGE_S
        for left in (self.git_dir / "objects" / "pack").glob(f"{TEMPORARY_PACK}*"):
            with suppress(OSError):
                if left.stat().st_mtime < before_s:
                    left.unlink()

    def honour(self, processes: Processes, around: Surrounding | None, folder: Path) -> None:
        """Take over the ignore rules the user has outside the folder's own files."""
        environment = clean_environment() if around is None else _of_user(around)
        words = ["git", "config", "--type=path", "--get", "core.excludesFile"]
        named = processes.start(words, environment, folder).wait((0, 1, 128)).rstrip(b"\n")
        self.ignore_file = os.fsdecode(named) or None
        rules = b""
        if around is not None and around.excludes.is_file():
            rules = head_of(around.excludes, RULES_BYTES_MAX)
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
            raw = head_of(around.common_dir / "config", RULES_BYTES_MAX)
            config = raw.decode(errors="replace").lower()
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

    def store(self, kind: Literal["blob", "tree"], content: bytes) -> str:
        """Keep a small object; its name. As `hash-object -w` does, without a process for it."""
        return put_object(self.git_dir, kind, content)

    def keep(self, tree: str) -> None:
        """Let a ref of its own hold a version for good."""
        put_whole(self.git_dir, self.git_dir / "refs" / "versions" / tree, tree.encode() + b"\n")

    def keeps(self, tree: str) -> bool:
        """Whether there is one."""
        return (self.git_dir / "refs" / "versions" / tree).exists()

    def versions(self) -> frozenset[str]:
        """The names of everything that is kept."""
        try:
            return frozenset(os.listdir(self.git_dir / "refs" / "versions"))  # noqa: PTH208
        except FileNotFoundError:
            return frozenset()

    def pack(self, processes: Processes) -> None:
        """Copy what is borrowed and pack what is loose. Raises Outside."""
        # What no version names yet may belong to one that is being named beside this.
        words = ["repack", "-a", "-d", "-q", "--window=0", "--keep-unreachable"]
        self.start(processes, self.git_dir, words).wait()

    def has_many_pieces(self) -> bool:
        """Whether packing is worth it."""
        objects = self.git_dir / "objects"
        # A pack has an index beside it.
        return (
            _count(objects / LOOSE_FOLDER) * 256 > LOOSE_OBJECTS_MAX
            or _count(objects / "pack") > 2 * PACKS_MAX
        )


def _count(folder: Path) -> int:
    try:
        return len(os.listdir(folder))  # noqa: PTH208
    except FileNotFoundError:
        return 0


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
