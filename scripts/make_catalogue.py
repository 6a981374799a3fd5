"""Write pi_rpc/providers/catalogue.json anew from published lists of models and prices.

    python -m venv /tmp/lists && /tmp/lists/bin/pip install genai-prices
    /tmp/lists/bin/pip download --no-deps litellm -d /tmp/lists
    /tmp/lists/bin/python scripts/make_catalogue.py /tmp/lists/litellm-*.whl

Limits, abilities and prices are those of litellm's list (MIT); what genai-prices (MIT) says of the
same model is compared, and where the two differ the price is left out rather than guessed. Models
of OpenRouter are genai-prices' own. Nothing here is read when the daemon runs.
"""

import argparse
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent.parent / "pi_rpc" / "providers" / "catalogue.json"
LIST = "litellm/model_prices_and_context_window_backup.json"

CHAT, RESPONSES = "openai-completions", "openai-responses"
PROVIDERS: dict[str, dict[str, Any]] = {
    "anthropic": {
        "name": "Anthropic",
        "api": "anthropic-messages",
        "baseUrl": "https://api.anthropic.com",
        "env": ["ANTHROPIC_API_KEY"],
        "bearerEnv": ["ANTHROPIC_AUTH_TOKEN"],
    },
    "openai": {
        "name": "OpenAI",
        "api": RESPONSES,
        "baseUrl": "https://api.openai.com/v1",
        "env": ["OPENAI_API_KEY"],
    },
    "google": {
        "name": "Google",
        "api": "google-generative-ai",
        "baseUrl": "https://generativelanguage.googleapis.com/v1beta",
        "env": ["GEMINI_API_KEY"],
    },
    "openrouter": {
        "name": "OpenRouter",
        "api": CHAT,
        "baseUrl": "https://openrouter.ai/api/v1",
        "env": ["OPENROUTER_API_KEY"],
    },
    "groq": {
        "name": "Groq",
        "api": CHAT,
        "baseUrl": "https://api.groq.com/openai/v1",
        "env": ["GROQ_API_KEY"],
    },
    "deepseek": {
        "name": "DeepSeek",
        "api": CHAT,
        "baseUrl": "https://api.deepseek.com",
        "env": ["DEEPSEEK_API_KEY"],
    },
    "xai": {
        "name": "xAI",
        "api": CHAT,
        "baseUrl": "https://api.x.ai/v1",
        "env": ["XAI_API_KEY"],
    },
    "mistral": {
        "name": "Mistral",
        "api": CHAT,
        "baseUrl": "https://api.mistral.ai/v1",
        "env": ["MISTRAL_API_KEY"],
    },
    "moonshotai": {
        "name": "Moonshot AI",
        "api": CHAT,
        "baseUrl": "https://api.moonshot.ai/v1",
        "env": ["MOONSHOT_API_KEY"],
    },
    "zai": {
        "name": "Z.ai",
        "api": CHAT,
        "baseUrl": "https://api.z.ai/api/paas/v4",
        "env": ["ZAI_API_KEY"],
    },
    "cerebras": {
        "name": "Cerebras",
        "api": CHAT,
        "baseUrl": "https://api.cerebras.ai/v1",
        "env": ["CEREBRAS_API_KEY"],
    },
    "together": {
        "name": "Together AI",
        "api": CHAT,
        "baseUrl": "https://api.together.xyz/v1",
        "env": ["TOGETHER_API_KEY"],
    },
}
"""Providers by their id in session files, in the order in which they are offered."""

IN_LITELLM = {"google": "gemini", "moonshotai": "moonshot", "together": "together_ai"}
IN_GENAI_PRICES = {"xai": "x-ai"}

