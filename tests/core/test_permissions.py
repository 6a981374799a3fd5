"""Whether a call may run, by rules and by what was said before."""

from typing import Any

import pytest

from pi_rpc.core.permissions import (
    Decision,
    PermissionPolicy,
    PermissionRule,
    decision_for,
    fits,
    rule_to_remember,
    subject_of,
)

GIT = PermissionRule("allow", "bash", "git *")
NO_RM = PermissionRule("deny", "bash", "rm *")
SRC = PermissionRule("allow", "write", "src/*")


def decided(
    rules: list[PermissionRule],
    tool: str,
    subject: str,
    remembered: tuple[PermissionRule, ...] = (),
    default: Decision | None = None,
) -> Decision | None:
    name = "command" if tool == "bash" else "path"
    return decision_for(PermissionPolicy(default, tuple(rules)), remembered, tool, {name: subject})


@pytest.mark.parametrize(
    ("rules", "tool", "subject", "wanted"),
    [
        ([], "bash", "ls", None),
        ([GIT], "bash", "git status", "allow"),
        ([GIT], "bash", "git status && git log | git grep x", "allow"),
        ([GIT], "bash", "git status; make", None),
        ([GIT], "bash", "git log > ~/.bashrc", None),
        ([GIT], "bash", "git log $(make)", None),
        ([GIT], "bash", "git log `make`", None),
        ([GIT], "bash", "git log\nmake", None),
        ([PermissionRule("allow", "bash")], "bash", "make > out", "allow"),
        ([PermissionRule("allow", "bash"), NO_RM], "bash", "ls; rm -r x", "deny"),
        ([PermissionRule("ask", "bash", "git push*"), GIT], "bash", "git push", "ask"),
        ([GIT, PermissionRule("ask", "bash", "git push*")], "bash", "git push", "allow"),
        ([SRC], "write", "src/a.py", "allow"),
        ([SRC], "write", "b.py", None),
        ([SRC], "read", "src/a.py", None),
        ([PermissionRule("deny", "w*")], "write", "a", "deny"),
        ([PermissionRule("allow")], "anything", "", "allow"),
    ],
)
def test_rules_decide(
    rules: list[PermissionRule], tool: str, subject: str, wanted: Decision | None
) -> None:
    assert decided(rules, tool, subject) == wanted


def test_the_default_holds_where_no_rule_fits() -> None:
    assert decided([GIT], "bash", "make", default="ask") == "ask"
    assert decided([GIT], "bash", "git log", default="deny") == "allow"


def test_what_is_remembered_goes_over_rules_but_not_over_a_denial() -> None:
    allowed = rule_to_remember("bash", {"command": "rm x"}, "allow")
    assert decided([PermissionRule("ask", "bash")], "bash", "rm x", (allowed,)) == "allow"
    assert decided([NO_RM], "bash", "rm x", (allowed,)) == "deny"
    assert decided([], "bash", "rm y", (allowed,)) is None
    rejected = rule_to_remember("bash", {"command": "make"}, "deny")
    assert decided([PermissionRule("allow", "bash")], "bash", "make", (rejected,)) == "deny"


def test_a_command_is_remembered_as_it_stands_and_any_other_tool_as_a_whole() -> None:
    command = {"command": "echo * > a"}
    allowed = rule_to_remember("bash", command, "allow")
    assert allowed == PermissionRule("allow", "bash", exact="echo * > a")
    assert decided([], "bash", "echo * > a", (allowed,)) == "allow"
    assert rule_to_remember("write", {"path": "a"}, "deny") == PermissionRule("deny", "write")
    assert decided([], "t*", "x", (rule_to_remember("t*", {}, "allow"),)) == "allow"
    assert decided([], "tx", "x", (rule_to_remember("t*", {}, "allow"),)) is None


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        ("*", "", True),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("a.c", "abc", False),
        ("a*", "a\nb", True),
        (r"a\*", "a*", True),
        (r"a\*", "ab", False),
    ],
)
def test_patterns_are_the_whole_text(pattern: str, text: str, wanted: bool) -> None:
    assert fits(pattern, text) is wanted


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [({"command": "ls"}, "ls"), ({"path": "a", "x": 1}, "a"), ({"path": 1}, ""), ({}, "")],
)
def test_a_call_is_about_its_command_or_path(arguments: dict[str, Any], wanted: str) -> None:
    assert subject_of(arguments) == wanted
