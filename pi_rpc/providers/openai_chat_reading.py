"""The stream of the Chat Completions API, as OpenAI and all who offer it send it; pure."""

from typing import Any

import msgspec

from pi_rpc.core.messages import Cost, Usage
from pi_rpc.core.models import Model
from pi_rpc.core.reply import CUT, ReplyError
from pi_rpc.core.retrying import kind_of
from pi_rpc.providers.compat import chat_compat
from pi_rpc.providers.reading import Reading
from pi_rpc.providers.sse import Event

THINKING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""Where servers put thinking; the first that says something is taken."""

TIER_FACTORS = {"flex": 0.5, "priority": 2.0}
"""What OpenAI's service tiers cost, as a multiple of the list price."""


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: Any = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_text: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning_details: list[Any] | None = None


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None
    usage: _Usage | None = None


class _Chunk(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    service_tier: str | None = None
    error: Any = None


_chunk = msgspec.json.Decoder(_Chunk, strict=False)


class _OpenCall:
    """A call while it arrives; its block opens once its name is known."""

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.block: int | None = None
        self.held = ""


class ChatReading(Reading):
    """A reply of the Chat Completions API."""

    def __init__(self, model: Model) -> None:
        super().__init__(model.id)
        self._expects_finish = chat_compat(model).finish_reason_expected
        self._is_billed = model.provider == "openrouter"
        self._text: int | None = None
        self._thinking: int | None = None
        self._thinking_field: str | None = None
        self._details: list[dict[str, Any]] = []
        self._by_index: dict[int, _OpenCall] = {}
        self._by_id: dict[str, _OpenCall] = {}
        self._last_call: _OpenCall | None = None

    def take(self, event: Event) -> None:
        """Take in one event."""
        if event.data.strip() == b"[DONE]":
            self.exhausted()
            return
        chunk = _chunk.decode(event.data)
        if chunk.error:
            self._told_of(chunk.error)
            return
        self.response_id = self.response_id or chunk.id
        self.answered_by(chunk.model)
        self.blocks.started(chunk.id)
        self.price_factor = TIER_FACTORS.get(chunk.service_tier or "", self.price_factor)
        self._count(chunk.usage)
        for choice in (chunk.choices or ())[:1]:
            self._count(choice.usage)
            if choice.delta is not None:
                self._more(choice.delta)
            if choice.finish_reason:
                self.raw_stop = choice.finish_reason

    def exhausted(self) -> None:
        """The stream ended, with its mark or without: what matters is whether a reason came."""
        self._close()
        has_calls = self.blocks.has_calls
        match self.raw_stop:
            case "stop" | "end":
                self.done("toolUse" if has_calls else "stop")
            case "length":
                self.done("length")
            case "tool_calls" | "function_call":
                self.done("toolUse")
            case "content_filter":
                self.refused("content_filter")
            case None if not self._expects_finish and (self._text is not None or has_calls):
                self.done("toolUse" if has_calls else "stop")
            case None:
                self.failed(ReplyError("cut", CUT))
            case reason:
                self.stopped_strangely(reason)

    def _told_of(self, error: Any) -> None:
        fields = error if isinstance(error, dict) else {"message": str(error)}
        code, message = fields.get("code") or fields.get("type"), fields.get("message")
        told = message if isinstance(message, str) else str(code)
        if isinstance(code, int):
            self.failed(ReplyError(kind_of(code, None, told), told, code))
        else:
            self.failed_with(code if isinstance(code, str) else None, told)

    def _more(self, delta: _Delta) -> None:
        for field in THINKING_FIELDS:
            thought = getattr(delta, field)
            if thought:
                self._think(thought, field)
                break
        if delta.reasoning_details:
            self._detail(delta.reasoning_details)
        if delta.content:
            self._say(delta.content)
        if delta.refusal:
            self._say(delta.refusal)
        for call in delta.tool_calls or ():
            self._call(call)

    def _say(self, content: Any) -> None:
        if isinstance(content, str):
            if self._text is None:
                self._text = self.blocks.opened("text")
            self.blocks.delta(self._text, content)
            return
        # Some servers send parts: texts, and thinking that again has parts.
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == "text":
                self._say(str(part.get("text") or ""))
            elif isinstance(part, dict) and part.get("type") == "thinking":
                for thought in part.get("thinking") or ():
                    if isinstance(thought, dict):
                        self._think(str(thought.get("text") or ""), None)

    def _think(self, thought: str, field: str | None) -> None:
        if self._thinking is None:
            self._thinking = self.blocks.opened("thinking")
            self._thinking_field = field
        self.blocks.delta(self._thinking, thought)

    def _detail(self, details: list[Any]) -> None:
        """Structured thinking, kept as it is to be sent back: pieces of one item are joined."""
        for detail in details:
            if not isinstance(detail, dict):
                continue
            last = self._details[-1] if self._details else None
            if last is None or any(last.get(k) != detail.get(k) for k in ("type", "index")):
                self._details.append(dict(detail))
                continue
            for name, value in detail.items():
                joins = name in ("text", "summary", "data") and isinstance(last.get(name), str)
                last[name] = last[name] + value if joins and isinstance(value, str) else value

    def _call(self, told: _Call) -> None:
        call = self._found(told)
        self._last_call = call
        function = told.function or _Function()
        arguments = function.arguments
        if arguments is not None and not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        call.held += arguments or ""
        if call.block is None and function.name:
            call.block = self.blocks.opened("toolCall", call.call_id, function.name)
        if call.block is not None and call.held:
            self.blocks.delta(call.block, call.held)
            call.held = ""

    def _found(self, told: _Call) -> _OpenCall:
        """The call this is a piece of: by index, then by id, else a new one or the last."""
        call = None if told.index is None else self._by_index.get(told.index)
        if call is not None and told.id and call.call_id and told.id != call.call_id:
            # A server that counts every call as the first.
            call = None
        if call is None and told.id:
            call = self._by_id.get(told.id)
        names_nothing = told.index is None and not told.id
        if call is None and names_nothing and not (told.function and told.function.name):
            call = self._last_call
        if call is None:
            call = _OpenCall(told.id or "")
        if told.index is not None:
            self._by_index[told.index] = call
        if told.id:
            self._by_id[told.id] = call
        return call

    def _close(self) -> None:
        if self._details and self._thinking is None:
            self._thinking = self.blocks.opened("thinking")
        if self._thinking is not None:
            signature = self._thinking_field
            if self._details:
                signature = msgspec.json.encode(self._details).decode()
            self.blocks.closed(self._thinking, signature)

    def _count(self, told: _Usage | None) -> None:
        if told is None:
            return
        given = told.prompt_tokens_details or _InputDetails()
        cached = given.cached_tokens or told.prompt_cache_hit_tokens or told.cached_tokens or 0
        written = given.cache_write_tokens or 0
        made = told.completion_tokens_details
        billed = told.cost if self._is_billed else None
        self.usage = Usage(
            input=max((told.prompt_tokens or 0) - cached - written, 0),
            output=told.completion_tokens or 0,
            cache_read=cached,
            cache_write=written,
            reasoning=None if made is None else made.reasoning_tokens,
            cost=None if billed is None else Cost(total=billed, from_provider=True),
        )
