"""Stream pieces folded into one assistant message.

A provider streams pieces; the fold here is the only place that turns them into the stored form.

Promises
- The folded message holds exactly the text of its deltas, in block order.
- Every reply ends: a fold that is cut says `aborted` or `error`, never nothing.
- Folding is linear in the text: a delta costs one append.
"""

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from pi_rpc.core.messages import Block, JsonObject, Usage

StopReason = Literal["stop", "length", "toolUse", "error", "aborted"]


class ReplyStarted(msgspec.Struct, frozen=True, gc=False):
    """The provider accepted the request."""

    response_id: str | None = None
    usage: Usage | None = None
    """What is known to be spent already; it counts when the reply is cut before its end."""
    script_position: int | None = None
    """From the offline model: how many replies of its script are used with this one."""


class BlockStarted(msgspec.Struct, frozen=True, gc=False):
    """A block opens; `call_id` and `name` only for tool calls."""

    index: int
    kind: Literal["text", "thinking", "toolCall"]
    call_id: str = ""
    name: str = ""


class BlockDelta(msgspec.Struct, frozen=True, gc=False):
    """More text of a block; for tool calls a piece of the arguments' JSON."""

    index: int
    text: str


class BlockEnded(msgspec.Struct, frozen=True, gc=False):
    """A block is whole."""

    index: int
    signature: str | None = None
    redacted: bool = False
    """Thinking the provider keeps to itself; its signature stands for it."""


class ReplyError(msgspec.Struct, frozen=True):
    """What went wrong, in a form a program can decide on."""

    kind: str
    """One of overloaded, rate_limited, quota, invalid_request, unauthorized, overflow, server,
    network, timeout, cut, refusal, aborted, unknown."""
    message: str
    status: int | None = None
    code: str | None = None
    retry_after_ms: int | None = None

    def as_object(self) -> JsonObject:
        """The stored form, absent facts left out."""
        made = {
            "kind": self.kind,
            "status": self.status,
            "code": self.code,
            "retryAfterMs": self.retry_after_ms,
            "providerMessage": self.message,
        }
        return {name: value for name, value in made.items() if value is not None}


class ReplyEnded(msgspec.Struct, frozen=True):
    """The last piece of every reply."""

    stop: StopReason
    usage: Usage = Usage()
    error: ReplyError | None = None
    raw_stop: str | None = None
    """Why it stopped, in the provider's word."""
    response_model: str | None = None
    """The model that answered, when it is not the one asked for."""
    response_id: str | None = None
    """Its name at the provider, when that was not known at the start."""


class RequestNote(msgspec.Struct, frozen=True):
    """One way in which what was sent differs from the context."""

    kind: str
    """reply_left_out, thinking_left_out, result_left_out, result_made_up, result_moved,
    image_left_out; asked_again for requests whose answer did not begin."""
    count: int
    first: int | None = None
    """The first message it is about, counted from 0 in the context."""


class RequestNoted(msgspec.Struct, frozen=True):
    """What is to be known of the request; comes before all else, and not without notes."""

    notes: tuple[RequestNote, ...]


Piece = RequestNoted | ReplyStarted | BlockStarted | BlockDelta | BlockEnded | ReplyEnded

ABORTED = "The request was stopped before the reply was complete."
"""What an aborted reply says of itself, unless told otherwise."""

CUT = "The reply ended without its end marker."
"""What a reply says of itself whose stream broke off."""

QUOTED_CHARS = 500
"""How much of unreadable arguments is quoted: enough to see the mistake, small in a context."""

REQUEST_NOTED = "pi_rpc.request"
"""The type of the diagnostic that says how a request differed from its context."""

_BLOCK_TEXT = {"text": "text", "thinking": "thinking"}
_BLOCK_SIGNATURE = {
    "text": "textSignature",
    "thinking": "thinkingSignature",
    "toolCall": "thoughtSignature",
}


