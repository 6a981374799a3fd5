"""Deep and much branched histories are served whole, and every answer fits its reader."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.process.conftest import Start
from tests.process.daemons import INITIALIZE, Daemon

DEEP = 30_000
BRANCHES = 1_000
STAMP = "2026-01-01T00:00:00.000Z"


def entries(deep: int, branches: int) -> Iterator[dict[str, Any]]:
    """A chain of talk, and below its third entry so many branches of two."""
    below = None
    for number in range(deep + 2 * branches):
        if number >= deep and not (number - deep) % 2:
            below = f"{2:08x}"
        said: dict[str, Any] = {"role": "user", "content": f"q {number}", "timestamp": number}
        if number % 2:
            cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.001}
            said = {
                "role": "assistant",
                "content": [{"type": "text", "text": f"a {number}"}],
                "api": "offline",
                "provider": "offline",
                "model": "scripted",
                "usage": {"input": 10, "output": 5, "totalTokens": 15, "cost": cost},
                "stopReason": "stop",
                "timestamp": number,
            }
        entry_id = f"{number:08x}"
        base = {"type": "message", "id": entry_id, "parentId": below, "timestamp": STAMP}
        yield base | {"message": said}
        below = entry_id


def opened(daemon: Daemon, cwd: Path, deep: int, branches: int = 0, more: bytes = b"") -> str:
    header = {"type": "session", "version": 3, "id": "large", "timestamp": STAMP, "cwd": str(cwd)}
    lines = (json.dumps(each) for each in (header, *entries(deep, branches)))
    path = cwd.parent / "large.jsonl"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode() + more)
    return str(daemon.call("session/open", path=str(path))["sessionId"])


def pages(daemon: Daemon, method: str, items: str, **params: Any) -> Iterator[Any]:
    cursor: dict[str, str] = {}
    while True:
        page = daemon.call(method, **params, **cursor)
        yield from page[items]
        if page.get("nextCursor") is None:
            return
        cursor = {"cursor": page["nextCursor"]}


def test_a_tree_as_deep_as_it_is_long_is_walked_moved_in_and_copied(
    start: Start, cwd: Path
) -> None:
    daemon = start().greet()
    session = opened(daemon, cwd, DEEP)
    ids = [f"{number:08x}" for number in range(DEEP)]
    asked = {"sessionId": session, "limit": 5000}
    assert [one["id"] for one in pages(daemon, "session/tree", "nodes", **asked)] == ids
    below = pages(daemon, "session/tree", "nodes", root=ids[9], **asked)
    assert [one["id"] for one in below] == ids[9:]
    [tip] = daemon.call("branch/list", sessionId=session)["branches"]
    assert (tip["leafId"], tip["size"]) == (ids[-1], DEEP)
    stats = daemon.call("session/stats", sessionId=session)
    assert (stats["entries"], stats["costText"]) == (DEEP, "15")
    assert daemon.call("context/usage", sessionId=session)["method"] == "usage"
    moved = daemon.call("branch/navigate", sessionId=session, targetId=ids[3])
    assert moved["leafId"] == ids[3]
    stats = daemon.call("session/stats", sessionId=session)
    # The mark of the move hangs below the new leaf, and is on no path.
    assert stats["byBranch"]["entries"] == stats["entries"] - 4
    answer = daemon.call("agent/prompt", sessionId=session, text="go on", wait=True)
    assert answer["outcome"] == "done"
    fork = {"sessionId": session, "entryId": ids[-1], "position": "at", "activate": False}
    assert daemon.call("session/fork", **fork)["entryCount"] > DEEP
    assert daemon.call("session/clone", sessionId=session, activate=False)["entryCount"] < 20


def test_many_branches_are_listed_page_by_page_for_a_client_that_reads_little(
    start: Start, cwd: Path
) -> None:
    daemon = start()
    daemon.call("initialize", **INITIALIZE | {"capabilities": {"maxMessageBytes": 64 * 1024}})
    text = "x" * (10 << 20)
    result = {"role": "toolResult", "toolCallId": "c", "toolName": "read", "isError": False}
    entry = {"type": "message", "id": "ffffffff", "parentId": f"{2:08x}", "timestamp": STAMP}
    long = entry | {"message": result | {"content": [{"type": "text", "text": text}]}}
    session = opened(daemon, cwd, 9, BRANCHES, json.dumps(long).encode() + b"\n")
    tips = list(pages(daemon, "branch/list", "branches", sessionId=session, limit=500))
    assert len(tips) == BRANCHES + 2
    assert tips[-1] == tips[-1] | {"leafId": "ffffffff", "forkedFrom": f"{2:08x}", "current": True}
    assert sum(tip["current"] for tip in tips) == 1
    nodes = pages(daemon, "session/tree", "nodes", sessionId=session, depth=9000, limit=5000)
    assert len({one["id"] for one in nodes}) == 9 + 2 * BRANCHES + 1
    [pointer] = daemon.call("session/entries", sessionId=session, since=f"{8 + 2000:08x}")[
        "entries"
    ]
    assert pointer["truncated"] and pointer["bytes"] > len(text)
    said = list(pages(daemon, "context/get", "messages", sessionId=session))
    assert said[-1]["message"] == {"role": "toolResult", "truncated": True} | {
        "bytes": said[-1]["message"]["bytes"]
    }
