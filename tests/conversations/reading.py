"""Conversation files: a text into the steps a player plays.

A line begins with what it is; a line that begins with a blank goes on with the one above.

    # words for people; the first is the sentence the conversation proves
    > {"id": 1, "method": "…"}     sent; neighbouring lines leave in one write
    >> any text                    sent as it stands
    < {"id": 1, "result": {…}}     must come back; order within a block is free
    ! method, or {…}, or *         nothing else of this in the block
    @directive words               done to the world around (see `playing.py`)

A block of `<` and `!` ends at a blank line or at any other line. Lines of a second client, on a
host of its own, begin with `2`.
"""

import json
import re
from pathlib import Path
from typing import Any

import msgspec

_LINE = re.compile(r"(?P<who>[12]?)(?P<mark>>>|>|<|!|@)\s*(?P<rest>.*)", re.DOTALL)


class Send(msgspec.Struct, frozen=True):
    """Lines for one write."""

    line: int
    who: int
    messages: list[Any]
    """Decoded messages; text that is sent as it stands is a `str`."""


class Expect(msgspec.Struct, frozen=True):
    """What must come back before the conversation goes on."""

    line: int
    who: int
    patterns: list[Any]
    nothing_else: list[Any]
    """Patterns that no other message up to the last one matched may fit."""


class Directive(msgspec.Struct, frozen=True):
    """Something done beside the wire."""

    line: int
    name: str
    rest: str


Step = Send | Expect | Directive


class Conversation(msgspec.Struct, frozen=True):
    """One file, read."""

    name: str
    sentence: str
    steps: list[Step]


def read(path: Path) -> Conversation:
    """The conversation in a file. Raises ValueError, with the line, for what cannot be read."""
    sentence = ""
    steps: list[Step] = []
    is_open = False
    for number, text in _joined(path.read_text(encoding="utf-8").split("\n")):
        if not text:
            is_open = False
        elif text.startswith("#"):
            sentence = sentence or text.strip("# ")
        else:
            found = _LINE.fullmatch(text)
            if found is None:
                raise ValueError(f"{path.name}:{number}: {text!r} is no line of a conversation")
            try:
                step = _step(number, int(found["who"] or 1), found["mark"], found["rest"].strip())
            except ValueError as error:
                raise ValueError(f"{path.name}:{number}: {error}") from error
            if is_open and steps and _grown(steps[-1], step):
                continue
            steps.append(step)
            is_open = True
    return Conversation(path.stem, sentence, steps)


def _joined(lines: list[str]) -> list[tuple[int, str]]:
    joined: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if line[:1] == " " and joined and joined[-1][1]:
            first, text = joined[-1]
            joined[-1] = (first, f"{text} {line.strip()}")
        else:
            joined.append((number, line.rstrip()))
    return joined


def _step(line: int, who: int, mark: str, rest: str) -> Step:
    match mark:
        case ">":
            return Send(line, who, [json.loads(rest)])
        case ">>":
            return Send(line, who, [rest])
        case "<":
            return Expect(line, who, [json.loads(rest)], [])
        case "!":
            return Expect(line, who, [], [_pattern(rest)])
        case _:
            name, _, words = rest.partition(" ")
            return Directive(line, name, words.strip())


def _pattern(text: str) -> Any:
    if text.startswith("{"):
        return json.loads(text)
    return {} if text == "*" else {"method": text}


def _grown(last: Step, step: Step) -> bool:
    """Whether a step joins the one above it."""
    match last, step:
        case Send(), Send() if last.who == step.who:
            last.messages.extend(step.messages)
        case Expect(), Expect() if last.who == step.who:
            last.patterns.extend(step.patterns)
            last.nothing_else.extend(step.nothing_else)
        case _:
            return False
    return True
