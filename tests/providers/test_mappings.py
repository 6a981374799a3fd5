"""One history in the words of each API, and everything a transcript has to put right first."""

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.models import Model
from pi_rpc.core.ports.providers import AskingSettings, ModelRequest
from pi_rpc.providers.asking import Retention, body_bytes, budget_for, output_cap
from pi_rpc.providers.openai_chat import OPENAI_CHAT
from pi_rpc.providers.transcript import NO_RESULT
from tests.providers.streams import APIS, model_of

A, C, R, G = (
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
    "google-generative-ai",
)
PNG: JsonObject = {"type": "image", "data": "iVBOR", "mimeType": "image/png"}


def text(words: str, **more: Any) -> JsonObject:
    return {"type": "text", "text": words, **more}


def user(*blocks: JsonObject) -> JsonObject:
    return {"role": "user", "content": list(blocks)}


def call(call_id: str = "call_1", **arguments: Any) -> JsonObject:
    return {"type": "toolCall", "id": call_id, "name": "read", "arguments": arguments}


def said(api: str, *blocks: JsonObject, **more: Any) -> JsonObject:
    made = {"role": "assistant", "api": api, "provider": "test", "model": "m1"}
    return {**made, "content": list(blocks), "stopReason": "stop", **more}


def result(call_id: str, *blocks: JsonObject, is_error: bool = False) -> JsonObject:
    return {
        "role": "toolResult",
        "toolCallId": call_id,
        "toolName": "read",
        "content": list(blocks),
        "isError": is_error,
    }


def body_of(
    messages: list[JsonObject],
    api: str,
    level: str = "off",
    retention: Retention = "none",
    asking: AskingSettings | None = None,
    **facts: Any,
) -> Any:
    model = model_of(api, **facts)
    wanted = asking or AskingSettings()
    request = ModelRequest("test", "m1", level, messages, "s1", asking=wanted)
    return msgspec.json.decode(body_bytes(APIS[api].post(request, model, retention).body))


def said_in(body: Any, api: str) -> Any:
    return body[{A: "messages", C: "messages", R: "input", G: "contents"}[api]]


SIGNED = {
    A: {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "c2ln"},
    C: {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "reasoning_content"},
    R: {
        "type": "thinking",
        "thinking": "Hm.",
        "thinkingSignature": '{"type":"reasoning","id":"rs_1","encrypted_content":"AAAA"}',
    },
    G: {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "c2ln"},
}


def history(api: str) -> list[JsonObject]:
    name = '{"v":1,"id":"msg_9","phase":"commentary"}'
    words = text("Two.", textSignature=name) if api == R else text("Two.")
    ids = ("c1|fc_1", "c2|fc_2") if api == R else ("c1", "c2")
    return [
        user(text("Look"), PNG),
        said(api, SIGNED[api], words, call(ids[0], path="a"), call(ids[1], path="b")),
        result(ids[0], text("one"), PNG),
        result(ids[1], text("bad"), PNG, is_error=True),
    ]


