"""Plays a conversation against the real thing: host, file store, tools, peer; all in one process.

Beside what a conversation expects, some things must hold in each of them:
- every answer and every notification has the shape the table gives it;
- every request is answered once, by an answer the conversation expects;
- events of a runtime come without gaps, and none after its last one;
- what stands in a session file stays there, byte by byte.

Directives
    @raw                            no handshake is made
    @handshake {…}                  the handshake is made with these capabilities
    @settings {…}                   the user's settings file
    @script {…}                     what the offline model answers
    @file NAME TEXT                 a file in $cwd; JSON text in quotes, else a line
    @holds NAME TEXT                the file says so now
    @folder NAME as $name           a folder beside $cwd
    @gone PATH                      a file or folder is removed
    @session files/X as $name [in $folder]   stored and opened; works in $cwd
    @stored files/X as $name [in $folder]    only stored; its path is $name_path
    @outside files/X as $path [in $folder]   a session file that lies outside the store
    @append $path {…}               another program appends a line
    @restart                        the host is closed, a new one started on the same folders
    @ended                          the host must end by itself
"""

import json
import re
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from pi_rpc.config import Settings, settings_from
from pi_rpc.store.catalog import folder_name
from tests.conftest import CountedClock, CountedIds
from tests.conversations.clients import WAIT_S, Client, Daemon, is_notification, shown
from tests.conversations.matching import Names, filled, fit
from tests.conversations.reading import Conversation, Directive, Expect, Send

FILES = Path(__file__).parent.parent

EXPERIMENTAL = {"experimental": True}


