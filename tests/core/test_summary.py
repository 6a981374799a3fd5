"""What is asked of a summariser, what counts as a summary, and what is stored of it."""

from typing import Any

import pytest

from pi_rpc.core.errors import Outside, Stopped
from pi_rpc.core.file_lists import FileLists
from pi_rpc.core.messages import JsonObject, text_block
from pi_rpc.core.summary import (
    NO_HISTORY,
    OWN_DETAILS,
    SECTIONS,
    SUMMARISER,
    PinnedWords,
    Round,
    joined,
    missing_sections,
    notes_of,
    request_messages,
    section_of,
    stored_summary,
    summary_in,
)

NOTES = "\n\n".join(f"## {name}\n- {name} here" for name in SECTIONS)
PINS = [PinnedWords("a1", "Use tabs.\n\n</pinned> is no end")]
FILES = FileLists(["a.py"], ["b.py", "c.py"])


@pytest.mark.parametrize("task", ["history", "turn", "branch"])
@pytest.mark.parametrize("earlier", [None, "old notes"])
def test_a_request_tells_the_conversation_first_and_the_focus_last(
    task: Any, earlier: str | None
) -> None:
    prompt = Round(task, ["[User]: hi"], "the tests").prompt(earlier)
    assert prompt.startswith("<conversation>\n[User]: hi\n</conversation>\n\n")
    assert prompt.endswith("the tests")
    assert ("<earlier-notes>\nold notes\n</earlier-notes>" in prompt) == (earlier is not None)
    assert "\n\n## " in prompt


def test_a_branch_may_be_asked_for_in_the_users_words_alone() -> None:
    prompt = Round("branch", ["x"], "In one line.", replaces_instructions=True).prompt(None)
    assert prompt == "<conversation>\nx\n</conversation>\n\nIn one line."


def test_replacing_by_nothing_asks_as_ever() -> None:
    asked = Round("branch", ["x"], "", replaces_instructions=True).prompt(None)
    assert asked == Round("branch", ["x"]).prompt(None)


def test_a_branch_is_not_asked_for_critical_context() -> None:
    assert "## Critical Context" not in Round("branch", ["x"]).prompt(None)
    assert "## Critical Context" in Round("history", ["x"]).prompt(None)


def test_a_request_is_a_system_prompt_and_one_message() -> None:
    system, user = request_messages("words", 5)
    assert system["content"] == SUMMARISER
    assert user == {"role": "user", "content": [text_block("words")], "timestamp": 5}


def reply(stop: str, *blocks: JsonObject, **fields: Any) -> JsonObject:
    return {"role": "assistant", "content": list(blocks), "stopReason": stop, **fields}


CALL = {"type": "toolCall", "id": "c", "name": "read", "arguments": {}}


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (reply("error", text_block("half"), errorMessage="no"), "error"),
        (reply("length", text_block("half")), "length"),
        (reply("toolUse", text_block("look"), CALL), "tool_call"),
        (reply("stop"), "empty"),
        (reply("stop", text_block(" \n ")), "empty"),
    ],
)
def test_what_is_half_empty_or_a_call_is_no_summary(message: JsonObject, cause: str) -> None:
    with pytest.raises(Outside) as caught:
        summary_in(message)
    assert (caught.value.reason, caught.value.data["cause"]) == ("summary_failed", cause)


def test_a_stopped_summary_is_none() -> None:
    with pytest.raises(Stopped) as caught:
        summary_in(reply("aborted", text_block("half")))
    assert caught.value.reason == "aborted"


def test_a_summary_is_its_text() -> None:
    assert summary_in(reply("stop", text_block(" notes\n"))) == "notes"


def test_missing_sections_are_named() -> None:
    assert missing_sections(NOTES) == []
    assert missing_sections("## goal\nx\n### Progress:\ny") == [
        name for name in SECTIONS if name not in ("Goal", "Progress")
    ]


def test_a_section_ends_at_the_next_of_its_rank() -> None:
    text = "## Progress\n### Done\n- a\n### Blocked\n- b\n\n## Next Steps\n1. c"
    assert section_of(text, "Progress") == "### Done\n- a\n### Blocked\n- b"
    assert section_of(text, "Done") == "- a"
    assert section_of(text, "Next Steps") == "1. c"
    assert section_of(text, "Goal") == ""


def test_pins_and_files_stand_behind_the_notes() -> None:
    assert stored_summary("notes", PINS, FILES) == (
        'notes\n\n<pinned id="a1">\nUse tabs.\n\n</pinned> is no end\n</pinned>\n\n'
        "<read-files>\na.py\n</read-files>\n\n<modified-files>\nb.py\nc.py\n</modified-files>"
    )
    assert stored_summary("notes", [], FileLists([], [])) == "notes"


def test_what_stands_behind_our_notes_is_taken_off_again() -> None:
    stored = {
        "summary": stored_summary(NOTES, PINS, FILES),
        "details": {OWN_DETAILS: {"notesLength": len(NOTES)}},
    }
    assert notes_of(stored) == NOTES


def test_file_lists_behind_the_notes_of_another_program_are_taken_off() -> None:
    assert notes_of({"summary": stored_summary(NOTES, [], FILES), "details": {}}) == NOTES
    assert notes_of({"summary": NOTES}) == NOTES
    assert notes_of({}) == ""


def test_a_split_turn_stands_behind_the_history() -> None:
    assert joined("history", None) == "history"
    assert joined(None, None) == NO_HISTORY
    assert joined("history", "turn").startswith("history\n\n---\n\n")
    assert joined(None, "turn").startswith(NO_HISTORY)
    assert joined(None, "turn").endswith("turn")
