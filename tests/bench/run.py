"""Measures ours and Pi in turn in one run and prints ratios; it asserts no time.

    .venv/bin/python tests/bench/run.py [--runs N] [--only NAME,...] [--entries N] [--side ours|Pi]

NAME is a section (start, listing, open, history, prompt, tree, latency, compact, deltas) or a row.
Pi is measured when PI_HOME and NODE say where it is (README.md). The table goes to
results/latest.md, all runs to latest.json.
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
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from model_server import model_server
from net import LOOP_TURNS, NET_WORDS, loop_turn_ms, net_driver, stream_cost
from ours import Ours
from peer import CLI, Peer, PeerPlace, list_sessions, seconds_to_plan
from sessions import SessionFile, write_session, write_sessions

HERE = Path(__file__).resolve().parent
COMMAND = HERE.parents[1] / ".venv/bin/pi-rpc"
PROMPTS, CALLS, PIPELINED, WORDS = 8, 1_000, 10_000, 200_000
LISTED, LISTED_ENTRIES, QUESTIONS = 1_000, 100, 5


@dataclass(frozen=True)
class Row:
    """One thing measured.

    ``at_most`` bounds the ratio ours / Pi, ``at_least`` and ``no_more`` bound our own figure.
    """

    name: str
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    no_more: float | None = None


SECTIONS = {
    "start": [
        Row("cold_start", "s", 0.4),
        Row("cold_memory", "MiB", 0.4),
        Row("cold_session", "s"),
    ],
    "listing": [
        Row("list_cold", "s", 0.3),
        Row("list_warm", "s", 0.02),
        Row("list_again", "s", 0.02),
        Row("list_memory", "MiB", 0.2),
    ],
    "open": [
        Row("open_first", "s", 0.2),
        Row("open_first_to_scan", "times", no_more=3),
        Row("open_first_cpu", "s"),
        Row("open_again", "s", 0.02),
        Row("open_peak_memory", "MiB", 0.25),
    ],
    "history": [
        Row("entries_since", "ms", 0.1),
        Row("stats_first", "ms"),
        Row("stats", "ms", 0.05),
        Row("entries_all", "s", 0.5),
    ],
    "prompt": [
        Row("prompt_first", "ms"),
        Row("prompt", "ms", 0.15),
        Row("clone", "s", 0.1),
        Row("fork", "s", 0.1),
    ],
    "tree": [Row("tree_1500", "ms"), Row("tree_2500", "ms"), Row("tree_whole", "ms")],
    "latency": [Row("pipelined", "s", 0.7), Row("sequential_p50", "us", 0.7)],
    "compact": [
        Row("plan", "ms", 0.1),
        Row("plan_files", "ms"),
        Row("compact", "s", 0.3),
        Row("compact_memory", "MiB"),
    ],
    "deltas": [Row("deltas", "1/s", at_least=80_000)],
    "streamed": [Row("net_deltas", "1/s"), Row("net_cpu", "us a delta", 0.5)],
    "loop": [Row("loop_turn", "ms", 0.7), Row("loop_turn_unsynced", "ms", 0.7)],
}


class Bench:
    """Measures one section of one side at a time, and keeps what it measured."""

    def __init__(self, root: Path, place: PeerPlace | None, entries: int, model_url: str) -> None:
        self.root = root
        self.place = place
        self.model_url = model_url
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
                # What answers first may be only a part of what is loaded in the end.
                driver.new_session()
                self.add("cold_memory", side, driver.process.peak_memory_mb())
                self.add("cold_session", side, time.perf_counter() - begun)

    def listing(self, side: str) -> None:
        with self.folder() as home:
            sessions = home / "sessions" / f"-{str(self.workspace).replace('/', '-')}--"
            sessions.mkdir(parents=True)
            write_sessions(sessions, LISTED, LISTED_ENTRIES, self.workspace)
            if side == "ours":
                counts, times, memory_mb = self._list_ours(home)
            else:
                assert self.place is not None
                count, times, memory_mb = list_sessions(home, self.place)
                # It keeps nothing, so a new process is as good as the same.
                counts, times = {count}, [*times, times[-1]]
        if counts != {LISTED}:
            raise RuntimeError(f"{counts} sessions of {LISTED} were listed")
        for row, value in zip(("list_cold", "list_warm", "list_again"), times, strict=True):
            self.add(row, side, value)
        self.add("list_memory", side, memory_mb)

    def _list_ours(self, home: Path) -> tuple[set[int], list[float], float]:
        counts, times = set(), []

        def listed(driver: Ours) -> None:
            begun = time.perf_counter()
            counts.add(driver.list_sessions())
            times.append(time.perf_counter() - begun)

        with self.driver_at("ours", home, words=0) as first:
            assert isinstance(first, Ours)
            first.request("daemon/status")
            listed(first)
            memory_mb = first.process.peak_memory_mb()
        with self.driver_at("ours", home, words=0) as second:
            assert isinstance(second, Ours)
            # The first answer beyond the handshake waits for what is loaded after it.
            second.request("daemon/status")
            listed(second)
            listed(second)
        return counts, times, memory_mb

    def open(self, side: str) -> None:
        with self.folder() as folder:
            file = _copy(self.session(self.entries, "compacted"), folder)
            with self.driver(side, folder) as driver:
                before_s = driver.process.cpu_s()
                took_s = _seconds(lambda: driver.open(file))
                self.add("open_first", side, took_s)
                if side == "ours":
                    scan_s = _seconds(lambda: _line_ends(file))
                    self.add("open_first_to_scan", side, took_s / scan_s)
                self.add("open_first_cpu", side, driver.process.cpu_s() - before_s)
                self.add("open_peak_memory", side, driver.process.peak_memory_mb())
            with self.driver(side, folder) as again:
                self.add("open_again", side, _seconds(lambda: again.open(file)))

    def history(self, side: str) -> None:
        session = self.session(self.entries, "compacted")
        with self.folder() as folder, self.driver(side, folder) as driver:
            driver.open(_copy(session, folder))
            for _ in range(QUESTIONS):
                took_s = _seconds(lambda: driver.entries_since(session.last_id))
                self.add("entries_since", side, took_s * 1e3)
            for row in ["stats_first"] + ["stats"] * QUESTIONS:
                self.add(row, side, _seconds(driver.stats) * 1e3)
            begun = time.perf_counter()
            size = driver.entries()
            self.add("entries_all", side, time.perf_counter() - begun)
            self.notes["entries_all"][side] = f"{size:,} bytes"

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

    def compact(self, side: str) -> None:
        with self.folder() as folder:
            file = _copy(self.session(self.entries, "linear"), folder)
            if side == "Pi":
                assert self.place is not None
                took_s, count = seconds_to_plan(self.place, file)
                self.add("plan", side, took_s * 1e3)
                self.add("plan_files", side, took_s * 1e3)
                self.notes["plan"][side] = f"{count:,} to summarise; its planner alone, no command"
            # Each from a process that has only opened the file.
            for row in ("plan", "plan_files") if side == "ours" else ():
                with self.driver(side, folder) as driver:
                    driver.open(file)
                    assert isinstance(driver, Ours)
                    begun = time.perf_counter()
                    count = driver.plan(with_files=row == "plan_files")
                    self.add(row, side, (time.perf_counter() - begun) * 1e3)
                    self.notes[row][side] = f"{count:,} to summarise; asked over the wire"
            with self.driver(side, folder) as driver:
                driver.open(file)
                self.add("compact", side, _seconds(driver.compact))
                self.add("compact_memory", side, driver.process.peak_memory_mb())

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

    @contextmanager
    def net(self, side: str, folder: Path) -> Iterator[Ours | Peer]:
        """A fresh process whose model is behind HTTP, and which has answered once."""
        place = None if side == "ours" else self.place
        driver = net_driver(folder, self.workspace, COMMAND, self.model_url, place)
        try:
            yield driver
        finally:
            driver.close()

    def streamed(self, side: str) -> None:
        with self.folder() as folder, self.net(side, folder) as driver:
            rate, cpu_us = stream_cost(driver)
            self.add("net_deltas", side, rate)
            self.add("net_cpu", side, cpu_us)
            self.notes["net_deltas"][side] = f"{NET_WORDS:,} deltas"

    def loop(self, side: str) -> None:
        with self.folder() as folder, self.net(side, folder) as driver:
            value = loop_turn_ms(driver)
            self.add("loop_turn", side, value)
        if side == "Pi":
            # It never syncs, so one measurement stands against both of ours.
            self.add("loop_turn_unsynced", side, value)
            return
        with self.folder() as folder:
            unsynced = {"compaction": {"enabled": False}, "piRpc": {"durability": "off"}}
            (folder / "settings.json").write_text(json.dumps(unsynced))
            with self.net(side, folder) as driver:
                self.add("loop_turn_unsynced", side, loop_turn_ms(driver))
            self.notes["loop_turn"][side] = f"{LOOP_TURNS} turns"


def _copy(session: SessionFile, folder: Path) -> Path:
    """A copy in a folder of its own, on the disk before anything is measured."""
    path = Path(tempfile.mkdtemp(dir=folder)) / session.path.name
    shutil.copyfile(session.path, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return path


def _line_ends(path: Path) -> array[int]:
    """Where the lines of a file end, found as Python reads lines."""
    ends, offset = array("Q"), 0
    with path.open("rb") as file:
        for line in file:
            offset += len(line)
            ends.append(offset)
    return ends


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
        if row.no_more:
            asked, met = f"≤ {row.no_more} alone", ours <= row.no_more if ours else None
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
        bench = Bench(Path(root), place, options.entries, url)
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