NOT_FOR_CHAT = re.compile(
    r"audio|realtime|search|image|tts|ft:|embed|robotics|voxtral|leanstral|safeguard|learnlm"
    r"|-exp-|gemma-2|fim|vibe|beta|gv2|daybreak|cyber|customtools|experimental|coder?-?llama"
)
OPENROUTER_VENDORS = (
    *("anthropic/", "openai/", "google/", "x-ai/", "deepseek/", "qwen/", "moonshotai/", "z-ai/"),
    *("mistralai/", "minimax/"),
)
LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("litellm", type=Path, help="litellm's wheel, or its list as JSON")
    chosen = parser.parse_args().litellm
    listed = entries_of(chosen)
    quoted = genai_prices()
    providers: dict[str, Any] = {}
    dropped = 0
    for provider, facts in PROVIDERS.items():
        models = list(
            openrouter_models(quoted["openrouter"], listed)
            if provider == "openrouter"
            else models_of(provider, listed)
        )
        known = quoted.get(IN_GENAI_PRICES.get(provider, provider), {})
        for model in models:
            dropped += provider != "openrouter" and disagrees(model, known.get(model["id"]))
        providers[provider] = {**facts, "models": sorted(models, key=lambda one: one["id"])}
    made = {"made": date.today().isoformat(), "source": chosen.name, "providers": providers}
    OUT.write_text(one_model_a_line(made), encoding="utf-8")
    count = sum(len(provider["models"]) for provider in providers.values())
    told = f"{count} models, {OUT.stat().st_size} bytes; {dropped} prices left out as doubtful"
    print(told, file=sys.stderr)


def one_model_a_line(made: dict[str, Any]) -> str:
    """JSON in which a change of one model is a change of one line."""
    lines = [f'{{"made":{json.dumps(made["made"])},"source":{json.dumps(made["source"])},']
    lines.append('"providers":{')
    for number, (provider, facts) in enumerate(made["providers"].items()):
        shared = {name: value for name, value in facts.items() if name != "models"}
        lines.append(f"{json.dumps(provider)}:{compact(shared)[:-1]},")
        lines.append('"models":[')
        lines.append(",\n".join(compact(model) for model in facts["models"]))
        lines.append("]}" + ("," if number + 1 < len(made["providers"]) else ""))
    return "\n".join([*lines, "}}", ""])


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def entries_of(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        return json.loads(path.read_bytes())
    with zipfile.ZipFile(path) as wheel:
        return json.loads(wheel.read(LIST))


def models_of(provider: str, listed: dict[str, Any]) -> Iterator[dict[str, Any]]:
    theirs = IN_LITELLM.get(provider, provider)
    seen: set[str] = set()
    today = date.today().isoformat()
    for key, entry in listed.items():
        model_id = key.removeprefix(f"{theirs}/")
        is_chat = entry.get("mode") in ("chat", "responses")
        if entry.get("litellm_provider") != theirs or not is_chat or model_id in seen:
            continue
        if not entry.get("supports_function_calling") or NOT_FOR_CHAT.search(key):
            continue
        if str(entry.get("deprecation_date") or "9") <= today or not entry.get("max_input_tokens"):
            continue
        seen.add(model_id)
        yield model_from(provider, model_id, entry)


def model_from(provider: str, model_id: str, entry: dict[str, Any]) -> dict[str, Any]:
    model: dict[str, Any] = {"id": model_id, "name": name_of(model_id)}
    if entry.get("supports_reasoning"):
        model["reasoning"] = True
        levels = thinking_map(provider, model_id, entry)
        if levels:
            model["thinkingLevelMap"] = levels
    model["input"] = ["text", "image"] if entry.get("supports_vision") else ["text"]
    model["contextWindow"] = int(entry["max_input_tokens"])
    model["maxTokens"] = int(entry.get("max_output_tokens") or 0)
    cost = cost_from(entry)
    if cost:
        model["cost"] = cost
    compat = compat_from(provider, entry)
    if compat:
        model["compat"] = compat
    return model


def name_of(model_id: str) -> str:
    words = re.split(r"[-_ ]+", model_id.rsplit("/", 1)[-1])
    named = " ".join(
        word.upper() if word in ("gpt", "glm") else word.capitalize() for word in words
    )
    # Versions are written with dashes in some ids and read with points.
    return re.sub(r"\b(\d) (\d)\b(?! \d{4})", r"\1.\2", named)


def thinking_map(provider: str, model_id: str, entry: dict[str, Any]) -> dict[str, str | None]:
    """Levels to words, where they differ from the level's own name."""
    levels = entry.get("reasoning_effort_levels")
    made: dict[str, str | None] = {}
    if isinstance(levels, list) and levels:
        for level in LEVELS:
            word = "none" if level == "off" else level
            if word in levels:
                made |= {level: word} if level in ("off", "xhigh", "max") else {}
            elif level not in ("xhigh", "max"):
                made[level] = None
        return made
    if entry.get("supports_xhigh_reasoning_effort"):
        made["xhigh"] = "xhigh"
    if entry.get("supports_max_reasoning_effort"):
        made["max"] = "max"
    if provider == "openai":
        made["off"] = "none" if entry.get("supports_none_reasoning_effort") else None
        if not entry.get("supports_minimal_reasoning_effort"):
            made["minimal"] = None
    never_off = provider == "google" and ("2.5-pro" in model_id or not flash(model_id))
    if entry.get("thinking_always_on") or never_off or "gpt-oss" in model_id:
        made["off"] = None
    if entry.get("supports_minimal_reasoning_effort") is False or "gpt-oss" in model_id:
        made["minimal"] = None
    return made


def flash(model_id: str) -> bool:
    return "flash" in model_id


def compat_from(provider: str, entry: dict[str, Any]) -> dict[str, Any]:
    if provider == "anthropic" and entry.get("supports_adaptive_thinking"):
        return {"forceAdaptiveThinking": True}
    takes_effort = provider in ("openai", "deepseek", "together", "zai", "google", "anthropic")
    has_levels = entry.get("reasoning_effort_levels") or provider in ("groq", "cerebras")
    if entry.get("supports_reasoning") and not takes_effort and not has_levels:
        return {"supportsReasoningEffort": False}
    return {}


PRICE_NAMES = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cacheRead": "cache_read_input_token_cost",
    "cacheWrite": "cache_creation_input_token_cost",
}
TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


