"""JSON Schema of every shape on the wire, from the one table.

Promises
- The same table gives the same schema: names, order and words.
- Two shapes never share a name: where two classes do, each is named after its module too.
- A shape that refuses unknown fields says so; every free object says that it is one.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from pi_rpc.core.hooks import HOOKS
from pi_rpc.frontends.native.method import ClientRequest, Method, NotificationRow
from pi_rpc.frontends.native.table import METHODS, NOTIFICATIONS, REQUESTS

JsonObject = dict[str, Any]

REF = "#/$defs/"
"""What a reference to a shape begins with."""


class Shapes(msgspec.Struct, frozen=True):
    """Every shape by name, and which of them each method and notification uses."""

    defs: dict[str, JsonObject]
    params: dict[str, JsonObject]
    results: dict[str, JsonObject]
    notices: dict[str, JsonObject]
    requests: dict[str, list[JsonObject]]
    """Of requests to the client: params, the results there may be, and progress if there is any."""


def shapes(
    methods: Mapping[str, Method] = METHODS,
    notifications: Mapping[str, NotificationRow] = NOTIFICATIONS,
    requests: Mapping[str, ClientRequest] = REQUESTS,
) -> Shapes:
    """The shapes of all methods and notifications."""
    asked = {
        name: [row.params, *row.results, *([] if row.progress is None else [row.progress])]
        for name, row in requests.items()
    }
    roots = (
        [method.params for method in methods.values()]
        + [method.result for method in methods.values()]
        + [row.shape for row in notifications.values()]
        + [shape for row in asked.values() for shape in row]
        + [point.told for point in HOOKS.values()]
    )
    schemas, components = msgspec.json.schema_components(roots, ref_template=REF + "{name}")
    names = _clean_names(components)
    classes = {_schema_name(kind, names): kind for kind in _structs(roots)}
    taken = set(_structs([method.params for method in methods.values()]))
    for row in requests.values():
        # What the client says may hold null where a field may be left out.
        taken |= set(_structs([*row.results, *([] if row.progress is None else [row.progress])]))
    defs = {}
    for raw, schema in components.items():
        name = names[raw]
        kind = classes.get(name)
        defs[name] = _described(_explicit(_renamed(schema, names)), kind)
        defs[name]["title"] = name
        if kind is not None and kind not in taken:
            _leave_out_null(defs[name], kind)
    told = iter([_explicit(_renamed(schema, names)) for schema in schemas])
    return Shapes(
        defs=dict(sorted(defs.items())),
        params={name: next(told) for name in methods},
        results={name: next(told) for name in methods},
        notices={name: next(told) for name in notifications},
        requests={name: [next(told) for _ in row] for name, row in asked.items()},
    )


def schema_document(
    found: Shapes, methods: Mapping[str, Method], notifications: Mapping[str, NotificationRow]
) -> JsonObject:
    """The content of schema.json."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:pi-rpc:protocol:1",
        "title": "pi-rpc",
        "description": "Every shape of the native protocol, and where each is used.",
        "methods": {
            name: {
                "summary": method.summary,
                "params": found.params[name],
                "result": found.results[name],
            }
            | ({"experimental": True} if method.experimental else {})
            | (
                {"experimentalFields": [_camel(field) for field in method.experimental_fields]}
                if method.experimental_fields
                else {}
            )
            for name, method in methods.items()
        },
        "notifications": {
            name: {"summary": row.summary, "sender": row.sender, "params": found.notices[name]}
            for name, row in notifications.items()
        },
        "requests": {
            name: {
                "summary": row.summary,
                "params": found.requests[name][0],
                "results": found.requests[name][1 : 1 + len(row.results)],
            }
            | ({"progress": found.requests[name][-1]} if row.progress is not None else {})
            for name, row in REQUESTS.items()
        },
        "hooks": {
            name: {
                "payload": {"$ref": REF + point.told.__name__},
                "answer": {"$ref": REF + point.answer.__name__},
                "onTimeout": point.default,
            }
            | ({"extensionsOnly": True} if point.is_local else {})
            for name, point in HOOKS.items()
        },
        "$defs": found.defs,
    }


