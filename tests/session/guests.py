"""Somebody who takes part: answers each point with what a test gave it, and keeps what was told."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from pi_rpc.core.hooks import HOOKS, HookName
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.tools import Tool
from pi_rpc.session.consulting import Consulting, Hook, Offer, Question, Unanswered
from pi_rpc.session.host import Host
from pi_rpc.session.session import Session
from tests.session.living import WAIT_S, Ear, Speaker, file_store, living_host, opened

Answering = Callable[[Any], Any]


class Guest:
    """Takes part at the points it is made with, at once; what raises is an answer that failed."""

    serves_permissions = False
    dialogs: frozenset[str] = frozenset()

    def __init__(self, consulting: Consulting, name: str = "guest") -> None:
        self.name = name
        self.told: list[tuple[HookName, Any]] = []
        self.withdrawn: list[str] = []
        self._consulting = consulting
        self._answering: dict[str, Answering | None] = {}
        self._came = anyio.Event()
        consulting.join(self)

    def take_part(self, name: HookName, answering: Answering | None, **more: Any) -> str:
        """Register for a point; None for one that never answers. The registration's id."""
        offer_id = f"{self.name}{len(self._answering)}"
        self._answering[offer_id] = answering
        timeout_ms = more.pop("timeout_ms", 5_000)
        on_timeout = more.pop("on_timeout", HOOKS[name].default)
        hook = Hook(name, timeout_ms, on_timeout, **more)
        self._consulting.register(Offer(offer_id, self, None, (hook,)))
        return offer_id

    def put(self, question: Question) -> None:
        assert question.hook is not None
        assert question.registration_id is not None
        told = question.asked["payload"]
        self.told.append((question.hook, told))
        came, self._came = self._came, anyio.Event()
        came.set()
        answering = self._answering[question.registration_id]
        if answering is None:
            return
        try:
            answer = answering(told)
        except ValueError as problem:
            self._consulting.fail(question.id, "failed", str(problem))
            return
        if isinstance(answer, Unanswered):
            self._consulting.fail(question.id, answer.why, answer.text)
        else:
            wanted = HOOKS[question.hook].answer
            self._consulting.answer(question.id, wanted() if answer is None else answer)

    def withdraw(self, question_id: str) -> None:
        self.withdrawn.append(question_id)

    async def until_told(self, count: int = 1) -> None:
        """Return when it was told so often."""
        with anyio.fail_after(WAIT_S):
            while len(self.told) < count:
                await self._came.wait()

    @property
    def points(self) -> list[HookName]:
        """Where it was asked, in order."""
        return [name for name, _ in self.told]


class Scene:
    """A session, who listens to it, and who takes part."""

    def __init__(self, host: Host, session: Session, ear: Ear, guest: Guest) -> None:
        self.host = host
        self.session = session
        self.ear = ear
        self.guest = guest

    @property
    def entries(self) -> list[JsonObject]:
        """What is stored, in file order."""
        tree = self.session.tree
        return [tree.entry(row).object for row in range(len(tree))]

    def stored(self, kind: str) -> list[JsonObject]:
        """What is stored of one type."""
        return [entry for entry in self.entries if entry["type"] == kind]


@asynccontextmanager
async def scene(
    folder: Path, speaker: Speaker, tools: dict[str, Tool] | None = None
) -> AsyncIterator[Scene]:
    """A session on real files in which a guest may take part."""
    async with living_host(file_store(folder), folder, speaker, tools) as host:
        guest = Guest(host.around.consulting)
        session = await opened(host, folder)
        yield Scene(host, session, Ear(session.hub), guest)
