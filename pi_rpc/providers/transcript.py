"""What every API needs done to a passage of a context before it is put into that API's words; pure.

A passage is what the user says at once, or a reply with the results of its calls.

Promises
- Every call is followed by its one result, before anything else is said; a made-up or left-out one
  is noted.
- Nothing is said twice and nothing blank: an empty text block is refused by some servers.
- The messages given are not changed.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from pi_rpc.core.messages import (
    Block,
    JsonObject,
    blocks_of,
    text_block,
    texts_of,
    tool_calls_of,
)
from pi_rpc.core.models import Model
from pi_rpc.core.reply import RequestNote

USER_IMAGE_LEFT_OUT = "[An image was attached here, but this model takes no images.]"
TOOL_IMAGE_LEFT_OUT = "[The tool returned an image, but this model takes no images.]"
IMAGE_BLOCKED = "[An image stood here; the user's settings have none sent to models.]"
NO_RESULT = "There is no result: the call was interrupted before it ended."
"""What a call is answered with whose result was never stored."""

EMPTY_RESULT = "(no output)"
"""What stands for a result without words where an API wants some."""

ERROR_MARK = "Error: "
"""Before a failed result where an API has no field to say that it failed."""

NormalId = Callable[[str, bool], str]
"""A stored call id, and whether this very model made it, to one the API takes."""

NoteKind = Literal[
    "reply_left_out",
    "thinking_left_out",
    "result_left_out",
    "result_made_up",
    "result_moved",
    "image_left_out",
]


class Note(msgspec.Struct, frozen=True):
    """One way in which what is sent differs from the context."""

    kind: NoteKind
    place: int
    """The message it is about, counted from 0 in the context."""


def noted_kinds(notes: Iterable[Note]) -> list[RequestNote]:
    """How often each kind was noted, and where first: no more than there are kinds."""
    places: dict[str, list[int]] = {}
    for note in notes:
        places.setdefault(note.kind, []).append(note.place)
    return [RequestNote(kind, len(found), min(found)) for kind, found in sorted(places.items())]


def without_images(messages: Iterable[JsonObject]) -> list[JsonObject]:
    """Messages with each run of images as one line; those without images are the same objects."""
    return [_without_images(message) for message in messages]


def _without_images(message: JsonObject) -> JsonObject:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    if not any(_is_of_image(block) for block in blocks):
        return message
    kept: list[Block] = []
    for block in blocks:
        if not _is_of_image(block):
            kept.append(block)
        elif not kept or kept[-1] is not _IMAGE_BLOCKED:
            kept.append(_IMAGE_BLOCKED)
    return message | {"content": kept}


def _is_of_image(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "image"


_IMAGE_BLOCKED = text_block(IMAGE_BLOCKED)


class Preparing:
    """Makes passages ready for one model, in their order.

    `same_api`: whether signatures are bound to the API too.
    """

    def __init__(self, model: Model, normal_id: NormalId, same_api: bool = True) -> None:
        self.model = model
        self.normal_id = normal_id
        self.same_api = same_api
        self.notes: list[Note] = []
        self.originals: dict[str, str] = {}
        """The stored id behind each id that is sent."""

    def passage(
        self, context: Sequence[JsonObject], place: int, results: Sequence[int]
    ) -> list[JsonObject]:
        """The passage that begins at a place, with the results at those places.

        Messages of the roles user, assistant and toolResult; content is always blocks, but a user
        message that was a plain text is so still.
        """
        message = context[place]
        if message.get("role") == "assistant":
            return self._turn(context, place, results)
        user = self._user(message, place)
        return [] if user is None else [user]

    def note(self, kind: NoteKind, places: Iterable[int]) -> None:
        """Remember in what the passages differ from the context."""
        self.notes += [Note(kind, place) for place in places]

    def _user(self, message: JsonObject, place: int) -> JsonObject | None:
        content = message.get("content")
        if isinstance(content, str):
            return {"role": "user", "content": content} if is_wordy(content) else None
        blocks = self._shown(blocks_of(message), USER_IMAGE_LEFT_OUT, place)
        return {"role": "user", "content": blocks} if blocks else None

    def _turn(
        self, kept: Sequence[JsonObject], place: int, results: Sequence[int]
    ) -> list[JsonObject]:
        """A reply and, right behind it, the results of its calls."""
        message = kept[place]
        is_same = self._is_same(message)
        ids: dict[str, str] = {}
        for call in tool_calls_of(message):
            ids.setdefault(call.id, self._sent_id(call.id, is_same))
        blocks = self._said(message, is_same, ids, place)
        if not blocks:
            return []
        turn: list[JsonObject] = [{"role": "assistant", "content": blocks, "isSame": is_same}]
        missing = dict(ids)
        # The first thing said after the reply; a result that comes behind it has to move.
        spoken = next((at for at in range(place + 1, len(kept)) if _is_speech(kept[at])), len(kept))
        for at in results:
            stored_id = kept[at]["toolCallId"]
            if missing.pop(stored_id, None) is None:
                self.note("result_left_out", [at])
                continue
            if at > spoken:
                self.note("result_moved", [at])
            turn.append(self._result(kept[at], ids[stored_id], at))
        names = {call.id: call.name for call in tool_calls_of(message)}
        for stored_id, sent_id in missing.items():
            self.note("result_made_up", [place])
            turn.append(_made_up(sent_id, names[stored_id]))
        return turn

    def _is_same(self, message: JsonObject) -> bool:
        return (
            message.get("provider") == self.model.provider
            and message.get("model") == self.model.id
            and (not self.same_api or message.get("api") == self.model.api)
        )

    def _sent_id(self, stored_id: str, is_same: bool) -> str:
        sent_id = self.normal_id(stored_id, is_same)
        if self.originals.setdefault(sent_id, stored_id) != stored_id:
            # Two ids that differ only in what the API does not take stay two.
            sent_id = self.normal_id(f"call_{short_hash(stored_id)}", False)
            self.originals[sent_id] = stored_id
        return sent_id

    def _said(
        self, message: JsonObject, is_same: bool, ids: dict[str, str], place: int
    ) -> list[Block]:
        said: list[Block] = []
        seen: set[str] = set()
        for block in blocks_of(message):
            match block.get("type"):
                case "thinking":
                    if not is_same:
                        self.note("thinking_left_out", [place])
                    elif block.get("thinkingSignature") or is_wordy(block.get("thinking")):
                        said.append(block)
                case "text":
                    if is_wordy(block.get("text")):
                        said.append(block if is_same else text_block(block["text"]))
                    elif is_same and block.get("textSignature"):
                        said.append(block)
                case "toolCall" if block.get("id") in ids and block["id"] not in seen:
                    seen.add(block["id"])
                    said.append(_sent_call(block, ids[block["id"]], is_same))
        return said

    def _result(self, message: JsonObject, sent_id: str, place: int) -> JsonObject:
        blocks = self._shown(blocks_of(message), TOOL_IMAGE_LEFT_OUT, place, keeps_blank=True)
        return {
            "role": "toolResult",
            "toolCallId": sent_id,
            "toolName": message.get("toolName"),
            "content": blocks,
            "isError": bool(message.get("isError")),
        }

    def _shown(
        self, blocks: Iterable[Block], instead: str, place: int, keeps_blank: bool = False
    ) -> list[Block]:
        """Texts and images; each run of images is one line where the model cannot see them."""
        shown: list[Block] = []
        in_run = False
        for block in blocks:
            if block.get("type") == "image":
                if self.model.accepts_images and _is_image(block):
                    shown.append(block)
                elif not in_run:
                    self.note("image_left_out", [place])
                    shown.append(text_block(instead))
                    in_run = True
                continue
            in_run = False
            text = block.get("text")
            if block.get("type") != "text" or not isinstance(text, str):
                continue
            if keeps_blank or is_wordy(text):
                shown.append(text_block(text))
        return shown


def _is_speech(message: JsonObject) -> bool:
    return message.get("role") in ("user", "assistant")


_SEEN = re.compile(r"[^\s\ud800-\udfff]|[\ud800-\udbff][\udc00-\udfff]")


def is_wordy(text: object) -> bool:
    """Whether a text has something to see in it once half characters are left out."""
    return isinstance(text, str) and _SEEN.search(text) is not None


def _is_image(block: Block) -> bool:
    return isinstance(block.get("data"), str) and isinstance(block.get("mimeType"), str)


def _sent_call(block: Block, sent_id: str, is_same: bool) -> Block:
    arguments = block.get("arguments")
    call: Block = {
        "type": "toolCall",
        "id": sent_id,
        "name": block.get("name"),
        "arguments": arguments if isinstance(arguments, dict) else {},
    }
    if is_same and isinstance(block.get("thoughtSignature"), str):
        call["thoughtSignature"] = block["thoughtSignature"]
    return call


def _made_up(sent_id: str, name: str) -> JsonObject:
    return {
        "role": "toolResult",
        "toolCallId": sent_id,
        "toolName": name,
        "content": [text_block(NO_RESULT)],
        "isError": True,
    }


def result_text(result: JsonObject) -> str:
    """The words of a result, its texts on lines of their own."""
    return "\n".join(texts_of(result["content"]))


def images_in(blocks: Iterable[Block]) -> list[Block]:
    """The images among blocks."""
    return [block for block in blocks if block.get("type") == "image"]


def result_runs(messages: Sequence[JsonObject]) -> Iterable[list[JsonObject]]:
    """The messages in groups: consecutive results together, everything else alone."""
    run: list[JsonObject] = []
    for message in messages:
        if message["role"] == "toolResult":
            run.append(message)
            continue
        if run:
            yield run
            run = []
        yield [message]
    if run:
        yield run


def short_hash(text: str, digits: int = 16) -> str:
    """Some hexadecimal digits that stand for a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")


def plain_id(stored_id: str, limit_chars: int) -> str:
    """An id of letters, digits, `_` and `-` only, at most so long."""
    plain = _NOT_IN_IDS.sub("_", stored_id)
    if len(plain) <= limit_chars:
        return plain or "call"
    return plain[:limit_chars]
