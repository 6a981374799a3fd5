"""What is written: the header, and every kind of entry a session file may hold.

An entry is an open JSON object: the format lets any program add fields and types, and a rewrite
must give them back. So an entry keeps its stored line and its decoded object as they came; `Kind`
is the small closed view that decisions are made on, and the functions below make the objects we
write.

Promises
- A `Body` turned into a line and read back is the same object.
- Field order of what we write is the one Pi writes: type, id, parentId, timestamp, then the rest.
"""

from enum import IntEnum
from typing import Any

import msgspec

from pi_rpc.core.messages import Block, JsonObject

FORMAT_VERSION = 3
"""The session format written here; newer files are read as they are."""

CURSOR = "pi_rpc.cursor"
WORKSPACE = "pi_rpc.workspace"
PROJECTION = "pi_rpc.projection"
FORK = "pi_rpc.fork"
PIN = "pi_rpc.pin"
UNPARSED = "pi_rpc.unparsed"


class Kind(IntEnum):
    """What a row is, as one byte: the entry type, refined by role or by our own custom types."""

    UNKNOWN = 0
    SYSTEM = 1
    USER = 2
    ASSISTANT = 3
    TOOL_RESULT = 4
    BASH_EXECUTION = 5
    OTHER_MESSAGE = 6
    MODEL_CHANGE = 7
    THINKING_LEVEL_CHANGE = 8
    USAGE = 9
    COMPACTION = 10
    CONTEXT_EDIT = 11
    BRANCH_SUMMARY = 12
    CUSTOM = 13
    CUSTOM_MESSAGE = 14
    LABEL = 15
    SESSION_INFO = 16
    CURSOR = 17
    WORKSPACE = 18
    PROJECTION = 19
    FORK = 20
    PIN = 21


MESSAGE_KINDS = frozenset(range(Kind.SYSTEM, Kind.OTHER_MESSAGE + 1))
"""Rows whose entry type is `message`."""

CUSTOM_KINDS = frozenset(
    {Kind.CUSTOM, Kind.CURSOR, Kind.WORKSPACE, Kind.PROJECTION, Kind.FORK, Kind.PIN}
)
"""Rows whose entry type is `custom`."""

KIND_OF_ROLE = {
    "system": Kind.SYSTEM,
    "user": Kind.USER,
    "assistant": Kind.ASSISTANT,
    "toolResult": Kind.TOOL_RESULT,
    "bashExecution": Kind.BASH_EXECUTION,
}

KIND_OF_TYPE = {
    "model_change": Kind.MODEL_CHANGE,
    "thinking_level_change": Kind.THINKING_LEVEL_CHANGE,
    "usage": Kind.USAGE,
    "compaction": Kind.COMPACTION,
    "context_edit": Kind.CONTEXT_EDIT,
    "branch_summary": Kind.BRANCH_SUMMARY,
    "custom": Kind.CUSTOM,
    "custom_message": Kind.CUSTOM_MESSAGE,
    "label": Kind.LABEL,
    "session_info": Kind.SESSION_INFO,
}

KIND_OF_CUSTOM_TYPE = {
    CURSOR: Kind.CURSOR,
    WORKSPACE: Kind.WORKSPACE,
    PROJECTION: Kind.PROJECTION,
    FORK: Kind.FORK,
    PIN: Kind.PIN,
}


def kind_of(entry_type: str, role: object = None, custom_type: object = None) -> Kind:
    """The kind of an entry of this type; `role` counts for messages, `custom_type` for customs."""
    if entry_type == "message":
        if isinstance(role, str):
            return KIND_OF_ROLE.get(role, Kind.OTHER_MESSAGE)
        return Kind.OTHER_MESSAGE
    if entry_type == "custom" and isinstance(custom_type, str):
        return KIND_OF_CUSTOM_TYPE.get(custom_type, Kind.CUSTOM)
    return KIND_OF_TYPE.get(entry_type, Kind.UNKNOWN)


_TYPE_OF_KIND = {kind: name for name, kind in KIND_OF_TYPE.items()}


def stand_in(kind: Kind) -> JsonObject:
    """What an entry says whose line cannot be read: its type, where its kind tells it."""
    if kind in MESSAGE_KINDS:
        return {"type": "message"}
    if kind in CUSTOM_KINDS:
        return {"type": "custom"}
    return {"type": _TYPE_OF_KIND.get(kind, "")}


