"""Repositories of a user, for tests: made, and looked at as a whole."""

import hashlib
import os
import stat
import subprocess
from pathlib import Path

USER = {
    "GIT_AUTHOR_NAME": "user",
    "GIT_AUTHOR_EMAIL": "user@example.org",
    "GIT_COMMITTER_NAME": "user",
    "GIT_COMMITTER_EMAIL": "user@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *words: str, statuses: tuple[int, ...] = (0,)) -> str:
    """What git prints when the user runs it."""
    ran = subprocess.run(
        ["git", *words],
        cwd=folder,
        env={**os.environ, **USER},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode in statuses, ran.stderr.decode(errors="replace")
    return ran.stdout.decode(errors="replace")


def commit_all(folder: Path, message: str = "a commit") -> None:
    """Everything there is, committed."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def plain_tree(folder: Path) -> dict[bytes, tuple[str, bytes]]:
    """Every file and link below a folder with its kind and bytes, `.git` left out."""
    found = {}
    root = os.fsencode(folder)
    for where, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != b".git"]
        for name in [*files, *folders]:
            path = where + b"/" + name
            status = os.lstat(path)
            key = path[len(root) + 1 :]
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", os.readlink(path))  # noqa: PTH115
            elif stat.S_ISREG(status.st_mode):
                kind = "executable" if status.st_mode & 0o100 else "plain"
                found[key] = (kind, Path(os.fsdecode(path)).read_bytes())
    return found


def state_of_repository(top: Path) -> dict[str, str]:
    """Every file of a `.git` folder with a digest of its bytes."""
    root = top / ".git"
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
