"""What the offline model says without a script: it does what it is asked, as far as it understands.

Understood are steps like "read README.md", "run `pytest -q`", "write notes.txt: hello", "write
`hello` to notes.txt", "edit notes.txt: replace `a` with `b`", "replace `a` by `b` in notes.txt"
and "list src", several of them joined with "then". One step is one call; what the results since
the last words of the user tell of is done. The last answer says in plain words what came of it.

Promises
- The same context gives the same answer.
- It never says that a thing was done which a result does not tell of.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

import msgspec

from pi_rpc.core.messages import JsonObject, text_of
from pi_rpc.providers.script import ScriptedReply, ScriptedTool

HELP = """\
I am the offline model of pi-rpc. I need no key and no network, and I answer by rule: the same \
words get the same answer. I can be asked to

- read README.md
- run `pytest -q`
- write notes.txt: some text
- edit notes.txt: replace `some` with `more`
- list src

and several of these joined with "then". Everything else I answer with this."""
"""What it says when it understood nothing to do; by its name nobody takes it for more."""

QUOTED_LINES = 6
QUOTED_CHARS = 400
"""How much of a result an answer quotes: enough to see that it is the right one."""


class _Step(msgspec.Struct, frozen=True):
    """One thing asked for, as a call and in words."""

    tool: str
    args: JsonObject
    infinitive: str
    past: str


class _Result(msgspec.Struct, frozen=True):
    text: str
    is_error: bool


def answer(messages: Sequence[JsonObject]) -> ScriptedReply:
    """The next reply in this context: a call for the first step not done, else an account."""
    words, results = _latest(messages)
    steps = _steps_in(words, _tool_names(messages))
    if not steps:
        return ScriptedReply(text=_small_talk(words))
    has_failed = bool(results) and results[-1].is_error
    if len(results) < len(steps) and not has_failed:
        step = steps[len(results)]
        text = f"I will {step.infinitive}."
        return ScriptedReply(text=text, tools=[ScriptedTool(name=step.tool, args=step.args)])
    return ScriptedReply(text=_account(steps, results))


def _latest(messages: Sequence[JsonObject]) -> tuple[str, list[_Result]]:
    """The last words of the user, and the results of calls since."""
    results: list[_Result] = []
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.get("role") == "user":
            return text_of(message), results[::-1]
        if message.get("role") == "toolResult":
            results.append(_Result(text_of(message), bool(message.get("isError"))))
    return "", []


def _tool_names(messages: Sequence[JsonObject]) -> set[str]:
    if not messages or messages[0].get("role") != "system":
        return set()
    declared = messages[0].get("toolsAdded")
    tools = declared if isinstance(declared, list) else []
    return {str(tool.get("name")) for tool in tools if isinstance(tool, dict)}


# Runs of spaces are possessive, and looked back at where one could begin in its middle, so that a
# text of many spaces does not cost its length squared.
_VERBS = "read|show|cat|open|run|execute|write|create|edit|replace|change|list|ls"
_POLITE = (
    "please|now|first|next|finally|also|and|so|ok|okay|hi|hello|can you|could you|would you"
    "|will you|i want you to|i would like you to|i'd like you to|let's|let us"
)


def _name(group: str) -> str:
    return rf'(?:`(?P<{group}_code>[^`]+)`|"(?P<{group}_quoted>[^"]+)"|(?P<{group}_bare>[^\s`"]+?))'


def _text(group: str, bare: str) -> str:
    return (
        rf"(?:```(?:\w*\n)?(?P<{group}_fenced>.*?)```|`(?P<{group}_code>[^`]*)`"
        rf'|"(?P<{group}_quoted>[^"]*)"|(?P<{group}_bare>{bare}))'
    )


_END = r"(?=[\s,;:!?]|[.](?:\s|$)|$)"
_NAMED = _name("path")
_PATH = _NAMED + _END
_FILE = r"(?:(?:the|a|an|new|my|this)\s++)*(?:file\s++)?(?:called\s++|named\s++)?"
_OLD = _text("old", r"[^\s`\"]+")
_NEW = _text("new", r"[^\s`\"]+?") + _END
_REPLACE = rf"(?:replace|change)\s++{_OLD}\s++(?:with|by|to|into)\s++{_NEW}"


@cache
def _pattern(text: str) -> re.Pattern[str]:
    # Compiled at first use: together they would cost the daemon's start some milliseconds.
    return re.compile(text, re.IGNORECASE | re.DOTALL)


def _steps_in(words: str, tools: set[str]) -> list[_Step]:
    steps = []
    for part in _parted(words):
        step = _step(part, tools)
        if step is None:
            # Half a request done is worse than none: what was not understood may change the rest.
            return []
        steps.append(step)
    return steps


def _parted(words: str) -> list[str]:
    # Only a "then" before a thing to do parts two steps: others belong to what is to be written.
    then = _pattern(
        rf"(?<![\s,;.])[\s,;.]++(?:and\s++)?then,?\s++(?=(?:please\s++)?(?:{_VERBS})\b)"
    )
    hidden = [found.span() for found in _pattern(r"```.*?```|`[^`]*`").finditer(words)]
    parts, start = [], 0
    for found in then.finditer(words):
        if any(low < found.start() < high for low, high in hidden):
            continue
        parts.append(words[start : found.start()])
        start = found.end()
    return [*parts, words[start:]]


def _step(part: str, tools: set[str]) -> _Step | None:
    part = part.strip()
    polite = _pattern(rf"(?:(?:{_POLITE})\b[\s,:!.]*)+").match(part)
    part = part[polite.end() :] if polite else part
    for form, made in _FORMS:
        found = _pattern(form).match(part)
        step = made(found, tools) if found else None
        if step is not None:
            return step
    return None


def _part_of(found: re.Match[str], name: str) -> str:
    groups = found.groupdict()
    kinds = ("fenced", "code", "quoted", "bare")
    return next((groups[key] for kind in kinds if groups.get(key := f"{name}_{kind}")), "")


def _is_named(found: re.Match[str]) -> bool:
    """Whether the path looks like one by itself: in quotes, with a suffix or with a folder."""
    bare = found["path_bare"]
    return bare is None or "." in bare or "/" in bare


def _read(found: re.Match[str], tools: set[str]) -> _Step | None:
    path = _part_of(found, "path")
    # "read the room carefully" names no file.
    if not _is_named(found) and found["rest"].strip(" .!?"):
        return None
    return _Step("read", {"path": path}, f"read `{path}`", f"I read `{path}`")


def _run(found: re.Match[str], tools: set[str]) -> _Step:
    command = _part_of(found, "command")
    if found.re.groupindex.get("command_bare"):
        command = command.strip().rstrip(".!")
    return _Step("bash", {"command": command}, f"run `{command}`", f"I ran `{command}`")


def _write(found: re.Match[str], tools: set[str]) -> _Step | None:
    path, text = _part_of(found, "path"), _part_of(found, "text")
    # "write it to disk" and "create a plan: ..." name no file.
    if found["doubt"] and not _is_named(found):
        return None
    args = {"path": path, "content": text}
    return _Step("write", args, f"write `{path}`", f"I wrote `{path}`")


def _edit(found: re.Match[str], tools: set[str]) -> _Step:
    path = _part_of(found, "path")
    edit = {"oldText": _part_of(found, "old"), "newText": _part_of(found, "new")}
    return _Step("edit", {"path": path, "edits": [edit]}, f"edit `{path}`", f"I edited `{path}`")


def _list(found: re.Match[str], tools: set[str]) -> _Step:
    path = _part_of(found, "path") or "."
    if "ls" not in tools:
        quoted = "'" + path.replace("'", "'\\''") + "'"
        args: JsonObject = {"command": f"ls -a -- {quoted}"}
        return _Step("bash", args, f"list `{path}`", f"I listed `{path}`")
    return _Step("ls", {"path": path}, f"list `{path}`", f"I listed `{path}`")


_FORMS: Sequence[tuple[str, Callable[[re.Match[str], set[str]], _Step | None]]] = (
    (rf"(?:edit|change)\s++{_FILE}{_NAMED}(?:\s*+[:,]|\s++and\b)\s*+{_REPLACE}", _edit),
    (rf"{_REPLACE}\s++in\s++{_FILE}{_PATH}", _edit),
    (
        rf"(?:write|create)\s++(?P<doubt>(?:(?:the|a|an|new|my|this)\s++)*){_FILE}{_NAMED}"
        rf"(?:\s*+:\s*+|\s++(?:with|containing)\s++(?:the\s++)?(?:text\s++|contents?\s++)?)"
        rf"{_text('text', '.+')}\s*+$",
        _write,
    ),
    (
        rf"write\s++{_text('text', '.+?')}(?<!\s)\s++(?P<doubt>to|into|in)\s++{_FILE}{_PATH}",
        _write,
    ),
    (
        r"(?:list|ls)(?:\s++(?:the\s++|all\s++)*(?:files|folder|directory|contents)\b)?"
        rf"(?:\s++(?:in|of|under)(?:\s++the)?)?(?:\s++(?:folder\s++|directory\s++)?{_PATH})?"
        r"\s*+[.!?]?\s*+$",
        _list,
    ),
    (r"(?:run|execute)\s++(?:the\s++)?(?:command\s++)?`(?P<command_code>[^`]+)`", _run),
    (r"(?:run|execute)\s++(?!the\b)(?P<command_bare>.+)", _run),
    (rf"(?:read|show|cat|open)\s++(?:me\s++)?{_FILE}{_PATH}(?P<rest>.*)", _read),
)


def _account(steps: Sequence[_Step], results: Sequence[_Result]) -> str:
    told = []
    for step, result in zip(steps, results, strict=False):
        if result.is_error:
            tried = f"I tried to {step.infinitive}, but it failed. The tool said:"
            told.append(f"{tried}\n\n{_quote(result.text)}")
        elif result.text.strip():
            told.append(f"{step.past}. The result:\n\n{_quote(result.text)}")
        else:
            told.append(f"{step.past}. The result was empty.")
    left = [step.infinitive for step in steps[len(results) :]]
    if left:
        told.append(f"So I did not {', nor '.join(left)}.")
    return "\n\n".join(told)


def _quote(text: str) -> str:
    lines = text.strip().split("\n")
    shown = "\n".join(lines[:QUOTED_LINES])
    is_cut = len(lines) > QUOTED_LINES or len(shown) > QUOTED_CHARS
    shown = shown[:QUOTED_CHARS] + ("\n…" if is_cut else "")
    return "\n".join(f"> {line}" for line in shown.split("\n"))


def _small_talk(words: str) -> str:
    said = " ".join(words.split())
    if not said:
        return HELP
    shown = said if len(said) <= 80 else f"{said[:80]}…"
    return f'You said: "{shown}"\n\n{HELP}'
