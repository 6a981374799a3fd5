"""A context in an API's words, kept from one request to the next: only what is new is put; pure.

Promises
- What a context that grew is told as equals what it would be told as at once.
- A context that changed anywhere else is told anew.
- The messages given are not changed, and what is given out are lists of the caller's own.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import is_

import msgspec

from pi_rpc.core.context_messages import message_for_model
from pi_rpc.core.folding import fold, rendered_prompt
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.models import Model
from pi_rpc.core.pairing import Pairs
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.projection import MESSAGES_KEPT_ROWS
from pi_rpc.providers.transcript import NormalId, Note, Preparing

KEPT = "told"
"""The name under which a session keeps what was told."""

Say = Callable[[list[JsonObject], int, Sequence[JsonObject]], list[JsonObject]]
"""A passage in an API's words, given how many messages and what in its words came before it."""


class Words(msgspec.Struct, frozen=True):
    """How an API says things to one model."""

    normal_id: NormalId
    say: Say
    same_api: bool = True
    """Whether signatures are bound to the API too."""


class Told(msgspec.Struct, frozen=True):
    """A context as an API wants it."""

    prompt: str
    """Every system message in one text; empty when there are none."""
    tools: list[JsonObject]
    """Tools in force: name, description and parameters."""
    said: list[JsonObject]
    """All else, in the API's words."""
    notes: list[Note]


def told(
    request: ModelRequest,
    messages: Iterable[JsonObject],
    model: Model,
    words: Callable[[Model], Words],
) -> Told:
    """The context `messages` of a request, in the words that an API has for a model."""
    context = list(messages)
    # What a failure leaves half made is nothing to go on from.
    telling = request.kept.pop(KEPT, None)
    is_known = isinstance(telling, _Telling) and telling.begins(context, model, words)
    if not isinstance(telling, _Telling) or not is_known or not telling.take(context):
        telling = _Telling(model, words)
        telling.take(context)
    if len(context) <= MESSAGES_KEPT_ROWS:
        # The messages of a longer one are other objects each time.
        request.kept[KEPT] = telling
    return telling.told()


class _Telling:
    def __init__(self, model: Model, words: Callable[[Model], Words]) -> None:
        self._model = model
        self._words_for = words
        self._words = words(model)
        self._preparing = Preparing(model, self._words.normal_id, self._words.same_api)
        self._given: list[JsonObject] = []
        self._context: list[JsonObject] = []
        """What was given in the llm form; a failed reply is a message of no role, so that places
        go on counting all of it."""
        self._system: list[JsonObject] = []
        self._prompt = ""
        self._tools: list[JsonObject] = []
        self._pairs = Pairs()
        self._messages = 0
        self._said: list[JsonObject] = []

    def begins(
        self, context: Sequence[JsonObject], model: Model, words: Callable[[Model], Words]
    ) -> bool:
        """Whether that context, told in those words, begins with what was told here."""
        return (
            self._words_for is words
            and self._model == model
            and len(self._given) <= len(context)
            and all(map(is_, self._given, context))
        )

    def take(self, context: Sequence[JsonObject]) -> bool:
        """Say what the context has beyond what was said; False when that must be said otherwise."""
        first = len(self._context)
        new = context[len(self._given) :]
        self._given += new
        self._context += [
            {} if _is_failed(message) else message
            for message in map(message_for_model, new)
            if message is not None
        ]
        passages: dict[int, list[int]] = {}
        """Where a passage begins, and the places of the results in it."""
        for place in range(first, len(self._context)):
            message = self._context[place]
            self._pairs.take(message)
            match message.get("role"):
                case "user" | "assistant":
                    passages[place] = []
                case "toolResult":
                    asked_at = self._pairs.asked_at.get(place)
                    if asked_at is None:
                        self._preparing.note("result_left_out", [place])
                    elif asked_at < first:
                        return False
                    else:
                        passages[asked_at].append(place)
                case None:
                    self._preparing.note("reply_left_out", [place])
        self._fold(first)
        for place, results in passages.items():
            passage = self._preparing.passage(self._context, place, results)
            self._said += self._words.say(passage, self._messages, self._said)
            self._messages += len(passage)
        return True

    def _fold(self, first: int) -> None:
        new = [message for message in self._context[first:] if message.get("role") == "system"]
        if not new:
            return
        self._system += new
        folded = fold(self._system)
        assert folded is not None, "there is a system message"
        self._prompt = rendered_prompt(folded)
        self._tools = list(folded.get("toolsAdded") or ())

    def told(self) -> Told:
        """All of it."""
        return Told(
            self._prompt, self._tools.copy(), self._said.copy(), self._preparing.notes.copy()
        )


def _is_failed(message: JsonObject) -> bool:
    return message.get("role") == "assistant" and message.get("stopReason") in ("error", "aborted")
