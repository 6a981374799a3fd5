"""Working directories: where a runtime may stand, and what to say when the folder is gone."""

import os
from pathlib import Path
from typing import Literal

import anyio

from pi_rpc.core.errors import Invalid, Missing
from pi_rpc.core.ports.store import StoredSession


def folder(cwd: str) -> Path:
    """An existing folder by its absolute name.

    Raises Invalid `cwd_not_absolute`, Missing `cwd_missing`.
    """
    path = _without_tilde(Path(cwd))
    if not path.is_absolute():
        raise Invalid("cwd_not_absolute", "a working directory needs an absolute path", path=cwd)
    if not _is_folder(path):
        raise Missing("cwd_missing", f"the folder {cwd} does not exist", path=cwd)
    # Lexical, as the session format has it: a link stays the name the user gave.
    return Path(os.path.normpath(path))


def folder_of(stored: StoredSession, mode: Literal["own", "read"], cwd: str | None) -> Path:
    """Where a stored session's runtime stands: the folder given, else the one in its header.

    Raises Missing `cwd_missing` with the choices left when it is gone and the session is to be
    owned; history can be read without its folder.
    """
    if cwd is not None:
        return folder(cwd)
    recorded = Path(stored.header.cwd or Path.cwd())
    if mode == "own" and not _is_folder(recorded):
        raise Missing(
            "cwd_missing",
            f"the session's folder {recorded} does not exist any more",
            path=str(recorded),
            sessionId=stored.header.session_id,
            sessionPath=None if stored.path is None else str(stored.path),
            choices=["open_with_cwd", "open_to_read", "fork_with_cwd"],
        )
    return recorded


def real_path(path: Path) -> Path | None:
    """The file a path leads to, `~` and links followed; None for what can be no path."""
    try:
        return Path(os.path.realpath(_without_tilde(path)))
    except ValueError:
        return None


def _without_tilde(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        # Nobody has that name, so it is one like any other.
        return path


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        # A name too long for any folder.
        return False


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, links followed."""
    return one.resolve() == other.resolve()


async def on_disk(cwd: str, paths: list[str]) -> list[tuple[str, bool]]:
    """Whether each of these names a file or folder, seen from a working directory."""
    return [(path, await anyio.Path(cwd, path).exists()) for path in paths]
