"""Faults upon faults for a while; afterwards every told entry is on disk and every file is sound.

    .venv/bin/python -m tests.process.soak [--seconds 1800] [--seed N] [--home DIR]

Each round one daemon runs a few sessions at once and meets a fault: it is killed, finds the disk
full, is read slowly, loses its reader, has its clock moved, or another program appends to its
files. What it told is noted before, and looked for in the files after. At the end `session/check`
goes over every file, and so does Pi where PI_HOME and NODE say where it is.

That a disk is full is made by a limit on the size of files, and where `--home` is a file system of
its own also by filling that (`make soak` mounts one). Each fault is counted, and counted once more
as felt when the daemon was seen to meet it; a fault that is never felt in a long soak fails it.
"""

import argparse
import contextlib
import errno
import fcntl
import json
import os
import random
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.process.daemons import Daemon, RefusedError
from tests.process.jumping_clock import CLOCK, set_clock

SESSIONS = 3
MORE_BYTES_MAX = 8 * 1024
"""By so much the files may grow, or the disk be used, while it counts as full."""
PIPE_FULL_BYTES = 60_000
"""So much is unread when the daemon has felt that it is read slowly; a pipe holds little more."""
DISK_BYTES_MAX = 4 << 30
"""A larger file system is not there to be filled."""
ROUNDS_TO_FEEL = 300
"""So many rounds, and each fault must have been felt."""
OPENS_IN_PI = Path(__file__).with_name("opens_in_pi.mjs")

_HOUR_NS = 3600 * 10**9
JUMPS_NS = [hours * _HOUR_NS for hours in (-500_000, -90_000, -24, -1, 1, 24, 90_000, 1_900_000)]
"""From before 1970 to the end of the clock in 2262, nearly."""

_WORK: list[dict[str, Any]] = [
    {"name": "write", "args": {"path": "notes", "content": "x" * 400}},
    {"name": "read", "args": {"path": "notes"}},
    {"name": "bash", "args": {"command": "seq 300"}},
    {"name": "write", "args": {"path": "more", "content": "y" * 4000}},
]
SCRIPT: dict[str, Any] = {
    "summaries": "byRule",
    "replies": [
        {"text": f"thinking about {number} " * 9, "chunk": 9, "tools": [_WORK[number % 4]]}
        if number % 13 < 12
        else {"text": "enough for now", "thinking": "well " * 99}
        for number in range(40)
    ],
    # From then on a run ends only when something ends it, so that faults find it at work.
    "default": {"text": "and on " * 30, "chunk": 5, "tools": [_WORK[0], _WORK[3]]},
}


class Patient(Daemon):
    """A daemon on a machine that has much else to do."""

    wait_s = 120.0


class Told:
    """What was told of one session."""

    def __init__(self) -> None:
        self.order: list[str] = []
        """Ids of entries, as they were told."""
        self.entries: dict[str, dict[str, Any]] = {}
        """By id, what a stored entry must hold."""
        self.leaf_id: str | None = None