URL = "data:image/png;base64,iVBOR"
SOURCE = {"type": "base64", "media_type": "image/png", "data": "iVBOR"}
INLINE = {"inlineData": {"mimeType": "image/png", "data": "iVBOR"}}
SHAPES: dict[str, Any] = {
    A: [
        {"role": "user", "content": [text("Look"), {"type": "image", "source": SOURCE}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                text("Two."),
                {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "c2", "name": "read", "input": {"path": "b"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [text("one"), {"type": "image", "source": SOURCE}],
                    "is_error": False,
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "content": "bad\n(its image follows below)",
                    "is_error": True,
                },
                text("Image of the failed call c2:"),
                {"type": "image", "source": SOURCE},
            ],
        },
    ],
    C: [
        {
            "role": "user",
            "content": [text("Look"), {"type": "image_url", "image_url": {"url": URL}}],
        },
        {
            "role": "assistant",
            "content": "Two.",
            "reasoning_content": "Hm.",
            "tool_calls": [
                {
                    "id": f"c{number}",
                    "type": "function",
                    "function": {"name": "read", "arguments": f'{{"path":"{path}"}}'},
                }
                for number, path in ((1, "a"), (2, "b"))
            ],
        },
        {"role": "tool", "content": "one", "tool_call_id": "c1"},
        {"role": "tool", "content": "Error: bad", "tool_call_id": "c2"},
        {
            "role": "user",
            "content": [
                text("Images returned by the tools:"),
                {"type": "image_url", "image_url": {"url": URL}},
                {"type": "image_url", "image_url": {"url": URL}},
            ],
        },
    ],
    R: [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look"},
                {"type": "input_image", "detail": "auto", "image_url": URL},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "AAAA"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Two.", "annotations": []}],
            "status": "completed",
            "id": "msg_9",
            "phase": "commentary",
        },
        *(
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"c{number}",
                "name": "read",
                "arguments": f'{{"path":"{path}"}}',
            }
            for number, path in ((1, "a"), (2, "b"))
        ),
        *(
            {
                "type": "function_call_output",
                "call_id": call_id,
                "output": [
                    {"type": "input_text", "text": words},
                    {"type": "input_image", "detail": "auto", "image_url": URL},
                ],
            }
            for call_id, words in (("c1", "one"), ("c2", "Error: bad"))
        ),
    ],
    G: [
        {"role": "user", "parts": [{"text": "Look"}, INLINE]},
        {
            "role": "model",
            "parts": [
                {"thought": True, "text": "Hm.", "thoughtSignature": "c2ln"},
                {"text": "Two."},
                {"functionCall": {"name": "read", "args": {"path": "a"}}},
                {"functionCall": {"name": "read", "args": {"path": "b"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "read",
                        "response": {"output": "one"},
                        "parts": [INLINE],
                    }
                },
                {
                    "functionResponse": {
                        "name": "read",
                        "response": {"error": "bad"},
                        "parts": [INLINE],
                    }
                },
            ],
        },
    ],
}


@pytest.mark.parametrize("api", APIS)
def test_a_history_of_images_thinking_and_calls_has_each_apis_shape(api: str) -> None:
    assert said_in(body_of(history(api), api), api) == SHAPES[api]


def test_older_gemini_has_its_images_in_a_turn_of_their_own_and_newer_has_ids() -> None:
    old = body_of(history(G), G, id="gemini-2.5-pro")["contents"]
    assert [turn["role"] for turn in old] == ["user", "model", "user", "user"]
    assert old[3]["parts"][1] == INLINE
    new = body_of(history(G), G, id="gemini-3-pro")["contents"]
    assert new[1]["parts"][-1]["functionCall"]["id"] == "c2"
    assert new[2]["parts"][1]["functionResponse"]["id"] == "c2"


@pytest.mark.parametrize("api", APIS)
def test_what_another_model_thought_is_left_out_and_its_ids_are_made_fit(api: str) -> None:
    odd = "call_ABC+/=|fc_" + "q" * 90
    foreign = said(
        "other", SIGNED[A], text("x", textSignature="t"), call(odd, path="a"), model="else"
    )
    body = body_of([user(text("Q")), foreign, result(odd, text("r"))], api, id="gemini-3-x")
    dumped = msgspec.json.encode(said_in(body, api)).decode()
    assert "Hm." not in dumped and "Signature" not in dumped
    ids = ids_in(said_in(body, api), api)
    assert len(ids) == 2 and len(set(ids)) == 1
    assert len(ids[0]) <= 64 and not set(ids[0]) & set("+/=|")
    if api == C:
        assert len(ids[0]) <= 40


