"""Pages: how much of a list one answer carries, for a client that reads no longer messages."""

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

import msgspec

from pi_rpc.core.codec import encode
from pi_rpc.core.errors import Invalid
from pi_rpc.core.messages import JsonObject
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.shapes import PAGE_BYTES_MAX

POINTER_BYTES = 256
"""More than what stands in the place of an item that is too long."""

SIZED_TOGETHER = 32
"""So many items are made before it is known whether they fit."""

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
    left = iter(items)
    # Sized together, which is much sooner; one by one where the page ends.
    while some := list(islice(left, SIZED_TOGETHER)):
        together = _size(some) - len(some) - 1
        if together <= room:
            room -= together
            page += some
            continue
        for item in some:
            room -= _size(item)
            if page and room < 0:
                return page
            page.append(item)
    return page


def readable(connection: Connection, text: str | None) -> tuple[str | None, bool]:
    """A text if an answer can carry it, else none; and whether it was left out."""
    if text is None or len(encode(text)) <= item_bytes_max(connection):
        return text, False
    return None, True


def _size(item: msgspec.Struct | list[_Item]) -> int:
    """Bytes of an item, or of a list of them with what stands around and between them."""
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


def page_start(cursor: str | None) -> int:
    """The place in a list that a cursor of ours names. Raises Invalid `bad_cursor`."""
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 12:
        raise Invalid("bad_cursor", "no cursor of this list", cursor=cursor[:100])
    return int(cursor)
