"""A session that rests gives back its memory in a real daemon, and nobody sees it."""

import json
import time
from pathlib import Path
from typing import Any

from tests.process.conftest import Start
from tests.process.daemons import Daemon, RefusedError

ENTRIES = 20_000
TEXT = "word " * 20


def settings(home: Path, **own: Any) -> None:
    """The user's settings of every daemon of this home."""
    (home / "agent").mkdir(exist_ok=True)
    (home / "agent" / "settings.json").write_text(json.dumps({"piRpc": own}))


def long_session(path: Path, cwd: Path, session_id: str = "long") -> Path:
    """A file of many entries on one path."""
    at = "2026-01-02T03:04:05.678Z"
    with path.open("w") as file:
        head = {"type": "session", "version": 3, "id": session_id, "timestamp": at, "cwd": str(cwd)}
        file.write(json.dumps(head) + "\n")
        for number in range(ENTRIES):
            entry = {
                "type": "message",
                "id": f"{number:08x}",
                "parentId": f"{number - 1:08x}" if number else None,
                "timestamp": at,
                "message": {"role": "user", "content": TEXT, "timestamp": number},
            }
            file.write(json.dumps(entry) + "\n")
    return path


def is_loaded(daemon: Daemon, session_id: str) -> bool:
    """Whether its history is in memory, as the daemon says."""
    [found] = [
        one for one in daemon.call("daemon/status")["sessions"] if one["sessionId"] == session_id
    ]
    return bool(found["loaded"])


def until_unloaded(daemon: Daemon, *session_ids: str) -> None:
    """Return when the memory of all is given back; asking for the status needs none of them."""
    until = time.monotonic() + daemon.wait_s
    while any(is_loaded(daemon, one) for one in session_ids):
        assert time.monotonic() < until, "it stays in memory"


def test_a_session_that_rests_is_unloaded_and_comes_back_unseen(
    start: Start, tmp_path: Path, cwd: Path
) -> None:
    settings(tmp_path, unloadAfterS=0.2)
    path = long_session(tmp_path / "long.jsonl", cwd)
    daemon = start().greet()
    opened = daemon.call("session/open", path=str(path))
    session_id = opened["sessionId"]
    daemon.call("session/rename", sessionId=session_id, name="Long")
    daemon.call("model/list")
    asked = [
        ("session/state", {"sessionId": session_id}),
        ("session/entries", {"sessionId": session_id, "since": "00004e00", "limit": 5}),
        ("session/read", {"sessionId": session_id, "limit": 5}),
        ("context/get", {"sessionId": session_id}),
    ]
    before = [daemon.call(method, **params) for method, params in asked]
    told = len(daemon.told)
    for method, params in asked:
        until_unloaded(daemon, session_id)
        assert daemon.call(method, **params) == before[asked.index((method, params))]
    assert len(daemon.told) == told
    until_unloaded(daemon, session_id)
    # Whatever comes while it is loaded is answered in the order it came.
    names = [
        daemon.send("session/rename", sessionId=session_id, name=name)
        for name in ("A", "B", "Long")
    ]
    assert [daemon.result_of(one)["name"] for one in names] == ["A", "B", "Long"]
    until_unloaded(daemon, session_id)
    prompted = daemon.call("agent/prompt", sessionId=session_id, text="Go on.", wait=True)
    assert prompted["outcome"] == "done"
    state = daemon.call("session/state", sessionId=session_id)
    assert (state["runtimeId"], state["name"]) == (opened["runtimeId"], "Long")
    heard = [one["params"]["seq"] for one in daemon.told if "seq" in one["params"]]
    assert heard == list(range(1, state["seq"] + 1))
    until_unloaded(daemon, session_id)
    since = {"runtimeId": opened["runtimeId"], "seq": state["seq"] - 3}
    again = daemon.call("session/subscribe", sessionId=session_id, since=since)
    assert "gap" not in again and again["seq"] == state["seq"]


def test_a_session_that_rests_is_still_owned_and_closed_like_any_other(
    start: Start, tmp_path: Path, cwd: Path
) -> None:
    settings(tmp_path, unloadAfterS=0.2)
    daemon = start().greet()
    session_id = daemon.call("session/new", cwd=str(cwd))["sessionId"]
    until_unloaded(daemon, session_id)
    other = start().greet()
    try:
        other.call("session/open", sessionId=session_id)
        raise AssertionError("two own it")
    except RefusedError as refused:
        assert refused.data["kind"] == "locked"
    daemon.call("session/close", sessionId=session_id)
    assert other.call("session/open", sessionId=session_id)["sessionId"] == session_id


def test_without_a_time_nothing_is_unloaded_and_beyond_a_number_the_longest_unneeded(
    start: Start, tmp_path: Path, cwd: Path
) -> None:
    settings(tmp_path, unloadAfterS=1, loadedSessionsMax=1)
    few = start().greet()
    names = [few.call("session/new", cwd=str(cwd))["sessionId"] for _ in range(2)]
    until_unloaded(few, names[0])
    assert few.call("session/state", sessionId=names[0])["runtimeId"]
    settings(tmp_path, unloadAfterS=0, loadedSessionsMax=1)
    many = start().greet()
    kept = [many.call("session/new", cwd=str(cwd))["sessionId"] for _ in range(3)]
    assert all(is_loaded(many, one) for one in kept)
