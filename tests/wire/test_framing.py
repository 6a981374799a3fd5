import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.wire.framing import (
    HEAD_BYTES,
    HEADER_LIMIT_BYTES,
    Frame,
    FrameDecoder,
    FrameFault,
    Framing,
    frame,
    framing_of,
)

LIMIT = 40


def frames_of(*pieces: bytes, limit_bytes: int = LIMIT) -> list[Frame]:
    decoder = FrameDecoder(limit_bytes)
    frames: list[Frame] = []
    for piece in pieces:
        frames += decoder.feed(piece)
    return frames + decoder.eof()


def with_headers(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"", []),
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\r\n', [b'{"a":1}']),
        (b"{}\r\r\n", [b"{}\r"]),
        (b"{}\r{}\n", [b"{}\r{}"]),
        (b"\n{}\n", [b"", b"{}"]),
        (b"{}", [b"{}"]),
        (b"{}\r", [b"{}"]),
        (b"cont", [b"cont"]),
        (b"content\n{}\n", [b"content", b"{}"]),
        ('"\u2028\u2029\x85"\n'.encode(), ['"\u2028\u2029\x85"'.encode()]),
        (b"x" * LIMIT + b"\n", [b"x" * LIMIT]),
        (b"x" * 41 + b"\n{}\n", [FrameFault("too_long", 41, b"x" * 41), b"{}"]),
        (b"x" * 50, [FrameFault("too_long", 50, b"x" * 50)]),
        (b"{" * 900 + b"\n", [FrameFault("too_long", 900, b"{" * HEAD_BYTES)]),
    ],
)
def test_lines_become_frames(stream: bytes, expected: list[Frame]) -> None:
    assert frames_of(stream) == expected
    assert frames_of(*(stream[i : i + 1] for i in range(len(stream)))) == expected


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (with_headers(b"{}") + with_headers(b"[]"), [b"{}", b"[]"]),
        (b"content-length:2\r\nContent-Type: x; charset=utf-8\r\n\r\n{}", [b"{}"]),
        (b"Content-Type: x\r\nContent-Length: 2\r\n\r\n{}", [b"{}"]),
        (b"Content-Length: 2\n\n{}", [b"{}"]),
        (with_headers(b"{\n}") + b"\n" + with_headers(b"[]"), [b"{\n}", b"[]"]),
        (with_headers(b""), [b""]),
        (
            b"Content-Length: two\r\n\r\n{}" + with_headers(b"[]"),
            [FrameFault("malformed_header", 23), b"[]"],
        ),
        (
            b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}" + with_headers(b"[]"),
            [FrameFault("malformed_header", 40), b"[]"],
        ),
        (b"Content-Type: x\r\n\r\n{}", [FrameFault("malformed_header", 19)]),
        (b"Content-Length: -2\r\n\r\n{}", [FrameFault("malformed_header", 22)]),
        (
            with_headers(b"y" * 600) + with_headers(b"{}"),
            [FrameFault("too_long", 600, b"y" * HEAD_BYTES), b"{}"],
        ),
        (b"Content-Length: 5\r\n\r\n{}", [FrameFault("truncated", 2)]),
        (b"Content-Length: 99\r\n\r\n{}", [FrameFault("truncated", 2)]),
        (b"Content-Length: 5\r\n", [FrameFault("truncated", 19)]),
        (
            b"Content-Type: " + b"x" * HEADER_LIMIT_BYTES + b"\r\n\r\n" + with_headers(b"{}"),
            [FrameFault("malformed_header", HEADER_LIMIT_BYTES), b"{}"],
        ),
    ],
)
def test_bodies_with_headers_become_frames(stream: bytes, expected: list[Frame]) -> None:
    assert frames_of(stream) == expected
    assert frames_of(*(stream[i : i + 1] for i in range(len(stream)))) == expected


