"""Three of the APIs against a server nobody here has written: llama.cpp with a model of noise.

Skipped where xllamacpp, which holds that server, is not installed; the group `dev` brings it.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.reply import Fold
from pi_rpc.providers.http import Http, Patience
from pi_rpc.providers.remote import Access, RemoteProvider
from tests.providers.streams import APIS, model_of
from tests.providers.tiny_model import CONTEXT, write_model

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed"
)

SERVED = ("anthropic-messages", "openai-completions", "openai-responses")
READ: JsonObject = {
    "name": "read",
    "description": "Reads.",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
}
QUESTION: JsonObject = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path)
    served = Path(__file__).with_name("llama_serving.py")
    with subprocess.Popen(
        [sys.executable, str(served), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        address = next(line for line in process.stdout if line.startswith("http"))
        yield address.strip()
        process.stdin.close()
        try:
            process.wait(5)
        finally:
            process.kill()


async def answered(
    url: str, api: str, messages: list[JsonObject], max_output: int = 60
) -> JsonObject:
    async def open_door() -> Access:
        return Access()

    http = Http(Patience(5, 30, 60))
    base = url if api == "anthropic-messages" else f"{url}/v1"
    facts = {"base_url": base, "reasoning": False, "input": ("text",), "context_window": CONTEXT}
    provider = RemoteProvider(model_of(api, **facts), APIS[api], open_door, http)
    request = ModelRequest("test", "m1", "off", messages, "s1", max_output=max_output)
    fold = Fold()
    with anyio.fail_after(60):
        async for pieces in provider.reply(request):
            fold.extend(pieces)
    await http.close()
    assert fold.has_ended
    return fold.message("test", "m1", api, 1, 1)


@pytest.mark.anyio
@pytest.mark.parametrize("api", SERVED)
async def test_it_answers_in_words(url: str, api: str) -> None:
    message = await answered(url, api, [QUESTION])
    assert message["stopReason"] in ("stop", "length"), message
    assert "".join(block.get("text", "") for block in message["content"])
    assert message["usage"]["input"] + message["usage"]["cacheRead"] > 0
    assert message["usage"]["output"] > 0


@pytest.mark.anyio
@pytest.mark.parametrize("api", SERVED)
async def test_a_conversation_goes_on_with_a_call_and_its_result(url: str, api: str) -> None:
    called = {"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"path": "a"}}
    system = {"role": "system", "content": "Be brief.", "toolsAdded": [READ]}
    messages: list[JsonObject] = [
        system,
        QUESTION,
        {"role": "assistant", "content": [called], "stopReason": "toolUse"},
        {
            "role": "toolResult",
            "toolCallId": "call_1",
            "toolName": "read",
            "content": [{"type": "text", "text": "x"}],
        },
        QUESTION,
    ]
    message = await answered(url, api, messages)
    # A model of noise may begin a call that it cannot end; everything else is a reply.
    assert message["stopReason"] in ("stop", "length", "toolUse", "error"), message
    assert message.get("error", {}).get("status") is None, message


@pytest.mark.anyio
@pytest.mark.parametrize("api", SERVED)
async def test_a_context_that_is_too_long_is_an_overflow(url: str, api: str) -> None:
    long = {"role": "user", "content": "word " * 6000}
    message = await answered(url, api, [long])
    assert message["error"]["kind"] == "overflow", message
    assert message["error"]["status"] == 400
