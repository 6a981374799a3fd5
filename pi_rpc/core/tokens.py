"""How big a context is, estimated without a tokenizer: four UTF-16 code units are one token.

The estimator `u16/4` is the one Pi uses, so that a decision made on an estimate is the same there.
Chinese, Japanese and Korean characters come to about a token each, so `u16/4` sees a quarter of
such a text; the estimator `cjk-aware` counts each of them as one.

Promises
- The same message gives the same number, on any machine.
- No message, however malformed, raises: what cannot be measured counts nothing.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import orjson

from pi_rpc.core.messages import JsonObject

ESTIMATOR = "u16/4"
"""The name estimates go by in records: UTF-16 code units over four, rounded up per message."""

CJK_ESTIMATOR = "cjk-aware"
"""As `u16/4`, but a CJK character counts as a whole token."""

TextUnits = Callable[[str], int]
"""How an estimator weighs a text, in code units."""

UNITS_PER_TOKEN = 4

BYTES_OF_WIDE_CHARACTER = 4

IMAGE_UNITS = 4800
"""What an image counts for, whatever its size: 1200 tokens."""

SAFE_INTEGER_MAX = 2**53
"""Beyond it a JavaScript number is a rounded double, printed differently than a Python integer."""

FAILED_STOPS = ("error", "aborted")
"""Stop reasons of replies that are kept, yet never sent to a model again."""


_ASCII = bytes(range(128))
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u303f\u3040-\u30ff\u3100-\u31bf\u31f0-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef]"
)
_CJK_ASTRAL = re.compile("[\U0001b000-\U0001b16f\U0001f200-\U0001f2ff\U00020000-\U0003ffff]")


class ContextTokens(msgspec.Struct, frozen=True):
    """The size of a context and what it was read from."""

    total: int
    usage_at: int | None = None
    """Where the trusted usage stands: an index in a list of messages, of a projection the row.

    None when all is estimated.
    """


def utf16_units(text: str) -> int:
    """The length of a text as JavaScript counts it."""
    # How a string is held tells enough of nearly all: one with a character beyond the first plane
    # takes four bytes for each (PEP 393). Only the rare rest pays for an encoding.
    length = len(text)
    if text.isascii() or text.__sizeof__() < length * BYTES_OF_WIDE_CHARACTER:
        return length
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cjk_units(text: str) -> int:
    """The weight of a text when each CJK character is a token of its own."""
    if text.isascii():
        return len(text)
    # Most of a text is ASCII all the same: the bytes left without it are few to look through.
    encoded = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    rest = encoded.decode("utf-8", "surrogatepass")
    within, beyond = len(_CJK.findall(rest)), len(_CJK_ASTRAL.findall(rest))
    # One and two code units of each are counted already.
    units = len(text) - len(rest) + utf16_units(rest)
    return units + within * (UNITS_PER_TOKEN - 1) + beyond * (UNITS_PER_TOKEN - 2)


def tokens_of_units(units: int) -> int:
    """Tokens of so many code units, rounded up."""
    return -(-units // UNITS_PER_TOKEN)


def javascript_number(value: float) -> str:
    """A number as JavaScript's JSON prints it; `null` for what JSON has no word for."""
    if isinstance(value, int) and -SAFE_INTEGER_MAX <= value <= SAFE_INTEGER_MAX:
        return str(value)
    try:
        number = float(value)
    except OverflowError:
        return "null"
    if not math.isfinite(number):
        return "null"
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The decimal point stands after this many of the significant digits.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    power = point - 1
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{'+' if power > 0 else '-'}{abs(power)}"


def json_units(value: Any, text_units: TextUnits = utf16_units) -> int:
    """The length of a JSON value as JavaScript prints it: compact, non-ASCII text unescaped."""
    units = 0
    # A stack of our own: a stored value may nest deeper than Python recurses.
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            units += _string_units(item, text_units)
        elif item is None or item is True:
            units += 4
        elif item is False:
            units += 5
        elif isinstance(item, (int, float)):
            units += len(javascript_number(item))
        elif isinstance(item, dict):
            # Braces, a colon for each pair, commas between the pairs.
            units += 1 + 2 * len(item) if item else 2
            for name in item:
                units += _string_units(name, text_units)
            rest.extend(item.values())
        elif isinstance(item, (list, tuple)):
            units += 1 + len(item) if item else 2
            rest.extend(item)
    return units


