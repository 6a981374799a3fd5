"""System messages are patches; a fold says what all of them say."""

from typing import Any

import pytest

from pi_rpc.core.folding import fold, is_array_index, rendered_prompt
from pi_rpc.core.messages import JsonObject


def patch(text: Any = "", at: int = 1, **fields: Any) -> JsonObject:
    return {"role": "system", "content": text, "timestamp": at, **fields}


def tool(name: str, words: str = "") -> JsonObject:
    return {"name": name, "description": words, "parameters": {}}


def test_no_system_message_folds_to_none() -> None:
    assert fold([]) is None
    assert fold([{"role": "user", "content": "x"}]) is None


def test_one_empty_system_message_folds_to_an_empty_one_with_its_time() -> None:
    assert fold([patch(at=7)]) == {"role": "system", "content": "", "timestamp": 7}


def test_contents_are_joined_by_a_blank_line_and_the_first_time_holds() -> None:
    blocks = [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]
    folded = fold([patch("a", 1), patch("", 2), patch(blocks, 3)])
    assert folded == {"role": "system", "content": "a\n\nb\nc", "timestamp": 1}


def test_a_section_keeps_its_place_until_it_is_deleted() -> None:
    folded = fold(
        [
            patch(sections={"a": "1", "b": "2", "c": "3"}),
            patch(sections={"b": None, "a": "new", "d": "4"}),
            patch(sections={"b": "back"}),
        ]
    )
    assert folded is not None
    assert list(folded["sections"].items()) == [
        ("a", "new"),
        ("c", "3"),
        ("d", "4"),
        ("b", "back"),
    ]


def test_a_tool_moves_only_when_it_was_removed_first() -> None:
    first = patch(toolsAdded=[tool("read"), tool("write"), tool("bash")])
    redefined = patch(toolsRemoved=[{"name": "write"}], toolsAdded=[tool("read", "new")])
    folded = fold([first, redefined])
    assert folded is not None
    assert folded["toolsAdded"] == [tool("read", "new"), tool("bash")]
    assert "toolsRemoved" not in folded
    moved = fold([first, patch(toolsRemoved=[{"name": "read"}], toolsAdded=[tool("read")])])
    assert moved is not None
    assert moved["toolsAdded"] == [tool("write"), tool("bash"), tool("read")]


def test_what_folds_to_nothing_is_left_out() -> None:
    said = [
        patch("x", sections={"a": "1"}, toolsAdded=[tool("t")]),
        patch(sections={"a": None}, toolsRemoved=[{"name": "t"}]),
    ]
    assert fold(said) == patch("x")


def test_replace_drops_everything_before_it() -> None:
    old = patch("old", 1, sections={"a": "1"}, toolsAdded=[tool("t")])
    fresh = patch("new", 2, replace=True, sections={"b": "2"})
    after = patch("more", 3)
    assert fold([old, fresh, after]) == patch("new\n\nmore", 2, sections={"b": "2"})


def test_replace_is_merged_where_it_is_not_honoured() -> None:
    old = patch("old", 1, sections={"a": "1"})
    fresh = patch("new", 2, replace=True, sections={"b": "2"})
    merged = patch("old\n\nnew", 1, sections={"a": "1", "b": "2"})
    assert fold([old, fresh], honour_replace=False) == merged
    assert fold([old, patch("new", 2, replace="yes", sections={"b": "2"})]) == merged


def test_integer_names_come_first_as_javascript_lists_them() -> None:
    folded = fold([patch(sections={"b": "1", "10": "2", "2": "3", "01": "4"})])
    assert folded is not None
    assert list(folded["sections"]) == ["2", "10", "b", "01"]
    assert rendered_prompt(folded) == "3\n\n2\n\n1\n\n4"


@pytest.mark.parametrize(
    ("name", "reordered"),
    [("0", True), ("42", True), ("4294967294", True), ("4294967295", False), ("007", False)],
)
def test_only_array_indexes_are_reordered(name: str, reordered: bool) -> None:
    assert is_array_index(name) is reordered
    assert not is_array_index("-1")
    assert not is_array_index("٣")


def test_a_fold_folds_to_itself() -> None:
    said = [
        patch("a", sections={"x": "1", "3": "2"}, toolsAdded=[tool("t")]),
        patch([{"type": "text", "text": "b"}], sections={"y": ""}),
    ]
    folded = fold(said)
    assert folded is not None
    assert fold([folded]) == folded


def test_the_prompt_is_content_then_sections_without_empty_parts() -> None:
    assert rendered_prompt(patch("a", sections={"x": "1", "y": "", "z": "2"})) == "a\n\n1\n\n2"
    assert rendered_prompt(patch("", sections={"x": "1"})) == "1"
    assert rendered_prompt(patch()) == ""


def test_malformed_patches_are_read_as_far_as_they_go() -> None:
    said = [patch(None, sections=["a"], toolsAdded="t", toolsRemoved=[3]), patch("x")]
    assert fold(said) == patch("x")
