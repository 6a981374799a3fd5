"""The sections of the system prompt, and what of them must be said again.

The transcript itself carries prompt and tools: the first run writes them whole, a later one only
what differs from what the context already declares.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from pi_rpc.core.instructions import context_section, skills_section
from pi_rpc.core.messages import JsonObject, ToolDeclaration

PREAMBLE = (
    "You are a coding agent working in the user's folder through the tools below. Look before you "
    "change things, keep changes small, run what you can to check them, and say plainly what you "
    "did, what you did not do and what you are unsure of."
)
"""Who the model is told it is, unless the user's own prompt replaces it."""


_SECTION_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


class Declared(msgspec.Struct, frozen=True):
    """Prompt sections and tools that hold, by name, in order."""

    sections: dict[str, str]
    tools: dict[str, JsonObject]


class PromptParts(msgspec.Struct, frozen=True):
    """What files add to the prompt."""

    system: str | None = None
    """Instead of the preamble; what is said of tools and rules is then left to it."""
    addendum: str | None = None
    context: tuple[tuple[str, str], ...] = ()
    """Context files: path and text, the most general first."""
    skills: tuple[tuple[str, str, str], ...] = ()
    """Skills the model may read: name, description, path."""


def declared_for(
    cwd: str, tools: Sequence[ToolDeclaration], parts: PromptParts | None = None
) -> Declared:
    """What should hold for a runtime in `cwd` with these tools and files."""
    parts = parts or PromptParts()
    sections = {"preamble": PREAMBLE}
    if parts.system is not None:
        sections["preamble"] = parts.system.strip()
    elif tools:
        listed = "\n".join(f"- {tool.name}: {tool.description}" for tool in tools)
        sections["tools"] = _tagged("tools", listed)
        rules = _rules({tool.name for tool in tools})
        if rules:
            sections["rules"] = _tagged("rules", "\n".join(f"- {rule}" for rule in rules))
    if parts.addendum is not None and parts.addendum.strip():
        sections["addendum"] = _tagged("addendum", parts.addendum.strip())
    if parts.context:
        sections["project_context"] = _tagged("project_context", context_section(parts.context))
    if parts.skills:
        sections["skills"] = _tagged("skills", skills_section(parts.skills))
    sections["cwd"] = _tagged("cwd", cwd.replace("\\", "/"))
    return Declared(sections, {tool.name: tool.as_object() for tool in tools})


def _rules(names: set[str]) -> list[str]:
    rules = []
    if "bash" in names and not names & {"grep", "find", "ls"}:
        rules.append("Look for files and for text in them with bash.")
    if {"read", "bash"} <= names:
        rules.append("Look at a file with read, not with bash.")
    if {"edit", "write"} <= names:
        rules.append("Change a part of a file with edit; write is for new files and whole ones.")
    return rules


def with_sections(wanted: Declared, sections: Mapping[str, str | None]) -> Declared:
    """What is wanted, with some sections given anew and those that are None left out."""
    if not sections:
        return wanted
    own = {
        name: text if name == "preamble" else _tagged(name, text)
        for name, text in sections.items()
        if text is not None
    }
    every = {**wanted.sections, **own}
    left_out = {name for name, text in sections.items() if text is None}
    kept = {name: text for name, text in every.items() if name not in left_out}
    return Declared(kept, wanted.tools)


def is_section_name(name: str) -> bool:
    """Whether a section may have this name: it becomes a tag."""
    return _SECTION_NAME.fullmatch(name) is not None


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


def forced_prompt(
    messages: Sequence[JsonObject], folded: JsonObject | None, prompt: str
) -> list[JsonObject]:
    """The messages of a request with another prompt; the tools in force stay."""
    system: JsonObject = {"role": "system", "content": prompt}
    if folded is not None:
        kept = ("toolsAdded", "timestamp")
        system |= {name: folded[name] for name in kept if name in folded}
    return [system, *(one for one in messages if one.get("role") != "system")]


def declared_in(folded: JsonObject | None) -> Declared:
    """What a context declares, out of its folded system messages."""
    if folded is None:
        return Declared({}, {})
    tools = {str(tool.get("name")): tool for tool in folded.get("toolsAdded") or ()}
    return Declared(dict(folded.get("sections") or {}), tools)
