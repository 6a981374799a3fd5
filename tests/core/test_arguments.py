"""Arguments are read in the one way they can be read, or refused with every reason."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.arguments import checked
from pi_rpc.core.errors import Invalid


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def read(value: Any, schema: dict[str, Any]) -> Any:
    return checked({"x": value}, object_of(x=schema))["x"]


def problems(arguments: dict[str, Any], schema: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(Invalid) as raised:
        checked(arguments, schema)
    assert raised.value.reason == "invalid_arguments"
    return [(each["path"], each["problem"]) for each in raised.value.data["problems"]]


@pytest.mark.parametrize(
    ("given", "kind", "made"),
    [
        ("42", "integer", 42),
        (" 42 ", "integer", 42),
        ("1.5", "number", 1.5),
        ("-3e2", "number", -300.0),
        (True, "integer", 1),
        (1.5, "integer", 1),
        (-1.5, "integer", -1),
        ("1.9", "integer", 1),
        (1, "boolean", True),
        (0, "boolean", False),
        ("true", "boolean", True),
        ("false", "boolean", False),
        (42, "string", "42"),
        (1.0, "string", "1"),
        (1.5, "string", "1.5"),
        (True, "string", "true"),
        ("one", "array", ["one"]),
        (7, "array", [7]),
        (5, "number", 5),
        ("", "string", ""),
        (7, ["string", "null"], "7"),
        (None, ["string", "null"], None),
        ("7", ["string", "integer"], "7"),
    ],
)
def test_a_value_that_can_be_read_in_one_way_is_read_so(given: Any, kind: Any, made: Any) -> None:
    result = read(given, {"type": kind})
    assert (result, type(result)) == (made, type(made))


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("", "integer"),
        ("", "number"),
        (None, "string"),
        (None, "integer"),
        ("x", "number"),
        ("0x10", "integer"),
        ("nan", "number"),
        (float("inf"), "number"),
        (float("nan"), "integer"),
        ("yes", "boolean"),
        (2, "boolean"),
        ({}, "string"),
        ([], "string"),
        ({"a": 1}, "array"),
        ('{"a": 1}', "object"),
        ("9" * 5000, "integer"),
    ],
)
def test_a_value_that_may_mean_something_else_is_refused(given: Any, kind: str) -> None:
    ((path, _),) = problems({"x": given}, object_of(x={"type": kind}))
    assert path == "x"


def test_scalars_become_lists_and_missing_names_are_told() -> None:
    schema = object_of(n={"type": "integer"}, a={"type": "array", "items": {"type": "string"}})
    assert checked({"n": "42", "a": "one"}, schema) == {"n": 42, "a": ["one"]}
    assert problems({"n": "42"}, schema) == [("a", "is required")]


def test_every_problem_is_told_with_its_path() -> None:
    edit = object_of(oldText={"type": "string"}, newText={"type": "string"})
    schema = object_of(path={"type": "string"}, edits={"type": "array", "items": edit})
    arguments = {"path": None, "edits": [{"oldText": "a", "newText": "b"}, {"oldText": {}}]}
    assert problems(arguments, schema) == [
        ("path", "must be text, not null"),
        ("edits[1].newText", "is required"),
        ("edits[1].oldText", "must be text, not an object"),
    ]


def test_null_for_an_optional_property_is_left_out_unless_null_is_allowed() -> None:
    schema = {
        "type": "object",
        "properties": {
            "plain": {"type": "string"},
            "open": {"type": ["string", "null"]},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
    }
    given = {"plain": None, "open": None, "either": None}
    assert checked(given, schema) == {"open": None, "either": None}


def test_other_properties_pass_unless_the_schema_forbids_them() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert checked({"a": "x", "b": [1]}, schema) == {"a": "x", "b": [1]}
    closed = {**schema, "additionalProperties": False}
    assert problems({"a": "x", "b": 1}, closed) == [("b", "is not allowed")]


def test_an_enum_is_exact() -> None:
    assert read("a", {"enum": ["a", 1]}) == "a"
    assert problems({"x": True}, object_of(x={"enum": ["a", 1]})) == [
        ("x", 'must be one of "a", 1')
    ]
    assert problems({"x": "A"}, object_of(x={"enum": ["a"]})) == [("x", 'must be one of "a"')]


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        (0, {"type": "number", "exclusiveMinimum": 0}, "must be more than 0"),
        (3, {"type": "number", "maximum": 2}, "must be at most 2"),
        (-1, {"type": "integer", "minimum": 0}, "must be at least 0"),
        ("", {"type": "string", "minLength": 1}, "must have at least 1 characters"),
        ([1, 2], {"type": "array", "maxItems": 1}, "must have at most 1 items"),
        (2, {"const": 1}, "must be 1"),
    ],
)
def test_bounds_are_kept(value: Any, schema: dict[str, Any], problem: str) -> None:
    assert problems({"x": value}, object_of(x=schema)) == [("x", problem)]


def test_an_option_that_takes_the_value_as_it_is_goes_first() -> None:
    options = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    assert read(7, options) == 7
    assert read(True, options) == "true"
    assert problems({"x": {}}, object_of(x=options)) == [("x", "fits none of the allowed forms")]


def test_references_within_the_schema_are_followed_and_circles_end() -> None:
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}, "loop": {"$ref": "#/$defs/loop"}},
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "n": {"type": "integer"},
                    "next": {"$ref": "#/$defs/node"},
                },
            },
            "loop": {"$ref": "#/$defs/loop"},
        },
    }
    assert checked({"tree": {"n": "1", "next": {"n": "2"}}}, schema) == {
        "tree": {"n": 1, "next": {"n": 2}}
    }
    assert problems({"loop": 1}, schema) == [("loop", "is nested deeper than 64 levels")]


def test_nesting_beyond_measure_is_refused() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    ((path, problem),) = problems({"x": deep}, {})
    assert path.startswith("x[0][0]")
    assert problem == "is nested deeper than 64 levels"


def test_what_was_given_is_neither_changed_nor_shared() -> None:
    arguments = {"n": "42", "list": [{"a": "1"}]}
    before = copy.deepcopy(arguments)
    made = checked(arguments, {"properties": {"n": {"type": "integer"}}})
    made["list"][0]["a"] = "changed"
    made["list"].append(1)
    assert arguments == before


SCHEMAS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "integer"}}},
        {"type": ["null", "string"]},
        {"anyOf": [{"type": "integer"}, {"type": "array"}]},
        {},
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(VALUES, SCHEMAS)
def test_checking_a_result_again_gives_the_same_result(value: Any, schema: dict[str, Any]) -> None:
    whole = {"type": "object", "properties": {"x": schema}}
    try:
        made = checked({"x": value}, whole)
    except Invalid as invalid:
        assert invalid.data["problems"]
        return
    assert repr(checked(made, whole)) == repr(made)
