"""The player's own judgement: what fits, and what it binds."""

from typing import Any

import pytest

from tests.conversations.matching import filled, fit


@pytest.mark.parametrize(
    ("pattern", "value", "bound"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, {}),
        ({"a": "..."}, {"a": None}, {}),
        ({"a": "~"}, {"b": 1}, {}),
        ({"a": None}, {"a": None}, {}),
        (["...", 3], [1, 2, 3], {}),
        ([1, "..."], [1], {}),
        (["...", {"a": "$x"}, "..."], [{}, {"a": 5}, {"a": 6}], {"x": 5}),
        ({"a": "$x", "b": "$x"}, {"a": [1], "b": [1]}, {"x": [1]}),
        ("...end", "the end", {}),
        ("start...", "start here", {}),
        ("...mid...", "amidst", {}),
        (1.0, 1, {}),
    ],
)
def test_what_fits_binds_its_names(pattern: Any, value: Any, bound: dict[str, Any]) -> None:
    assert fit(pattern, value, {}) == bound


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ({"a": 1}, {}),
        ({"a": 1}, {"a": True}),
        ({"a": True}, {"a": 1}),
        ({"a": "..."}, {}),
        ({"a": "~"}, {"a": None}),
        ({"a": None}, {"a": 0}),
        ({"a": 1}, [1]),
        ([1, 2], [1, 2, 3]),
        ([1], []),
        (["...", 9], [1, 2]),
        ({"a": "$x", "b": "$x"}, {"a": 1, "b": 2}),
        ("...end", "the ending"),
        ("text", 5),
    ],
)
def test_what_differs_does_not_fit(pattern: Any, value: Any) -> None:
    assert fit(pattern, value, {}) is None


def test_names_are_filled_in_also_inside_longer_text_and_unknown_ones_stay() -> None:
    names = {"seq": 3, "dir": "/tmp"}
    sent = {"seq": "$seq", "path": ["$dir/a"], "method": "$/progress", "other": "$none"}
    assert filled(sent, names) == {
        "seq": 3,
        "path": ["/tmp/a"],
        "method": "$/progress",
        "other": "$none",
    }
