"""Which files a stretch of history read and which it changed, by its calls.

Promises
- A call whose result says that it failed names no file, under rules of our own; Pi counts it.
- Lists are sorted as JavaScript sorts text, by UTF-16 code units, so that they read alike.
"""

from collections.abc import Iterable, Sequence

import msgspec

from pi_rpc.core.messages import JsonObject, tool_calls_of

READS = "read"
CHANGES = frozenset({"write", "edit"})


class FileLists(msgspec.Struct, frozen=True):
    """Paths as calls named them; what was changed is not listed as read."""

    read: list[str]
    modified: list[str]

    def as_details(self) -> JsonObject:
        """The form summaries are stored with."""
        return {"readFiles": self.read, "modifiedFiles": self.modified}


class FileCount:
    """Gathers files from calls and from what earlier summaries carry."""

    def __init__(self, counts_failed: bool = False) -> None:
        self._counts_failed = counts_failed
        self._read: set[str] = set()
        self._modified: set[str] = set()

    def add_details(self, details: object) -> None:
        """Take over the lists an earlier summary is stored with."""
        if isinstance(details, dict):
            self._read |= _paths(details.get("readFiles"))
            self._modified |= _paths(details.get("modifiedFiles"))

    def add_messages(self, messages: Sequence[JsonObject]) -> None:
        """Take in the calls among messages; their results must be among them to be known."""
        failed = set() if self._counts_failed else _failed_calls(messages)
        for message in messages:
            if message.get("role") == "assistant":
                for call in tool_calls_of(message):
                    if call.id not in failed:
                        self._add(call.name, call.arguments)
            elif message.get("role") == "toolResult":
                self._add_nested(message)

    def _add_nested(self, message: JsonObject) -> None:
        nested = message.get("nestedCalls")
        calls = nested.get("calls") if isinstance(nested, dict) else nested
        for call in calls if isinstance(calls, list) else ():
            if not isinstance(call, dict):
                continue
            arguments = call.get("arguments")
            if not self._counts_failed and call.get("status", "ok") != "ok":
                continue
            self._add(call.get("name"), arguments if isinstance(arguments, dict) else {})

    def _add(self, name: object, arguments: JsonObject) -> None:
        path = arguments.get("path")
        if not isinstance(path, str) or not path:
            return
        if name == READS:
            self._read.add(path)
        elif name in CHANGES:
            self._modified.add(path)

    def lists(self) -> FileLists:
        """What was gathered so far."""
        return FileLists(_sorted(self._read - self._modified), _sorted(self._modified))


def _failed_calls(messages: Iterable[JsonObject]) -> set[str]:
    return {
        str(message.get("toolCallId"))
        for message in messages
        if message.get("role") == "toolResult" and message.get("isError")
    }


def _paths(value: object) -> set[str]:
    return {path for path in value if isinstance(path, str)} if isinstance(value, list) else set()


def _sorted(paths: set[str]) -> list[str]:
    return sorted(paths, key=lambda path: path.encode("utf-16-be", "surrogatepass"))
