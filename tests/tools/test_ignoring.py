"""What ignore files pass over."""

from pathlib import Path

import pytest

from pi_rpc.tools.ignoring import ignoring_above, rules_from
from pi_rpc.tools.walking import walked


@pytest.mark.parametrize(
    ("line", "ignored", "kept"),
    [
        ("*.log", ["a.log", "x/a.log"], ["a.logs"]),
        ("/a", ["a"], ["x/a"]),
        ("x/a", ["x/a"], ["y/x/a"]),
        ("**/a", ["a", "x/y/a"], ["ab"]),
        ("a/**", ["a/b", "a/b/c"], ["a"]),
        ("build/", ["build/", "x/build/"], ["build"]),
        ("a b\\ ", ["a b "], ["a b"]),
        ("tail   ", ["tail"], ["tail   "]),
        ("\\#a", ["#a"], ["a"]),
        ("\\!a", ["!a"], ["a"]),
        ("# a", [], ["a", "# a"]),
        ("", [], ["a"]),
        ("a\r", ["a"], []),
    ],
)
def test_a_line_ignores(line: str, ignored: list[str], kept: list[str]) -> None:
    rules = rules_from(line, "")
    said = [path for path in ignored + kept if rules.says(path.rstrip("/"), path.endswith("/"))]
    assert said == ignored


def test_the_last_line_that_fits_holds() -> None:
    rules = rules_from("*.log\n!keep.log\n", "")
    assert rules.says("a.log", is_folder=False) is True
    assert rules.says("keep.log", is_folder=False) is False
    assert rules.says("a.txt", is_folder=False) is None


def paths(folder: Path) -> list[str]:
    return [path for path, is_folder in walked(folder) if not is_folder]


def put(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_nearest_file_holds_and_search_programs_files_win(tmp_path: Path) -> None:
    put(
        tmp_path,
        **{
            ".gitignore": "*.log\n*.tmp\n",
            "a.log": "",
            "sub/.gitignore": "!b.log\n",
            "sub/b.log": "",
            "sub/c.log": "",
            "d.tmp": "",
            ".ignore": "!d.tmp\ne\n",
            "e": "",
            "sub/.rgignore": "!e\n",
            "sub/e": "",
        },
    )
    assert paths(tmp_path) == [
        *(".gitignore", ".ignore", "d.tmp"),
        *("sub/.gitignore", "sub/.rgignore", "sub/b.log", "sub/e"),
    ]


def test_what_lies_below_an_ignored_folder_is_ignored(tmp_path: Path) -> None:
    put(tmp_path, **{".gitignore": "out/\n!out/keep\n", "out/keep": "", "in": ""})
    assert paths(tmp_path) == [".gitignore", "in"]


def test_files_above_count_inside_a_repository_only(tmp_path: Path) -> None:
    put(tmp_path, **{".gitignore": "*.log\n", "repo/sub/a.log": "", "repo/sub/b": ""})
    assert paths(tmp_path / "repo" / "sub") == ["a.log", "b"]
    put(tmp_path / "repo", **{".git/info/exclude": "b\n", ".gitignore": "a.*\n"})
    assert paths(tmp_path / "repo" / "sub") == []
    (tmp_path / "repo" / ".gitignore").unlink()
    # The repository begins here: what stands above it is another's.
    assert paths(tmp_path / "repo" / "sub") == ["a.log"]


def test_a_repository_within_another_does_not_know_its_rules(tmp_path: Path) -> None:
    put(
        tmp_path,
        **{".git/HEAD": "", ".gitignore": "a\n", "inner/.git/HEAD": "", "inner/a": "", "a": ""},
    )
    assert paths(tmp_path) == [".gitignore", "inner/a"]


def test_an_ignore_file_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").mkdir()
    put(tmp_path, a="")
    assert not ignoring_above(tmp_path).entered(str(tmp_path)).is_ignored(f"{tmp_path}/a", False)
    assert paths(tmp_path) == ["a"]
