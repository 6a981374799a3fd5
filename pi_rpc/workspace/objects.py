"""Small objects and refs written as git writes them, without a process for each."""

import hashlib
import os
import secrets
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pi_rpc.core.errors import Outside

UNFINISHED = "tmp_obj_"
"""How git begins the names of objects it has not finished; it passes over and clears them."""
MOVES_MAX = 10
"""How often a finished object is put into a folder that goes away."""


def put_object(git_dir: Path, kind: Literal["blob", "tree"], content: bytes) -> str:
    """Keep an object; its name. As `hash-object -w` does. Raises Outside, OSError."""
    whole = b"%s %d\0%s" % (kind.encode(), len(content), content)
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    put_whole(git_dir, git_dir / "objects" / name[:2] / name[2:], zlib.compress(whole, 1))
    return name


def put_whole(git_dir: Path, path: Path, content: bytes) -> None:
    """Write a file of the repository that is not there yet, whole or not at all.

    Raises Outside `store_broken`, OSError.
    """
    if path.exists():
        return
    unfinished = git_dir / "objects" / f"{UNFINISHED}{secrets.token_hex(8)}"
    try:
        with unfinished.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _move(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _move(source: Path, path: Path) -> None:
    # A packing that goes on beside this removes folders it has emptied.
    for _ in range(MOVES_MAX):
        path.parent.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            source.replace(path)
            return
    raise Outside("store_broken", f"{path.parent} goes away", retryable=True, path=str(path))
