"""Heads and tails keep whole lines within two limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.tools.truncate import Head, Limits, Tail, Truncation, head, size_text, tail

SMALL = Limits(lines=3, size_bytes=10)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (1023, "1023B"), (1024, "1.0KB"), (60000, "58.6KB"), (1572864, "1.5MB")],
)
def test_sizes_are_read_at_a_glance(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_text_within_the_limits_is_kept_as_it_is() -> None:
    expected = Truncation("a\nb\n", None, 2, 4, 2, SMALL)
    assert head("a\nb\n", SMALL) == expected
    assert tail("a\nb\n", SMALL) == expected
    assert head("", SMALL) == tail("", SMALL) == Truncation("", None, 0, 0, 0, SMALL)


def test_a_head_ends_at_the_last_whole_line_that_fits() -> None:
    assert head("1\n2\n3\n4\n", SMALL) == Truncation("1\n2\n3", "lines", 4, 8, 3, SMALL)
    assert head("12345\n12345\n", SMALL) == Truncation("12345", "bytes", 2, 12, 1, SMALL)


def test_a_tail_begins_at_the_first_whole_line_that_fits() -> None:
    assert tail("1\n2\n3\n4\n", SMALL) == Truncation("2\n3\n4", "lines", 4, 8, 3, SMALL)
    assert tail("12345\nabcde\n", SMALL) == Truncation("abcde", "bytes", 2, 12, 1, SMALL)


def test_a_first_line_that_is_too_long_leaves_the_head_empty() -> None:
    kept = head("12345678901\n2\n", SMALL)
    assert kept == Truncation("", "bytes", 2, 14, 0, SMALL, first_line_exceeds_limit=True)


def test_a_last_line_that_is_too_long_is_cut_between_characters() -> None:
    kept = tail("a\n" + "é" * 6 + "x", SMALL)
    assert kept == Truncation("ééééx", "bytes", 2, 15, 1, SMALL, last_line_partial=True)


def test_only_a_newline_beyond_the_limit_leaves_no_line_out() -> None:
    kept = head("1234567890\n", SMALL)
    assert (kept.content, kept.truncated, kept.first_line_exceeds_limit) == (
        "1234567890",
        False,
        False,
    )


def test_the_stored_form_has_every_number() -> None:
    assert head("1\n2\n3\n4\n", SMALL).as_object() == {
        "truncated": True,
        "truncatedBy": "lines",
        "totalLines": 4,
        "totalBytes": 8,
        "outputLines": 3,
        "outputBytes": 5,
        "lastLinePartial": False,
        "firstLineExceedsLimit": False,
        "maxLines": 3,
        "maxBytes": 10,
    }


PIECES = st.lists(st.text(alphabet="a\né€", max_size=20), max_size=8)


@given(PIECES)
def test_any_split_gives_the_same_head_and_tail(pieces: list[str]) -> None:
    whole = "".join(pieces)
    first, last = Head(SMALL), Tail(SMALL)
    for piece in pieces:
        first.feed(piece)
        last.feed(piece)
    assert first.truncation() == head(whole, SMALL)
    assert last.truncation() == tail(whole, SMALL)
    lines = whole.split("\n")
    lines = lines if lines[-1] else lines[:-1]
    for counts in (first.counts, last.counts):
        assert counts.total_lines == len(lines)
        assert counts.total_bytes == len(whole.encode())
        assert counts.last_line_bytes == (len(lines[-1].encode()) if lines else 0)
        assert counts.first_line_bytes == (len(lines[0].encode()) if lines else 0)


@given(st.text(alphabet="ab\né€", max_size=60))
def test_heads_and_tails_are_whole_lines_within_the_limits(text: str) -> None:
    lines = text.split("\n")
    lines = lines if lines[-1] else lines[:-1]
    first, last = head(text, SMALL), tail(text, SMALL)
    if first.truncated:
        assert first.content.split("\n")[: first.output_lines] == lines[: first.output_lines]
        assert first.output_lines < len(lines)
    if last.truncated and not last.last_line_partial:
        assert last.content.split("\n") == lines[-last.output_lines :]
    for kept in (first, last):
        assert kept.output_lines <= SMALL.lines
        if kept.truncated:
            assert len(kept.content.encode()) <= SMALL.size_bytes
