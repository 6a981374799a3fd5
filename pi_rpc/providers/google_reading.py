"""The stream of the Google Generative Language API; pure."""

from typing import Any

import msgspec

from pi_rpc.core.messages import Usage
from pi_rpc.core.reply import CUT, ReplyError
from pi_rpc.core.retrying import kind_of
from pi_rpc.providers.reading import Reading
from pi_rpc.providers.sse import Event


class _Call(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    args: Any = None


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _Call | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _UsageMetadata(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    total_token_count: int | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _Error(msgspec.Struct):
    code: int | None = None
    status: str | None = None
    message: str | None = None


class _Chunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _UsageMetadata | None = None
    prompt_feedback: _Feedback | None = None
    model_version: str | None = None
    response_id: str | None = None
    error: _Error | None = None


_chunk = msgspec.json.Decoder(_Chunk, strict=False)

_REFUSALS = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
    }
)


class GoogleReading(Reading):
    """A reply of the Generative Language API.

    `salt` makes ids for calls that come without one.
    """

    def __init__(self, asked_model: str, salt: str) -> None:
        super().__init__(asked_model)
        self._salt = salt
        self._block: int | None = None
        self._is_thought = False
        self._signature: str | None = None
        self._call_ids: set[str] = set()
        self._message = ""

    def take(self, event: Event) -> None:
        """Take in one event."""
        chunk = _chunk.decode(event.data)
        if chunk.error is not None:
            told = chunk.error.message or chunk.error.status or "an error"
            kind = kind_of(chunk.error.code, chunk.error.status, told)
            self.failed(ReplyError(kind, told, chunk.error.code, chunk.error.status))
            return
        self.response_id = self.response_id or chunk.response_id
        self.answered_by(chunk.model_version)
        self.blocks.started(chunk.response_id)
        self._count(chunk.usage_metadata)
        for candidate in (chunk.candidates or ())[:1]:
            for part in (candidate.content and candidate.content.parts) or ():
                self._part(part)
            if candidate.finish_reason:
                self.raw_stop = candidate.finish_reason
                self._message = candidate.finish_message or ""
        blocked = chunk.prompt_feedback and chunk.prompt_feedback.block_reason
        if blocked:
            self.refused(blocked)

    def exhausted(self) -> None:
        """The stream ended, which is all the mark of its end there is."""
        self._close()
        match self.raw_stop:
            case "STOP" | "FUNCTION_CALL":
                self.done("toolUse" if self.blocks.has_calls else "stop")
            case "MAX_TOKENS":
                self.done("length")
            case None:
                self.failed(ReplyError("cut", CUT))
            case reason if reason in _REFUSALS:
                self.refused(reason, self._message and f"{reason}: {self._message}")
            case reason:
                self.stopped_strangely(reason, self._message)

    def _part(self, part: _Part) -> None:
        if part.function_call is not None:
            self._close()
            self._call(part.function_call, part.thought_signature)
            return
        if part.text is None:
            return
        is_thought = bool(part.thought)
        if part.text and (self._block is None or is_thought != self._is_thought):
            self._close()
            self._block = self.blocks.opened("thinking" if is_thought else "text")
            self._is_thought = is_thought
        if self._block is not None:
            self.blocks.delta(self._block, part.text)
            self._signature = part.thought_signature or self._signature

    def _call(self, call: _Call, signature: str | None) -> None:
        call_id = call.id or ""
        if not call_id or call_id in self._call_ids:
            call_id = f"{call.name}_{self._salt}_{len(self._call_ids)}"
        self._call_ids.add(call_id)
        block = self.blocks.opened("toolCall", call_id, call.name or "")
        if call.args is not None:
            self.blocks.delta(block, msgspec.json.encode(call.args).decode())
        self.blocks.closed(block, signature)

    def _close(self) -> None:
        if self._block is not None:
            self.blocks.closed(self._block, self._signature)
        self._block, self._signature = None, None

    def _count(self, told: _UsageMetadata | None) -> None:
        if told is None:
            return
        cached, thoughts = told.cached_content_token_count or 0, told.thoughts_token_count or 0
        self.usage = Usage(
            input=max((told.prompt_token_count or 0) - cached, 0),
            output=(told.candidates_token_count or 0) + thoughts,
            cache_read=cached,
            reasoning=thoughts,
            total=told.total_token_count,
        )
