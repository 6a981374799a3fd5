"""What a failed request means, and whether and when to ask again.

Promises
- Status and code decide before words do; words are read only where those say nothing certain.
- A delay a server asks for is honoured, up to a bound.
"""

import re
from math import inf

import msgspec

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.reply import ReplyError

RETRYABLE_KINDS = frozenset({"overloaded", "rate_limited", "server", "network", "timeout", "cut"})
"""Failures that may pass by themselves."""

JITTER = 0.25
"""By how much of it a delay may be shortened, so that many clients do not return at once."""


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often and how patiently a run asks again."""

    enabled: bool = True
    retries_max: int = 3
    base_ms: int = 2000
    delay_max_ms: int = 60_000


class RequestRetries(msgspec.Struct, frozen=True):
    """How often a request whose answer did not begin is made anew, below the retries of a run."""

    retries_max: int = 0
    delay_max_ms: int = 60_000
    """The longest wait a server may ask for; 0 for any."""

    def longest_s(self, each_s: float) -> float:
        """The longest that all of them may take when each may take this long to begin."""
        if not self.retries_max:
            return 0.0
        wait_s = self.delay_max_ms / 1000 if self.delay_max_ms else inf
        return self.retries_max * (each_s + max(wait_s, REQUEST_DELAY_MAX_MS / 1000))


REQUEST_DELAY_MS = 500
REQUEST_DELAY_MAX_MS = 8000
"""The first wait before a request is made anew, and the longest unless the server asks for more."""


def request_delay_ms(
    error: ReplyError, attempt: int, chance: float, retries: RequestRetries, *, advised: bool | None
) -> int | None:
    """How long to wait before a request is made for the n-th time anew (from 1); None for not.

    `advised` is what the server says of it, None when it says nothing. One that asks for a longer
    wait than is allowed is not asked again here: the run, which tells its user, may.
    """
    passes = error.status in (408, 409, 429) or (error.status or 0) >= 500
    if error.status is None:
        passes = error.kind in ("network", "timeout")
    if attempt > retries.retries_max or not (passes if advised is None else advised):
        return None
    asked_ms = error.retry_after_ms
    if asked_ms is None:
        grown = min(REQUEST_DELAY_MS << min(attempt - 1, 32), REQUEST_DELAY_MAX_MS)
        return round(grown * (1 - JITTER * chance))
    return None if retries.delay_max_ms and asked_ms > retries.delay_max_ms else asked_ms


def is_retryable(error: ReplyError) -> bool:
    """Whether the same request may succeed later. An error of unknown kind is read by its words."""
    if error.kind == "unknown":
        return kind_of(error.status, error.code, error.message) in RETRYABLE_KINDS
    return error.kind in RETRYABLE_KINDS


def delay_ms(
    attempt: int,
    chance: float,
    retry_after_ms: int | None = None,
    policy: RetryPolicy | None = None,
) -> int | None:
    """How long to wait before attempt n (from 1); None when there is to be no further one.

    `chance` is a random number in 0 ≤ x < 1. What the server asked for is the least that is
    waited; a server that asks for more than the bound is not asked again.
    """
    policy = policy or RetryPolicy()
    if not policy.enabled or attempt > policy.retries_max:
        return None
    if retry_after_ms is not None and retry_after_ms > policy.delay_max_ms:
        return None
    # The exponent is bounded, so that a setting of many retries does not make giant integers.
    grown = min(policy.base_ms << min(attempt - 1, 32), policy.delay_max_ms)
    return max(round(grown * (1 - JITTER * chance)), retry_after_ms or 0)


def error_of(message: JsonObject) -> ReplyError | None:
    """The failure an assistant message tells of, from its structured error or else its words.

    None when it tells of none.
    """
    if message.get("stopReason") != "error":
        return None
    text = message.get("errorMessage")
    told = text if isinstance(text, str) else ""
    stored = message.get("error")
    if not isinstance(stored, dict) or not isinstance(stored.get("kind"), str):
        return ReplyError(kind_of(None, None, told), told)
    status, code, after = (stored.get(name) for name in ("status", "code", "retryAfterMs"))
    return ReplyError(
        stored["kind"],
        told,
        status if isinstance(status, int) else None,
        code if isinstance(code, str) else None,
        after if isinstance(after, int) else None,
    )


def kind_of(status: int | None, code: str | None, text: str) -> str:
    """The kind of a failure, from its HTTP status, the provider's code and its words."""
    by_code = _KIND_OF_CODE.get((code or "").lower())
    if by_code is not None:
        return by_code
    if status is None:
        return _kind_of_words(text)
    if status in (401, 403):
        return "unauthorized"
    if _QUOTA.search(text) or status == 402:
        return "quota"
    if status == 413:
        return "overflow"
    if status == 429:
        return "rate_limited"
    if status in (503, 529) or (status >= 500 and _OVERLOADED.search(text)):
        return "overloaded"
    if status == 408:
        return "timeout"
    if status == 409 or status >= 500:
        return "server"
    if is_overflow_text(text):
        return "overflow"
    return "invalid_request" if status >= 400 else "unknown"


