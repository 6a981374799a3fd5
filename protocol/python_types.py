"""Types for the Python client: one TypedDict a shape, and one overload a method.

What is written here is checked with `mypy --strict` as part of the client.
"""

import json
import keyword
from collections.abc import Mapping
from typing import Any

from pi_rpc.frontends.native.method import Method, NotificationRow
from protocol.schema import REF, JsonObject, Shapes

_LINE_CHARACTERS = 100

_HEAD = '''\
# ruff: noqa: E501
# fmt: off
"""Shapes of the native protocol. Written by protocol/generate.py from the one table; do not edit.

A key that is `NotRequired` may be left out by whoever sends the object. Daemons newer than this
file may send more keys than it names.
"""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, Protocol, TypedDict, overload

'''


def python_module(
    found: Shapes, methods: Mapping[str, Method], notifications: Mapping[str, NotificationRow]
) -> str:
    """The content of the client's types.py."""
    parts = [_HEAD + _names("METHODS", list(methods), "Every method this file knows.")]
    parts += [_shape(name, found.defs[name]) for name in _ordered(found.defs)]
    told = {name: row for name, row in notifications.items() if row.sender == "server"}
    parts += [_message(name, _type(found.notices[name])) for name in told]
    union = "\n    | ".join(_message_name(name) for name in told)
    words = "One of the server's notifications; `method` tells which."
    parts.append(f'Notification = (\n    {union}\n)\n"""{words}"""')
    parts.append(_calls(found, methods))
    return "\n\n\n".join(parts) + "\n"


def _names(constant: str, names: list[str], words: str) -> str:
    listed = "\n".join(f'        "{name}",' for name in names)
    return f'{constant} = frozenset(\n    {{\n{listed}\n    }}\n)\n"""{words}"""'


def _shape(name: str, shape: JsonObject) -> str:
    fields = shape.get("properties", {})
    required = set(shape.get("required", ()))
    if any(keyword.iskeyword(field) for field in fields):
        listed = "\n".join(
            f'        "{field}": {_field(schema, field in required)},'
            for field, schema in fields.items()
        )
        words = shape.get("description", "")
        return f'{name} = TypedDict(\n    "{name}",\n    {{\n{listed}\n    }},\n)\n"""{words}"""'
    lines = [f"class {name}(TypedDict):", *_docstring(str(shape.get("description", "")), 4)]
    if fields:
        lines.append("")
    for field, schema in fields.items():
        lines.append(f"    {field}: {_field(schema, field in required)}")
        if "description" in schema:
            lines += _docstring(schema["description"], 4)
    return "\n".join(lines)


def _field(schema: JsonObject, is_required: bool) -> str:
    return _type(schema) if is_required else f"NotRequired[{_type(schema)}]"


def _docstring(words: str, indent: int) -> list[str]:
    room = _LINE_CHARACTERS - indent
    if len(words) + 6 <= room:
        return [f'{" " * indent}"""{words}"""']
    lines, line = [], '"""'
    for word in words.split():
        if len(line) + 1 + len(word) > room:
            lines.append(line)
            line = word
        else:
            line += word if line == '"""' else f" {word}"
    return [" " * indent + text for text in (*lines, line, '"""')]


def _ordered(defs: Mapping[str, JsonObject]) -> list[str]:
    """Names of shapes, each behind those it mentions. Raises ValueError for a circle."""
    ordered: dict[str, None] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"shapes hold each other: {' > '.join((*above, name))}")
        for other in sorted(_mentioned(defs[name])):
            visit(other, (*above, name))
        ordered[name] = None

    for name in defs:
        visit(name, ())
    return list(ordered)


def _mentioned(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = {str(schema["$ref"]).removeprefix(REF)} if "$ref" in schema else set()
        return own.union(*map(_mentioned, schema.values()))
    return set().union(*map(_mentioned, schema)) if isinstance(schema, list) else set()


def _type(schema: Any) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
    match schema.get("type"):
        case "array":
            return f"list[{_type(schema.get('items', {}))}]"
        case "object":
            values = schema.get("additionalProperties")
            return f"dict[str, {_type(values) if isinstance(values, dict) else 'Any'}]"
        case None:
            return "Any"
        case other:
            plain = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
            return plain.get(other, "None")


def _message_name(method: str) -> str:
    parts = method.replace("$", "").replace("/", " ").split()
    return "".join(part[0].upper() + part[1:] for part in parts) + "Message"


def _message(method: str, shape: str) -> str:
    return (
        f"class {_message_name(method)}(TypedDict):\n"
        f'    """`{method}` as it comes."""\n\n'
        f'    method: Literal["{method}"]\n'
        f"    params: {shape}"
    )


def _calls(found: Shapes, methods: Mapping[str, Method]) -> str:
    lines = [
        "class Calls(Protocol):",
        '    """`call`, typed for each method."""',
    ]
    for name, _ in methods.items():
        params = _type(found.params[name])
        is_needed = bool(found.defs[params].get("required"))
        given = f"params: {params}" if is_needed else f"params: {params} | None = None"
        head = f'async def call(self, method: Literal["{name}"], {given})'
        lines += ["", "    @overload", f"    {head} -> {_type(found.results[name])}: ..."]
    lines += [
        "",
        "    async def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:",
        '        """Call a method and return its result. Raises PiRpcError, DaemonEndedError."""',
        "        return await self.request(method, params)",
        "",
        "    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:",
        '        """Call any method, known to these types or not."""',
        "        ...",
    ]
    return "\n".join(lines)
