"""Whether a call may run, by rules and by what was said before."""

import os
from typing import Any

import pytest

from pi_rpc.core.permissions import (
    Decision,
    PermissionPolicy,
    PermissionRule,
    Place,
    Subject,
    decision_for,
    fits,
    is_fitting,
    pattern_to_suggest,
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
    return decision_for(
        PermissionPolicy(default, rules=tuple(rules)), remembered, tool, about(tool, subject)
    )


def about(tool: str, given: str) -> Subject:
    """A command, or a path as a tool in /work would follow it."""
    if tool == "bash":
        return subject_of({"command": given})
    path = os.path.normpath(f"/work/{given}" if not given.startswith("/") else given)
    return subject_of({"path": given}, Place(path, "/work", "/home/me"))


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
    allowed = rule_to_remember("bash", about("bash", "rm x"), "allow")
    assert decided([PermissionRule("ask", "bash")], "bash", "rm x", (allowed,)) == "allow"
    assert decided([NO_RM], "bash", "rm x", (allowed,)) == "deny"
    assert decided([], "bash", "rm y", (allowed,)) is None
    rejected = rule_to_remember("bash", about("bash", "make"), "deny")
    assert decided([PermissionRule("allow", "bash")], "bash", "make", (rejected,)) == "deny"


def test_a_command_is_remembered_as_it_stands_and_any_other_tool_inside_the_folder() -> None:
    allowed = rule_to_remember("bash", about("bash", "echo * > a"), "allow")
    assert allowed == PermissionRule("allow", "bash", exact="echo * > a")
    assert decided([], "bash", "echo * > a", (allowed,)) == "allow"
    assert decided([], "bash", "echo b > a", (allowed,)) is None
    inside = rule_to_remember("write", about("write", "src/a"), "allow")
    assert decided([], "write", "b", (inside,)) == "allow"
    assert decided([], "write", "../b", (inside,)) is None
    outside = rule_to_remember("write", about("write", "/etc/a"), "allow")
    assert decided([], "write", "../etc/a", (outside,)) == "allow"
    assert decided([], "write", "/etc/b", (outside,)) is None
    never = rule_to_remember("write", about("write", "a"), "deny")
    assert decided([], "write", "/etc/b", (never,)) == "deny"
    other = rule_to_remember("t*", Subject("x"), "allow")
    assert decision_for(PermissionPolicy(), (other,), "t*", Subject("y")) == "allow"
    assert decision_for(PermissionPolicy(), (other,), "tx", Subject("y")) is None


def test_a_pattern_of_the_users_is_remembered_where_it_fits_the_call() -> None:
    push = about("bash", "git push origin")
    assert is_fitting("git push *", "bash", push, "allow")
    assert not is_fitting("git pull *", "bash", push, "allow")
    assert not is_fitting("git *", "bash", about("bash", "git log; make"), "allow")
    assert is_fitting("make", "bash", about("bash", "git log; make"), "deny")
    allowed = rule_to_remember("bash", push, "allow", "git push *")
    assert decided([], "bash", "git push", (allowed,)) == "allow"
    assert decided([], "bash", "git push && make", (allowed,)) is None


@pytest.mark.parametrize(
    ("tool", "given", "wanted"),
    [
        ("bash", "git push origin main", "git push *"),
        ("bash", "npm test", "npm test *"),
        ("bash", "make", "make"),
        ("bash", "ls -l", "ls *"),
        ("bash", "git log | head", None),
        ("bash", "git log > a", None),
        ("bash", "rm -r x", None),
        ("bash", "sudo ls", None),
        ("bash", "python3 a.py", None),
        ("bash", "X=1 make", None),
        ("write", "src/a/b.py", "src/a/*"),
        ("write", "b.py", None),
        ("write", "/etc/b", None),
    ],
)
def test_a_pattern_is_suggested_where_it_does_no_harm(
    tool: str, given: str, wanted: str | None
) -> None:
    assert pattern_to_suggest(about(tool, given)) == wanted


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("src/a.py", "allow"),
        ("./src/b/../a.py", "allow"),
        ("src/../../etc/passwd", None),
        ("../work/src/a.py", "allow"),
        ("/work/src/a.py", "allow"),
        ("/other/src/a.py", None),
    ],
)
def test_a_path_is_where_it_leads(path: str, wanted: str | None) -> None:
    assert decided([SRC], "write", path) == wanted


