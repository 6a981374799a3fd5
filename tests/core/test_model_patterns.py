"""Which model is meant by the words somebody chose for it."""

import pytest

from pi_rpc.core.errors import Failure
from pi_rpc.core.model_patterns import meant_model
from pi_rpc.core.ports import ModelListing


def listed(provider: str, model_id: str, name: str = "", usable: bool = True) -> ModelListing:
    return ModelListing(provider, model_id, name, 0, 0, True, usable)


MODELS = [
    listed("mock", "m1", "First"),
    listed("mock", "m2", "Second model"),
    listed("mock", "deep:free"),
    listed("anthropic", "claude-sonnet-4-5"),
    listed("anthropic", "claude-sonnet-4-5-20250929"),
    listed("anthropic", "claude-sonnet-4-6"),
    listed("openrouter", "anthropic/claude-sonnet-4-6", usable=False),
    listed("a", "same", usable=False),
    listed("b", "same"),
    listed("c", "twice"),
    listed("d", "twice"),
]

MEANT = [
    ("m1", "mock/m1", None),
    ("M1", "mock/m1", None),
    ("mock/m1", "mock/m1", None),
    ("second", "mock/m2", None),
    ("m2:high", "mock/m2", "high"),
    ("deep:free", "mock/deep:free", None),
    ("deep:free:low", "mock/deep:free", "low"),
    ("sonnet-4-5", "anthropic/claude-sonnet-4-5", None),
    ("sonnet", "anthropic/claude-sonnet-4-6", None),
    ("20250929", "anthropic/claude-sonnet-4-5-20250929", None),
    ("anthropic/claude-sonnet-4-6", "anthropic/claude-sonnet-4-6", None),
    ("openrouter/anthropic/claude-sonnet-4-6", "openrouter/anthropic/claude-sonnet-4-6", None),
    ("openrouter/sonnet", "openrouter/anthropic/claude-sonnet-4-6", None),
    ("same", "b/same", None),
    ("a/same", "a/same", None),
]


@pytest.mark.parametrize(("pattern", "meant", "level"), MEANT)
def test_words_mean_a_model(pattern: str, meant: str, level: str | None) -> None:
    found = meant_model(pattern, MODELS)
    assert (f"{found.model.provider}/{found.model.model_id}", found.level) == (meant, level)


REFUSED = [
    ("nothing like it", "model_not_found"),
    ("", "model_not_found"),
    (":high", "model_not_found"),
    ("mock/new", "model_not_found"),
    ("m2:bogus", "bad_thinking_level"),
    ("twice", "ambiguous_model"),
]


@pytest.mark.parametrize(("pattern", "reason"), REFUSED)
def test_words_that_mean_no_one_model_are_refused(pattern: str, reason: str) -> None:
    with pytest.raises(Failure) as refused:
        meant_model(pattern, MODELS)
    assert refused.value.reason == reason
