"""Measures ours and Pi in turn in one run and prints ratios; it asserts no time.

    .venv/bin/python tests/bench/run.py [--runs N] [--only NAME,...] [--entries N] [--side ours|Pi]

NAME is a section (start, open, prompt, tree, latency, deltas) or a row. Pi is measured when PI_HOME
and NODE say where it is (README.md). The table goes to results/latest.md, all runs to latest.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from model_server import model_server
from ours import Ours
from peer import CLI, Peer, PeerPlace
from sessions import SessionFile, write_session

HERE = Path(__file__).resolve().parent
COMMAND = HERE.parents[1] / ".venv/bin/pi-rpc"
PROMPTS, CALLS, PIPELINED, WORDS = 8, 1_000, 10_000, 200_000


@dataclass(frozen=True)
class Row:
    """One thing measured; ``at_most`` bounds the ratio ours / Pi, ``at_least`` our own figure."""

    name: str
    unit: str
    at_most: float | None = None
    at_least: float | None = None


SECTIONS = {
    "start": [Row("cold_start", "s", 0.4), Row("cold_memory", "MiB", 0.4)],
    "open": [
        Row("open_first", "s", 0.2),
        Row("open_first_cpu", "s"),
        Row("open_again", "s", 0.02),
        Row("open_peak_memory", "MiB", 0.25),
    ],
    "prompt": [
        Row("prompt_first", "ms"),
        Row("prompt", "ms", 0.15),
        Row("clone", "s", 0.1),
        Row("fork", "s", 0.1),
    ],
    "tree": [Row("tree_1500", "ms"), Row("tree_2500", "ms"), Row("tree_whole", "ms")],
    "latency": [Row("pipelined", "s", 0.7), Row("sequential_p50", "us", 0.7)],
    "deltas": [Row("deltas", "1/s", at_least=80_000)],
}


class Bench:
    """Measures one section of one side at a time, and keeps what it measured."""

    def __init__(self, root: Path, place: PeerPlace | None, entries: int) -> None:
        self.root = root
        self.place = place
        self.entries = entries
        self.workspace = root / "workspace"
        self.workspace.mkdir()
        self.values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.notes: dict[str, dict[str, str]] = defaultdict(dict)
        self._files: dict[tuple[int, str], SessionFile] = {}

    def add(self, row: str, side: str, value: float) -> None:
        self.values[row][side].append(value)

    def session(self, entries: int, shape: str) -> SessionFile:
        """A session file to copy, written on first use."""
        if (entries, shape) not in self._files:
            path = self.root / f"{shape}-{entries}.jsonl"
            self._files[entries, shape] = write_session(path, entries, shape, self.workspace)
        return self._files[entries, shape]

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A folder for one measurement, removed after it."""
        with tempfile.TemporaryDirectory(dir=self.root) as path:
            yield Path(path)

    @contextmanager
    def driver(self, side: str, folder: Path, words: int = 1) -> Iterator[Ours | Peer]:
        """A fresh process of that side that has given its first answer, in a home of its own."""
        with self.driver_at(side, Path(tempfile.mkdtemp(dir=folder)), words) as driver:
            yield driver

    @contextmanager
    def driver_at(self, side: str, home: Path, words: int) -> Iterator[Ours | Peer]:
        """A fresh process of that side in this home; without `words` nothing is scripted."""
        if side == "ours":
            driver: Ours | Peer = Ours(home, self.workspace, COMMAND, words)
        else:
            assert self.place is not None
            driver = Peer(home, self.workspace, self.place)
        try:
            driver.begin()
            yield driver
        finally:
            driver.close()

    def start(self, side: str) -> None:
        with self.folder() as home:
            # What a first start leaves behind for the next ones (compiled code, settings found
            # sound) counts for neither side.
            with self.driver_at(side, home, words=0):
                pass
            begun = time.perf_counter()
            with self.driver_at(side, home, words=0) as driver:
                self.add("cold_start", side, time.perf_counter() - begun)
                self.add("cold_memory", side, driver.process.peak_memory_mb())

    def open(self, side: str) -> None:
        with self.folder() as folder:
            file = _copy(self.session(self.entries, "compacted"), folder)
            with self.driver(side, folder) as driver:
                before_s = driver.process.cpu_s()
                self.add("open_first", side, _seconds(lambda: driver.open(file)))
                self.add("open_first_cpu", side, driver.process.cpu_s() - before_s)
                self.add("open_peak_memory", side, driver.process.peak_memory_mb())
            with self.driver(side, folder) as again:
                self.add("open_again", side, _seconds(lambda: again.open(file)))

    def prompt(self, side: str) -> None:
        session = self.session(self.entries, "compacted")
        with self.folder() as folder, self.driver(side, folder) as driver:
            file = _copy(session, folder)
            driver.open(file)
            for row in ["prompt_first"] + ["prompt"] * PROMPTS:
                self.add(row, side, _seconds(lambda: driver.prompt("Say 1 words.")) * 1e3)
            self.add("clone", side, _seconds(driver.clone))
            driver.open(file)
            self.add("fork", side, _seconds(lambda: driver.fork(session.last_user_id)))

    def tree(self, side: str) -> None:
        for row, depth in [("1500", 1_500), ("2500", 2_500), ("whole", self.entries)]:
            session = self.session(depth, "linear")
            with self.folder() as folder, self.driver(side, folder) as driver:
                driver.open(_copy(session, folder))
                begun = time.perf_counter()
                try:
                    nodes = driver.tree()
                except RuntimeError as error:
                    self.notes[f"tree_{row}"][side] = str(error)
                    continue
                self.add(f"tree_{row}", side, (time.perf_counter() - begun) * 1e3)
                if nodes < session.entries:
                    self.notes[f"tree_{row}"][side] = f"{nodes} nodes of {session.entries}"

    def latency(self, side: str) -> None:
        with self.folder() as folder, self.driver(side, folder) as driver:
            driver.new_session()
            request, process = driver.state_request, driver.process

            def call() -> None:
                process.write(request)
                while not driver.answers(process.line()):
                    pass

            self.add("sequential_p50", side, median(_seconds(call) for _ in range(CALLS)) * 1e6)
            begun = time.perf_counter()
            process.pour(request * PIPELINED, PIPELINED, driver.answers)
            self.add("pipelined", side, time.perf_counter() - begun)

    def deltas(self, side: str) -> None:
        with self.folder() as folder, self.driver(side, folder, WORDS) as driver:
            driver.new_session()
            begun = time.perf_counter()
            output = driver.stream(WORDS)
            took_s = time.perf_counter() - begun
            if (words := driver.words_in(output)) != WORDS:
                raise RuntimeError(f"{words} deltas of {WORDS} came")
            self.add("deltas", side, WORDS / took_s)
            self.notes["deltas"][side] = f"{WORDS:,} deltas, {len(output) / WORDS:.0f} bytes each"


