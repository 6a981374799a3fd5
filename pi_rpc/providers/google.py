"""The Google Generative Language API: a request into its words; pure."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pi_rpc.core.messages import Block, JsonObject
from pi_rpc.core.models import Model
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.providers.asking import (
    Api,
    Post,
    Retention,
    input_tokens,
    output_cap,
    thinking_level,
)
from pi_rpc.providers.google_reading import GoogleReading
from pi_rpc.providers.telling import Words, told
from pi_rpc.providers.transcript import (
    images_in,
    is_wordy,
    plain_id,
    result_runs,
    result_text,
)

NAME = "google-generative-ai"
ID_CHARS_MAX = 64
DYNAMIC = -1
"""The budget that leaves it to the model."""

BUDGETS = {
    "2.5-pro": {"minimal": 128, "low": 2048, "medium": 8192, "high": 32_768},
    "2.5-flash-lite": {"minimal": 512, "low": 2048, "medium": 8192, "high": 24_576},
    "2.5-flash": {"minimal": 128, "low": 2048, "medium": 8192, "high": 24_576},
}
"""Budgets by family, the more exact name first; other models choose for themselves."""

IMAGES_CAPTION = "Images returned by the tool:"

_GENERATION = re.compile(r"gemini-(\d+)")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def request_of(request: ModelRequest, model: Model, retention: Retention) -> Post:
    """The request for a context. Caching is the server's own business here."""
    messages = list(request.messages)
    context = told(request, messages, model, _words)
    cap = output_cap(request.max_output, model, input_tokens(messages))
    generation: JsonObject = {"maxOutputTokens": cap}
    body: JsonObject = {"contents": context.said, "generationConfig": generation}
    if context.prompt:
        body["systemInstruction"] = {"parts": [{"text": context.prompt}]}
    if context.tools:
        body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in context.tools]}]
    if model.reasoning:
        generation["thinkingConfig"] = _thinking(request, model)
    path = f"/models/{model.id}:streamGenerateContent?alt=sse"
    return Post(path, {}, body, context.notes)


def _words(model: Model) -> Words:
    def say(passage: list[JsonObject], _: int, __: Sequence[JsonObject]) -> list[JsonObject]:
        return [turn for run in result_runs(passage) for turn in _turns(run, model)]

    return Words(_normal_id, say, same_api=False)


def _normal_id(stored_id: str, is_same: bool) -> str:
    return stored_id if is_same else plain_id(stored_id, ID_CHARS_MAX)


def _generation(model: Model) -> int | None:
    """The generation of a Gemini model; None for any other."""
    found = _GENERATION.search(model.id)
    return int(found[1]) if found else None


def _takes_ids(model: Model) -> bool:
    generation = _generation(model)
    return (generation or 0) >= 3 or model.id.startswith(("claude-", "gpt-oss-"))


def _nests_images(model: Model) -> bool:
    generation = _generation(model)
    return generation is None or generation >= 3


def _thinking(request: ModelRequest, model: Model) -> JsonObject:
    level = thinking_level(request, model)
    if (_generation(model) or 0) >= 3:
        if level == "off":
            # These cannot be told not to think; the least they do is not shown.
            return {"thinkingLevel": model.thinking.get("off") or "MINIMAL"}
        word = model.thinking.get(level) or level.upper()
        return {"includeThoughts": True, "thinkingLevel": word}
    if level == "off":
        return {"thinkingBudget": 0}
    family: dict[str, int] = next((one for name, one in BUDGETS.items() if name in model.id), {})
    budgets = family | request.asking.thinking_budgets
    return {"includeThoughts": True, "thinkingBudget": budgets.get(level, DYNAMIC)}


def _tool(tool: JsonObject) -> JsonObject:
    schema = tool.get("parameters") or {"type": "object", "properties": {}}
    return {
        "name": tool.get("name"),
        "description": tool.get("description", ""),
        "parametersJsonSchema": _without_const(schema),
    }


_MAPS_OF_NAMES = frozenset({"properties", "patternProperties", "$defs", "definitions"})


def _without_const(schema: Any) -> Any:
    """A schema with each `const` said as an `enum` of one value, which the API knows."""
    if isinstance(schema, list):
        return [_without_const(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made: JsonObject = {}
    for name, part in schema.items():
        if name == "const":
            made["enum"] = [part]
        elif name in _MAPS_OF_NAMES and isinstance(part, dict):
            made[name] = {each: _without_const(below) for each, below in part.items()}
        elif name in ("enum", "default", "examples"):
            made[name] = part
        else:
            made[name] = _without_const(part)
    return made


def _turns(run: list[JsonObject], model: Model) -> list[JsonObject]:
    match run[0]["role"]:
        case "user":
            content = run[0]["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            return [{"role": "user", "parts": _parts(blocks)}]
        case "assistant":
            is_same = bool(run[0]["isSame"])
            parts = [made for block in run[0]["content"] if (made := _said(block, is_same, model))]
            return [{"role": "model", "parts": parts}] if parts else []
        case _:
            return _results(run, model)


def _parts(blocks: Iterable[Block]) -> list[JsonObject]:
    return [
        _image(block) if block["type"] == "image" else {"text": block["text"]} for block in blocks
    ]


def _image(block: Block) -> JsonObject:
    return {"inlineData": {"mimeType": block["mimeType"], "data": block["data"]}}


def _said(block: Block, is_same: bool, model: Model) -> JsonObject | None:
    match block["type"]:
        case "text":
            return {"text": block.get("text") or ""} | _signature(block, "textSignature", is_same)
        case "thinking":
            text = block.get("thinking") or ""
            signature = _signature(block, "thinkingSignature", is_same)
            if not is_wordy(text) and not signature:
                return None
            return {"thought": True, "text": text} | signature
        case _:
            call: JsonObject = {"name": block["name"], "args": block["arguments"]}
            if _takes_ids(model):
                call["id"] = block["id"]
            return {"functionCall": call} | _signature(block, "thoughtSignature", is_same)


def _signature(block: Block, name: str, is_same: bool) -> JsonObject:
    """The part's own signature; one that is no base64 is another API's."""
    signature = block.get(name)
    if not is_same or not isinstance(signature, str) or not signature:
        return {}
    return {"thoughtSignature": signature} if _BASE64.fullmatch(signature) else {}


def _results(run: Sequence[JsonObject], model: Model) -> list[JsonObject]:
    """All results of a reply's calls in one turn; images beside them where they may not be in."""
    parts: list[JsonObject] = []
    after: list[JsonObject] = []
    for result in run:
        text = result_text(result)
        images = images_in(result["content"])
        response: JsonObject = {
            "name": result["toolName"],
            "response": {"error" if result["isError"] else "output": text},
        }
        if _takes_ids(model):
            response["id"] = result["toolCallId"]
        if images and _nests_images(model):
            response["parts"] = [_image(image) for image in images]
        elif images:
            after += [{"text": IMAGES_CAPTION}, *map(_image, images)]
        parts.append({"functionResponse": response})
    turns: list[JsonObject] = [{"role": "user", "parts": parts}]
    return [*turns, {"role": "user", "parts": after}] if after else turns


def _reading(model: Model, request: ModelRequest) -> GoogleReading:
    # The length of the context tells the requests of one session apart.
    return GoogleReading(model.id, str(len(request.messages)))


def _key_headers(key: str) -> dict[str, str]:
    return {"x-goog-api-key": key}


GOOGLE = Api(NAME, request_of, _reading, _key_headers)
