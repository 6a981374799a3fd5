"""What stored entries used, read from their lines and no further than that takes.

Promises
- Malformed usage counts nothing and is told; nothing raises.
"""

from collections.abc import Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec

from pi_rpc.core.codec import decode
from pi_rpc.core.entries import MESSAGE_KINDS, Kind
from pi_rpc.core.errors import Damaged
from pi_rpc.core.usage import count, money

USAGE_KINDS = frozenset(
    {Kind.ASSISTANT, Kind.TOOL_RESULT, Kind.USAGE, Kind.COMPACTION, Kind.BRANCH_SUMMARY}
)
"""Kinds that may bear a usage."""

SUMMARY_KINDS = frozenset({Kind.COMPACTION, Kind.BRANCH_SUMMARY})
"""Kinds whose usage stands beside their words, where they tell one."""

SUMMARIES = "Tools/summaries"
"""Where the cost of tools and summaries is told of; they do not name their model."""


class Use(msgspec.Struct, frozen=True, gc=False):
    """What one entry adds to totals."""

    calls: int = 0
    is_missing: bool = False
    """Whether there should be a usage and is none."""
    key: str = ""
    """What it is told under; empty without a usage."""
    price: Decimal = Decimal(0)
    is_priced: bool = False
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reported: int = 0
    """The provider's own total, or that of the four before it."""


NOTHING = Use()


class _Block(msgspec.Struct, gc=False):
    type: Any = None


class _Bearer(msgspec.Struct, rename="camel"):
    """What may bear a usage, but for what makes it long."""

    usage: Any = None
    provider: Any = None
    model: Any = None
    response_model: Any = None
    content: list[_Block] | str | None = None


class _Line(_Bearer):
    message: _Bearer | None = None


class _PlainCost(msgspec.Struct, gc=False):
    total: int | float


class _PlainUsage(msgspec.Struct, rename="camel", gc=False):
    cost: _PlainCost
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total_tokens: int = 0


class _PlainMessage(msgspec.Struct, rename="camel", gc=False):
    """A message as nearly all are; any other is looked at as a bearer."""

    usage: _PlainUsage | None = None
    provider: str | None = None
    model: str | None = None
    response_model: str | None = None
    content: list[_Block] | str = ""


class _PlainLine(msgspec.Struct):
    message: _PlainMessage | None = None
    usage: Any = None


_lines = msgspec.json.Decoder(_Line)
_plain_lines = msgspec.json.Decoder(_PlainLine)


def uses_in(kinds: Sequence[int], lines: bytes) -> list[Use]:
    """What entries of these kinds add, whose stored lines these are, a newline between each two.

    Only those that add something are among them, and nothing is of one that cannot be read.
    """
    try:
        entries = _plain_lines.decode_lines(lines)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        entries = []
    if len(entries) != len(kinds):
        # One of an odd shape is among them, or none at all: each is looked at by itself.
        return [
            _use_in(kind, line)
            for kind, line in zip(kinds, lines.split(b"\n"), strict=True)
            if kind in USAGE_KINDS
        ]
    found: list[Use] = []
    alone: list[int] = []
    for place, kind in enumerate(kinds):
        if kind not in USAGE_KINDS:
            continue
        message = entries[place].message
        if message is None:
            if kind not in SUMMARY_KINDS or entries[place].usage is not None:
                alone.append(place)
        elif kind == Kind.TOOL_RESULT and message.usage is None:
            continue
        elif kind == Kind.ASSISTANT and (plain := _plain_use(message)) is not None:
            found.append(plain)
        else:
            alone.append(place)
    if alone:
        single = lines.split(b"\n")
        found += [_use_in(kinds[place], single[place]) for place in alone]
    return found


def _plain_use(reply: _PlainMessage) -> Use | None:
    usage = reply.usage
    cost = 0 if usage is None else usage.cost.total
    if usage is None or not cost or not isfinite(cost):
        # Without a total the parts of the price are asked whether it is known.
        return None
    taken, given, cache_read = usage.input, usage.output, usage.cache_read
    cache_write = usage.cache_write
    # So many are made that names of fields would be felt.
    return Use(
        [block.type for block in reply.content].count("toolCall")
        if isinstance(reply.content, list)
        else 0,
        False,
        f"{reply.provider}/{reply.response_model or reply.model}",
        Decimal(repr(cost)),
        True,
        taken,
        given,
        cache_read,
        cache_write,
        usage.total_tokens or taken + given + cache_read + cache_write,
    )


def _use_in(kind: int, line: bytes) -> Use:
    bearer = _bearer_in(kind, line)
    return NOTHING if bearer is None else _use_of(kind, bearer)


def _bearer_in(kind: int, line: bytes) -> _Bearer | None:
    in_message = kind in MESSAGE_KINDS
    try:
        found = _lines.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _bearer_decoded(line, in_message)
    return (found.message or _Bearer()) if in_message else found


def _bearer_decoded(line: bytes, in_message: bool) -> _Bearer | None:
    try:
        stored = decode(line)
    except Damaged:
        return None
    if not isinstance(stored, dict):
        return None
    message = stored.get("message") if in_message else stored
    fields = message if isinstance(message, dict) else {}
    content = fields.get("content")
    blocks = content if isinstance(content, list) else []
    return _Bearer(
        usage=fields.get("usage"),
        provider=fields.get("provider"),
        model=fields.get("model"),
        response_model=fields.get("responseModel"),
        content=[_Block(block.get("type")) for block in blocks if isinstance(block, dict)],
    )


def _use_of(kind: int, bearer: _Bearer) -> Use:
    blocks = bearer.content if isinstance(bearer.content, list) else ()
    calls = sum(block.type == "toolCall" for block in blocks) if kind == Kind.ASSISTANT else 0
    usage = bearer.usage
    if not isinstance(usage, dict):
        return Use(calls=calls, is_missing=kind in (Kind.ASSISTANT, Kind.USAGE))
    four = [count(usage.get(name)) for name in ("input", "output", "cacheRead", "cacheWrite")]
    cost = usage.get("cost")
    costs = cost if isinstance(cost, dict) else {}
    price = money(costs.get("total"))
    return Use(
        calls=calls,
        key=_key(kind, bearer),
        price=price,
        is_priced=bool(price) or any(money(value) for value in costs.values()),
        input=four[0],
        output=four[1],
        cache_read=four[2],
        cache_write=four[3],
        reported=count(usage.get("totalTokens")) or sum(four),
    )


def _key(kind: int, bearer: _Bearer) -> str:
    if kind == Kind.ASSISTANT:
        return f"{bearer.provider}/{bearer.response_model or bearer.model}"
    if kind == Kind.USAGE:
        return f"{bearer.provider}/{bearer.model}"
    return SUMMARIES