def ids_in(value: Any, api: str) -> list[str]:
    """Ids of calls and of results, in order."""
    match api:
        case "anthropic-messages":
            blocks = [b for m in value if isinstance(m["content"], list) for b in m["content"]]
            return [b.get("id") or b["tool_use_id"] for b in blocks if b["type"].startswith("tool")]
        case "openai-completions":
            asked = [(c["id"] for c in m.get("tool_calls", ())) for m in value]
            return [
                each
                for m, calls in zip(value, asked, strict=True)
                for each in (*calls, *([m["tool_call_id"]] if m["role"] == "tool" else ()))
            ]
        case "openai-responses":
            return [item["call_id"] for item in value if "call_id" in item]
        case _:
            parts = [part for turn in value for part in turn["parts"]]
            named = [part.get("functionCall") or part.get("functionResponse") for part in parts]
            return [each["id"] for each in named if each]


@pytest.mark.parametrize("stop", ["aborted", "error"])
@pytest.mark.parametrize("api", APIS)
def test_a_reply_that_failed_is_absent_with_its_calls_and_results(api: str, stop: str) -> None:
    failed = said(api, text("half"), call("c9", path="a"), stopReason=stop)
    messages = [user(text("Q")), failed, result("c9", text("r")), user(text("Again"))]
    assert said_in(body_of(messages, api), api) == said_in(
        body_of([user(text("Q")), user(text("Again"))], api), api
    )


@pytest.mark.parametrize("api", APIS)
def test_a_call_without_its_result_gets_one_before_the_user_speaks(api: str) -> None:
    messages = [user(text("Q")), said(api, call("c1", path="a")), user(text("Next"))]
    dumped = msgspec.json.encode(body_of(messages, api)).decode()
    assert dumped.index(NO_RESULT) < dumped.index("Next")


def notes_of(messages: list[JsonObject], **facts: Any) -> list[tuple[str, int]]:
    post = APIS[A].post(
        ModelRequest("p", "m", "off", messages, "s1"), model_of(A, **facts), "short"
    )
    return [(note.kind, note.place) for note in post.notes]


def test_everything_that_is_left_out_made_up_or_moved_is_noted() -> None:
    messages = [
        result("none", text("r")),
        said(A, call("c1"), call("c2"), stopReason="toolUse"),
        user(PNG, PNG, text("x"), PNG),
        result("c1", text("late")),
        result("c1", text("twice")),
        said("other", SIGNED[A], text("y")),
        said(A, text("half"), stopReason="aborted"),
    ]
    assert sorted(notes_of(messages, input=("text",))) == sorted(
        [
            ("reply_left_out", 6),
            ("result_left_out", 0),
            ("result_moved", 3),
            ("result_left_out", 4),
            ("result_made_up", 1),
            ("image_left_out", 2),
            ("image_left_out", 2),
            ("thinking_left_out", 5),
        ]
    )


@pytest.mark.parametrize("api", APIS)
def test_a_model_without_eyes_is_told_of_images_in_words(api: str) -> None:
    body = body_of(history(api), api, input=("text",))
    dumped = msgspec.json.encode(body).decode()
    assert "iVBOR" not in dumped
    assert dumped.count("An image was attached here") == 1
    assert dumped.count("The tool returned an image") == 2


@pytest.mark.parametrize("api", APIS)
def test_half_a_character_and_endless_numbers_are_left_out(api: str) -> None:
    messages = [
        user(text("a\ud83db 😀")),
        said(api, call("c1", path="x\udc00y", far=float("inf"))),
        result("c1", text("r\ud800")),
    ]
    dumped = msgspec.json.encode(body_of(messages, api)).decode()
    assert "ab 😀" in dumped and "xy" in dumped and "null" in dumped


@pytest.mark.parametrize("depth", [100, 300, 900])
@pytest.mark.parametrize("api", APIS)
def test_a_call_that_nests_too_deeply_keeps_no_request_from_being_made(
    api: str, depth: int
) -> None:
    nested: Any = "innermost"
    for _ in range(depth):
        nested = [nested]
    messages = [user(text("Q")), said(api, call("c1", path=nested)), result("c1", text("R"))]
    dumped = msgspec.json.encode(body_of(messages, api)).decode()
    assert '"Q"' in dumped and '"R"' in dumped
    assert ("innermost" in dumped) == (depth < 200)


