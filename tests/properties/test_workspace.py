"""Any sequence of edits, moves and restores: nobody loses what only they had, no verdict lies.

Beside the real folder goes a plain model of it: its files, and who put each there last.
"""

import json
import random
from pathlib import Path

import pytest

from pi_rpc.core.errors import Refused
from pi_rpc.session.navigating import navigate
from pi_rpc.session.prompting import prompt, wait_until_settled
from pi_rpc.session.restoring import Restoring, restore
from pi_rpc.session.session import Session
from pi_rpc.session.shell import run_shell
from pi_rpc.session.versioning import check
from tests.session.living import Door, called, said
from tests.session.versioned import Working, files_scope, working
from tests.workspace.repositories import commit_all, git, plain_tree

pytestmark = pytest.mark.anyio

NAMES = ["a", "b", "d/x", "d/y", "d/e/z", "c"]
STEPS = 22


class Folder:
    """A folder, two sessions in it, a user, and the model of what must be there."""

    def __init__(self, cwd: Path, work: Working, sessions: list[Session], seed: int) -> None:
        self.cwd = cwd
        self.work = work
        self.sessions = sessions
        self.chance = random.Random(seed)
        self.owner: dict[bytes, int] = {}
        """Who touched a path last: a session's place, or -1 for the user."""
        self.left: dict[tuple[int, bytes], tuple[str, bytes] | None] = {}
        """What each left a path as, when it touched it last."""
        self.at_leaf: dict[tuple[int, str | None], dict[bytes, tuple[str, bytes]]] = {}
        self.count = 0

    def content(self) -> str:
        self.count += 1
        return f"content {self.count}\n"

    def noted(self, before: dict[bytes, tuple[str, bytes]], who: int) -> None:
        """Whatever differs now was done by this one."""
        after = plain_tree(self.cwd)
        for path in before.keys() | after.keys():
            if before.get(path) != after.get(path):
                self.owner[path] = who
                self.left[who, path] = after.get(path)

    async def step(self) -> None:
        who = self.chance.randrange(2)
        act = self.chance.choice(
            [
                *(self.writes, self.shell, self.beside, self.user, self.user),
                *(self.moves, self.restores, self.undoes),
            ]
        )
        before = plain_tree(self.cwd)
        await act(who, before)
        for place, session in enumerate(self.sessions):
            await self.told_truly(place, session)

    async def told_truly(self, place: int, session: Session) -> None:
        environment = await check(session)
        bound = self.at_leaf.get((place, session.leaf_id))
        if bound is not None and files_scope(environment)[0] == "restored":
            assert plain_tree(self.cwd) == bound

    async def writes(self, who: int, before: dict[bytes, tuple[str, bytes]]) -> None:
        name = self.chance.choice(NAMES)
        calls = [("write", {"path": name, "content": self.content()})]
        await self.ran(who, before, *calls)

    async def shell(self, who: int, before: dict[bytes, tuple[str, bytes]]) -> None:
        await self.ran(who, before, ("bash", {"command": self.command()}))

    def command(self) -> str:
        name, other = self.chance.sample(NAMES, 2)
        command = self.chance.choice(
            [
                f"rm -rf {name}",
                f"mkdir -p $(dirname {name}) && echo {self.content().strip()} >> {name}",
                f"mkdir -p $(dirname {other}) && mv -f {name} {other}",
                f"ln -sfn a {name}",
                f"chmod +x {name}",
                "rm -rf d && echo plain > d",
                "true",
            ]
        )
        return f"({command}) 2>/dev/null; true"

    async def beside(self, who: int, before: dict[bytes, tuple[str, bytes]]) -> None:
        """A command of the user's while the model answers, and perhaps calls something then."""
        session, speaker, door = self.sessions[who], self.work.speaker, Door()
        calls = [called(("bash", json.dumps({"command": self.command()})))]
        replies = [*calls[: self.chance.randrange(2)], said("done")]
        speaker.replies += [[door, *replies[0]], *replies[1:]]
        prompt(session, self.work.host.tasks, "do it")
        await door.until_reached()
        await run_shell(session, self.command())
        door.opened.set()
        assert await wait_until_settled(session) == "done"
        self.noted(before, who)
        self.at_leaf[who, session.leaf_id] = plain_tree(self.cwd)

    async def ran(
        self, who: int, before: dict[bytes, tuple[str, bytes]], *calls: tuple[str, dict[str, str]]
    ) -> None:
        session = self.sessions[who]
        leaf = await self.work.does(session, *calls)
        self.noted(before, who)
        self.at_leaf[who, leaf] = plain_tree(self.cwd)

    async def user(self, who: int, before: dict[bytes, tuple[str, bytes]]) -> None:
        path = self.cwd / self.chance.choice(NAMES)
        try:
            if self.chance.random() < 0.3:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self.content())
        except OSError:
            return
        self.noted(before, -1)

    async def moves(self, who: int, before: dict[bytes, tuple[str, bytes]]) -> None:
        leaves = [leaf for place, leaf in self.at_leaf if place == who]
        if not leaves:
            return
        how = self.chance.choice(["none", "try"])
        await navigate(self.sessions[who], self.chance.choice(leaves), restore=how)
        if how == "none":
            assert plain_tree(self.cwd) == before
        self.kept_for_others(who, before)

    def kept_for_others(self, who: int, before: dict[bytes, tuple[str, bytes]]) -> None:
        after = plain_tree(self.cwd)
        for path in before.keys() | after.keys():
            if before.get(path) != after.get(path):
                # What others brought into the very state it was left in nobody can tell apart.
                left = self.left.get((who, path), "nothing")
                assert self.owner[path] == who or before.get(path) == left, path
                self.owner[path] = who
                self.left[who, path] = after.get(path)

    async def restores(self, who: int, before: dict[bytes, tuple[str, bytes]]) -> None:
        session = self.sessions[who]
        try:
            foreseen = await restore(session, Restoring(dry_run=True))
        except Refused as refused:
            assert refused.reason == "not_bound"
            return
        assert plain_tree(self.cwd) == before
        done = await restore(session, Restoring())
        assert (done.restored, done.refused, done.left) == (
            foreseen.restored,
            foreseen.refused,
            foreseen.left,
        )
        self.kept_for_others(who, before)

    async def undoes(self, who: int, before: dict[bytes, tuple[str, bytes]]) -> None:
        session = self.sessions[who]
        try:
            done = await restore(session, Restoring())
        except Refused:
            return
        undone = await restore(session, Restoring(version=done.safety_version))
        assert sorted(undone.restored) == sorted(done.restored)
        assert plain_tree(self.cwd) == before


@pytest.mark.parametrize("seed", range(5))
async def test_no_sequence_loses_what_only_somebody_else_had(tmp_path: Path, seed: int) -> None:
    cwd = tmp_path / "work"
    cwd.mkdir()
    (cwd / "a").write_text("at first\n")
    if seed % 2:
        git(cwd, "init", "-q")
        commit_all(cwd)
    async with working(tmp_path) as work:
        sessions = [await work.opened(cwd), await work.opened(cwd)]
        folder = Folder(cwd, work, sessions, seed)
        for _ in range(STEPS):
            await folder.step()
    if seed % 2:
        git(cwd, "fsck", "--strict")
        assert git(cwd, "diff", "--cached") == ""
