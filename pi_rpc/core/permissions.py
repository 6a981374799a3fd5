"""Whether a call may run: rules by tool and pattern, what the user said before, and the default.

Promises
- A rule that denies wins over everything, also over what was allowed for the session.
- A pattern that allows a shell command holds for every command in the line, and never for a line
  whose effect cannot be read off it (substitutions, redirections).
- The decision is a function of its arguments; asking changes nothing.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from pi_rpc.core.messages import JsonObject

Decision = Literal["ask", "allow", "deny"]

SHELL_TOOLS = frozenset({"bash"})
"""Tools whose subject is a shell command line."""

_SUBJECTS = ("command", "path", "file_path", "pattern", "url")
"""Arguments that say what a call is about, the first that is there."""

_PARTS = re.compile(r"&&|\|\||[;|&\n]")
_OPAQUE = re.compile(r"[`<>]|\$\(|\$\{")


class PermissionRule(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """What holds for calls of a tool, or for those of them that a pattern fits."""

    decision: Decision
    tool: str = "*"
    """A name; `*` and `?` stand for any characters and any one."""
    pattern: str | None = None
    """Of the call's subject: a command, a path. None fits every call."""
    exact: str | None = None
    """The subject itself, as a user allowed it."""


class PermissionPolicy(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """The rules of a session."""

    default: Decision | None = None
    """Where no rule fits. None: ask before a call that may leave a mark, where somebody answers;
    where nobody does, allow."""
    rules: tuple[PermissionRule, ...] = ()
    """The first that fits holds; but one that denies wins wherever it stands."""


def subject_of(arguments: JsonObject) -> str:
    """What a call is about: its command or path; empty when it has neither."""
    for name in _SUBJECTS:
        value = arguments.get(name)
        if isinstance(value, str):
            return value
    return ""


def decision_for(
    policy: PermissionPolicy,
    remembered: Sequence[PermissionRule],
    tool: str,
    arguments: JsonObject,
) -> Decision | None:
    """What the rules say of a call; None when they say nothing and there is no default."""
    subject = subject_of(arguments)
    parts = _parts(subject) if tool in SHELL_TOOLS else [subject]
    every = [*policy.rules, *remembered]
    for part in {subject, *parts}:
        if any(rule.decision == "deny" and _fits(rule, tool, part) for rule in every):
            return "deny"
    if any(rule.exact is not None and _fits(rule, tool, subject) for rule in remembered):
        return "allow"
    opaque = tool in SHELL_TOOLS and _OPAQUE.search(subject) is not None
    said = {_first([*remembered, *policy.rules], tool, part, opaque) for part in parts}
    if "ask" in said:
        return "ask"
    return "allow" if said == {"allow"} else policy.default


def rule_to_remember(tool: str, arguments: JsonObject, decision: Decision) -> PermissionRule:
    """What "for this session" means: a shell command as it stands, any other tool as a whole."""
    exact = subject_of(arguments) if tool in SHELL_TOOLS else None
    return PermissionRule(decision, _literal(tool), exact=exact)


def _first(
    rules: Iterable[PermissionRule], tool: str, subject: str, opaque: bool
) -> Decision | None:
    for rule in rules:
        if opaque and rule.decision == "allow" and rule.pattern is not None:
            continue
        if _fits(rule, tool, subject):
            return rule.decision
    return None


def _fits(rule: PermissionRule, tool: str, subject: str) -> bool:
    if not fits(rule.tool, tool):
        return False
    if rule.exact is not None:
        return rule.exact == subject
    return rule.pattern is None or fits(rule.pattern, subject)


def fits(pattern: str, text: str) -> bool:
    """Whether a pattern of `*` and `?` is the whole text; a backslash takes the next as it is."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    made = "".join({"*": ".*", "?": "."}.get(part, re.escape(part[-1])) for part in parts)
    return re.fullmatch(made, text, re.DOTALL) is not None


def _literal(name: str) -> str:
    return re.sub(r"[*?\\]", lambda found: "\\" + found[0], name)


def _parts(command: str) -> list[str]:
    """The single commands of a line; what stands in quotes is parted too, which only asks more."""
    return [part.strip() for part in _PARTS.split(command) if part.strip()] or [command]
