"""The folders a conversation takes place in, and what is done to them beside the wire."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from pi_rpc.config import Settings, settings_from
from pi_rpc.store.catalog import folder_name
from tests.conversations.matching import Names, filled

TESTS = Path(__file__).parent.parent


class World:
    """A working directory, the user's own folder, and the names bound so far."""

    def __init__(self, folder: Path) -> None:
        self.names: Names = {}
        self._folder = folder
        self._script: Path | None = None
        self._before: dict[Path, bytes] = {}
        self._cwd = self._made("work", "cwd")
        self._agent_dir = self._made("agent", "agent")

    def _made(self, name: str, bound_to: str) -> Path:
        path = self._folder / name
        path.mkdir()
        self.names[bound_to] = str(path)
        return path

    def settings(self) -> Settings:
        """What a host in this world goes by."""
        # The home of whoever runs the tests has nothing to say here.
        home = str(self._folder / "home")
        environment = {"PI_CODING_AGENT_DIR": str(self._agent_dir), "HOME": home}
        own = self._agent_dir / "settings.json"
        if not (own.is_file() and '"versions"' in own.read_text()):
            # Versions of files are kept only where a conversation is about them.
            environment["PI_RPC_VERSIONS"] = "off"
        script = None if self._script is None else str(self._script)
        return settings_from(environment, script_file=script, durability="off")

    def check_files(self) -> None:
        """Raise AssertionError when a session file has lost what stood in it."""
        for path in sorted(self._agent_dir.rglob("*.jsonl")):
            now, before = path.read_bytes(), self._before.get(path, b"")
            kept = now.startswith(before) or any(
                # A file that was made anew leaves the old one beside it.
                old.read_bytes() == before
                for old in path.parent.glob(f"{path.name}*.bak")
            )
            assert kept, f"{path.name} has lost what stood in it"
            self._before[path] = now

    def do(self, name: str, rest: str) -> None:
        """Carry out a directive."""
        match name:
            case "settings":
                (self._agent_dir / "settings.json").write_text(rest)
            case "script":
                self._script = self._folder / "script.json"
                self._script.write_text(json.dumps(json.loads(rest)))
            case "file":
                path, text = self._named_text(rest)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            case "holds":
                path, text = self._named_text(rest)
                now = path.read_text()
                assert now == text, f"{path.name} says {now!r}"
            case "folder":
                folder, _, bound_to = rest.partition(" as $")
                self._made(folder, bound_to)
            case "gone":
                self._remove(Path(filled(rest, self.names)))
            case "stored":
                self.store(rest)
            case "outside":
                source, bound_to, cwd = self._parts(rest)
                self.names[bound_to] = str(_copied(source, cwd, self._folder / "outside"))
            case "words":
                name, _, count = rest.removeprefix("$").partition(" ")
                self.names[name] = "word " * (int(count) // 5)
            case "append":
                named, _, line = rest.partition(" ")
                with Path(filled(named, self.names)).open("ab") as file:
                    file.write(json.dumps(filled(json.loads(line), self.names)).encode() + b"\n")
            case _:
                raise AssertionError(f"there is no directive {name!r}")

    def store(self, rest: str) -> str:
        """Put a session file into the store, its folder a real one; where it lies."""
        source, bound_to, cwd = self._parts(rest)
        path = _copied(source, cwd, self._agent_dir / "sessions" / folder_name(cwd))
        header = _header_in(path.read_bytes().partition(b"\n")[0]) or {}
        self.names |= {f"{bound_to}_path": str(path), bound_to: header.get("id")}
        return str(path)

    def _named_text(self, rest: str) -> tuple[Path, str]:
        name, _, text = rest.partition(" ")
        path = self._cwd / filled(name, self.names)
        return path, json.loads(text) if text.startswith('"') else f"{text}\n"

    def _parts(self, rest: str) -> tuple[Path, str, str]:
        found = re.fullmatch(r"(\S+) as \$(\w+)(?: in (\S+))?", rest)
        assert found, f"{rest!r} names no file and name"
        return TESTS / found[1], found[2], filled(found[3] or "$cwd", self.names)

    def _remove(self, path: Path) -> None:
        assert path.is_relative_to(self._folder), path
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _copied(source: Path, cwd: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    first, newline, rest = source.read_bytes().partition(b"\n")
    header = _header_in(first)
    if header is not None:
        first = json.dumps(header | {"cwd": cwd}, separators=(",", ":")).encode()
    target, number = folder / source.name, 0
    while target.exists():
        number += 1
        target = folder / f"{source.stem}-{number}{source.suffix}"
    target.write_bytes(first + newline + rest)
    return target


def _header_in(line: bytes) -> dict[str, Any] | None:
    try:
        header = json.loads(line)
    except ValueError:
        return None
    return header if isinstance(header, dict) and header.get("type") == "session" else None
