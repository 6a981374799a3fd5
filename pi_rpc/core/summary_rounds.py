"""How a summary is asked for: in as many rounds as the model's window makes necessary.

Promises
- Every request leaves room for the answer, by estimate; a conversation that is too long is told in
  pieces, each round carrying the notes of those before it.
- The focus of the user is in every round.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

import msgspec

from pi_rpc.core.compaction import CompactionPlan
from pi_rpc.core.policy import Policy
from pi_rpc.core.summary import SUMMARISER, Round, Task, notes_of
from pi_rpc.core.thresholds import Limits
from pi_rpc.core.tokens import tokens_of_units
from pi_rpc.core.told import Told
from pi_rpc.core.transcript import newest_within, parts_of, pieces
from pi_rpc.core.tree import ROOT

WINDOW_WHEN_UNKNOWN = 128_000
"""What is taken for the window of a model that tells none, when it is asked for a summary."""

PIECE_TOKENS_MIN = 256
"""The least a round tells, however small the window: less would never come to an end."""

ROOM_SHARE = 0.85
"""How much of the room for a piece is used; estimates without a tokenizer err."""


class SummaryRounds(msgspec.Struct, frozen=True):
    """Every request a summary takes, in order, made as they are gone through.

    Among them stands None wherever a moment's work was done: others may have their turn there.
    """

    earlier: str | None
    """Notes of the previous summary."""
    history: Iterable[Round | None]
    turn: Iterable[Round | None]
    """For the beginning of a split turn; asked for apart, after the history."""


class Room(msgspec.Struct, frozen=True):
    """What a request for a summary may hold."""

    window: int | None
    reserve_tokens: int
    policy: Policy

    def measure(self, text: str) -> int:
        """Estimated tokens of a text."""
        return tokens_of_units(self.policy.text_units(text))

    def piece_tokens(self, task: Task, earlier: str | None, focus: str) -> int:
        """How many tokens of conversation go into one round."""
        frame = Round(task, (), focus).prompt(earlier)
        window = self.window or WINDOW_WHEN_UNKNOWN
        taken = self.measure(frame) + self.measure(SUMMARISER) + self.answer_tokens
        return max(PIECE_TOKENS_MIN, int((window - taken) * ROOM_SHARE))

    @property
    def answer_tokens(self) -> int:
        """How many tokens of the window are left free for the answer."""
        limits = Limits(reserve_tokens=self.reserve_tokens)
        return limits.within(self.window or WINDOW_WHEN_UNKNOWN).reserve_tokens


def rounds_of(plan: CompactionPlan, room: Room, focus: str = "") -> SummaryRounds:
    """The requests a compaction takes."""
    earlier = None
    if plan.previous_row != ROOT:
        earlier = notes_of(plan.projection.tree.entry(plan.previous_row).object) or None
    history, turn = plan.told_history, plan.told_prefix
    return SummaryRounds(
        earlier=earlier,
        history=_Rounds(Round("history", (), focus), history.parts, room, earlier),
        turn=_Rounds(Round("turn", (), focus), turn.parts, room, None),
    )


def branch_rounds(
    told: Told,
    room: Room,
    budget_tokens: int,
    focus: str = "",
    replaces_instructions: bool = False,
) -> Generator[None, None, SummaryRounds | None]:
    """The requests a branch summary takes; None when nothing on it is told to a model.

    The newest messages within the budget are told; 0 or less is no limit.
    """
    estimate = room.policy.tokens_of
    taken = yield from newest_within(told.newest_first(), estimate, budget_tokens)
    said = [parts for parts in map(parts_of, taken) if parts]
    if not said:
        return None
    first = Round("branch", (), focus, replaces_instructions)
    return SummaryRounds(None, _Rounds(first, lambda: said, room, None), ())


class _Rounds:
    """The rounds of one task, each made when it is its turn."""

    def __init__(
        self,
        blank: Round,
        told: Callable[[], Iterable[Sequence[str]]],
        room: Room,
        earlier: str | None,
    ) -> None:
        self._blank = blank
        self._told = told
        """Tells the conversation from its beginning each time."""
        self._room = room
        self._earlier = earlier

    def __iter__(self) -> Iterator[Round | None]:
        blank, room = self._blank, self._room
        tokens_max = room.piece_tokens(blank.task, self._earlier, blank.focus)
        first: list[str] | None = None
        for piece in pieces(self._told(), room.measure, tokens_max):
            if first is not None:
                break
            first = piece
            if piece is None:
                yield None
        else:
            if first is not None:
                yield self._round(first)
            return
        # From the second round on the notes of the first are told too: room for them is left free.
        tokens_max = max(PIECE_TOKENS_MIN, tokens_max - room.answer_tokens // 2)
        for piece in pieces(self._told(), room.measure, tokens_max):
            yield None if piece is None else self._round(piece)

    def _round(self, conversation: list[str]) -> Round:
        return msgspec.structs.replace(self._blank, conversation=conversation)
