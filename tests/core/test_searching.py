"""What of an entry is searched, what a query means, and where a cursor stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.codec import encode
from pi_rpc.core.errors import Invalid
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.searching import (
    TEXT_CHARACTERS_MAX,
    Place,
    Searched,
    SearchQuery,
    cursor_of,
    is_meant,
    place_of,
    searched_in,
    snippet,
    terms_of,
    trigrams_of,
)

STAMP = "2026-01-02T03:04:05.678Z"
AT_MS = 1_767_323_045_678


def entry(entry_type: str = "message", **fields: object) -> bytes:
    head = {"type": entry_type, "id": "a", "parentId": None, "timestamp": STAMP}
    return encode(head | fields)


def message(role: str, content: object, **fields: object) -> bytes:
    said: JsonObject = {"role": role, "content": content, **fields}
    return entry(message=said)


def text(*texts: str) -> list[JsonObject]:
    return [{"type": "text", "text": each} for each in texts]


CALL = {"type": "toolCall", "id": "c", "name": "edit", "arguments": {"a": ["x.py", {"b": "new"}]}}


@pytest.mark.parametrize(
    ("line", "role", "words"),
    [
        (message("user", "plain"), "user", "plain"),
        (message("user", text("one", "two")), "user", "one\ntwo"),
        (message("assistant", [*text("said"), CALL]), "assistant", "said\nedit\nx.py\nnew"),
        (message("toolResult", text("out")), "toolResult", "out"),
        (message("bashExecution", None, command="ls", output="a b"), "bashExecution", "ls\na b"),
        (entry("custom_message", content="shown"), "custom_message", "shown"),
        (entry("compaction", summary="sum"), "compaction", "sum"),
        (entry("branch_summary", summary="sum"), "branch_summary", "sum"),
        (entry("session_info", name="n"), "session_info", "n"),
        (entry("label", label="l"), "label", "l"),
    ],
)
def test_what_was_said_is_searched(line: bytes, role: str, words: str) -> None:
    assert searched_in(line) == Searched("a", role, AT_MS, words)


@pytest.mark.parametrize(
    "line",
    [
        message("system", text("prompt")),
        message("user", None),
        entry("model_change", provider="p"),
        entry("custom", customType="x", data="secret state"),
        entry("message", message=7),
        entry("message", message="text"),
        b"{broken",
        b"7",
        b"",
        encode({"type": "message", "message": {"role": "user", "content": "no id"}}),
    ],
)
def test_the_rest_is_not(line: bytes) -> None:
    assert searched_in(line) is None


@pytest.mark.parametrize(
    ("told", "at_ms"), [(5, 5), (5.9, 5), (1e300, 0), (True, AT_MS), ("x", AT_MS), (None, AT_MS)]
)
def test_a_message_has_its_own_time_or_that_of_its_entry(told: object, at_ms: int) -> None:
    found = searched_in(message("user", "x", timestamp=told))
    assert found is not None
    assert found.at_ms == at_ms


def test_very_long_texts_are_searched_in_their_first_part() -> None:
    found = searched_in(message("toolResult", "x" * TEXT_CHARACTERS_MAX + "end"))
    assert found is not None
    assert len(found.text) == TEXT_CHARACTERS_MAX


def test_a_query_is_its_words_and_quoted_parts_without_case() -> None:
    assert terms_of(' Foo  "Bar  Baz" STRASSE') == ("foo", "bar  baz", "strasse")
    assert terms_of("Straße") == ("strasse",)
    for bad, reason in (("", "empty_query"), (" \n", "empty_query"), ("x " * 17, "query_too_long")):
        with pytest.raises(Invalid) as caught:
            terms_of(bad)
        assert caught.value.reason == reason
    with pytest.raises(Invalid) as caught:
        terms_of("x" * 1001)
    assert caught.value.reason == "query_too_long"


def test_every_term_must_be_there() -> None:
    found = Searched("a", "user", 10, "The Quick brown fox")
    meant = {
        terms: is_meant(found, SearchQuery(terms_of(terms)))
        for terms in ("quick fox", "fox THE", '"quick brown"', '"brown quick"', "quick cat", "row")
    }
    assert meant == {
        "quick fox": True,
        "fox THE": True,
        '"quick brown"': True,
        '"brown quick"': False,
        "quick cat": False,
        "row": True,
    }


def test_roles_and_times_narrow_it() -> None:
    found = Searched("a", "user", 10, "x")
    assert is_meant(found, SearchQuery(("x",), frozenset({"user"}), 10, 11))
    assert not is_meant(found, SearchQuery(("x",), frozenset({"assistant"})))
    assert not is_meant(found, SearchQuery(("x",), None, 11))
    assert not is_meant(found, SearchQuery(("x",), None, None, 10))


def test_a_snippet_shows_the_place() -> None:
    words = "a " * 100 + "ſtraße\n\n  Needle" + " b" * 100
    shown = snippet(words, ("needle",))
    assert shown.startswith("…a a") and shown.endswith("b…")
    assert "straße Needle b" in shown.replace("ſ", "s")
    assert snippet("short", ("short",)) == "short"
    longer = "ß" * 300 + "X" + "y" * 300
    assert "X" in snippet(longer, ("x",))


@given(st.text(max_size=60), st.integers(0, 50), st.integers(1, 9))
def test_whatever_is_found_holds_every_trigram_of_the_query(said: str, at: int, size: int) -> None:
    term = said[at : at + size].strip().replace('"', "")
    if not term or len(term.split()) != 1:
        return
    terms = terms_of(term)
    folded = said.casefold()
    if all(each in folded for each in terms):
        assert all(each in folded for each in trigrams_of(terms))


def test_places_go_from_new_to_old_and_a_cursor_is_one_of_them() -> None:
    places = [Place(-5, "a", 1), Place(-4, "a", 9), Place(-4, "b", 0), Place(-4, "b", 3)]
    assert sorted([places[2], places[0], places[3], places[1]]) == places
    assert [place_of(cursor_of(each)) for each in places] == places
    for bad in ("", "later", "é", "e30=", "W10="):
        with pytest.raises(Invalid) as caught:
            place_of(bad)
        assert caught.value.reason == "bad_cursor"
