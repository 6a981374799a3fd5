"""The stream of the OpenAI Responses API; pure."""

from typing import Any

import msgspec

from pi_rpc.core.messages import JsonObject, Usage
from pi_rpc.core.reply import ReplyError
from pi_rpc.providers.openai_chat_reading import TIER_FACTORS
from pi_rpc.providers.reading import BlockKind, Reading
from pi_rpc.providers.sse import Event


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Error(msgspec.Struct):
    code: str | None = None
    message: str | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: _Error | None = None
    incomplete_details: _Incomplete | None = None
    service_tier: str | None = None


class _Event(msgspec.Struct):
    type: str
    output_index: int | None = None
    summary_index: int | None = None
    delta: Any = None
    item: dict[str, Any] | None = None
    response: _Response | None = None
    code: str | None = None
    message: str | None = None
    error: _Error | None = None


_event = msgspec.json.Decoder(_Event, strict=False)


class _Item:
    """One output item while it arrives."""

    def __init__(self, block: int, kind: BlockKind) -> None:
        self.block = block
        self.kind = kind
        self.part = 0
        self.has_text = False


_KINDS: dict[str, BlockKind] = {
    "reasoning": "thinking",
    "message": "text",
    "function_call": "toolCall",
}


class ResponsesReading(Reading):
    """A reply of the Responses API."""

    def __init__(self, asked_model: str) -> None:
        super().__init__(asked_model)
        self._items: dict[int, _Item] = {}

    def take(self, event: Event) -> None:
        """Take in one event."""
        told = _event.decode(event.data)
        match told.type:
            case (
                "response.output_text.delta"
                | "response.refusal.delta"
                | "response.function_call_arguments.delta"
                | "response.reasoning_text.delta"
                | "response.reasoning_summary_text.delta"
            ):
                self._more(told)
            case "response.created":
                self._start(told.response or _Response())
            case "response.output_item.added" if told.item is not None:
                self._added(told.output_index or 0, told.item)
            case "response.output_item.done" if told.item is not None:
                self._done(told.output_index or 0, told.item)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._finish(told.type.removeprefix("response."), told.response or _Response())
            case "error":
                error = told.error or _Error(told.code, told.message)
                self.failed_with(error.code, error.message or "")

    def _start(self, response: _Response) -> None:
        self.response_id = response.id
        self.answered_by(response.model)
        self.blocks.started(response.id)

    def _added(self, at: int, item: JsonObject) -> _Item | None:
        kind = _KINDS.get(str(item.get("type")))
        if kind is None:
            return None
        call_id = str(item.get("call_id") or "")
        if kind == "toolCall" and call_id and item.get("id"):
            call_id = f"{call_id}|{item['id']}"
        name = str(item.get("name") or "")
        block = self.blocks.opened(kind, *((call_id, name) if kind == "toolCall" else ()))
        made = self._items[at] = _Item(block, kind)
        return made

    def _more(self, told: _Event) -> None:
        item = self._items.get(told.output_index or 0)
        if item is None or not isinstance(told.delta, str):
            return
        if told.summary_index is not None and told.summary_index != item.part:
            item.part = told.summary_index
            if item.has_text:
                self.blocks.delta(item.block, "\n\n")
        item.has_text = item.has_text or bool(told.delta)
        self.blocks.delta(item.block, told.delta)

    def _done(self, at: int, item: JsonObject) -> None:
        """An item is whole: its name is kept, and its text if it did not come in pieces."""
        open_item = self._items.pop(at, None) or self._added(at, item)
        self._items.pop(at, None)
        if open_item is None:
            return
        if not open_item.has_text:
            self.blocks.delta(open_item.block, _text_of(open_item.kind, item))
        self.blocks.closed(open_item.block, _signature_of(open_item.kind, item))

    def _finish(self, status: str, response: _Response) -> None:
        self.response_id = response.id or self.response_id
        self.answered_by(response.model)
        self.price_factor = TIER_FACTORS.get(response.service_tier or "", 1.0)
        self._count(response.usage)
        self.raw_stop = status
        reason = response.incomplete_details and response.incomplete_details.reason
        if status == "failed":
            error = response.error or _Error()
            told = f"{error.code or 'unknown'}: {error.message or 'no message'}"
            self.failed_with(error.code, told)
        elif status == "incomplete" and reason == "max_output_tokens":
            self.done("length")
        elif status == "incomplete" and reason == "content_filter":
            self.refused("content_filter")
        elif status == "incomplete":
            self.stopped_strangely(f"incomplete: {reason or 'no reason'}")
        elif any(item.kind == "toolCall" for item in self._items.values()):
            told = "The reply was said to be complete, but a tool call in it is not."
            self.failed(ReplyError("cut", told, code="unfinished_call"))
        else:
            self.done("toolUse" if self.blocks.has_calls else "stop")

    def _count(self, told: _Usage | None) -> None:
        if told is None:
            return
        given = told.input_tokens_details or _InputDetails()
        cached, written = given.cached_tokens or 0, given.cache_write_tokens or 0
        made = told.output_tokens_details
        self.usage = Usage(
            input=max((told.input_tokens or 0) - cached - written, 0),
            output=told.output_tokens or 0,
            cache_read=cached,
            cache_write=written,
            reasoning=None if made is None else made.reasoning_tokens,
            total=told.total_tokens,
        )


def _text_of(kind: BlockKind, item: JsonObject) -> str:
    if kind == "toolCall":
        return str(item.get("arguments") or "")
    if kind == "thinking":
        return "\n\n".join(_texts(item.get("summary")) or _texts(item.get("content")))
    return "".join(_texts(item.get("content")))


def _texts(parts: Any) -> list[str]:
    found = parts if isinstance(parts, list) else []
    return [
        str(part.get("text") or part.get("refusal") or "")
        for part in found
        if isinstance(part, dict)
    ]


def _signature_of(kind: BlockKind, item: JsonObject) -> str | None:
    if kind == "thinking":
        return msgspec.json.encode(item).decode()
    if kind == "text" and item.get("id"):
        named = {"v": 1, "id": item["id"]}
        if item.get("phase"):
            named["phase"] = item["phase"]
        return msgspec.json.encode(named).decode()
    return None
