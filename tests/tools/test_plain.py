"""Terminal output becomes what a reader sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.tools.plain import HELD_CHARACTERS_MAX, Plain


def plain(*chunks: bytes) -> str:
    reader = Plain()
    return "".join([*(reader.feed(chunk) for chunk in chunks), reader.feed(b"", final=True)])


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"a\x1b[2K\x1b[1Ab", "ab"),
        (b"\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        (b"\x1bPq#0\x1b\\x\x1b(By\x1bMz", "xyz"),
        (b"a\r\nb\rc\0d\x08e\tf", "a\nbcde\tf"),
        (b"caf\xc3\xa9 \xff \xe2\x82", "caf\u00e9 \ufffd \ufffd"),
        (b"lone \x1b", "lone "),
        (b"\x1b[3", "3"),
    ],
)
def test_what_steers_a_terminal_is_left_out(raw: bytes, text: str) -> None:
    assert plain(raw) == text
    assert plain(*(bytes([byte]) for byte in raw)) == text


def test_a_sequence_that_does_not_end_is_let_go() -> None:
    reader = Plain()
    assert reader.feed(b"\x1b]" + b"x" * (HELD_CHARACTERS_MAX - 2)) == ""
    assert reader.feed(b"yz") == "x" * (HELD_CHARACTERS_MAX - 2) + "yz"


PIECES = st.lists(
    st.sampled_from(
        [
            b"\x1b",
            b"[",
            b"]",
            b"1;2",
            b"m",
            b"\x07",
            b"\\",
            b"P",
            b"\r",
            b"\n",
            b"\xe2\x82",
            b"\xac",
        ]
    )
    | st.binary(max_size=2),
    max_size=12,
)


@given(PIECES)
def test_any_split_gives_the_same_text(pieces: list[bytes]) -> None:
    text = plain(b"".join(pieces))
    assert plain(*pieces) == text
    assert not any(ord(character) < 32 and character not in "\t\n" for character in text)
