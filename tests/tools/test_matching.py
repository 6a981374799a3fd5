"""A text is found where it stands, or where something stands that only looks different."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.tools.matching import FOUND_MAX, Source, Span


def found(old: str, text: str) -> list[str]:
    return [text[span.start : span.end] for span in Source(text).spans_of(old)]


@pytest.mark.parametrize("old", ["a\nb", "a\r\nb", "a\rb"])
@pytest.mark.parametrize("text", ["1\na\nb\n", "1\r\na\r\nb\r\n", "1\ra\rb\r", "1\r\na\nb"])
def test_line_breaks_match_each_other(old: str, text: str) -> None:
    (span,) = Source(text).spans_of(old)
    assert not span.is_fuzzy
    assert text[span.start : span.end] in ("a\nb", "a\r\nb", "a\rb")


def test_a_span_never_parts_a_line_break() -> None:
    text = "a\r\nb\r\nc"
    assert found("a\n", text) == ["a\r\n"]
    assert found("\nb", text) == ["\r\nb"]
    assert found("b", text) == ["b"]
    assert found("\n", text) == ["\r\n", "\r\n"]


def test_every_place_is_found_overlapping_ones_too() -> None:
    assert Source("aaa").spans_of("aa") == [Span(0, 2), Span(1, 3)]
    assert len(Source("a" * 5000).spans_of("a")) == FOUND_MAX


def test_a_near_match_is_only_looked_for_where_there_is_no_exact_one() -> None:
    text = "say 'x'\nsay \u2018x\u2019\n"
    assert Source(text).spans_of("say 'x'") == [Span(0, 7)]
    assert Source(text).spans_of("say \u2018x\u2019") == [Span(8, 15)]
    assert len(Source(text).spans_of("say \u201bx'")) == 2


@pytest.mark.parametrize(
    ("old", "text", "expected"),
    [
        ('"x" - y', "\u201cx\u201d \u2014 y", "\u201cx\u201d \u2014 y"),
        ("a b", "1\u00a0a\u2003b2", "a\u2003b"),
        ("abc", "x \uff41\uff42\uff43 y", "\uff41\uff42\uff43"),
        ("caf\u00e9", "un cafe\u0301 noir", "cafe\u0301"),
        ("cafe\u0301", "un caf\u00e9 noir", "caf\u00e9"),
        ("wait...", "wait\u2026", "wait\u2026"),
        ("a\nb", "a  \nb\t\n", "a  \nb"),
        ("\ud55c\uae00", unicodedata.normalize("NFD", "\ud55c\uae00"), None),
    ],
)
def test_what_only_looks_different_is_found_as_it_is(
    old: str, text: str, expected: str | None
) -> None:
    (span,) = Source(text).spans_of(old)
    assert span.is_fuzzy
    assert text[span.start : span.end] == (text if expected is None else expected)


def test_blanks_that_end_the_wanted_text_match_only_the_end_of_a_line() -> None:
    assert found("foo  ", "foo \nfoobar\n") == ["foo "]
    assert found("foo  ", "foo bar\n") == []
    assert found("foo\t\nbar", "foo \nbar baz") == ["foo \nbar"]


def test_a_near_match_never_begins_or_ends_within_a_character() -> None:
    assert found("e\u0301.. x\u2019", "e\u0301\u2026 x'") == []
    assert found("\uff49", "o\ufb01ce") == []
    assert found("\uff46\uff49", "o\ufb01ce") == ["\ufb01"]


def test_blanks_alone_match_nothing_nearly() -> None:
    assert found("\t\t", "a\nb\n") == []


ALPHABET = "ab \t\n\r'\u2019\u201c\u2014\u00a0\u00e9e\u0301\ufb01\u2026\uff41\u1112\u1161\udcff"


@given(st.text(ALPHABET, max_size=20), st.text(ALPHABET, min_size=1, max_size=4))
def test_spans_lie_within_the_text_and_part_no_line_break(text: str, old: str) -> None:
    for span in Source(text).spans_of(old):
        assert 0 <= span.start < span.end <= len(text)
        for edge in (span.start, span.end):
            assert text[edge - 1 : edge + 1] != "\r\n" or edge == 0


@given(st.text(ALPHABET, max_size=20), st.data())
def test_any_part_of_a_text_is_found_exactly_where_it_is(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    part = text[start:end]
    if not part or any(text[edge - 1 : edge + 1] == "\r\n" for edge in (start, end) if edge):
        return
    assert Span(start, end) in Source(text).spans_of(part)
