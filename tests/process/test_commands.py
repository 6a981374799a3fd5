"""The commands for people, as a shell starts them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FILES = Path(__file__).parent.parent / "files"
WAIT_S = 30


@pytest.fixture
def agent_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "agent" / "sessions" / "--work--"
    folder.mkdir(parents=True)
    for name in ("branches", "odd-lines", "one-question"):
        shutil.copy(FILES / f"{name}.jsonl", folder)
    return tmp_path / "agent"


def run(agent_dir: Path, *arguments: str) -> tuple[int, list[str], str]:
    """Exit status, lines printed, and what was said on stderr."""
    ran = subprocess.run(
        [sys.executable, "-m", "pi_rpc", *arguments],
        env={**os.environ, "PI_CODING_AGENT_DIR": str(agent_dir)},
        capture_output=True,
        timeout=WAIT_S,
        check=False,
    )
    return ran.returncode, ran.stdout.decode().splitlines(), ran.stderr.decode()


def test_list_shows_sessions_latest_first(agent_dir: Path) -> None:
    status, lines, said = run(agent_dir, "list")
    assert (status, said) == (0, "")
    heading, *lines = lines
    assert heading.split() == ["LAST", "ACTIVITY", "SESSION", "MESSAGES", "FOLDER", "TITLE"]
    assert len({line.index("/work") for line in lines} | {heading.index("FOLDER")}) == 1
    assert [line.split()[1] for line in lines] == [
        "branches-0001",
        "odd-lines-0001",
        "one-question-0001",
    ]
    assert lines[0].endswith("Where to begin?")
    assert len(run(agent_dir, "list", "BEGIN")[1]) == 2
    assert run(agent_dir, "list", "--cwd", "/elsewhere") == (0, [], "")


def test_show_prints_the_conversation_without_its_secrets(agent_dir: Path) -> None:
    path = agent_dir / "sessions" / "--work--" / "one-question.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Python", b"PASSWORD=hunter2hunter"))
    status, lines, said = run(agent_dir, "show", "one-q")
    assert status == 0
    assert "How in PASSWORD=[redacted]" in lines
    assert "1 secret was left out" in said
    _, lines, said = run(agent_dir, "show", str(path), "--no-redact", "--format", "html")
    assert any("How in PASSWORD=hunter2hunter?" in line for line in lines)
    assert said == ""


def test_show_says_when_everything_is_on_other_branches(agent_dir: Path) -> None:
    path = agent_dir / "sessions" / "--work--" / "one-question.jsonl"
    before_everything = {
        "type": "custom",
        "customType": "pi_rpc.cursor",
        "data": {"v": 1, "target": None},
        "id": "0000cafe",
        "parentId": None,
        "timestamp": "2026-01-02T03:04:05.678Z",
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(before_everything) + "\n")
    status, lines, said = run(agent_dir, "show", "one-q")
    assert status == 0
    assert lines[0].startswith("# ")
    assert said.startswith("pi-rpc: nothing on this path; ")
    assert said.endswith(" entries on other branches\n")


def test_the_help_names_every_command(agent_dir: Path) -> None:
    status, lines, _ = run(agent_dir, "--help")
    assert status == 0
    told = {line.split()[0] for line in lines if line.startswith("  ")}
    assert {"serve", "list", "show", "check"} <= told
    status, _, said = run(agent_dir, "--trust", "always", "list")
    assert status == 2
    assert "list comes first" in said


def test_check_tells_by_its_status_and_repair_mends(agent_dir: Path) -> None:
    path = agent_dir / "sessions" / "--work--" / "odd-lines.jsonl"
    before = path.read_bytes()
    status, lines, _ = run(agent_dir, "check", str(path))
    assert status == 1
    assert lines[0].startswith("warning malformed_line line 3: ")
    assert lines[-1] == "--repair mends what stands in single lines"
    assert lines[-2] == "odd-lines-0001: 4 entries, 2 problems"
    assert path.read_bytes() == before
    status, lines, _ = run(agent_dir, "check", str(path), "--repair")
    assert status == 0
    assert lines[-1] == "odd-lines-0001: 5 entries, 0 problems"
    assert path.with_name("odd-lines.jsonl.bak").read_bytes() == before


@pytest.mark.parametrize(
    "arguments", [("show", "nobody"), ("check", str(FILES / "a-letter.jsonl"))]
)
def test_what_is_no_session_is_said_on_stderr(agent_dir: Path, arguments: tuple[str, ...]) -> None:
    status, lines, said = run(agent_dir, *arguments)
    assert (status, lines) == (2, [])
    assert said.startswith(
        "pi-rpc: no session has the id" if arguments[0] == "show" else "pi-rpc: "
    )


def test_a_reader_that_has_seen_enough_is_no_failure(agent_dir: Path) -> None:
    folder = agent_dir / "sessions" / "--work--"
    source = (folder / "one-question.jsonl").read_bytes()
    for number in range(600):
        copy = source.replace(b"one-question-0001", b"copy-%d" % number)
        (folder / f"copy-{number}.jsonl").write_bytes(copy)
    with subprocess.Popen(
        [sys.executable, "-m", "pi_rpc", "list"],
        env={**os.environ, "PI_CODING_AGENT_DIR": str(agent_dir)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as daemon:
        assert daemon.stdout is not None and daemon.stderr is not None
        assert daemon.stdout.readline()
        daemon.stdout.close()
        assert daemon.stderr.read() == b""
        assert daemon.wait(WAIT_S) == 0
