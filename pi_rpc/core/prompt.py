"""The sections of the system prompt, and what of them must be said again.

The transcript itself carries prompt and tools: the first run writes them whole, a later one only
what differs from what the context already declares.
"""

from collections.abc import Sequence

import msgspec

from pi_rpc.core.messages import JsonObject, ToolDeclaration

PREAMBLE = (
    "You are a coding agent working in the user's folder through the tools below. Look before you "
    "change things, keep changes small, run what you can to check them, and say plainly what you "
    "did, what you did not do and what you are unsure of."
)
"""Who the model is told it is, unless the user's own prompt replaces it."""


class Declared(msgspec.Struct, frozen=True):
    """Prompt sections and tools that hold, by name, in order."""

    sections: dict[str, str]
    tools: dict[str, JsonObject]


def declared_for(cwd: str, tools: Sequence[ToolDeclaration]) -> Declared:
    """What should hold for a runtime in `cwd` with these tools."""
    listed = "\n".join(f"- {tool.name}: {tool.description}" for tool in tools)
    sections = {"preamble": PREAMBLE}
    if listed:
        sections["tools"] = _tagged("tools", listed)
    sections["cwd"] = _tagged("cwd", cwd.replace("\\", "/"))
    return Declared(sections, {tool.name: tool.as_object() for tool in tools})


def _tagged(name: str, text: str) -> str:
    return f"<{name}>\n{text}\n</{name}>"


def system_patch(held: Declared, wanted: Declared, at_ms: int) -> JsonObject | None:
    """The system message that turns what holds into what is wanted; None when nothing differs.

    A tool whose declaration changed is removed and added again; another order is no change.
    """
    sections: JsonObject = {
        name: text for name, text in wanted.sections.items() if held.sections.get(name) != text
    }
    sections |= {name: None for name in held.sections if name not in wanted.sections}
    added = [tool for name, tool in wanted.tools.items() if held.tools.get(name) != tool]
    removed = [
        {"name": name} for name, tool in held.tools.items() if wanted.tools.get(name) != tool
    ]
    if not sections and not added and not removed:
        return None
    message: JsonObject = {"role": "system", "content": "", "timestamp": at_ms}
    if sections:
        message["sections"] = sections
    if added:
        message["toolsAdded"] = added
    if removed:
        message["toolsRemoved"] = removed
    return message


def declared_in(folded: JsonObject | None) -> Declared:
    """What a context declares, out of its folded system messages."""
    if folded is None:
        return Declared({}, {})
    tools = {str(tool.get("name")): tool for tool in folded.get("toolsAdded") or ()}
    return Declared(dict(folded.get("sections") or {}), tools)
