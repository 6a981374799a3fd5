"""A session as pages for people."""

from typing import Any

import pytest

from pi_rpc.core.entries import Header
from pi_rpc.core.pages import PageForm, entry_on_page, page_end, page_start, plain

HEADER = Header("s1", "2026-01-02T03:04:05.678Z", "/w/<x>")


def said(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, **fields}
    return {"type": "message", "id": "a", "timestamp": "T", "message": message}


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def test_a_conversation_as_markdown() -> None:
    call = {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "x"}}
    thought = {"type": "thinking", "thinking": "hm"}
    entries = [
        said("user", [*text("Hi *there*"), {"type": "image", "mimeType": "image/png"}]),
        said("assistant", [thought, *text("Yes."), call]),
        said("toolResult", text("a\n```\nb\n"), toolName="read", isError=True),
        said("bashExecution", None, command="ls", output="x"),
        {"type": "compaction", "summary": "so far"},
        {"type": "label", "label": "x"},
        said("system", text("prompt")),
        said("user", []),
    ]
    page = page_start("markdown", HEADER, "A name") + "".join(
        entry_on_page("markdown", each) for each in entries
    )
    assert page == (
        "# A name\n\n- session: `s1`\n- folder: `/w/<x>`\n- begun: `2026-01-02T03:04:05.678Z`\n"
        "\n## User (T)\n\nHi *there*\n\n*an image (image/png) is left out*\n"
        "\n## Assistant (T)\n\n*thinking*\n\nhm\n\nYes.\n\n*call of read*\n\n"
        '```\n{"path":"x"}\n```\n'
        "\n## Result of read (failed) (T)\n\n````\na\n```\nb\n````\n"
        "\n## Shell (T)\n\n*command*\n\n```\nls\n```\n\n```\nx\n```\n"
        "\n## Summary of what came before\n\nso far\n"
    )
    assert page_end("markdown") == ""


def test_nothing_that_was_said_becomes_markup_in_html() -> None:
    evil = (
        "<script>alert('x')</script>\x1b]8;;http://evil\x07link\x1b]8;;\x07 \"&\x1b[31mred\x1b[0m"
    )
    entries = [
        said("user", text(evil)),
        said("toolResult", text(evil), toolName=evil),
        said("assistant", [{"type": "toolCall", "name": evil, "arguments": {evil: evil}}]),
        said(evil, text(evil)),
        {"type": "branch_summary", "summary": evil, "timestamp": evil},
    ]
    page = page_start("html", Header(evil, evil, evil), evil)
    page += "".join(entry_on_page("html", each) for each in entries) + page_end("html")
    assert "<script" not in page
    assert "\x1b" not in page
    assert "href" not in page
    assert "&lt;script&gt;alert" in page
    assert page.startswith("<!doctype html>") and page.endswith("</html>\n")


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_odd_entries_are_left_out_or_shown_as_they_are(form: PageForm) -> None:
    for stored in ({}, {"type": 7}, {"type": "message"}, {"type": "message", "message": 7}):
        assert entry_on_page(form, stored) == ""
    assert "\ud83d" in entry_on_page(form, said("user", text("\ud83d")))
    assert entry_on_page(form, said("user", "text alone")) != ""
    assert entry_on_page(form, said("assistant", [{"type": "text", "text": None}])) == ""


def test_codes_for_terminals_go_and_words_stay() -> None:
    assert (
        plain("\x1b[1;31mred\x1b[0m\tand\r\nmore\x00\x9b \x1b]0;title\x1b\\x") == "red\tand\nmore x"
    )
    assert plain("\x1b]8;;unfinished") == ""
