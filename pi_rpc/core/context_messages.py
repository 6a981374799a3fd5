"""What an entry says to a model: entry to messages, messages to what a provider is sent.

Two forms. The session form has the roles the file knows, for clients and estimates; the llm form
has only system, user, assistant and toolResult. The words around summaries and shell output are
part of the format: another program that reads the file sends exactly these.

Promises
- Nothing here changes what it is given; an edited message is a new one.
- A malformed entry says nothing rather than failing.
"""

from datetime import UTC, datetime

from pi_rpc.core.entries import MESSAGE_KINDS, Entry, Kind
from pi_rpc.core.messages import JsonObject, text_block
from pi_rpc.core.tokens import javascript_number

EDITABLE_ROLES = ("user", "assistant", "toolResult", "custom")
"""Roles whose content a context edit may replace."""

BLOCK_ROLES = ("assistant", "toolResult")
"""Roles whose content is always blocks."""

EDITABLE_KINDS = frozenset({Kind.USER, Kind.ASSISTANT, Kind.TOOL_RESULT, Kind.CUSTOM_MESSAGE})
"""Entries a context edit may name."""

MODEL_ROLES = ("system", "user", "assistant", "toolResult")
"""Roles a provider is sent as they are."""

SUMMARY_OPENING = (
    "The conversation history before this point was compacted into the following summary:"
    "\n\n<summary>\n"
)
SUMMARY_CLOSING = "\n</summary>"
BRANCH_OPENING = (
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
)
BRANCH_CLOSING = "</summary>"
"""Without a line feed before it: the asymmetry is part of the format."""


def milliseconds_of(timestamp: object) -> int | None:
    """Unix milliseconds of an ISO 8601 text, UTC unless it says otherwise; None when it is none."""
    if not isinstance(timestamp, str):
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def messages_of_entry(entry: Entry, is_checkpoint: bool) -> tuple[JsonObject, ...]:
    """The messages of an entry in the session form, edits left out; mostly one, often none.

    `is_checkpoint`: whether it is the compaction the context begins with; others say nothing.
    Times of made messages are the entry's, 0 when it has none that can be read.
    """
    kind = entry.kind
    if kind in MESSAGE_KINDS:
        return stored_messages(entry.object)
    if kind == Kind.CUSTOM_MESSAGE:
        return (_custom_message(entry),)
    if kind == Kind.BRANCH_SUMMARY:
        return _branch_summary(entry)
    if kind == Kind.COMPACTION and is_checkpoint:
        return _compaction(entry)
    return ()


def stored_messages(stored: JsonObject) -> tuple[JsonObject, ...]:
    """The message of a stored entry of type message; none when it is malformed."""
    message = stored.get("message")
    return (_with_content(message),) if isinstance(message, dict) else ()


def _with_content(message: JsonObject) -> JsonObject:
    if message.get("content") is not None:
        return message
    match message.get("role"):
        case "system":
            return message | {"content": ""}
        case "user" | "assistant" | "toolResult":
            return message | {"content": []}
        case _:
            return message


def _custom_message(entry: Entry) -> JsonObject:
    fields = entry.object
    content = fields.get("content")
    message: JsonObject = {
        "role": "custom",
        "customType": fields.get("customType"),
        "content": [] if content is None else content,
        "display": fields.get("display"),
    }
    if "details" in fields:
        message["details"] = fields["details"]
    message["timestamp"] = milliseconds_of(entry.timestamp) or 0
    return message


def _branch_summary(entry: Entry) -> tuple[JsonObject, ...]:
    summary = entry.object.get("summary")
    if not isinstance(summary, str) or not summary:
        return ()
    message: JsonObject = {
        "role": "branchSummary",
        "summary": summary,
        "fromId": entry.object.get("fromId"),
        "timestamp": milliseconds_of(entry.timestamp) or 0,
    }
    return (message,)


def _compaction(entry: Entry) -> tuple[JsonObject, ...]:
    fields = entry.object
    summary = fields.get("summary")
    message: JsonObject = {
        "role": "compactionSummary",
        "summary": summary if isinstance(summary, str) else "",
        "tokensBefore": fields.get("tokensBefore"),
        "timestamp": milliseconds_of(entry.timestamp) or 0,
    }
    checkpoint = fields.get("systemMessage")
    if not isinstance(checkpoint, dict):
        return (message,)
    return (_with_content(checkpoint), message)


def is_replacement(replacement: object) -> bool:
    """Whether a context edit's replacement is well formed: null, or an object with content."""
    if replacement is None:
        return True
    return isinstance(replacement, dict) and isinstance(replacement.get("content"), str | list)


def edited(
    messages: tuple[JsonObject, ...], replacement: JsonObject | None
) -> tuple[JsonObject, ...]:
    """The messages of an entry after an edit: none for null, else with the content replaced."""
    if replacement is None:
        return ()
    content = replacement["content"]
    return tuple(
        message | {"content": fitted(message["role"], content)}
        if message.get("role") in EDITABLE_ROLES
        else message
        for message in messages
    )


def fitted(role: str, content: str | list[JsonObject]) -> str | list[JsonObject]:
    """A replacement's content in the form its role has: replies and results are always blocks."""
    if isinstance(content, str) and role in BLOCK_ROLES:
        return [text_block(content)]
    return content


def is_kept_from_model(message: JsonObject) -> bool:
    """Whether a message is shell output its user keeps to themselves."""
    return message.get("role") == "bashExecution" and bool(message.get("excludeFromContext"))


def message_for_model(message: JsonObject) -> JsonObject | None:
    """A message in the llm form, None when a model never sees it."""
    role = message.get("role")
    if role in MODEL_ROLES:
        return message
    if role == "bashExecution":
        return None if is_kept_from_model(message) else _as_user(message, shell_text(message))
    if role == "custom":
        content = message.get("content")
        if isinstance(content, str):
            return _as_user(message, content)
        blocks = content if isinstance(content, list) else []
        return {"role": "user", "content": blocks, "timestamp": message.get("timestamp")}
    if role == "compactionSummary":
        return _as_user(message, SUMMARY_OPENING + _text(message, "summary") + SUMMARY_CLOSING)
    if role == "branchSummary":
        return _as_user(message, BRANCH_OPENING + _text(message, "summary") + BRANCH_CLOSING)
    return None


def shell_text(message: JsonObject) -> str:
    """A command the user ran, told to a model. Three backticks in its output are not escaped."""
    output = _text(message, "output")
    text = f"Ran `{_text(message, 'command')}`\n"
    text += f"```\n{output}\n```" if output else "(no output)"
    code = message.get("exitCode")
    if message.get("cancelled"):
        text += "\n\n(command cancelled)"
    elif isinstance(code, int | float) and code != 0:
        text += f"\n\nCommand exited with code {javascript_number(code)}"
    path = _text(message, "fullOutputPath")
    if message.get("truncated") and path:
        text += f"\n\n[Output truncated. Full output: {path}]"
    return text


def _as_user(message: JsonObject, text: str) -> JsonObject:
    return {"role": "user", "content": [text_block(text)], "timestamp": message.get("timestamp")}


def _text(message: JsonObject, name: str) -> str:
    text = message.get(name)
    return text if isinstance(text, str) else ""