@pytest.mark.parametrize("api", APIS)
def test_blank_words_are_not_sent(api: str) -> None:
    messages = [
        user(text("Q"), text("  \n")),
        said(api, text(" "), call("c1", path="a")),
        result("c1"),
        {"role": "user", "content": "  "},
        user(),
        said(api, text("\n")),
    ]
    body = body_of(messages, api)
    texts = [part for part in strings_in(said_in(body, api)) if not part.strip()]
    # The result says nothing, which is what it has to say.
    assert texts == ([""] if api in (A, G) else [])
    assert len(said_in(body, api)) == 3


def strings_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [each for part in value.values() for each in strings_in(part)]
    if isinstance(value, list):
        return [each for part in value for each in strings_in(part)]
    return [value] if isinstance(value, str) else []


SYSTEM: list[JsonObject] = [
    {
        "role": "system",
        "content": "Be brief.",
        "sections": {"cwd": "/a", "rules": "none"},
        "toolsAdded": [
            {
                "name": "read",
                "description": "Reads.",
                "parameters": {
                    "type": "object",
                    "properties": {"const": {"const": "x"}},
                    "title": "T",
                },
            },
            {"name": "old", "description": "", "parameters": {}},
        ],
    },
    user(text("Q")),
    {
        "role": "system",
        "content": "",
        "sections": {"cwd": "/b", "rules": None},
        "toolsRemoved": [{"name": "old"}],
    },
]


@pytest.mark.parametrize("api", APIS)
def test_a_prompt_that_changed_is_one_prompt_with_the_new_words(api: str) -> None:
    body = body_of(SYSTEM, api)
    prompt = {
        A: lambda: body["system"][0]["text"],
        C: lambda: body["messages"][0]["content"],
        R: lambda: body["input"][0]["content"],
        G: lambda: body["systemInstruction"]["parts"][0]["text"],
    }[api]()
    assert prompt == "Be brief.\n\n/b"
    tools = body["tools"][0]["functionDeclarations"] if api == G else body["tools"]
    assert [(tool.get("function") or tool)["name"] for tool in tools] == ["read"]
    assert len(said_in(body, api)) == (1 if api in (A, G) else 2)


def test_a_schema_is_cut_to_what_an_api_knows() -> None:
    [anthropic] = body_of(SYSTEM, A)["tools"]
    assert anthropic["input_schema"] == {
        "type": "object",
        "properties": {"const": {"const": "x"}},
    }
    [google] = body_of(SYSTEM, G)["tools"][0]["functionDeclarations"]
    assert google["parametersJsonSchema"]["properties"] == {"const": {"enum": ["x"]}}


def thinking_in(body: Any, api: str) -> Any:
    return {
        A: lambda: body.get("thinking"),
        C: lambda: body.get("reasoning_effort"),
        R: lambda: body.get("reasoning"),
        G: lambda: body["generationConfig"].get("thinkingConfig"),
    }[api]()


def enabled(budget: int) -> JsonObject:
    return {"type": "enabled", "budget_tokens": budget, "display": "summarized"}


def effort(word: str) -> JsonObject:
    return {"effort": word, "summary": "auto"}


def dynamic() -> JsonObject:
    return {"includeThoughts": True, "thinkingBudget": -1}


THINKING = [
    (A, "off", {"type": "disabled"}),
    (A, "minimal", enabled(1024)),
    (A, "high", enabled(16_384)),
    (C, "off", None),
    (C, "minimal", "minimal"),
    (C, "high", "high"),
    (R, "off", {"effort": "none"}),
    (R, "minimal", effort("minimal")),
    (R, "high", effort("high")),
    (G, "off", {"thinkingBudget": 0}),
    (G, "minimal", dynamic()),
    (G, "high", dynamic()),
]


@pytest.mark.parametrize(("api", "level", "asked"), THINKING)
def test_thinking_is_asked_for_in_each_apis_words(api: str, level: str, asked: Any) -> None:
    assert thinking_in(body_of([user(text("Q"))], api, level), api) == asked
    assert thinking_in(body_of([user(text("Q"))], api, level, reasoning=False), api) is None


