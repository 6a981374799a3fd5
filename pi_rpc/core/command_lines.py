"""A shell command line taken apart: which commands it runs, as far as that can be read off it.

This judges, it does not run: where a line could do more than its words say, it is called opaque,
and whoever allows commands by pattern then allows nothing. Whoever forbids looks at every spelling.

Promises
- Every command that a POSIX shell would start of a readable line is among its commands.
- A line that is no readable list of simple commands is opaque, never guessed at.
"""

import re
from collections.abc import Iterator

import msgspec

NESTING_MAX = 8
"""How deep commands within commands are followed; deeper ones are looked at as text."""

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "eval"})
"""Commands that run what stands in an argument."""

WRAPPERS = frozenset(
    {
        *("sudo", "doas", "env", "command", "builtin", "exec", "nohup", "nice", "ionice", "time"),
        *("timeout", "stdbuf", "setsid", "xargs", "busybox"),
    }
)
"""Commands that run what stands behind them."""

KEYWORDS = frozenset(
    {
        *("if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case"),
        *("esac", "in", "select", "function", "coproc", "!", "{", "}", "[["),
    }
)
"""Words after which a command stands that is none of a plain list."""

WRAPPED_WORDS_MAX = 12
"""How far behind a wrapper its command may begin."""

STEPS_MAX = 32
"""How many words that may stand before a command are looked behind."""

_MADE_UP = re.compile(r"\$(?:\{[^}]*\}?|\(\)|\w+|[@*#?$!-])")

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_HARMLESS_REDIRECTION = re.compile(
    r"(?:[0-9]*|&)(?:>>?|<)[ \t]*/dev/null(?=[\s;&|)]|$)|[0-9]*>&[0-9](?=[\s;&|)]|$)"
)
_REDIRECTION = re.compile(r"&>>?|<<<|<<-?|<>|>>|>\||[<>]&?")
_BREAKS = re.compile(r"&&|\|\||\|&|[;|&\n()]")


class Command(msgspec.Struct, frozen=True):
    """One command of a line."""

    text: str
    """As it is written, blanks between words made one, harmless redirections left out."""
    spellings: tuple[str, ...]
    """The same without what may stand before it, quotes around its name, or its folder."""
    is_compound: bool = False
    """Whether it begins with a word of the shell's own grammar, or with several names in one."""


class CommandLine(msgspec.Struct, frozen=True):
    """What a line would run."""

    commands: tuple[Command, ...]
    is_opaque: bool
    """Whether it may do more than its commands say: substitutions, variables, redirections into
    files, compound commands, quotes that do not end."""


def command_line(line: str, depth: int = 0) -> CommandLine:
    """Take a line apart."""
    scan = _Scan(line)
    commands = [command for text in scan.parts for command in _commands(text, depth)]
    if depth < NESTING_MAX:
        for inner in scan.inner:
            commands += command_line(inner, depth + 1).commands
    is_opaque = scan.is_opaque or any(one.is_compound for one in commands)
    return CommandLine(tuple(commands), is_opaque)


