"""A daemon and a model server over real HTTP: what settings do, where keys go, many at once."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.process.conftest import Start
from tests.providers.serving import Answer, Asked, Serving, served_beside
from tests.providers.streams import APIS, STREAMS, spoken

MARK = "sk-marker-"
"""How every key here begins; a key is told once too often where this is found."""

VERSIONS = {
    "anthropic-messages": "",
    "openai-completions": "/v1",
    "openai-responses": "/v1",
    "google-generative-ai": "/v1beta",
}
QUOTING_CHARS = range(3990, 4001, 2)
"""How much stands before a key, so that a text of 4000 characters is cut in the middle of it."""


def provider_of(api: str, url: str, **more: Any) -> dict[str, Any]:
    model = {"id": "m1", "reasoning": True, "input": ["text", "image"]}
    return {"baseUrl": f"{url}/{api}{VERSIONS[api]}", "api": api, "models": [model], **more}


def api_of(asked: Asked) -> str:
    return asked.path.split("/")[1]


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    path.chmod(0o600)


class Quoting(Serving):
    """Says back the keys it is sent, in every way a server can say something, then answers."""

    def __init__(self) -> None:
        super().__init__(())
        self._counts: dict[str, int] = {}

    def answer_to(self, asked: Asked) -> Answer:
        api = api_of(asked)
        self._counts[api] = self._counts.get(api, 0) + 1
        quoted = " ".join(value for value in asked.headers.values() if MARK in value)
        assert quoted, "a key was sent"
        answers = [*self._refusals(quoted), *self._streams(quoted)]
        answers += [Answer([STREAMS[api]]), Answer(spoken(api, ["Done."]))]
        return answers[min(self._counts[api], len(answers)) - 1]

    @staticmethod
    def _refusals(quoted: str) -> list[Answer]:
        key = quoted.rsplit(maxsplit=1)[-1]
        told = {"error": {"message": f"bad key {quoted}", "type": quoted, "code": key}}
        return [
            Answer([json.dumps(told).encode()], 401, {"x-told": key}),
            Answer([f"<p>no: {quoted}".encode()], 400),
            *(Answer([b"x" * at + key.encode() * 9], 400) for at in QUOTING_CHARS),
        ]

    @staticmethod
    def _streams(quoted: str) -> list[Answer]:
        error = json.dumps({"type": "error", "error": {"type": quoted, "message": quoted}})
        return [
            Answer([f"data: {{{quoted}\n\n".encode()]),
            *(Answer([f"data: {'x' * at}{quoted}\n\n".encode()]) for at in range(180, 200, 3)),
            Answer([f"event: error\ndata: {error}\n\n".encode()]),
        ]

    @property
    def rounds(self) -> int:
        """How many requests it takes until it answers well."""
        return len(self._refusals("k")) + len(self._streams("k"))


def files_with(mark: str, folder: Path) -> list[str]:
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and mark.encode() in path.read_bytes():
            found.append(str(path.relative_to(folder)))
    return found


def test_keys_are_in_no_log_no_error_no_event_and_no_file(
    start: Start, tmp_path: Path, cwd: Path
) -> None:
    """Four APIs, a key from each place, a server that quotes it in whatever it says."""
    (cwd / "a").write_text("words")
    agent = tmp_path / "agent"
    served = Quoting()
    names = dict(zip(APIS, ("stored", "variable", "command", "header"), strict=True))
    doors = {
        "stored": {},
        "variable": {"apiKey": "$TEST_KEY"},
        "command": {"apiKey": f"!printf {MARK}from-a-command"},
        "header": {"headers": {"x-own": f"{MARK}from-a-header"}},
    }
    with served_beside(served):
        providers = {
            name: provider_of(api, served.url, **doors[name]) for api, name in names.items()
        }
        write(agent / "models.json", {"providers": providers})
        key = {"type": "api_key", "key": f"{MARK}from-a-file"}
        write(agent / "auth.json", {"stored": key, "odd": {"type": "new", "key": f"{MARK}odd"}})
        write(agent / "settings.json", {"retry": {"enabled": False}})
        daemon = start(environment={"TEST_KEY": f"{MARK}from-a-variable"}).greet()
        for name in names.values():
            state = daemon.call("session/new", cwd=str(cwd))
            session_id = state["sessionId"]
            daemon.call("model/set", sessionId=session_id, provider=name, modelId="m1")
            outcomes = [
                daemon.call("agent/prompt", sessionId=session_id, text="Go.", wait=True)["outcome"]
                for _ in range(served.rounds + 1)
            ]
            assert outcomes == ["failed"] * served.rounds + ["done"]
            daemon.call("session/export", sessionId=session_id, format="html", redact=False)
            daemon.call("context/get", sessionId=session_id)
        for method in ("model/list", "daemon/diagnostics", "daemon/status", "session/list"):
            daemon.call(method)
        daemon.call("session/search", query="bad")
        daemon.call("shutdown")
        daemon.call("exit")
        assert daemon.status() == 0
    errors = [one for one in daemon.params_of("message/ended") if "error" in one["message"]]
    assert len(errors) == 4 * served.rounds
    assert any("[key]" in one["message"]["errorMessage"] for one in errors)
    assert MARK not in json.dumps([daemon.told, *daemon.answers.values()])
    assert MARK not in daemon.errors()
    assert files_with(MARK, tmp_path) == ["agent/auth.json", "agent/models.json"]


def test_settings_reach_the_requests_of_a_session(start: Start, tmp_path: Path, cwd: Path) -> None:
    api = "openai-completions"
    busy = Answer([b"busy"], 529, {"retry-after-ms": "1"})
    hanging = Answer([STREAMS[api][:300]], hangs=True)
    served = Serving([busy, Answer(spoken(api, ["One."])), hanging, Answer(spoken(api, ["Two."]))])
    with served_beside(served):
        facts = {"samplingParams": {"top_p": 0.5}, "compat": {"thinkingTokenBudgetField": "budget"}}
        provider = provider_of(api, served.url)
        provider["models"][0] |= facts
        write(tmp_path / "agent/models.json", {"providers": {"mine": provider}})
        settings = {
            "defaultProvider": "mine",
            "defaultModel": "m1",
            "defaultThinkingLevel": "low",
            "thinkingBudgets": {"low": 777},
            "images": {"blockImages": True},
            "retry": {"enabled": False, "provider": {"maxRetries": 1}},
        }
        write(tmp_path / "agent/settings.json", settings)
        daemon = start().greet()
        session_id = daemon.call("session/new", cwd=str(cwd))["sessionId"]
        image = {"data": "R0lGODlhAQABAAAAACw=", "mimeType": "image/gif"}

        def prompt(**more: Any) -> str:
            asked = {"sessionId": session_id, "text": "Look.", "wait": True, **more}
            return str(daemon.call("agent/prompt", **asked)["outcome"])

        def choose(key: str, value: Any) -> None:
            daemon.call("settings/set", sessionId=session_id, key=key, value=value)

        assert prompt(images=[image]) == "done"
        choose("httpIdleTimeoutMs", 50)
        assert prompt() == "failed"
        # Retries of a session are its own too, and begin with the next run.
        choose("retry.enabled", True)
        choose("retry.baseDelayMs", 1)
        served.answers[:0] = [hanging]
        assert prompt() == "done"
    bodies = [one.body for one in served.asked]
    assert len(bodies) == 5
    assert bodies[0] == bodies[1]
    assert "R0lGOD" not in json.dumps(bodies)
    assert {(body["top_p"], body["budget"]) for body in bodies} == {(0.5, 777)}
    replies = [
        one["message"]
        for one in daemon.params_of("message/ended")
        if one["message"]["role"] == "assistant"
    ]
    assert [one.get("error", {}).get("kind") for one in replies] == [
        *(None, "timeout", "timeout", None)
    ]
    assert "0.05 s" in replies[1]["errorMessage"]
    assert {one["thinkingLevel"] for one in replies} == {"low"}
    assert replies[0]["diagnostics"][0]["details"] == {
        "notes": [{"kind": "asked_again", "count": 1}]
    }
    [retry] = daemon.params_of("retry/scheduled")
    assert retry["error"]["kind"] == "timeout"


SESSIONS = int(os.environ.get("PI_RPC_HTTP_SESSIONS", "200"))
CHUNKS, WORDS_EACH = 12, 8
MEMORY_MB_MAX = 220


class InStep(Serving):
    """Goes on with a reply only when all are as far: one that is not read holds up all."""

    def __init__(self, count: int) -> None:
        super().__init__(())
        self._count = count
        self._step: asyncio.Barrier | None = None

    def answer_to(self, asked: Asked) -> Answer:
        begin, *words, end = spoken(api_of(asked), words_of(asked))
        parts = [words[at : at + WORDS_EACH] for at in range(0, len(words), WORDS_EACH)]
        return Answer([begin, *map(b"".join, parts), end])

    async def between_chunks(self) -> None:
        self._step = self._step or asyncio.Barrier(self._count)
        await self._step.wait()


def words_of(asked: Asked) -> list[str]:
    """Words that only this request is told."""
    name = json.dumps(asked.body).partition("I am ")[2].partition(".")[0]
    return [f"{name}-{number} " for number in range(CHUNKS * WORDS_EACH)]


@pytest.mark.skipif(not hasattr(asyncio, "Barrier"), reason="asyncio has no barriers here")
def test_many_sessions_stream_over_http_at_once_and_each_hears_its_own(
    start: Start, tmp_path: Path, cwd: Path
) -> None:
    served = InStep(SESSIONS)
    with served_beside(served):
        providers = {api: provider_of(api, served.url) for api in APIS}
        write(tmp_path / "agent/models.json", {"providers": providers})
        daemon = start("--durability", "turn").greet()
        daemon.wait_s = 60
        names = [f"s{number}" for number in range(SESSIONS)]
        for number, name in enumerate(names):
            daemon.send("session/new", cwd=str(cwd), sessionId=name)
            api = list(APIS)[number % len(APIS)]
            daemon.send("model/set", sessionId=name, provider=api, modelId="m1")
        asked = [
            daemon.send("agent/prompt", sessionId=name, text=f"I am {name}.") for name in names
        ]
        for request_id in asked:
            assert daemon.result_of(request_id)["disposition"] == "started"
        daemon.read_until_told("agent/settled", SESSIONS)
        memory_mb = daemon.memory_kib() / 1024
    assert {one["outcome"] for one in daemon.params_of("agent/settled")} == {"done"}
    heard: dict[str, list[dict[str, Any]]] = {}
    for message in daemon.told:
        if "seq" in message["params"]:
            heard.setdefault(message["params"]["sessionId"], []).append(message)
    assert heard.keys() == set(names)
    for name, messages in heard.items():
        numbers = [one["params"]["seq"] for one in messages]
        assert numbers == list(range(1, len(numbers) + 1))
        text = "".join(
            one["params"]["text"] for one in messages if one["method"] == "message/delta"
        )
        assert text == "".join(f"{name}-{number} " for number in range(CHUNKS * WORDS_EACH))
    assert memory_mb < MEMORY_MB_MAX