class Fold:
    """One reply while it arrives: fed pieces, it gives the message to store at any moment."""

    __slots__ = (
        "_ended",
        "_notes",
        "_parts",
        "_redacted",
        "_response_id",
        "_signatures",
        "_spent",
        "_started",
        "script_position",
    )

    def __init__(self) -> None:
        self._started: dict[int, BlockStarted] = {}
        self._parts: dict[int, list[str]] = {}
        self._signatures: dict[int, str] = {}
        self._redacted: set[int] = set()
        self._response_id: str | None = None
        self._spent = Usage()
        self._ended: ReplyEnded | None = None
        self._notes: tuple[RequestNote, ...] = ()
        self.script_position: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the end came, from the provider or by `cut`."""
        return self._ended is not None

    def add(self, piece: Piece) -> None:
        """Take in one piece. Raises KeyError when its block never started."""
        if type(piece) is BlockDelta:
            self._parts[piece.index].append(piece.text)
            return
        match piece:
            case BlockStarted():
                self._started[piece.index] = piece
                self._parts[piece.index] = []
            case BlockEnded() if piece.signature is not None:
                self._signatures[piece.index] = piece.signature
                if piece.redacted:
                    self._redacted.add(piece.index)
            case ReplyStarted():
                self._response_id = piece.response_id
                self.script_position = piece.script_position
                self._spent = piece.usage or self._spent
            case ReplyEnded():
                self._ended = self._ended or piece
            case RequestNoted():
                self._notes = piece.notes

    def extend(self, pieces: Iterable[Piece]) -> None:
        """Take in a batch of pieces, as `add` does, at less cost for each."""
        parts = self._parts
        for piece in pieces:
            if type(piece) is BlockDelta:
                parts[piece.index].append(piece.text)
            else:
                self.add(piece)

    def cut(self, stop: Literal["aborted", "error"], message: str = "", kind: str = "cut") -> None:
        """End the reply from outside, keeping what came; one that has ended stays as it is.

        `kind` is the structured error's, for stop `error`.
        """
        if stop == "aborted":
            error = ReplyError("aborted", message or ABORTED)
        else:
            error = ReplyError(kind, message or CUT)
        self._ended = self._ended or ReplyEnded(stop, self._spent, error)

    def message(
        self, provider: str, model_id: str, api: str, at_ms: int, duration_ms: float
    ) -> JsonObject:
        """The assistant message to store; a reply without an end is an error of kind `cut`.

        `at_ms` is when the reply began. Blocks without text are left out, except tool calls and
        signed thinking. A call without an id is given one, for its result must name it.
        """
        ended = self._ended or ReplyEnded("error", self._spent, ReplyError("cut", CUT))
        message: JsonObject = {
            "role": "assistant",
            "content": self._content(at_ms),
            "api": api,
            "provider": provider,
            "model": model_id,
            "usage": ended.usage.as_object(),
            "stopReason": ended.stop,
            "timestamp": at_ms,
        }
        response_id = ended.response_id or self._response_id
        if response_id is not None:
            message["responseId"] = response_id
        if ended.response_model is not None:
            message["responseModel"] = ended.response_model
        if ended.raw_stop is not None:
            message["rawStopReason"] = ended.raw_stop
        error = ended.error
        if error is None and ended.stop == "error":
            error = ReplyError("unknown", "The provider reported an error without saying which.")
        if error is not None:
            message["errorMessage"] = error.message
            if ended.stop == "error":
                message["error"] = error.as_object()
        elif ended.stop == "aborted":
            message["errorMessage"] = ABORTED
        message["durationMs"] = round(duration_ms)
        if self._notes:
            message["diagnostics"] = [self._diagnostic(at_ms)]
        return message

    def _diagnostic(self, at_ms: int) -> JsonObject:
        """What was noted of the request, in the form of the format's own diagnostics."""
        notes = [
            {"kind": note.kind, "count": note.count}
            | ({} if note.first is None else {"first": note.first})
            for note in self._notes
        ]
        return {"type": REQUEST_NOTED, "timestamp": at_ms, "details": {"notes": notes}}

    def _content(self, at_ms: int) -> list[Block]:
        content: list[Block] = []
        used_ids: set[str] = set()
        for index in sorted(self._started):
            started = self._started[index]
            text = _storable("".join(self._parts[index]))
            signature = self._signatures.get(index)
            block: Block
            if started.kind == "toolCall":
                call_id = started.call_id
                if not call_id or call_id in used_ids:
                    call_id = f"call_{at_ms}_{index}"
                used_ids.add(call_id)
                arguments, error = arguments_from_text(text)
                block = {"type": "toolCall", "id": call_id, "name": started.name}
                block["arguments"] = arguments
                if error is not None:
                    block["argumentsError"] = error
            elif text or (signature is not None and started.kind == "thinking"):
                block = {"type": started.kind, _BLOCK_TEXT[started.kind]: text}
            else:
                continue
            if signature is not None:
                block[_BLOCK_SIGNATURE[started.kind]] = signature
                if index in self._redacted:
                    block["redacted"] = True
            content.append(block)
        return content


def arguments_from_text(text: str) -> tuple[JsonObject, str | None]:
    """A call's arguments out of their JSON text, or no arguments and why they cannot be read.

    No text at all is no arguments. Raw control characters in strings and escapes that JSON does not
    know, which models are known to write, are read as what they must have meant.
    """
    if not text.strip():
        return {}, None
    problem = "not JSON"
    for candidate in (text, _ANY_STRING.sub(_mended_string, text)):
        try:
            arguments = msgspec.json.decode(candidate)
        except (msgspec.MsgspecError, RecursionError) as error:
            problem = str(error)
            continue
        if isinstance(arguments, dict):
            return arguments, None
        problem = f"a JSON object was expected, not {type(arguments).__name__}"
        break
    quoted = text if len(text) <= QUOTED_CHARS else f"{text[:QUOTED_CHARS]}…"
    return {}, f"{problem}: {quoted}"


# Possessive, so that a string that never closes costs one pass and not one for each character.
_ANY_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_NOT_JSON = re.compile(
    r"""
      (?P<pair> \\u[dD][89abAB][0-9a-fA-F]{2} \\u[dD][c-fC-F][0-9a-fA-F]{2} )
    | (?P<half> \\u[dD][89a-fA-F][0-9a-fA-F]{2} )
    | (?P<good> \\["\\/bfnrt] | \\u[0-9a-fA-F]{4} )
    | (?P<stray> \\ )
    | (?P<control> [\x00-\x1f] )
    """,
    re.VERBOSE,
)


def _mended_string(string: re.Match[str]) -> str:
    return _NOT_JSON.sub(_mended_part, string.group())


def _mended_part(part: re.Match[str]) -> str:
    match part.lastgroup:
        case "half":
            return "\\ufffd"
        case "stray":
            return "\\\\"
        case "control":
            return f"\\u{ord(part.group()):04x}"
        case _:
            return part.group()


def _storable(text: str) -> str:
    # Halves of a character outside the basic plane may arrive in two deltas; one half alone has no
    # place in UTF-8 and would make the whole message impossible to store.
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
