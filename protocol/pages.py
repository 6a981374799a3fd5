"""The pages for people: methods.md and errors.md."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pi_rpc.core.hooks import HOOKS
from pi_rpc.frontends.native.errors import ERROR_KINDS
from pi_rpc.frontends.native.method import Method, NotificationRow
from pi_rpc.frontends.native.shapes import (
    MoveParams,
    NoParams,
    Params,
    SessionParams,
    StoredParams,
)
from pi_rpc.frontends.native.table import REQUESTS
from pi_rpc.wire import errors as wire_errors
from protocol.reasons import Reason
from protocol.schema import REF, JsonObject, Shapes

GENERATED = "<!-- Written by protocol/generate.py from the one table; edit that, not this. -->"

_TOOL_SOURCES = ("tools/", "core/arguments")
"""Where a failure is told in the outcome of a call, not in the answer to a request."""

_WIRE_ROWS = (
    (
        "parse",
        "invalid",
        wire_errors.PARSE_ERROR,
        "The bytes are no JSON; answered with `id: null`.",
        "Mend the framing or the encoder.",
    ),
    (
        "request",
        "invalid",
        wire_errors.INVALID_REQUEST,
        "JSON, but no request, notification or response.",
        "Mend the message.",
    ),
    (
        "",
        "missing",
        wire_errors.METHOD_NOT_FOUND,
        "No such method.",
        "Do without it: this daemon does not serve it.",
    ),
    (
        "",
        "cancelled",
        wire_errors.REQUEST_CANCELLED,
        "The client withdrew the request, or the connection closes.",
        "Nothing; it was asked for.",
    ),
)


def methods_page(
    found: Shapes, methods: Mapping[str, Method], notifications: Mapping[str, NotificationRow]
) -> str:
    """The content of methods.md."""
    lines = [
        "# Methods and notifications",
        "",
        GENERATED,
        "",
        "Every request may carry `progressToken`, which names its `$/progress` notifications.",
        "A field with `?` may be left out. Shapes that several methods share stand at the end.",
        "A session is wanted open where nothing else is said: `session/open` opens it. One that",
        "need not be open is named by `sessionId` or `path`, and the beginning of an id will do",
        "where it is unambiguous.",
        "",
    ]
    groups: dict[str, list[str]] = {}
    for name in methods:
        groups.setdefault(name.partition("/")[0] if "/" in name else "life", []).append(name)
    lines += [f"- [{group}](#{group})" for group in (*groups, "notifications")]
    lines += ["- [requests to the client](#requests-to-the-client)", "- [shapes](#shapes)"]
    for group, names in groups.items():
        lines += ["", f"## {group}"]
        for name in names:
            lines += ["", f"### `{name}`", "", *_method(name, methods[name], found)]
    lines += ["", "## notifications"]
    for name, row in notifications.items():
        sender = "" if row.sender == "server" else " Sent by the client."
        shape = found.defs[_shape_name(found.notices[name])]
        lines += ["", f"### `{name}` (notification)", "", _sentence(row.summary) + sender, ""]
        lines += _fields(shape, skip={"sessionId", "runtimeId", "seq", "subscriptionIds"})
    lines += ["", "## requests to the client", ""]
    lines += ["Each is answered once; `$/cancelRequest` of ours says that nobody waits any more."]
    for name, request in REQUESTS.items():
        params, *results = found.requests[name]
        shape = found.defs[_shape_name(params)]
        each = dict.fromkeys(_type(one) for one in results[: len(request.results)])
        answers = " or ".join(each)
        lines += ["", f"### `{name}` (request to the client)", "", _sentence(request.summary), ""]
        lines += [*_fields(shape), "", f"Result: {answers}."]
        if name == "hook/call":
            lines += ["", *_hooks()]
        if request.progress is not None:
            lines += [f"`tool/progress` of the client carries {_type(results[-1])}."]
    lines += ["", "## shapes"]
    own = {_shape_name(schema) for schema in (*found.params.values(), *found.notices.values())}
    for name, shape in found.defs.items():
        if name not in own:
            lines += ["", f"### {name}", "", str(shape.get("description", "")), "", *_fields(shape)]
    return _page(lines)


def _hooks() -> list[str]:
    """The points, each with what it tells, what it takes, and what holds without an answer."""
    rows = []
    for name, point in HOOKS.items():
        told, answer = point.told, point.answer
        about = " ".join((told.__doc__ or "").split())
        more = " Extensions only, where the user grants it." if point.is_local else ""
        rows.append(
            f"| `{name}` | [{told.__name__}](#{told.__name__.lower()}) |"
            f" [{answer.__name__}](#{answer.__name__.lower()}) | `{point.default}` |"
            f" {about}{more} |"
        )
    return ["| hook | payload | result | onTimeout | |", "|---|---|---|---|---|", *rows]


def _method(name: str, method: Method, found: Shapes) -> list[str]:
    words = " ".join((method.handler.__doc__ or method.summary).split())
    marks = []
    if method.experimental:
        marks.append("Experimental.")
    if method.experimental_fields:
        gated = ", ".join(f"`{field}`" for field in method.experimental_fields)
        marks.append(f"Experimental fields: {gated}.")
    if method.before_handshake:
        marks.append("May come before the handshake.")
    if issubclass(method.params, StoredParams):
        marks.append("The session need not be open.")
    params = found.defs[_shape_name(found.params[name])]
    result = found.results[name]
    more = _more_of_params(method.params)
    return [
        " ".join([_sentence(words), *marks]),
        "",
        *([more, ""] if more else []),
        *_fields(params, skip={"progressToken"}, none="No parameters."),
        "",
        f"Result: {_type(result)}.",
    ]


def _more_of_params(kind: type[Params]) -> str:
    """The words of params that say more than what they are: several sentences, or one with a colon
    or semicolon. Those that several methods share are told once, among the shapes.
    """
    words = " ".join((kind.__doc__ or "").split())
    is_shared = kind in (Params, NoParams, SessionParams, StoredParams, MoveParams)
    return "" if is_shared or not re.search(r"[;:.] ", words) else words


def _fields(
    shape: JsonObject, skip: Iterable[str] = (), none: str = "No fields of its own."
) -> list[str]:
    required = set(shape.get("required", ()))
    fields = {
        name: schema for name, schema in shape.get("properties", {}).items() if name not in skip
    }
    if not fields:
        return [none]
    return ["| field | type | |", "|---|---|---|"] + [
        f"| `{name}{'' if name in required else '?'}` | {_cell(_type(schema))} |"
        f" {_cell(_about(schema))} |"
        for name, schema in fields.items()
    ]


def _about(schema: JsonObject) -> str:
    words = str(schema.get("description", ""))
    default = schema.get("default")
    if default in (None, [], {}):
        return words
    return f"{words} Default `{json.dumps(default)}`.".strip()


def _type(schema: Any) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        name = _shape_name(schema)
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema.get('items', {}))}"
        case "object" if isinstance(values := schema.get("additionalProperties"), dict):
            return f"object of {_type(values)}"
        case None:
            return "any JSON"
        case other:
            return str(other)


def errors_page(reasons: list[Reason]) -> str:
    """The content of errors.md."""
    lines = [
        "# Errors",
        "",
        GENERATED,
        "",
        "Every error answer carries `data` with a stable `kind` and a stable, finer `reason`; the",
        "rest of `data` is what a program needs. `message` is for people and may change any day.",
        "An act that was answered with an error did not happen.",
        "",
        "```json",
        '{"jsonrpc": "2.0", "id": 7, "error": {"code": -32010, "message": "a run is going on",',
        ' "data": {"kind": "busy", "reason": "run_in_progress", "runId": "…"}}}',
        "```",
        "",
        "## Kinds",
        "",
        "| kind | code | means | what a client should do |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{row.kind}` | {row.code} | {row.meaning} | {row.advice} |" for row in ERROR_KINDS
    ]
    lines += ["", "JSON-RPC's own cases, and the code of a withdrawn request:", ""]
    lines += ["| kind | code | means | what a client should do |", "|---|---|---|---|"]
    lines += [
        f"| `{kind}` | {code} | {means} | {advice} |" for _, kind, code, means, advice in _WIRE_ROWS
    ]
    lines += ["", "## Reasons", "", "A client treats a reason it does not know as its kind.", ""]
    answered = [one for one in reasons if not one.source.startswith(_TOOL_SOURCES)]
    for slug, title in _answer_kinds():
        lines += _reason_table(title, [one for one in answered if one.kind == slug])
    told = [one for one in reasons if one.source.startswith(_TOOL_SOURCES)]
    lines += [
        "## Reasons in the outcome of a call",
        "",
        "A tool that fails answers the model; a client finds these under `details.reason` of the",
        "outcome.",
        "",
    ]
    lines += _reason_table("", [one for one in told if one.kind not in ("diagnostic", "verdict")])
    lines += [
        "## Diagnostics",
        "",
        "Something odd that stopped nothing: in the answers of `initialize`, `session/open` and",
        "`context/explain`, and in `diagnostic` notifications.",
        "",
    ]
    lines += _reason_table("", [one for one in reasons if one.kind == "diagnostic"])
    lines += ["## Verdicts", "", "Why an environment has the status it has, scope by scope.", ""]
    lines += _reason_table("", [one for one in reasons if one.kind == "verdict"])
    return _page(lines)


def _answer_kinds() -> list[tuple[str, str]]:
    own = [(row.kind, f"`{row.kind}` ({row.code})") for row in ERROR_KINDS]
    wire = [(slug, f"`{kind}` ({code})") for slug, kind, code, _, _ in _WIRE_ROWS if slug]
    return wire + own


def _reason_table(title: str, reasons: list[Reason]) -> list[str]:
    if not reasons:
        return []
    merged: dict[str, tuple[dict[str, None], set[str]]] = {}
    for one in reasons:
        words, fields = merged.setdefault(one.reason, ({}, set()))
        if one.words:
            words[one.words] = None
        fields.update(one.fields)
    has_fields = any(fields for _, fields in merged.values())
    heading = ["### " + title, ""] if title else []
    head = ["| reason | data | says |", "|---|---|---|"]
    rows = [
        f"| `{reason}` | {', '.join(f'`{name}`' for name in sorted(fields))} |"
        f" {_cell('; '.join(words))} |"
        for reason, (words, fields) in sorted(merged.items())
    ]
    if not has_fields:
        head = ["| reason | says |", "|---|---|"]
        rows = [
            f"| `{reason}` | {_cell('; '.join(words))} |"
            for reason, (words, _) in sorted(merged.items())
        ]
    return [*heading, *head, *rows, ""]


def _shape_name(schema: JsonObject) -> str:
    return str(schema["$ref"]).removeprefix(REF)


def _sentence(words: str) -> str:
    return words if words.endswith(".") else words + "."


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


def _page(lines: list[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"
