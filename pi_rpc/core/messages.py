"""What is said: roles, content blocks, usage and tool declarations, as the format stores them.

Messages stay open JSON objects, for the same reason entries do: what another program put there must
come back. The functions here make the messages we write and read the few things decisions need.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

JsonObject = dict[str, Any]
"""A JSON object, unknown fields included."""

Block = JsonObject
"""One content block: text, image, thinking or toolCall."""


class ToolCall(msgspec.Struct, frozen=True):
    """What the model wants done."""

    id: str
    name: str
    arguments: JsonObject
    arguments_error: str | None = None
    """Why the arguments could not be read; the call is then answered with an error, never run."""


class ToolDeclaration(msgspec.Struct, frozen=True):
    """A tool as the model is told of it."""

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments object."""

    def as_object(self) -> JsonObject:
        """The form stored in a system message's `toolsAdded`."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }


class Cost(msgspec.Struct, frozen=True):
    """What a reply cost, in US dollars."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    total: float = 0
    from_provider: bool = False
    """Whether `total` is what the provider billed and not an estimate."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one reply."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int | None = None
    """Those of `output` spent on thinking; None when nobody said."""
    cache_write_1h: int | None = None
    """Those of `cache_write` kept for an hour; None when nobody said."""
    total: int | None = None
    """The provider's own sum, when it is not that of the four."""
    cost: Cost | None = None
    """None when no price is known."""

    def as_object(self) -> JsonObject:
        """The stored form; a cost of zero stands for an unknown one."""
        cost = self.cost or Cost()
        total = self.input + self.output + self.cache_read + self.cache_write
        stored: JsonObject = {
            "input": self.input,
            "output": self.output,
            "cacheRead": self.cache_read,
            "cacheWrite": self.cache_write,
            "totalTokens": total if self.total is None else self.total,
            "cost": {
                "input": cost.input,
                "output": cost.output,
                "cacheRead": cost.cache_read,
                "cacheWrite": cost.cache_write,
                "total": cost.total,
            },
        }
        if self.cost is not None:
            stored["cost"]["totalFromProvider"] = cost.from_provider
        if self.reasoning is not None:
            stored["reasoning"] = self.reasoning
        if self.cache_write_1h is not None:
            stored["cacheWrite1h"] = self.cache_write_1h
        return stored


def text_block(text: str) -> Block:
    """A block of plain text."""
    return {"type": "text", "text": text}


def image_block(data: str, mime_type: str) -> Block:
    """An image; `data` is base64."""
    return {"type": "image", "data": data, "mimeType": mime_type}


def system_message(
    sections: JsonObject, tools: Sequence[ToolDeclaration], at_ms: int
) -> JsonObject:
    """The prompt and tools in force from here on; only what differs from before."""
    message: JsonObject = {
        "role": "system",
        "content": "",
        "sections": sections,
        "timestamp": at_ms,
    }
    if tools:
        message["toolsAdded"] = [tool.as_object() for tool in tools]
    return message


def user_message(text: str, images: Sequence[Block], at_ms: int) -> JsonObject:
    """What the user said, as a text block and then the images."""
    return {"role": "user", "content": [text_block(text), *images], "timestamp": at_ms}


class ToolOutcome(msgspec.Struct, frozen=True):
    """What came of a call."""

    content: list[Block]
    is_error: bool = False
    details: JsonObject | None = None
    """For people and programs; never sent to the model."""
    terminate: bool = False
    """The run may end here when every outcome of the batch says so."""
    duration_ms: float | None = None
    """How long it ran; None when it never did."""
    effective_arguments: JsonObject | None = None
    """The arguments that were run, when they are not the model's own."""
    changed_by: str | None = None
    """The registration of the hook that gave those arguments; None when none did."""
    ran: bool = True
    """False when the call never began, so that it left no mark."""


def tool_result_message(call: ToolCall, outcome: ToolOutcome, at_ms: int) -> JsonObject:
    """The stored answer to a call."""
    message: JsonObject = {
        "role": "toolResult",
        "toolCallId": call.id,
        "toolName": call.name,
        "content": outcome.content,
    }
    if outcome.details is not None:
        message["details"] = outcome.details
    message["isError"] = outcome.is_error
    message["timestamp"] = at_ms
    if outcome.duration_ms is not None:
        message["durationMs"] = round(outcome.duration_ms)
    if outcome.changed_by is not None:
        message["effectiveArguments"] = outcome.effective_arguments
        message["argumentsChangedBy"] = outcome.changed_by
    return message


def blocks_of(message: JsonObject) -> list[Block]:
    """The content as blocks; a string is one text block, anything else is none."""
    content = message.get("content")
    if isinstance(content, str):
        return [text_block(content)]
    if isinstance(content, list):
        return [block for block in content if isinstance(block, dict)]
    return []


def texts_of(blocks: Iterable[Block]) -> Iterator[str]:
    """The text of each text block."""
    for block in blocks:
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str):
            yield text


def text_of(message: JsonObject) -> str:
    """All text blocks of a message, joined without a separator."""
    return "".join(texts_of(blocks_of(message)))


def tool_calls_of(message: JsonObject) -> list[ToolCall]:
    """The calls in an assistant message, in order.

    A call without a readable id or name is left out.
    """
    calls = []
    for block in blocks_of(message):
        call_id, name, arguments = block.get("id"), block.get("name"), block.get("arguments")
        if block.get("type") != "toolCall" or not isinstance(call_id, str):
            continue
        if not isinstance(name, str):
            continue
        error = block.get("argumentsError")
        calls.append(
            ToolCall(
                id=call_id,
                name=name,
                arguments=arguments if isinstance(arguments, dict) else {},
                arguments_error=error if isinstance(error, str) else None,
            )
        )
    return calls
