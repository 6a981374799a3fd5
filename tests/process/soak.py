"""Faults upon faults for a while; afterwards every told entry is on disk and every file is sound.

    .venv/bin/python -m tests.process.soak [--seconds 1800] [--seed N]

Each round one daemon runs a few sessions at once and meets a fault: it is killed, finds the disk
full, is read slowly, loses its reader, or another program appends to its files. What it told is
noted before, and looked for in the files after. At the end `session/check` goes over every file,
and so does Pi where PI_HOME and NODE say where it is. A jump of the clock is no fault that can be
made without the right to set the machine's.
"""

import argparse
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.process.daemons import Daemon, RefusedError

SESSIONS = 3
FILE_BYTES_MAX = 96 * 1024
"""No file grows beyond this while the disk is full: session files a little, and then no more."""
OPENS_IN_PI = Path(__file__).with_name("opens_in_pi.mjs")

WORDS = "x" * 500

SCRIPT: dict[str, Any] = {
    "replies": [
        reply
        for number in range(200)
        for reply in (
            {"text": f"thinking about {number} " * 9, "chunk": 9},
            {
                "tools": [
                    {"name": "write", "args": {"path": f"f{number % 3}", "content": "x" * 400}}
                ]
            },
            {"text": f"written {number}"},
        )
    ],
    "default": {"echo": True},
}

Told = dict[Path, dict[str, dict[str, Any]]]
"""By file and entry id, what was told: the message where it was told whole, else nothing."""


