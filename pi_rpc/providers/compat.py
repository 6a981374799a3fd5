"""How servers of the chat completions API differ, by their address and by what the user says; pure.

What is known of a server holds unless the model's own `compat` says otherwise; its fields have the
names of the user's `models.json`.
"""

from typing import Any

import msgspec

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.models import Model


class ChatCompat(msgspec.Struct, frozen=True, rename="camel"):
    """What a server takes. The defaults are those of an unknown server."""

    supports_store: bool = True
    supports_developer_role: bool = False
    supports_reasoning_effort: bool = True
    supports_usage_in_streaming: bool = True
    supports_strict_mode: bool = False
    supports_prompt_cache_key: bool = False
    finish_reason_expected: bool = True
    max_tokens_field: str = "max_completion_tokens"
    requires_tool_result_name: bool = False
    requires_assistant_after_tool_result: bool = False
    requires_non_null_content: bool = False
    requires_tools_with_tool_history: bool = False
    requires_thinking_as_text: bool = False
    thinking_format: str = "openai"
    """How thinking is asked for: openai, openrouter, zai, deepseek, qwen, qwen-chat-template,
    together."""
    thinking_token_budget_field: str = ""
    """The field that bounds thinking, for servers that have one: thinking_token_budget (vLLM),
    thinking_budget (Qwen, SGLang), thinking_budget_tokens (llama.cpp)."""
    cache_control_format: str = ""
    """`anthropic` for servers that pass cache marks on."""
    tool_ids: str = ""
    """`mistral` for ids of nine letters and digits."""


_PLAIN: JsonObject = {"supportsStore": False, "maxTokensField": "max_tokens"}

_BY_HOST: dict[str, JsonObject] = {
    "api.openai.com": {"supportsDeveloperRole": True, "supportsPromptCacheKey": True},
    "api.deepseek.com": {**_PLAIN, "thinkingFormat": "deepseek"},
    "openrouter.ai": {**_PLAIN, "thinkingFormat": "openrouter"},
    "api.groq.com": {"supportsStore": False},
    "api.x.ai": {"supportsStore": False},
    "api.mistral.ai": {
        **_PLAIN,
        "supportsUsageInStreaming": False,
        "toolIds": "mistral",
        "requiresToolResultName": True,
    },
    "api.cerebras.ai": {"supportsStore": False},
    "api.together.xyz": {**_PLAIN, "thinkingFormat": "together"},
    "api.fireworks.ai": _PLAIN,
    "api.z.ai": {**_PLAIN, "thinkingFormat": "zai", "supportsReasoningEffort": False},
    "api.moonshot.ai": _PLAIN,
}


def chat_compat(model: Model) -> ChatCompat:
    """What the server of a model takes. A field of the user's that has the wrong type is none."""
    known = dict(_BY_HOST.get(_host(model.base_url), {}))
    if model.provider == "openrouter" and model.id.startswith("anthropic/"):
        known["cacheControlFormat"] = "anthropic"
    for name, value in model.compat.items():
        if _fits(name, value):
            known[name] = value
    return msgspec.convert(known, ChatCompat)


def _fits(name: str, value: Any) -> bool:
    try:
        msgspec.convert({name: value}, ChatCompat)
    except msgspec.ValidationError:
        return False
    return True


def _host(base_url: str) -> str:
    return base_url.partition("://")[2].partition("/")[0].partition(":")[0].lower()
