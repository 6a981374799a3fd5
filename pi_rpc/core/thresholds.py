"""When a context is too full: the limits of a model, and what a reply says of them.

Promises
- A context window that is unknown is never a reason to compact.
- However small a window is, a part of it stays for the answer and a part for what is kept.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pi_rpc.core.errors import Invalid
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.retrying import error_of, is_overflow_text
from pi_rpc.core.tokens import SAFE_INTEGER_MAX
from pi_rpc.core.usage import count

RESERVE_TOKENS = 16_384
"""Tokens kept free for the answer, as Pi has it by default."""

KEEP_RECENT_TOKENS = 20_000
"""The newest tokens a compaction keeps as they are, as Pi has it by default."""

RESERVE_SHARE = 4
"""At most one part in so many of a window is kept free: a small window needs room for words."""

Recovery = Literal["overflow", "length"]
"""Why a reply must be asked for again in a smaller context: refused, or cut for lack of room."""

FULL_SHARE = 0.99
"""How full of the window an empty reply that hit its limit must be to count as an overflow."""


class Override(msgspec.Struct, frozen=True):
    """Limits of one model where they differ."""

    reserve_tokens: int | None = None
    keep_recent_tokens: int | None = None


class Limits(msgspec.Struct, frozen=True):
    """What holds for one model."""

    reserve_tokens: int = RESERVE_TOKENS
    keep_recent_tokens: int = KEEP_RECENT_TOKENS

    def within(self, window: int | None) -> "Limits":
        """The limits fitted into a window; as they are when it is unknown."""
        if not window:
            return self
        reserve = min(self.reserve_tokens, window // RESERVE_SHARE)
        return Limits(reserve, min(self.keep_recent_tokens, (window - reserve) // 2))


class CompactionSettings(msgspec.Struct, frozen=True):
    """What a daemon or a session goes by."""

    enabled: bool = True
    """Whether it compacts by itself; asked for, it compacts in any case."""
    reserve_tokens: int = RESERVE_TOKENS
    keep_recent_tokens: int = KEEP_RECENT_TOKENS
    model_overrides: Mapping[str, Override] = {}
    """By `provider/modelId`, exactly."""
    branch_reserve_tokens: int = RESERVE_TOKENS
    """Tokens kept free when a branch is summarised."""

    def limits_for(self, provider: str, model_id: str) -> Limits:
        """The limits of a model: its override, else the ordinary value, field by field."""
        override = self.model_overrides.get(f"{provider}/{model_id}", Override())
        reserve, keep = override.reserve_tokens, override.keep_recent_tokens
        return Limits(
            self.reserve_tokens if reserve is None else reserve,
            self.keep_recent_tokens if keep is None else keep,
        )


def compaction_settings_from(stored: object, branch_stored: object = None) -> CompactionSettings:
    """Settings out of the `compaction` and `branchSummary` objects of a settings file.

    Raises Invalid `bad_compaction_settings`; `data.at` names the value.
    """
    fields = _object(stored, "compaction")
    enabled = fields.get("enabled", True)
    if not isinstance(enabled, bool):
        raise _bad("compaction.enabled", "true or false")
    overrides = _object(fields.get("modelOverrides"), "compaction.modelOverrides")
    branch = _object(branch_stored, "branchSummary")
    reserve = _tokens(fields, "reserveTokens", "compaction")
    keep = _tokens(fields, "keepRecentTokens", "compaction")
    branch_reserve = _tokens(branch, "reserveTokens", "branchSummary")
    return CompactionSettings(
        enabled=enabled,
        reserve_tokens=RESERVE_TOKENS if reserve is None else reserve,
        keep_recent_tokens=KEEP_RECENT_TOKENS if keep is None else keep,
        model_overrides={name: _override(value, name) for name, value in overrides.items()},
        branch_reserve_tokens=RESERVE_TOKENS if branch_reserve is None else branch_reserve,
    )


def _override(value: object, name: str) -> Override:
    at = f"compaction.modelOverrides[{name}]"
    if value is None:
        raise _bad(at, "an object")
    fields = _object(value, at)
    return Override(_tokens(fields, "reserveTokens", at), _tokens(fields, "keepRecentTokens", at))


def _object(value: object, at: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _bad(at, "an object")
    return value


def _tokens(fields: Mapping[str, Any], name: str, within: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not 0 <= value < SAFE_INTEGER_MAX:
        raise _bad(f"{within}.{name}", "a whole number of tokens, 0 or more")
    return int(value)


def _bad(at: str, wanted: str) -> Invalid:
    return Invalid("bad_compaction_settings", f"{at} must be {wanted}", at=at)


def is_due(tokens: int, window: int | None, limits: Limits) -> bool:
    """Whether a context of so many tokens is to be compacted before the model is asked."""
    if not window:
        return False
    return tokens > window - limits.within(window).reserve_tokens


def is_effective(before: int, after: int) -> bool:
    """Whether a compaction was worth its request: a tenth less at the least."""
    return after * 10 <= before * 9


def recovery_of(message: JsonObject, window: int | None, max_output: int) -> Recovery | None:
    """Why a reply failed for lack of room; None when it did not.

    A refusal for a rate is none, whatever it says of tokens. A reply that stopped at its length
    limit counts when the limit it hit was not the model's own.
    """
    stop = message.get("stopReason")
    if stop == "error":
        return "overflow" if _is_overflow_error(message) else None
    if stop != "length":
        return None
    output = count(_usage(message).get("output"))
    if output == 0 and window and _tokens_read(message) >= FULL_SHARE * window:
        return "overflow"
    return "length" if output < max_output else None


def has_outgrown(message: JsonObject, window: int | None) -> bool:
    """Whether a model answered although its context is beyond the window: it saw a part of it."""
    is_answer = message.get("stopReason") == "stop"
    return is_answer and bool(window) and _tokens_read(message) > (window or 0)


def _usage(message: JsonObject) -> JsonObject:
    usage = message.get("usage")
    return usage if isinstance(usage, dict) else {}


def _tokens_read(message: JsonObject) -> int:
    usage = _usage(message)
    return count(usage.get("input")) + count(usage.get("cacheRead"))


def _is_overflow_error(message: JsonObject) -> bool:
    error = error_of(message)
    if error is None or error.kind == "overflow":
        return error is not None
    # Servers that know no code for it refuse the request as a bad one, and say why in words.
    return error.kind in ("invalid_request", "unknown") and (
        error.status == 413 or is_overflow_text(error.message)
    )
