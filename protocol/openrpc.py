"""The OpenRPC document: methods, notifications, results and errors for tools that read it."""

from collections.abc import Mapping
from typing import Any

from pi_rpc.frontends.native.errors import ERROR_KINDS
from pi_rpc.frontends.native.method import ClientRequest, Method, NotificationRow
from pi_rpc.frontends.native.table import REQUESTS
from protocol.schema import REF, JsonObject, Shapes, relinked

OPENRPC_VERSION = "1.3.2"
"""The version of the OpenRPC specification that the document follows."""


def openrpc_document(
    found: Shapes, methods: Mapping[str, Method], notifications: Mapping[str, NotificationRow]
) -> JsonObject:
    """The content of openrpc.json.

    A notification is a method without a result, as OpenRPC has it; `x-sender` says who sends it.
    """
    schemas = {name: _linked(schema) for name, schema in found.defs.items()}
    return {
        "openrpc": OPENRPC_VERSION,
        "info": {
            "title": "pi-rpc",
            "version": "1.0.0",
            "description": "Coding-agent sessions over JSON-RPC 2.0 on stdin and stdout.",
            "license": {"name": "MIT"},
        },
        "methods": [_method(name, method, found) for name, method in methods.items()]
        + [_notification(name, row, found) for name, row in notifications.items()],
        "x-client-methods": [
            {
                "name": name,
                "summary": row.summary,
                "paramStructure": "by-name",
                "params": _params(found.defs[_shape_name(found.requests[name][0])]),
                "result": {"name": "result", "schema": _answers(row, found.requests[name])},
            }
            for name, row in REQUESTS.items()
        ],
        "components": {
            "schemas": schemas,
            "errors": {row.kind: {"code": row.code, "message": row.meaning} for row in ERROR_KINDS},
        },
    }


def _method(name: str, method: Method, found: Shapes) -> JsonObject:
    told: JsonObject = {
        "name": name,
        "summary": method.summary,
        "description": " ".join((method.handler.__doc__ or method.summary).split()),
        "paramStructure": "by-name",
        "params": _params(found.defs[_shape_name(found.params[name])]),
        "result": {
            "name": "result",
            "schema": _linked(found.results[name]),
        },
        "errors": [{"$ref": f"#/components/errors/{row.kind}"} for row in ERROR_KINDS],
    }
    if method.experimental:
        told["x-experimental"] = True
    return told


def _notification(name: str, row: NotificationRow, found: Shapes) -> JsonObject:
    return {
        "name": name,
        "summary": row.summary,
        "paramStructure": "by-name",
        "params": _params(found.defs[_shape_name(found.notices[name])]),
        "x-sender": row.sender,
    }


def _answers(row: ClientRequest, shapes: list[JsonObject]) -> Any:
    results = [_linked(one) for one in shapes[1 : 1 + len(row.results)]]
    return results[0] if len(results) == 1 else {"anyOf": results}


def _shape_name(schema: JsonObject) -> str:
    return str(schema["$ref"]).removeprefix(REF)


def _params(shape: JsonObject) -> list[JsonObject]:
    required = set(shape.get("required", ()))
    properties = shape.get("properties", {})
    # OpenRPC wants required parameters first.
    return [
        {
            "name": name,
            "required": name in required,
            "schema": _linked(
                {key: value for key, value in schema.items() if key != "description"}
            ),
        }
        | ({"description": schema["description"]} if "description" in schema else {})
        for name, schema in sorted(properties.items(), key=lambda pair: pair[0] not in required)
    ]


def _linked(schema: JsonObject) -> Any:
    return relinked(schema, "#/components/schemas/")
