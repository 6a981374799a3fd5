"""What a model is: its facts, how hard it can think, what its tokens cost."""

from collections.abc import Mapping

import msgspec

from pi_rpc.core.images import ImageLimits
from pi_rpc.core.messages import Cost, JsonObject, Usage

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""Thinking levels, least first."""

EXTRA_LEVELS = frozenset({"xhigh", "max"})
"""Levels a model has only when it says so."""

MILLION = 1_000_000

HOUR_WRITE_FACTOR = 2.0
"""What keeping input for an hour costs, as a multiple of the input price."""


class PriceTier(msgspec.Struct, frozen=True, rename="camel"):
    """Prices for requests whose input is longer than `input_tokens_above`."""

    input_tokens_above: int
    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0


class Prices(msgspec.Struct, frozen=True, rename="camel"):
    """US dollars for a million tokens."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    tiers: tuple[PriceTier, ...] = ()


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One model at one provider."""

    provider: str
    id: str
    name: str
    api: str
    """The API it is spoken to through: anthropic-messages, openai-completions, …"""
    base_url: str
    reasoning: bool = False
    thinking: dict[str, str | None] = {}
    """Level to the provider's own word for it; None where the model lacks the level."""
    input: tuple[str, ...] = ("text",)
    context_window: int = 0
    """Tokens; 0 when unknown."""
    max_output: int = 0
    """Tokens; 0 when unknown."""
    prices: Prices | None = None
    headers: dict[str, str] = {}
    """Sent beside the usual ones; values in the syntax of keys."""
    compat: JsonObject = {}
    """Where this server differs from the API's own."""
    image_limits: ImageLimits = ImageLimits()
    """How large the pictures are that it is shown."""
    sampling: JsonObject = {}
    """Fields that go into each request as they are, where the API is one of OpenAI's."""
    sampling_by_level: dict[str, JsonObject] = {}
    """More of them by thinking level; these win."""

    @property
    def accepts_images(self) -> bool:
        """Whether it can be shown images."""
        return "image" in self.input


def levels_of(reasoning: bool, thinking: Mapping[str, str | None]) -> list[str]:
    """The thinking levels a model has, least first; `off` alone when it does not think."""
    if not reasoning:
        return ["off"]
    return [
        level
        for level in LEVELS
        if thinking.get(level) is not None or (level not in thinking and level not in EXTRA_LEVELS)
    ]


def clamped(level: str, available: list[str]) -> str:
    """The available level nearest to the one wanted: the next one up, else the next one down."""
    if level in available or level not in LEVELS:
        return level if level in available else available[0]
    wanted = LEVELS.index(level)
    for other in (*LEVELS[wanted:], *reversed(LEVELS[:wanted])):
        if other in available:
            return other
    return "off"


def cost_of(usage: Usage, prices: Prices, factor: float = 1.0) -> Cost:
    """What a reply cost at these prices; `factor` is that of the provider's service tier.

    The dearest tier the input reaches holds. Input kept for an hour costs twice the input price.
    """
    reached = usage.input + usage.cache_read + usage.cache_write
    rates: Prices | PriceTier = prices
    for tier in sorted(prices.tiers, key=lambda tier: tier.input_tokens_above):
        if reached > tier.input_tokens_above:
            rates = tier
    for_an_hour = min(usage.cache_write_1h or 0, usage.cache_write)
    written = (usage.cache_write - for_an_hour) * rates.cache_write
    written += for_an_hour * rates.input * HOUR_WRITE_FACTOR
    share = factor / MILLION
    cost = Cost(
        input=usage.input * rates.input * share,
        output=usage.output * rates.output * share,
        cache_read=usage.cache_read * rates.cache_read * share,
        cache_write=written * share,
    )
    total = cost.input + cost.output + cost.cache_read + cost.cache_write
    return msgspec.structs.replace(cost, total=total)
