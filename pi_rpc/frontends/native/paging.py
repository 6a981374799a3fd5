"""Pages: how much of a list one answer carries, for a client that reads no longer messages."""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from pi_rpc.core.codec import encode
from pi_rpc.core.messages import JsonObject
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.shapes import PAGE_BYTES_MAX

POINTER_BYTES = 256
"""More than what stands in the place of an item that is too long."""

_Item = TypeVar("_Item", bound=msgspec.Struct)

_encoder = msgspec.json.Encoder()


def page_bytes_max(connection: Connection) -> int:
    """How many bytes the items of a page may take together; the answer around them is small."""
    # Characters that are escaped on the wire take up to twice their stored bytes.
    return min(PAGE_BYTES_MAX, connection.outlet.outbound_limit_bytes // 2)


def item_bytes_max(connection: Connection) -> int:
    """How long a single item may be, which then is a page for itself."""
    return connection.outlet.outbound_limit_bytes // 2


def fitting(connection: Connection, items: Iterable[_Item]) -> list[_Item]:
    """The first of the items, as many as fit a page; one in any case."""
    room = page_bytes_max(connection)
    page: list[_Item] = []
    for item in items:
        room -= _size(item)
        if page and room < 0:
            break
        page.append(item)
    return page


def readable(connection: Connection, text: str | None) -> tuple[str | None, bool]:
    """A text if an answer can carry it, else none; and whether it was left out."""
    if text is None or len(encode(text)) <= item_bytes_max(connection):
        return text, False
    return None, True


def _size(item: msgspec.Struct) -> int:
    try:
        return len(_encoder.encode(item))
    except UnicodeEncodeError:
        return len(encode(msgspec.to_builtins(item)))


def shortened(connection: Connection, message: JsonObject) -> tuple[JsonObject, int]:
    """A message that fits an answer, and its size: in place of a longer one its role and size.

    What was left out is read by its entry, with a client that reads longer messages.
    """
    size = len(encode(message))
    if size <= item_bytes_max(connection):
        return message, size
    pointer = {"role": message.get("role"), "truncated": True, "bytes": size}
    return pointer, len(encode(pointer))
