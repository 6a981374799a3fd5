"""Files are replaced whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from pi_rpc.core.errors import Failure, Missing, Outside, Overfull, Refused
from pi_rpc.tools.files import bytes_of, failure_from_os, replaced


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"somebody else's")
    with pytest.raises(Refused) as raised:
        replaced(path, b"mine", expected=b"as I read it")
    assert raised.value.reason == "file_changed"
    assert path.read_bytes() == b"somebody else's"
    assert names_in(tmp_path) == ["f"]


def test_a_file_that_vanished_meanwhile_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(Missing):
        replaced(tmp_path / "f", b"mine", expected=b"as I read it")
    assert names_in(tmp_path) == []


def test_a_file_too_large_to_take_in_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"12345")
    assert bytes_of(path, size_bytes_max=5) == b"12345"
    with pytest.raises(Overfull) as raised:
        bytes_of(path, size_bytes_max=4)
    assert raised.value.reason == "file_too_large"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_nothing_is_written_to_a_device(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/full")
    with pytest.raises(Refused) as raised:
        replaced(link, b"x")
    assert raised.value.reason == "not_a_file"


@pytest.mark.parametrize(
    ("number", "kind", "reason"),
    [
        (errno.ENOENT, Missing, "file_not_found"),
        (errno.EISDIR, Refused, "is_a_directory"),
        (errno.ENOTDIR, Refused, "not_a_directory"),
        (errno.EACCES, Refused, "permission_denied"),
        (errno.EPERM, Refused, "permission_denied"),
        (errno.ENOSPC, Outside, "disk_full"),
        (errno.EDQUOT, Outside, "disk_full"),
        (errno.EIO, Outside, "file_failed"),
        (errno.ELOOP, Outside, "file_failed"),
    ],
)
def test_what_the_system_says_has_a_reason(number: int, kind: type[Failure], reason: str) -> None:
    failure = failure_from_os(OSError(number, os.strerror(number)), "/a/b")
    assert (type(failure), failure.reason) == (kind, reason)
    assert failure.message == f"/a/b: {os.strerror(number)}"
    assert failure.data["errno"] == errno.errorcode[number]
