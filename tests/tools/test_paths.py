"""A name means the file it says, and only then the file it was meant to say."""

import unicodedata
from pathlib import Path

import pytest

from pi_rpc.core.errors import Invalid
from pi_rpc.tools.paths import resolved, resolved_to_read


def test_a_relative_name_stands_in_the_working_directory_and_nothing_is_confined(
    tmp_path: Path,
) -> None:
    assert resolved("a/./b/../c", tmp_path) == tmp_path / "a/c"
    assert resolved("../x", tmp_path) == tmp_path.parent / "x"
    assert resolved("/etc/hosts", tmp_path) == Path("/etc/hosts")


def test_home_and_file_urls_are_understood(tmp_path: Path) -> None:
    assert resolved("~", tmp_path) == Path.home()
    assert resolved("~/x", tmp_path) == Path.home() / "x"
    assert resolved("@~/x", tmp_path) == Path.home() / "x"
    assert resolved("file:///a%20b/c", tmp_path) == Path("/a b/c")
    assert resolved("~x", tmp_path) == tmp_path / "~x"


def test_a_leading_at_sign_is_dropped_unless_the_file_has_it(tmp_path: Path) -> None:
    assert resolved("@notes.md", tmp_path) == tmp_path / "notes.md"
    (tmp_path / "@notes.md").touch()
    (tmp_path / "notes.md").touch()
    assert resolved("@notes.md", tmp_path) == tmp_path / "@notes.md"


def test_a_new_file_in_a_folder_with_an_at_sign_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "@types").mkdir()
    assert resolved("@types/new.ts", tmp_path) == tmp_path / "@types/new.ts"
    assert resolved("@other/new.ts", tmp_path) == tmp_path / "other/new.ts"


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\u200a", "\u202f", "\u205f", "\u3000"])
def test_odd_spaces_become_plain_unless_the_file_has_them(space: str, tmp_path: Path) -> None:
    assert resolved(f"a{space}b", tmp_path) == tmp_path / "a b"
    (tmp_path / f"a{space}b").touch()
    assert resolved(f"a{space}b", tmp_path) == tmp_path / f"a{space}b"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("q\u2019s.txt", "q's.txt"),
        ("Shot 9.41\u202fAM.png", "Shot 9.41 AM.png"),
        (unicodedata.normalize("NFD", "café.txt"), "café.txt"),
        (unicodedata.normalize("NFD", "l\u2019été.txt"), "l'été.txt"),
    ],
)
def test_a_file_that_only_looks_the_same_is_found_for_reading(
    name: str, given: str, tmp_path: Path
) -> None:
    (tmp_path / name).touch()
    assert resolved_to_read(given, tmp_path) == tmp_path / name
    assert resolved(given, tmp_path) == tmp_path / given


@pytest.mark.parametrize("given", ["a\0b", "file:///a%00b", "file://elsewhere/a"])
def test_a_name_no_file_can_have_is_refused(given: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid) as raised:
        resolved(given, tmp_path)
    assert raised.value.reason == "bad_path"