def test_models_differ_in_how_they_are_asked_to_think() -> None:
    question = [user(text("Q"))]
    adaptive = body_of(question, A, "xhigh", compat={"forceAdaptiveThinking": True})
    assert adaptive["output_config"] == {"effort": "high"}
    gemini = body_of(question, G, "low", id="gemini-3-pro")
    assert thinking_in(gemini, G) == {"includeThoughts": True, "thinkingLevel": "LOW"}
    pro = body_of(question, G, "low", id="gemini-2.5-pro")
    assert thinking_in(pro, G)["thinkingBudget"] == 2048
    no_off = body_of(question, R, "off", thinking={"off": None, "minimal": None})
    assert thinking_in(no_off, R) == effort("low")
    mapped = body_of(question, C, "max", thinking={"max": "most"})
    assert thinking_in(mapped, C) == "most"


FORMATS = [
    ("openrouter", "off", {"reasoning": {"effort": "none"}}),
    ("openrouter", "low", {"reasoning": {"effort": "low"}}),
    ("zai", "low", {"thinking": {"type": "enabled"}}),
    ("deepseek", "off", {"thinking": {"type": "disabled"}}),
    ("qwen", "low", {"enable_thinking": True}),
    ("qwen-chat-template", "off", {"chat_template_kwargs": {"enable_thinking": False}}),
    ("together", "low", {"reasoning": {"enabled": True}}),
]


@pytest.mark.parametrize(("way", "level", "asked"), FORMATS)
def test_servers_of_one_api_have_ways_of_their_own_to_ask(
    way: str, level: str, asked: JsonObject
) -> None:
    body = body_of([user(text("Q"))], C, level, compat={"thinkingFormat": way})
    assert body | asked == body
    assert "reasoning_effort" not in body


def test_what_the_user_says_of_a_server_holds() -> None:
    compat = {
        "supportsStore": False,
        "maxTokensField": "max_tokens",
        "supportsUsageInStreaming": False,
        "requiresToolResultName": True,
        "requiresAssistantAfterToolResult": True,
        "requiresNonNullContent": True,
        "toolIds": "mistral",
        "supportsReasoningEffort": "not a boolean",
        "unheardOf": 1,
    }
    messages = [said(C, call("c1", path="a")), result("c1", text("r")), user(text("Q"))]
    body = body_of(messages, C, compat=compat)
    assert "store" not in body and "stream_options" not in body
    assert body["max_tokens"] == 32_000
    asked, told, bridge, question = body["messages"]
    assert asked["content"] == ""
    assert (told["name"], len(told["tool_call_id"])) == ("read", 9)
    assert (bridge["role"], question["role"]) == ("assistant", "user")


def test_openai_itself_is_told_more_than_others() -> None:
    body = body_of(SYSTEM, C, base_url="https://api.openai.com/v1", retention="long")
    assert body["messages"][0]["role"] == "developer"
    assert body["prompt_cache_retention"] == "24h"
    assert "prompt_cache_key" not in body_of(SYSTEM, C, retention="long")


def marks_in(value: Any) -> list[Any]:
    if isinstance(value, dict):
        own = [value["cache_control"]] if "cache_control" in value else []
        return own + [mark for part in value.values() for mark in marks_in(part)]
    return [mark for part in value for mark in marks_in(part)] if isinstance(value, list) else []


def test_three_marks_say_what_anthropic_may_keep() -> None:
    assert marks_in(body_of(SYSTEM, A, retention="short")) == [{"type": "ephemeral"}] * 3
    long = marks_in(body_of(SYSTEM, A, retention="long"))
    assert long == [{"type": "ephemeral", "ttl": "1h"}] * 3
    assert marks_in(body_of(SYSTEM, A, retention="none")) == []
    ends_with_reply = [*SYSTEM, said(A, text("x"))]
    assert len(marks_in(body_of(ends_with_reply, A, retention="short"))) == 2


