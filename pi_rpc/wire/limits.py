"""What one connection may cost, in one value that a front end can announce."""

import msgspec

from pi_rpc.wire.framing import INBOUND_LIMIT_BYTES
from pi_rpc.wire.messages import BATCH_LIMIT, NESTING_LIMIT

OUTBOUND_LIMIT_BYTES = 64 * 1024 * 1024
"""The longest message written unless the other side accepts less."""


class Limits(msgspec.Struct, frozen=True):
    """What one connection may cost."""

    inbound_bytes: int = INBOUND_LIMIT_BYTES
    """The longest message read."""
    outbound_bytes: int = OUTBOUND_LIMIT_BYTES
    """The longest message written; a longer answer becomes an error."""
    nesting: int = NESTING_LIMIT
    """The deepest nesting of a message read."""
    batch: int = BATCH_LIMIT
    """The most messages in a batch read."""
    in_flight: int = 1024
    """The most requests of the other side that wait for their handlers."""
    asked: int = 1024
    """The most requests of ours that wait for the other side."""
    retry_after_ms: int = 100
    """When to try again after too many in flight."""
    farewell_s: float = 5.0
    """How long the last answers may take to leave when the connection is closed."""


DEFAULT_LIMITS = Limits()
"""What holds when nothing else is said."""
