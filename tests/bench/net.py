"""Ours and Pi asked over HTTP alike: both have the model server of `model_server.py`."""

from __future__ import annotations

import json
import time
from pathlib import Path

from ours import Ours
from peer import Peer, PeerPlace
from sessions import MODEL

PROVIDER = "net"
NET_WORDS = 50_000
LOOP_TURNS = 100
NOTE = "note.txt"
"""What every turn of the loop reads."""


class OursOnTheNet(Ours):
    """Our daemon, whose model is behind an address."""

    def __init__(self, folder: Path, workspace: Path, command: Path, model_url: str) -> None:
        cost = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}
        model = {"id": MODEL, "contextWindow": 1_000_000_000, "maxTokens": 8192, "cost": cost}
        provider = {"baseUrl": model_url, "apiKey": "none", "api": "anthropic-messages"}
        catalogue = {"providers": {PROVIDER: {**provider, "models": [model]}}}
        (folder / "models.json").write_text(json.dumps(catalogue))
        super().__init__(folder, workspace, command, 0)

    def new_session(self) -> None:
        model = {"provider": PROVIDER, "modelId": MODEL}
        state = self.request("session/new", cwd=str(self._workspace), model=model)
        self.session_id = state["sessionId"]


def net_driver(
    folder: Path, workspace: Path, command: Path, model_url: str, place: PeerPlace | None
) -> Ours | Peer:
    """A fresh process that has a session and has answered once; Pi's when it has a place."""
    driver: Ours | Peer
    if place is None:
        driver = OursOnTheNet(folder, workspace, command, model_url)
    else:
        driver = Peer(folder, workspace, place)
    (workspace / NOTE).write_text("A line to read.\n")
    driver.begin()
    driver.new_session()
    driver.prompt("Say 1 words.")
    return driver


def stream_cost(driver: Ours | Peer) -> tuple[float, float]:
    """Deltas a second, and microseconds of processor time for one. Raises RuntimeError."""
    before_s, begun = driver.process.cpu_s(), time.perf_counter()
    output = driver.stream(NET_WORDS)
    took_s = time.perf_counter() - begun
    used_s = driver.process.cpu_s() - before_s
    if (words := driver.words_in(output)) != NET_WORDS:
        raise RuntimeError(f"{words} deltas of {NET_WORDS} came")
    return NET_WORDS / took_s, used_s / NET_WORDS * 1e6


def loop_turn_ms(driver: Ours | Peer) -> float:
    """Milliseconds for one turn of a loop in which the model calls a tool each time."""
    begun = time.perf_counter()
    driver.prompt(f"Loop {LOOP_TURNS} turns.")
    return (time.perf_counter() - begun) / LOOP_TURNS * 1e3
