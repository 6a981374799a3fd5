"""Which files a stretch of history read and which it changed, by its calls.

Promises
- A call whose result says that it failed names no file, under rules of our own; Pi counts it.
- Lists are sorted as JavaScript sorts text, by UTF-16 code units, so that they read alike.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from pi_rpc.core.codec import typed_lines
from pi_rpc.core.messages import JsonObject, tool_calls_of

READS = "read"
CHANGES = frozenset({"write", "edit"})


class FileLists(msgspec.Struct, frozen=True):
    """Paths as calls named them; what was changed is not listed as read."""

    read: list[str]
    modified: list[str]

    def with_more(self, other: "FileLists") -> "FileLists":
        """The files of both."""
        modified = {*self.modified, *other.modified}
        return FileLists(_sorted({*self.read, *other.read} - modified), _sorted(modified))

    def as_details(self) -> JsonObject:
        """The form summaries are stored with."""
        return {"readFiles": self.read, "modifiedFiles": self.modified}


class _Arguments(msgspec.Struct, gc=False):
    path: Any = None


class _Call(msgspec.Struct, tag="toolCall", gc=False):
    id: Any = None
    name: Any = None
    arguments: _Arguments | None = None


class _Text(msgspec.Struct, tag="text", gc=False):
    pass


class _Thinking(msgspec.Struct, tag="thinking", gc=False):
    pass


class _Image(msgspec.Struct, tag="image", gc=False):
    pass


class _Message(msgspec.Struct, rename="camel", gc=False):
    role: str
    content: list[_Call | _Text | _Thinking | _Image] | str | None = None
    tool_call_id: Any = None
    is_error: Any = None
    nested_calls: Any = None


class _Line(msgspec.Struct, gc=False):
    type: Any = None
    message: _Message | None = None


_lines = msgspec.json.Decoder(_Line)


class FileCount:
    """Gathers files from calls and from what earlier summaries carry.

    Messages are to come in their order: a call counts unless the next result for it says that it
    failed.
    """

    def __init__(self, counts_failed: bool = False) -> None:
        self._counts_failed = counts_failed
        self._read: set[str] = set()
        self._modified: set[str] = set()
        self._asked: dict[str, tuple[str, object]] = {}
        """By id, names and paths of calls whose results did not come yet."""

    def add_details(self, details: object) -> None:
        """Take over the lists an earlier summary is stored with."""
        if isinstance(details, dict):
            self._read |= _paths(details.get("readFiles"))
            self._modified |= _paths(details.get("modifiedFiles"))

    def add_messages(self, messages: Iterable[JsonObject]) -> None:
        """Take in the calls and results among messages."""
        for message in messages:
            if message.get("role") == "assistant":
                for call in tool_calls_of(message):
                    self.add_call(call.id, call.name, call.arguments.get("path"))
            elif message.get("role") == "toolResult":
                called, has_failed = message.get("toolCallId"), message.get("isError")
                self.add_result(called, has_failed, message.get("nestedCalls"))

    def add_lines(self, lines: bytes) -> bool:
        """Take in stored lines that say what their messages say; whether all had a usual shape.

        If not, nothing was taken in: they are to be decoded whole.
        """
        typed = typed_lines(_lines, lines)
        if None in typed:
            return False
        for line in typed:
            message = None if line is None or line.type != "message" else line.message
            if message is None:
                continue
            if message.role == "toolResult":
                self.add_result(message.tool_call_id, message.is_error, message.nested_calls)
            elif message.role == "assistant" and isinstance(message.content, list):
                for block in message.content:
                    if type(block) is _Call:
                        self._add_typed(block)
        return True

    def _add_typed(self, call: _Call) -> None:
        if isinstance(call.id, str) and isinstance(call.name, str):
            path = None if call.arguments is None else call.arguments.path
            self.add_call(call.id, call.name, path)

    def add_call(self, call_id: str, name: str, path: object) -> None:
        """Take in one call, by the argument that names its file."""
        if name != READS and name not in CHANGES:
            return
        if self._counts_failed:
            self._add(name, path)
            return
        # An id that comes again is another call: the one before it was never answered.
        if (before := self._asked.get(call_id)) is not None:
            self._add(*before)
        self._asked[call_id] = (name, path)

    def add_result(self, call_id: object, has_failed: object, nested_calls: object) -> None:
        """Take in what came of a call, as it is stored."""
        asked = self._asked.pop(call_id, None) if isinstance(call_id, str) else None
        if asked is not None and not has_failed:
            self._add(*asked)
        if nested_calls is not None:
            self._add_nested(nested_calls)

    def _add_nested(self, nested: object) -> None:
        calls = nested.get("calls") if isinstance(nested, dict) else nested
        for call in calls if isinstance(calls, list) else ():
            if not isinstance(call, dict):
                continue
            arguments = call.get("arguments")
            if not self._counts_failed and call.get("status", "ok") != "ok":
                continue
            self._add(call.get("name"), arguments.get("path") if isinstance(arguments, dict) else 0)

    def _add(self, name: object, path: object) -> None:
        if not isinstance(name, str) or not isinstance(path, str) or not path:
            return
        if name == READS:
            self._read.add(path)
        elif name in CHANGES:
            self._modified.add(path)

    def lists(self) -> FileLists:
        """What was gathered so far."""
        for name, path in self._asked.values():
            self._add(name, path)
        return FileLists(_sorted(self._read - self._modified), _sorted(self._modified))


def _paths(value: object) -> set[str]:
    return {path for path in value if isinstance(path, str)} if isinstance(value, list) else set()


def _sorted(paths: set[str]) -> list[str]:
    return sorted(paths, key=lambda path: path.encode("utf-16-be", "surrogatepass"))
