"""A session as pages for people: Markdown and HTML, an entry at a time.

Promises
- What programs printed can start no markup: fences are longer than any inside them. In HTML
  nothing can.
- Codes for terminals are left out.
- A page stands for itself: it loads nothing.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from pi_rpc.core.codec import encode
from pi_rpc.core.entries import Header
from pi_rpc.core.messages import Block, JsonObject, blocks_of

PageForm = Literal["markdown", "html"]

_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_ESCAPES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;"}
_TICKS = re.compile(r"`{3,}")

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:2em auto;padding:0 1em}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#8881;padding:.6em;border-radius:4px}"
    "h2{font-size:1em;margin:1.6em 0 .3em}.text{white-space:pre-wrap;overflow-wrap:anywhere}"
    "time{opacity:.6;font-weight:normal}"
)


class Part(msgspec.Struct, frozen=True):
    """A piece of an entry: words, or something to be shown as it stands."""

    text: str
    is_verbatim: bool = False
    caption: str = ""


def escape(text: str) -> str:
    """A text as HTML shows it."""
    return text.translate(_ESCAPES)


def plain(text: str) -> str:
    """A text without codes for terminals."""
    return _TERMINAL.sub("", text.replace("\r\n", "\n"))


def page_start(form: PageForm, header: Header, name: str | None) -> str:
    """How a page begins."""
    title = plain(name or header.session_id).replace("\n", " ")
    facts = [("session", header.session_id), ("folder", header.cwd), ("begun", header.timestamp)]
    shown = [(label, plain(fact).replace("\n", " ")) for label, fact in facts if fact]
    if form == "markdown":
        return f"# {title}\n\n" + "".join(f"- {label}: `{fact}`\n" for label, fact in shown)
    listed = "".join(f"<li>{label}: <code>{escape(fact)}</code></li>" for label, fact in shown)
    return (
        '<!doctype html>\n<html><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n<ul>{listed}</ul>\n"
    )


def page_end(form: PageForm) -> str:
    """How a page ends."""
    return "" if form == "markdown" else "</body></html>\n"


def entry_on_page(form: PageForm, stored: JsonObject) -> str:
    """An entry as a page shows it; empty for what is no step of the conversation."""
    title, shown = _shown(stored)
    parts = [part for part in shown if part.text or part.caption]
    if not parts:
        return ""
    stamp = stored.get("timestamp")
    when = plain(stamp) if isinstance(stamp, str) else ""
    section = _section_in_markdown if form == "markdown" else _section_in_html
    return section(_one_line(title), when, parts)


def _section_in_markdown(title: str, when: str, parts: list[Part]) -> str:
    said = [f"\n## {title}" + (f" ({when})" if when else "")]
    for part in parts:
        text = plain(part.text)
        if part.caption:
            said.append(f"*{_one_line(part.caption)}*")
        if part.is_verbatim and text:
            longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=2)
            fence = "`" * (longest + 1)
            said.append(f"{fence}\n{text.rstrip()}\n{fence}")
        elif text:
            said.append(text)
    return "\n\n".join(said) + "\n"


def _section_in_html(title: str, when: str, parts: list[Part]) -> str:
    said = [f"<h2>{escape(title)} <time>{escape(when)}</time></h2>"]
    for part in parts:
        if part.caption:
            said.append(f"<p><em>{escape(_one_line(part.caption))}</em></p>")
        text = escape(plain(part.text))
        if text:
            tag = "<pre>{}</pre>" if part.is_verbatim else '<div class="text">{}</div>'
            said.append(tag.format(text))
    return "\n".join(said) + "\n"


def _one_line(text: str) -> str:
    return plain(text).replace("\n", " ").replace("*", "")


def _shown(stored: JsonObject) -> tuple[str, Iterator[Part]]:
    message = stored.get("message")
    if stored.get("type") == "message" and isinstance(message, dict):
        role = str(message.get("role"))
        titled = _MESSAGES.get(role)
        return (role, _parts(blocks_of(message))) if titled is None else titled(message)
    match stored.get("type"):
        case "custom_message":
            return "Message", _parts(blocks_of(stored))
        case "compaction":
            return "Summary of what came before", iter([Part(_text(stored, "summary"))])
        case "branch_summary":
            return "Summary of another branch", iter([Part(_text(stored, "summary"))])
        case _:
            return "", iter(())


def _result(message: JsonObject) -> tuple[str, Iterator[Part]]:
    failed = " (failed)" if message.get("isError") else ""
    return f"Result of {message.get('toolName')}{failed}", _parts(blocks_of(message), True)


def _shell(message: JsonObject) -> tuple[str, Iterator[Part]]:
    command = Part(_text(message, "command"), True, "command")
    return "Shell", iter([command, Part(_text(message, "output"), True)])


_MESSAGES: dict[str, Callable[[JsonObject], tuple[str, Iterator[Part]]]] = {
    # Prompts are the program's words, not the conversation's.
    "system": lambda message: ("", iter(())),
    "user": lambda message: ("User", _parts(blocks_of(message))),
    "assistant": lambda message: ("Assistant", _parts(blocks_of(message))),
    "toolResult": _result,
    "bashExecution": _shell,
}


def _parts(blocks: list[Block], is_verbatim: bool = False) -> Iterator[Part]:
    for block in blocks:
        match block.get("type"):
            case "text":
                yield Part(_text(block, "text"), is_verbatim)
            case "thinking":
                yield Part(_text(block, "thinking"), False, "thinking")
            case "toolCall":
                arguments = encode(block.get("arguments")).decode("utf-8", "replace")
                yield Part(arguments, True, f"call of {block.get('name')}")
            case "image":
                yield Part("", False, f"an image ({block.get('mimeType')}) is left out")


def _text(fields: JsonObject, name: str) -> str:
    text = fields.get(name)
    return text if isinstance(text, str) else ""