class Soak:
    """Sessions in one home, daemons that come and go, and what they told."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home = home
        self.cwd = home / "work"
        self.cwd.mkdir()
        self.chance = random.Random(seed)
        self.told: Told = {}
        self.rounds: Counter[str] = Counter()
        self._paths: dict[str, Path] = {}
        self._faults: list[Callable[[Daemon], None]] = [
            self.killed,
            self.disk_full,
            self.read_slowly,
            self.reader_gone,
            self.foreign_appends,
        ]

    def round(self) -> None:
        """A daemon, some work, one fault, and what it told looked for."""
        fault = self.chance.choice(self._faults)
        self.rounds[fault.__name__] += 1
        daemon = Daemon(self.home)
        try:
            daemon.greet()
            self._bring(daemon)
            for session_id in self._paths:
                daemon.send("agent/prompt", sessionId=session_id, text="Go on.")
            self._read_some(daemon, self.chance.randrange(1, 400))
            fault(daemon)
        finally:
            daemon.dispose()
        self._note(daemon)
        self.look()

    def _bring(self, daemon: Daemon) -> None:
        for session_id in list(self._paths):
            if self.chance.random() < 0.1:
                del self._paths[session_id]
            else:
                daemon.call("session/open", sessionId=session_id)
        while len(self._paths) < SESSIONS:
            state = daemon.call("session/new", cwd=str(self.cwd), script=SCRIPT)
            self._paths[state["sessionId"]] = Path(state["path"])
            self.told.setdefault(Path(state["path"]), {})

    @staticmethod
    def _read_some(daemon: Daemon, messages: int) -> None:
        while len(daemon.told) < messages and daemon.read_some(1.0):
            pass

    def killed(self, daemon: Daemon) -> None:
        """Ended between any two instructions."""
        daemon.signal(signal.SIGKILL)
        daemon.read_to_end()

    def disk_full(self, daemon: Daemon) -> None:
        """Every write beyond some size is refused, then the disk has room again."""
        sizes = [path.stat().st_size for path in self._paths.values()]
        limit = max(*sizes, FILE_BYTES_MAX) - self.chance.randrange(FILE_BYTES_MAX)
        hard = resource.RLIM_INFINITY
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (limit, hard))
        self._prompt_all(daemon)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        self._prompt_all(daemon)
        self._end(daemon)

    def read_slowly(self, daemon: Daemon) -> None:
        """A reader that takes a few bytes at a time, and catches up at the end."""
        assert daemon.process.stdout is not None
        source = daemon.process.stdout.fileno()
        for _ in range(self.chance.randrange(2_000)):
            if not select.select([source], [], [], 0.5)[0]:
                break
            daemon.hold(os.read(source, 64))
        self._prompt_all(daemon)
        self._end(daemon)

    def reader_gone(self, daemon: Daemon) -> None:
        """The client is gone in the middle, both its ends closed; the daemon ends by itself."""
        daemon.close_output()
        daemon.close_input()
        daemon.process.wait(60)

    def foreign_appends(self, daemon: Daemon) -> None:
        """Another program appends below the last line, whole or torn, while sessions run."""
        for path in self._paths.values():
            last = json.loads(path.read_bytes().rstrip(b"\n").split(b"\n")[-1])
            entry_id = f"{self.chance.randrange(2**32):08x}"
            entry = {"type": "session_info", "id": entry_id, "parentId": last["id"]}
            entry |= {"timestamp": "2026-01-01T00:00:00.000Z", "name": f"foreign {entry_id}"}
            with path.open("ab") as file:
                file.write(json.dumps(entry).encode() + b"\n")
            self.told[path].setdefault(entry_id, {})
        self._prompt_all(daemon)
        self._end(daemon)

    def _prompt_all(self, daemon: Daemon) -> None:
        asked = [
            daemon.send("agent/prompt", sessionId=session_id, text="And on.", whenBusy="followUp")
            for session_id in self._paths
        ]
        asked.append(daemon.send("daemon/status"))
        daemon.read_until(lambda: daemon.answers.keys() >= set(asked))

    def _end(self, daemon: Daemon) -> None:
        for session_id in self._paths:
            try:
                daemon.call("agent/abort", sessionId=session_id)
                daemon.call("session/close", sessionId=session_id)
            except RefusedError as refused:
                self.rounds[f"refused {refused.data['reason']}"] += 1
        daemon.close_input()
        daemon.read_to_end()
        daemon.process.wait(60)

    def _note(self, daemon: Daemon) -> None:
        for message in daemon.told:
            params = message["params"]
            path = self._paths.get(params.get("sessionId", ""))
            if path is None:
                continue
            if message["method"] == "entry/appended":
                self.told[path].setdefault(params["id"], {})
            elif message["method"] == "message/ended" and params.get("entryId"):
                self.told[path][params["entryId"]] = params["message"]

    def look(self) -> None:
        """Everything told of the sessions at work is in their files, as it was told."""
        for path in self._paths.values():
            stored = {}
            for line in path.read_bytes().split(b"\n")[1:]:
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # A torn line stays where it is; the next one begins behind it.
                stored[entry["id"]] = entry
            for entry_id, message in self.told[path].items():
                assert entry_id in stored, (path, entry_id)
                if message:
                    assert stored[entry_id]["message"] == message, (path, entry_id)

    def check(self) -> int:
        """Every file passes `session/check` and opens in Pi; how many there are."""
        daemon = Daemon(self.home).greet()
        try:
            for path in self.told:
                found = daemon.call("session/check", path=str(path))
                bad = [each for each in found["problems"] if each["severity"] == "error"]
                assert bad == [], (path, bad)
        finally:
            daemon.dispose()
        home, node = os.environ.get("PI_HOME"), os.environ.get("NODE")
        if home and node:
            paths = [str(path) for path in self.told]
            done = subprocess.run(
                [node, str(OPENS_IN_PI), *paths], capture_output=True, text=True, check=True
            )
            counts = json.loads(done.stdout)
            for path, count in zip(self.told, counts, strict=True):
                assert count >= len(self.told[path]), (path, count)
        return len(self.told)


def soak(seconds: float, seed: int) -> dict[str, int]:
    """Rounds until the time is over, then the check; how often there was what."""
    home = Path(tempfile.mkdtemp(prefix="soak-"))
    soaked = Soak(home, seed)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        soaked.round()
    soaked.look()
    told = sum(map(len, soaked.told.values()))
    result = {**soaked.rounds, "told entries": told, "files": soaked.check()}
    shutil.rmtree(home)
    return result


def main() -> None:
    """Soak, and say what there was."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10_000)
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", file=sys.stderr, flush=True)
    print(json.dumps(soak(chosen.seconds, chosen.seed), indent=1))


if __name__ == "__main__":
    main()
