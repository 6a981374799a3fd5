"""Measures how what we do grows with a history and with their number, and draws it.

    .venv/bin/python tests/bench/growth.py [--entries 1000,10000,1000000] [--sessions 10,100,1000]

The table goes to results/growth.md, the curves to results/growth.svg: both axes logarithmic, so
that what does not depend on the length is flat and what follows it rises one to one. No time is
asserted.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import log10
from pathlib import Path
from statistics import median

from ours import Ours
from sessions import SessionFile, write_session, write_sessions

HERE = Path(__file__).resolve().parent
COMMAND = HERE.parents[1] / ".venv/bin/pi-rpc"
REPEATS = 7
SESSION_ENTRIES = 100
WIDTH, HEIGHT, STEP = 460, 360, 710

Curves = dict[str, list[float | None]]
"""Milliseconds (or MiB) by what was done, one for each size."""


def measured(act: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median of some repeats, in milliseconds."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        act()
        times.append((time.perf_counter() - begun) * 1e3)
    return median(times)


class Daemon:
    """A daemon in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.sessions = folder / "sessions" / f"-{str(self.workspace).replace('/', '-')}--"
        self.workspace.mkdir(exist_ok=True)
        self.sessions.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Ours:
        self.ours = Ours(self.folder, self.workspace, COMMAND, 1)
        self.ours.begin()
        # The first answer beyond the handshake waits for what is loaded after it.
        self.ours.request("daemon/status")
        return self.ours

    def __exit__(self, *_: object) -> None:
        self.ours.close()


def by_entries(sizes: Sequence[int]) -> Curves:
    """What one history costs by its length."""
    curves: Curves = {}

    def note(name: str, value: float) -> None:
        curves.setdefault(name, []).append(value)

    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            daemon = Daemon(Path(name))
            file = write_session(daemon.sessions / "one.jsonl", size, "compacted", daemon.workspace)
            with daemon as ours:
                note("open first, ms", measured(partial(ours.open, file.path), 1))
            with daemon as ours:
                before = ours.process.memory_mb()
                note("open again, ms", measured(partial(ours.open, file.path), 1))
                note("memory of an open session, MiB", ours.process.memory_mb() - before)
                ours.request("session/rename", sessionId=ours.session_id, name="first")
                note("append, ms", measured(partial(_rename, ours)))
                ours.prompt("Say 1 words.")
                note("prompt, ms", measured(partial(ours.prompt, "Say 1 words.")))
                note("last 20 of the path, ms", measured(partial(_read, ours)))
                note("entries since the last, ms", measured(partial(_since, ours)))
                note("stats first, ms", measured(ours.stats, 1))
                note("stats again, ms", measured(ours.stats))
                note("context usage, ms", measured(partial(_usage, ours)))
                note("navigate and back, ms", measured(partial(_navigate, ours, file)))
                note("page of the tree, ms", measured(partial(_page, ours, file)))
                note("branches, ms", measured(partial(_branches, ours)))
                note("fork, ms", measured(partial(ours.fork, file.last_user_id), 1))
    return curves


def _rename(ours: Ours) -> None:
    ours.request("session/rename", sessionId=ours.session_id, name=str(time.perf_counter()))


def _read(ours: Ours) -> None:
    ours.request("session/read", sessionId=ours.session_id, limit=20)


def _since(ours: Ours) -> None:
    leaf_id = ours.request("session/state", sessionId=ours.session_id)["leafId"]
    ours.request("session/entries", sessionId=ours.session_id, since=leaf_id)


def _usage(ours: Ours) -> None:
    ours.request("context/usage", sessionId=ours.session_id)


def _navigate(ours: Ours, file: SessionFile) -> None:
    for target_id in (file.last_user_id, file.last_id):
        ours.request("branch/navigate", sessionId=ours.session_id, targetId=target_id)


def _page(ours: Ours, file: SessionFile) -> None:
    asked = {"sessionId": ours.session_id, "root": file.last_user_id}
    ours.request("session/tree", **asked, depth=2, limit=20)


def _branches(ours: Ours) -> None:
    ours.request("branch/list", sessionId=ours.session_id, limit=5)


