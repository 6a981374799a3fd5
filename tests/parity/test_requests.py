"""What we send for a recorded history is what Pi sent for it, but for what is listed here."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pi_rpc.core.models import Model
from pi_rpc.core.policy import PI3
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.projection import project
from pi_rpc.core.tree import Tree
from pi_rpc.providers.anthropic import ANTHROPIC
from pi_rpc.providers.asking import Api, body_bytes
from pi_rpc.providers.openai_chat import OPENAI_CHAT
from pi_rpc.providers.openai_responses import OPENAI_RESPONSES
from tests.core.trees import Growing

RECORDINGS = Path(__file__).parent / "recordings"
APIS: dict[str, Api] = {api.name: api for api in (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES)}
ANSWERED = re.compile(r"(?:msg_|chatcmpl-|resp_)(\d+)")


def objects_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def tree_of(path: Path) -> Tree:
    growing = Growing()
    for stored in objects_of(path)[1:]:
        growing.add(stored)
    return growing.tree


def answered_requests() -> list[Any]:
    """Every recorded request whose reply is in the session file, with the history before it."""
    found = []
    for recorded in sorted(RECORDINGS.glob("*/llm_requests.jsonl")):
        sent = {each["n"]: each for each in objects_of(recorded) if each.get("kind") == "chat"}
        tree = tree_of(recorded.with_name("session.jsonl"))
        level = "off"
        for row in range(len(tree)):
            entry = tree.entry(row)
            message = entry.message or {}
            if message.get("role") != "assistant":
                continue
            level = message.get("thinkingLevel", "off")
            number = ANSWERED.fullmatch(str(message.get("responseId")))
            if number is None or int(number[1]) not in sent:
                continue
            name = f"{recorded.parent.name}-{number[1]}"
            request = sent[int(number[1])]
            found.append(pytest.param(tree, row, level, request, id=name))
    return found


REQUESTS = answered_requests()


def ours(tree: Tree, row: int, level: str, api: Api) -> tuple[dict[str, Any], dict[str, str]]:
    message = tree.entry(row).message or {}
    model = Model(
        provider=message["provider"],
        id=message["model"],
        name="mock",
        api=api.name,
        base_url="http://127.0.0.1",
        reasoning=message["model"] != "plain",
        input=("text", "image"),
        context_window=200_000,
        max_output=8192,
    )
    leaf = tree.heads.parents[row]
    messages = list(project(tree, leaf, PI3).messages("llm"))
    request = ModelRequest(model.provider, model.id, level, messages, "s1")
    post = api.post(request, model, "short")
    return json.loads(body_bytes(post.body)), post.headers


def comparable(value: Any) -> Any:
    """A request without what differs on purpose.

    - The prompt and the tools are in the recordings by size and name only.
    - The cache key is not the session's id.
    - A tool's failure is said in words where the API has no field for it.
    - Half a character is left out of a call's arguments too.
    - A text that a recording leaves out is compared by its place alone.
    """
    if isinstance(value, list):
        return [comparable(part) for part in value]
    if isinstance(value, str):
        whole = value.encode("utf-8", "ignore").decode()
        return "…" if "[elided" in value else whole.removeprefix("Error: ")
    if not isinstance(value, dict):
        return value
    made = {name: comparable(part) for name, part in value.items()}
    if made.get("role") in ("system", "developer"):
        made["content"] = "…"
    if "prompt_cache_key" in made:
        made["prompt_cache_key"] = "…"
    if "system" in made:
        made["system"] = [part | {"text": "…"} for part in made["system"]]
    if "tools" in made:
        made["tools"] = [(tool.get("function") or tool)["name"] for tool in made["tools"]]
    return made


def where_elided(theirs: Any, mine: Any) -> Any:
    """Ours, with the same holes as theirs."""
    if theirs == "…":
        return "…"
    if isinstance(theirs, dict) and isinstance(mine, dict):
        return {name: where_elided(theirs.get(name), part) for name, part in mine.items()}
    if isinstance(theirs, list) and isinstance(mine, list) and len(theirs) == len(mine):
        return [where_elided(one, other) for one, other in zip(theirs, mine, strict=True)]
    return mine


@pytest.mark.parametrize(("tree", "row", "level", "recorded"), REQUESTS)
def test_a_request_is_the_one_pi_sent(
    tree: Tree, row: int, level: str, recorded: dict[str, Any]
) -> None:
    api = APIS[recorded["api"]]
    body, headers = ours(tree, row, level, api)
    theirs = comparable(recorded["body"])
    assert where_elided(theirs, comparable(body)) == theirs
    # The session's id is not told in headers.
    shown = {
        name: value
        for name, value in recorded.get("headers", {}).items()
        if name not in ("session-id", "x-client-request-id")
    }
    assert headers == shown


def test_there_are_requests_of_three_apis() -> None:
    assert {param.values[3]["api"] for param in REQUESTS} == set(APIS)
    assert len(REQUESTS) > 60
