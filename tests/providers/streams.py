"""One reply in the words of each API: thinking, text and a call; and what it must become."""

from collections.abc import Sequence
from typing import Any

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.models import Model, Prices
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.providers.anthropic import ANTHROPIC
from pi_rpc.providers.asking import Api
from pi_rpc.providers.google import GOOGLE
from pi_rpc.providers.openai_chat import OPENAI_CHAT
from pi_rpc.providers.openai_responses import OPENAI_RESPONSES
from tests.providers.serving import sse

APIS: dict[str, Api] = {api.name: api for api in (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, GOOGLE)}


def model_of(api: str, **facts: Any) -> Model:
    made: dict[str, Any] = {
        "provider": "test",
        "id": "m1",
        "name": "M 1",
        "api": api,
        "base_url": "http://127.0.0.1",
        "reasoning": True,
        "input": ("text", "image"),
        "context_window": 200_000,
        "max_output": 32_000,
        "prices": Prices(3, 15, 0.3, 3.75),
    }
    return Model(**made | facts)


def request_of(messages: Sequence[JsonObject] = (), level: str = "off") -> ModelRequest:
    said = messages or [{"role": "user", "content": "Go on"}]
    return ModelRequest("test", "m1", level, said, "s1")


def anthropic(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def item(index: int, stage: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.output_item.{stage}", "output_index": index, "item": fields}


def chunk(delta: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, **fields}]
    return {"id": "chatcmpl-1", "model": "m1", "choices": choices}


CALL: dict[str, Any] = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read"}
REASONING: dict[str, Any] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Hm 😀."}],
    "encrypted_content": "AAAA",
}

STREAMS: dict[str, bytes] = {
    ANTHROPIC.name: sse(
        anthropic(
            "message_start",
            message={"id": "msg_1", "model": "m1", "usage": {"input_tokens": 100}},
        ),
        anthropic("content_block_start", index=0, content_block={"type": "thinking"}),
        anthropic(
            "content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "Hm "}
        ),
        anthropic(
            "content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "😀."}
        ),
        anthropic(
            "content_block_delta", index=0, delta={"type": "signature_delta", "signature": "c2ln"}
        ),
        anthropic("content_block_stop", index=0),
        anthropic("ping"),
        anthropic("content_block_start", index=1, content_block={"type": "text", "text": ""}),
        anthropic("content_block_delta", index=1, delta={"type": "text_delta", "text": "I "}),
        anthropic("content_block_delta", index=1, delta={"type": "text_delta", "text": "look."}),
        anthropic("content_block_stop", index=1),
        anthropic(
            "content_block_start",
            index=2,
            content_block={"type": "tool_use", "id": "call_1", "name": "read", "input": {}},
        ),
        anthropic(
            "content_block_delta",
            index=2,
            delta={"type": "input_json_delta", "partial_json": '{"pa'},
        ),
        anthropic(
            "content_block_delta",
            index=2,
            delta={"type": "input_json_delta", "partial_json": 'th":"a"}'},
        ),
        anthropic("content_block_stop", index=2),
        anthropic(
            "message_delta",
            delta={"stop_reason": "tool_use"},
            usage={
                "output_tokens": 7,
                "cache_read_input_tokens": 30,
                "cache_creation_input_tokens": 20,
                "cache_creation": {"ephemeral_1h_input_tokens": 5},
            },
        ),
        anthropic("message_stop"),
        named=True,
    ),
    OPENAI_CHAT.name: sse(
        chunk({"role": "assistant", "reasoning_content": "Hm "}),
        chunk({"reasoning_content": "😀."}),
        chunk({"content": "I "}),
        chunk({"content": "look."}),
        chunk(
            {
                "tool_calls": [
                    {"index": 0, "id": "call_1", "function": {"name": "read", "arguments": ""}}
                ]
            }
        ),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"pa'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": 'th":"a"}'}}]}),
        chunk({}, finish_reason="tool_calls"),
        chunk()
        | {
            "usage": {
                "prompt_tokens": 150,
                "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 20},
            }
        },
        done=True,
    ),
    OPENAI_RESPONSES.name: sse(
        {"type": "response.created", "response": {"id": "resp_1", "model": "m1"}},
        item(0, "added", type="reasoning", id="rs_1", summary=[]),
        {
            "type": "response.reasoning_summary_text.delta",
            "output_index": 0,
            "summary_index": 0,
            "delta": "Hm ",
        },
        {
            "type": "response.reasoning_summary_text.delta",
            "output_index": 0,
            "summary_index": 0,
            "delta": "😀.",
        },
        item(0, "done", **REASONING),
        item(1, "added", type="message", id="msg_1"),
        {"type": "response.output_text.delta", "output_index": 1, "delta": "I "},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "look."},
        item(1, "done", type="message", id="msg_1", phase="commentary"),
        item(2, "added", **CALL),
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"pa'},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": 'th":"a"}'},
        item(2, "done", **CALL, arguments='{"path":"a"}'),
        {
            "type": "response.completed",
            "response": {
                "id": "resp_1",
                "model": "m1",
                "usage": {
                    "input_tokens": 150,
                    "output_tokens": 7,
                    "total_tokens": 157,
                    "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 20},
                },
            },
        },
        named=True,
    ),
    GOOGLE.name: sse(
        {
            "responseId": "g_1",
            "modelVersion": "m1",
            "candidates": [{"content": {"parts": [{"text": "Hm ", "thought": True}]}}],
        },
        {
            "candidates": [
                {
                    "content": {
                        "parts": [{"text": "😀.", "thought": True, "thoughtSignature": "c2ln"}]
                    }
                }
            ]
        },
        {"candidates": [{"content": {"parts": [{"text": "I "}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "look."}]}}]},
        {
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {
                                "functionCall": {
                                    "id": "call_1",
                                    "name": "read",
                                    "args": {"path": "a"},
                                },
                                "thoughtSignature": "Y2FsbA==",
                            }
                        ]
                    },
                    "finishReason": "STOP",
                }
            ],
            "usageMetadata": {
                "promptTokenCount": 130,
                "cachedContentTokenCount": 30,
                "candidatesTokenCount": 4,
                "thoughtsTokenCount": 3,
                "totalTokenCount": 137,
            },
        },
    ),
}
"""A whole stream of each API."""

