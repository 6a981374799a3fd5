"""Thinking levels a model has, and what its tokens cost."""

import pytest

from pi_rpc.core.messages import Cost, Usage
from pi_rpc.core.models import Prices, PriceTier, clamped, cost_of, levels_of


def test_a_model_has_the_levels_it_says() -> None:
    usual = ["off", "minimal", "low", "medium", "high"]
    assert levels_of(True, {}) == usual
    assert levels_of(False, {"xhigh": "x"}) == ["off"]
    assert levels_of(True, {"xhigh": "x", "max": None}) == [*usual, "xhigh"]
    assert levels_of(True, {"off": None, "minimal": None}) == ["low", "medium", "high"]


CLAMPS = [
    ("low", ["off", "low", "high"], "low"),
    ("medium", ["off", "low", "high"], "high"),
    ("max", ["off", "low", "high"], "high"),
    ("off", ["low", "high"], "low"),
    ("high", ["off"], "off"),
    ("bogus", ["off", "low"], "off"),
]


@pytest.mark.parametrize(("level", "available", "nearest"), CLAMPS)
def test_a_level_is_moved_up_first_and_then_down(
    level: str, available: list[str], nearest: str
) -> None:
    assert clamped(level, available) == nearest


def test_each_token_costs_its_price() -> None:
    usage = Usage(100, 7, 30, 20, cache_write_1h=5)
    cost = cost_of(usage, Prices(3, 15, 0.3, 3.75))
    assert cost.total == pytest.approx(0.00050025)
    assert cost.from_provider is False
    assert cost_of(usage, Prices(3, 15, 0.3, 3.75), 0.5).total == pytest.approx(0.000250125)
    assert cost_of(usage, Prices()) == Cost()


def test_the_highest_tier_that_is_reached_holds() -> None:
    tiers = (PriceTier(400, 3, 3, 3, 3), PriceTier(200, 2, 2, 2, 2))
    prices = Prices(1, 1, 1, 1, tiers)
    for counted, rate in ((200, 1), (201, 2), (400, 2), (401, 3)):
        usage = Usage(input=counted - 100, cache_read=60, cache_write=40)
        assert cost_of(usage, prices).total == pytest.approx(counted * rate / 1e6)
