"""Instructions in files: frontmatter, skills and prompt templates, and what is made of them.

Frontmatter is read as the few lines people write there: `name: value`, quoted or not, text over
several lines with `|` or `>`. Anything deeper is kept out, not guessed at.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

NAME_CHARS_MAX = 64
DESCRIPTION_CHARS_MAX = 1024
SUMMARY_CHARS = 60
"""Of a template without a description its first line stands in, this long."""

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*)|[ \t]*)")
_PLACEHOLDER = re.compile(
    r"\$\{(?P<name>\d+|@|ARGUMENTS):-(?P<default>[^}]*)\}"
    r"|\$\{@:(?P<first>\d+)(?::(?P<length>\d+))?\}"
    r"|\$(?P<number>\d+)"
    r"|\$(?P<all>@|ARGUMENTS)"
)
_ARGUMENT = re.compile(
    r"\s*(?:'(?P<single>(?:\\'|[^'])*)'(?=\s|$)|\"(?P<double>(?:\\\"|[^\"])*)\"(?=\s|$)"
    r"|(?P<plain>\S+))",
    re.DOTALL,
)


class FrontmatterError(ValueError):
    """What stands between the marks is not what we read."""


class Document(msgspec.Struct, frozen=True):
    """A file with frontmatter, or without."""

    fields: dict[str, str]
    body: str


def document_from(text: str) -> Document:
    """Split a text into its frontmatter and what follows. Raises FrontmatterError."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.startswith("---"):
        return Document({}, text)
    lines = text.split("\n")
    for number, line in enumerate(lines[1:], 1):
        if line.startswith("---"):
            return Document(_fields(lines[1:number]), "\n".join(lines[number + 1 :]))
    return Document({}, text)


def _fields(lines: Sequence[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _KEY.fullmatch(line)
        if found is None:
            raise FrontmatterError(f"line {at + 1} is no field: {line.strip()[:60]!r}")
        deeper = at
        while deeper < len(lines) and (not lines[deeper].strip() or lines[deeper][0] in " \t"):
            deeper += 1
        below, at = lines[at:deeper], deeper
        fields[found[1]] = _value((found[2] or "").strip(), below)
    return fields


def _value(given: str, below: Sequence[str]) -> str:
    block = re.fullmatch(r"([|>])[+-]?\d?", given)
    if block:
        margin = min((len(one) - len(one.lstrip()) for one in below if one.strip()), default=0)
        parts = [one[margin:].rstrip() for one in below]
        return ("\n" if block[1] == "|" else " ").join(parts).strip()
    if given[:1] in ("'", '"'):
        quoted = re.fullmatch(r"'((?:''|[^'])*)'|\"((?:\\.|[^\"\\])*)\"", given)
        if quoted is None:
            raise FrontmatterError("a quote is not closed")
        if quoted[1] is not None:
            return quoted[1].replace("''", "'")
        return re.sub(r"\\(.)", lambda one: {"n": "\n", "t": "\t"}.get(one[1], one[1]), quoted[2])
    if given[:1] in ("[", "{", "&", "*", "!"):
        # A list or an anchor: a value of a field we do not know, at most.
        if given[0] in "[{" and given[-1] not in "]}":
            raise FrontmatterError("a bracket is not closed")
        return given
    folded = " ".join([given, *(one.strip() for one in below if one.strip())]).strip()
    return re.sub(r"(^|\s)#.*$", "", folded).strip()


def name_problem(name: str) -> str | None:
    """What is wrong with the name of a skill; such a skill is loaded all the same."""
    if len(name) > NAME_CHARS_MAX:
        return f"the name is longer than {NAME_CHARS_MAX} characters"
    if not _NAME.fullmatch(name):
        return "a name is small letters, digits and single hyphens between them"
    return None


def summary_of(document: Document) -> str:
    """The description of a template: its own, or the beginning of what it says."""
    own = document.fields.get("description", "").strip()
    if own:
        return own
    first = next((line.strip() for line in document.body.split("\n") if line.strip()), "")
    return first if len(first) <= SUMMARY_CHARS else f"{first[:SUMMARY_CHARS]}..."


def is_hidden(document: Document) -> bool:
    """Whether a skill is for the user alone."""
    return document.fields.get("disable-model-invocation", "").lower() in ("true", "yes", "on")


def split_command(text: str) -> tuple[str, str] | None:
    """Name and rest of a text that begins with a slash; None when it names nothing.

    The name ends at any white space.
    """
    found = re.match(r"/(\S+)(?:\s(.*))?$", text, re.DOTALL)
    return None if found is None else (found[1], found[2] or "")


def arguments_from(text: str) -> list[str]:
    """The arguments of a template.

    Quotes count at the beginning of an argument only; inside, a backslash takes away the meaning of
    that quote alone. A quote that is not closed is a character like any other.
    """
    found = []
    for one in _ARGUMENT.finditer(text):
        if one["single"] is not None:
            found.append(one["single"].replace("\\'", "'"))
        elif one["double"] is not None:
            found.append(one["double"].replace('\\"', '"'))
        else:
            found.append(one["plain"])
    return found


def expanded(body: str, arguments: Sequence[str]) -> str:
    """A template with its arguments put in; what they hold is not expanded again."""
    joined = " ".join(arguments)

    def value(found: re.Match[str]) -> str:
        if found["number"] is not None:
            return _nth(arguments, int(found["number"]))
        if found["all"] is not None:
            return joined
        if found["first"] is not None:
            first = max(0, int(found["first"]) - 1)
            length = found["length"]
            last = None if length is None else first + int(length)
            return " ".join(arguments[first:last])
        name = found["name"]
        held = _nth(arguments, int(name)) if name.isdigit() else joined
        return held or found["default"]

    return _PLACEHOLDER.sub(value, body.strip())


def _nth(arguments: Sequence[str], number: int) -> str:
    return arguments[number - 1] if 1 <= number <= len(arguments) else ""


def skill_call(name: str, path: str, body: str, rest: str) -> str:
    """What a call of a skill says to the model."""
    folder = path.rpartition("/")[0]
    block = (
        f'<skill name="{escaped(name)}" location="{escaped(path)}">\n'
        f"Relative paths in this skill start from {folder}.\n\n{body.strip()}\n</skill>"
    )
    return f"{block}\n\n{rest.strip()}" if rest.strip() else block


def context_section(files: Iterable[tuple[str, str]]) -> str:
    """Context files by path and text, each in a block of its own."""
    return "\n\n".join(
        f'<instructions path="{escaped(path)}">\n{text.strip()}\n</instructions>'
        for path, text in files
    )


def skills_section(skills: Iterable[tuple[str, str, str]]) -> str:
    """Skills by name, description and place, for a model that can read files."""
    listed = "\n".join(
        f"<skill>\n<name>{escaped(name)}</name>\n<description>{escaped(description)}</description>"
        f"\n<location>{escaped(path)}</location>\n</skill>"
        for name, description, path in skills
    )
    return (
        "Each skill below is a file of instructions for some kind of task. When a task fits a "
        "description, read that file before you begin; relative paths in it start from its folder."
        f"\n\n{listed}"
    )


def escaped(text: str) -> str:
    """A text as XML has it."""
    for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(mark, entity)
    return text