def _clean_names(components: Mapping[str, JsonObject]) -> dict[str, str]:
    """Names without modules: msgspec gives a whole address to classes that share their name."""
    names = {}
    for raw in components:
        *above, own = raw.split(".")
        module = above[-1].title().replace("_", "") if above else ""
        names[raw] = module + own
    if len(set(names.values())) < len(names):
        raise ValueError(f"shapes share a name, rename one: {sorted(names.values())}")
    return names


def _schema_name(kind: type, names: Mapping[str, str]) -> str:
    own = kind.__name__
    return names[own] if own in names else names.get(f"{kind.__module__}.{own}", own)


def _structs(roots: list[Any]) -> Iterator[type[msgspec.Struct]]:
    seen: set[type[msgspec.Struct]] = set()
    waiting: list[Any] = [msgspec.inspect.type_info(root) for root in roots]
    while waiting:
        info = waiting.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls not in seen:
                seen.add(info.cls)
                yield info.cls
                waiting += [field.type for field in info.fields]
        else:
            for name in ("types", "item_type", "item_types", "value_type"):
                inner = getattr(info, name, None)
                if inner is not None:
                    waiting += inner if isinstance(inner, tuple) else [inner]


def _each(schema: Any, change: Callable[[JsonObject], JsonObject]) -> Any:
    """The schema with every object in it changed, innermost first."""
    if isinstance(schema, dict):
        return change({name: _each(value, change) for name, value in schema.items()})
    if isinstance(schema, list):
        return [_each(value, change) for value in schema]
    return schema


def relinked(schema: JsonObject, ref: str) -> JsonObject:
    """The schema with its references leading below `ref` instead of `$defs`."""

    def change(one: JsonObject) -> JsonObject:
        old = one.get("$ref")
        return one | {"$ref": ref + old.removeprefix(REF)} if isinstance(old, str) else one

    linked: JsonObject = _each(schema, change)
    return linked


def _renamed(schema: JsonObject, names: Mapping[str, str]) -> JsonObject:
    def change(one: JsonObject) -> JsonObject:
        ref = one.get("$ref")
        return one | {"$ref": REF + names[ref.removeprefix(REF)]} if isinstance(ref, str) else one

    renamed: JsonObject = _each(schema, change)
    return renamed


def _explicit(schema: JsonObject) -> JsonObject:
    def change(one: JsonObject) -> JsonObject:
        is_free = one.get("type") == "object" and "properties" not in one
        return one | {"additionalProperties": True} if is_free else one

    def settle(one: JsonObject) -> JsonObject:
        # An object that says nothing of other fields already is written by msgspec as it is meant.
        return one if "additionalProperties" in one else change(one)

    explicit: JsonObject = _each(schema, settle)
    return explicit


def _described(schema: JsonObject, kind: type[msgspec.Struct] | None) -> JsonObject:
    """The schema with the words that stand below each field in the source."""
    properties = schema.get("properties")
    if kind is None or not isinstance(properties, dict):
        return schema
    words = field_words(kind)
    for field in msgspec.structs.fields(kind):
        if field.name in words:
            properties[field.encode_name] = properties[field.encode_name] | {
                "description": words[field.name]
            }
    return schema


def _leave_out_null(schema: JsonObject, kind: type[msgspec.Struct]) -> None:
    """What is left out when it is None is never null on the wire."""
    if not msgspec.structs.fields(kind) or not kind.__struct_config__.omit_defaults:
        return
    for field in msgspec.structs.fields(kind):
        told = schema["properties"][field.encode_name]
        if field.default is None and "anyOf" in told:
            others = [one for one in told["anyOf"] if one != {"type": "null"}]
            rest = {name: value for name, value in told.items() if name not in ("anyOf", "default")}
            what = others[0] if len(others) == 1 else {"anyOf": others}
            schema["properties"][field.encode_name] = what | rest


def field_words(kind: type[msgspec.Struct]) -> dict[str, str]:
    """What is written below the fields of a class and of those it is made from."""
    words: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base in (object, msgspec.Struct) or not issubclass(base, msgspec.Struct):
            continue
        [class_node] = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(class_node, ast.ClassDef)
        for above, below in zip(class_node.body, class_node.body[1:], strict=False):
            if (
                isinstance(above, ast.AnnAssign)
                and isinstance(above.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                words[above.target.id] = " ".join(str(below.value.value).split())
    return words


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
