"""Which model is meant by the words somebody chose for it."""

import pytest

from pi_rpc.core.errors import Failure
from pi_rpc.core.model_patterns import MeantModel, meant_model, neighbour, scoped_models
from pi_rpc.core.ports.providers import ModelListing


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


SCOPES = [
    (["mock/*"], ["mock/m1", "mock/m2", "mock/deep:free"]),
    (["M?"], ["mock/m1", "mock/m2"]),
    (["m[2-9]"], ["mock/m2"]),
    (["m[!2]"], ["mock/m1"]),
    (["m[9-2]"], []),
    (["m2", "m?", "m1"], ["mock/m2", "mock/m1"]),
    (["nothing", "m1:high"], ["mock/m1:high"]),
    (["m?:low", "m1"], ["mock/m1:low", "mock/m2:low"]),
    (["*:free"], ["mock/deep:free"]),
    (["openrouter/*"], []),
    (["twice"], []),
    ([], []),
]


def written(meant: MeantModel) -> str:
    level = "" if meant.level is None else f":{meant.level}"
    return f"{meant.model.provider}/{meant.model.model_id}{level}"


@pytest.mark.parametrize(("patterns", "wanted"), SCOPES)
def test_a_list_of_patterns_means_usable_models_in_its_order(
    patterns: list[str], wanted: list[str]
) -> None:
    assert [written(one) for one in scoped_models(patterns, MODELS)] == wanted


def test_the_neighbour_is_found_around_the_end() -> None:
    scope = scoped_models(["m1", "m2", "deep:free"], MODELS)
    for current, step, wanted in [
        (("mock", "m1"), 1, 1),
        (("mock", "deep:free"), 1, 0),
        (("mock", "m1"), -1, 2),
        (("other", "x"), 1, 0),
        (None, -1, 2),
    ]:
        assert neighbour(scope, current, step) == scope[wanted]
    assert neighbour(scope[:1], ("mock", "m1"), 1) is None
    assert neighbour([], None, 1) is None
