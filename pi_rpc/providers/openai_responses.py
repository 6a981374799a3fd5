"""The OpenAI Responses API: a request into its words; pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from pi_rpc.core.messages import Block, JsonObject
from pi_rpc.core.models import Model
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.providers.asking import (
    Api,
    Post,
    Retention,
    arguments_text,
    bearer,
    cache_key,
    input_tokens,
    output_cap,
    sampling_of,
    thinking_level,
)
from pi_rpc.providers.openai_responses_reading import ResponsesReading
from pi_rpc.providers.telling import Words, told
from pi_rpc.providers.transcript import (
    EMPTY_RESULT,
    ERROR_MARK,
    images_in,
    is_wordy,
    plain_id,
    result_text,
)

NAME = "openai-responses"
ID_CHARS_MAX = 64
OUTPUT_MIN = 16
"""The API refuses a smaller output cap."""

IMAGE_ONLY = "(see the attached image)"


def request_of(request: ModelRequest, model: Model, retention: Retention) -> Post:
    """The request for a context."""
    messages = list(request.messages)
    context = told(request, messages, model, _words)
    said: list[JsonObject] = []
    if context.prompt:
        is_developer = model.reasoning and model.compat.get("supportsDeveloperRole", True)
        said.append({"role": "developer" if is_developer else "system", "content": context.prompt})
    said += context.said
    cap = output_cap(request.max_output, model, input_tokens(messages))
    body: JsonObject = {
        "model": model.id,
        "input": said,
        "stream": True,
        "store": False,
        "max_output_tokens": max(cap, OUTPUT_MIN),
    }
    if context.tools:
        body["tools"] = [_tool(tool, model) for tool in context.tools]
    if retention != "none" and model.compat.get("supportsPromptCacheKey", True):
        body["prompt_cache_key"] = cache_key(request)
        if retention == "long" and model.compat.get("supportsLongCacheRetention", True):
            body["prompt_cache_retention"] = "24h"
    _think(body, thinking_level(request, model), model)
    body |= sampling_of(request, model)
    return Post("/responses", {}, body, context.notes)


def _words(model: Model) -> Words:
    def say(passage: list[JsonObject], first: int, _: Sequence[JsonObject]) -> list[JsonObject]:
        placed = enumerate(passage, first)
        return [item for place, message in placed for item in _items(message, place)]

    return Words(_normal_id, say)


def _normal_id(stored_id: str, is_same: bool) -> str:
    """A call id as this API has them: its own keeps the item's name behind a bar.

    The item of another model would be looked for together with thinking that is not sent.
    """
    if is_same:
        return stored_id
    return plain_id(stored_id.partition("|")[0], ID_CHARS_MAX)


def _think(body: JsonObject, level: str, model: Model) -> None:
    if not model.reasoning:
        return
    word = model.thinking.get(level)
    if level == "off":
        body["reasoning"] = {"effort": word or "none"}
        return
    body["reasoning"] = {"effort": word or level, "summary": "auto"}
    body["include"] = ["reasoning.encrypted_content"]


def _tool(tool: JsonObject, model: Model) -> JsonObject:
    made: JsonObject = {
        "type": "function",
        "name": tool.get("name"),
        "description": tool.get("description", ""),
        "parameters": tool.get("parameters") or {"type": "object", "properties": {}},
    }
    if model.compat.get("supportsStrictMode", True):
        made["strict"] = False
    return made


def _items(message: JsonObject, place: int) -> list[JsonObject]:
    match message["role"]:
        case "user":
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            return [{"role": "user", "content": _parts(blocks)}]
        case "assistant":
            return _said(message["content"], place)
        case _:
            call_id = message["toolCallId"].partition("|")[0]
            return [
                {"type": "function_call_output", "call_id": call_id, "output": _output(message)}
            ]


def _parts(blocks: Sequence[Block]) -> list[JsonObject]:
    return [
        _image(block) if block["type"] == "image" else {"type": "input_text", "text": block["text"]}
        for block in blocks
    ]


def _image(block: Block) -> JsonObject:
    url = f"data:{block['mimeType']};base64,{block['data']}"
    return {"type": "input_image", "detail": "auto", "image_url": url}


def _said(blocks: Sequence[Block], place: int) -> list[JsonObject]:
    """A reply's items in their order: thinking as it came, texts and calls by their names."""
    items: list[JsonObject] = []
    texts = 0
    for block in blocks:
        match block["type"]:
            case "thinking":
                item = _decoded(block.get("thinkingSignature"))
                if item.get("type") == "reasoning":
                    items.append(item)
            case "text" if is_wordy(block["text"]):
                default = f"msg_pi_{place}" if texts == 0 else f"msg_pi_{place}_{texts}"
                items.append(_text(block, default))
                texts += 1
            case "toolCall":
                items.append(_call(block))
    return items


def _text(block: Block, default_id: str) -> JsonObject:
    signature = block.get("textSignature")
    known = _decoded(signature)
    if not known and isinstance(signature, str) and signature.startswith("msg_"):
        # Older files hold the bare id.
        known = {"id": signature}
    name = known.get("id")
    has_name = isinstance(name, str) and 0 < len(name) <= ID_CHARS_MAX
    item: JsonObject = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": block["text"], "annotations": []}],
        "status": "completed",
        "id": name if has_name else default_id,
    }
    if isinstance(known.get("phase"), str):
        item["phase"] = known["phase"]
    return item


def _call(block: Block) -> JsonObject:
    call_id, _, item_id = block["id"].partition("|")
    item: JsonObject = {"type": "function_call"}
    if item_id:
        item["id"] = item_id
    return item | {
        "call_id": call_id,
        "name": block["name"],
        "arguments": arguments_text(block["arguments"]),
    }


def _output(result: JsonObject) -> str | list[JsonObject]:
    images = images_in(result["content"])
    text = result_text(result) or (IMAGE_ONLY if images else EMPTY_RESULT)
    if result["isError"]:
        text = ERROR_MARK + text
    if not images:
        return text
    return [{"type": "input_text", "text": text}, *map(_image, images)]


def _decoded(signature: Any) -> JsonObject:
    if not isinstance(signature, str) or not signature.startswith("{"):
        return {}
    try:
        decoded = msgspec.json.decode(signature)
    except (msgspec.MsgspecError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


OPENAI_RESPONSES = Api(NAME, request_of, lambda model, _: ResponsesReading(model.id), bearer)
