"""Arguments of a call brought into the shape a JSON Schema asks for, or refused with every reason.

Models write `"42"` for 42 and `true` for `"true"`. What can be read in only one way is read that
way; what could mean something else is refused: null is no text, and an empty text is no number.

Keywords understood: type, properties, required, additionalProperties, items, enum, const, anyOf,
oneOf (as anyOf), allOf, `$ref` within the schema, and the bounds of numbers, texts and lists.
Others are left alone, so that a schema from elsewhere never makes a tool unusable.

Promises
- What was given is not changed, and the result shares nothing mutable with it.
- Checking a result again gives the same result.
- Every problem is named, each with its path.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from pi_rpc.core.errors import Invalid
from pi_rpc.core.messages import JsonObject

DEPTH_MAX = 64
"""Levels of nesting read; far above any tool's arguments, far below the interpreter's own limit."""
PROBLEMS_MAX = 20
"""Problems told; a list of a thousand wrong items needs no thousand lines."""

_NUMBER = re.compile(r"[+-]?(\d{1,300}(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,300}", re.ASCII)
_BOUNDS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("minimum", "at least", operator.ge),
    ("maximum", "at most", operator.le),
    ("exclusiveMinimum", "more than", operator.gt),
    ("exclusiveMaximum", "less than", operator.lt),
)
_NAMES = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def checked(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """The arguments as the schema wants them.

    Raises Invalid `invalid_arguments`; `data.problems` is a list of `{path, problem}`, where a path
    reads `edits[0].oldText`.
    """
    check = _Check(root=schema, problems=[])
    made = check.fitted(dict(arguments), schema, _Place("", 0))
    if check.problems:
        told = check.problems[:PROBLEMS_MAX]
        lines = [f"{each['path'] or 'arguments'}: {each['problem']}" for each in told]
        raise Invalid("invalid_arguments", "\n".join(lines), problems=told)
    if not isinstance(made, dict):
        raise Invalid("invalid_arguments", "arguments: must be an object", problems=[])
    return made


class _Place(msgspec.Struct, frozen=True):
    path: str
    depth: int

    def named(self, name: str) -> "_Place":
        return _Place(f"{self.path}.{name}" if self.path else name, self.depth + 1)

    def numbered(self, index: int) -> "_Place":
        return _Place(f"{self.path}[{index}]", self.depth + 1)

    def inside(self) -> "_Place":
        return _Place(self.path, self.depth + 1)


class _Check(msgspec.Struct):
    root: JsonObject
    problems: list[dict[str, str]]

    def wrong(self, place: _Place, problem: str) -> None:
        self.problems.append({"path": place.path, "problem": problem})

    def fitted(self, value: Any, schema: Any, place: _Place) -> Any:
        """A fresh value of the schema; problems are noted, and the rest is still looked at."""
        if place.depth > DEPTH_MAX:
            self.wrong(place, f"is nested deeper than {DEPTH_MAX} levels")
            return None
        if schema is False:
            self.wrong(place, "is not allowed")
            return None
        if not isinstance(schema, dict):
            schema = {}
        if "$ref" in schema:
            return self.fitted(value, _referred(self.root, schema["$ref"]), place.inside())
        for part in _list_of(schema, "allOf"):
            value = self.fitted(value, part, place.inside())
        options = _list_of(schema, "anyOf") or _list_of(schema, "oneOf")
        if options:
            value = self.chosen(value, options, place)
        kinds = _kinds_of(schema)
        if kinds:
            value = _coerced(value, kinds)
            if not any(_is_kind(value, kind) for kind in kinds):
                wanted = " or ".join(_NAMES.get(kind, kind) for kind in kinds)
                self.wrong(place, f"must be {wanted}, not {_named(value)}")
                return None
        self.compare(value, schema, place)
        if isinstance(value, dict):
            return self.fitted_object(value, schema, place)
        if isinstance(value, list):
            items = schema.get("items", {})
            return [
                self.fitted(item, items, place.numbered(index)) for index, item in enumerate(value)
            ]
        return value

    def fitted_object(self, value: JsonObject, schema: JsonObject, place: _Place) -> JsonObject:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        required = [name for name in _list_of(schema, "required") if isinstance(name, str)]
        others = schema.get("additionalProperties", True)
        made: JsonObject = {}
        for name in required:
            if name not in value:
                self.wrong(place.named(name), "is required")
        for name, given in value.items():
            wanted = properties.get(name, others)
            if given is None and name not in required and not self.may_be_null(wanted, 0):
                # Models write null where they mean "left out".
                continue
            made[name] = self.fitted(given, wanted, place.named(name))
        return made

    def chosen(self, value: Any, options: Sequence[Any], place: _Place) -> Any:
        """The value as one option has it; one that takes it as it is goes before the others."""
        fitting = None
        for option in options:
            attempt = _Check(root=self.root, problems=[])
            made = attempt.fitted(value, option, place.inside())
            if attempt.problems:
                continue
            if _same(made, value):
                return made
            fitting = fitting or (made,)
        if fitting:
            return fitting[0]
        self.wrong(place, "fits none of the allowed forms")
        return value

    def may_be_null(self, schema: Any, depth: int) -> bool:
        if not isinstance(schema, dict) or depth > DEPTH_MAX:
            return schema is not False
        if "$ref" in schema:
            return self.may_be_null(_referred(self.root, schema["$ref"]), depth + 1)
        kinds = _kinds_of(schema)
        options = _list_of(schema, "anyOf") or _list_of(schema, "oneOf")
        return (
            (not kinds or "null" in kinds)
            and ("enum" not in schema or None in _list_of(schema, "enum"))
            and schema.get("const") is None
            and (not options or any(self.may_be_null(each, depth + 1) for each in options))
        )

    def compare(self, value: Any, schema: JsonObject, place: _Place) -> None:
        allowed = _list_of(schema, "enum")
        if allowed and not any(_same(value, each) for each in allowed):
            self.wrong(place, "must be one of " + ", ".join(map(_shown, allowed)))
        if "const" in schema and not _same(value, schema["const"]):
            self.wrong(place, f"must be {_shown(schema['const'])}")
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.compare_number(value, schema, place)
        for kind, unit, low, high in (
            (str, "characters", "minLength", "maxLength"),
            (list, "items", "minItems", "maxItems"),
        ):
            if not isinstance(value, kind):
                continue
            least, most = _number(schema, low), _number(schema, high)
            if least is not None and len(value) < least:
                self.wrong(place, f"must have at least {least} {unit}")
            if most is not None and len(value) > most:
                self.wrong(place, f"must have at most {most} {unit}")

    def compare_number(self, value: float, schema: JsonObject, place: _Place) -> None:
        for keyword, words, holds in _BOUNDS:
            bound = _number(schema, keyword)
            if bound is not None and not holds(value, bound):
                self.wrong(place, f"must be {words} {bound}")


def _coerced(value: Any, kinds: Sequence[str]) -> Any:
    if any(_is_kind(value, kind) for kind in kinds):
        return value
    for kind in kinds:
        made = _read_as(value, kind)
        if made is not None:
            return made
    return value


def _read_as(value: Any, kind: str) -> Any:
    """The value as a kind it is not of; None when there is no one way to read it so."""
    if value is None or isinstance(value, dict):
        return None
    match kind:
        case "number" | "integer":
            return _number_from(value, whole=kind == "integer")
        case "boolean":
            if isinstance(value, str):
                return {"true": True, "false": False}.get(value)
            return bool(value) if value in (0, 1) else None
        case "string":
            return None if isinstance(value, list) else _text_from(value)
        case "array":
            return [value]
    return None


def _number_from(value: Any, whole: bool) -> int | float | None:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        text = value.strip()
        if _WHOLE.fullmatch(text):
            return int(text)
        if not _NUMBER.fullmatch(text):
            return None
        value = float(text)
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if whole else value


def _text_from(value: bool | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


def _is_kind(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and (isinstance(value, int) or math.isfinite(value))
            )
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case "null":
            return value is None
    return True


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON has it, where `True` is not 1."""
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


def _kinds_of(schema: JsonObject) -> list[str]:
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return [kinds]
    return [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else []


def _list_of(schema: JsonObject, keyword: str) -> list[Any]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


def _number(schema: JsonObject, keyword: str) -> int | float | None:
    bound = schema.get(keyword)
    return bound if isinstance(bound, int | float) and not isinstance(bound, bool) else None


def _referred(root: JsonObject, reference: Any) -> Any:
    """What `#/a/b` points to; anything goes where it points nowhere."""
    found: Any = root
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            return {}
        found = found[name]
    return found


def _named(value: Any) -> str:
    if value == "":
        return "an empty text"
    for kind, name in _NAMES.items():
        if _is_kind(value, kind):
            return name
    return type(value).__name__


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