class Player:
    """Plays one conversation in a folder of its own."""

    def __init__(
        self, conversation: Conversation, folder: Path, tasks: anyio.abc.TaskGroup
    ) -> None:
        self.conversation = conversation
        self.folder = folder
        self.names: Names = {}
        self._tasks = tasks
        self._clock = CountedClock()
        self._ids = {1: CountedIds(1), 2: CountedIds(2)}
        self._daemons: dict[int, Daemon] = {}
        self._capabilities: dict[str, Any] | None = EXPERIMENTAL
        self._script: Path | None = None
        self._before: dict[Path, bytes] = {}
        self._opened = 0
        self.cwd = self._made_folder("work", "cwd")
        self.agent_dir = self._made_folder("agent", "agent")

    def _made_folder(self, name: str, bound_to: str) -> Path:
        path = self.folder / name
        path.mkdir()
        self.names[bound_to] = str(path)
        return path

    async def play(self) -> None:
        """Play it all. Raises AssertionError naming the line that did not hold."""
        for step in self.conversation.steps:
            with self._within(step.line):
                await self._played(step)
        with self._within(self.conversation.steps[-1].line):
            for who in list(self._daemons):
                await self._end(self._daemons.pop(who))

    async def _end(self, daemon: Daemon) -> None:
        daemon.stop.set()
        with anyio.move_on_after(WAIT_S) as scope:
            await daemon.ended.wait()
        assert not scope.cancelled_caught, "the host did not end"
        self._check(daemon.client)
        assert not daemon.client.unanswered(), "\n".join(daemon.client.unanswered())

    @contextmanager
    def _within(self, line: int) -> Iterator[None]:
        try:
            yield
        except AssertionError as error:
            raise AssertionError(f"{self.conversation.name}.txt:{line}: {error}") from error

    async def _played(self, step: Send | Expect | Directive) -> None:
        match step:
            case Send(who=who, messages=messages):
                (await self._daemon(who)).client.send(filled(messages, self.names))
            case Expect(who=who):
                client = (await self._daemon(who)).client
                await self._expect(client, step)
                self._check(client)
            case Directive(name=name, rest=rest):
                await self._directives[name](self, rest)

    def _check(self, client: Client) -> None:
        assert not client.complaints, "\n".join(client.complaints)
        for path in sorted(self.agent_dir.rglob("*.jsonl")):
            now, before = path.read_bytes(), self._before.get(path, b"")
            assert now.startswith(before), f"{path.name} has lost what stood in it"
            self._before[path] = now

    async def _expect(self, client: Client, block: Expect) -> None:
        waiting = list(block.patterns)
        start, last, seen = client.read, client.read - 1, 0
        with anyio.move_on_after(WAIT_S) as scope:
            while True:
                for pattern in list(waiting):
                    place = self._place_of(client, pattern)
                    if place is not None:
                        waiting.remove(pattern)
                        client.taken.add(place)
                        last = max(last, place)
                if not waiting:
                    break
                seen = len(client.received)
                await client.more(seen)
        came = "\n  ".join(map(shown, client.received[start:]))
        assert not scope.cancelled_caught, f"did not come: {waiting}\nwhat came:\n  {came}"
        for pattern in block.nothing_else:
            for place in range(start, last + 1):
                message = client.received[place]
                if place not in client.taken and fit(pattern, message, self.names) is not None:
                    raise AssertionError(f"{pattern} says nothing else, but: {shown(message)}")
        client.read = last + 1

    def _place_of(self, client: Client, pattern: Any) -> int | None:
        for place, message in enumerate(client.received):
            is_over = place < client.read and is_notification(message)
            if is_over or place in client.taken:
                continue
            names = fit(pattern, message, self.names)
            if names is not None:
                self.names = names
                return place
            if _answers(pattern, message):
                raise AssertionError(f"wanted {json.dumps(pattern)}\n   came {shown(message)}")
        return None

    async def _daemon(self, who: int) -> Daemon:
        daemon = self._daemons.get(who)
        if daemon is None:
            daemon = self._daemons[who] = Daemon(self._settings(), self._clock, self._ids[who])
            await self._tasks.start(daemon.run)
            if self._capabilities is not None:
                await self._shake_hands(daemon.client, self._capabilities)
        return daemon

    def _settings(self) -> Settings:
        environment = {"PI_CODING_AGENT_DIR": str(self.agent_dir)}
        script = None if self._script is None else str(self._script)
        return settings_from(environment, script_file=script, durability="off")

    async def _shake_hands(self, client: Client, capabilities: dict[str, Any]) -> None:
        client.may_miss_events = bool(capabilities.get("optOut"))
        params = {
            "protocolVersion": 1,
            "clientInfo": {"name": "conversation", "version": "1"},
            "capabilities": capabilities,
        }
        await self._ask(client, "initialize", params)

    async def _ask(self, client: Client, method: str, params: dict[str, Any]) -> Any:
        self._opened += 1
        name = f"setting-{self._opened}"
        client.send([{"id": name, "method": method, "params": params}])
        answer = Expect(0, 1, [{"id": name, "result": f"$answer_{self._opened}"}], [])
        await self._expect(client, answer)
        return self.names.pop(f"answer_{self._opened}")

    async def _raw(self, rest: str) -> None:
        self._capabilities = None

    async def _handshake(self, rest: str) -> None:
        self._capabilities = json.loads(rest)

    async def _set(self, rest: str) -> None:
        (self.agent_dir / "settings.json").write_text(rest)

    async def _scripted(self, rest: str) -> None:
        json.loads(rest)
        self._script = self.folder / "script.json"
        self._script.write_text(rest)

    async def _file(self, rest: str) -> None:
        name, text = self._named_text(rest)
        (self.cwd / name).write_text(text)

    async def _holds(self, rest: str) -> None:
        name, text = self._named_text(rest)
        now = (self.cwd / name).read_text()
        assert now == text, f"{name} says {now!r}"

    def _named_text(self, rest: str) -> tuple[str, str]:
        name, _, text = rest.partition(" ")
        return name, json.loads(text) if text.startswith('"') else f"{text}\n"

    async def _folder(self, rest: str) -> None:
        name, _, bound_to = rest.partition(" as $")
        self._made_folder(name, bound_to)

    async def _gone(self, rest: str) -> None:
        path = Path(filled(rest, self.names))
        assert path.is_relative_to(self.folder), path
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    async def _session(self, rest: str) -> None:
        await self._stored(rest)
        bound_to = self._parts(rest)[1]
        client = (await self._daemon(1)).client
        await self._ask(client, "session/open", {"path": self.names[f"{bound_to}_path"]})

    async def _stored(self, rest: str) -> None:
        source, bound_to, cwd = self._parts(rest)
        path = self._copied(source, cwd, self.agent_dir / "sessions" / folder_name(cwd))
        header = _header_in(path.read_bytes().partition(b"\n")[0]) or {}
        self.names |= {f"{bound_to}_path": str(path), bound_to: header.get("id")}

    async def _outside(self, rest: str) -> None:
        source, bound_to, cwd = self._parts(rest)
        self.names[bound_to] = str(self._copied(source, cwd, self.folder / "outside"))

    def _parts(self, rest: str) -> tuple[Path, str, str]:
        found = re.fullmatch(r"(\S+) as \$(\w+)(?: in (\S+))?", rest)
        assert found, f"{rest!r} names no file and name"
        return FILES / found[1], found[2], filled(found[3] or "$cwd", self.names)

    def _copied(self, source: Path, cwd: str, folder: Path) -> Path:
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

    async def _append(self, rest: str) -> None:
        path, _, line = rest.partition(" ")
        with Path(filled(path, self.names)).open("ab") as file:
            file.write(json.dumps(filled(json.loads(line), self.names)).encode() + b"\n")

    async def _restart(self, rest: str) -> None:
        await self._end(self._daemons.pop(1))

    async def _has_ended(self, rest: str) -> None:
        daemon = self._daemons.pop(1)
        with anyio.move_on_after(WAIT_S) as scope:
            await daemon.stop.wait()
        assert not scope.cancelled_caught, "the host goes on"
        await self._end(daemon)

    _directives: dict[str, Callable[["Player", str], Awaitable[None]]] = {
        "raw": _raw,
        "handshake": _handshake,
        "settings": _set,
        "script": _scripted,
        "file": _file,
        "holds": _holds,
        "folder": _folder,
        "gone": _gone,
        "session": _session,
        "stored": _stored,
        "outside": _outside,
        "append": _append,
        "restart": _restart,
        "ended": _has_ended,
    }


def _answers(pattern: Any, message: Any) -> bool:
    """Whether the message answers the request the pattern speaks of."""
    if not isinstance(pattern, dict) or not isinstance(message, dict):
        return False
    return "id" in pattern and "method" not in message and pattern["id"] == message.get("id")



def _header_in(line: bytes) -> dict[str, Any] | None:
    try:
        header = json.loads(line)
    except ValueError:
        return None
    return header if isinstance(header, dict) and header.get("type") == "session" else None
