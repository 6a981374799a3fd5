"""The offline model writes notes by rule: well formed, bounded, and nothing that was not there."""

from pi_rpc.core.summary import (
    SECTIONS,
    TURN_SECTIONS,
    Round,
    missing_sections,
    request_messages,
    section_of,
)
from pi_rpc.providers.offline_summary import ITEMS_MAX, asks_for_summary, notes_on

CONVERSATION = """[User]: Repair parser.py.
Never touch the fixtures.

[Assistant tool calls]: read(path="parser.py"); write(path="out.txt", content="x")

[Tool error]: no such folder

[User]: And then?"""


def notes(conversation: str, earlier: str | None = None, task: str = "history") -> str:
    prompt = Round(task, [conversation]).prompt(earlier)  # type: ignore[arg-type]
    return notes_on(request_messages(prompt, 1))


def test_a_request_for_a_summary_is_known_by_its_system_prompt() -> None:
    assert asks_for_summary(request_messages("x", 1))
    assert not asks_for_summary([{"role": "system", "content": "be good"}])
    assert not asks_for_summary([])


def test_notes_have_every_section_and_quote_what_was_said() -> None:
    made = notes(CONVERSATION)
    assert missing_sections(made) == []
    assert "- Repair parser.py. Never touch the fixtures." in section_of(made, "Goal")
    assert "Forbidden: Never touch the fixtures." in made
    assert "[verified] failed: no such folder" in section_of(made, "Blocked")
    assert "read: parser.py" in made and "write: out.txt" in made
    assert section_of(made, "Next Steps") == "1. Go on with: And then?"


def test_earlier_notes_are_taken_over() -> None:
    made = notes("[User]: New.", notes(CONVERSATION))
    assert "Repair parser.py." in made and "New." in section_of(made, "Goal")
    assert [made.count(f"## {name}\n") for name in SECTIONS] == [1] * len(SECTIONS)


def test_notes_do_not_grow_without_end() -> None:
    made = None
    for turn in range(50):
        made = notes(f"[User]: Question {turn}: never do {turn}.", made)
    assert made is not None
    assert section_of(made, "Goal").count("\n") == ITEMS_MAX - 1
    assert "Question 49" in made and "Question 3:" not in made


def test_notes_on_a_turn_have_their_own_headings() -> None:
    assert missing_sections(notes(CONVERSATION, None, "turn"), "turn") == []
    assert all(f"## {name}" in notes("", None, "turn") for name in TURN_SECTIONS)
