"""The daemon lives in the world: it starts, answers, is interrupted, and loses nothing."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pi_rpc.core.messages import text_of
from tests.process.conftest import Start
from tests.process.daemons import WAIT_S, Daemon, RefusedError

SLOW = {"replies": [{"text": "x" * 4000, "chunk": 1, "delayMs": 5}], "default": {"echo": True}}
"""A first answer that takes twenty seconds, the others none."""


def entries_of(path: Path) -> list[dict[str, Any]]:
    """Every entry after the header; lines torn by a failed write are none."""
    lines = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines[1:-1] if line.endswith(b"}")]


def said_in(path: Path) -> list[dict[str, Any]]:
    """The stored messages but for prompts of the system."""
    messages = [one["message"] for one in entries_of(path) if one["type"] == "message"]
    return [message for message in messages if message["role"] != "system"]


def wait_for(holds: Callable[[], bool]) -> None:
    """Return once something holds that no pipe tells of."""
    until = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < until, "it never held"
        select.select([], [], [], 0.005)


def begun(daemon: Daemon, cwd: Path, **more: Any) -> tuple[str, Path]:
    """A new session: its id and its file."""
    state = daemon.greet().call("session/new", cwd=str(cwd), **more)
    return state["sessionId"], Path(state["path"])


@pytest.mark.parametrize("content_length", [False, True], ids=["lines", "content-length"])
def test_it_starts_answers_and_ends_with_status_0(
    content_length: bool, start: Start, cwd: Path
) -> None:
    daemon = start(content_length=content_length)
    session, path = begun(daemon, cwd)
    answer = daemon.call("agent/prompt", sessionId=session, text="hello", wait=True)
    assert answer["outcome"] == "done"
    assert [message["role"] for message in said_in(path)] == ["user", "assistant"]
    context = daemon.call("context/get", sessionId=session)
    assert context["messages"][-1]["message"] == said_in(path)[-1]
    assert daemon.call("shutdown") == {}
    daemon.tell("exit")
    daemon.read_to_end()
    assert daemon.status() == 0
    assert daemon.errors() == ""


def test_the_end_of_input_while_idle_ends_it_with_status_0(start: Start, cwd: Path) -> None:
    daemon = start()
    session, _ = begun(daemon, cwd)
    daemon.call("agent/prompt", sessionId=session, text="hello", wait=True)
    daemon.close_input()
    daemon.read_to_end()
    assert daemon.status() == 0
    assert daemon.params_of("session/closed")[-1]["reason"] == "shutdown"


def test_it_is_called_and_left_by_a_shell_pipe(tmp_path: Path, cwd: Path) -> None:
    requests = [
        {
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": 1, "clientInfo": {"name": "t"}},
        },
        {"id": 2, "method": "session/new", "params": {"cwd": str(cwd)}},
    ]
    lines = b"".join(json.dumps({"jsonrpc": "2.0"} | one).encode() + b"\n" for one in requests)
    done = subprocess.run(
        [sys.executable, "-m", "pi_rpc"],
        input=lines,
        capture_output=True,
        env=os.environ | {"PI_CODING_AGENT_DIR": str(tmp_path / "agent")},
        timeout=WAIT_S,
        check=False,
    )
    messages = [json.loads(line) for line in done.stdout.split(b"\n") if line]
    assert [one["id"] for one in messages if "id" in one] == [1, 2]
    assert done.returncode == 0


def running(start: Start, cwd: Path) -> tuple[Daemon, Path, int]:
    """A daemon in the middle of a long answer, its file, and the request that waits for the end."""
    daemon = start()
    session, path = begun(daemon, cwd, script=SLOW)
    waiting = daemon.send("agent/prompt", sessionId=session, text="go", wait=True)
    daemon.read_until_told("message/delta", 3)
    return daemon, path, waiting


def test_the_end_of_input_during_a_run_stores_it_answers_and_says_so_by_status_3(
    start: Start, cwd: Path
) -> None:
    daemon, path, waiting = running(start, cwd)
    daemon.close_input()
    assert daemon.result_of(waiting)["outcome"] == "aborted"
    daemon.read_to_end()
    assert daemon.status() == 3
    assert said_in(path)[-1]["stopReason"] == "aborted"
    assert text_of(said_in(path)[-1]).startswith("xxx")
    assert len(daemon.params_of("agent/settled")) == 1


def test_the_end_of_input_behind_a_first_prompt_leaves_no_run_half_told(
    start: Start, cwd: Path
) -> None:
    daemon = start().greet()
    made = daemon.send("session/new", cwd=str(cwd), sessionId="mine", script=SLOW)
    asked = daemon.send("agent/prompt", sessionId="mine", text="hello")
    daemon.close_input()
    daemon.read_to_end()
    assert daemon.answers.keys() >= {made, asked}
    assert len(daemon.params_of("agent/started")) == len(daemon.params_of("agent/settled"))
    was_accepted = "result" in daemon.answers[asked]
    assert was_accepted == bool(daemon.params_of("agent/settled"))
    assert daemon.status() == (3 if was_accepted else 0)


def test_sigterm_stores_the_run_and_ends_with_status_143(start: Start, cwd: Path) -> None:
    daemon, path, waiting = running(start, cwd)
    daemon.signal(signal.SIGTERM)
    assert daemon.result_of(waiting)["outcome"] == "aborted"
    daemon.read_to_end()
    assert daemon.status() == 143
    assert said_in(path)[-1]["stopReason"] == "aborted"


def test_a_second_sigterm_ends_it_at_once(start: Start, cwd: Path) -> None:
    command = "trap 'touch asked' TERM; touch begun; while [ ! -e over ]; do sleep 0.02; done"
    script = {"replies": [{"tools": [{"name": "bash", "args": {"command": command}}]}]}
    daemon = start()
    session, path = begun(daemon, cwd, script=script)
    daemon.call("agent/prompt", sessionId=session, text="go")
    wait_for((cwd / "begun").exists)
    daemon.signal(signal.SIGTERM)
    wait_for((cwd / "asked").exists)
    assert daemon.process.poll() is None
    since = time.monotonic()
    daemon.signal(signal.SIGTERM)
    assert daemon.status() == 143
    assert time.monotonic() - since < 1
    (cwd / "over").touch()
    assert [message["role"] for message in said_in(path)] == ["user", "assistant"]


def test_when_nobody_reads_any_more_it_stores_and_leaves(start: Start, cwd: Path) -> None:
    daemon, path, _ = running(start, cwd)
    daemon.close_output()
    assert daemon.status() == 4
    assert said_in(path)[-1]["stopReason"] == "aborted"
    assert daemon.errors() == ""


def test_when_the_reader_leaves_an_idle_daemon_it_leaves_too(start: Start, cwd: Path) -> None:
    daemon = start()
    begun(daemon, cwd)
    daemon.close_output()
    assert daemon.status() == 4
    assert daemon.errors() == ""


def test_a_reader_that_stands_still_for_ever_does_not_hold_up_the_end(
    start: Start, cwd: Path
) -> None:
    script = {"replies": [{"repeat": {"text": "y" * 100, "count": 200_000}}]}
    terminated, left = start(), start()
    paths: list[Path] = []
    for daemon in (terminated, left):
        session, path = begun(daemon, cwd, script=script)
        paths.append(path)
        daemon.send("agent/prompt", sessionId=session, text="go")
        daemon.read_until_told("message/delta")
        # Nothing is read from here on, and much more is said than the outbox holds.
        wait_for(lambda daemon=daemon: is_at_rest(daemon))  # type: ignore[misc]
    terminated.signal(signal.SIGTERM)
    left.close_input()
    # One farewell of five seconds, and no second one.
    assert terminated.process.wait(8) == 143
    assert left.process.wait(8) == 3
    assert [said_in(path)[-1]["stopReason"] for path in paths] == ["aborted", "aborted"]


def is_at_rest(daemon: Daemon) -> bool:
    """Whether the process used no time for a while: it waits."""

    def used() -> int:
        fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before = used()
    select.select([], [], [], 0.15)
    return used() == before


def test_a_reader_that_stands_still_gets_the_whole_text_in_bounded_memory(
    start: Start, cwd: Path
) -> None:
    word, count = "0123456789" * 10, 100_000
    daemon = start()
    flood, path = begun(
        daemon, cwd, script={"replies": [{"repeat": {"text": word, "count": count}}]}
    )
    slow = {"replies": [{"text": "z" * 40, "chunk": 1, "delayMs": 20}]}
    other = daemon.call("session/new", cwd=str(cwd), script=slow)
    daemon.call("session/unsubscribe", subscriptionId=other["subscriptionId"])
    before = daemon.memory_kib()
    daemon.send("agent/prompt", sessionId=other["sessionId"], text="say it slowly")
    waiting = daemon.send("agent/prompt", sessionId=flood, text="go", wait=True)
    daemon.read_until_told("message/delta")
    # Nobody reads from here on; the flood stands, and the session nobody hears comes to its end.
    wait_for(lambda: len(said_in(Path(other["path"]))) == 2)
    wait_for(lambda: is_at_rest(daemon))
    assert len(said_in(path)) == 1
    assert daemon.memory_kib() - before < 48 * 1024
    assert daemon.result_of(waiting)["outcome"] == "done"
    told = [one["params"] for one in daemon.told if one["params"].get("sessionId") == flood]
    deltas = [one["text"] for one in told if "block" in one]
    assert len(deltas) < count
    assert "".join(deltas) == word * count
    # Each carries what is new and no more, so that all of them grow with the text alone.
    assert max(len(json.dumps(one)) - len(one["text"]) for one in told if "block" in one) < 300
    assert [one["seq"] for one in told] == list(range(1, len(told) + 1))


def test_two_daemons_on_one_file_the_second_is_told_who_owns_it_and_may_follow(
    start: Start, cwd: Path
) -> None:
    first, second = start(), start().greet()
    session, path = begun(first, cwd)
    with pytest.raises(RefusedError) as refusal:
        second.call("session/open", path=str(path))
    assert (refusal.value.data["kind"], refusal.value.data["reason"]) == (
        "locked",
        "session_locked",
    )
    assert refusal.value.data["owner"]["pid"] == first.process.pid
    reading = second.call("session/open", sessionId=session, mode="read")
    assert reading["mode"] == "read"
    first.call("agent/prompt", sessionId=session, text="hello", wait=True)
    second.read_until_told("session/foreignAppend")
    leaf = first.call("session/state", sessionId=session)["leafId"]
    theirs = second.call("context/get", sessionId=session)
    assert theirs["leafId"] == leaf
    assert theirs == first.call("context/get", sessionId=session)
    with pytest.raises(RefusedError) as refusal:
        second.call("agent/prompt", sessionId=session, text="no")
    assert refusal.value.data["kind"] == "locked"
    first.signal(signal.SIGKILL)
    first.status()
    owned = second.call("session/open", sessionId=session, mode="own")
    assert (owned["mode"], owned["leafId"]) == ("own", leaf)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_fails_the_run_and_is_survived(
    small_disk: Path, start: Start, cwd: Path
) -> None:
    daemon = start(environment={"PI_CODING_AGENT_DIR": str(small_disk)})
    session, path = begun(daemon, cwd)
    daemon.call("agent/prompt", sessionId=session, text="one", wait=True)
    stored = said_in(path)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        block = b"\0" * 4096
        while True:
            try:
                file.write(block)
            except OSError:
                break
    for attempt in range(3):
        words = "w" * (3000 + attempt)
        answer = daemon.call("agent/prompt", sessionId=session, text=words, wait=True)
        if answer["outcome"] == "failed":
            break
    settled = daemon.params_of("agent/settled")[-1]
    assert (settled["outcome"], settled["error"]["reason"]) == ("failed", "disk_full")
    state = daemon.call("session/state", sessionId=session)
    known = daemon.call("session/entries", sessionId=session)["entries"]
    with pytest.raises(RefusedError) as refusal:
        daemon.call("branch/label", sessionId=session, entryId=state["leafId"], label="x" * 9000)
    assert refusal.value.data["reason"] == "disk_full"
    assert daemon.call("session/state", sessionId=session)["leafId"] == state["leafId"]
    reader = start().greet()
    theirs = reader.call("session/entries", path=str(path))
    assert theirs["entries"] == known
    assert theirs["leafId"] == state["leafId"]
    filler.unlink()
    answer = daemon.call("agent/prompt", sessionId=session, text="two", wait=True)
    assert answer["outcome"] == "done"
    assert said_in(path)[: len(stored)] == stored
    assert text_of(said_in(path)[-2]) == "two"
    after = reader.call("session/entries", path=str(path))
    ours = daemon.call("session/entries", sessionId=session)
    assert after == ours
    assert daemon.call("shutdown") == {}


STRAY = """
import os, subprocess, threading, time

