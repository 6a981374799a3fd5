"""What every API is asked with: sizes, thinking and the body's bytes; pure."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import orjson

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.models import Model, clamped, levels_of
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.tokens import context_tokens
from pi_rpc.providers.reading import Reading
from pi_rpc.providers.transcript import Note, short_hash

Retention = Literal["none", "short", "long"]
"""How long a provider is asked to keep the beginning of a context at hand."""

OUTPUT_UNKNOWN = 16_384
"""The longest reply asked for when a model does not say what it can."""

NESTING_MAX = 200
"""Below what the encoders here bear, and far above what a call is made of."""

MARGIN_TOKENS = 4096
MARGIN_SHARE = 0.15
"""What is kept free beside an estimated input, for it is no more than an estimate."""

SMALLEST_MARGINS = 8
"""The margin is never more than this part of the window."""

ROOM_TOKENS = 32_768
"""Room below this is too dear for the wide margin; the narrow one does then."""

BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384}
"""Tokens for thinking by level; higher levels have that of high."""

BUDGET_GAP = 1024
"""The least left for the answer where the output cap is no longer than the budget."""


class Post(msgspec.Struct, frozen=True):
    """One request as an API wants it; the key is not in it."""

    path: str
    """Behind the base address, or an address of its own."""
    headers: dict[str, str]
    body: JsonObject
    notes: list[Note] = []


class Api(msgspec.Struct, frozen=True):
    """One API: a request into its words, and its stream back."""

    name: str
    post: Callable[[ModelRequest, Model, Retention], Post]
    reading: Callable[[Model, ModelRequest], Reading]
    key_headers: Callable[[str], dict[str, str]]
    """The headers that carry a key."""


def bearer(key: str) -> dict[str, str]:
    """A key as most servers want it."""
    return {"authorization": f"Bearer {key}"}


def thinking_level(request: ModelRequest, model: Model) -> str:
    """The level asked for, or the nearest the model has."""
    return clamped(request.thinking_level, levels_of(model.reasoning, model.thinking))


def output_cap(wanted: int | None, model: Model, input_tokens: int) -> int:
    """The longest reply to ask for: what is wanted or the model can, within the window's room."""
    cap = wanted or model.max_output or OUTPUT_UNKNOWN
    if model.max_output:
        cap = min(cap, model.max_output)
    if model.context_window:
        left = model.context_window - input_tokens
        # In a small window the usual margin would leave nothing to answer with.
        margin = min(MARGIN_TOKENS, model.context_window // SMALLEST_MARGINS)
        room = left - max(margin, math.ceil(input_tokens * MARGIN_SHARE))
        if room < ROOM_TOKENS:
            room = min(ROOM_TOKENS, left - margin)
        cap = min(cap, room)
    return max(cap, 1)


def input_tokens(messages: Sequence[JsonObject]) -> int:
    """How long the input is: the last usage a provider reported and an estimate of the rest."""
    return context_tokens(messages).total


def budget_of(level: str, own: Mapping[str, int]) -> int:
    """Tokens for thinking at a level, the user's `own` budgets before the usual ones."""
    budgets = {**BUDGETS, **own}
    return budgets.get(level, budgets["high"])


def budget_for(level: str, cap: int, model: Model, own: Mapping[str, int]) -> tuple[int, int]:
    """The output cap that has room for thinking, and the budget for it.

    For APIs where thinking counts as output.
    """
    budget = budget_of(level, own)
    widened = cap + budget
    if model.max_output:
        widened = min(widened, model.max_output)
    if widened <= budget:
        budget = max(widened - BUDGET_GAP, 0)
    return widened, budget


def sampling_of(request: ModelRequest, model: Model) -> JsonObject:
    """What the user wants in the body of each request, whatever it means to the server."""
    return model.sampling | model.sampling_by_level.get(thinking_level(request, model), {})


def cache_key(request: ModelRequest) -> str:
    """What tells a provider which requests share a beginning; it does not give the session away."""
    return short_hash(f"pi-rpc {request.session_id}", 32)


def arguments_text(arguments: JsonObject) -> str:
    """A call's arguments as JSON text."""
    return body_bytes(arguments).decode()


def body_bytes(body: JsonObject) -> bytes:
    """JSON for the wire: without the lone surrogates and endless numbers it has no words for.

    What nests more deeply than anybody reads is null, so that one odd call in a history does not
    keep every later request from being made.
    """
    try:
        return orjson.dumps(body)
    except TypeError:
        sendable = _sendable(body, NESTING_MAX)
        return json.dumps(sendable, ensure_ascii=False, separators=(",", ":")).encode()


def _sendable(value: Any, levels: int) -> Any:
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
        case dict() | list() | tuple() if not levels:
            return None
        case dict():
            return {
                _sendable(str(name), 0): _sendable(part, levels - 1) for name, part in value.items()
            }
        case list() | tuple():
            return [_sendable(part, levels - 1) for part in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
