"""Killed at any moment, it has lost nothing it told: each is killed once more, at another moment.

PI_RPC_KILLS sets how many; 25 of them are a part of every test run.
"""

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.config import settings_from
from pi_rpc.wiring import running_host
from tests.process.conftest import Start
from tests.process.daemons import Daemon

KILLS = int(os.environ.get("PI_RPC_KILLS", "25"))

MESSAGES_MAX = 220
"""How many messages one conversation has, about."""

SCRIPT: dict[str, Any] = {
    "replies": [
        reply
        for number in range(40)
        for reply in (
            {"text": f"thinking about {number}", "chunk": 5, "thinking": "hm " * number},
            {"tools": [{"name": "write", "args": {"path": f"f{number % 3}", "content": "x" * 50}}]},
            {"text": f"written {number}"},
        )
    ],
    "default": {"echo": True},
}


class KilledError(Exception):
    """The moment has come."""


class Doomed(Daemon):
    """Is killed when a number of messages were read, and then read to the end."""

    lives = 0

    def read_some(self, timeout_s: float | None = None) -> bool:
        came = super().read_some(timeout_s)
        if self.lives and len(self.told) + len(self.answers) >= self.lives:
            self.lives = 0
            self.signal(signal.SIGKILL)
            self.read_to_end()
            raise KilledError
        return came


def converse(daemon: Daemon, session: str, rng: random.Random) -> None:
    """Prompt, wander about the tree, label and rename, until killed."""
    while True:
        daemon.call("agent/prompt", sessionId=session, text="go on", wait=True)
        told = [one["id"] for one in daemon.params_of("entry/appended")]
        target = rng.choice(told)
        match rng.randrange(4):
            case 0:
                daemon.call("branch/navigate", sessionId=session, targetId=target)
            case 1:
                daemon.call("branch/label", sessionId=session, entryId=target, label="here")
            case 2:
                daemon.call("session/rename", sessionId=session, name=f"name {len(told)}")
            case _:
                both = {
                    daemon.send("branch/navigate", sessionId=session, targetId=target),
                    daemon.send("branch/label", sessionId=session, entryId=target, label="both"),
                }
                daemon.read_until(lambda both=both: both <= daemon.answers.keys())  # type: ignore[misc]


def stored_entries(path: Path) -> list[dict[str, Any]]:
    """Every whole line after the header. A torn last line is none."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[1:-1]]


def check(daemon: Daemon, session: str, path: Path) -> None:
    """Everything that was told is on the disk, and the session opens where it was told to stand."""
    stored = stored_entries(path)
    by_id = {entry["id"]: entry for entry in stored}
    told = [one for one in daemon.params_of("entry/appended") if one["sessionId"] == session]
    ids = [entry["id"] for entry in stored]
    first = ids.index(told[0]["id"]) if told else len(ids)
    assert ids[first : first + len(told)] == [one["id"] for one in told]
    for one in daemon.params_of("message/ended"):
        assert by_id[one["entryId"]]["message"] == one["message"]
    untold = stored[first + len(told) :]
    if not told:
        return
    if untold:
        # What was stored and not yet told hangs below what was told, or is a move of the leaf.
        assert untold[0]["type"] in ("custom", "label") or (
            untold[0]["parentId"] == told[-1]["leafId"]
        )
    leaf, count = anyio.run(reopened, path)
    assert count == len(stored)
    if not untold:
        assert leaf == told[-1]["leafId"]
    else:
        last = untold[-1]
        assert leaf == (
            last["parentId"] if last.get("customType") == "pi_rpc.cursor" else last["id"]
        )


async def reopened(path: Path) -> tuple[str | None, int]:
    """Where the leaf of a file stands for the next host, and how many entries it has."""
    settings = settings_from({"PI_CODING_AGENT_DIR": str(path.parents[2])}, durability="off")
    async with running_host(settings) as host:
        session = await host.open(path)
        assert [one for one in session.diagnostics if one.severity == "error"] == []
        return session.leaf_id, len(session.tree)


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_daemon_killed_at_any_moment_has_stored_what_it_told(
    seed: int, start: Start, cwd: Path
) -> None:
    rng = random.Random(seed)
    daemon = start(kind=Doomed)
    assert isinstance(daemon, Doomed)
    state = daemon.greet().call("session/new", cwd=str(cwd), script=SCRIPT)
    daemon.lives = rng.randrange(4, MESSAGES_MAX)
    with pytest.raises(KilledError):
        converse(daemon, state["sessionId"], rng)
    assert daemon.status() == -signal.SIGKILL
    check(daemon, state["sessionId"], Path(state["path"]))
    if seed % 5 == 0:
        again = start().greet()
        opened = again.call("session/open", sessionId=state["sessionId"])
        answer = again.call("agent/prompt", sessionId=opened["sessionId"], text="hi", wait=True)
        assert answer["outcome"] == "done"


def test_a_command_that_ran_while_the_daemon_was_killed_is_never_called_restored(
    start: Start, cwd: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "agent" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"piRpc": {"versions": True}}))
    outside = tmp_path / "outside"
    run = {"name": "bash", "args": {"command": f"echo out >> {outside}; echo be''gun; sleep 3"}}
    daemon = start().greet()
    state = daemon.call("session/new", cwd=str(cwd), script={"replies": [{"tools": [run]}]})
    daemon.send("agent/prompt", sessionId=state["sessionId"], text="go")
    daemon.read_until(lambda: "begun" in json.dumps(daemon.params_of("tool/progress")))
    daemon.signal(signal.SIGKILL)
    assert daemon.status() == -signal.SIGKILL and outside.read_text() == "out\n"

    again = start().greet()
    opened = again.call("session/open", sessionId=state["sessionId"])
    assert opened["environment"]["status"] == "unknown"
    moved = again.call("branch/navigate", sessionId=state["sessionId"], targetId=None)
    assert moved["environment"]["scopes"]["external"]["reason"] == "unseen_calls"
    assert [one["tool"] for one in moved["environment"]["abandonedEffects"]] == ["bash"]
    again.signal(signal.SIGKILL)
    assert again.status() == -signal.SIGKILL

    third = start().greet()
    opened = third.call("session/open", sessionId=state["sessionId"])
    assert opened["environment"]["status"] == "unknown"
    found = third.call("workspace/status", sessionId=state["sessionId"])
    assert (found["environment"]["status"], found["acknowledged"]) == ("unknown", False)
    noted = third.call("workspace/acknowledge", sessionId=state["sessionId"])
    assert noted["environment"]["status"] == "restored"
    third.call("session/close", sessionId=state["sessionId"])
    opened = third.call("session/open", sessionId=state["sessionId"])
    assert opened["environment"]["status"] == "restored"
