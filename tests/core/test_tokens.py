"""Estimates count UTF-16 code units, as the program that shares our files does."""

import pytest

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.policy import OURS, PI3
from pi_rpc.core.tokens import (
    ContextTokens,
    context_tokens,
    estimate,
    estimate_all,
    javascript_number,
    json_units,
    trusted_usage,
    utf16_units,
)


def said(role: str, **fields: object) -> JsonObject:
    return {"role": role, **fields}


def replied(total: int, stop: str = "stop", **fields: object) -> JsonObject:
    return said("assistant", content=[], stopReason=stop, usage={"totalTokens": total}, **fields)


IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
CALL = {"type": "toolCall", "id": "c", "name": "read", "arguments": {}}


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (said("user", content="abcde"), 2),
        (said("user", content=""), 0),
        (said("user", content=[IMAGE]), 1200),
        (said("user", content=[{"type": "text", "text": "ab"}, IMAGE]), 1201),
        (said("user", content="读取文件"), 1),
        (said("user", content="😀"), 1),
        (said("user", content="😀😀x"), 2),
        (said("user", content=None), 0),
        (said("custom", content="abcd", details={"long": "x" * 100}), 1),
        (said("toolResult", content=[{"type": "text", "text": "abcd"}], toolCallId="c"), 1),
        (said("assistant", content=[CALL]), 2),
        (said("assistant", content=[{"type": "thinking", "thinking": ""}]), 0),
        (said("assistant", content=[{"type": "thinking", "thinking": "abcd"}]), 1),
        (said("assistant", content=[{"type": "text", "text": "abcd"}, CALL]), 3),
        (said("bashExecution", command="ls", output="abc", excludeFromContext=True), 2),
        (said("branchSummary", summary="abcde"), 2),
        (said("compactionSummary", summary="abcd"), 1),
        (said("weird", content="abcdefgh"), 0),
        (said("system", content="abcd", sections={"a": "abcd", "b": None}), 2),
        (said("system", content=[{"type": "text", "text": "abcd"}]), 1),
        (said("system", content="", toolsAdded=[{"name": "read"}]), 5),
        ({}, 0),
    ],
)
def test_a_message_has_the_tokens_its_words_have(message: JsonObject, tokens: int) -> None:
    assert estimate(message) == tokens


@pytest.mark.parametrize(
    "message",
    [
        said("user", content=[None, {"type": "text"}, {"type": "text", "text": 3}]),
        said("assistant", content=7),
        said("assistant", content=[{"type": "toolCall"}, "x"]),
        said("bashExecution"),
        said("system", content=3, sections=["a"], toolsAdded=None),
        said("compactionSummary", summary=None),
    ],
)
def test_a_malformed_message_counts_nothing(message: JsonObject) -> None:
    assert estimate(message) == 0


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "1"),
        (1.0, "1"),
        (-2.5, "-2.5"),
        (-0.0, "0"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1.5e300, "1.5e+300"),
        (1e-7, "1e-7"),
        (0.000001, "0.000001"),
        (12345678901234567890, "12345678901234567000"),
        (10**400, "null"),
        (float("inf"), "null"),
    ],
)
def test_a_number_is_printed_as_javascript_prints_it(number: float, text: str) -> None:
    assert javascript_number(number) == text


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ({}, "{}"),
        ([], "[]"),
        ({"a": [1, True, False, None]}, '{"a":[1,true,false,null]}'),
        ({"é": "ü", "b": {"c": 1.0}}, '{"é":"ü","b":{"c":1}}'),
        ('quo"te\\ \n\t\x01 \x7f', '"quo\\"te\\\\ \\n\\t\\u0001 \x7f"'),
        ("half \ud83d", '"half \\ud83d"'),
    ],
)
def test_json_is_as_long_as_javascript_prints_it(value: object, printed: str) -> None:
    assert json_units(value) == len(printed)


def test_a_pair_of_surrogates_is_two_units() -> None:
    assert json_units("😀") == 4
    assert utf16_units("😀") == 2
    assert utf16_units("\ud83d") == 1


def test_json_may_nest_deeper_than_python_recurses() -> None:
    value: list[object] = []
    for _ in range(5000):
        value = [value]
    assert json_units(value) == 2 * 5001


def test_a_context_is_its_last_usage_and_what_follows() -> None:
    messages = [said("user", content="x" * 8), replied(100), said("user", content="x" * 40)]
    assert context_tokens(messages) == ContextTokens(total=110, usage_at=1)


@pytest.mark.parametrize("failed", [replied(70, "error"), replied(70, "aborted"), replied(0)])
def test_a_failed_or_empty_usage_is_passed_over(failed: JsonObject) -> None:
    messages = [replied(50), failed, said("user", content="x" * 8)]
    assert context_tokens(messages) == ContextTokens(total=52, usage_at=0)


def test_a_context_without_usage_is_estimated_message_by_message() -> None:
    messages = [said("user", content="abcde"), replied(0, "error"), said("user", content="a")]
    assert context_tokens(messages) == ContextTokens(total=3)
    assert estimate_all(messages) == 3


def test_a_usage_without_a_total_is_the_sum_of_its_parts() -> None:
    usage = {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "totalTokens": 0}
    assert trusted_usage(said("assistant", usage=usage)) == 10
    assert trusted_usage(said("assistant", usage={"input": "x", "output": True})) == 0
    assert trusted_usage(said("assistant")) == 0


@pytest.mark.parametrize(
    ("text", "pi", "ours"),
    [
        ("abcde", 2, 2),
        ("读取文件", 1, 4),
        ("abcd读", 2, 2),
        ("한국어", 1, 3),
        ("😀", 1, 1),
        ("𠀀", 1, 1),
    ],
)
def test_a_cjk_character_is_a_token_where_that_is_the_rule(text: str, pi: int, ours: int) -> None:
    message = {"role": "user", "content": text}
    assert (PI3.tokens_of(message), OURS.tokens_of(message)) == (pi, ours)


def test_cjk_arguments_of_a_call_count_too() -> None:
    call = {"type": "toolCall", "name": "read", "arguments": {"path": "文件"}}
    message = {"role": "assistant", "content": [call]}
    assert OURS.tokens_of(message) > PI3.tokens_of(message)
