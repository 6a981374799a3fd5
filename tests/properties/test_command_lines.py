"""Command lines as a shell understands them: what it starts is what was read off the line."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_rpc.core.command_lines import command_line
from pi_rpc.core.permissions import (
    PermissionPolicy,
    PermissionRule,
    decision_for,
    subject_of,
)

TOKENS = [
    *("one", "two", "three", " ", " ", " ", "-x", "a.txt", "'", '"', "\\", "\n"),
    *(";", "&&", "||", "|", "&", "(", ")", "{ ", "; }", "$(", "`", "<(", "$X", "X=1 ", "! "),
    *("{two,x} ", "command ", "eval ", "exec ", "~", "=", "$'", "<", ">&2", "\r", "\t"),
    *("2>&1", ">/dev/null", "> f", "#", "if ", "; then ", "; fi", "${X}", "'a b'", '"c d"'),
]
LINES = st.lists(st.sampled_from(TOKENS), max_size=14).map("".join)

LOGGED = 'command_not_found_handle() { printf "%s\\0" "$1" >> "$LOG"; }\n'


def started(line: str) -> set[str]:
    """The names of the commands that a real shell starts of a line, none of which exists."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        log.touch()
        subprocess.run(
            [shutil.which("bash") or "bash", "--norc", "-c", LOGGED + line],
            cwd=folder,
            env={"PATH": "/nonexistent", "LOG": str(log)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
        return set(log.read_bytes().decode(errors="replace").split("\0")) - {""}


def is_read_off(name: str, line: str) -> bool:
    """Whether some spelling of a command of the line begins with that name."""
    spellings = [one for command in command_line(line).commands for one in command.spellings]
    return any(one == name or one.startswith(f"{name} ") for one in spellings)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@settings(max_examples=150, deadline=None)
@given(LINES)
def test_a_shell_starts_nothing_that_was_not_read_off_a_readable_line(line: str) -> None:
    if command_line(line).is_opaque:
        return
    assert [name for name in started(line) if not is_read_off(name, line)] == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@settings(max_examples=150, deadline=None)
@given(LINES)
def test_what_is_denied_is_never_started_where_no_name_is_made_up_on_the_way(line: str) -> None:
    rules = (PermissionRule("allow"), PermissionRule("deny", "bash", "two *"))
    decision = decision_for(
        PermissionPolicy(rules=rules), (), "bash", subject_of({"command": line})
    )
    # What a variable holds, only the shell knows; here it holds nothing. Names made of braces are
    # not followed.
    if decision != "deny" and "{" not in line:
        assert "two" not in started(line)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | LINES)
def test_any_text_is_taken_apart(line: str) -> None:
    found = command_line(line)
    allowed = PermissionPolicy(rules=(PermissionRule("allow", "bash", "one *"),))
    if decision_for(allowed, (), "bash", subject_of({"command": line})) == "allow":
        assert not found.is_opaque
        assert all(one.text.split(" ")[0] == "one" for one in found.commands)