def _copy(session: SessionFile, folder: Path) -> Path:
    """A copy in a folder of its own, on the disk before anything is measured."""
    path = Path(tempfile.mkdtemp(dir=folder)) / session.path.name
    shutil.copyfile(session.path, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return path


def _seconds(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def measure(bench: Bench, sides: list[str], runs: int, only: set[str]) -> None:
    """Every wanted section, the sides in turn; what fails is noted and the rest goes on."""
    for section, rows in SECTIONS.items():
        if only and only.isdisjoint({section, *(row.name for row in rows)}):
            continue
        warm_up = section == "start"
        for run in range(runs + warm_up):
            for side in sides:
                print(f"{section} {run + 1} {side}", file=sys.stderr, flush=True)
                try:
                    getattr(bench, section)(side)
                except (RuntimeError, OSError, KeyError) as error:
                    bench.notes[section][side] = f"{type(error).__name__}: {error}"
        for row in rows if warm_up else []:
            for values in bench.values.get(row.name, {}).values():
                del values[0]


def table(bench: Bench) -> str:
    """The medians of every row that was measured, their ratio, and what is asked of it."""
    lines = ["| | ours | Pi | ours / Pi | asked | met |", "|---|---:|---:|---:|---:|---|"]
    for row in (row for rows in SECTIONS.values() for row in rows):
        medians = {side: median(values) for side, values in bench.values.get(row.name, {}).items()}
        ours, peer = medians.get("ours"), medians.get("Pi")
        ratio = ours / peer if ours and peer else None
        asked = f"≤ {row.at_most}" if row.at_most else ""
        met = ratio <= row.at_most if ratio and row.at_most else None
        if row.at_least:
            asked, met = f"≥ {row.at_least:,.0f}", ours >= row.at_least if ours else None
        cells = [f"{row.name}, {row.unit}", _figure(ours), _figure(peer), _figure(ratio), asked]
        cells.append("" if met is None else "yes" if met else "no")
        if medians or row.name in bench.notes:
            lines.append("| " + " | ".join(cells) + " |")
    notes = [f"- {n}, {side}: {text}" for n, by in bench.notes.items() for side, text in by.items()]
    return "\n".join([*lines, "", *notes]).rstrip() + "\n"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="sections or rows, commas between")
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--side", choices=["ours", "Pi"], help="leave the other out")
    options = parser.parse_args()
    home, node = Path(os.environ.get("PI_HOME", "")), os.environ.get("NODE", "")
    found = {"ours": COMMAND.exists(), "Pi": bool(node) and (home / CLI).exists()}
    if not found["Pi"]:
        print("Pi is left out: tests/bench/README.md says how to get it", file=sys.stderr)
    sides = [side for side in found if found[side] and options.side in (None, side)]
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bench-") as root, model_server() as url:
        place = PeerPlace(home, node, url, Path(root) / "compiled") if found["Pi"] else None
        bench = Bench(Path(root), place, options.entries)
        measure(bench, sides, options.runs, set(filter(None, options.only.split(","))))
    facts = {"runs": options.runs, "entries": options.entries, "cores": os.cpu_count()}
    facts |= {"load": round(load, 2), "python": platform.python_version()}
    about = ", ".join(f"{name} {value}" for name, value in facts.items())
    text = f"# Ours and Pi, in turn in one run\n\nMedians; {about}.\n\n{table(bench)}"
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / "latest.md").write_text(text)
    record = {**facts, "values": bench.values, "notes": bench.notes}
    (results / "latest.json").write_text(json.dumps(record, indent=1) + "\n")
    print(text)


if __name__ == "__main__":
    main()
