"""A diff says what changed, for programs and for people."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.tools.diff import Change, changes_between, diff_details, lines_of


def test_lines_end_with_a_newline_and_nothing_else() -> None:
    assert lines_of("") == []
    assert lines_of("a\r\n\x0cb\rc") == ["a\r\n", "\x0cb\rc"]
    assert lines_of("a\n\n") == ["a\n", "\n"]


def test_one_changed_line_is_shown_with_what_surrounds_it() -> None:
    old = [f"{number}\n" for number in range(1, 21)]
    new = [*old[:9], "ten\n", *old[10:]]
    details = diff_details("f", old, new)
    assert details == {
        "patch": ("--- f\n+++ f\n@@ -6,9 +6,9 @@\n 6\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n 14\n"),
        "diff": "  6 6\n  7 7\n  8 8\n  9 9\n-10 10\n+10 ten\n 11 11\n 12 12\n 13 13\n 14 14",
        "firstChangedLine": 10,
    }


def test_what_lies_between_distant_changes_is_one_gap() -> None:
    old = [f"{number}\n" for number in range(1, 31)]
    new = ["one\n", *old[1:29], "thirty\n", "more\n"]
    details = diff_details("f", old, new)
    shown = details["diff"].split("\n")
    assert shown[:6] == ["- 1 1", "+ 1 one", "  2 2", "  3 3", "  4 4", "  5 5"]
    assert shown[6] == "    ..."
    assert shown[-3:] == ["-30 30", "+30 thirty", "+31 more"]
    assert details["patch"].count("@@ -") == 2
    assert "@@ -26,5 +26,6 @@" in details["patch"]


def test_a_missing_last_newline_is_marked() -> None:
    details = diff_details("f", ["a\n", "b"], ["a\n", "b\n"])
    assert details["patch"] == (
        "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
    )
    assert details["diff"] == " 1 a\n-2 b\n+2 b"


def test_files_that_begin_or_end_empty_have_ranges_that_say_so() -> None:
    assert diff_details("f", [], ["a\n"])["patch"] == "--- f\n+++ f\n@@ -0,0 +1 @@\n+a\n"
    assert diff_details("f", ["a\n"], [])["patch"] == "--- f\n+++ f\n@@ -1 +0,0 @@\n-a\n"


def test_equal_texts_have_no_diff() -> None:
    assert diff_details("f", ["a\n"], ["a\n"]) == {}


def test_a_diff_nobody_would_read_is_left_out() -> None:
    old, new = ["x" * 200_000 + "\n"], ["y" * 200_000 + "\n"]
    assert diff_details("f", old, new) == {"firstChangedLine": 1, "diffOmitted": True}


def test_a_very_long_stretch_is_one_change() -> None:
    old = [f"{number}\n" for number in range(3000)]
    new = ["first\n", *old[1:-1], "last\n"]
    assert changes_between(old, new) == [Change(0, 3000, 0, 3000)]


LINES = st.lists(st.sampled_from(["a", "b", "c", "\r", ""]), max_size=25)


@given(LINES, LINES)
def test_changes_turn_the_old_lines_into_the_new(old: list[str], new: list[str]) -> None:
    made, at = list[str](), 0
    for change in changes_between(old, new):
        made += old[at : change.old_start]
        assert len(made) == change.new_start
        made += new[change.new_start : change.new_end]
        at = change.old_end
    assert made + old[at:] == new


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no patch program here")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\nc\n", "a\nB\nc"),
        ("a\n" * 30, "x\n" + "a\n" * 29 + "b"),
        ("", "a\n"),
        ("a\r\nb\r\n", "a\r\nB\r\n"),
    ],
)
def test_the_patch_program_understands_the_patch(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(old.encode())
    patch = diff_details("f", lines_of(old), lines_of(new))["patch"]
    command = ["patch", "--binary", "-s", str(path)]
    subprocess.run(command, input=patch.encode(), check=True, timeout=5)
    assert path.read_bytes() == new.encode()
