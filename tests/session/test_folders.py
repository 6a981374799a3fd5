"""Where a runtime may stand, and what is said when the folder is gone."""

from pathlib import Path

import pytest

from pi_rpc.core.entries import Header
from pi_rpc.core.errors import Failure, Missing
from pi_rpc.session.folders import folder, folder_of, same_file
from pi_rpc.store.memory import memory_session
from tests.session.living import reason_of


def test_an_existing_folder_is_itself_without_detours(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert folder(f"{tmp_path}/a/../a/.") == tmp_path / "a"


def test_a_link_stays_the_name_that_was_given(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert folder(str(tmp_path / "link")) == tmp_path / "link"


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    reasons: list[tuple[str, str]] = []
    names = ("relative", "", "~no-such-user/x", "none", "file", "a\0b", "y" * 300)
    for named in (*names[:3], *(f"{tmp_path}/{name}" for name in names[3:])):
        with pytest.raises(Failure) as failure:
            folder(named)
        reasons.append(reason_of(failure.value))
    assert reasons == [("invalid", "cwd_not_absolute")] * 3 + [("missing", "cwd_missing")] * 4


def test_a_session_stands_where_it_says_or_where_it_is_told(tmp_path: Path) -> None:
    stored = memory_session(Header("id", "now", str(tmp_path / "gone")))
    assert folder_of(stored, "own", str(tmp_path)) == tmp_path
    assert folder_of(stored, "read", None) == tmp_path / "gone"
    with pytest.raises(Missing) as failure:
        folder_of(stored, "own", None)
    assert failure.value.data["path"] == str(tmp_path / "gone")
    assert failure.value.data["choices"] == ["open_with_cwd", "open_to_read", "fork_with_cwd"]


def test_two_names_of_one_file_are_known_as_such(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    (tmp_path / "other").symlink_to("one")
    assert same_file(tmp_path / "one", tmp_path / "other")
    assert not same_file(tmp_path / "one", tmp_path)
