"""What a transport is: bytes in, and an outbox for bytes out."""

from collections.abc import Callable
from typing import Protocol

from pi_rpc.wire.outbox import Outbox

Receive = Callable[[bytes], None]
"""Takes bytes that came in. It may pause the transport."""
Ended = Callable[[], None]
"""Called once, when no more bytes will come."""


class Transport(Protocol):
    """Bytes in and out. A transport is made, started and closed inside one running loop."""

    outbox: Outbox
    """Where everything that goes out is put."""

    def start(self, receive: Receive, ended: Ended) -> None:
        """Begin to read."""

    def pause(self) -> None:
        """Read nothing more until `resume`. A piece already read may still be handed on."""

    def resume(self) -> None:
        """Go on reading."""

    def close(self) -> None:
        """Stop both ways and let go of everything. What the outbox still holds is lost."""
