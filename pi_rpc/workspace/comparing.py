"""Two versions kept by git, held against each other."""

import re
from collections.abc import Iterator, Sequence

from pi_rpc.core.errors import Missing
from pi_rpc.core.paths import text_of_path
from pi_rpc.core.ports.workspace import FileDiff, LeftOut, PathChange, PathChangeKind
from pi_rpc.workspace.left_out import decode_left_out, left_out_changes
from pi_rpc.workspace.process import Processes
from pi_rpc.workspace.repository import Repository, names
from pi_rpc.workspace.taking import VERSION_PREFIX

VERSION = re.compile(r"git:[0-9a-f]{40}")
PATCH_BYTES_MAX = 1024 * 1024
"""How long all patches of a diff may be together; later files have none."""

_KINDS: dict[str, PathChangeKind] = {"A": "added", "D": "removed"}


class Comparing:
    """Comparisons of one act."""

    def __init__(self, repository: Repository, processes: Processes) -> None:
        self._repository = repository
        self._processes = processes

    def _git(self, *words: str, given: bytes = b"") -> bytes:
        cwd = self._repository.git_dir.parent
        return self._repository.start(self._processes, cwd, words, given).wait()

    def changes(self, one: str, other: str) -> list[PathChange]:
        """What differs from one to the other. Raises Missing `version_not_found`, Outside."""
        changes = self._raw(self._files(one, other))
        return left_out_changes(changes, self._left_out_of(one), self._left_out_of(other))

    def _raw(self, pair: list[str]) -> list[PathChange]:
        words = ["diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev"]
        return list(_raw_changes(self._git(*words, *pair)))

    def _files(self, *versions: str) -> list[str]:
        """The trees of files of these versions."""
        trees = [f"{version.removeprefix(VERSION_PREFIX)}:files" for version in versions]
        told: list[bytes] = []
        if self._repository.exists:
            given = "".join(f"{tree}\n" for tree in trees).encode()
            words = ["cat-file", "--batch-check=%(objecttype)"]
            told = self._git(*words, given=given).split(b"\n")[:-1]
        for place, version in enumerate(versions):
            if told[place : place + 1] != [b"tree"] or not VERSION.fullmatch(version):
                raise Missing("version_not_found", f"{version!r} is not kept here", version=version)
        return trees

    def _left_out_of(self, version: str) -> list[LeftOut]:
        given = f"{version.removeprefix(VERSION_PREFIX)}:left_out\n".encode()
        told, _, rest = self._git("cat-file", "--batch", given=given).partition(b"\n")
        return [] if told.endswith(b" missing") else decode_left_out(rest[:-1])

    def diffs(self, one: str, other: str, patches: bool) -> list[FileDiff]:
        """As `changes`, with lines counted and, if wanted, patches."""
        changes = self.changes(one, other)
        pair = self._files(one, other)
        plain = ["diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv"]
        counts: dict[str, tuple[int | None, int | None]] = {}
        for line in names(self._git(*plain, "-z", "--numstat", *pair)):
            added, removed, path = line.split(b"\t", 2)
            counts[text_of_path(path)] = (_number(added), _number(removed))
        texts: dict[str, str] = {}
        if patches:
            out = self._git(*plain, "-p", "--no-color", *pair)
            texts = dict(_patches(out, self._raw(pair)))
        return [
            FileDiff(
                change.path,
                change.change,
                *counts.get(change.path, (None, None)),
                texts.get(change.path),
            )
            for change in changes
        ]


def _raw_changes(out: bytes) -> Iterator[PathChange]:
    told = iter(out.split(b"\0")[:-1])
    for facts, path in zip(told, told, strict=False):
        old_mode, mode, old_name, name, status = facts[1:].decode().split(" ")
        yield PathChange(
            path=text_of_path(path),
            change=_KINDS.get(status, "modified"),
            before=None if status == "A" else f"{old_mode}:{old_name}",
            after=None if status == "D" else f"{mode}:{name}",
        )


def _number(count: bytes) -> int | None:
    return int(count) if count.isdigit() else None


def _patches(out: bytes, changes: Sequence[PathChange]) -> Iterator[tuple[str, str]]:
    """The patch of each change: git prints them in the same order, a change of type as two."""
    parts = (b"\n" + out).split(b"\ndiff --git ")[1:]
    place, total = 0, 0
    for change in changes:
        modes = [state.partition(":")[0][:2] for state in (change.before, change.after) if state]
        count = 2 if len(set(modes)) == 2 else 1
        text = b"\n".join(b"diff --git " + part for part in parts[place : place + count])
        place += count
        total += len(text)
        if total <= PATCH_BYTES_MAX:
            yield change.path, text.decode(errors="replace").rstrip("\n") + "\n"