def _string_units(text: str, text_units: TextUnits) -> int:
    try:
        printed = orjson.dumps(text)
    except TypeError:
        # A lone surrogate, which JavaScript prints as an escape of six characters.
        whole = _LONE_SURROGATE.sub("", text)
        return _string_units(whole, text_units) + 6 * (len(text) - len(whole))
    return len(printed) if printed.isascii() else text_units(printed.decode())


def _text_units(value: object, text_units: TextUnits) -> int:
    return text_units(value) if isinstance(value, str) else 0


def _content_units(content: object, text_units: TextUnits) -> int:
    if isinstance(content, str):
        return text_units(content)
    if not isinstance(content, list):
        return 0
    units = 0
    for block in content:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "text":
            units += _text_units(block.get("text"), text_units)
        elif block.get("type") == "image":
            units += IMAGE_UNITS
    return units


def _assistant_units(message: JsonObject, text_units: TextUnits) -> int:
    content = message.get("content")
    if not isinstance(content, list):
        return _text_units(content, text_units)
    units = 0
    for block in content:
        if not isinstance(block, dict):
            continue
        match block.get("type"):
            case "text":
                units += _text_units(block.get("text"), text_units)
            case "thinking":
                units += _text_units(block.get("thinking"), text_units)
            case "toolCall":
                units += _text_units(block.get("name"), text_units)
                if "arguments" in block:
                    units += json_units(block["arguments"], text_units)
    return units


def tool_declaration_units(system: JsonObject, text_units: TextUnits = utf16_units) -> int:
    """Code units of the tools a system message declares."""
    added = system.get("toolsAdded")
    return 0 if added is None else json_units(added, text_units)


def prompt_units(system: JsonObject, text_units: TextUnits = utf16_units) -> int:
    """Code units of the words of a system message: its content and its sections."""
    units = _content_units(system.get("content"), text_units)
    sections = system.get("sections")
    if isinstance(sections, dict):
        units += sum(_text_units(text, text_units) for text in sections.values())
    return units


def message_units(message: JsonObject, text_units: TextUnits = utf16_units) -> int:
    """Code units of a message that count; none for an unknown role.

    Image data, signatures, details, ids and roles count nothing; the words a summary is wrapped in
    neither.
    """
    match message.get("role"):
        case "system":
            return prompt_units(message, text_units) + tool_declaration_units(message, text_units)
        case "user" | "custom" | "toolResult":
            return _content_units(message.get("content"), text_units)
        case "assistant":
            return _assistant_units(message, text_units)
        case "bashExecution":
            return _text_units(message.get("command"), text_units) + _text_units(
                message.get("output"), text_units
            )
        case "branchSummary" | "compactionSummary":
            return _text_units(message.get("summary"), text_units)
        case _:
            return 0


def estimate(message: JsonObject, text_units: TextUnits = utf16_units) -> int:
    """Tokens of one message."""
    return tokens_of_units(message_units(message, text_units))


def estimate_all(messages: Iterable[JsonObject]) -> int:
    """Tokens of messages, each rounded up by itself; no reported usage counts."""
    return sum(map(estimate, messages))


def usage_total(message: JsonObject) -> int:
    """The size of the context after a reply, as the provider reported it; 0 when it did not."""
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return 0
    total = _count(usage.get("totalTokens"))
    if total:
        return total
    names = ("input", "output", "cacheRead", "cacheWrite")
    return sum(_count(usage.get(name)) for name in names)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return int(value) if math.isfinite(value) else 0


def trusted_usage(message: JsonObject) -> int:
    """The reported context size, of an assistant message that did not fail; else 0."""
    if message.get("role") != "assistant" or message.get("stopReason") in FAILED_STOPS:
        return 0
    return max(0, usage_total(message))


def context_tokens(messages: Sequence[JsonObject]) -> ContextTokens:
    """The plain form: the last trusted usage and estimates of what follows, else all estimates."""
    trailing = 0
    for index in range(len(messages) - 1, -1, -1):
        reported = trusted_usage(messages[index])
        if reported:
            return ContextTokens(total=reported + trailing, usage_at=index)
        trailing += estimate(messages[index])
    return ContextTokens(total=trailing)
