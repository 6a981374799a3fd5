"""Where the answers to requests go: each by itself, or together with the rest of its batch."""

from collections.abc import Callable
from functools import partial

from pi_rpc.wire.errors import overfull
from pi_rpc.wire.messages import Id, bytes_from_batch, bytes_from_error

Reply = Callable[[bytes], None]
"""Takes the one answer to a request, encoded."""


class BatchReply:
    """Gathers `expected` answers and puts them as one, in the order of their slots.

    The whole stays within `limit_bytes`: an answer that has no room any more becomes an error.
    """

    def __init__(self, put: Reply, expected: int, limit_bytes: int) -> None:
        self._put = put
        self._missing = expected
        self._limit_bytes = limit_bytes
        self._size_bytes = len(b"[]")
        self._answers: list[bytes] = []

    def slot(self, name: Id) -> Reply:
        """The place for the answer to the next request of the batch."""
        self._answers.append(b"")
        return partial(self._fill, len(self._answers) - 1, name)

    def _fill(self, index: int, name: Id, answer: bytes) -> None:
        if self._size_bytes + len(answer) >= self._limit_bytes:
            answer = too_large(name, len(answer), self._limit_bytes)
        self._size_bytes += len(answer) + len(b",")
        self._answers[index] = answer
        self._missing -= 1
        if not self._missing:
            self._put(bytes_from_batch(self._answers))


def too_large(name: Id, size_bytes: int, limit_bytes: int) -> bytes:
    """What is answered in place of an answer that the other side would not accept."""
    return bytes_from_error(
        name, overfull("response_too_large", sizeBytes=size_bytes, limitBytes=limit_bytes)
    )
