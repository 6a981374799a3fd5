"""Drives our daemon: JSON-RPC 2.0, one message a line, notifications between the answers."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from lines import LineProcess
from sessions import MODEL, PROVIDER

WORD = "tok "
_NEXT = re.compile(rb'"nextCursor":"([^"]+)"')


class Ours:
    """One daemon whose offline model answers in ``words`` deltas."""

    def __init__(self, folder: Path, workspace: Path, command: Path, words: int) -> None:
        settings = folder / "settings.json"
        if not settings.exists():
            settings.write_text(json.dumps({"compaction": {"enabled": False}}))
        env = {**os.environ, "HOME": str(folder), "PI_CODING_AGENT_DIR": str(folder)}
        if words:
            # A window as long as that Pi is told of: a summary of anything is one request.
            window = {"contextWindow": 1_000_000_000}
            reply = {"text": WORD * words, "chunk": len(WORD), "usage": {"input": 100, "output": 1}}
            script = folder / "script.json"
            script.write_text(json.dumps({"default": reply, **window}))
            env["PI_RPC_SCRIPT"] = str(script)
        self.process = LineProcess([str(command)], workspace, env, folder / "stderr.txt")
        self.session_id = ""
        self._workspace = workspace
        self._settled: list[dict[str, Any]] = []
        self._requests = 0

    def begin(self) -> None:
        """Wait for the first answer."""
        client = {"name": "bench", "version": "1"}
        self.request("initialize", protocolVersion=1, clientInfo=client, capabilities={})

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """The result. Raises RuntimeError when the answer is an error."""
        self._requests += 1
        self.process.write(_request(self._requests, method, params))
        while (message := self._hear()).get("id") != self._requests or "method" in message:
            pass
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return dict(message["result"] or {})

    def _hear(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.process.line())
        if message.get("method") == "agent/settled":
            self._settled.append(message["params"])
        return message

    @property
    def state_request(self) -> bytes:
        return _request("s", "session/state", {"sessionId": self.session_id})

    def new_session(self) -> None:
        model = {"provider": PROVIDER, "modelId": MODEL}
        state = self.request("session/new", cwd=str(self._workspace), model=model)
        self.session_id = state["sessionId"]

    def open(self, path: Path) -> None:
        self.session_id = self.request("session/open", path=str(path))["sessionId"]

    def prompt(self, text: str) -> None:
        """Send a prompt and wait until everything it started is settled."""
        self._settled.clear()
        run = self.request("agent/prompt", sessionId=self.session_id, text=text, whenBusy="refuse")
        while not self._settled:
            self._hear()
        settled = self._settled[0]
        if (settled["runId"], settled["outcome"]) != (run["runId"], "done"):
            raise RuntimeError(f"prompt: {settled}")

    def stream(self, words: int) -> bytes:
        """Ask for an answer of that many deltas and take what comes without a look."""
        params = {"sessionId": self.session_id, "text": f"Say {words} words."}
        self.process.write(_request("w", "agent/prompt", params))
        return self.process.read_until(b'"agent/settled"')

    @staticmethod
    def words_in(output: bytes) -> int:
        """Deltas may have been merged under pressure, but no text may be missing."""
        said = [json.loads(line) for line in output.split(b"\n") if b'"message/delta"' in line]
        return sum(len(event["params"]["text"]) for event in said) // len(WORD)

    def fork(self, entry_id: str) -> None:
        state = self.request("session/fork", sessionId=self.session_id, entryId=entry_id)
        self.session_id = state["sessionId"]

    def clone(self) -> None:
        self.session_id = self.request("session/clone", sessionId=self.session_id)["sessionId"]

    def plan(self, *, with_files: bool) -> int:
        """Ask what a compaction would do; how many entries it would summarise."""
        asked = {"sessionId": self.session_id, "withFiles": with_files}
        plan = self.request("compact/preview", **asked)
        return len(plan["messagesToSummarize"]) + len(plan["turnPrefix"])

    def compact(self) -> None:
        """Compact, with a model that answers at once."""
        self.request("compact/run", sessionId=self.session_id)

    def tree(self) -> int:
        """Ask for the whole tree, page by page; the number of its nodes."""
        page = self.request("session/tree", sessionId=self.session_id)
        count = len(page["nodes"])
        while cursor := page.get("nextCursor"):
            page = self.request("session/tree", sessionId=self.session_id, cursor=cursor)
            count += len(page["nodes"])
        return count

    def list_sessions(self) -> int:
        """Ask for the list, page by page; the number of its sessions."""
        page = self.request("session/list", limit=1000)
        count = len(page["sessions"])
        while cursor := page.get("nextCursor"):
            page = self.request("session/list", limit=1000, cursor=cursor)
            count += len(page["sessions"])
        return count

    def entries_since(self, entry_id: str) -> None:
        self.request("session/entries", sessionId=self.session_id, since=entry_id)

    def stats(self) -> None:
        self.request("session/stats", sessionId=self.session_id)

    def entries(self) -> int:
        """Take all entries, page by page, only the cursors looked at; how many bytes came."""
        size, cursor = 0, None
        while True:
            params = {"sessionId": self.session_id, "limit": 10_000, "since": cursor}
            self.process.write(_request("e", "session/entries", params))
            while b'"id":"e"' not in (line := self.process.line())[:40]:
                pass
            size += len(line)
            found = _NEXT.search(line[-100:])
            if found is None:
                return size
            cursor = found[1].decode()

    @staticmethod
    def answers(line: bytes) -> bool:
        return b'"result":' in line and b'"method":' not in line

    def close(self) -> None:
        """Shut down in order, so that what is kept beside a session file is kept."""
        try:
            self.request("shutdown")
            self.process.write(b'{"jsonrpc":"2.0","method":"exit"}\n')
        finally:
            self.process.close()


def _request(request_id: int | str, method: str, params: dict[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"
