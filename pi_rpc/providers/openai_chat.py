"""The Chat Completions API, of OpenAI and all who offer it: a request in its words; pure."""

from collections.abc import Sequence
from functools import partial

import msgspec

from pi_rpc.core.messages import Block, JsonObject, texts_of
from pi_rpc.core.models import Model
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.providers.asking import (
    BUDGET_GAP,
    Api,
    Post,
    Retention,
    arguments_text,
    bearer,
    budget_of,
    cache_key,
    input_tokens,
    output_cap,
    sampling_of,
    thinking_level,
)
from pi_rpc.providers.compat import ChatCompat, chat_compat
from pi_rpc.providers.openai_chat_reading import THINKING_FIELDS, ChatReading
from pi_rpc.providers.telling import Words, told
from pi_rpc.providers.transcript import (
    EMPTY_RESULT,
    ERROR_MARK,
    images_in,
    is_wordy,
    plain_id,
    result_runs,
    result_text,
    short_hash,
)

NAME = "openai-completions"
ID_CHARS_MAX = 40
MISTRAL_ID_CHARS = 9
IMAGES_CAPTION = "Images returned by the tools:"
IMAGE_ONLY = "(see the attached image)"
BRIDGE = "I have read the results."
"""What the assistant says between results and the user, for servers that want it to speak."""


def request_of(request: ModelRequest, model: Model, retention: Retention) -> Post:
    """The request for a context."""
    messages = list(request.messages)
    compat = chat_compat(model)
    context = told(request, messages, model, _words)
    said: list[JsonObject] = []
    if context.prompt:
        role = "developer" if model.reasoning and compat.supports_developer_role else "system"
        said.append({"role": role, "content": context.prompt})
    said += context.said
    body: JsonObject = {"model": model.id, "messages": said, "stream": True}
    if compat.supports_usage_in_streaming:
        body["stream_options"] = {"include_usage": True}
    if compat.supports_store:
        body["store"] = False
    cap = output_cap(request.max_output, model, input_tokens(messages))
    body[compat.max_tokens_field] = cap
    if context.tools:
        body["tools"] = [_tool(tool, compat) for tool in context.tools]
    elif compat.requires_tools_with_tool_history and _has_calls(said):
        body["tools"] = []
    if compat.supports_prompt_cache_key and retention != "none":
        body["prompt_cache_key"] = cache_key(request)
        if retention == "long":
            body["prompt_cache_retention"] = "24h"
    _think(body, request, model, compat)
    if compat.cache_control_format == "anthropic" and retention != "none":
        _mark(body)
    body |= sampling_of(request, model)
    return Post("/chat/completions", {}, body, context.notes)


def _words(model: Model) -> Words:
    compat = chat_compat(model)

    def say(passage: list[JsonObject], _: int, before: Sequence[JsonObject]) -> list[JsonObject]:
        said: list[JsonObject] = []
        for run in result_runs(passage):
            said += _messages(run, compat, said or before)
        return said

    return Words(partial(_normal_id, compat), say)


def _normal_id(compat: ChatCompat, stored_id: str, is_same: bool) -> str:
    if compat.tool_ids == "mistral":
        fits = len(stored_id) == MISTRAL_ID_CHARS and stored_id.isascii() and stored_id.isalnum()
        return stored_id if fits else short_hash(stored_id, MISTRAL_ID_CHARS)
    if is_same and len(stored_id) <= ID_CHARS_MAX and "|" not in stored_id:
        return stored_id
    plain = plain_id(stored_id, len(stored_id))
    if len(plain) <= ID_CHARS_MAX:
        return plain
    return f"{plain[: ID_CHARS_MAX - 9]}_{short_hash(stored_id, 8)}"


def _tool(tool: JsonObject, compat: ChatCompat) -> JsonObject:
    function: JsonObject = {
        "name": tool.get("name"),
        "description": tool.get("description", ""),
        "parameters": tool.get("parameters") or {"type": "object", "properties": {}},
    }
    if compat.supports_strict_mode:
        function["strict"] = False
    return {"type": "function", "function": function}


def _has_calls(said: Sequence[JsonObject]) -> bool:
    return any("tool_calls" in message for message in said)


def _think(body: JsonObject, request: ModelRequest, model: Model, compat: ChatCompat) -> None:
    """Ask for thinking in the way this server understands."""
    if not model.reasoning:
        return
    level = thinking_level(request, model)
    thinks = level != "off"
    if thinks and compat.thinking_token_budget_field:
        # The answer has to fit under the same cap.
        room = max(body[compat.max_tokens_field] - BUDGET_GAP, 0)
        budget = min(budget_of(level, request.asking.thinking_budgets), room)
        if budget:
            body[compat.thinking_token_budget_field] = budget
    word = model.thinking.get(level) or level
    match compat.thinking_format:
        case "openrouter":
            body["reasoning"] = {"effort": word if thinks else model.thinking.get("off") or "none"}
        case "zai" | "deepseek":
            body["thinking"] = {"type": "enabled" if thinks else "disabled"}
        case "qwen":
            body["enable_thinking"] = thinks
        case "qwen-chat-template":
            body["chat_template_kwargs"] = {"enable_thinking": thinks}
        case "together":
            body["reasoning"] = {"enabled": thinks}
        case _ if compat.supports_reasoning_effort and (thinks or model.thinking.get("off")):
            body["reasoning_effort"] = word


