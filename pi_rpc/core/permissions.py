"""Whether a call may run: rules by tool and pattern, what the user said before, and the default.

Promises
- A rule that denies wins over everything, also over what was allowed for the session; it holds for
  every spelling of a command and every name of a file.
- A pattern that allows a shell command holds for every command in the line, and never for a line
  whose effect cannot be read off it (substitutions, variables, redirections into files).
- A pattern that allows a path holds for where the path leads, links followed.
- The decision is a function of its arguments; asking changes nothing.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from pi_rpc.core.command_lines import CommandLine, command_line, suggested_pattern
from pi_rpc.core.messages import JsonObject

Decision = Literal["ask", "allow", "deny"]

COMMAND_ARGUMENT = "command"
"""An argument of this name is a shell command line, whoever's tool it is."""

PATH_ARGUMENTS = ("path", "file_path", "filePath")
"""Arguments that name a file or folder."""

_SUBJECTS = (COMMAND_ARGUMENT, *PATH_ARGUMENTS, "pattern", "url")
"""Arguments that say what a call is about, the first that is there."""


class PermissionRule(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """What holds for calls of a tool, or for those of them that a pattern fits."""

    decision: Decision
    tool: str = "*"
    """A name; `*` and `?` stand for any characters and any one."""
    pattern: str | None = None
    """Of the call's subject: a command, or a path as seen from the folder, an absolute one where it
    lies elsewhere. ` *` at the end fits nothing, too. None fits every call."""
    exact: str | None = None
    """The subject itself, as a user allowed it."""
    inside: bool = False
    """Whether it holds for paths inside the folder alone."""


class PermissionPolicy(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """The rules of a session."""

    default: Decision | None = None
    """Where no rule fits. None: ask before a call that may leave a mark, where somebody answers;
    where nobody does, allow."""
    outside: Decision | None = None
    """The same for calls that lead out of the folder, reading ones too; None: as any other."""
    rules: tuple[PermissionRule, ...] = ()
    """The first that fits holds; but one that denies wins wherever it stands."""


class Place(msgspec.Struct, frozen=True):
    """Where a path leads, and where the session stands."""

    path: str
    """Absolute, links followed."""
    folder: str
    """The session's, links followed."""
    home: str = ""

    @property
    def is_inside(self) -> bool:
        """Whether it is the folder or lies in it."""
        return self.path == self.folder or self.path.startswith(self._prefix)

    @property
    def _prefix(self) -> str:
        return self.folder.rstrip("/") + "/"

    @property
    def shown(self) -> str:
        """The path as seen from the folder; absolute when it lies elsewhere."""
        if self.path == self.folder:
            return "."
        return self.path.removeprefix(self._prefix) if self.is_inside else self.path


class Subject(msgspec.Struct, frozen=True):
    """What a call is about."""

    text: str
    """Its command or path as it was given; empty when it has neither."""
    line: CommandLine | None = None
    """Of a command."""
    place: Place | None = None
    """Of a path, where the tool can say where it leads."""

    @property
    def is_outside(self) -> bool:
        """Whether it leads out of the session's folder, as far as is known."""
        return self.place is not None and not self.place.is_inside

    @property
    def shown(self) -> str:
        """For people: where a path leads, a command as it is."""
        return self.text if self.place is None else self.place.shown


def path_given(arguments: JsonObject) -> str | None:
    """The path that a call names in its arguments, unless it is a command."""
    if isinstance(arguments.get(COMMAND_ARGUMENT), str):
        return None
    named = (arguments.get(name) for name in PATH_ARGUMENTS)
    return next((path for path in named if isinstance(path, str)), None)


def subject_of(arguments: JsonObject, place: Place | None = None) -> Subject:
    """What a call is about, by its arguments and where its path leads."""
    for name in _SUBJECTS:
        value = arguments.get(name)
        if isinstance(value, str):
            line = command_line(value) if name == COMMAND_ARGUMENT else None
            return Subject(value, line, place)
    return Subject("", None, place)


def decision_for(
    policy: PermissionPolicy, remembered: Sequence[PermissionRule], tool: str, subject: Subject
) -> Decision | None:
    """What the rules say of a call; None when they say nothing and there is no default."""
    every = [*policy.rules, *remembered]
    spellings = _spellings(subject)
    if any(rule.decision == "deny" and _fits_any(rule, tool, subject, spellings) for rule in every):
        return "deny"
    if any(
        rule.exact is not None and _fits_any(rule, tool, subject, _exact(subject))
        for rule in remembered
    ):
        return "allow"
    ordered = [*remembered, *policy.rules]
    said = {_first(ordered, tool, subject, part) for part in _parts(subject)}
    if "ask" in said:
        return "ask"
    if said == {"allow"}:
        return "allow"
    return (policy.outside or policy.default) if subject.is_outside else policy.default


class _Part(msgspec.Struct, frozen=True):
    """One command of a line, or the whole of anything else."""

    as_it_is: tuple[str, ...]
    spellings: tuple[str, ...]


def _parts(subject: Subject) -> list[_Part]:
    if subject.line is not None and subject.line.commands:
        return [_Part((one.text,), one.spellings) for one in subject.line.commands]
    return [_Part(_exact(subject), _spellings(subject))]


def _exact(subject: Subject) -> tuple[str, ...]:
    if subject.place is None:
        return (subject.text,)
    return (subject.place.shown, subject.place.path)


def _spellings(subject: Subject) -> tuple[str, ...]:
    if subject.line is not None:
        commands = [one for command in subject.line.commands for one in command.spellings]
        return (subject.text, *commands)
    return (subject.text, *_exact(subject))


def _first(
    rules: Iterable[PermissionRule], tool: str, subject: Subject, part: _Part
) -> Decision | None:
    is_opaque = subject.line is not None and subject.line.is_opaque
    for rule in rules:
        if rule.decision == "allow":
            if is_opaque and rule.pattern is not None:
                continue
            spellings = part.as_it_is
        else:
            spellings = part.spellings
        if _fits_any(rule, tool, subject, spellings):
            return rule.decision
    return None


def _fits_any(rule: PermissionRule, tool: str, subject: Subject, spellings: Iterable[str]) -> bool:
    if not fits(rule.tool, tool) or (rule.inside and subject.is_outside):
        return False
    if rule.exact is not None:
        return rule.exact in spellings
    if rule.pattern is None:
        return True
    pattern = rule.pattern
    if pattern.startswith("~/") and subject.place is not None:
        pattern = _literal(subject.place.home) + pattern[1:]
    return any(fits(pattern, one) for one in spellings)


def rule_to_remember(
    tool: str, subject: Subject, decision: Decision, pattern: str | None = None
) -> PermissionRule:
    """What "for this session" means.

    What the user's own pattern fits, where there is one. Else a shell command as it stands, a path
    that leads elsewhere as it stands, any other allowed call as far as it stays in the folder, and
    of any other rejected tool all.
    """
    name = _literal(tool)
    if pattern is not None:
        return PermissionRule(decision, name, pattern)
    if subject.line is not None:
        return PermissionRule(decision, name, exact=subject.text)
    if subject.place is None or decision == "deny":
        return PermissionRule(decision, name)
    if subject.is_outside:
        return PermissionRule(decision, name, exact=subject.place.path)
    return PermissionRule(decision, name, inside=True)


def is_fitting(pattern: str, tool: str, subject: Subject, decision: Decision) -> bool:
    """Whether a pattern a user gave decides the very call it was given for."""
    policy = PermissionPolicy(rules=(PermissionRule(decision, _literal(tool), pattern),))
    return decision_for(policy, (), tool, subject) == decision


def pattern_to_suggest(subject: Subject) -> str | None:
    """A pattern for calls like this one; None where none could be allowed with a good heart."""
    if subject.line is not None:
        return suggested_pattern(subject.line)
    if subject.place is None or not subject.place.is_inside:
        return None
    folder = subject.place.shown.rpartition("/")[0]
    return f"{_literal(folder)}/*" if folder else None


def fits(pattern: str, text: str) -> bool:
    """Whether a pattern of `*` and `?` is the whole text; a backslash takes the next as it is."""
    if pattern.endswith(" *") and fits(pattern[:-2], text):
        return True
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    made = "".join({"*": ".*", "?": "."}.get(part, re.escape(part[-1])) for part in parts)
    return re.fullmatch(made, text, re.DOTALL) is not None


def _literal(name: str) -> str:
    return re.sub(r"[*?\\]", lambda found: "\\" + found[0], name)
