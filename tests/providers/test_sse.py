"""Server-sent events out of bytes that come in any pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.providers.sse import Event, Events, EventTooLongError

CASES = {
    "one": (b"data: a\n\n", [("", b"a")]),
    "named": (b"event: x\ndata: a\n\n", [("x", b"a")]),
    "two lines": (b"data: a\ndata:b\n\n", [("", b"a\nb")]),
    "carriage returns": (b"data: a\r\rdata: b\r\n\r\n", [("", b"a"), ("", b"b")]),
    "mixed ends": (b"data: a\r\ndata: b\r\n\ndata: c\n\r\n", [("", b"a\nb"), ("", b"c")]),
    "comments": (b": ping\n\ndata: a\n: more\n\n", [("", b"a")]),
    "other fields": (b"id: 4\nretry: 5\nfoo\ndata: a\n\n", [("", b"a")]),
    "empty data": (b"data\n\ndata:\n\n", [("", b""), ("", b"")]),
    "no data": (b"event: x\n\ndata: a\n\n", [("", b"a")]),
    "mark": (b"\xef\xbb\xbfdata: a\n\n", [("", b"a")]),
    "cut": (b"data: a\n\ndata: b\n", [("", b"a")]),
    "one space only": (b"data:  a\n\n", [("", b" a")]),
    "line separators of unicode": (
        "data: a\u2028b\x0bc\n\n".encode(),
        [("", "a\u2028b\x0bc".encode())],
    ),
    "nothing": (b"", []),
}


def read(*parts: bytes) -> list[tuple[str, bytes]]:
    events = Events()
    return [(event.name, event.data) for part in parts for event in events.feed(part)]


@pytest.mark.parametrize("name", CASES)
def test_bytes_are_read_as_the_standard_says(name: str) -> None:
    given_bytes, events = CASES[name]
    assert read(given_bytes) == events


@pytest.mark.parametrize("name", CASES)
def test_any_split_gives_the_same(name: str) -> None:
    given_bytes, events = CASES[name]
    assert read(*(bytes([byte]) for byte in given_bytes)) == events
    for at in range(len(given_bytes) + 1):
        assert read(given_bytes[:at], given_bytes[at:]) == events


@given(
    st.lists(st.sampled_from([b"data", b":", b" ", b"\r", b"\n", b"event", b"x", b"\xef\xbb\xbf"])),
    st.data(),
)
def test_any_split_of_any_bytes_gives_the_same(words: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(words)
    at = data.draw(st.integers(0, len(whole)))
    later = data.draw(st.integers(at, len(whole)))
    assert read(whole[:at], whole[at:later], whole[later:]) == read(whole)


@pytest.mark.parametrize("flood", [b"x" * 11, b"data: " + b"x" * 11 + b"\n", b"data: xx\n" * 5])
def test_an_event_without_end_is_refused(flood: bytes) -> None:
    with pytest.raises(EventTooLongError):
        Events(limit_bytes=10).feed(flood)


def test_many_small_pieces_of_one_line_cost_no_more_than_their_length() -> None:
    events = Events()
    events.feed(b"data: ")
    for _ in range(200_000):
        events.feed(b"x")
    assert events.feed(b"\n\n") == [Event("", b"x" * 200_000)]