def cost_from(entry: dict[str, Any]) -> dict[str, Any]:
    cost = rates(entry, "")
    if not cost.get("input") and not cost.get("output"):
        return {}
    tiers = [
        {
            "inputTokensAbove": int(found[1]) * 1000,
            **cost,
            **rates(entry, f"_above_{found[1]}k_tokens"),
        }
        for name in entry
        if (found := TIER.fullmatch(name))
    ]
    return cost | ({"tiers": tiers} if tiers else {})


def rates(entry: dict[str, Any], suffix: str) -> dict[str, float]:
    return {
        ours: million(entry[theirs + suffix])
        for ours, theirs in PRICE_NAMES.items()
        if isinstance(entry.get(theirs + suffix), int | float)
    }


def million(price: float) -> float:
    """Dollars for a million tokens, without the noise of the division."""
    return float(Decimal(str(price)) * 1_000_000)


def genai_prices() -> dict[str, dict[str, Any]]:
    """Models by provider and id, of the package that must be installed for this."""
    from genai_prices import data  # noqa: PLC0415

    return {
        provider.id: {model.id: model for model in provider.models} for provider in data.providers
    }


def quoted_cost(model: Any) -> dict[str, float]:
    prices = model.prices
    if isinstance(prices, list):
        prices = prices[-1].prices
    found = {
        "input": prices.input_mtok,
        "output": prices.output_mtok,
        "cacheRead": prices.cache_read_mtok,
        "cacheWrite": prices.cache_write_mtok,
    }
    return {
        name: float(getattr(price, "base", price))
        for name, price in found.items()
        if price is not None
    }


def disagrees(model: dict[str, Any], quoted: Any) -> bool:
    """Drop the price of a model when the other list has another."""
    if quoted is None or "cost" not in model:
        return False
    theirs, ours = quoted_cost(quoted), model["cost"]
    both = [name for name in ("input", "output") if name in theirs and name in ours]
    if all(abs(theirs[name] - ours[name]) <= 0.01 * ours[name] for name in both):
        return False
    del model["cost"]
    return True


def openrouter_models(quoted: dict[str, Any], listed: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Models of the main vendors; what they can do is taken from the vendor's own entry."""
    direct = {plain(key): entry for key, entry in listed.items()}
    for model_id, model in quoted.items():
        window = getattr(model, "context_window", None)
        if not window or not model_id.startswith(OPENROUTER_VENDORS) or ":" in model_id:
            continue
        entry = direct.get(plain(model_id))
        if entry is None or NOT_FOR_CHAT.search(model_id):
            continue
        if not entry.get("supports_function_calling"):
            continue
        made = {"id": model_id, "name": getattr(model, "name", None) or name_of(model_id)}
        if entry.get("supports_reasoning"):
            made["reasoning"] = True
        made["input"] = ["text", "image"] if entry.get("supports_vision") else ["text"]
        made["contextWindow"] = int(window)
        made["maxTokens"] = int(entry.get("max_output_tokens") or 0)
        cost = quoted_cost(model)
        yield made | ({"cost": cost} if cost.get("input") or cost.get("output") else {})


def plain(key: str) -> str:
    return key.rsplit("/", 1)[-1].replace(".", "-").lower()


if __name__ == "__main__":
    main()
