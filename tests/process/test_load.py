"""Many sessions streaming at once to a client that lags: all arrives, in order and in turn."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.process.conftest import Start
from tests.process.daemons import Daemon

SESSIONS = int(os.environ.get("PI_RPC_LOAD_SESSIONS", "50"))
SUBSCRIPTIONS = 20
DELTAS, CHUNK = 60, 40
LAG_BYTES = 64
MEMORY_MB_MAX = 200

TEXT = "".join(f"{number:039} " for number in range(DELTAS))
SCRIPT = {"default": {"text": TEXT, "chunk": CHUNK, "delayMs": 4}}


@pytest.fixture
def daemon(start: Start, tmp_path: Path) -> Daemon:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT))
    return start("--script", str(script), "--durability", "turn").greet()


def by_runtime(told: list[dict[str, Any]]) -> dict[str, list[tuple[int, str, dict[str, Any]]]]:
    """Place, method and params of what was told, by runtime."""
    found: dict[str, list[tuple[int, str, dict[str, Any]]]] = {}
    for place, message in enumerate(told):
        params = message["params"]
        if "seq" in params:
            found.setdefault(params["runtimeId"], []).append((place, message["method"], params))
    return found


def peak_memory_mb(daemon: Daemon) -> float:
    status = Path(f"/proc/{daemon.process.pid}/status")
    if not status.exists():
        return 0
    return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024


def read_slowly(daemon: Daemon, count: int) -> None:
    """Take a few bytes at a time, so that the pipe is full and the daemon must wait."""
    assert daemon.process.stdout is not None
    held = b"".join(os.read(daemon.process.stdout.fileno(), LAG_BYTES) for _ in range(count))
    daemon.hold(held)


def test_many_sessions_stream_at_once_and_nothing_is_lost(daemon: Daemon, cwd: Path) -> None:
    states = [daemon.call("session/new", cwd=str(cwd)) for _ in range(SESSIONS)]
    heard = states[0]["sessionId"]
    for _ in range(SUBSCRIPTIONS):
        daemon.call("session/subscribe", sessionId=heard)
    asked = [
        daemon.send("agent/prompt", sessionId=state["sessionId"], text="Go.") for state in states
    ]
    read_slowly(daemon, 3000)
    daemon.read_until_told("agent/settled", SESSIONS)
    for request_id in asked:
        assert daemon.result_of(request_id)["disposition"] == "started"

    runtimes = by_runtime(daemon.told)
    assert runtimes.keys() == {state["runtimeId"] for state in states}
    first_settled = min(
        place
        for events in runtimes.values()
        for place, method, _ in events
        if method == "agent/settled"
    )
    for events in runtimes.values():
        # In order, without a gap and without a repeat.
        assert [params["seq"] for _, _, params in events] == list(range(1, len(events) + 1))
        deltas = [(place, params) for place, method, params in events if method == "message/delta"]
        assert "".join(params["text"] for _, params in deltas) == TEXT
        [settled] = [params for _, method, params in events if method == "agent/settled"]
        assert settled["outcome"] == "done"
        # Nobody had to wait until another was served whole.
        assert deltas[0][0] < first_settled
    subscribed = {
        len(params["subscriptionIds"])
        for _, method, params in runtimes[states[0]["runtimeId"]]
        if method == "message/delta"
    }
    assert subscribed == {SUBSCRIPTIONS + 1}
    assert peak_memory_mb(daemon) < MEMORY_MB_MAX


def test_sessions_come_and_go_in_a_storm(daemon: Daemon, cwd: Path) -> None:
    asked = [daemon.send("session/new", cwd=str(cwd), sessionId=f"s{n}") for n in range(SESSIONS)]
    for request_id in asked:
        daemon.result_of(request_id)
    going = []
    for number in range(SESSIONS):
        session_id = f"s{number}"
        daemon.send("agent/prompt", sessionId=session_id, text="Go.")
        going.append(daemon.send("session/close", sessionId=session_id))
        going.append(daemon.send("session/open", sessionId=session_id))
    for request_id in going:
        daemon.read_until(lambda request_id=request_id: request_id in daemon.answers)
    daemon.call("session/list", limit=1000)
    for number in range(SESSIONS):
        found = daemon.call("session/check", sessionId=f"s{number}")
        assert [each for each in found["problems"] if each["severity"] != "info"] == []
