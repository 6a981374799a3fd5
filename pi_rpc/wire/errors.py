"""The codes of JSON-RPC, the errors a request can be answered with, and those a request can meet.

Promises
- Every error answer carries `data` with a stable `kind` and a stable, finer `reason`.
- What the other side answered us is never mistaken for an answer of ours: `RemoteError` is no
  `RpcError`.
"""

from collections.abc import Mapping
from typing import Any

PARSE_ERROR = -32700
"""The bytes are no JSON (JSON-RPC 2.0, section 5.1)."""
INVALID_REQUEST = -32600
"""JSON, but no request, notification or response."""
METHOD_NOT_FOUND = -32601
"""No such method."""
INVALID_PARAMS = -32602
"""The method's parameters are not as they must be."""
INTERNAL_ERROR = -32603
"""Our own mistake; `data.incident` names the trace on stderr."""
REQUEST_CANCELLED = -32800
"""The asking side withdrew its request (the code of the Language Server Protocol)."""
OUR_RANGE = range(-32099, -31999)
"""Codes that the specification leaves to servers; those above the wire choose from these."""
OVERFULL = -32003
"""A limit of this connection is reached. The only code of our range that the wire itself gives."""


class RpcError(Exception):
    """An error to answer a request with."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = dict(data) if data is not None else None


class RemoteError(Exception):
    """The other side answered our request with an error. `data` is undecoded JSON or None."""

    def __init__(self, code: int, message: str, data: bytes | None = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class DisconnectedError(Exception):
    """The connection ended, so a request of ours cannot be answered any more."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the connection has ended: {reason}")
        self.reason = reason


def parse_error(reason: str, **facts: Any) -> RpcError:
    """The answer to bytes that cannot be read."""
    return RpcError(PARSE_ERROR, "Parse error", {"kind": "invalid", "reason": reason, **facts})


def invalid_request(reason: str, **facts: Any) -> RpcError:
    """The answer to JSON that is no request, or may not be one now."""
    return RpcError(
        INVALID_REQUEST, "Invalid Request", {"kind": "invalid", "reason": reason, **facts}
    )


def overfull(reason: str, **facts: Any) -> RpcError:
    """The answer when a limit of the connection is reached."""
    return RpcError(OVERFULL, "A limit is reached", {"kind": "overfull", "reason": reason, **facts})


def cancelled(reason: str) -> RpcError:
    """The answer to a request that was withdrawn."""
    return RpcError(REQUEST_CANCELLED, "Request cancelled", {"kind": "cancelled", "reason": reason})


def internal(incident: str) -> RpcError:
    """The answer to a mistake of ours; the trace stands on stderr under `incident`."""
    return RpcError(
        INTERNAL_ERROR,
        "Internal error",
        {"kind": "internal", "reason": "unexpected", "incident": incident},
    )
