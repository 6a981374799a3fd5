"""A stretch of conversation as plain text, for a model that is to summarise it.

Promises
- Words of the user and of the model are never cut; results of calls are, and the cut says so.
- A text is never cut within a character.
- Pieces are as large as they may be and no larger; together they hold every word.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from pi_rpc.core.codec import encode
from pi_rpc.core.context_messages import message_for_model
from pi_rpc.core.messages import JsonObject, blocks_of, text_of, texts_of, tool_calls_of
from pi_rpc.core.tokens import utf16_units

RESULT_UNITS_MAX = 2000
"""How much of a result a summariser is shown: its beginning says what came of the call."""

Measure = Callable[[str], int]
"""Tokens of a text."""


def parts_of(message: JsonObject) -> list[str]:
    """What a message of the session form says, in parts; none when no model is ever told."""
    sent = message_for_model(message)
    if sent is None:
        return []
    match sent.get("role"):
        case "user":
            said = text_of(sent)
            return [f"[User]: {said}"] if said else []
        case "assistant":
            return _assistant_parts(sent)
        case "toolResult":
            said = shortened(text_of(sent))
            label = "[Tool error]" if sent.get("isError") else "[Tool result]"
            return [f"{label}: {said}"] if said else []
        case _:
            return []


def _assistant_parts(message: JsonObject) -> list[str]:
    parts = []
    said = "\n".join(texts_of(blocks_of(message)))
    if said:
        parts.append(f"[Assistant]: {said}")
    calls = [f"{call.name}({_arguments(call.arguments)})" for call in tool_calls_of(message)]
    if calls:
        parts.append(f"[Assistant tool calls]: {'; '.join(calls)}")
    if message.get("stopReason") == "error":
        parts.append(f"[Assistant failed]: {message.get('errorMessage') or 'no reason given'}")
    return parts


def _arguments(arguments: JsonObject) -> str:
    return ", ".join(f"{name}={encode(value).decode()}" for name, value in arguments.items())


def shortened(text: str, units_max: int = RESULT_UNITS_MAX) -> str:
    """The first `units_max` code units of a text and how many are left out; whole if it fits."""
    units = utf16_units(text)
    if units <= units_max:
        return text
    return f"{first_units(text, units_max)}\n\n[... {units - units_max} more characters truncated]"


def first_units(text: str, units_max: int) -> str:
    """The longest beginning of at most so many UTF-16 code units, no character halved."""
    if text.isascii():
        return text[:units_max]
    encoded = text.encode("utf-16-le", "surrogatepass")[: units_max * 2]
    # A high surrogate at the end is the first half of a character whose second half is cut off.
    if len(encoded) >= 2 and 0xD8 <= encoded[-1] <= 0xDB:
        encoded = encoded[:-2]
    return encoded.decode("utf-16-le", "surrogatepass")


def serialised(messages: Iterable[JsonObject]) -> str:
    """A conversation as text, a blank line between its parts."""
    return "\n\n".join(part for message in messages for part in parts_of(message))


def pieces(messages: Iterable[JsonObject], measure: Measure, tokens_max: int) -> list[str]:
    """A conversation as texts of at most `tokens_max` each, in order; none when nothing is said.

    A single part that is larger is divided between characters.
    """
    found: list[str] = []
    waiting: list[str] = []
    size = 0
    for message in messages:
        for part in parts_of(message):
            for fitting, measured in _divided(part, measure, tokens_max):
                tokens = measured + 1
                if waiting and size + tokens > tokens_max:
                    found.append("\n\n".join(waiting))
                    waiting, size = [], 0
                waiting.append(fitting)
                size += tokens
    if waiting:
        found.append("\n\n".join(waiting))
    return found


def _divided(text: str, measure: Measure, tokens_max: int) -> Iterator[tuple[str, int]]:
    """The text in parts that fit, each with its tokens."""
    tokens = measure(text)
    if tokens < tokens_max:
        yield text, tokens
        return
    while text:
        end = _fitting(text, measure, tokens_max)
        yield text[:end], measure(text[:end])
        text = text[end:]


def _fitting(text: str, measure: Measure, tokens_max: int) -> int:
    # A token is at most eight characters of any estimator's text, so the search begins small.
    low, high = 1, min(len(text), max(1, tokens_max) * 8)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[:middle]) < tokens_max:
            low = middle
        else:
            high = middle - 1
    return low


def newest_within(
    messages: Sequence[JsonObject], estimate: Callable[[JsonObject], int], tokens_max: int
) -> list[JsonObject]:
    """The newest messages that fit, oldest first; 0 or less is no limit.

    The first that does not fit ends it, but for a summary while there is a tenth of room. The
    newest of all is taken in any case: its text is divided or cut where it is written down.
    """
    if tokens_max <= 0:
        return list(messages)
    taken: list[JsonObject] = []
    total = 0
    for message in reversed(messages):
        tokens = estimate(message)
        if total + tokens <= tokens_max:
            total += tokens
            taken.append(message)
            continue
        is_summary = message.get("role") in ("compactionSummary", "branchSummary")
        if not taken or (is_summary and total * 10 < tokens_max * 9):
            taken.append(message)
        break
    return taken[::-1]