def test_responses_are_kept_by_a_key_that_is_not_the_sessions_id() -> None:
    body = body_of(SYSTEM, R, retention="long")
    assert body["prompt_cache_retention"] == "24h"
    assert "s1" not in body["prompt_cache_key"] and len(body["prompt_cache_key"]) == 32
    assert "prompt_cache_key" not in body_of(SYSTEM, R)


def test_a_reply_is_asked_for_no_longer_than_there_is_room() -> None:
    assert output_cap(None, limits(8192, 200_000), 100) == 8192
    assert output_cap(1000, limits(8192, 200_000), 100) == 1000
    assert output_cap(100_000, limits(8192, 200_000), 100) == 8192
    assert output_cap(None, limits(0, 0), 100) == 16_384
    # 15 % of the input stays free, and no more than 4096 where that leaves little.
    assert output_cap(None, limits(64_000, 100_000), 40_000) == 54_000
    assert output_cap(None, limits(64_000, 100_000), 60_000) == 32_768
    assert output_cap(None, limits(64_000, 100_000), 90_000) == 5_904
    assert output_cap(None, limits(64_000, 100_000), 120_000) == 1
    # A small window keeps a small margin.
    assert output_cap(None, limits(4096, 4096), 96) == 3488


def limits(max_output: int, window: int) -> Model:
    return model_of(A, max_output=max_output, context_window=window)


def test_a_budget_leaves_room_for_the_answer() -> None:
    assert budget_for("medium", 8000, limits(8000, 0), {}) == (8000, 6976)
    assert budget_for("medium", 8000, limits(64_000, 0), {}) == (16_192, 8192)
    assert budget_for("max", 8000, limits(0, 0), {}) == (24_384, 16_384)


OWN_BUDGETS = AskingSettings(thinking_budgets={"low": 3000, "high": 5000})
BUDGET_FIELD = "thinking_budget_tokens"


@pytest.mark.parametrize(
    ("level", "own", "usual"), [("low", 3000, 2048), ("medium", None, 8192), ("high", 5000, 16_384)]
)
def test_a_session_may_have_budgets_of_its_own(level: str, own: int | None, usual: int) -> None:
    question, expected = [user(text("Q"))], own or usual
    anthropic = body_of(question, A, level, asking=OWN_BUDGETS)
    assert anthropic["thinking"]["budget_tokens"] == expected
    gemini = body_of(question, G, level, asking=OWN_BUDGETS, id="gemini-2.5-pro")
    assert thinking_in(gemini, G)["thinkingBudget"] == expected
    dynamic_one = body_of(question, G, level, asking=OWN_BUDGETS)
    assert thinking_in(dynamic_one, G)["thinkingBudget"] == (own or -1)
    chat = body_of(
        question, C, level, asking=OWN_BUDGETS, compat={"thinkingTokenBudgetField": BUDGET_FIELD}
    )
    assert chat[BUDGET_FIELD] == expected
    assert BUDGET_FIELD not in body_of(question, C, level, asking=OWN_BUDGETS)


def test_levels_above_high_have_its_budget() -> None:
    body = body_of([user(text("Q"))], A, "max", asking=OWN_BUDGETS, thinking={"max": "max"})
    assert body["thinking"]["budget_tokens"] == 5000


def test_a_budget_in_a_field_of_its_own_leaves_room_and_is_absent_without_thinking() -> None:
    compat = {"thinkingTokenBudgetField": BUDGET_FIELD}
    question = [user(text("Q"))]
    assert body_of(question, C, "high", compat=compat, max_output=4000)[BUDGET_FIELD] == 2976
    assert BUDGET_FIELD not in body_of(question, C, "high", compat=compat, max_output=1000)
    assert BUDGET_FIELD not in body_of(question, C, "off", compat=compat)


SAMPLING: dict[str, Any] = {
    "sampling": {"temperature": 1.0, "top_p": 0.95},
    "sampling_by_level": {"off": {"temperature": 0.7}, "high": {"top_k": 20}},
}


