"""Which files a search passes over: what ignore files say, by the rules of Git.

Read are `.gitignore`, `.git/info/exclude`, and the `.ignore` and `.rgignore` that search programs
know; inside a repository also those of the folders above, outside of one those of the searched
folder and below. Settings of the user's Git outside the folder count for nothing, so that the same
files give the same answer everywhere.

Promises
- Of several rules the last of the nearest file holds; `.rgignore` wins over `.ignore`, and that
  over Git's files.
- What lies below an ignored folder is ignored, whatever a rule says of it.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pi_rpc.tools.globbing import glob_regex, is_anywhere

IGNORE_BYTES_MAX = 1024 * 1024
"""More of one ignore file is not read."""

_OWN = (".rgignore", ".ignore")
_GIT = ".gitignore"


class Rule(msgspec.Struct, frozen=True):
    """One line of an ignore file."""

    fits: re.Pattern[str]
    only_folders: bool
    is_ignored: bool
    """False for a line that takes an exception back."""


class Rules(msgspec.Struct, frozen=True):
    """One ignore file; its patterns speak of paths below its folder."""

    folder: str
    rules: Sequence[Rule]

    def says(self, path: str, is_folder: bool) -> bool | None:
        """Whether it wants a path ignored; None when it says nothing of it."""
        below = path[len(self.folder) :].lstrip("/")
        for rule in reversed(self.rules):
            if (is_folder or not rule.only_folders) and rule.fits.match(below):
                return rule.is_ignored
        return None


class Ignoring(msgspec.Struct, frozen=True):
    """What holds in one folder: the rules of its own files, and those of the folders above."""

    own: tuple[tuple[Rules, ...], ...]
    """For each kind of file that search programs know, the nearest first; empty for none."""
    git: tuple[Rules, ...]

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        """Whether a path in this folder is passed over."""
        for kind in (*self.own, self.git):
            for rules in kind:
                said = rules.says(path, is_folder)
                if said is not None:
                    return said
        return False

    def entered(self, folder: str) -> "Ignoring":
        """What holds in a folder below."""
        own = tuple(
            (*_rules_in(folder, name), *above) for name, above in zip(_OWN, self.own, strict=False)
        )
        here = (*_rules_in(folder, _GIT), *_excluded_in(folder))
        # A repository knows nothing of the one around it.
        above = () if _is_repository(folder) else self.git
        return Ignoring(own, (*here, *above))


NOTHING_IGNORED = Ignoring(((),) * len(_OWN), ())
ONLY_GIT = Ignoring((), ())
"""The same where search programs' own files count for nothing."""


def ignoring_above(folder: Path, found: Ignoring = NOTHING_IGNORED) -> Ignoring:
    """What the folders above a searched one say: nothing, unless it is part of a repository."""
    if is_in_repository(folder):
        for above in reversed(folder.parents):
            found = found.entered(str(above))
    return found


def is_in_repository(folder: Path) -> bool:
    """Whether a folder belongs to a repository of Git."""
    return any(_is_repository(str(one)) for one in (folder, *folder.parents))


def rules_from(text: str, folder: str, ignore_case: bool = False) -> Rules:
    """The rules of an ignore file's text."""
    return Rules(
        folder, [rule for line in text.split("\n") for rule in _rules_of(line, ignore_case)]
    )


def _rules_of(line: str, ignore_case: bool) -> Iterator[Rule]:
    line = line.removesuffix("\r")
    if line.startswith("#"):
        return
    # Blanks at the end count only where a backslash stands before them.
    line = re.sub(r"(?<!\\)(?:(?<!\\) )+\Z", "", line)
    is_ignored = not line.startswith("!")
    line = line.removeprefix("!")
    only_folders = line.endswith("/")
    anywhere = is_anywhere(line)
    pattern = line.removesuffix("/").removeprefix("/")
    if not pattern:
        return
    try:
        fits = glob_regex(f"**/{pattern}" if anywhere else pattern, ignore_case)
    except ValueError:
        return
    yield Rule(fits, only_folders, is_ignored)


def _rules_in(folder: str, name: str) -> tuple[Rules, ...]:
    path = os.path.join(folder, name)  # noqa: PTH118
    try:
        raw = _head_of(path)
    except OSError:
        return ()
    text = os.fsdecode(raw.removeprefix(b"\xef\xbb\xbf"))
    return (rules_from(text, folder),)


def _head_of(path: str) -> bytes:
    # A pipe with nobody at its other end would keep an open waiting for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        # A regular file gives all that was asked for, or all it has.
        return os.read(descriptor, IGNORE_BYTES_MAX)
    finally:
        os.close(descriptor)


def _excluded_in(folder: str) -> tuple[Rules, ...]:
    found = _rules_in(os.path.join(folder, ".git", "info"), "exclude")  # noqa: PTH118
    return tuple(Rules(folder, one.rules) for one in found)


def _is_repository(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, ".git"))  # noqa: PTH118
