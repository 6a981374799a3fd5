"""What naming a state of the files costs, beside plain git doing the same on an index of its own.

    python tests/bench/versions.py [FILES ...]

For each size of folder (10000 and 50000 unless told otherwise): the first version, an unchanged
folder beside a plain walk that stats every file, and 1, 3 and 100 changed files. Each row is the
median of several rounds, ours and the other taken in turn: the time, and the CPU time with that of
all processes, which says more on a busy machine.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import anyio

from pi_rpc.core.ports.workspace import Workspace
from pi_rpc.core.version_limits import VersionLimits
from pi_rpc.workspace.choose import choose_workspaces

SIZES = (10_000, 50_000)
ROUNDS = 7
FIRST_ROUNDS = 2
FILES_PER_FOLDER = 50
LIMITS = VersionLimits(first_s=600, next_s=60)


class Plain:
    """`git add -A && git write-tree`, in a repository and on an index of its own."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._folder = folder
        self._environment = os.environ | {
            "GIT_DIR": str(home),
            "GIT_WORK_TREE": str(folder),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        subprocess.run(["git", "init", "-q", "--bare", str(home)], check=True)

    def _git(self, *words: str) -> None:
        subprocess.run(
            ["git", *words],
            cwd=self._folder,
            env=self._environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def name_state(self) -> None:
        """Name the present state."""
        self._git("add", "-A")
        self._git("write-tree")


def fill(folder: Path, count: int) -> list[Path]:
    """So many small files, as in a project of many folders."""
    paths = []
    for number in range(count):
        place = number // FILES_PER_FOLDER
        path = folder / f"part{place % 20}" / f"group{place}" / f"file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"value = {number}\n" * 40)
        paths.append(path)
    return paths


def walk(folder: Path) -> None:
    """Look at every file and read none."""
    waiting = [os.fspath(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)


class Cost(NamedTuple):
    """What one act took, its processes included."""

    wall_s: float
    cpu_s: float


def row(name: str, ours: list[Cost], other: list[Cost]) -> None:
    told = [name]
    for part in range(len(Cost._fields)):
        mine, theirs = (statistics.median(one[part] for one in all_) for all_ in (ours, other))
        told += [f"{mine * 1000:.1f}", f"{theirs * 1000:.1f}", f"{mine / theirs:.2f}"]
    sys.stdout.write(f"| {' | '.join(told)} |\n")
    sys.stdout.flush()


def now() -> Cost:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Cost(time.perf_counter(), sum(one.ru_utime + one.ru_stime for one in used))


async def timed(act: Callable[[], Awaitable[object]]) -> Cost:
    started = now()
    await act()
    ended = now()
    return Cost(ended.wall_s - started.wall_s, ended.cpu_s - started.cpu_s)


async def plainly(act: Callable[[], None]) -> Cost:
    async def apart() -> None:
        await anyio.to_thread.run_sync(act)

    return await timed(apart)


async def first_times(folder: Path, top: Path) -> tuple[list[Cost], list[Cost]]:
    """First versions of a folder, each in a store of its own; whoever begins changes."""
    walk(folder)
    ours, gits = [], []
    for turn in range(FIRST_ROUNDS):
        plain = Plain(folder, top / f"plain{turn}")
        for is_ours in (turn % 2 == 0, turn % 2 == 1):
            if not is_ours:
                gits.append(await plainly(plain.name_state))
                continue
            async with anyio.create_task_group() as tasks:
                workspaces = choose_workspaces(True, top / f"versions{turn}", tasks, LIMITS)
                ours.append(await timed(workspaces.of(folder).snapshot))
                # What is packed beside everything else would slow down the other.
                tasks.cancel_scope.cancel()
    return ours, gits


async def compare(
    folder: Path,
    paths: list[Path],
    workspace: Workspace,
    plain: Plain,
    first: tuple[list[Cost], list[Cost]],
) -> None:
    """All rows of one size."""
    size = f"{len(paths)} files"
    row(f"{size}, first", *first)
    # What is young may change again in the same moment, so it is read once more by both.
    await workspace.snapshot()
    plain.name_state()
    await anyio.sleep(1.1)
    await workspace.snapshot()
    plain.name_state()
    ours, walks, gits = [], [], []
    for _ in range(ROUNDS):
        ours.append(await timed(workspace.snapshot))
        walks.append(await plainly(lambda: walk(folder)))
        gits.append(await plainly(plain.name_state))
    row(f"{size}, unchanged, beside a walk", ours, walks)
    row(f"{size}, unchanged", ours, gits)
    for count in (1, 3, 100):
        ours, gits = [], []
        for turn in range(ROUNDS):
            step = len(paths) // count
            for place in range(count):
                paths[place * step].write_text(f"turn = {turn}, {count}\n" * 40)
            both = [(ours, workspace.snapshot), (gits, plain.name_state)]
            # Whoever comes second finds what the first one read still warm.
            for times, act in both if turn % 2 else both[::-1]:
                is_ours = times is ours
                times.append(await (timed(act) if is_ours else plainly(act)))  # type: ignore[arg-type]
        row(f"{size}, {count} changed", ours, gits)


async def measure(top: Path, size: int) -> None:
    """Make a folder of this size and print its rows."""
    folder = top / "work"
    paths = fill(folder, size)
    async with anyio.create_task_group() as tasks:
        workspaces = choose_workspaces(True, top / "versions", tasks, LIMITS)
        first = await first_times(folder, top)
        plain = Plain(folder, top / "plain")
        await compare(folder, paths, workspaces.of(folder), plain, first)
        tasks.cancel_scope.cancel()


def main() -> None:
    """Print the table."""
    sizes = [int(one) for one in sys.argv[1:]] or list(SIZES)
    told = [f"ours, {what} | plain, {what} | ratio" for what in ("ms", "CPU ms")]
    sys.stdout.write(f"| | {' | '.join(told)} |\n|---|---|---|---|---|---|---|\n")
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="pi-rpc-versions-") as name:
            anyio.run(measure, Path(name).resolve(), size)


if __name__ == "__main__":
    main()