CONTENTS: dict[str, list[JsonObject]] = {
    ANTHROPIC.name: [
        {"type": "thinking", "thinking": "Hm 😀.", "thinkingSignature": "c2ln"},
        {"type": "text", "text": "I look."},
        {"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"path": "a"}},
    ],
    OPENAI_CHAT.name: [
        {"type": "thinking", "thinking": "Hm 😀.", "thinkingSignature": "reasoning_content"},
        {"type": "text", "text": "I look."},
        {"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"path": "a"}},
    ],
    OPENAI_RESPONSES.name: [
        {
            "type": "thinking",
            "thinking": "Hm 😀.",
            "thinkingSignature": '{"type":"reasoning","id":"rs_1","summary":'
            '[{"type":"summary_text","text":"Hm 😀."}],"encrypted_content":"AAAA"}',
        },
        {
            "type": "text",
            "text": "I look.",
            "textSignature": '{"v":1,"id":"msg_1","phase":"commentary"}',
        },
        {"type": "toolCall", "id": "call_1|fc_1", "name": "read", "arguments": {"path": "a"}},
    ],
    GOOGLE.name: [
        {"type": "thinking", "thinking": "Hm 😀.", "thinkingSignature": "c2ln"},
        {"type": "text", "text": "I look."},
        {
            "type": "toolCall",
            "id": "call_1",
            "name": "read",
            "arguments": {"path": "a"},
            "thoughtSignature": "Y2FsbA==",
        },
    ],
}
"""What the streams above are folded into."""


def spoken(api: str, words: Sequence[str]) -> list[bytes]:
    """A reply of plain words: its beginning, each word, its end."""
    match api:
        case ANTHROPIC.name:
            begin = [
                anthropic("message_start", message={"id": "msg_2", "usage": {"input_tokens": 9}}),
                anthropic("content_block_start", index=0, content_block={"type": "text"}),
            ]
            told = [
                anthropic("content_block_delta", index=0, delta={"type": "text_delta", "text": one})
                for one in words
            ]
            stop = {"stop_reason": "end_turn"}
            end = [
                anthropic("content_block_stop", index=0),
                anthropic("message_delta", delta=stop, usage={"output_tokens": 3}),
                anthropic("message_stop"),
            ]
        case OPENAI_CHAT.name:
            begin = [chunk({"role": "assistant"})]
            told = [chunk({"content": one}) for one in words]
            end = [chunk({}, finish_reason="stop")]
        case OPENAI_RESPONSES.name:
            begin = [
                {"type": "response.created", "response": {"id": "resp_2"}},
                item(0, "added", type="message", id="msg_2"),
            ]
            kind = "response.output_text.delta"
            told = [{"type": kind, "output_index": 0, "delta": one} for one in words]
            end = [
                item(0, "done", type="message", id="msg_2"),
                {"type": "response.completed", "response": {"id": "resp_2"}},
            ]
        case _:
            begin = [{"responseId": "g_2"}]
            told = [{"candidates": [{"content": {"parts": [{"text": one}]}}]} for one in words]
            end = [{"candidates": [{"finishReason": "STOP"}]}]
    is_named = api in (ANTHROPIC.name, OPENAI_RESPONSES.name)
    return [
        sse(*begin, named=is_named),
        *(sse(one, named=is_named) for one in told),
        sse(*end, named=is_named, done=api == OPENAI_CHAT.name),
    ]
