"""What lies below a folder, in one order."""

import os
from pathlib import Path

from pi_rpc.tools.walking import walked


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def test_paths_come_by_the_bytes_of_their_names_folder_by_folder(tmp_path: Path) -> None:
    put(tmp_path, "b", "a.txt", "a/z", "B", "é", ".h", "a/y/x")
    assert list(walked(tmp_path)) == [
        (".h", False),
        ("B", False),
        ("a", True),
        ("a/y", True),
        ("a/y/x", False),
        ("a/z", False),
        ("a.txt", False),
        ("b", False),
        ("é", False),
    ]


def test_git_is_named_and_not_entered_and_links_are_not_followed(tmp_path: Path) -> None:
    put(tmp_path, ".git/HEAD", "a/b")
    (tmp_path / "to-a").symlink_to("a")
    (tmp_path / "a" / "up").symlink_to("..")
    assert [path for path, _ in walked(tmp_path)] == [".git", "a", "a/b", "a/up", "to-a"]


def test_a_choice_goes_before_what_is_ignored(tmp_path: Path) -> None:
    put(tmp_path, "a.log", "b", "c")
    (tmp_path / ".gitignore").write_text("*.log\n")
    wanted = {"a.log": True, "b": False}
    found = walked(tmp_path, lambda path, _: wanted.get(path))
    assert [path for path, _ in found] == [".gitignore", "a.log", "c"]


def test_a_folder_that_cannot_be_read_holds_nothing(tmp_path: Path) -> None:
    assert list(walked(tmp_path / "gone")) == []
    put(tmp_path, "a/b")
    walking = walked(tmp_path)
    assert next(walking) == ("a", True)
    os.rename(tmp_path / "a", tmp_path / "b")  # noqa: PTH104
    assert list(walking) == []
