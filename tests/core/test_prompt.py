"""The sections of the system prompt, and what of them must be said again."""

from typing import Any

import pytest

from pi_rpc.core.messages import ToolDeclaration
from pi_rpc.core.prompt import (
    Declared,
    PromptParts,
    declared_for,
    declared_in,
    forced_prompt,
    is_section_name,
    system_patch,
    with_sections,
)

READ = ToolDeclaration("read", "Show a file.", {"type": "object"})
EDIT = ToolDeclaration("edit", "Change a file.", {"type": "object"})
NEWER = ToolDeclaration("read", "Show a file, or a part.", {"type": "object"})


def declared(sections: dict[str, str], *tools: ToolDeclaration) -> Declared:
    return Declared(sections, {tool.name: tool.as_object() for tool in tools})


@pytest.mark.parametrize(
    ("held", "wanted", "said"),
    [
        (declared({"a": "1"}, READ), declared({"a": "1"}, READ), None),
        (declared({}), declared({}), None),
        (declared({}), declared({"a": "1"}), {"sections": {"a": "1"}}),
        (declared({"a": "1"}), declared({"a": "2"}), {"sections": {"a": "2"}}),
        (declared({"a": "1", "b": "2"}), declared({"a": "1"}), {"sections": {"b": None}}),
        (declared({"a": "1", "b": "2"}), declared({"b": "2", "a": "1"}), None),
        (declared({}), declared({}, READ), {"toolsAdded": [READ.as_object()]}),
        (declared({}, READ, EDIT), declared({}, EDIT), {"toolsRemoved": [{"name": "read"}]}),
        (declared({}, READ, EDIT), declared({}, EDIT, READ), None),
        (
            declared({}, READ),
            declared({}, NEWER),
            {"toolsAdded": [NEWER.as_object()], "toolsRemoved": [{"name": "read"}]},
        ),
    ],
)
def test_only_what_differs_is_said(held: Declared, wanted: Declared, said: Any) -> None:
    base = {"role": "system", "content": "", "timestamp": 5}
    assert system_patch(held, wanted, 5) == (None if said is None else base | said)


def test_what_should_hold_names_the_tools_and_the_folder() -> None:
    wanted = declared_for("C:\\work", [READ, EDIT])
    assert list(wanted.sections) == ["preamble", "tools", "cwd"]
    assert "- read: Show a file." in wanted.sections["tools"]
    assert wanted.sections["cwd"] == "<cwd>\nC:/work\n</cwd>"
    assert list(wanted.tools) == ["read", "edit"]


def test_without_tools_no_section_speaks_of_them() -> None:
    assert list(declared_for("/w", []).sections) == ["preamble", "cwd"]


def test_what_a_context_declares_is_read_back_from_what_was_said() -> None:
    wanted = declared_for("/w", [READ])
    said = system_patch(declared_in(None), wanted, 1)
    assert declared_in(said) == wanted
    assert system_patch(declared_in(said), wanted, 2) is None


def test_sections_stand_in_their_order() -> None:
    parts = PromptParts(None, "More.", (("/a", "x"),), (("s", "d", "/s"),))
    bash = ToolDeclaration("bash", "Run.", {"type": "object"})
    names = ["preamble", "tools", "rules", "addendum", "project_context", "skills", "cwd"]
    assert list(declared_for("/w", [bash], parts).sections) == names


def test_a_system_prompt_of_the_user_leaves_tools_and_rules_to_itself() -> None:
    wanted = declared_for("/w", [READ, EDIT], PromptParts(system="Mine.\n", addendum=" \n"))
    assert wanted.sections == {"preamble": "Mine.", "cwd": "<cwd>\n/w\n</cwd>"}
    assert list(wanted.tools) == ["read", "edit"]


def test_rules_speak_of_the_tools_there_are() -> None:
    def rules(*names: str) -> str:
        tools = [ToolDeclaration(name, name, {}) for name in names]
        return declared_for("/w", tools).sections.get("rules", "")

    assert "with bash" in rules("bash")
    assert rules("read") == ""
    assert "edit" in rules("edit", "write")
    assert "Look for files" not in rules("bash", "grep")


def test_sections_of_hooks_replace_add_and_leave_out() -> None:
    wanted = declared_for("/w", [])
    made = with_sections(wanted, {"preamble": "Other.", "rules": "Be brief.", "cwd": None})
    assert made.sections == {"preamble": "Other.", "rules": "<rules>\nBe brief.\n</rules>"}
    assert with_sections(wanted, {}) == wanted


@pytest.mark.parametrize(("name", "is_one"), [("a_b-1", True), ("A", False), ("1", False)])
def test_names_of_sections_become_tags(name: str, is_one: bool) -> None:
    assert is_section_name(name) is is_one


def test_a_forced_prompt_stands_alone_and_leaves_the_tools() -> None:
    tools = [{"name": "read"}]
    folded = {"role": "system", "content": "", "sections": {"a": "b"}, "toolsAdded": tools}
    said = [
        {"role": "system", "content": "one"},
        {"role": "user", "content": "hi"},
        {"role": "system", "content": "two"},
    ]
    forced = {"role": "system", "content": "Be a duck.", "toolsAdded": tools}
    assert forced_prompt(said, folded, "Be a duck.") == [forced, said[1]]
    assert forced_prompt([], None, "Quack.") == [{"role": "system", "content": "Quack."}]
