"""Sessions whose files have versions: a host with real tools, a model that does as it is told."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from pi_rpc.core.entries import Kind
from pi_rpc.core.events import Environment
from pi_rpc.core.ports.workspace import Workspaces
from pi_rpc.core.version_limits import VersionLimits
from pi_rpc.session.building import Opening
from pi_rpc.session.host import Host
from pi_rpc.session.prompting import prompt, wait_until_settled
from pi_rpc.session.session import Session
from pi_rpc.session.surroundings import Surroundings
from pi_rpc.tools.choose import KNOWN, tool_set, user_shell
from pi_rpc.workspace.choose import choose_workspaces
from tests.conftest import CountedClock, CountedIds
from tests.session.living import WAIT_S, Speaker, called, file_store, said


class Working:
    """A host, and sessions that do what a test wants of them."""

    def __init__(self, host: Host, speaker: Speaker) -> None:
        self.host = host
        self.speaker = speaker

    async def opened(self, cwd: Path, **more: Any) -> Session:
        """A new session in a folder."""
        return await self.host.new(Opening(str(cwd), **more))

    async def does(self, session: Session, *calls: tuple[str, dict[str, Any]]) -> str:
        """One run that makes these calls at once and then says so; the leaf it ends with."""
        if calls:
            self.speaker.replies.append(called(*((n, json.dumps(a)) for n, a in calls)))
        self.speaker.replies.append(said("done"))
        prompt(session, self.host.tasks, "do it")
        with anyio.fail_after(WAIT_S * 2):
            assert await wait_until_settled(session) == "done"
        assert session.leaf_id is not None
        return session.leaf_id

    async def shell(self, session: Session, command: str) -> str:
        """One run of one command."""
        return await self.does(session, ("bash", {"command": command}))

    async def writes(self, session: Session, **files: str) -> str:
        """One run that writes files; in names `__` stands for a dot."""
        calls = [
            ("write", {"path": name.replace("__", "."), "content": text})
            for name, text in files.items()
        ]
        return await self.does(session, *calls)


@asynccontextmanager
async def working(
    folder: Path,
    *,
    limits: VersionLimits | None = None,
    enabled: bool = True,
    require_acknowledge: bool = False,
    series: int = 1,
) -> AsyncIterator[Working]:
    """A host in this loop whose store and versions lie below `folder`."""
    speaker = Speaker()
    async with anyio.create_task_group() as left_behind, anyio.create_task_group() as tasks:
        workspaces: Workspaces = choose_workspaces(
            enabled, folder / "versions", left_behind, limits
        )
        around = Surroundings(
            clock=CountedClock(),
            ids=CountedIds(series),
            models=speaker,
            tools=tool_set(KNOWN),
            spill_root=folder / "spill",
            left_behind=left_behind,
            shell=user_shell(),
            grace_s=0.05,
            workspaces=workspaces,
            require_acknowledge=require_acknowledge,
        )
        host = Host(file_store(folder / "sessions", series + 100), around, tasks, "test")
        try:
            yield Working(host, speaker)
        finally:
            with anyio.move_on_after(WAIT_S, shield=True):
                await host.close_all()
            tasks.cancel_scope.cancel()
            left_behind.cancel_scope.cancel()


def files_scope(environment: Environment) -> tuple[str, str]:
    """How the files stand, and why."""
    scope = environment.scopes["files"]
    return scope.status, scope.reason


def drift(environment: Environment) -> list[tuple[str, str]]:
    """What differs."""
    return [(one["path"], one["change"]) for one in environment.drift]


def bindings(session: Session) -> list[tuple[str, list[str]]]:
    """When each version was named, and what this session had changed."""
    return [(one.at, [path for path, _, _ in one.changes]) for one in session.bindings.all()]


def kinds(session: Session) -> list[Kind]:
    """The rows of a session that matter for the order of bindings."""
    return [session.tree.kind(row) for row in range(len(session.tree))]
