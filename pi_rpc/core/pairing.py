"""Tool calls and their results in a list of messages: which belong together, which stand alone.

A result belongs to the nearest call before it that bears its id; providers may use an id again.
"""

from collections.abc import Iterable, Sequence

import msgspec

from pi_rpc.core.messages import JsonObject, ToolCall, tool_calls_of


class Pairing(msgspec.Struct, frozen=True):
    """How calls and results stand to each other; places count messages from 0."""

    asked_at: dict[int, int]
    """Place of a result, and of the message that called for it."""
    orphans: list[int]
    """Results without a call before them."""
    unanswered: list[int]
    """Messages with a call that no result answers, in order, one a call."""


class Pairs:
    """The pairs of a context that grows, found message by message."""

    def __init__(self) -> None:
        self.asked_at: dict[int, int] = {}
        """As in `Pairing`."""
        self.orphans: list[int] = []
        self._last_asked: dict[str, int] = {}
        self._waiting: dict[tuple[int, str], None] = {}
        self._count = 0

    def take(self, message: JsonObject) -> None:
        """Take in the next message."""
        place, self._count = self._count, self._count + 1
        if message.get("role") == "assistant":
            for call in tool_calls_of(message):
                self._last_asked[call.id] = place
                self._waiting[place, call.id] = None
        elif message.get("role") == "toolResult":
            call_id = message.get("toolCallId")
            if not isinstance(call_id, str) or call_id not in self._last_asked:
                self.orphans.append(place)
                return
            self.asked_at[place] = self._last_asked[call_id]
            self._waiting.pop((self._last_asked[call_id], call_id), None)

    def pairing(self) -> Pairing:
        """How calls and results stand to each other so far."""
        return Pairing(self.asked_at, self.orphans, [place for place, _ in self._waiting])


def pairing_of(messages: Iterable[JsonObject]) -> Pairing:
    """Pair the calls and results of messages in context order."""
    pairs = Pairs()
    for message in messages:
        pairs.take(message)
    return pairs.pairing()


def interrupted_calls(messages: Sequence[JsonObject]) -> list[ToolCall]:
    """Calls that a context ends with and no result answers: nothing was said since.

    Calls of a reply that failed or was stopped are never run, so they wait for nothing.
    """
    answered: set[str] = set()
    for message in reversed(messages):
        if message.get("role") == "toolResult":
            call_id = message.get("toolCallId")
            if isinstance(call_id, str):
                answered.add(call_id)
            continue
        if message.get("role") != "assistant" or message.get("stopReason") in ("error", "aborted"):
            return []
        return [call for call in tool_calls_of(message) if call.id not in answered]
    return []


def with_partners(wanted: Iterable[int], pairs: Iterable[tuple[int, int]]) -> set[int]:
    """What is wanted, and with each of it whatever some pair joins it to, near or far."""
    partners: dict[int, list[int]] = {}
    for one, other in pairs:
        partners.setdefault(one, []).append(other)
        partners.setdefault(other, []).append(one)
    found: set[int] = set()
    rest = list(wanted)
    while rest:
        one = rest.pop()
        if one not in found:
            found.add(one)
            rest += partners.get(one, ())
    return found
