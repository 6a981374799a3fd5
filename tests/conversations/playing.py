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
    @file NAME TEXT                 a file in $cwd, or at a path; JSON text in quotes, else a line
    @holds NAME TEXT                the file says so now
    @folder NAME as $name           a folder beside $cwd
    @gone PATH                      a file or folder is removed
    @session files/X as $name [in $folder]   stored and opened; works in $cwd
    @stored files/X as $name [in $folder]    only stored; its path is $name_path
    @outside files/X as $path [in $folder]   a session file that lies outside the store
    @words $name COUNT              so many characters of text
    @append $path {…}               another program appends a line
    @restart                        the host is closed, a new one started on the same folders
    @ended                          the host must end by itself
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from tests.conftest import CountedClock, CountedIds
from tests.conversations.clients import WAIT_S, Client, Daemon, is_notification, shown
from tests.conversations.matching import filled, fit
from tests.conversations.reading import Conversation, Directive, Expect, Send
from tests.conversations.world import World

EXPERIMENTAL = {"experimental": True}


class Player:
    """Plays one conversation in a folder of its own."""

    def __init__(
        self, conversation: Conversation, folder: Path, tasks: anyio.abc.TaskGroup
    ) -> None:
        self.conversation = conversation
        self.world = World(folder)
        self._tasks = tasks
        self._clock = CountedClock()
        self._ids = {1: CountedIds(1), 2: CountedIds(2)}
        self._daemons: dict[int, Daemon] = {}
        self._capabilities: dict[str, Any] | None = EXPERIMENTAL
        self._opened = 0

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
                (await self._daemon(who)).client.send(filled(messages, self.world.names))
            case Expect(who=who):
                client = (await self._daemon(who)).client
                await self._expect(client, step)
                self._check(client)
            case Directive(name=name, rest=rest):
                await self._direct(name, rest)

    def _check(self, client: Client) -> None:
        assert not client.complaints, "\n".join(client.complaints)
        self.world.check_files()

    async def _direct(self, name: str, rest: str) -> None:
        match name:
            case "raw":
                self._capabilities = None
            case "handshake":
                self._capabilities = json.loads(rest)
            case "session":
                path = self.world.store(rest)
                await self._ask((await self._daemon(1)).client, "session/open", {"path": path})
            case "restart":
                await self._end(self._daemons.pop(1))
            case "ended":
                await self._has_ended(self._daemons.pop(1))
            case _:
                self.world.do(name, rest)

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
                if (
                    place not in client.taken
                    and fit(pattern, message, self.world.names) is not None
                ):
                    raise AssertionError(f"{pattern} says nothing else, but: {shown(message)}")
        client.read = last + 1

    def _place_of(self, client: Client, pattern: Any) -> int | None:
        for place, message in enumerate(client.received):
            is_over = place < client.read and is_notification(message)
            if is_over or place in client.taken:
                continue
            names = fit(pattern, message, self.world.names)
            if names is not None:
                self.world.names = names
                return place
            if _answers(pattern, message):
                raise AssertionError(f"wanted {json.dumps(pattern)}\n   came {shown(message)}")
        return None

    async def _daemon(self, who: int) -> Daemon:
        daemon = self._daemons.get(who)
        if daemon is None:
            daemon = self._daemons[who] = Daemon(self.world.settings(), self._clock, self._ids[who])
            await self._tasks.start(daemon.run)
            if self._capabilities is not None:
                await self._shake_hands(daemon.client, self._capabilities)
        return daemon

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
        return self.world.names.pop(f"answer_{self._opened}")

    async def _has_ended(self, daemon: Daemon) -> None:
        with anyio.move_on_after(WAIT_S) as scope:
            await daemon.stop.wait()
        assert not scope.cancelled_caught, "the host goes on"
        await self._end(daemon)


def _answers(pattern: Any, message: Any) -> bool:
    """Whether the message answers the request the pattern speaks of."""
    if not isinstance(pattern, dict) or not isinstance(message, dict):
        return False
    return "id" in pattern and "method" not in message and pattern["id"] == message.get("id")
