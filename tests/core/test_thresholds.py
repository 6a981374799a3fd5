"""When a context is too full, and what a reply says of it."""

from typing import Any

import pytest

from pi_rpc.core.errors import Invalid
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.thresholds import (
    Limits,
    compaction_settings_from,
    has_outgrown,
    is_due,
    is_effective,
    recovery_of,
)


@pytest.mark.parametrize(
    ("tokens", "window", "due"),
    [(83_616, 100_000, False), (83_617, 100_000, True), (10**9, None, False), (10**9, 0, False)],
)
def test_a_compaction_is_due_beyond_the_window_less_the_reserve(
    tokens: int, window: int | None, due: bool
) -> None:
    assert is_due(tokens, window, Limits()) is due


@pytest.mark.parametrize(
    ("window", "fitted"),
    [
        (None, (16_384, 20_000)),
        (0, (16_384, 20_000)),
        (100_000, (16_384, 20_000)),
        (8000, (2000, 3000)),
        (1, (0, 0)),
    ],
)
def test_limits_fit_into_a_small_window(window: int | None, fitted: tuple[int, int]) -> None:
    limits = Limits().within(window)
    assert (limits.reserve_tokens, limits.keep_recent_tokens) == fitted


def test_a_reserve_beyond_the_window_does_not_make_a_compaction_always_due() -> None:
    assert not is_due(700, 1000, Limits(reserve_tokens=5000))
    assert is_due(751, 1000, Limits(reserve_tokens=5000))


@pytest.mark.parametrize(("after", "holds"), [(90, True), (91, False), (0, True)])
def test_a_tenth_less_is_worth_it(after: int, holds: bool) -> None:
    assert is_effective(100, after) is holds


def test_an_override_holds_field_by_field_for_its_model() -> None:
    settings = compaction_settings_from(
        {
            "enabled": False,
            "keepRecentTokens": 7,
            "modelOverrides": {"p/m/x": {"reserveTokens": 5}, "p/other": {}},
        }
    )
    assert not settings.enabled
    assert settings.limits_for("p", "m/x") == Limits(5, 7)
    assert settings.limits_for("p", "M/x") == Limits(16_384, 7)


@pytest.mark.parametrize(
    ("stored", "at"),
    [
        ({"reserveTokens": -1}, "compaction.reserveTokens"),
        ({"keepRecentTokens": 1.5}, "compaction.keepRecentTokens"),
        ({"keepRecentTokens": True}, "compaction.keepRecentTokens"),
        ({"keepRecentTokens": "5"}, "compaction.keepRecentTokens"),
        ({"reserveTokens": 2**53}, "compaction.reserveTokens"),
        ({"enabled": 1}, "compaction.enabled"),
        ({"modelOverrides": []}, "compaction.modelOverrides"),
        ({"modelOverrides": {"p/m": []}}, "compaction.modelOverrides[p/m]"),
        ({"modelOverrides": {"p/m": None}}, "compaction.modelOverrides[p/m]"),
        (
            {"modelOverrides": {"p/m": {"reserveTokens": -1}}},
            "compaction.modelOverrides[p/m].reserveTokens",
        ),
        ([], "compaction"),
    ],
)
def test_settings_that_are_none_are_refused_by_their_place(stored: Any, at: str) -> None:
    with pytest.raises(Invalid) as caught:
        compaction_settings_from(stored)
    assert (caught.value.reason, caught.value.data) == ("bad_compaction_settings", {"at": at})


def test_a_whole_number_written_as_a_fraction_is_taken() -> None:
    assert compaction_settings_from({"reserveTokens": 5.0}).reserve_tokens == 5


def test_branch_settings_stand_beside() -> None:
    assert compaction_settings_from(None, {"reserveTokens": 9}).branch_reserve_tokens == 9


def reply(stop: str, text: str = "", **fields: Any) -> JsonObject:
    usage = {"input": fields.pop("input", 0), "output": fields.pop("output", 0), "cacheRead": 0}
    said: JsonObject = {"role": "assistant", "stopReason": stop, "usage": usage}
    if text:
        said["errorMessage"] = text
    if fields:
        said["error"] = fields
    return said


@pytest.mark.parametrize(
    ("message", "recovery"),
    [
        (reply("error", "prompt is too long: 9 tokens", kind="invalid_request"), "overflow"),
        (reply("error", "no room", kind="overflow"), "overflow"),
        (reply("error", "too large", kind="invalid_request", status=413), "overflow"),
        (reply("error", "maximum context length is 8192 tokens", kind="unknown"), "overflow"),
        (reply("error", "prompt is too long"), "overflow"),
        (reply("error", "too many tokens per minute", kind="rate_limited", status=429), None),
        (reply("error", "overloaded", kind="overloaded"), None),
        (reply("error", "bad request", kind="invalid_request"), None),
        (reply("stop"), None),
        (reply("aborted"), None),
        (reply("length", input=500, output=99), "length"),
        (reply("length", input=500, output=100), None),
        (reply("length", input=990, output=0), "overflow"),
    ],
)
def test_a_reply_tells_whether_it_lacked_room(message: JsonObject, recovery: str | None) -> None:
    assert recovery_of(message, 1000, 100) == recovery


def test_a_cut_reply_of_a_model_without_known_limits_lacked_no_room() -> None:
    assert recovery_of(reply("length", output=5), None, 0) is None


@pytest.mark.parametrize(
    ("message", "holds"),
    [
        (reply("stop", input=1001), True),
        (reply("stop", input=1000), False),
        (reply("stop", input=900) | {"usage": {"input": 900, "cacheRead": 101}}, True),
        (reply("toolUse", input=1001), False),
        (reply("error", input=1001), False),
        (reply("stop") | {"usage": None}, False),
    ],
)
def test_an_answer_tells_whether_its_context_was_beyond_the_window(
    message: JsonObject, holds: bool
) -> None:
    assert has_outgrown(message, 1000) is holds
    assert not has_outgrown(message, None)
