"""The Anthropic Messages API: a request into its words, its stream back; pure."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from pi_rpc.core.messages import Block, JsonObject
from pi_rpc.core.models import Model
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.reply import CUT, ReplyError
from pi_rpc.providers.asking import (
    Api,
    Post,
    Retention,
    budget_for,
    input_tokens,
    output_cap,
    thinking_level,
)
from pi_rpc.providers.reading import Reading
from pi_rpc.providers.sse import Event
from pi_rpc.providers.telling import Words, told
from pi_rpc.providers.transcript import (
    images_in,
    is_wordy,
    plain_id,
    result_runs,
    result_text,
)

NAME = "anthropic-messages"
VERSION = "2023-06-01"
INTERLEAVED = "interleaved-thinking-2025-05-14"
"""Thinking between calls; models that choose their own effort have it without."""

ID_CHARS_MAX = 64
SCHEMA_FIELDS = ("type", "properties", "required", "additionalProperties", "$defs")
"""What of a tool's schema the API takes at its top."""

IMAGE_BELOW = "(its image follows below)"
IMAGE_ONLY = "(see the attached image)"


def request_of(request: ModelRequest, model: Model, retention: Retention) -> Post:
    """The request for a context."""
    messages = list(request.messages)
    context = told(request, messages, model, _words)
    mark = _cache_mark(retention, model)
    said = context.said
    if mark is not None and said and said[-1]["role"] == "user":
        said[-1] = _marked_last(said[-1], mark)
    cap = output_cap(request.max_output, model, input_tokens(messages))
    body: JsonObject = {"model": model.id, "messages": said, "max_tokens": cap, "stream": True}
    if context.prompt:
        body["system"] = [_marked({"type": "text", "text": context.prompt}, mark)]
    if context.tools:
        tools = [_tool(tool, model) for tool in context.tools]
        tools[-1] = _marked(tools[-1], mark)
        body["tools"] = tools
    headers = {"anthropic-version": VERSION}
    _think(body, headers, request, model)
    return Post("/v1/messages", headers, body, context.notes)


def _words(model: Model) -> Words:
    def say(passage: list[JsonObject], _: int, __: Sequence[JsonObject]) -> list[JsonObject]:
        messages = (_message(run, model) for run in result_runs(passage))
        return [message for message in messages if message is not None]

    return Words(_normal_id, say)


def _normal_id(stored_id: str, is_same: bool) -> str:
    return plain_id(stored_id, ID_CHARS_MAX)


def _cache_mark(retention: Retention, model: Model) -> JsonObject | None:
    if retention == "none":
        return None
    mark: JsonObject = {"type": "ephemeral"}
    if retention == "long" and model.compat.get("supportsLongCacheRetention", True):
        mark["ttl"] = "1h"
    return mark


def _marked(block: JsonObject, mark: JsonObject | None) -> JsonObject:
    return block if mark is None else block | {"cache_control": mark}


def _marked_last(message: JsonObject, mark: JsonObject) -> JsonObject:
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return message | {"content": [*content[:-1], _marked(content[-1], mark)]}


def _tool(tool: JsonObject, model: Model) -> JsonObject:
    schema = tool.get("parameters")
    fields = schema if isinstance(schema, dict) else {}
    made: JsonObject = {
        "name": tool.get("name"),
        "description": tool.get("description", ""),
        "input_schema": {"type": "object"}
        | {name: fields[name] for name in SCHEMA_FIELDS if name in fields},
    }
    if model.compat.get("supportsEagerToolInputStreaming", model.provider == "anthropic"):
        made["eager_input_streaming"] = True
    return made


def _think(body: JsonObject, headers: dict[str, str], request: ModelRequest, model: Model) -> None:
    """Ask for thinking; the output cap grows with it where thinking has a budget of its own."""
    if not model.reasoning:
        return
    level = thinking_level(request, model)
    if level == "off":
        body["thinking"] = {"type": "disabled"}
    elif model.compat.get("forceAdaptiveThinking"):
        effort = model.thinking.get(level) or ("low" if level == "minimal" else level)
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        body["output_config"] = {"effort": effort}
    else:
        own = request.asking.thinking_budgets
        cap, budget = budget_for(level, body["max_tokens"], model, own)
        body["max_tokens"] = cap
        body["thinking"] = {
            "type": "enabled",
            "budget_tokens": budget,
            "display": "summarized",
        }
        headers["anthropic-beta"] = INTERLEAVED


def _message(run: list[JsonObject], model: Model) -> JsonObject | None:
    match run[0]["role"]:
        case "user":
            content = run[0]["content"]
            blocks = content if isinstance(content, str) else _shown(content)
            return {"role": "user", "content": blocks}
        case "assistant":
            said = [made for block in run[0]["content"] if (made := _said(block, model))]
            return {"role": "assistant", "content": said} if said else None
        case _:
            return {"role": "user", "content": _results(run)}


def _shown(blocks: Iterable[Block]) -> list[JsonObject]:
    return [_image(block) if block["type"] == "image" else block for block in blocks]


def _image(block: Block) -> JsonObject:
    source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
    return {"type": "image", "source": source}


def _said(block: Block, model: Model) -> JsonObject | None:
    match block["type"]:
        case "thinking":
            signature = block.get("thinkingSignature")
            if block.get("redacted"):
                return {"type": "redacted_thinking", "data": signature}
            if not signature and not model.compat.get("allowEmptySignature"):
                return None
            return {
                "type": "thinking",
                "thinking": block.get("thinking") or "",
                "signature": signature or "",
            }
        case "text":
            text = block.get("text")
            return {"type": "text", "text": text} if is_wordy(text) else None
        case _:
            return {
                "type": "tool_use",
                "id": block["id"],
                "name": block["name"],
                "input": block["arguments"],
            }