@pytest.mark.parametrize("api", [C, R])
@pytest.mark.parametrize(
    ("level", "sent"),
    [
        ("off", {"temperature": 0.7, "top_p": 0.95}),
        ("low", {"temperature": 1.0, "top_p": 0.95}),
        ("high", {"temperature": 1.0, "top_p": 0.95, "top_k": 20}),
        ("max", {"temperature": 1.0, "top_p": 0.95, "top_k": 20}),
    ],
)
def test_sampling_goes_by_the_model_and_the_level_it_has(
    api: str, level: str, sent: JsonObject
) -> None:
    body, plain = (body_of(SYSTEM, api, level, **facts) for facts in (SAMPLING, {}))
    assert body == plain | sent


@pytest.mark.parametrize("api", [A, G])
def test_other_apis_have_no_such_fields(api: str) -> None:
    assert body_of(SYSTEM, api, **SAMPLING) == body_of(SYSTEM, api)


def test_structured_thinking_goes_back_as_it_came() -> None:
    details = '[{"type":"reasoning.encrypted","data":"AA"}]'
    thought = {"type": "thinking", "thinking": "", "thinkingSignature": details}
    body = body_of([said(C, thought, text("x"))], C)
    assert body["messages"][0]["reasoning_details"] == msgspec.json.decode(details)


def test_redacted_thinking_goes_back_and_unsigned_thinking_does_not() -> None:
    hidden = {"type": "thinking", "thinking": "", "thinkingSignature": "D", "redacted": True}
    bare = {"type": "thinking", "thinking": "Hm."}
    messages = [said(A, hidden, bare, text("x"))]
    [reply] = body_of(messages, A)["messages"]
    assert reply["content"] == [{"type": "redacted_thinking", "data": "D"}, text("x")]
    [reply] = body_of(messages, A, compat={"allowEmptySignature": True})["messages"]
    assert reply["content"][1] == {"type": "thinking", "thinking": "Hm.", "signature": ""}


# What a damaged or foreign file may hold is held too: ids twice, results alone, wrong types.
IDS_DRAWN = ("c1", "c2", "c 1", "c+1", "x|fc_1", "y" * 70, "")
WORDS_DRAWN = ("", " ", "hello", "\ud83d", "😀", "\x00")
MODELS_DRAWN = ("m1", "m2")
IDS = st.sampled_from(IDS_DRAWN)
WORDS = st.sampled_from(WORDS_DRAWN)
BLOCKS = st.one_of(
    st.builds(text, WORDS),
    st.just(PNG),
    st.just({"type": "image"}),
    st.builds(lambda each: call(each, path="a"), IDS),
    st.builds(lambda words: {"type": "thinking", "thinking": words}, WORDS),
    st.sampled_from([{"type": "odd"}, {}, {"type": "text", "text": 3}, *SIGNED.values()]),
)
CONTENTS = st.one_of(st.lists(BLOCKS, max_size=4), WORDS, st.none())
MESSAGES = st.one_of(
    st.builds(lambda content: {"role": "user", "content": content}, CONTENTS),
    st.builds(
        lambda api, content, stop, model: {
            **said(api, stopReason=stop, model=model),
            "content": content,
        },
        st.sampled_from(list(APIS)),
        CONTENTS,
        st.sampled_from(["stop", "toolUse", "aborted", "error", "length"]),
        st.sampled_from(MODELS_DRAWN),
    ),
    st.builds(
        lambda each, content, failed: {**result(each, is_error=failed), "content": content},
        IDS,
        CONTENTS,
        st.booleans(),
    ),
    st.sampled_from(SYSTEM),
)


@settings(max_examples=150, deadline=1000)
@given(st.lists(MESSAGES, max_size=10), st.sampled_from(list(APIS)), st.booleans())
def test_any_history_becomes_a_request_in_which_every_call_has_its_result(
    messages: list[JsonObject], api: str, sees: bool
) -> None:
    before = msgspec.json.encode([repr(message) for message in messages])
    images = ("text", "image") if sees else ("text",)
    # The id makes the fourth API send ids too.
    body = body_of(messages, api, "low", "short", input=images, id="gpt-oss-m1")
    assert msgspec.json.encode([repr(message) for message in messages]) == before
    check_pairs(said_in(body, api), api)


