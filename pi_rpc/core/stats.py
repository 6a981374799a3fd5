"""What a session has used: messages, calls, tokens and money, over the whole file or a path.

Navigation, edits and compaction never lower a number: every entry that was written counts, also
failed replies, branches that were left and what was summarised away.

Promises
- Totals kept up entry by entry equal those of a scan from the beginning.
- Malformed usage counts nothing and is told; nothing raises.
"""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

import msgspec

from pi_rpc.core.entries import MESSAGE_KINDS, Kind
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.selection import entry_or_none
from pi_rpc.core.tree import Tree
from pi_rpc.core.usage import count, money

USAGE_KINDS = frozenset(
    {Kind.ASSISTANT, Kind.TOOL_RESULT, Kind.USAGE, Kind.COMPACTION, Kind.BRANCH_SUMMARY}
)
"""Kinds that may bear a usage."""

SUMMARIES = "Tools/summaries"
"""Where the cost of tools and summaries is told of; they do not name their model."""

ROLE_NAMES = {
    Kind.SYSTEM: "system",
    Kind.USER: "user",
    Kind.ASSISTANT: "assistant",
    Kind.TOOL_RESULT: "toolResult",
    Kind.BASH_EXECUTION: "bashExecution",
    Kind.OTHER_MESSAGE: "other",
}


class Tokens(msgspec.Struct, frozen=True, rename="camel"):
    """Tokens that were used."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    total: int
    """Of the four before it."""
    reported: int
    """Of the providers' own totals, which may count more."""


class Share(msgspec.Struct, frozen=True, rename="camel"):
    """What one model, or all tools and summaries, used."""

    key: str
    cost: float
    cost_text: str
    tokens: int


class Totals(msgspec.Struct, frozen=True, rename="camel"):
    """Everything that was counted."""

    entries: int
    messages: dict[str, int]
    """By role."""
    total_messages: int
    tool_calls: int
    tokens: Tokens
    cost: float
    cost_text: str
    """The same, as an exact decimal."""
    cost_known: bool
    """False when tokens were used and no price is known."""
    breakdown: list[Share]
    """Dearest first; what used nothing is left out."""
    usage_missing: int
    """Replies whose usage is missing or malformed."""


class Count:
    """Totals that grow."""

    def __init__(self) -> None:
        self._kinds: Counter[int] = Counter()
        self._calls = 0
        self._tokens = [0, 0, 0, 0, 0]
        self._cost = Decimal(0)
        self._any_price = False
        self._shares: dict[str, tuple[Decimal, int]] = {}
        self._missing = 0

    def add(self, tree: Tree, rows: Iterable[int]) -> None:
        """Count rows; each must be given once."""
        kinds = tree.heads.kinds
        for row in rows:
            kind = kinds[row]
            self._kinds[kind] += 1
            if kind in USAGE_KINDS:
                entry = entry_or_none(tree, row)
                if entry is not None:
                    self._add_usage(kind, entry.object)

    def _add_usage(self, kind: int, stored: JsonObject) -> None:
        bearer = stored
        if kind in MESSAGE_KINDS:
            message = stored.get("message")
            bearer = message if isinstance(message, dict) else {}
        usage = bearer.get("usage")
        if kind == Kind.ASSISTANT:
            content = bearer.get("content")
            blocks = content if isinstance(content, list) else []
            self._calls += sum(
                isinstance(block, dict) and block.get("type") == "toolCall" for block in blocks
            )
        if not isinstance(usage, dict):
            self._missing += kind in (Kind.ASSISTANT, Kind.USAGE)
            return
        names = ("input", "output", "cacheRead", "cacheWrite")
        four = [count(usage.get(name)) for name in names]
        total = count(usage.get("totalTokens")) or sum(four)
        self._tokens = [
            held + more for held, more in zip(self._tokens, [*four, total], strict=True)
        ]
        cost = usage.get("cost")
        price = money(cost.get("total")) if isinstance(cost, dict) else Decimal(0)
        self._cost += price
        self._any_price = self._any_price or _has_price(cost)
        key = _key(kind, bearer)
        held_cost, held_tokens = self._shares.get(key, (Decimal(0), 0))
        self._shares[key] = (held_cost + price, held_tokens + sum(four))

    def totals(self) -> Totals:
        """What was counted so far."""
        taken, given, cache_read, cache_write, reported = self._tokens
        total = taken + given + cache_read + cache_write
        shares = [
            Share(key, float(cost), _text(cost), tokens)
            for key, (cost, tokens) in self._shares.items()
            if cost or tokens
        ]
        return Totals(
            entries=self._kinds.total(),
            messages={name: self._kinds[kind] for kind, name in ROLE_NAMES.items()},
            total_messages=sum(self._kinds[kind] for kind in MESSAGE_KINDS),
            tool_calls=self._calls,
            tokens=Tokens(taken, given, cache_read, cache_write, total, reported),
            cost=float(self._cost),
            cost_text=_text(self._cost),
            cost_known=self._any_price or not total,
            breakdown=sorted(shares, key=lambda share: -share.cost),
            usage_missing=self._missing,
        )


def _has_price(cost: object) -> bool:
    return isinstance(cost, dict) and any(money(value) for value in cost.values())


def _key(kind: int, bearer: JsonObject) -> str:
    if kind == Kind.ASSISTANT:
        return f"{bearer.get('provider')}/{bearer.get('responseModel') or bearer.get('model')}"
    if kind == Kind.USAGE:
        return f"{bearer.get('provider')}/{bearer.get('model')}"
    return SUMMARIES


def _text(cost: Decimal) -> str:
    return f"{cost.normalize():f}" if cost else "0"


class SessionCount:
    """The totals of a whole file, taken further with each entry."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._count = Count()
        self._cover = 0

    def totals(self) -> Totals:
        """Of every entry there is now, of every branch."""
        tree, end = self._tree, len(self._tree)
        rows = (row for row in range(self._cover, end) if not tree.heads.is_shadowed(row))
        self._count.add(tree, rows)
        self._cover = end
        return self._count.totals()


def totals_of(tree: Tree, rows: Iterable[int]) -> Totals:
    """The totals of some entries."""
    counted = Count()
    counted.add(tree, rows)
    return counted.totals()


def inherited_rows(tree: Tree) -> list[int]:
    """Entries that were copied from another session when this one was made, root first.

    The mark of a fork hangs below the last of them; a copy of a copy has dropped the older marks.
    """
    mark = next(tree.rows_of_kind(Kind.FORK), None)
    return [] if mark is None else tree.path(tree.parent(mark))
