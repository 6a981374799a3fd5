"""System messages folded into one: the prompt and the tools in force.

System messages are patches: each adds words, sets or deletes named sections, adds or removes tools.
A fold replays them in order and gives the one message that says the same.

Promises
- Folding a fold changes nothing, so a checkpoint stands for all it was made of.
- The order of sections is the one every reader of the file sees, JavaScript ones included.
"""

import re
from collections.abc import Iterable
from typing import Any

from pi_rpc.core.messages import JsonObject, texts_of

ARRAY_INDEX_MAX = 2**32 - 2
"""The greatest property name JavaScript moves to the front of an object, by number."""

_ARRAY_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")


def is_array_index(name: str) -> bool:
    """Whether JavaScript would reorder a property of this name; such names are never written."""
    return _ARRAY_INDEX.fullmatch(name) is not None and int(name) <= ARRAY_INDEX_MAX


def in_javascript_order(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields as JavaScript lists them: integer names ascending, then the rest as they are."""
    integers = sorted((name for name in fields if is_array_index(name)), key=int)
    if not integers:
        return fields
    ordered = {name: fields[name] for name in integers}
    return ordered | fields


class _State:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.sections: dict[str, str] = {}
        self.tools: dict[str, JsonObject] = {}
        self.timestamp: Any = None
        self.is_empty = True

    def take(self, message: JsonObject) -> None:
        if self.is_empty:
            self.is_empty = False
            self.timestamp = message.get("timestamp")
        text = _content_text(message.get("content"))
        if text:
            self.texts.append(text)
        self._take_sections(message.get("sections"))
        self._take_tools(message)

    def _take_sections(self, sections: object) -> None:
        if not isinstance(sections, dict):
            return
        for name, text in in_javascript_order(sections).items():
            # A name that is there keeps its place; one set again after a delete goes to the end.
            if text is None:
                self.sections.pop(name, None)
            elif isinstance(text, str):
                self.sections[name] = text

    def _take_tools(self, message: JsonObject) -> None:
        for tool in _objects(message.get("toolsRemoved")):
            self.tools.pop(_name(tool), None)
        for tool in _objects(message.get("toolsAdded")):
            self.tools[_name(tool)] = tool

    def message(self) -> JsonObject:
        folded: JsonObject = {"role": "system", "content": "\n\n".join(self.texts)}
        if self.sections:
            folded["sections"] = in_javascript_order(self.sections)
        if self.tools:
            folded["toolsAdded"] = list(self.tools.values())
        folded["timestamp"] = self.timestamp
        return folded


def fold(messages: Iterable[JsonObject], honour_replace: bool = True) -> JsonObject | None:
    """The one system message that says what these say; None when none of them is a system message.

    Messages of other roles are passed over. A message with `replace: true` drops all that came
    before it, unless `honour_replace` is false: Pi 1.6 does not know the flag and merges.
    """
    state = _State()
    for message in messages:
        if message.get("role") != "system":
            continue
        if honour_replace and message.get("replace") is True:
            state = _State()
        state.take(message)
    return None if state.is_empty else state.message()


def rendered_prompt(folded: JsonObject) -> str:
    """The words of a folded system message: content, then the sections, a blank line between."""
    sections = folded.get("sections")
    texts = [_content_text(folded.get("content"))]
    if isinstance(sections, dict):
        texts += [text for text in in_javascript_order(sections).values() if isinstance(text, str)]
    return "\n\n".join(text for text in texts if text)


def _content_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(texts_of(block for block in content if isinstance(block, dict)))
    return ""


def _objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _name(tool: JsonObject) -> str:
    name = tool.get("name")
    return name if isinstance(name, str) else ""