def random_history(chance: Random) -> list[JsonObject]:
    """What a file may hold after runs that went well, failed, were stopped or were damaged."""

    def block() -> JsonObject:
        drawn = chance.choice(("text", "text", "call", "call", "thinking", "image"))
        match drawn:
            case "call":
                return call(chance.choice(IDS_DRAWN), path="a")
            case "thinking":
                return chance.choice([*SIGNED.values()])
            case "image":
                return PNG
            case _:
                return text(chance.choice(WORDS_DRAWN))

    def message() -> JsonObject:
        blocks = [block() for _ in range(chance.randrange(4))]
        match chance.choice(("user", "assistant", "assistant", "result", "result", "system")):
            case "user":
                return user(*blocks)
            case "assistant":
                stop = chance.choice(("stop", "toolUse", "aborted", "error", "length"))
                api = chance.choice([*APIS])
                return said(api, *blocks, stopReason=stop, model=chance.choice(MODELS_DRAWN))
            case "result":
                failed = chance.random() < 0.3
                return result(chance.choice(IDS_DRAWN), *blocks, is_error=failed)
            case _:
                return chance.choice(SYSTEM)

    return [message() for _ in range(chance.randrange(1, 14))]


@pytest.mark.parametrize("api", APIS)
def test_a_thousand_random_histories_become_requests_in_which_every_call_has_its_result(
    api: str,
) -> None:
    chance = Random(api)
    for _ in range(1000):
        messages = random_history(chance)
        check_pairs(said_in(body_of(messages, api, "low", "short", id="gpt-oss-m1"), api), api)


def check_pairs(sent: Any, api: str) -> None:
    """Calls are followed by their results, in groups; no id waits, none comes from nowhere."""
    waiting: list[str] = []
    for kind, each in steps_in(sent, api):
        if kind == "call":
            assert each not in waiting
            waiting.append(each)
        elif kind == "result":
            waiting.remove(each)
        else:
            assert not waiting
    assert not waiting


def steps_in(sent: Any, api: str) -> list[tuple[str, str]]:
    steps: list[tuple[str, str]] = []
    for message in sent:
        if api == R:
            kind = str(message.get("type", ""))
            names = {"function_call": "call", "function_call_output": "result"}
            steps.append((names.get(kind, "user"), str(message.get("call_id"))))
            if message.get("type") in ("reasoning", "message"):
                steps.pop()
        elif api == C:
            if message["role"] == "tool":
                steps.append(("result", message["tool_call_id"]))
            elif message["role"] == "assistant":
                steps += [("call", each["id"]) for each in message.get("tool_calls", ())]
            else:
                steps.append(("user", ""))
        elif api == A:
            content = message["content"] if isinstance(message["content"], list) else []
            assert message["content"]
            found = [block for block in content if block["type"] in ("tool_use", "tool_result")]
            steps += [
                ("call", block["id"])
                if block["type"] == "tool_use"
                else ("result", block["tool_use_id"])
                for block in found
            ]
        else:
            assert message["parts"]
            for part in message["parts"]:
                if "functionCall" in part:
                    steps.append(("call", part["functionCall"]["id"]))
                elif "functionResponse" in part:
                    steps.append(("result", part["functionResponse"]["id"]))
    return steps


def test_a_long_history_is_mapped_in_little_time() -> None:
    turn = [user(text("Q" * 100)), said(C, text("A" * 200), call("c1")), result("c1", text("r"))]
    # Five thousand turns; quadratic work would take minutes.
    body = OPENAI_CHAT.post(
        ModelRequest("test", "m1", "off", turn * 5000, "s1"), model_of(C), "short"
    ).body
    assert len(body["messages"]) == 15_000
