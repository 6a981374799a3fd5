"""Writes session files for measuring: the same arguments give the same bytes.

    python tests/bench/sessions.py FILE ENTRIES linear|tree|compacted

A turn is a user message, up to three rounds of a tool call and its result, and an answer. An entry
takes about 1.5 kB; every second one holds a character beyond Latin-1. ``linear`` is one chain,
``tree`` starts a tenth of its turns at an earlier turn's end, ``compacted`` is a chain with a
compaction every 400 entries.
"""

from __future__ import annotations

import json
import random
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PROVIDER, MODEL = "offline", "scripted"
START_MS = 1_767_225_600_000
COMPACT_EVERY = 400
KEPT_ENTRIES = 20
NOUNS = ["parser", "queue", "branch", "leaf", "cursor", "index", "socket", "lease", "turn", "draft"]
VERBS = ["reads", "writes", "keeps", "drops", "joins", "splits", "moves", "names", "checks"]
PROMPT = {"preamble": "Be brief."}

Json = dict[str, Any]


@dataclass(frozen=True)
class SessionFile:
    """What was written, its last entry, and the last user message on the path to that."""

    path: Path
    entries: int
    last_user_id: str
    last_id: str


def write_session(path: Path, entries: int, shape: str, cwd: Path | str = "/") -> SessionFile:
    """Write one session file: whole turns until it has ``entries`` entries, few more at most."""
    history = _History(shape)
    header = {"type": "session", "version": 3, "id": f"00000000-0000-7000-8000-{entries:012}"}
    with path.open("wb") as file:
        file.write(_line({**header, "timestamp": _iso(START_MS), "cwd": str(cwd)}))
        for entry in history.until(entries):
            file.write(_line(entry))
    assert history.leaf is not None
    return SessionFile(path, history.made, history.users[-1][1], history.leaf)


def write_sessions(folder: Path, count: int, entries: int, cwd: Path | str = "/") -> None:
    """Write so many session files that differ in their headers only."""
    first = write_session(folder / "0.jsonl", entries, "tree", cwd)
    head, newline, rest = first.path.read_bytes().partition(b"\n")
    session_id = f"00000000-0000-7000-8000-{entries:012}".encode()
    for number in range(1, count):
        own = head.replace(session_id, f"session-{number}".encode())
        (folder / f"{number}.jsonl").write_bytes(own + newline + rest)


class _History:
    """Makes entries one after the other, each a child of the one before unless a turn branches."""

    def __init__(self, shape: str) -> None:
        self.shape = shape
        self.random = random.Random(1)
        self.made = 0
        self.leaf: str | None = None
        self.clock_ms = START_MS
        self.tokens = 2_000
        self.users: deque[tuple[int, str]] = deque(maxlen=KEPT_ENTRIES)
        self.turn_ends: deque[str] = deque(maxlen=50)
        pick = self.random.choice
        self.prose = " ".join(
            f"The {pick(NOUNS)} {pick(VERBS)} the {pick(NOUNS)}{'.' if n % 40 else ' — done ✓.'}"
            for n in range(4_000)
        )

    def until(self, entries: int) -> Iterator[Json]:
        yield self.entry("model_change", provider=PROVIDER, modelId=MODEL)
        yield self.entry("thinking_level_change", thinkingLevel="off")
        yield self.message({"role": "system", "content": "", "sections": PROMPT})
        next_compaction = COMPACT_EVERY
        while self.made < entries:
            if self.shape == "compacted" and self.made >= next_compaction:
                next_compaction += COMPACT_EVERY
                yield self.compaction()
            yield from self.turn()

    def turn(self) -> Iterator[Json]:
        if self.shape == "tree" and self.turn_ends and self.random.random() < 0.1:
            self.leaf = self.random.choice(self.turn_ends)
        user = self.message({"role": "user", "content": self.text(60, 500)})
        self.users.append((self.made, user["id"]))
        yield user
        for _ in range(self.random.randrange(4)):
            call = {"type": "toolCall", "id": f"call_{self.made}", **self.arguments()}
            yield self.assistant([*self.text(20, 300), call], "toolUse")
            result = {"role": "toolResult", "toolCallId": call["id"], "toolName": call["name"]}
            yield self.message({**result, "content": self.text(200, 5_600), "isError": False})
        answer = self.assistant(self.text(100, 1_500), "stop")
        self.turn_ends.append(answer["id"])
        yield answer

    def compaction(self) -> Json:
        old_enough = [user for made, user in self.users if made <= self.made - KEPT_ENTRIES]
        before, self.tokens = self.tokens, 10_000
        system = {"role": "system", "content": "", "sections": PROMPT, "timestamp": self.clock_ms}
        return self.entry(
            "compaction",
            summary=f"## Goal\n{self.words(800, 1_600)}",
            firstKeptEntryId=old_enough[-1],
            tokensBefore=before,
            details={"readFiles": ["src/leaf.py"], "modifiedFiles": ["src/turn.py"]},
            fromHook=False,
            systemMessage=system,
        )

    def entry(self, kind: str, **fields: Any) -> Json:
        self.made += 1
        entry_id = f"{self.made * 2_654_435_761 % 2**32:08x}"  # an odd factor: no id comes twice
        entry = {"type": kind, "id": entry_id, "parentId": self.leaf}
        self.leaf = entry_id
        self.clock_ms += 1_500
        return {**entry, "timestamp": _iso(self.clock_ms), **fields}

    def message(self, message: Json) -> Json:
        return self.entry("message", message={**message, "timestamp": self.clock_ms})

    def assistant(self, content: list[Json], stop: str) -> Json:
        output = len(json.dumps(content)) // 4
        self.tokens += 400 + output
        cached = self.tokens - 400 - output
        usage: Json = {"input": 400, "output": output, "cacheRead": cached, "cacheWrite": 0}
        cost = {"input": 0.0012, "output": output * 1.5e-05, "cacheRead": 0, "cacheWrite": 0}
        cost["total"] = sum(cost.values())
        message: Json = {"role": "assistant", "content": content, "api": "anthropic-messages"}
        message |= {"provider": PROVIDER, "model": MODEL, "usage": usage, "stopReason": stop}
        usage |= {"totalTokens": self.tokens, "cost": cost}
        return self.message(message)

    def arguments(self) -> Json:
        path = f"src/{self.random.choice(NOUNS)}.py"
        name = self.random.choice(["read", "ls", "write"])
        more = {"content": self.words(99, 900)} if name == "write" else {}
        return {"name": name, "arguments": {"path": path, **more}}

    def words(self, low: int, high: int) -> str:
        size = self.random.randrange(low, high)
        start = self.random.randrange(len(self.prose) - size)
        return self.prose[start : start + size]

    def text(self, low: int, high: int) -> list[Json]:
        return [{"type": "text", "text": self.words(low, high)}]


def _iso(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def _line(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


if __name__ == "__main__":
    print(write_session(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