def is_overflow_text(text: str) -> bool:
    """Whether these words say that the context was too long for the model."""
    if _RATE.search(text) or _THROTTLED.match(text):
        return False
    return _OVERFLOW.search(text) is not None


def _kind_of_words(text: str) -> str:
    for kind, words in _KIND_OF_WORDS:
        if words.search(text):
            return kind
    if is_overflow_text(text):
        return "overflow"
    status = _STATUS.search(text)
    return kind_of(int(status.group()), None, "") if status else "unknown"


_KIND_OF_CODE = {
    "authentication_error": "unauthorized",
    "permission_error": "unauthorized",
    "invalid_api_key": "unauthorized",
    "unauthenticated": "unauthorized",
    "permission_denied": "unauthorized",
    "billing_error": "quota",
    "insufficient_quota": "quota",
    "billing_hard_limit_reached": "quota",
    "gousagelimiterror": "quota",
    "freeusagelimiterror": "quota",
    "1308": "quota",
    "rate_limit_error": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
    "too_many_requests": "rate_limited",
    "overloaded_error": "overloaded",
    "overloaded": "overloaded",
    "server_is_overloaded": "overloaded",
    "unavailable": "overloaded",
    "api_error": "server",
    "server_error": "server",
    "internal": "server",
    "internal_server_error": "server",
    "timeout_error": "timeout",
    "deadline_exceeded": "timeout",
    "context_length_exceeded": "overflow",
    "request_too_large": "overflow",
    "model_context_window_exceeded": "overflow",
    "exceed_context_size_error": "overflow",
    "content_filter": "refusal",
    "content_policy_violation": "refusal",
    "refusal": "refusal",
    "not_found_error": "invalid_request",
    "model_not_found": "invalid_request",
}
"""Codes that say enough by themselves; in lower case."""


def _any(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


_QUOTA = _any(
    r"insufficient_quota",
    r"quota exceeded",
    r"exceeded your current quota",
    r"billing",
    r"out of budget",
    r"available balance",
    r"credit balance is too low",
    r"monthly usage limit reached",
    r"(?:go|free)usagelimiterror",
    r"subscription_sharing_\w{0,40}_limit_exceeded",
)
_RATE = _any(
    r"rate.?limit",
    r"too many requests",
    r"(?:tokens|requests) (?:per|a) (?:second|minute|hour|day)",
    r"\A429\b",
)
_THROTTLED = _any(r"throttling", r"service ?unavailable")
_OVERLOADED = _any(r"overloaded", r"server (?:is )?busy", r"high demand", r"at capacity")
_OVERFLOW = _any(
    r"prompt (?:is )?too long",
    r"prompt exceeds (?:the )?max(?:imum)? length",
    r"request_too_large",
    r"input is too long",
    r"exceeds the context window",
    r"exceed(?:s|ed)?.{0,80}?max(?:imum)? context length",
    r"context window (?:exceeded|exceeds limit)",
    r"input token count.{0,80}?exceeds the maximum",
    r"maximum prompt length is \d",
    r"reduce the length of the messages",
    r"maximum context length is \d+ tokens",
    r"maximum allowed input length",
    r"longer than the model'?s context length",
    r"exceeds the limit of \d",
    r"exceeds the available context size",
    r"greater than the context length",
    r"exceeded model token limit",
    r"too large for model with \d+ maximum context length",
    r"configured context size",
    r"model_context_window_exceeded",
    r"exceed(?:ed|s) (?:max )?context length",
    r"range of input length should be",
    r"context[_ ]length[_ ]exceeded",
    r"too many tokens",
    r"token limit exceeded",
    r"\A\s*413\b",
)
_STATUS = re.compile(r"(?<![\w.])(?:40[0138]|402|404|413|422|429|50[0234]|52[049])(?![\w.])")
_KIND_OF_WORDS = (
    ("quota", _QUOTA),
    ("rate_limited", _any(_RATE.pattern, r"resource.?exhausted", r"\Athrottling", r"retry delay")),
    ("overloaded", _any(_OVERLOADED.pattern, r"service (?:is )?(?:temporarily )?unavailable")),
    (
        "timeout",
        _any(r"timed out", r"timeout", r"etimedout"),
    ),
    (
        "cut",
        _any(
            r"ended without",
            r"ended before (?:message_stop|(?:a )?terminal event)",
            r"stream disconnected",
            r"cut short",
            r"\bterminated\b",
        ),
    ),
    (
        "network",
        _any(
            r"(?:network|connection) (?:error|refused|lost|closed)",
            r"network_error",
            r"reset by peer",
            r"fetch failed",
            r"socket hang up",
            r"enotfound",
            r"eai_again",
            r"getaddrinfo",
            r"econn(?:reset|aborted|refused)",
            r"epipe",
            r"websocket (?:closed|error|limit)",
            r"http2 stream cancell?ed",
        ),
    ),
    (
        "server",
        _any(
            r"(?:internal )?server error",
            r"internal error",
            r"provider returned (?:an )?error",
            r"upstream (?:failure|error|connect)",
            r"retry your request",
            r"try your request again",
        ),
    ),
)
