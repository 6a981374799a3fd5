"""The handshake is quick where the settings are known to be sound, and never hides what is odd."""

import json
import os
from pathlib import Path

import pytest

from pi_rpc.known_settings import MARK_FILE, is_known_sound, remember_sound


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "settings.json").write_text('{"steeringMode": "all"}')
    return tmp_path


def test_no_settings_are_sound_settings(tmp_path: Path) -> None:
    assert is_known_sound(str(tmp_path))
    assert is_known_sound(str(tmp_path / "nowhere"))


def test_settings_are_known_once_they_were_found_sound(folder: Path) -> None:
    assert not is_known_sound(str(folder))
    remember_sound(str(folder))
    assert is_known_sound(str(folder))
    assert (folder / MARK_FILE).stat().st_mode & 0o777 == 0o600
    assert (folder / MARK_FILE).parent.stat().st_mode & 0o777 == 0o700


def test_settings_that_changed_are_not_known(folder: Path) -> None:
    remember_sound(str(folder))
    state = (folder / "settings.json").stat()
    (folder / "settings.json").write_text('{"steeringMode": "odd"}')
    assert not is_known_sound(str(folder))
    os.utime(folder / "settings.json", ns=(state.st_atime_ns, state.st_mtime_ns))
    (folder / "other").write_text(json.dumps({"steeringMode": "odd"}))
    (folder / "other").replace(folder / "settings.json")
    assert not is_known_sound(str(folder))


@pytest.mark.parametrize("mark", [b"", b"\xff\xfe", b"x" * 5000])
def test_a_damaged_mark_is_no_mark(folder: Path, mark: bytes) -> None:
    remember_sound(str(folder))
    (folder / MARK_FILE).write_bytes(mark)
    assert not is_known_sound(str(folder))
    remember_sound(str(folder))
    assert is_known_sound(str(folder))
