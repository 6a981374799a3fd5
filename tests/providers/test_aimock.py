"""All four APIs against a second server nobody here has written: npm's `@copilotkit/aimock`.

`make test` installs it in `tests/servers` where there is npm; else these tests are skipped. AIMOCK
may name another folder of the package, NODE the program that runs it.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.reply import Fold
from pi_rpc.providers.http import Http, Patience
from pi_rpc.providers.remote import Access, RemoteProvider
from pi_rpc.providers.secret import Secret
from tests.providers.streams import APIS, model_of

INSTALLED = Path(__file__).parent.parent / "servers" / "node_modules" / "@copilotkit" / "aimock"
AIMOCK = Path(os.environ.get("AIMOCK") or INSTALLED)
NODE = os.environ.get("NODE", "node")

pytestmark = pytest.mark.skipif(
    not AIMOCK.is_dir() or shutil.which(NODE) is None,
    reason="npm's @copilotkit/aimock is not installed; `make test` does that where there is npm",
)

ERRORS = {
    "limit": (429, "rate_limit_error", "rate_limited"),
    "busy": (529, "overloaded_error", "overloaded"),
    "key": (401, "authentication_error", "unauthorized"),
}
"""What is asked, the status it gets, and what we make of it."""

PATHS = {
    "anthropic-messages": "",
    "openai-completions": "/v1",
    "openai-responses": "/v1",
    "google-generative-ai": "/v1beta",
}
READ: JsonObject = {
    "name": "read",
    "description": "Reads.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}
SYSTEM: JsonObject = {"role": "system", "content": "Be brief.", "toolsAdded": [READ]}
WORDS = "Two lines,\nand an ä.\n"


def fixtures() -> list[dict[str, Any]]:
    call = {"name": "read", "arguments": json.dumps({"path": "a b.txt"})}
    return [
        {"match": {"userMessage": "words"}, "response": {"content": WORDS}, "chunkSize": 1},
        {
            "match": {"userMessage": "call", "hasToolResult": False},
            "response": {"toolCalls": [call]},
        },
        {
            "match": {"userMessage": "call", "hasToolResult": True},
            "response": {"content": "It was read."},
        },
        {
            "match": {"userMessage": "cut"},
            "response": {"content": "x" * 400},
            "chunkSize": 4,
            "truncateAfterChunks": 5,
        },
        *(
            {
                "match": {"userMessage": asked},
                "response": {"error": {"message": asked, "type": kind}, "status": status},
            }
            for asked, (status, kind, _) in ERRORS.items()
        ),
    ]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    path.write_text(json.dumps({"fixtures": fixtures()}))
    argv = [NODE, str(AIMOCK / "dist" / "cli.js"), "-p", "0", "-f", str(path)]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        found = (re.search(r"http://[\w.]+:\d+", line) for line in process.stdout)
        yield next(one[0] for one in found if one)
        process.kill()


async def answered(url: str, api: str, *messages: JsonObject) -> JsonObject:
    async def open_door() -> Access:
        return Access(Secret("test"))

    http = Http(Patience(5, 5, 5))
    provider = RemoteProvider(
        model_of(api, base_url=url + PATHS[api], reasoning=False), APIS[api], open_door, http
    )
    request = ModelRequest("test", "m1", "off", [SYSTEM, *messages], "s1", max_output=100)
    fold = Fold()
    with anyio.fail_after(5):
        async for pieces in provider.reply(request):
            fold.extend(pieces)
    await http.close()
    assert fold.has_ended
    return fold.message("test", "m1", api, 1, 1)


def asked(text: str) -> JsonObject:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


@pytest.mark.anyio
@pytest.mark.parametrize("api", PATHS)
async def test_words_come_as_they_were_said(url: str, api: str) -> None:
    message = await answered(url, api, asked("words"))
    assert message["stopReason"] == "stop", message
    assert [block["text"] for block in message["content"]] == [WORDS]


@pytest.mark.anyio
@pytest.mark.parametrize("api", PATHS)
async def test_a_call_is_made_and_its_result_is_understood(url: str, api: str) -> None:
    called = await answered(url, api, asked("call"))
    assert called["stopReason"] == "toolUse", called
    [call] = called["content"]
    assert (call["name"], call["arguments"]) == ("read", {"path": "a b.txt"})
    result: JsonObject = {
        "role": "toolResult",
        "toolCallId": call["id"],
        "toolName": "read",
        "content": [{"type": "text", "text": "x"}],
    }
    message = await answered(url, api, asked("call"), called, result)
    assert [block["text"] for block in message["content"]] == ["It was read."]


@pytest.mark.anyio
@pytest.mark.parametrize("api", PATHS)
async def test_a_stream_that_is_cut_is_an_error_that_may_pass(url: str, api: str) -> None:
    message = await answered(url, api, asked("cut"))
    assert message["stopReason"] == "error", message


@pytest.mark.anyio
@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("words", ERRORS)
async def test_a_status_is_told_apart(url: str, api: str, words: str) -> None:
    message = await answered(url, api, asked(words))
    status, _, kind = ERRORS[words]
    assert message["stopReason"] == "error", message
    assert (message["error"]["status"], message["error"]["kind"]) == (status, kind)
