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
from itertools import takewhile
from typing import Any

import msgspec

from pi_rpc.core.entries import MESSAGE_KINDS, Kind
from pi_rpc.core.errors import Failure
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.selection import entry_or_none
from pi_rpc.core.tree import ROOT, Tree
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


class _Block(msgspec.Struct):
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


_lines = msgspec.json.Decoder(_Line)


def _bearer_in(tree: Tree, row: int) -> _Bearer | None:
    """What bears the usage of a row; None when the row cannot be read."""
    in_message = tree.heads.kinds[row] in MESSAGE_KINDS
    try:
        line = _lines.decode(tree.line(row))
    except (Failure, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # An odd shape, or nothing at all: looked at whole.
        entry = entry_or_none(tree, row)
        return None if entry is None else _bearer_of(entry.object, in_message)
    return (line.message or _Bearer()) if in_message else line


def _bearer_of(stored: JsonObject, in_message: bool) -> _Bearer:
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


class _Use(msgspec.Struct):
    """What one row adds to totals."""

    kind: int
    calls: int = 0
    tokens: tuple[int, ...] = ()
    """Four counts and what the provider reports; empty without a usage."""
    price: Decimal = Decimal(0)
    is_priced: bool = False
    key: str = ""
    is_missing: bool = False


def _use_of(tree: Tree, row: int) -> _Use:
    kind = tree.heads.kinds[row]
    if kind not in USAGE_KINDS:
        return _Use(kind)
    bearer = _bearer_in(tree, row)
    if bearer is None:
        return _Use(kind)
    use = _Use(kind)
    if kind == Kind.ASSISTANT and isinstance(bearer.content, list):
        use.calls = sum(block.type == "toolCall" for block in bearer.content)
    usage = bearer.usage
    if not isinstance(usage, dict):
        use.is_missing = kind in (Kind.ASSISTANT, Kind.USAGE)
        return use
    four = [count(usage.get(name)) for name in ("input", "output", "cacheRead", "cacheWrite")]
    use.tokens = (*four, count(usage.get("totalTokens")) or sum(four))
    cost = usage.get("cost")
    if isinstance(cost, dict):
        use.price = money(cost.get("total"))
        use.is_priced = bool(use.price) or any(money(value) for value in cost.values())
    use.key = _key(kind, bearer)
    return use


def _key(kind: int, bearer: _Bearer) -> str:
    if kind == Kind.ASSISTANT:
        return f"{bearer.provider}/{bearer.response_model or bearer.model}"
    if kind == Kind.USAGE:
        return f"{bearer.provider}/{bearer.model}"
    return SUMMARIES


class Count:
    """Totals that rows join, and may leave again."""

    def __init__(self) -> None:
        self._kinds: Counter[int] = Counter()
        self._calls = 0
        self._tokens = [0, 0, 0, 0, 0]
        self._cost = Decimal(0)
        self._priced = 0
        self._shares: dict[str, tuple[Decimal, int]] = {}
        self._missing = 0

    def add(self, use: _Use, times: int = 1) -> None:
        """Count what a row adds; take it back with `times` of -1."""
        self._kinds[use.kind] += times
        self._calls += times * use.calls
        self._missing += times * use.is_missing
        if use.tokens:
            self._tokens = [
                held + times * more for held, more in zip(self._tokens, use.tokens, strict=True)
            ]
            self._cost += times * use.price
            self._priced += times * use.is_priced
            self._share(use.key, times * use.price, times * sum(use.tokens[:4]))

    def _share(self, key: str, cost: Decimal, tokens: int) -> None:
        held_cost, held_tokens = self._shares.get(key, (Decimal(0), 0))
        self._shares[key] = (held_cost + cost, held_tokens + tokens)

    def __add__(self, other: "Count") -> "Count":
        both = Count()
        for each in (self, other):
            both._kinds.update(each._kinds)
            both._calls += each._calls
            both._tokens = [one + two for one, two in zip(both._tokens, each._tokens, strict=True)]
            both._cost += each._cost
            both._priced += each._priced
            both._missing += each._missing
            for key, (cost, tokens) in each._shares.items():
                both._share(key, cost, tokens)
        return both

    @property
    def rows(self) -> int:
        """How many rows are counted."""
        return self._kinds.total()

    def totals(self) -> Totals:
        """What is counted now."""
        taken, given, cache_read, cache_write, reported = self._tokens
        total = taken + given + cache_read + cache_write
        shares = [
            Share(key, float(cost), _text(cost), tokens)
            for key, (cost, tokens) in self._shares.items()
            if cost or tokens
        ]
        return Totals(
            entries=self.rows,
            messages={name: self._kinds[kind] for kind, name in ROLE_NAMES.items()},
            total_messages=sum(self._kinds[kind] for kind in MESSAGE_KINDS),
            tool_calls=self._calls,
            tokens=Tokens(taken, given, cache_read, cache_write, total, reported),
            cost=float(self._cost),
            cost_text=_text(self._cost),
            cost_known=self._priced > 0 or not total,
            breakdown=sorted(shares, key=lambda share: (-share.cost, share.key)),
            usage_missing=self._missing,
        )


def _text(cost: Decimal) -> str:
    return f"{cost.normalize():f}" if cost else "0"


class SessionCount:
    """The totals of a whole file, on and off the path to a leaf.

    They are taken further with each entry and each move of the leaf: what they cost follows what
    is new, and how far the leaf has moved.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._on_path = Count()
        self._off_path = Count()
        self._leaf_row = ROOT
        self._cover = 0
        self._inherited: Totals | None = None

    def totals(self) -> Totals:
        """Of every entry there is now, of every branch."""
        self._take_in(self._leaf_row)
        return (self._on_path + self._off_path).totals()

    def off_path(self, leaf_row: int) -> Totals | None:
        """Of every entry that is not on the path to a leaf; None when there is none."""
        self._take_in(leaf_row)
        return self._off_path.totals() if self._off_path.rows else None

    def inherited(self) -> Totals | None:
        """Of what was copied from another session when this one was made."""
        if self._inherited is None and (rows := inherited_rows(self._tree)):
            self._inherited = totals_of(self._tree, rows)
        return self._inherited

    def _take_in(self, leaf_row: int) -> None:
        tree, end = self._tree, len(self._tree)
        if (self._leaf_row, self._cover) == (leaf_row, end):
            return
        joint = tree.common_ancestor(self._leaf_row, leaf_row)
        joining = set(takewhile(lambda row: row != joint, tree.upward(leaf_row)))
        for row in takewhile(lambda row: row != joint, tree.upward(self._leaf_row)):
            use = _use_of(tree, row)
            self._on_path.add(use, -1)
            self._off_path.add(use)
        for row in joining:
            if row < self._cover:
                use = _use_of(tree, row)
                self._off_path.add(use, -1)
                self._on_path.add(use)
        for row in range(self._cover, end):
            if not tree.heads.is_shadowed(row):
                counted = self._on_path if row in joining else self._off_path
                counted.add(_use_of(tree, row))
        self._leaf_row, self._cover = leaf_row, end


def totals_of(tree: Tree, rows: Iterable[int]) -> Totals:
    """The totals of some entries."""
    counted = Count()
    for row in rows:
        counted.add(_use_of(tree, row))
    return counted.totals()


def inherited_rows(tree: Tree) -> list[int]:
    """Entries that were copied from another session when this one was made, root first.

    The mark of a fork hangs below the last of them; a copy of a copy has dropped the older marks.
    """
    mark = next(tree.rows_of_kind(Kind.FORK), None)
    return [] if mark is None else tree.path(tree.parent(mark))