class Soak:
    """Sessions in one home, daemons that come and go, and what they told."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home = home
        self.cwd = home / "work"
        self.cwd.mkdir()
        self.chance = random.Random(seed)
        self.told: dict[Path, Told] = {}
        self.rounds: Counter[str] = Counter()
        self._paths: dict[str, Path] = {}
        self._clock = home / "clock"
        self._script = home / "script.json"
        self._script.write_text(json.dumps(SCRIPT))
        (home / "agent").mkdir()
        settings = {"compaction": {"keepRecentTokens": 500}}
        (home / "agent" / "settings.json").write_text(json.dumps(settings))
        self._faults: list[Callable[[Daemon], bool]] = [
            self.killed,
            self.size_limited,
            self.read_slowly,
            self.reader_gone,
            self.output_closed,
            self.clock_jumped,
            self.foreign_appends,
        ]
        if (size := os.statvfs(home)).f_blocks * size.f_frsize < DISK_BYTES_MAX:
            self._faults.append(self.disk_filled)

    def round(self) -> None:
        """A daemon, some work, one fault, and what it told looked for."""
        fault = self.chance.choice(self._faults)
        self.rounds[fault.__name__] += 1
        daemon = self._start(fault)
        try:
            daemon.greet()
            self._bring(daemon)
            for session_id in self._paths:
                self._move(daemon, session_id)
                daemon.send("agent/prompt", sessionId=session_id, text="Go on.")
            self._read_some(daemon, self.chance.randrange(1, 400))
            if fault(daemon):
                self.rounds[f"{fault.__name__} felt"] += 1
            self._look_for_mistakes(daemon)
        finally:
            daemon.dispose()
        Path(daemon.stderr.name).unlink()
        self._note(daemon)
        for path in self._paths.values():
            self.look(path)

    def _start(self, fault: Callable[[Daemon], bool]) -> Daemon:
        flags = ["--script", str(self._script)]
        # Versions take their time, and most rounds are better spent on entries.
        variables = {"PI_RPC_VERSIONS": "on" if self.chance.random() < 0.2 else "off"}
        if fault != self.clock_jumped:
            return Patient(self.home, *flags, environment=variables)
        set_clock(self._clock, self.chance.choice([0, *JUMPS_NS]))
        variables[CLOCK] = str(self._clock)
        module = "tests.process.jumping_clock"
        return Patient(self.home, *flags, environment=variables, module=module)

    def _bring(self, daemon: Daemon) -> None:
        for session_id, path in list(self._paths.items()):
            if self.chance.random() < 0.1:
                del self._paths[session_id]
                continue
            state = daemon.call("session/open", sessionId=session_id)
            told = self.told[path]
            if told.order and told.order[-1] == last_entry_of(path)["id"]:
                assert state["leafId"] == told.leaf_id, (path, state["leafId"], told.leaf_id)
        while len(self._paths) < SESSIONS:
            state = daemon.call("session/new", cwd=str(self.cwd))
            self._paths[state["sessionId"]] = Path(state["path"])
            self.told.setdefault(Path(state["path"]), Told())

    def _move(self, daemon: Daemon, session_id: str) -> None:
        """Sometimes the leaf goes elsewhere, or an entry is named, before there is more work."""
        order = self.told[self._paths[session_id]].order
        act = self.chance.randrange(6)
        if not order or act > 3:
            return
        target = self.chance.choice(order)
        try:
            if act == 0:
                daemon.call("branch/navigate", sessionId=session_id, targetId=target)
            elif act == 1:
                daemon.call("branch/label", sessionId=session_id, entryId=target, label="here")
            elif act == 2:
                daemon.call("session/rename", sessionId=session_id, name=f"at {target}")
            else:
                daemon.call("compact/run", sessionId=session_id)
        except RefusedError as refused:
            self.rounds[f"refused {refused.data['reason']}"] += 1

    @staticmethod
    def _read_some(daemon: Daemon, messages: int) -> None:
        while len(daemon.told) < messages and daemon.read_some(0.5):
            pass

    def killed(self, daemon: Daemon) -> bool:
        """Ended between any two instructions."""
        daemon.signal(signal.SIGKILL)
        daemon.read_to_end()
        return daemon.status() == -signal.SIGKILL

    def size_limited(self, daemon: Daemon) -> bool:
        """Every write beyond some size is refused, then there is room again."""
        sizes = [path.stat().st_size for path in self._paths.values()]
        limit = self.chance.choice(sizes) + self.chance.randrange(MORE_BYTES_MAX)
        hard = resource.RLIM_INFINITY
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (limit, hard))
        self._prompt_all(daemon)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        self._prompt_all(daemon)
        self._end(daemon)
        return bool(reasons_of(daemon) & {"write_failed", "disk_full"})

    def disk_filled(self, daemon: Daemon) -> bool:
        """No byte is left for anybody, or hardly one; then there is room again."""
        filling = self.home / "filling"
        with filling.open("wb") as file:
            fill(file.fileno())
            file.truncate(max(0, file.seek(0, os.SEEK_END) - self.chance.randrange(MORE_BYTES_MAX)))
        asked = [
            daemon.send("session/new", cwd=str(self.cwd)),
            daemon.send("session/fork", sessionId=next(iter(self._paths)), activate=False),
            daemon.send("session/list"),
        ]
        self._prompt_all(daemon)
        daemon.read_until(lambda: daemon.answers.keys() >= set(asked))
        filling.unlink()
        self._prompt_all(daemon)
        self._end(daemon)
        return "disk_full" in reasons_of(daemon)

    def read_slowly(self, daemon: Daemon) -> bool:
        """A reader that takes a few bytes at a time, and catches up at the end."""
        assert daemon.process.stdout is not None
        source = daemon.process.stdout.fileno()
        most = 0
        for _ in range(self.chance.randrange(2_000)):
            if not select.select([source], [], [], 0.5)[0]:
                break
            waiting = fcntl.ioctl(source, termios.FIONREAD, struct.pack("i", 0))
            most = max(most, struct.unpack("i", waiting)[0])
            daemon.hold(os.read(source, 64))
        self._prompt_all(daemon)
        self._end(daemon)
        return most > PIPE_FULL_BYTES

    def reader_gone(self, daemon: Daemon) -> bool:
        """The client is gone in the middle, both its ends closed; the daemon ends by itself."""
        daemon.close_output()
        daemon.close_input()
        return daemon.status() in (0, 3, 4)

    def output_closed(self, daemon: Daemon) -> bool:
        """The client reads no more but keeps its other end; the daemon ends by itself."""
        daemon.close_output()
        return daemon.status() == 4

    def clock_jumped(self, daemon: Daemon) -> bool:
        """The clock goes somewhere else, forth or back, and files get the times it shows."""
        off_ns = self.chance.choice(JUMPS_NS)
        set_clock(self._clock, off_ns)
        self._prompt_all(daemon)
        for path in self._paths.values():
            at_ns = max(0, time.time_ns() + off_ns)
            os.utime(path, ns=(at_ns, at_ns))
        set_clock(self._clock, self.chance.choice(JUMPS_NS))
        self._prompt_all(daemon)
        self._end(daemon)
        now = time.strftime("%Y-%m-%dT%H")
        return any(last_entry_of(path)["timestamp"][:13] != now for path in self._paths.values())

    def foreign_appends(self, daemon: Daemon) -> bool:
        """Another program appends below the last line, whole or torn, while sessions run."""
        foreign = set()
        for path in self._paths.values():
            entry_id = f"{self.chance.randrange(2**32):08x}"
            entry = {"type": "session_info", "id": entry_id, "parentId": last_entry_of(path)["id"]}
            entry |= {"timestamp": "2026-01-01T00:00:00.000Z", "name": f"foreign {entry_id}"}
            torn = self.chance.choice([b"", b"", b'{"type":"message","id":"'])
            with path.open("ab") as file:
                # Behind whatever is half written just now it stands on a line of its own.
                file.write(b"\n" + json.dumps(entry).encode() + b"\n" + torn)
            self.told[path].entries.setdefault(entry_id, entry)
            foreign.add(entry_id)
        self._prompt_all(daemon)
        self._end(daemon)
        told = daemon.params_of("session/foreignAppend")
        return foreign <= {entry_id for each in told for entry_id in each["entryIds"]}

    def _prompt_all(self, daemon: Daemon) -> None:
        asked = [
            daemon.send("agent/prompt", sessionId=session_id, text="And on.", whenBusy="followUp")
            for session_id in self._paths
        ]
        asked.append(daemon.send("daemon/status"))
        daemon.read_until(lambda: daemon.answers.keys() >= set(asked))
        self._read_some(daemon, len(daemon.told) + self.chance.randrange(300))

    def _end(self, daemon: Daemon) -> None:
        for session_id in self._paths:
            try:
                daemon.call("agent/abort", sessionId=session_id)
                daemon.call("session/close", sessionId=session_id)
            except RefusedError as refused:
                self.rounds[f"refused {refused.data['reason']}"] += 1
        daemon.close_input()
        daemon.read_to_end()
        daemon.status()

    def _look_for_mistakes(self, daemon: Daemon) -> None:
        assert "internal" not in {each.get("kind") for each in errors_of(daemon)}, errors_of(daemon)
        said = daemon.errors()
        assert "Traceback" not in said and "incident" not in said, said[-4000:]

    def _note(self, daemon: Daemon) -> None:
        for message in daemon.told:
            params = message["params"]
            path = self._paths.get(params.get("sessionId", ""))
            if path is None:
                continue
            told = self.told[path]
            if message["method"] == "entry/appended":
                told.order.append(params["id"])
                told.leaf_id = params["leafId"]
                entry = told.entries.setdefault(params["id"], {})
                entry |= {name: params[name] for name in ("type", "parentId")}
            elif message["method"] == "message/ended" and params.get("entryId"):
                told.entries[params["entryId"]]["message"] = params["message"]

    def look(self, path: Path) -> None:
        """Everything told of a session is in its file, as and in the order it was told."""
        stored: dict[str, dict[str, Any]] = {}
        for line in path.read_bytes().split(b"\n")[1:]:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # A torn line stays where it is; the next one begins behind it.
            stored.setdefault(entry["id"], entry)
        for entry_id, wanted in self.told[path].entries.items():
            assert entry_id in stored, (path, entry_id)
            found = {name: stored[entry_id].get(name) for name in wanted}
            assert found == wanted, (path, found, wanted)
        places = {entry_id: place for place, entry_id in enumerate(stored)}
        order = [places[entry_id] for entry_id in self.told[path].order]
        assert all(map(int.__lt__, order, order[1:])), (path, "told in another order")

    def check(self) -> int:
        """Every file passes `session/check` and opens in Pi; how many there are."""
        daemon = Patient(self.home).greet()
        try:
            for path in self.told:
                self.look(path)
                found = daemon.call("session/check", path=str(path))
                bad = [each for each in found["problems"] if each["severity"] == "error"]
                assert bad == [], (path, bad)
                self.rounds.update(f"found {each['reason']}" for each in found["problems"])
        finally:
            daemon.dispose()
        home, node = os.environ.get("PI_HOME"), os.environ.get("NODE")
        if home and node:
            paths = [str(path) for path in self.told]
            done = subprocess.run(
                [node, str(OPENS_IN_PI), *paths], capture_output=True, text=True, check=True
            )
            for told, ids in zip(self.told.values(), json.loads(done.stdout), strict=True):
                assert told.entries.keys() <= set(ids), told.entries.keys() - set(ids)
            self.rounds["files opened in Pi"] = len(paths)
        return len(self.told)


def last_entry_of(path: Path) -> dict[str, Any]:
    """The last whole line of a session file."""
    for line in reversed(path.read_bytes().split(b"\n")):
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                return entry
    raise AssertionError(f"nothing stands in {path}")


def errors_of(daemon: Daemon) -> list[dict[str, Any]]:
    """What was told of failures, in answers and at the ends of runs."""
    answered = [each["error"]["data"] for each in daemon.answers.values() if "error" in each]
    settled = [each["error"] for each in daemon.params_of("agent/settled") if each.get("error")]
    return answered + settled


def reasons_of(daemon: Daemon) -> set[str]:
    """The reasons of what failed."""
    return {each["reason"] for each in errors_of(daemon)}


def fill(fd: int) -> None:
    """Write until the disk is full."""
    piece = 1 << 26
    at = 0
    while piece:
        try:
            os.posix_fallocate(fd, at, piece)
            at += piece
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
            piece //= 2


def soak(
    seconds: float, seed: int, home: Path | None = None, rest_s: float = 0.0
) -> dict[str, int]:
    """Rounds until the time is over, then the check; how often there was what."""
    inside = Path(tempfile.mkdtemp(prefix="soak-", dir=home))
    soaked = Soak(inside, seed)
    until = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < until:
        soaked.round()
        rounds += 1
        if rounds % 100 == 0:
            print(rounds, dict(soaked.rounds), file=sys.stderr, flush=True)
        time.sleep(rest_s)
    told = sum(len(each.order) for each in soaked.told.values())
    files = soaked.check()
    faults = [fault.__name__ for fault in soaked._faults]
    unfelt = [fault for fault in faults if not soaked.rounds[f"{fault} felt"]]
    assert rounds < ROUNDS_TO_FEEL or not unfelt, unfelt
    shutil.rmtree(inside)
    return {**soaked.rounds, "rounds": rounds, "told entries": told, "files": files}


def main() -> None:
    """Soak, and say what there was."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10_000)
    parser.add_argument("--home", type=Path, help="where all of it is kept; a disk of its own")
    parser.add_argument("--rest-s", type=float, default=0.0, help="seconds between rounds")
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", file=sys.stderr, flush=True)
    found = soak(chosen.seconds, chosen.seed, chosen.home, chosen.rest_s)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
