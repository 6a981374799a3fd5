"""What a failure means, and whether and when to ask again."""

from math import inf

import pytest

from pi_rpc.core.reply import ReplyError
from pi_rpc.core.retrying import (
    RequestRetries,
    RetryPolicy,
    delay_ms,
    error_of,
    is_overflow_text,
    is_retryable,
    kind_of,
    request_delay_ms,
)

WORDS = [
    ("insufficient_quota", "quota"),
    ("Quota exceeded for project", "quota"),
    ("GoUsageLimitError: monthly", "quota"),
    ("Your credit balance is too low", "quota"),
    ("Overloaded", "overloaded"),
    ("server busy, try later", "overloaded"),
    ("experiencing high demand", "overloaded"),
    ("rate limit: too many tokens", "rate_limited"),
    ("Too Many Requests", "rate_limited"),
    ("429 too many tokens per minute", "rate_limited"),
    ("too many tokens per day for this model", "rate_limited"),
    ("429 too many tokens", "rate_limited"),
    ("too many tokens in the request", "overflow"),
    ("ThrottlingException: Too many tokens", "rate_limited"),
    ("RESOURCE_EXHAUSTED", "rate_limited"),
    ("HTTP 503", "overloaded"),
    ("upstream returned 520", "server"),
    ("status 529", "overloaded"),
    ("500 Internal Server Error", "server"),
    ("provider returned error", "server"),
    ("Please retry your request", "server"),
    ("fetch failed", "network"),
    ("read ECONNRESET", "network"),
    ("getaddrinfo EAI_AGAIN host", "network"),
    ("socket hang up", "network"),
    ("Request timed out.", "timeout"),
    ("stream ended without message_stop", "cut"),
    ("terminated", "cut"),
    ("prompt is too long: 210000 tokens > 200000 maximum", "overflow"),
    ("400 bad thing", "invalid_request"),
    ("401 no", "unauthorized"),
    ("model 4000x says 5001", "unknown"),
    ("", "unknown"),
]


@pytest.mark.parametrize(("words", "kind"), WORDS)
def test_words_alone_say_a_kind(words: str, kind: str) -> None:
    assert kind_of(None, None, words) == kind


STATUSES = [
    (400, None, "anything", "invalid_request"),
    (400, None, "input is too long for this model", "overflow"),
    (400, "context_length_exceeded", "", "overflow"),
    (400, "invalid_request_error", "Your credit balance is too low", "quota"),
    (401, None, "rate limit", "unauthorized"),
    (402, None, "", "quota"),
    (408, None, "", "timeout"),
    (409, None, "", "server"),
    (413, None, "", "overflow"),
    (429, None, "prompt is too long", "rate_limited"),
    (429, "insufficient_quota", "", "quota"),
    (500, None, "prompt is too long", "server"),
    (500, None, "the model is overloaded", "overloaded"),
    (503, None, "", "overloaded"),
    (529, None, "", "overloaded"),
    (599, None, "", "server"),
    (302, None, "", "unknown"),
]


@pytest.mark.parametrize(("status", "code", "words", "kind"), STATUSES)
def test_status_and_code_decide_before_words(
    status: int, code: str | None, words: str, kind: str
) -> None:
    assert kind_of(status, code, words) == kind


OVERFLOWS = [
    ("This model's maximum context length is 8192 tokens", True),
    ("exceeds the available context size", True),
    ("input token count (9) exceeds the maximum number", True),
    ("413 Payload too large", True),
    ("rate limit: too many tokens", False),
    ("ThrottlingException: Too many tokens", False),
    ("Service unavailable: too many tokens", False),
    ("status 413 in the middle", False),
]


@pytest.mark.parametrize(("words", "is_one"), OVERFLOWS)
def test_an_overflow_is_known_by_its_words(words: str, is_one: bool) -> None:
    assert is_overflow_text(words) is is_one


