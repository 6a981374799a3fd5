"""Histories hold what was read and said: every file made is its user's alone."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.process.conftest import Start
from tests.process.daemons import Daemon

FILES = Path(__file__).parent.parent / "files"
LONG = "run `python3 -c \"print('x' * 70 + '\\n' * 1, end='') or print('y\\n' * 60000)\"`"


@pytest.fixture(params=[0o000, 0o077], ids=["open to all", "open to nobody else"])
def habit(request: pytest.FixtureRequest) -> object:
    """Whatever the user's own habit is, nothing may follow from it."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def talk_about_everything(daemon: Daemon, cwd: Path, folder: Path) -> None:
    """Make every kind of file there is."""
    session_id = daemon.call("session/new", cwd=str(cwd))["sessionId"]
    daemon.call("agent/prompt", sessionId=session_id, text="My needle.", wait=True)
    daemon.call("agent/prompt", sessionId=session_id, text=LONG, wait=True)
    daemon.call("session/list")
    daemon.call("session/search", query="needle")
    daemon.call("session/clone", sessionId=session_id, activate=False)
    daemon.call("session/export", sessionId=session_id, target=str(folder / "all.jsonl"))
    daemon.call("session/export", sessionId=session_id, format="html")
    daemon.call("session/repair", path=str(folder / "odd-lines.jsonl"))
    imported = daemon.call("session/import", path=str(FILES / "two-questions.jsonl"), cwd=str(cwd))
    daemon.call("session/delete", sessionId=imported["sessionId"])
    large = folder / "large.jsonl"
    daemon.call(
        "session/close", sessionId=daemon.call("session/open", path=str(large))["sessionId"]
    )


def is_behind_a_private_folder(path: Path) -> bool:
    """Whether git made it, in the folder of its own that nobody else can enter."""
    homes = [each for each in path.parents if each.parent.name == "workspaces"]
    return any(stat.S_IMODE(home.stat().st_mode) == 0o700 for home in homes)


def stored_beforehand(agent_dir: Path, cwd: Path) -> Path:
    folder = agent_dir / "sessions" / "--work--"
    folder.mkdir(parents=True, mode=0o700)
    for name in ("odd-lines", "branches"):
        data = (FILES / f"{name}.jsonl").read_bytes()
        (folder / f"{name}.jsonl").write_bytes(data.replace(b'"/work"', f'"{cwd}"'.encode()))
    # Long enough to be worth an index.
    entry = b'{"type":"message","id":"%08x","parentId":null,"timestamp":"t","message":{"x":"%s"}}\n'
    shutil.copy(folder / "branches.jsonl", folder / "large.jsonl")
    with (folder / "large.jsonl").open("ab") as file:
        file.writelines(entry % (number, b"x" * 4000) for number in range(300))
    data = (folder / "large.jsonl").read_bytes().replace(b"branches-0001", b"large-0001")
    (folder / "large.jsonl").write_bytes(data)
    for path in (agent_dir, agent_dir / "sessions"):
        path.chmod(0o700)
    for path in folder.iterdir():
        path.chmod(0o600)
    return folder


def test_every_file_made_is_its_users_alone(
    start: Start, habit: object, cwd: Path, tmp_path: Path
) -> None:
    folder = stored_beforehand(tmp_path / "agent", cwd)
    daemon = start().greet()
    talk_about_everything(daemon, cwd, folder)
    # While it is live there are locks, too.
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "agent").rglob("*")}
    found |= {path: stat.S_IMODE(path.stat().st_mode) for path in cwd.glob("session-*.html")}
    open_ones = {
        str(path.relative_to(tmp_path)): oct(mode)
        for path, mode in found.items()
        if mode != (0o700 if path.is_dir() else 0o600) and not is_behind_a_private_folder(path)
    }
    assert open_ones == {}
    kinds = {path.suffix for path in found}
    assert {".jsonl", ".lock", ".index", ".bak", ".sqlite", ".html"} <= kinds
    assert any(".trash" in path.parts for path in found)
    spilt = [path for path in found if "spill" in path.parts and path.is_file()]
    assert spilt != []