class _Scan:
    """A walk over a line: where its commands part, and what stands within them."""

    def __init__(self, line: str) -> None:
        self.parts: list[str] = []
        self.inner: list[str] = []
        """What stands in substitutions."""
        self.is_opaque = False
        self._line = line.replace("\\\n", " ")
        self._text: list[str] = []
        self._walk()

    def _walk(self) -> None:
        line, at = self._line, 0
        while at < len(line):
            sign = line[at]
            if sign == "\\":
                self._text.append(line[at : at + 2])
                at += 2
            elif sign == "'":
                at = self._quoted(at)
            elif sign == '"':
                at = self._double_quoted(at)
            elif sign in "$`" or line[at : at + 2] in ("<(", ">("):
                at = self._substituted(at)
            elif sign == "#" and (at == 0 or line[at - 1] in " \t\n;&|("):
                end = line.find("\n", at)
                at = len(line) if end < 0 else end
            elif harmless := self._harmless(at):
                self._text.append(" ")
                at = harmless
            elif operator := _REDIRECTION.match(line, at):
                self.is_opaque = True
                self._text.append(f" {operator[0]} ")
                at = operator.end()
            elif found := _BREAKS.match(line, at):
                self.is_opaque = self.is_opaque or sign in "()"
                self._end_part()
                at = found.end()
            else:
                self._text.append(sign)
                at += 1
        self._end_part()

    def _harmless(self, at: int) -> int | None:
        # A number belongs to a redirection only where a word begins with it.
        if at and self._line[at] in "0123456789&" and self._line[at - 1] not in " \t":
            return None
        found = _HARMLESS_REDIRECTION.match(self._line, at)
        return None if found is None else found.end()

    def _quoted(self, at: int) -> int:
        end = self._line.find("'", at + 1)
        if end < 0:
            self.is_opaque = True
            end = len(self._line)
        self._text.append(self._line[at : end + 1])
        return end + 1

    def _double_quoted(self, at: int) -> int:
        self._text.append('"')
        at += 1
        while at < len(self._line):
            sign = self._line[at]
            if sign == '"':
                self._text.append('"')
                return at + 1
            if sign == "\\":
                self._text.append(self._line[at : at + 2])
                at += 2
            elif sign in "$`":
                at = self._substituted(at)
            else:
                self._text.append(sign)
                at += 1
        self.is_opaque = True
        return at

    def _substituted(self, at: int) -> int:
        """Note what stands in a substitution; where it ends. A variable is one sign long."""
        self.is_opaque = True
        line = self._line
        if line[at] == "`":
            end = line.find("`", at + 1)
            end = len(line) if end < 0 else end
            self.inner.append(line[at + 1 : end])
        elif line[at : at + 2] in ("$(", "<(", ">("):
            end = _closing(line, at + 1)
            self.inner.append(line[at + 2 : end])
        else:
            self._text.append("$")
            return at + 1
        # What it gives is part of a word, or several; nobody can say which.
        self._text.append("$()")
        return end + 1

    def _end_part(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        if text.strip(" \t\n"):
            self.parts.append(text)


def _closing(line: str, at: int) -> int:
    """The bracket that closes the one at a place; the end of the line when none does."""
    depth, quote = 0, ""
    while at < len(line):
        sign = line[at]
        if sign == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if not depth:
                return at
        at += 1
    return at


def _commands(text: str, depth: int) -> Iterator[Command]:
    words = split_words(text)
    spellings = list(dict.fromkeys(_spellings(words)))
    is_compound = bool(words) and (words[0][1] in KEYWORDS or "{" in words[0][0])
    yield Command(" ".join(raw for raw, _ in words), tuple(spellings), is_compound)
    if depth < NESTING_MAX:
        for inner in _run_by_argument(words):
            yield from command_line(inner, depth + 1).commands


def split_words(text: str) -> list[tuple[str, str]]:
    """The words of a command: each as it is written, and without its quotes."""
    words: list[tuple[str, str]] = []
    raw: list[str] = []
    plain: list[str] = []
    quote, at = "", 0
    while at < len(text):
        sign = text[at]
        if sign == "\\" and quote != "'":
            raw.append(text[at : at + 2])
            plain.append(text[at + 1 : at + 2] or "\\")
            at += 2
            continue
        if sign == quote:
            quote = ""
            raw.append(sign)
        elif not quote and sign in "'\"":
            quote = sign
            raw.append(sign)
        elif not quote and sign in " \t\n":
            if raw:
                words.append(("".join(raw), "".join(plain)))
                raw, plain = [], []
        else:
            raw.append(sign)
            plain.append(sign)
        at += 1
    if raw:
        words.append(("".join(raw), "".join(plain)))
    return words


def _spellings(words: list[tuple[str, str]]) -> Iterator[str]:
    """A command without what stands before it, step by step."""
    rest = words
    for _ in range(STEPS_MAX):
        if not rest:
            return
        yield " ".join(raw for raw, _ in rest)
        name = rest[0][1]
        own = name.rpartition("/")[2] or name
        yield " ".join([own, *(plain for _, plain in rest[1:])])
        # As if variables and substitutions gave nothing, which they may.
        bare = _MADE_UP.sub("", own)
        if bare != own:
            yield " ".join([*([bare] if bare else []), *(plain for _, plain in rest[1:])])
        if "{" in bare and "," in bare:
            yield " ".join([*re.split(r"[{},]+", bare), *(plain for _, plain in rest[1:])]).strip()
        if _REDIRECTION.fullmatch(name):
            rest = rest[2:]
        elif name in KEYWORDS or _ASSIGNMENT.match(name) or _is_descriptor(rest):
            rest = rest[1:]
        elif own in WRAPPERS:
            # Which of its words are options and their values only the wrapper knows.
            for start in range(2, min(len(rest), WRAPPED_WORDS_MAX)):
                name = rest[start][1]
                own = name.rpartition("/")[2] or name
                yield " ".join([own, *(plain for _, plain in rest[start + 1 :])])
            rest = rest[1:]
        else:
            places = [
                place
                for place, (_, plain) in enumerate(rest)
                if plain in ("-exec", "-execdir", "-ok", "-okdir")
            ]
            rest = rest[places[0] + 1 :] if own == "find" and places else []


def _is_descriptor(words: list[tuple[str, str]]) -> bool:
    """Whether a command begins with the number of a descriptor that is redirected."""
    return len(words) > 1 and words[0][1].isdigit() and bool(_REDIRECTION.fullmatch(words[1][1]))


def _run_by_argument(words: list[tuple[str, str]]) -> Iterator[str]:
    """Lines that a shell is given as an argument."""
    for place, (_, plain) in enumerate(words):
        name = plain.rpartition("/")[2]
        if name == "eval":
            yield " ".join(plain for _, plain in words[place + 1 :])
            return
        if name in SHELLS:
            for option, (_, line) in zip(words[place + 1 :], words[place + 2 :], strict=False):
                if re.fullmatch(r"-[a-z]*c[a-z]*", option[1]):
                    yield line
                    return


def suggested_pattern(line: CommandLine) -> str | None:
    """A pattern for commands like this one; None where none could be allowed with a good heart."""
    if line.is_opaque or len(line.commands) != 1:
        return None
    words = split_words(line.commands[0].text)
    name = words[0][1].rpartition("/")[2]
    if words[0][0] != words[0][1] or name in WRAPPERS | SHELLS | _TOO_MUCH:
        return None
    if _ASSIGNMENT.match(name):
        return None
    if len(words) > 1 and re.fullmatch(r"[a-z][a-z0-9-]*", words[1][0]):
        return f"{words[0][0]} {words[1][0]} *"
    return f"{words[0][0]} *" if len(words) > 1 else words[0][0]


_TOO_MUCH = frozenset(
    {
        *("rm", "rmdir", "mv", "dd", "chmod", "chown", "kill", "curl", "wget", "ssh", "scp"),
        *("python", "python3", "node", "perl", "ruby", "php", "find", "awk", "source", "."),
    }
)
"""Names whose arguments may do anything."""