def _mark(body: JsonObject) -> None:
    """Cache marks, for servers that hand them on: prompt, last tool, last message."""
    mark = {"cache_control": {"type": "ephemeral"}}
    said = body["messages"]
    if said and said[0]["role"] in ("system", "developer"):
        said[0] = _marked(said[0], mark)
    if len(said) > 1 and said[-1]["role"] in ("user", "tool"):
        said[-1] = _marked(said[-1], mark)
    if body.get("tools"):
        body["tools"][-1] = body["tools"][-1] | mark


def _marked(message: JsonObject, mark: JsonObject) -> JsonObject:
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return message | {"content": [*content[:-1], content[-1] | mark]}


def _messages(
    run: list[JsonObject], compat: ChatCompat, before: Sequence[JsonObject]
) -> list[JsonObject]:
    match run[0]["role"]:
        case "user":
            content = run[0]["content"]
            parts = content if isinstance(content, str) else _parts(content)
            user: JsonObject = {"role": "user", "content": parts}
            after_results = bool(before) and before[-1]["role"] == "tool"
            if after_results and compat.requires_assistant_after_tool_result:
                return [{"role": "assistant", "content": BRIDGE}, user]
            return [user]
        case "assistant":
            said = _assistant(run[0]["content"], compat)
            return [] if said is None else [said]
        case _:
            return _results(run, compat)


def _parts(blocks: Sequence[Block]) -> list[JsonObject]:
    return [
        _image(block) if block["type"] == "image" else {"type": "text", "text": block["text"]}
        for block in blocks
    ]


def _image(block: Block) -> JsonObject:
    url = f"data:{block['mimeType']};base64,{block['data']}"
    return {"type": "image_url", "image_url": {"url": url}}


def _assistant(blocks: Sequence[Block], compat: ChatCompat) -> JsonObject | None:
    text = "".join(texts_of(blocks))
    calls = [_call(block) for block in blocks if block["type"] == "toolCall"]
    thinking = [block for block in blocks if block["type"] == "thinking"]
    said: JsonObject = {"role": "assistant", "content": text if is_wordy(text) else None}
    if compat.requires_thinking_as_text:
        thought = "\n\n".join(block.get("thinking") or "" for block in thinking)
        said["content"] = "\n\n".join(part for part in (thought, text) if is_wordy(part)) or None
    else:
        said |= _thought(thinking)
    if calls:
        said["tool_calls"] = calls
    if said["content"] is None and not calls:
        return None
    if said["content"] is None and compat.requires_non_null_content:
        said["content"] = ""
    return said


def _thought(thinking: Sequence[Block]) -> JsonObject:
    """Thinking in the field it came in, which its signature names, or whole as it came."""
    fields: JsonObject = {}
    for block in thinking:
        signature = block.get("thinkingSignature")
        if not isinstance(signature, str):
            continue
        if signature in THINKING_FIELDS:
            earlier = fields.get(signature)
            text = block.get("thinking") or ""
            fields[signature] = text if earlier is None else f"{earlier}\n\n{text}"
        elif signature.startswith("["):
            try:
                details = msgspec.json.decode(signature)
            except (msgspec.MsgspecError, RecursionError):
                continue
            fields["reasoning_details"] = [*fields.get("reasoning_details", ()), *details]
    return fields


def _call(block: Block) -> JsonObject:
    function = {"name": block["name"], "arguments": arguments_text(block["arguments"])}
    return {"id": block["id"], "type": "function", "function": function}


def _results(run: list[JsonObject], compat: ChatCompat) -> list[JsonObject]:
    """All results of a reply's calls, then their images in one message of the user's."""
    said: list[JsonObject] = []
    shown: list[JsonObject] = []
    for result in run:
        images = images_in(result["content"])
        text = result_text(result) or (IMAGE_ONLY if images else EMPTY_RESULT)
        message: JsonObject = {
            "role": "tool",
            "content": ERROR_MARK + text if result["isError"] else text,
            "tool_call_id": result["toolCallId"],
        }
        if compat.requires_tool_result_name:
            message["name"] = result["toolName"]
        said.append(message)
        shown += map(_image, images)
    if shown:
        if compat.requires_assistant_after_tool_result:
            said.append({"role": "assistant", "content": BRIDGE})
        content = [{"type": "text", "text": IMAGES_CAPTION}, *shown]
        said.append({"role": "user", "content": content})
    return said


OPENAI_CHAT = Api(NAME, request_of, lambda model, _: ChatReading(model), bearer)
