"""Any name goes there and back as text."""

import pytest

from pi_rpc.core.paths import bytes_of_path, text_of_path


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"a/b.txt", "a/b.txt"),
        ("ünï".encode(), "ünï"),
        (b"caf\xe9/%", "bytes:caf%E9/%25"),
        (b"bytes:x", "bytes:bytes%3Ax"),
        (b"line\nfeed", "line\nfeed"),
    ],
)
def test_a_name_is_readable_where_it_can_be_and_exact_always(raw: bytes, text: str) -> None:
    assert text_of_path(raw) == text
    assert bytes_of_path(text) == raw
