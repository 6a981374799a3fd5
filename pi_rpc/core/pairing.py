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


def pairing_of(messages: Iterable[JsonObject]) -> Pairing:
    """Pair the calls and results of messages in context order."""
    asked_at: dict[int, int] = {}
    orphans: list[int] = []
    last_asked: dict[str, int] = {}
    waiting: dict[tuple[int, str], None] = {}
    for place, message in enumerate(messages):
        if message.get("role") == "assistant":
            for call in tool_calls_of(message):
                last_asked[call.id] = place
                waiting[place, call.id] = None
        elif message.get("role") == "toolResult":
            call_id = message.get("toolCallId")
            if not isinstance(call_id, str) or call_id not in last_asked:
                orphans.append(place)
                continue
            asked_at[place] = last_asked[call_id]
            waiting.pop((last_asked[call_id], call_id), None)
    return Pairing(asked_at, orphans, [place for place, _ in waiting])


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
