"""The files and folders below a folder, in one order, without what ignore files pass over.

Promises
- The order is that of the names' bytes, folder by folder, whatever the disk's.
- Hidden names come too; a `.git` is named and not entered, and links are not followed.
- A folder that cannot be read holds nothing.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from pi_rpc.tools.ignoring import Ignoring, ignoring_above

Choice = Callable[[str, bool], bool | None]
"""Whether a path (below the searched folder, and whether it is a folder) is wanted whatever ignore
files say of it, unwanted, or neither."""

FOLDERS_DEEP_MAX = 512
"""Folders deeper than this are not entered: no path of such a depth can be opened."""


def walked(folder: Path, choice: Choice | None = None) -> Iterator[tuple[str, bool]]:
    """Paths below a folder with `/` between names, and whether each is a folder."""
    root = str(folder)
    ignoring = ignoring_above(folder).entered(root)
    todo = [(ignoring, _listed(root, "", ignoring, choice))]
    while todo:
        ignoring, listed = todo[-1]
        found = next(listed, None)
        if found is None:
            todo.pop()
            continue
        path, is_folder = found
        yield found
        if is_folder and path.rpartition("/")[2] != ".git" and len(todo) < FOLDERS_DEEP_MAX:
            below = f"{root}/{path}"
            within = ignoring.entered(below)
            todo.append((within, _listed(below, f"{path}/", within, choice)))


def _listed(
    folder: str, prefix: str, ignoring: Ignoring, choice: Choice | None
) -> Iterator[tuple[str, bool]]:
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return
    for name, is_folder in sorted(found, key=lambda one: os.fsencode(one[0])):
        path = prefix + name
        wanted = None if choice is None else choice(path, is_folder)
        if wanted is None:
            wanted = not ignoring.is_ignored(f"{folder}/{name}", is_folder)
        if wanted:
            yield path, is_folder
