"""Images that somebody sends."""

import base64

import pytest

from pi_rpc.core.errors import Failure
from pi_rpc.core.images import IMAGE_BASE64_BYTES_MAX, checked_image

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()


def test_an_image_that_is_what_it_says_becomes_a_block() -> None:
    wanted = {"type": "image", "data": PNG, "mimeType": "image/png"}
    assert checked_image(PNG, "image/png") == wanted


@pytest.mark.parametrize(
    ("data", "mime_type", "reason"),
    [
        (PNG, "image/bmp", "bad_image"),
        (PNG, "text/plain", "bad_image"),
        (PNG, "image/jpeg", "bad_image"),
        (PNG[:-1], "image/png", "bad_image"),
        (PNG + "\n", "image/png", "bad_image"),
        ("ä", "image/png", "bad_image"),
        ("", "image/png", "bad_image"),
        ("A" * (IMAGE_BASE64_BYTES_MAX + 4), "image/png", "image_too_large"),
    ],
)
def test_any_other_is_refused(data: str, mime_type: str, reason: str) -> None:
    with pytest.raises(Failure) as caught:
        checked_image(data, mime_type)
    assert caught.value.reason == reason