wire = os.fstat(1)

def stray():
    while os.path.samestat(os.fstat(1), wire):
        time.sleep(0.001)
    print("a stray print", flush=True)
    os.write(1, b"a stray write\\n")
    subprocess.run(["sh", "-c", "echo a stray child; cat"], check=True)

threading.Thread(target=stray, daemon=True).start()
"""


def test_whatever_else_prints_in_the_process_stays_off_the_wire(
    start: Start, cwd: Path, tmp_path: Path
) -> None:
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "sitecustomize.py").write_text(STRAY)
    daemon = start(environment={"PYTHONPATH": str(tmp_path / "early")})
    script = {
        "replies": [
            {"tools": [{"name": "bash", "args": {"command": "echo out; echo err >&2; cat"}}]}
        ],
        "default": {"echo": True},
    }
    session, path = begun(daemon, cwd, script=script)
    assert daemon.call("agent/prompt", sessionId=session, text="go", wait=True)["outcome"] == "done"
    assert text_of(said_in(path)[2]).split() == ["out", "err"]
    wait_for(lambda: "a stray child" in daemon.errors())
    assert daemon.errors().split("\n") == ["a stray print", "a stray write", "a stray child", ""]
    assert daemon.call("daemon/status")["pid"] == daemon.process.pid


@pytest.mark.skipif(
    not (os.environ.get("PI_HOME") and os.environ.get("NODE")),
    reason="needs PI_HOME and NODE: an installed Pi to compare with",
)
def test_pi_opens_what_we_wrote_and_makes_the_same_context_of_it(start: Start, cwd: Path) -> None:
    daemon = start()
    session, _ = begun(daemon, cwd)
    (cwd / "notes.txt").write_text("first\n")
    prompts = ["read notes.txt", "edit notes.txt: replace `first` with `second`", "run `ls`"]
    for text in prompts:
        daemon.call("agent/prompt", sessionId=session, text=text, wait=True)
    nodes = daemon.call("session/tree", sessionId=session)["nodes"]
    questions = [one["id"] for one in nodes if one.get("role") == "user"]
    compared = [session]
    daemon.call("branch/label", sessionId=session, entryId=questions[0], label="start")
    daemon.call("session/rename", sessionId=session, name="compared")
    for more in ({"entryId": questions[2]}, {"entryId": questions[1], "position": "at"}):
        fork = daemon.call("session/fork", sessionId=session, activate=False, **more)
        compared.append(fork["sessionId"])
    clone = daemon.call("session/clone", sessionId=session, activate=False)["sessionId"]
    compared.append(clone)
    daemon.call("branch/navigate", sessionId=session, targetId=questions[1])
    replacement = {"content": "shorter"}
    daemon.call("context/edit", sessionId=clone, targetId=questions[0], replacement=replacement)
    for session_id in compared:
        path = daemon.call("session/state", sessionId=session_id)["path"]
        ours = daemon.call("context/get", path=path, policy="pi3")
        theirs = projected_by_pi(Path(path))
        assert theirs["messages"] == [one["message"] for one in ours["messages"]]
        assert theirs["model"] == ours["model"]
        assert theirs["thinkingLevel"] == ours["thinkingLevel"]


def projected_by_pi(path: Path) -> dict[str, Any]:
    """What an installed Pi makes of a file."""
    script = Path(__file__).with_name("context_by_pi.mjs")
    done = subprocess.run(
        [os.environ["NODE"], str(script), str(path)], capture_output=True, check=True, timeout=60
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
