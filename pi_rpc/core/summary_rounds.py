"""How a summary is asked for: in as many rounds as the model's window makes necessary.

Promises
- Every request leaves room for the answer, by estimate; a conversation that is too long is told in
  pieces, each round carrying the notes of those before it.
- The focus of the user is in every round.
"""

from collections.abc import Iterable, Sequence

import msgspec

from pi_rpc.core.compaction import CompactionPlan
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.policy import Policy
from pi_rpc.core.summary import SUMMARISER, Round, Task, notes_of
from pi_rpc.core.thresholds import Limits
from pi_rpc.core.tokens import tokens_of_units
from pi_rpc.core.transcript import newest_within, pieces
from pi_rpc.core.tree import ROOT

WINDOW_WHEN_UNKNOWN = 128_000
"""What is taken for the window of a model that tells none, when it is asked for a summary."""

PIECE_TOKENS_MIN = 256
"""The least a round tells, however small the window: less would never come to an end."""

ROOM_SHARE = 0.85
"""How much of the room for a piece is used; estimates without a tokenizer err."""


class SummaryRounds(msgspec.Struct, frozen=True):
    """Every request a summary takes, in order."""

    earlier: str | None
    """Notes of the previous summary."""
    history: Sequence[Round]
    turn: Sequence[Round]
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
        frame = Round(task, "", focus).prompt(earlier)
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
    history, turn = plan.told(plan.history), plan.told(plan.prefix)
    return SummaryRounds(
        earlier=earlier,
        history=_rounds("history", history, room, earlier, focus),
        turn=_rounds("turn", turn, room, None, focus),
    )


def branch_rounds(
    messages: Sequence[JsonObject],
    room: Room,
    budget_tokens: int,
    focus: str = "",
    replaces_instructions: bool = False,
) -> SummaryRounds:
    """The requests a branch summary takes; without any when nothing on it is told to a model.

    The newest messages within the budget are told; 0 or less is no limit.
    """
    taken = newest_within(messages, room.policy.tokens_of, budget_tokens)
    rounds = _rounds("branch", taken, room, None, focus)
    if replaces_instructions:
        rounds = [msgspec.structs.replace(one, replaces_instructions=True) for one in rounds]
    return SummaryRounds(None, rounds, ())


def _rounds(
    task: Task, messages: Iterable[JsonObject], room: Room, earlier: str | None, focus: str
) -> list[Round]:
    tokens_max = room.piece_tokens(task, earlier, focus)
    # Gone through twice at most: an iterable that can be.
    told = pieces(messages, room.measure, tokens_max)
    if len(told) > 1:
        # From the second round on the notes of the first are told too: room for them is left free.
        tokens_max = max(PIECE_TOKENS_MIN, tokens_max - room.answer_tokens // 2)
        told = pieces(messages, room.measure, tokens_max)
    return [Round(task, conversation, focus) for conversation in told]
