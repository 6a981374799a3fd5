"""Names of files as text: any bytes there and back, and readable where they are UTF-8.

A name that is no UTF-8 is told with its odd bytes in percent notation behind a mark; so is the rare
name that begins with the mark itself.
"""

from urllib.parse import quote_from_bytes, unquote_to_bytes

BYTES_MARK = "bytes:"


def text_of_path(raw: bytes) -> str:
    """A name for messages and entries."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return BYTES_MARK + quote_from_bytes(raw)
    return BYTES_MARK + quote_from_bytes(raw) if text.startswith(BYTES_MARK) else text


def bytes_of_path(text: str) -> bytes:
    """The name such a text stands for."""
    if text.startswith(BYTES_MARK):
        return unquote_to_bytes(text.removeprefix(BYTES_MARK))
    return text.encode("utf-8", "surrogateescape")
