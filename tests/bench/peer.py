"""Drives Pi in RPC mode: one command a line, one answer a line, events between them."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lines import LineProcess
from sessions import MODEL, PROVIDER

CLI = "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"
LISTING = Path(__file__).with_name("list_sessions.mjs")


@dataclass(frozen=True)
class PeerPlace:
    """Where Pi is (PI_HOME, NODE), the model server's address and a folder for compiled code."""

    home: Path
    node: str
    model_url: str
    compile_cache: Path


def list_sessions(folder: Path, place: PeerPlace) -> tuple[int, list[float], float]:
    """Sessions listed, the seconds of a first and a second list in one process, its peak in MiB."""
    env = {**os.environ, "HOME": str(folder), "PI_CODING_AGENT_DIR": str(folder)}
    env |= {"PI_HOME": str(place.home), "NODE_COMPILE_CACHE": str(place.compile_cache)}
    done = subprocess.run([place.node, str(LISTING)], env=env, capture_output=True, check=True)
    told = json.loads(done.stdout)
    return told["sessions"], told["seconds"], told["peakMemoryMb"]


class Peer:
    """One Pi process."""

    def __init__(self, folder: Path, workspace: Path, place: PeerPlace) -> None:
        settings = {"compaction": {"enabled": False}, "enableInstallTelemetry": False}
        (folder / "settings.json").write_text(json.dumps(settings))
        (folder / "models.json").write_text(json.dumps(_catalogue(place.model_url)))
        argv = [place.node, str(place.home / CLI), "--mode", "rpc", "--no-context-files"]
        argv += ["--session-dir", str(folder / "sessions"), "--system-prompt", "Be brief."]
        argv += ["--provider", PROVIDER, "--model", MODEL]
        env = {name: value for name, value in os.environ.items() if "API_KEY" not in name}
        env |= {"HOME": str(folder), "PI_CODING_AGENT_DIR": str(folder), "PI_OFFLINE": "1"}
        env |= {"PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}
        env["NODE_COMPILE_CACHE"] = str(place.compile_cache)
        self.process = LineProcess(argv, workspace, env, folder / "stderr.txt")
        self.state_request = b'{"id":"s","type":"get_state"}\n'
        self._events: list[dict[str, Any]] = []
        self._requests = 0

    def begin(self) -> None:
        """Wait for the first answer."""
        self.request("get_state")

    def request(self, kind: str, **fields: Any) -> None:
        """Send a command and wait for its answer. Raises RuntimeError when that is a failure."""
        self._requests += 1
        command = {"id": f"c{self._requests}", "type": kind, **fields}
        self.process.write(json.dumps(command).encode() + b"\n")
        while (message := json.loads(self.process.line())).get("id") != command["id"]:
            self._events.append(message)
        if not message["success"]:
            raise RuntimeError(f"{kind}: {message['error']}")

    def new_session(self) -> None:
        """Pi starts with one."""

    def open(self, path: Path) -> None:
        self.request("switch_session", sessionPath=str(path))

    def prompt(self, text: str) -> None:
        """Send a prompt and wait until everything it started is settled."""
        self._events.clear()
        self.request("prompt", message=text)
        while not any(event["type"] == "agent_settled" for event in self._events):
            self._events.append(json.loads(self.process.line()))
        last = [event for event in self._events if event["type"] == "message_end"][-1]
        if last["message"].get("stopReason") != "stop":
            raise RuntimeError(f"prompt: {last}")

    def stream(self, words: int) -> bytes:
        """Ask for an answer of that many deltas and take what comes without a look."""
        command = {"id": "w", "type": "prompt", "message": f"Say {words} words."}
        self.process.write(json.dumps(command).encode() + b"\n")
        return self.process.read_until(b'"agent_settled"')

    @staticmethod
    def words_in(output: bytes) -> int:
        return output.count(b'"text_delta"')

    def fork(self, entry_id: str) -> None:
        self.request("fork", entryId=entry_id)

    def clone(self) -> None:
        self.request("clone")

    def compact(self) -> None:
        """Compact, with a model that answers at once."""
        self.request("compact")

    def tree(self) -> int:
        """Ask for the whole tree; the number of its nodes, counted unread for it nests too deep."""
        self.process.write(b'{"id":"t","type":"get_tree"}\n')
        while b'"id":"t"' not in (line := self.process.line())[:40]:
            pass
        if not self.answers(line):
            raise RuntimeError(json.loads(line)["error"])
        return line.count(b'"children":')

    def entries_since(self, entry_id: str) -> None:
        self.request("get_entries", since=entry_id)

    def stats(self) -> None:
        self.request("get_session_stats")

    def entries(self) -> int:
        """Take all entries in one answer, without a look; how many bytes came."""
        self.process.write(b'{"id":"e","type":"get_entries"}\n')
        while b'"id":"e"' not in (line := self.process.line())[:40]:
            pass
        if not self.answers(line):
            raise RuntimeError(json.loads(line)["error"])
        return len(line)

    @staticmethod
    def answers(line: bytes) -> bool:
        return b'"success":true' in line[:100]

    def close(self) -> None:
        self.process.close()


def seconds_to_plan(place: PeerPlace, path: Path) -> tuple[float, int]:
    """How long Pi's own planner takes for a session it has read, and how many it would summarise.

    There is no command for it: Pi's module is called in a process of its own, without a way there
    and back. Raises RuntimeError when that fails.
    """
    argv = [place.node, str(Path(__file__).with_name("plan.mjs")), str(place.home), str(path)]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    if ran.returncode:
        raise RuntimeError(f"plan: {ran.stderr[-300:]}")
    told = json.loads(ran.stdout.strip().split("\n")[-1])
    return told["ms"] / 1e3, told["count"]


def _catalogue(model_url: str) -> dict[str, Any]:
    cost = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}
    model = {"id": MODEL, "contextWindow": 1_000_000_000, "maxTokens": 8192, "cost": cost}
    provider = {"baseUrl": model_url, "apiKey": "none", "api": "anthropic-messages"}
    return {"providers": {PROVIDER: {**provider, "models": [model]}}}
