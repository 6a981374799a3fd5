"""How the offline model summarises: by rule, so that the same conversation gives the same notes.

It quotes requests and prohibitions of the user, names what was called and which calls failed, and
takes over what earlier notes say. It understands nothing, and says so where notes need a judgement.

Promises
- The notes have every section they are asked for, in order, and do not grow from round to round
  beyond a bound.
- Nothing is said to be done that no call in the conversation or the earlier notes tell of.
"""

import re
from collections.abc import Iterable, Sequence

from pi_rpc.core.messages import JsonObject, text_of
from pi_rpc.core.summary import SUMMARISER, section_of

ITEMS_MAX = 8
"""How many lines a section has at most; the newest stay."""

LINE_CHARS = 120
"""How much of one request or call is quoted."""

NOTHING = "(none)"

_TURN_NAMES = {
    "Goal": "Original Request",
    "Progress": "Progress So Far",
    "Critical Context": "Context Needed",
}
_CONVERSATION = re.compile(r"<conversation>\n(.*)\n</conversation>", re.DOTALL)
_EARLIER = re.compile(r"<earlier-notes>\n(.*)\n</earlier-notes>", re.DOTALL)
_ASKED_SECTION = re.compile(r"^## (.+)\n\(", re.MULTILINE)
_PART = re.compile(
    r"^\[(User|Assistant|Assistant tool calls|Assistant failed|Tool result|Tool error)\]: ",
    re.MULTILINE,
)
_FORBIDS = re.compile(r"\b(?:never|do not|don't|must not|mustn't|forbidden)\b", re.IGNORECASE)
_CHANGED = re.compile(r"<modified-files>\n(.*?)\n</modified-files>", re.DOTALL)
_PATH = re.compile(r'\b(read|write|edit)\((?:.*?, )?path="((?:[^"\\]|\\.)+)"')


def asks_for_summary(messages: Sequence[JsonObject]) -> bool:
    """Whether a request is one for a summary."""
    return bool(messages) and messages[0].get("content") == SUMMARISER


def notes_on(messages: Sequence[JsonObject]) -> str:
    """The notes a request for a summary is answered with."""
    prompt = text_of(messages[-1])
    told = _CONVERSATION.search(prompt)
    parts = _parts(told[1] if told else "")
    earlier = _EARLIER.search(prompt)
    sections = _sections(parts, earlier[1] if earlier else "")
    # What is asked for stands behind what is told, which may hold headings of its own.
    wanted = prompt[max(prompt.rfind(tag) for tag in ("</conversation>", "</earlier-notes>")) :]
    asked = _ASKED_SECTION.findall(wanted) or ["Goal", "Progress", "Next Steps"]
    return "\n\n".join(f"## {name}\n{sections.get(name, NOTHING)}" for name in asked)


def _parts(conversation: str) -> list[tuple[str, str]]:
    split = _PART.split(conversation)[1:]
    return [(label, said.strip()) for label, said in zip(split[::2], split[1::2], strict=True)]


def _sections(parts: list[tuple[str, str]], earlier: str) -> dict[str, str]:
    requests = [_line(said) for label, said in parts if label == "User"]
    forbidden = [f"Forbidden: {_line(line)}" for line in _forbidding(parts)]
    done = [f"[verified] {_line(call)}" for call in _calls(parts)]
    failed = [f"[verified] failed: {_line(said)}" for label, said in parts if "rror" in label]
    blocked = [*failed, *(_line(said) for label, said in parts if label == "Assistant failed")]
    files = [f"[verified] {verb}: {path}" for verb, path in _files(parts)]

    def listed(items: list[str], *within: str) -> str:
        # Notes on a turn, taken into account for the first time, say the same below other headings.
        of_turn = _held(earlier, _TURN_NAMES[within[0]]) if within[0] in _TURN_NAMES else []
        return _list([*_held(earlier, *within), *of_turn, *items])

    progress = "\n\n".join(
        f"### {name}\n{items}"
        for name, items in (
            ("Done", listed(done, "Progress", "Done")),
            ("In Progress", _list(requests[-1:])),
            ("Blocked", _list([*_held(earlier, "Progress", "Blocked"), *blocked])),
        )
    )
    goal = listed(requests, "Goal")
    return {
        "Goal": goal,
        "Constraints & Preferences": listed(forbidden, "Constraints & Preferences"),
        "Progress": progress,
        "Key Decisions": listed([], "Key Decisions"),
        "Next Steps": f"1. Go on with: {requests[-1]}" if requests else listed([], "Next Steps"),
        "Critical Context": listed(files, "Critical Context"),
        "Changed Files": "\n".join(_CHANGED.findall(earlier)) or NOTHING,
        "Original Request": goal,
        "Progress So Far": _list([*_held(earlier, "Progress So Far"), *done, *blocked]),
        "Context Needed": listed(files, "Context Needed"),
    }


def _forbidding(parts: list[tuple[str, str]]) -> Iterable[str]:
    for label, said in parts:
        if label == "User":
            yield from (line for line in said.split("\n") if _FORBIDS.search(line))


def _calls(parts: list[tuple[str, str]]) -> Iterable[str]:
    return (said for label, said in parts if label == "Assistant tool calls")


def _files(parts: list[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    for said in _calls(parts):
        yield from _PATH.findall(said)


def _held(earlier: str, *within: str) -> list[str]:
    text = earlier
    for name in within:
        text = section_of(text, name)
    lines = (line.strip() for line in text.split("\n"))
    return [line[2:] for line in lines if line.startswith("- ")]


def _list(items: list[str]) -> str:
    # A later mention replaces an earlier one, so the newest of each stays.
    kept = list(dict.fromkeys(reversed(items)))[:ITEMS_MAX][::-1]
    return "\n".join(f"- {item}" for item in kept) or NOTHING


def _line(said: str) -> str:
    one = " ".join(said.split())
    return one if len(one) <= LINE_CHARS else f"{one[:LINE_CHARS]}…"
