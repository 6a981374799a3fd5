"""Scripts of the offline model: what it will say, written down beforehand.

A script is `{"replies": [REPLY, …], "default": REPLY}`. Each request takes the next reply; one with
`match` that does not fit the last words of the user is passed over for good. When all are used the
default answers, again and again; without a default the reply is an error, `script_exhausted`.

Beside these a script may say how long the model's window (`contextWindow`) and its replies
(`maxOutput`) are, whether longer requests are refused (`enforceWindow`), and whether summaries use
up replies (`summaries`: inTurn or byRule). When no reply is left but an error or an echo, a summary
is made by rule in any case.

A REPLY has any of
- `text`, `thinking`, `tools: [{name, args, id?}]` (args that are text are sent as they are),
- `usage: {input, output, cacheRead, cacheWrite}`; estimated when absent,
- `stop`: stop, length or toolUse; toolUse when there are tools, else stop,
- `error: {status?, type?, message?, retryAfterMs?}`: the reply ends so, after what else it says,
- `chunk`: characters a delta; `delayMs`: before each delta; `cutAfter`: deltas, then the
  stream breaks off, or fails with the `error`,
- `match: {contains}`: used only when the last user message contains this,
- `echo: true`: the text is the last user message's,
- `repeat: {text, count}`: this many deltas more at the end of the text (experimental, for load).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from pi_rpc.core.errors import Invalid, Missing, Outside
from pi_rpc.core.messages import JsonObject, text_of

SCRIPT_BYTES_MAX = 64 * 1024 * 1024
"""The longest script file read; scripts for load tests use `repeat` and stay short."""

_Count = Annotated[int, msgspec.Meta(ge=0)]


class ScriptedTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A call in a reply."""

    name: str
    args: JsonObject | str = {}
    """Text stands for itself: arguments that are no JSON can be scripted too."""
    id: str | None = None


class ScriptedUsage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Tokens a reply reports."""

    input: _Count = 0
    output: _Count = 0
    cache_read: _Count = 0
    cache_write: _Count = 0


class ScriptedError(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How a reply fails."""

    status: int | None = None
    type: str = "error"
    message: str = "The script says so."
    retry_after_ms: _Count | None = None


class Match(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """When a reply fits."""

    contains: str


class Repeat(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Many equal deltas."""

    text: str
    count: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)]


class ScriptedReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One reply, as the module's page says."""

    text: str = ""
    thinking: str = ""
    tools: list[ScriptedTool] = []
    usage: ScriptedUsage | None = None
    stop: Literal["stop", "length", "toolUse"] | None = None
    error: ScriptedError | None = None
    chunk: Annotated[int, msgspec.Meta(ge=1)] = 24
    delay_ms: Annotated[float, msgspec.Meta(ge=0)] = 0
    cut_after: _Count | None = None
    match: Match | None = None
    echo: bool = False
    repeat: Repeat | None = None


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What the offline model will say."""

    replies: list[ScriptedReply] = []
    default: ScriptedReply | None = None
    context_window: _Count | None = None
    """The window the offline model has, in tokens; 0 is an unknown one."""
    max_output: _Count | None = None
    """The longest reply it says it can give, in tokens; 0 is unknown."""
    enforce_window: bool = False
    """Whether a request that is estimated to be longer than the window is refused."""
    summaries: Literal["inTurn", "byRule"] = "inTurn"
    """Whether requests for a summary take the next reply, or are answered as without a script."""


EXHAUSTED = ScriptedReply(
    error=ScriptedError(type="script_exhausted", message="The script has no more replies.")
)
"""What a script without a default says when it is at its end."""


def script_from_object(object: Any) -> Script:
    """A script out of decoded JSON. Raises Invalid `bad_script`; `data.at` is the place in it."""
    try:
        return msgspec.convert(object, Script)
    except msgspec.ValidationError as error:
        _, named, at = str(error).rpartition(" - at `")
        told = f"The script is not well formed: {error}"
        raise Invalid("bad_script", told, at=at.removesuffix("`") if named else "$") from error


def script_from_file(path: Path) -> Script:
    """A script out of a JSON file.

    Raises Missing `script_not_found`, Outside `script_unreadable` and Invalid `bad_script`.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(SCRIPT_BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise Missing("script_not_found", f"There is no script {path}.", path=str(path)) from error
    except OSError as error:
        told = f"The script {path} cannot be read: {error.strerror}."
        raise Outside("script_unreadable", told, path=str(path), retryable=False) from error
    if len(raw) > SCRIPT_BYTES_MAX:
        told = f"The script {path} is longer than {SCRIPT_BYTES_MAX} bytes."
        raise Invalid("bad_script", told, path=str(path))
    try:
        return script_from_object(msgspec.json.decode(raw))
    except Invalid as invalid:
        told = f"{path}: {invalid.message}"
        raise Invalid("bad_script", told, path=str(path), **invalid.data) from invalid
    except (msgspec.DecodeError, RecursionError) as error:
        told = f"{path}: The script is not JSON: {error}"
        raise Invalid("bad_script", told, path=str(path)) from error


def reply_for(
    script: Script, position: int, messages: Sequence[JsonObject]
) -> tuple[ScriptedReply, int]:
    """The reply to this context when `position` replies are used, and how many are used then.

    The position goes on growing while the default answers.
    """
    said = None
    for index in range(position, len(script.replies)):
        reply = script.replies[index]
        if reply.match is not None:
            said = last_user_text(messages) if said is None else said
            if reply.match.contains not in said:
                continue
        return reply, index + 1
    return script.default or EXHAUSTED, max(position, len(script.replies)) + 1


def last_user_text(messages: Sequence[JsonObject]) -> str:
    """The newest words of the user; empty when there are none."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.get("role") == "user":
            return text_of(message)
    return ""
