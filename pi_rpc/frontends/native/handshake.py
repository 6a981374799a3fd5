"""The handshake, in terms light enough to be answered before anything else is loaded.

A host waits for the answer to `initialize`; the event loop and the shapes take many times as long
to load as the answer takes to make. So this file imports nothing of ours, and what it does not
understand at first sight it leaves to the method table.

Promises
- An answer given here is the one the method table gives.
"""

import json
from typing import Any

PROTOCOL_VERSION = 1
"""The version of this protocol; the only one so far."""

SERVER_NAME = "pi-rpc"

FRAMINGS = ["lines", "content-length"]

LIMIT_BYTES = 64 * 1024 * 1024
"""The longest message, in either direction, unless a client asks for less."""

NESTING = 512
BATCH = 1024
IN_FLIGHT = 1024

MESSAGE_BYTES_MIN = 64 * 1024
"""The least a client can ask messages to be bounded by: a session state must fit."""

_PLAIN_TYPES: dict[str, type] = {
    "experimental": bool,
    "ui": list,
    "optOut": list,
    "maxMessageBytes": int,
}


def outbound_limit_bytes(asked: int | None, limit: int = LIMIT_BYTES) -> int:
    """The longest message sent to a client that reads none longer than `asked`."""
    return limit if asked is None else min(limit, max(asked, MESSAGE_BYTES_MIN))


def quick_answer(line: bytes, version: str) -> bytes | None:
    """The answer to a first line that is a plain `initialize`; None for anything unusual."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict) or not set(request) <= {"jsonrpc", "id", "method", "params"}:
        return None
    name, params = request.get("id"), request.get("params")
    if request.get("jsonrpc") != "2.0" or request.get("method") != "initialize":
        return None
    if not isinstance(name, int | str) or isinstance(name, bool) or not isinstance(params, dict):
        return None
    if not _is_plain(params):
        return None
    capabilities = params.get("capabilities", {})
    answer = {
        "jsonrpc": "2.0",
        "id": name,
        "result": initialize_result(
            version,
            capabilities.get("experimental", False),
            outbound_limit_bytes(capabilities.get("maxMessageBytes")),
        ),
    }
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"


def initialize_result(version: str, experimental: bool, outbound_bytes: int) -> dict[str, Any]:
    """The answer's result, when there is nothing odd to tell of the start."""
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "serverInfo": {"name": SERVER_NAME, "version": version},
        "capabilities": {
            "experimental": experimental,
            "framings": FRAMINGS,
            "progress": True,
            "catchUp": True,
        },
        "limits": {
            "inboundBytes": LIMIT_BYTES,
            "outboundBytes": outbound_bytes,
            "nesting": NESTING,
            "batch": BATCH,
            "inFlight": IN_FLIGHT,
        },
        "diagnostics": [],
    }


def _is_plain(params: dict[str, Any]) -> bool:
    if not set(params) <= {"protocolVersion", "clientInfo", "capabilities"}:
        return False
    wanted, client = params.get("protocolVersion"), params.get("clientInfo")
    capabilities = params.get("capabilities", {})
    return (
        type(wanted) is int
        and wanted >= PROTOCOL_VERSION
        and isinstance(client, dict)
        and isinstance(client.get("name"), str)
        and isinstance(client.get("version", ""), str)
        and isinstance(capabilities, dict)
        and all(
            type(value) is _PLAIN_TYPES.get(field) and _holds_texts(value)
            for field, value in capabilities.items()
        )
    )


def _holds_texts(value: object) -> bool:
    return not isinstance(value, list) or all(isinstance(item, str) for item in value)