@pytest.mark.parametrize(
    ("start", "framing"),
    [
        (b"", None),
        (b"C", None),
        (b"CONTENT", None),
        (b"Content-", Framing.HEADERS),
        (b"content-type", Framing.HEADERS),
        (b"{", Framing.LINES),
        (b"\n", Framing.LINES),
        (b"cat\n", Framing.LINES),
    ],
)
def test_the_first_bytes_tell_the_framing(start: bytes, framing: Framing | None) -> None:
    assert framing_of(start) is framing


def test_the_decoder_says_which_framing_it_found() -> None:
    decoder = FrameDecoder()
    assert decoder.framing is None
    decoder.feed(with_headers(b"{}"))
    assert decoder.framing is Framing.HEADERS


def test_a_framing_that_is_given_is_not_guessed() -> None:
    decoder = FrameDecoder(framing=Framing.LINES)
    assert decoder.feed(b"Content-Length: 2\r\n") == [b"Content-Length: 2"]


def test_what_is_too_long_is_not_kept() -> None:
    decoder = FrameDecoder(limit_bytes=1000)
    for _ in range(1000):
        assert decoder.feed(b"z" * 1000) == []
    held = decoder._decoder._held  # type: ignore[union-attr]  # The promise is about memory.
    assert len(held) <= 1000
    assert decoder.feed(b"\n{}\n") == [FrameFault("too_long", 1_000_000, b"z" * HEAD_BYTES), b"{}"]


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.sampled_from(
            [b"\n", b"\r\n", b"{}\n", b"[1]", b"x" * 45, b"Content-Length: 2\r\n\r\n{}"]
        ),
    ),
    max_size=12,
)
HEADED = st.lists(
    st.one_of(
        st.binary(max_size=60).map(with_headers),
        st.sampled_from(
            [
                b"\r\n",
                b"\n",
                b"Content-Length: x\r\n\r\n",
                b"CONTENT-LENGTH:3\n\nabc",
                b"Content-Length: 7\r\n",
                b"Content-Type: q\r\n",
                b"y" * HEADER_LIMIT_BYTES,
            ]
        ),
        st.binary(max_size=9),
    ),
    max_size=8,
).map(lambda parts: [b"Content-", *parts] if len(parts) % 2 else [with_headers(b"{}"), *parts])


@given(st.one_of(PIECES, HEADED).map(b"".join), st.data())
def test_any_split_of_the_bytes_gives_the_same_frames(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    bounds = [0, *cuts, len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(bounds)]
    assert frames_of(*pieces) == frames_of(stream)


@given(st.binary(max_size=300))
def test_the_decoder_takes_any_bytes(stream: bytes) -> None:
    for found in frames_of(stream):
        if isinstance(found, bytes):
            assert len(found) <= LIMIT


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=5), st.sampled_from(Framing), st.booleans())
def test_what_is_framed_is_read_back(values: list[object], framing: Framing, indent: bool) -> None:
    payloads = [
        json.dumps(value, ensure_ascii=False, indent=2 if indent else None).encode()
        for value in values
    ]
    frames = frames_of(*(frame(payload, framing) for payload in payloads), limit_bytes=100_000)
    assert [json.loads(found) for found in frames if isinstance(found, bytes)] == values


@given(JSON)
def test_what_is_sent_is_one_line_by_any_rule(value: object) -> None:
    sent = frame(json.dumps(value, ensure_ascii=False, indent=1).encode(), Framing.LINES)
    assert len(sent.decode().splitlines()) == 1


def test_letters_that_share_bytes_with_line_ends_stay_as_they_are() -> None:
    payload = '"\u00a8 \u00e9 \u0105 \u2014 \u20a8 \ua8a9"'.encode()
    assert frame(payload, Framing.LINES) == payload + b"\n"


def test_unicode_line_ends_are_escaped_in_both_framings() -> None:
    payload = '"a\u2028b\u2029c\x85"'.encode()
    assert frame(payload, Framing.LINES) == b'"a\\u2028b\\u2029c\\u0085"\n'
    assert frame(payload, Framing.HEADERS) == with_headers(b'"a\\u2028b\\u2029c\\u0085"')