def _results(run: list[JsonObject]) -> list[JsonObject]:
    """All results of a reply's calls, then the images that failed ones may not carry."""
    blocks: list[JsonObject] = []
    after: list[JsonObject] = []
    for result in run:
        images = images_in(result["content"])
        content: str | list[JsonObject] = result_text(result)
        if images and result["isError"]:
            content = f"{content}\n{IMAGE_BELOW}" if content else IMAGE_BELOW
            caption = f"Image of the failed call {result['toolCallId']}:"
            after += [{"type": "text", "text": caption}, *map(_image, images)]
        elif images:
            shown = [
                block for block in result["content"] if block["type"] == "image" or block["text"]
            ]
            content = _shown(shown)
            if len(images) == len(shown):
                content = [{"type": "text", "text": IMAGE_ONLY}, *content]
        blocks.append(
            {
                "type": "tool_result",
                "tool_use_id": result["toolCallId"],
                "content": content,
                "is_error": result["isError"],
            }
        )
    return [*blocks, *after]


class _Delta(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    stop_reason: str | None = None
    stop_details: Any = None


class _Block(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    name: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    input: Any = None


class _CacheCreation(msgspec.Struct):
    ephemeral_1h_input_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    thinking_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: _CacheCreation | None = None
    output_tokens_details: _OutputDetails | None = None


class _Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None


class _Error(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _Event(msgspec.Struct):
    type: str
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: _Error | None = None


_event = msgspec.json.Decoder(_Event, strict=False)


class AnthropicReading(Reading):
    """A reply of the Messages API."""

    def __init__(self, asked_model: str) -> None:
        super().__init__(asked_model)
        self._indexes: dict[int, int] = {}
        """Index of a block at the provider, and here."""
        self._signatures: dict[int, list[str]] = {}
        self._redacted: set[int] = set()
        self._refusal = ""

    def take(self, event: Event) -> None:
        """Take in one event."""
        told = _event.decode(event.data)
        match told.type:
            case "content_block_delta" if told.delta is not None:
                self._more(told.index, told.delta)
            case "content_block_start" if told.content_block is not None:
                self._open(told.index, told.content_block)
            case "content_block_stop":
                self._close(told.index)
            case "message_start":
                self._start(told.message or _Message())
            case "message_delta":
                self._count(told.usage)
                if told.delta is not None and told.delta.stop_reason:
                    self.raw_stop = told.delta.stop_reason
                    self._refusal = _explanation(told.delta.stop_details)
            case "message_stop":
                self._stop()
            case "error":
                error = told.error or _Error()
                self.failed_with(error.type, error.message or "")

    def _start(self, message: _Message) -> None:
        self.response_id = message.id
        self.answered_by(message.model)
        self._count(message.usage)
        self.blocks.started(message.id, self.usage)

    def _open(self, at: int, block: _Block) -> None:
        blocks = self.blocks
        match block.type:
            case "text":
                self._indexes[at] = blocks.opened("text")
                blocks.delta(self._indexes[at], block.text or "")
            case "thinking":
                self._indexes[at] = blocks.opened("thinking")
                blocks.delta(self._indexes[at], block.thinking or "")
                if block.signature:
                    self._signatures[at] = [block.signature]
            case "redacted_thinking":
                self._indexes[at] = blocks.opened("thinking")
                self._signatures[at] = [block.data or ""]
                self._redacted.add(at)
            case "tool_use":
                self._indexes[at] = blocks.opened("toolCall", block.id or "", block.name or "")
                if block.input:
                    # Some servers give the arguments whole at once, and nothing afterwards.
                    blocks.delta(self._indexes[at], msgspec.json.encode(block.input).decode())

    def _more(self, at: int, delta: _Delta) -> None:
        index = self._indexes.get(at, -1)
        if delta.signature:
            self._signatures.setdefault(at, []).append(delta.signature)
        else:
            self.blocks.delta(index, delta.text or delta.partial_json or delta.thinking or "")

    def _close(self, at: int) -> None:
        signature = "".join(self._signatures.pop(at, ())) or None
        self.blocks.closed(self._indexes.get(at, -1), signature, at in self._redacted)

    def _count(self, told: _Usage | None) -> None:
        """Counts that are told replace what was told before."""
        if told is None:
            return
        fresh = {
            "input": told.input_tokens,
            "output": told.output_tokens,
            "cache_read": told.cache_read_input_tokens,
            "cache_write": told.cache_creation_input_tokens,
            "cache_write_1h": told.cache_creation and told.cache_creation.ephemeral_1h_input_tokens,
            "reasoning": told.output_tokens_details and told.output_tokens_details.thinking_tokens,
        }
        known = {name: count for name, count in fresh.items() if count is not None}
        self.usage = msgspec.structs.replace(self.usage, **known)

    def _stop(self) -> None:
        match self.raw_stop:
            case "end_turn" | "pause_turn" | "stop_sequence":
                self.done("stop")
            case "max_tokens":
                self.done("length")
            case "tool_use":
                self.done("toolUse")
            case "refusal":
                self.refused("refusal", self._refusal or "The model refused to answer this.")
            case "sensitive":
                self.refused("sensitive")
            case None:
                self.failed(ReplyError("cut", CUT))
            case reason:
                self.stopped_strangely(reason)


def _explanation(details: Any) -> str:
    told = details.get("explanation") if isinstance(details, dict) else None
    return told if isinstance(told, str) else ""


def _key_headers(key: str) -> dict[str, str]:
    return {"x-api-key": key}


ANTHROPIC = Api(NAME, request_of, lambda model, _: AnthropicReading(model.id), _key_headers)