def test_only_what_may_pass_is_asked_again() -> None:
    kinds = ("overloaded", "rate_limited", "server", "network", "timeout", "cut")
    never = ("quota", "invalid_request", "unauthorized", "overflow", "refusal", "aborted")
    assert all(is_retryable(ReplyError(kind, "x")) for kind in kinds)
    assert not any(is_retryable(ReplyError(kind, "fetch failed")) for kind in never)
    assert is_retryable(ReplyError("unknown", "fetch failed"))
    assert not is_retryable(ReplyError("unknown", "odd"))


def test_a_delay_doubles_up_to_its_bound_and_is_spread() -> None:
    assert [delay_ms(attempt, 0, policy=RetryPolicy(retries_max=9)) for attempt in range(1, 8)] == [
        2000,
        4000,
        8000,
        16_000,
        32_000,
        60_000,
        60_000,
    ]
    assert delay_ms(1, 0.999) == 1500
    assert delay_ms(4, 0) is None
    assert delay_ms(1, 0, policy=RetryPolicy(enabled=False)) is None
    assert delay_ms(10**6, 0, policy=RetryPolicy(retries_max=10**7)) == 60_000


def test_a_server_that_says_when_is_not_asked_before() -> None:
    assert delay_ms(1, 0.5, 9000) == 9000
    assert delay_ms(2, 0, 1000) == 4000
    assert delay_ms(1, 0, 120_000) is None


def test_a_stored_message_tells_its_failure() -> None:
    stored = {
        "stopReason": "error",
        "errorMessage": "slow",
        "error": {"kind": "rate_limited", "status": 429, "code": "x", "retryAfterMs": 5},
    }
    assert error_of(stored) == ReplyError("rate_limited", "slow", 429, "x", 5)
    of_another = {"stopReason": "error", "errorMessage": "Overloaded"}
    assert error_of(of_another) == ReplyError("overloaded", "Overloaded")
    assert error_of({"stopReason": "stop", "errorMessage": "x"}) is None
    odd = {"stopReason": "error", "errorMessage": 3, "error": {"kind": "cut", "status": "x"}}
    assert error_of(odd) == ReplyError("cut", "")


def test_a_request_is_made_anew_after_half_a_second_and_then_twice_as_long() -> None:
    error, retries = ReplyError("overloaded", "", 529), RequestRetries(9)
    waits = [request_delay_ms(error, n, 0, retries, advised=None) for n in range(1, 8)]
    assert waits == [500, 1000, 2000, 4000, 8000, 8000, 8000]
    assert request_delay_ms(error, 1, 0.99, retries, advised=None) == 376
    assert request_delay_ms(error, 10, 0, retries, advised=None) is None


@pytest.mark.parametrize(
    ("kind", "status", "advised", "is_made"),
    [
        ("network", None, None, True),
        ("timeout", None, None, True),
        ("invalid_request", None, None, False),
        ("unauthorized", None, None, False),
        ("timeout", 408, None, True),
        ("server", 409, None, True),
        ("rate_limited", 429, None, True),
        ("server", 500, None, True),
        ("overflow", 413, None, False),
        ("invalid_request", 400, True, True),
        ("overloaded", 529, False, False),
    ],
)
def test_which_requests_are_made_anew(
    kind: str, status: int | None, advised: bool | None, is_made: bool
) -> None:
    error = ReplyError(kind, "", status)
    delay = request_delay_ms(error, 1, 0, RequestRetries(1), advised=advised)
    assert (delay is not None) == is_made


def test_a_server_may_ask_for_a_wait_up_to_a_bound() -> None:
    error = ReplyError("rate_limited", "", 429, retry_after_ms=90_000)
    assert request_delay_ms(error, 1, 0, RequestRetries(1), advised=None) is None
    assert request_delay_ms(error, 1, 0, RequestRetries(1, 0), advised=None) == 90_000
    assert request_delay_ms(error, 1, 0, RequestRetries(1, 90_000), advised=None) == 90_000


def test_the_longest_that_requests_made_anew_may_take() -> None:
    assert RequestRetries().longest_s(300) == 0
    assert RequestRetries(2, 1000).longest_s(300) == 616
    assert RequestRetries(2, 0).longest_s(300) == inf