class Header(msgspec.Struct, frozen=True):
    """The first line of a session file."""

    session_id: str
    timestamp: str
    """ISO 8601 UTC with milliseconds and `Z`."""
    cwd: str
    """Empty when an old file names none."""
    parent_session: str | None = None
    version: int = FORMAT_VERSION
    fields: JsonObject = {}
    """The whole stored object, unknown fields included; empty for a header we make."""

    def as_object(self) -> JsonObject:
        """The object to store, unknown fields of an opened file included."""
        made: JsonObject = {
            "type": "session",
            "version": self.version,
            "id": self.session_id,
            "timestamp": self.timestamp,
            "cwd": self.cwd,
        }
        if self.parent_session is not None:
            made["parentSession"] = self.parent_session
        return made | {name: value for name, value in self.fields.items() if name not in made}


class Body(msgspec.Struct, frozen=True):
    """What an entry says, before it has an id, a parent and a time."""

    type: str
    fields: JsonObject

    @property
    def kind(self) -> Kind:
        """The kind of the row this body becomes."""
        message = self.fields.get("message")
        role = message.get("role") if isinstance(message, dict) else None
        return kind_of(self.type, role, self.fields.get("customType"))


class Entry(msgspec.Struct, frozen=True):
    """One row of a session, decoded."""

    row: int
    """Place in file order, counted from 0 without the header."""
    kind: Kind
    id: str
    parent_id: str | None
    """Parent in the tree; None for a root and for an orphan."""
    object: JsonObject
    """The stored object, unknown fields included."""

    @property
    def type(self) -> str:
        """The stored entry type."""
        return str(self.object.get("type", ""))

    @property
    def timestamp(self) -> str:
        """The stored time as text; empty when it is no text."""
        stamp = self.object.get("timestamp")
        return stamp if isinstance(stamp, str) else ""

    @property
    def message(self) -> JsonObject | None:
        """The message of a `message` entry; None when there is none or it is no object."""
        message = self.object.get("message")
        return message if isinstance(message, dict) else None


def entry_object(body: Body, entry_id: str, parent_id: str | None, timestamp: str) -> JsonObject:
    """The object to store for `body`, fields in the order Pi writes them."""
    return {
        "type": body.type,
        "id": entry_id,
        "parentId": parent_id,
        "timestamp": timestamp,
        **body.fields,
    }


def message_body(message: JsonObject) -> Body:
    """A finished message of role system, user, assistant, toolResult or bashExecution."""
    return Body("message", {"message": message})


def model_change(provider: str, model_id: str) -> Body:
    """The model that answers from here on."""
    return Body("model_change", {"provider": provider, "modelId": model_id})


def thinking_level_change(level: str) -> Body:
    """The thinking level from here on."""
    return Body("thinking_level_change", {"thinkingLevel": level})


def label(target_id: str, text: str | None) -> Body:
    """A label on `target_id`; None clears it."""
    return Body("label", {"targetId": target_id} | ({"label": text} if text else {}))


def session_info(name: str) -> Body:
    """The session's name; the empty name clears it."""
    return Body("session_info", {"name": name})


def context_edit(target_id: str, replacement: JsonObject | None) -> Body:
    """Another content for an entry in the context, or none at all."""
    return Body("context_edit", {"targetId": target_id, "replacement": replacement})


def custom(custom_type: str, data: Any = None) -> Body:
    """State of a program, never shown to the model."""
    return Body("custom", {"customType": custom_type} | ({} if data is None else {"data": data}))


class AddedMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message for the model beside the user's, stored as an entry of type custom_message."""

    custom_type: str
    content: str | list[Block]
    display: bool = True
    """Whether editors show it."""
    details: JsonObject | None = None

    def as_message(self, at_ms: int) -> JsonObject:
        """The message in the session form."""
        return {"role": "custom", **_custom_fields(self), "timestamp": at_ms}


def custom_message(added: AddedMessage) -> Body:
    """A message beside the user's as it is stored."""
    return Body("custom_message", _custom_fields(added))


def _custom_fields(added: AddedMessage) -> JsonObject:
    fields: JsonObject = {
        "customType": added.custom_type,
        "content": added.content,
        "display": added.display,
    }
    if added.details is not None:
        fields["details"] = added.details
    return fields


def body_of_message(message: JsonObject) -> Body:
    """The entry a message of the session form is stored as; a custom one has a type of its own."""
    if message["role"] != "custom":
        return message_body(message)
    fields = {name: held for name, held in message.items() if name not in ("role", "timestamp")}
    return Body("custom_message", fields)


def note_taken() -> Body:
    """The mark that somebody took note of what was done on routes that were left; moves nothing."""
    return custom(CURSOR, {"v": 1, "op": "acknowledge"})


def cursor(leaf: str | None, source: str | None, target: str | None, environment: Any) -> Body:
    """The durable mark that the leaf was moved to `leaf` (also its parentId)."""
    data = {"v": 1, "leaf": leaf, "from": source, "target": target, "op": "navigate"}
    return custom(CURSOR, data | ({} if environment is None else {"env": environment}))
