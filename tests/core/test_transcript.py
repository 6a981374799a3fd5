"""A conversation as text for a summariser: whole where it matters, in pieces where it must be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.codec import decode, encode
from pi_rpc.core.context_messages import stored_messages
from pi_rpc.core.file_lists import FileCount
from pi_rpc.core.messages import JsonObject, text_block
from pi_rpc.core.moments import finished
from pi_rpc.core.tokens import cjk_units, estimate, tokens_of_units, utf16_units
from pi_rpc.core.transcript import (
    first_units,
    newest_within,
    parts_of,
    parts_of_lines,
    pieces,
    serialised,
    shortened,
)


def user(text: str) -> JsonObject:
    return {"role": "user", "content": [text_block(text)]}


def result(text: str, is_error: bool = False) -> JsonObject:
    content = [text_block(text)]
    return {"role": "toolResult", "toolCallId": "c", "content": content, "isError": is_error}


def test_each_part_has_its_label() -> None:
    call = {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "é.txt", "n": 1}}
    reply: JsonObject = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            text_block("One."),
            text_block("Two."),
            call,
        ],
    }
    said = [
        {"role": "system", "content": "be good"},
        user("Read."),
        reply,
        result("north"),
        result("gone", is_error=True),
        user(""),
        {"role": "bashExecution", "command": "ls", "output": "x", "excludeFromContext": True},
        {"role": "branchSummary", "summary": "left"},
    ]
    assert serialised(said).split("\n\n")[:5] == [
        "[User]: Read.",
        "[Assistant]: One.\nTwo.",
        '[Assistant tool calls]: read(path="é.txt", n=1)',
        "[Tool result]: north",
        "[Tool error]: gone",
    ]
    assert serialised(said).endswith("left</summary>")


def test_a_result_is_cut_and_says_by_how_much() -> None:
    assert shortened("x" * 2000) == "x" * 2000
    assert shortened("x" * 2001) == "x" * 2000 + "\n\n[... 1 more characters truncated]"


def test_a_character_across_the_edge_is_left_out_whole() -> None:
    text = "x" * 1999 + "😀" + "y"
    assert shortened(text) == "x" * 1999 + "\n\n[... 2 more characters truncated]"


def test_words_of_user_and_model_are_never_cut() -> None:
    assert serialised([user("x" * 5000)]) == "[User]: " + "x" * 5000


@given(st.text(max_size=50), st.integers(0, 60))
def test_a_beginning_is_as_long_as_it_may_be(text: str, units: int) -> None:
    beginning = first_units(text, units)
    assert text.startswith(beginning)
    length = utf16_units(beginning)
    assert length <= units
    if beginning != text:
        assert length + utf16_units(text[len(beginning)]) > units


def measure(text: str) -> int:
    return tokens_of_units(cjk_units(text))


WORDS = st.text(st.sampled_from("ab \n读😀\ud83d\\"), max_size=6)
BLOCKS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": WORDS}),
    st.fixed_dictionaries({"type": st.just("image"), "data": WORDS}),
    st.fixed_dictionaries(
        {"type": st.just("toolCall"), "id": WORDS, "name": WORDS},
        optional={"arguments": st.dictionaries(WORDS, st.one_of(WORDS, st.integers()), max_size=2)},
    ),
    st.fixed_dictionaries({"type": WORDS, "text": st.one_of(WORDS, st.none())}),
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "toolResult", "custom", "bashExecution"])},
    optional={
        "content": st.one_of(WORDS, st.lists(BLOCKS, max_size=4), st.none()),
        "isError": st.one_of(st.booleans(), st.none()),
        "stopReason": st.sampled_from(["stop", "error"]),
        "errorMessage": st.one_of(WORDS, st.none()),
        "usage": st.dictionaries(WORDS, WORDS, max_size=1),
    },
)


@given(MESSAGES)
def test_a_stored_line_says_what_its_message_says(message: JsonObject) -> None:
    line = encode({"type": "message", "id": "a", "message": message})
    [found] = parts_of_lines(line, FileCount())
    [decoded] = stored_messages(decode(line))
    assert found is None or found == parts_of(decoded)


def test_a_line_as_every_writer_has_it_is_told_without_being_decoded_whole() -> None:
    call = {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "读.py"}}
    said = {"role": "assistant", "content": [{"type": "text", "text": "Hm."}, call], "usage": {}}
    line = encode({"type": "message", "id": "a", "message": said})
    assert list(parts_of_lines(line, FileCount())) == [
        ["[Assistant]: Hm.", '[Assistant tool calls]: read(path="读.py")']
    ]


@given(
    st.lists(st.text(st.sampled_from("ab \n读😀"), max_size=400), max_size=8), st.integers(8, 90)
)
def test_pieces_hold_every_word_and_none_is_too_large(texts: list[str], tokens_max: int) -> None:
    told = (parts_of(user(text)) for text in texts)
    parted = [piece for piece in pieces(told, measure, tokens_max) if piece is not None]
    found = ["\n\n".join(piece) for piece in parted]
    assert all(measure(piece) <= tokens_max for piece in found)
    whole = "".join(f"[User]: {text}" for text in texts if text)
    assert "".join(found).replace("\n\n", "") == whole.replace("\n\n", "") or "\n" in whole
    assert sorted("".join(found).replace("\n", "")) == sorted(whole.replace("\n", ""))


@given(
    st.lists(st.text(st.sampled_from("ab \n读😀"), max_size=60), max_size=30), st.integers(8, 90)
)
def test_pieces_are_as_large_as_they_may_be(texts: list[str], tokens_max: int) -> None:
    told = [part for text in texts for part in parts_of(user(text)) if measure(part) < tokens_max]
    sizes: list[list[int]] = [[]]
    for part in told:
        size = measure(part) + 1
        if sizes[-1] and sum(sizes[-1]) + size > tokens_max:
            sizes.append([])
        sizes[-1].append(size)
    found = [piece for piece in pieces([told], measure, tokens_max) if piece is not None]
    assert [len(piece) for piece in found] == [len(one) for one in sizes if one]


def test_between_the_stretches_of_a_long_conversation_others_have_their_turn() -> None:
    told = [["[User]: a"], ["[User]: b"], []]
    assert list(pieces(told, measure, 1000)) == [None, None, None, ["[User]: a", "[User]: b"]]


def ten(name: str) -> JsonObject:
    return user(name + "x" * (40 - len(name)))


def summary(units: int) -> JsonObject:
    return {"role": "branchSummary", "summary": "s" * units}


def names(messages: list[JsonObject]) -> list[str]:
    return [str(one.get("summary") or one["content"][0]["text"])[:2] for one in messages]


@pytest.mark.parametrize(
    ("messages", "budget", "taken"),
    [
        ([ten("u1"), ten("u2"), ten("u3")], 20, ["u2", "u3"]),
        ([ten("u1"), user("u2" + "x" * 400), ten("u3")], 30, ["u3"]),
        ([ten("u0"), summary(400), ten("u3")], 30, ["ss", "u3"]),
        ([summary(400), ten("u2"), ten("u3")], 21, ["u2", "u3"]),
        ([user("u1" + "x" * 4000)], 20, ["u1"]),
        ([ten("u1"), ten("u2")], 0, ["u1", "u2"]),
        ([ten("u1"), ten("u2")], -5, ["u1", "u2"]),
        ([], 10, []),
    ],
    ids=[
        "the newest that fit",
        "the first that does not fit ends it",
        "a summary is squeezed in",
        "but not when nine tenths are full",
        "the newest of all in any case",
        "no limit",
        "less than none is no limit",
        "nothing",
    ],
)
def test_a_branch_is_told_from_its_end(
    messages: list[JsonObject], budget: int, taken: list[str]
) -> None:
    assert names(finished(newest_within(reversed(messages), estimate, budget))) == taken
