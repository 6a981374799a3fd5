"""A stretch of conversation as plain text, for a model that is to summarise it.

Promises
- Words of the user and of the model are never cut; results of calls are, and the cut says so.
- A text is never cut within a character.
- No piece is larger than it may be, and none could take the next part whole; together they hold
  every word.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from pi_rpc.core.codec import encode, typed_lines
from pi_rpc.core.context_messages import message_for_model
from pi_rpc.core.file_lists import FileCount
from pi_rpc.core.messages import JsonObject, blocks_of, texts_of, tool_calls_of
from pi_rpc.core.tokens import utf16_units

RESULT_UNITS_MAX = 2000
"""How much of a result a summariser is shown: its beginning says what came of the call."""

Measure = Callable[[str], int]
"""Tokens of a text."""


class _Text(msgspec.Struct, tag="text", gc=False):
    text: str


class _Thinking(msgspec.Struct, tag="thinking", gc=False):
    pass


class _Image(msgspec.Struct, tag="image", gc=False):
    pass


class _Call(msgspec.Struct, tag="toolCall"):
    id: str
    name: str
    arguments: JsonObject


class _Message(msgspec.Struct, rename="camel"):
    role: str
    content: list[_Text | _Thinking | _Image | _Call] | str | None = None
    stop_reason: Any = None
    error_message: Any = None
    tool_call_id: Any = None
    is_error: Any = False
    nested_calls: Any = None


class _Line(msgspec.Struct):
    type: Any = None
    message: _Message | None = None


_lines = msgspec.json.Decoder(_Line)


def parts_of(message: JsonObject) -> list[str]:
    """What a message of the session form says, in parts; none when no model is ever told."""
    sent = message_for_model(message)
    if sent is None:
        return []
    texts = list(texts_of(blocks_of(sent)))
    match sent.get("role"):
        case "user":
            return _user_parts(texts)
        case "assistant":
            calls = [_call_part(call.name, call.arguments) for call in tool_calls_of(sent)]
            return _reply_parts(texts, calls, sent.get("stopReason"), sent.get("errorMessage"))
        case "toolResult":
            return _result_parts(texts, sent.get("isError"))
        case _:
            return []


def parts_of_lines(lines: bytes, files: FileCount) -> Iterator[list[str] | None]:
    """The same of stored lines, one a line; the files of their calls are counted on the way.

    A long history is told several times faster so. None for a line that is no message of a user,
    a model or a tool, or is of an odd shape: nothing of it was counted, it is to be decoded whole.
    """
    for line in typed_lines(_lines, lines):
        message = line.message if line is not None and line.type == "message" else None
        yield None if message is None else _parts_of_typed(message, files)


def _parts_of_typed(message: _Message, files: FileCount) -> list[str] | None:
    content = message.content
    if content is None:
        return None
    blocks = [_Text(content)] if isinstance(content, str) else content
    texts = [block.text for block in blocks if type(block) is _Text]
    match message.role:
        case "user":
            return _user_parts(texts)
        case "assistant":
            calls = []
            for one in blocks:
                if type(one) is _Call:
                    calls.append(_call_part(one.name, one.arguments))
                    files.add_call(one.id, one.name, one.arguments.get("path"))
            return _reply_parts(texts, calls, message.stop_reason, message.error_message)
        case "toolResult":
            files.add_result(message.tool_call_id, message.is_error, message.nested_calls)
            return _result_parts(texts, message.is_error)
        case _:
            return None


def _user_parts(texts: list[str]) -> list[str]:
    text = "".join(texts)
    return [f"[User]: {text}"] if text else []


def _reply_parts(
    texts: list[str], calls: list[str], stop_reason: object, error: object
) -> list[str]:
    parts = []
    text = "\n".join(texts)
    if text:
        parts.append(f"[Assistant]: {text}")
    if calls:
        parts.append(f"[Assistant tool calls]: {'; '.join(calls)}")
    if stop_reason == "error":
        parts.append(f"[Assistant failed]: {error or 'no reason given'}")
    return parts


def _result_parts(texts: list[str], has_failed: object) -> list[str]:
    text = shortened("".join(texts))
    label = "[Tool error]" if has_failed else "[Tool result]"
    return [f"{label}: {text}"] if text else []


def _call_part(name: str, arguments: JsonObject) -> str:
    return f"{name}({_arguments(arguments)})"


def _arguments(arguments: JsonObject) -> str:
    return ", ".join([f"{name}={encode(value).decode()}" for name, value in arguments.items()])


def shortened(text: str, units_max: int = RESULT_UNITS_MAX) -> str:
    """The first `units_max` code units of a text and how many are left out; whole if it fits."""
    units = utf16_units(text)
    if units <= units_max:
        return text
    return f"{first_units(text, units_max)}\n\n[... {units - units_max} more characters truncated]"


def first_units(text: str, units_max: int) -> str:
    """The longest beginning of at most so many UTF-16 code units, no character halved."""
    text = text[:units_max]
    if utf16_units(text) <= units_max:
        return text
    encoded = text.encode("utf-16-le", "surrogatepass")[: units_max * 2]
    # A high surrogate at the end is the first half of a character whose second half is cut off.
    if len(encoded) >= 2 and 0xD8 <= encoded[-1] <= 0xDB:
        encoded = encoded[:-2]
    return encoded.decode("utf-16-le", "surrogatepass")


def serialised(messages: Iterable[JsonObject]) -> str:
    """A conversation as text, a blank line between its parts."""
    return "\n\n".join(part for message in messages for part in parts_of(message))


class _Piece:
    """Parts that are told together, filled up to a size.

    A part is weighed only where the number of its characters, which no estimator exceeds, leaves
    open whether there is room for it.
    """

    def __init__(self, measure: Measure, tokens_max: int) -> None:
        self.parts: list[str] = []
        self._measure = measure
        self._tokens_max = tokens_max
        self._size = 0
        """Holds: what the parts come to at most, with a token for what stands between each two."""
        self._weighed = 0
        self._weighed_size = 0

    def take_all(self, parts: Sequence[str]) -> bool:
        """Add parts, if there is room for all of them without weighing any."""
        size = sum(map(len, parts)) + len(parts)
        if self._size + size > self._tokens_max:
            return False
        self.parts += parts
        self._size += size
        return True

    def take(self, part: str) -> bool:
        """Add a part, if there is room for it."""
        size = len(part) + 1
        if self._size + size > self._tokens_max:
            self._weigh()
            size = self._measure(part) + 1
            if self.parts and self._size + size > self._tokens_max:
                return False
            self._weighed += 1
            self._weighed_size += size
        self.parts.append(part)
        self._size += size
        return True

    def _weigh(self) -> None:
        for part in self.parts[self._weighed :]:
            self._weighed_size += self._measure(part) + 1
        self._weighed = len(self.parts)
        self._size = self._weighed_size


def pieces(
    told: Iterable[Sequence[str]], measure: Measure, tokens_max: int
) -> Iterator[list[str] | None]:
    """A conversation in pieces of at most `tokens_max` each, in order, as the parts of each.

    It is told in stretches, each some moment's work; None is given after each of them, so that
    whoever goes through can let others have their turn. A single part that is larger than a piece
    is divided between characters. No estimator may count more than a token for a character.
    """
    piece = _Piece(measure, tokens_max)
    for parts in told:
        for part in () if piece.take_all(parts) else parts:
            for fitting in _divided(part, measure, tokens_max):
                if not piece.take(fitting):
                    yield piece.parts
                    piece = _Piece(measure, tokens_max)
                    piece.take(fitting)
        yield None
    if piece.parts:
        yield piece.parts


def _divided(text: str, measure: Measure, tokens_max: int) -> Iterator[str]:
    """The text in parts that fit."""
    if len(text) < tokens_max or measure(text) < tokens_max:
        yield text
        return
    while text:
        end = _fitting(text, measure, tokens_max)
        yield text[:end]
        text = text[end:]


def _fitting(text: str, measure: Measure, tokens_max: int) -> int:
    """How many characters of a text fit, up to a few: what is weighed is weighed once."""
    end, size, step = 0, 0, tokens_max
    while step:
        tokens = measure(text[end : end + step])
        if end + step <= len(text) and size + tokens < tokens_max:
            end += step
            size += tokens
        else:
            step //= 2
    return max(1, end)


def newest_within(
    newest_first: Iterable[JsonObject | None],
    estimate: Callable[[JsonObject], int],
    tokens_max: int,
) -> Generator[None, None, list[JsonObject]]:
    """The newest messages that fit, oldest first; 0 or less is no limit.

    The first that does not fit ends it, but for a summary while there is a tenth of room. The
    newest of all is taken in any case: its text is divided or cut where it is written down. None
    among what is gone through stands for a moment's work.
    """
    taken: list[JsonObject] = []
    total = 0
    for message in newest_first:
        if message is None:
            yield
            continue
        tokens = estimate(message)
        if tokens_max <= 0 or total + tokens <= tokens_max:
            total += tokens
            taken.append(message)
            continue
        is_summary = message.get("role") in ("compactionSummary", "branchSummary")
        if not taken or (is_summary and total * 10 < tokens_max * 9):
            taken.append(message)
        break
    return taken[::-1]