def test_a_denied_path_is_denied_by_every_name() -> None:
    secrets = [PermissionRule("allow"), PermissionRule("deny", pattern="~/.ssh/*")]
    env = [PermissionRule("allow"), PermissionRule("deny", pattern=".env")]
    for path in ("/home/me/.ssh/id", "../home/me/.ssh/id", "/work/../home/me/.ssh/id"):
        assert decided(secrets, "read", path) == "deny"
    for path in (".env", "./.env", "/work/.env", "a/../.env"):
        assert decided(env, "write", path) == "deny"


def test_what_leads_out_of_the_folder_may_have_a_default_of_its_own() -> None:
    policy = PermissionPolicy(outside="ask")
    assert decision_for(policy, (), "read", about("read", "/etc/passwd")) == "ask"
    assert decision_for(policy, (), "read", about("read", "a")) is None
    assert decision_for(policy, (), "read", Subject("/etc/passwd")) is None


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
    assert subject_of(arguments).text == wanted


def test_a_command_is_one_whoevers_tool_runs_it() -> None:
    rule = PermissionPolicy(rules=(PermissionRule("allow", "run_it", "git *"),))
    for command, wanted in (("git log", "allow"), ("git log; make", None)):
        assert decision_for(rule, (), "run_it", subject_of({"command": command})) == wanted


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "rm  -r\tx",
        "ls && rm x",
        "ls | xargs rm",
        "ls & rm x",
        "(rm x)",
        "{ rm x; }",
        "! rm x",
        "X=1 rm x",
        "/bin/rm x",
        "\\rm x",
        "r''m x",
        '"rm" x',
        "sudo -u bob rm x",
        "env -i A=1 rm x",
        "timeout 5 rm x",
        "command rm x",
        "echo $(rm x)",
        'echo "a `rm x`"',
        "diff <(rm x) y",
        "if true; then rm x; fi",
        "for a in b; do rm $a; done",
        "find . -name a -exec rm {} +",
        "bash -lc 'ls; rm x'",
        "eval rm x",
        "ls \\\n; rm x",
        "rm x\necho 'unclosed",
        "f() { rm x; }; f",
    ],
)
def test_a_denied_command_is_denied_however_it_is_written(command: str) -> None:
    rules = [PermissionRule("allow"), NO_RM, PermissionRule("deny", "bash", "rm")]
    assert decided(rules, "bash", command) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git status && make",
        "git log; make",
        "git log | make",
        "git log |& make",
        "git log & make",
        "git log\nmake",
        "git log || make",
        "git log $(make)",
        "git log `make`",
        "git log <(make)",
        "git log > file",
        "git log >> file",
        "git log >&file",
        "git log &> file",
        "git log < file",
        "git log << EOF\nmake\nEOF",
        "git log $X",
        "git log ${X}",
        'git log "$X"',
        "git log $'\\n'",
        "(git log)",
        "{ git log; }",
        "! git log",
        "if git log; then git log; fi",
        "X=1 git log",
        "./git log",
        "git log 'unclosed",
        'git log "unclosed',
        "function git { make; }; git log",
        "git() { make; }; git log",
    ],
)
def test_an_allowed_command_lets_nothing_else_slip_through(command: str) -> None:
    assert decided([GIT], "bash", command) is None


@pytest.mark.parametrize(
    "command",
    [
        "git log",
        "git",
        "git   log\t-1",
        "git log 2>&1 | git grep a",
        "git log 2>/dev/null; git status >/dev/null",
        "git commit -m 'a && b; c > d $X'",
        'git commit -m "a && b; c > d"',
        "git commit -m 'two\nlines'",
        "git log # make",
        "git log \\\n -1",
        "git log &",
    ],
)
def test_an_allowed_command_is_allowed_in_the_ways_people_write_it(command: str) -> None:
    assert decided([GIT], "bash", command) == "allow"


def test_hostile_lines_are_taken_apart_in_good_time() -> None:
    for line in (
        "$(" * 5000,
        "eval " * 5000,
        "sudo " * 5000,
        "X=1 " * 5000,
        "(" * 5000,
        "`" * 5001,
    ):
        assert decided([GIT, NO_RM], "bash", line + "rm x") != "allow"
