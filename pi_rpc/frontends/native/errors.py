"""Kinds of failure to wire codes: the one table."""

from typing import Any

import msgspec

from pi_rpc.core import errors
from pi_rpc.core.errors import Failure
from pi_rpc.wire.errors import INTERNAL_ERROR, INVALID_PARAMS, RpcError


class ErrorKind(msgspec.Struct, frozen=True):
    """One kind of error as clients meet it."""

    kind: str
    code: int
    meaning: str
    advice: str
    """What a client should do."""


ERROR_KINDS = (
    ErrorKind(
        "invalid",
        INVALID_PARAMS,
        "The words are not well formed.",
        "Correct the request; `path` names the place.",
    ),
    ErrorKind("missing", -32001, "What is named is not there.", "Do not try again as it is."),
    ErrorKind(
        "refused",
        -32002,
        "It is there, but its state does not allow this now.",
        "Try again when the state has changed; `reason` says which.",
    ),
    ErrorKind(
        "overfull", -32003, "A limit is reached.", "Try later; `retryAfterMs` when it is known."
    ),
    ErrorKind(
        "outside",
        -32004,
        "Disk, net, process or provider failed.",
        "Perhaps try again; `retryable` says whether that may help.",
    ),
    ErrorKind(
        "damaged",
        -32005,
        "Stored bytes break the format's promise.",
        "Do not go on; open to read, and repair.",
    ),
    ErrorKind(
        "cancelled",
        -32006,
        "The caller or a shutdown ended it.",
        "Ask again if it is still wanted.",
    ),
    ErrorKind(
        "busy",
        -32010,
        "A run or another move holds the session.",
        "Wait for `runId` with agent/wait, abort it, or choose `whenBusy`.",
    ),
    ErrorKind(
        "conflict",
        -32011,
        "The leaf, the run or the file moved since the caller looked.",
        "Compare `expected` and `actual`, look again, then decide anew.",
    ),
    ErrorKind(
        "locked",
        -32012,
        "Another process owns the session.",
        "Open it with mode `read`, or end `owner` first.",
    ),
    ErrorKind(
        "experimental",
        -32013,
        "An experimental name was used without opting in.",
        "Send `capabilities.experimental: true` with initialize, or leave `name` out.",
    ),
    ErrorKind(
        "notInitialized", -32014, "The handshake has not been made.", "Send initialize first."
    ),
    ErrorKind(
        "internal",
        INTERNAL_ERROR,
        "Our own mistake.",
        "Report the `incident` id; the trace stands on stderr under it.",
    ),
)
"""Every kind, with the code it has on the wire; the wire itself adds those of JSON-RPC."""

CODE_OF_KIND = {row.kind: row.code for row in ERROR_KINDS}


def rpc_error(failure: Failure) -> RpcError:
    """A failure as a request is answered with it."""
    data: dict[str, Any] = {"kind": failure.kind, "reason": failure.reason, **failure.data}
    return RpcError(CODE_OF_KIND[failure.kind], failure.message, data)


def not_initialized(method: str) -> RpcError:
    """The answer to anything before the handshake."""
    return RpcError(
        CODE_OF_KIND["notInitialized"],
        "initialize comes first",
        {"kind": "notInitialized", "reason": "not_initialized", "method": method},
    )


assert {
    kind.kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Failure) and kind is not Failure
} <= set(CODE_OF_KIND)
