"""Patterns of ripgrep as Python reads them; what is found is tested in `test_grep.py`."""

import re

import pytest

from pi_rpc.tools.own_grep import Search, line_regex


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        (r"[[:digit:]]+x", "12x", "x"),
        (r"[^[:space:]]", "a", " "),
        (r"a\z", "ba", "ab"),
        (r"(?<name>a)b", "ab", "b"),
        (r"(?<=a)b", "ab", "b"),
        (r"\\z", r"\z", "z"),
        (r"\[[a-z]", "[b", "b"),
    ],
)
def test_forms_that_python_writes_otherwise(pattern: str, fits: str, fits_not: str) -> None:
    regex = line_regex(Search(pattern, "./"))
    assert regex.search(fits)
    assert not regex.search(fits_not)


def test_a_form_that_python_does_not_know_is_an_error() -> None:
    with pytest.raises(re.error):
        line_regex(Search(r"\p{L}", "./"))


def test_plain_text_is_taken_as_it_is() -> None:
    regex = line_regex(Search("A.[", "./", literal=True, ignore_case=True))
    assert regex.search("xa.[")
    assert not regex.search("xab[")
