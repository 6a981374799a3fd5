"""What a session has used: messages, calls, tokens and money, over the whole file or a path.

Navigation, edits and compaction never lower a number: every entry that was written counts, also
failed replies, branches that were left and what was summarised away.

Promises
- Totals kept up entry by entry equal those of a scan from the beginning.
- Malformed usage counts nothing and is told; nothing raises.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from decimal import Decimal

import msgspec

from pi_rpc.core.entries import MESSAGE_KINDS, Kind
from pi_rpc.core.tree import ROOT, Tree
from pi_rpc.core.uses import Use, uses_in

ROWS_OF_MOMENT = 512
"""So many rows are counted in one or two milliseconds."""

ROWS_WALKED = 10_000
"""So many rows are walked up in the same time."""

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


class _Spent(msgspec.Struct):
    """What was used under one key."""

    cost: Decimal = Decimal(0)
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reported: int = 0

    def join(self, other: "_Spent") -> None:
        self.cost += other.cost
        self.input += other.input
        self.output += other.output
        self.cache_read += other.cache_read
        self.cache_write += other.cache_write
        self.reported += other.reported

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write


class Count:
    """Totals that rows join, and may leave again."""

    def __init__(self) -> None:
        self._kinds: Counter[int] = Counter()
        self._calls = 0
        self._spent: dict[str, _Spent] = defaultdict(_Spent)
        self._priced = 0
        self._missing = 0

    def add(self, kinds: Iterable[int], uses: Iterable[Use], times: int = 1) -> None:
        """Count rows: what they are, and what they use; take them back with `times` of -1."""
        for kind, rows in Counter(kinds).items():
            self._kinds[kind] += times * rows
        for use in uses:
            self._calls += times * use.calls
            self._missing += times * use.is_missing
            if use.key:
                self._priced += times * use.is_priced
                spent = self._spent[use.key]
                spent.cost += use.price if times == 1 else times * use.price
                spent.input += times * use.input
                spent.output += times * use.output
                spent.cache_read += times * use.cache_read
                spent.cache_write += times * use.cache_write
                spent.reported += times * use.reported

    def __add__(self, other: "Count") -> "Count":
        both = Count()
        for each in (self, other):
            both._kinds.update(each._kinds)
            both._calls += each._calls
            both._priced += each._priced
            both._missing += each._missing
            for key, spent in each._spent.items():
                both._spent[key].join(spent)
        return both

    @property
    def rows(self) -> int:
        """How many rows are counted."""
        return self._kinds.total()

    def totals(self) -> Totals:
        """What is counted now."""
        every = _Spent()
        for spent in self._spent.values():
            every.join(spent)
        shares = [
            Share(key, float(spent.cost), _text(spent.cost), spent.total)
            for key, spent in self._spent.items()
            if spent.cost or spent.total
        ]
        return Totals(
            entries=self.rows,
            messages={name: self._kinds[kind] for kind, name in ROLE_NAMES.items()},
            total_messages=sum(self._kinds[kind] for kind in MESSAGE_KINDS),
            tool_calls=self._calls,
            tokens=Tokens(
                every.input,
                every.output,
                every.cache_read,
                every.cache_write,
                every.total,
                every.reported,
            ),
            cost=float(every.cost),
            cost_text=_text(every.cost),
            cost_known=self._priced > 0 or not every.total,
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
        self._awaited = bytearray()
        """Holds: for each row that is not counted yet whether it is on the path to the leaf."""
        self._inherited: Totals | None = None

    def taking_in(self, leaf_row: int) -> Generator[None]:
        """Count every entry there is, on and off the path to a leaf: a moment's work at a time.

        What is counted stays so if this is left in the middle. One at a time.
        """
        yield from self._move_to(leaf_row)
        yield from self._count_new()

    def totals(self) -> Totals:
        """Of every entry there was, of every branch."""
        return (self._on_path + self._off_path).totals()

    def off_path(self) -> Totals | None:
        """Of every entry that is not on the path to the leaf; None when there is none."""
        return self._off_path.totals() if self._off_path.rows else None

    def inherited(self) -> Generator[None, None, Totals | None]:
        """Of what was copied from another session when this one was made, None for nothing."""
        if self._inherited is None and (rows := inherited_rows(self._tree)):
            self._inherited = yield from counting(self._tree, rows)
        return self._inherited

    def _move_to(self, leaf_row: int) -> Generator[None]:
        tree, parents = self._tree, self._tree.heads.parents
        joint = tree.common_ancestor(self._leaf_row, leaf_row)
        leaving = yield from _upward(tree, self._leaf_row, joint)
        joining = yield from _upward(tree, leaf_row, joint)
        joining.reverse()
        for rows in _pieces(leaving):
            self._carry(rows, self._on_path, self._off_path, awaited=0)
            self._leaf_row = parents[rows[-1]]
            yield
        for rows in _pieces(joining):
            self._carry(rows, self._off_path, self._on_path, awaited=1)
            self._leaf_row = rows[-1]
            yield

    def _carry(self, rows: Sequence[int], source: Count, target: Count, awaited: int) -> None:
        """Let rows change sides; those that are not counted yet will be, over there."""
        if len(self._awaited) < len(self._tree):
            self._awaited.extend(bytes(len(self._tree) - len(self._awaited)))
        counted = []
        for row in rows:
            if row < self._cover:
                counted.append(row)
            else:
                self._awaited[row] = awaited
        kinds, uses = _counted(self._tree, counted)
        source.add(kinds, uses, -1)
        target.add(kinds, uses)

    def _count_new(self) -> Generator[None]:
        tree = self._tree
        for rows in _pieces(range(self._cover, len(tree))):
            # A row from the end of what was awaited on is of a branch nobody asked for.
            marks = self._awaited[rows[0] : rows[-1] + 1].ljust(len(rows), b"\0")
            for counted, mark in ((self._off_path, 0), (self._on_path, 1)):
                mine = [row for row, its in zip(rows, marks, strict=True) if its == mark]
                if tree.heads.shadowed:
                    mine = [row for row in mine if not tree.heads.is_shadowed(row)]
                counted.add(*_counted(tree, mine))
            self._cover = rows[-1] + 1
            yield
        if self._cover == len(tree):
            self._awaited = bytearray()


def _upward(tree: Tree, row: int, end: int) -> "Generator[None, None, array[int]]":
    """Rows from `row` to below `end`: a moment's work at a time."""
    parents, rows = tree.heads.parents, array("i")
    while row != end:
        for _ in range(ROWS_WALKED):
            rows.append(row)
            row = parents[row]
            if row == end:
                break
        yield
    return rows


def _counted(tree: Tree, rows: Sequence[int]) -> tuple[bytes, list[Use]]:
    """The kinds of rows, and in another order what they add."""
    kinds = tree.heads.kinds
    uses: list[Use] = []
    for block, lines in tree.blocks(sorted(rows)):
        uses += uses_in([kinds[row] for row in block], lines)
    return bytes([kinds[row] for row in rows]), uses


def _pieces(rows: Sequence[int]) -> Iterator[Sequence[int]]:
    return (rows[at : at + ROWS_OF_MOMENT] for at in range(0, len(rows), ROWS_OF_MOMENT))


def counting(tree: Tree, rows: Sequence[int]) -> Generator[None, None, Totals]:
    """The totals of some entries: a moment's work at a time."""
    counted = Count()
    for piece in _pieces(rows):
        counted.add(*_counted(tree, piece))
        yield
    return counted.totals()


def inherited_rows(tree: Tree) -> list[int]:
    """Entries that were copied from another session when this one was made, root first.

    The mark of a fork hangs below the last of them; a copy of a copy has dropped the older marks.
    """
    mark = next(tree.rows_of_kind(Kind.FORK), None)
    return [] if mark is None else tree.path(tree.parent(mark))