def by_sessions(counts: Sequence[int]) -> Curves:
    """What many histories cost by their number."""
    curves: Curves = {}

    def note(name: str, value: float) -> None:
        curves.setdefault(name, []).append(value)

    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            daemon = Daemon(Path(name))
            write_sessions(daemon.sessions, count, SESSION_ENTRIES, daemon.workspace)
            with daemon as ours:
                note("list cold, ms", measured(partial(ours.request, "session/list"), 1))
                note("list again, ms", measured(partial(ours.request, "session/list")))
                note("memory after a list, MiB", ours.process.peak_memory_mb())
            with daemon as ours:
                note("list by a new daemon, ms", measured(partial(ours.request, "session/list"), 1))
                note("first search, ms", measured(partial(_search, ours), 1))
                note("search again, ms", measured(partial(_search, ours)))
                note("new session, ms", measured(ours.new_session))
    return curves


def _search(ours: Ours) -> None:
    ours.request("session/search", query="lease socket")


def table(title: str, sizes: Sequence[int], curves: Curves) -> str:
    """The figures as a Markdown table."""
    lines = [f"| {title} | " + " | ".join(f"{size:,}" for size in sizes) + " |"]
    lines.append("|---" * (len(sizes) + 1) + "|")
    for name, values in curves.items():
        shown = " | ".join("" if value is None else f"{value:.3g}" for value in values)
        lines.append(f"| {name} | {shown} |")
    return "\n".join(lines) + "\n"


def drawing(panels: Sequence[tuple[str, Sequence[int], Curves]]) -> str:
    """The curves as SVG, a panel for each question."""
    total = STEP * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{HEIGHT + 90}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, (title, sizes, curves) in enumerate(panels):
        left = 60 + number * STEP
        parts.append(f'<text x="{left}" y="22" font-size="14">{title}</text>')
        parts += _panel(left, 40, sizes, curves)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(left: int, top: int, sizes: Sequence[int], curves: Curves) -> list[str]:
    width, height = WIDTH, HEIGHT
    values = [value for each in curves.values() for value in each if value and value > 0]
    low, high = int(log10(min(values)) - 1), int(log10(max(values)) + 1)
    first, last = log10(sizes[0]), log10(sizes[-1]) if len(sizes) > 1 else log10(sizes[0]) + 1

    def x(size: float) -> float:
        return left + (log10(size) - first) / (last - first) * width

    def y(value: float) -> float:
        return top + height - (log10(value) - low) / (high - low) * height

    parts = [
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>'
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<path d="M{left} {at:.1f}h{width}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
        )
    for size in sizes:
        parts.append(
            f'<text x="{x(size):.1f}" y="{top + height + 16}" text-anchor="middle">{size:,}</text>'
        )
    for number, (name, told) in enumerate(curves.items()):
        colour = f"hsl({number * 360 // len(curves)} 70% 40%)"
        points = [
            (x(size), y(value))
            for size, value in zip(sizes, told, strict=True)
            if value and value > 0
        ]
        line = " ".join(f"{at:.1f},{value:.1f}" for at, value in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        at = f'x="{left + width + 8}" y="{top + 14 + number * 16}"'
        parts.append(f'<text {at} fill="{colour}">{name}</text>')
    return parts


def numbers(text: str) -> list[int]:
    """Sizes from a flag."""
    return [int(each) for each in text.split(",")]


def main() -> None:
    """Measure, write, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=numbers, default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--sessions", type=numbers, default=[10, 100, 1_000])
    chosen = parser.parse_args()
    panels = [
        ("entries of a session", chosen.entries, by_entries(chosen.entries)),
        (f"sessions of {SESSION_ENTRIES} entries", chosen.sessions, by_sessions(chosen.sessions)),
    ]
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    tables = "\n".join(table(*panel) for panel in panels)
    about = f"Written by `tests/bench/growth.py` on {os.cpu_count()} cores; medians of {REPEATS}.\n"
    (results / "growth.md").write_text(f"# Growth\n\n{about}\n{tables}", encoding="utf-8")
    (results / "growth.svg").write_text(drawing(panels), encoding="utf-8")
    print(tables)


if __name__ == "__main__":
    main()
