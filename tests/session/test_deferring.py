"""Commands the user runs while a run goes on are bound when their results are written."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from pi_rpc.core.entries import Kind
from pi_rpc.session.navigating import navigate
from pi_rpc.session.prompting import prompt, wait_until_settled
from pi_rpc.session.restoring import Restoring, restore
from pi_rpc.session.session import Session
from pi_rpc.session.shell import run_shell
from pi_rpc.session.versioning import check
from tests.session.living import WAIT_S, Door, called, said
from tests.session.versioned import Working, bindings, drift, files_scope, kinds, working
from tests.workspace.repositories import plain_tree

pytestmark = pytest.mark.anyio


async def during_a_reply(work: Working, session: Session, command: str, *then: object) -> None:
    """A run whose first reply goes on until the user's command has ended."""
    door = Door()
    replies = [said("done")] if not then else [*then, said("done")]
    replies[0] = [door, *replies[0]]  # type: ignore[misc]
    work.speaker.replies += replies  # type: ignore[arg-type]
    prompt(session, work.host.tasks, "go")
    await door.until_reached()
    _, entry_id = await run_shell(session, command)
    assert entry_id is None
    door.opened.set()
    await settled(session)


async def settled(session: Session) -> None:
    with anyio.fail_after(WAIT_S * 2):
        assert await wait_until_settled(session) == "done"


async def test_what_a_command_did_during_a_reply_is_bound_and_brought_back(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        (cwd / "a").write_text("a\n")
        session = await work.opened(cwd)
        start, before = session.leaf_id, plain_tree(cwd)
        await during_a_reply(work, session, "echo 1 > made; echo b > a")
        assert bindings(session) == [("start", []), ("after_tools", ["a", "made"])]
        assert kinds(session)[-2:] == [Kind.BASH_EXECUTION, Kind.WORKSPACE]
        assert files_scope(session.environment) == ("restored", "equal")
        assert files_scope(await check(session)) == ("restored", "equal")
        end = session.leaf_id

        moved = await navigate(session, start)
        assert drift(moved.environment) == [("a", "modified"), ("made", "added")]
        done = await restore(session, Restoring())
        assert (list(done.restored), done.refused, done.left) == (["a", "made"], [], [])
        assert plain_tree(cwd) == before
        there = await navigate(session, end, restore="try")
        assert there.environment.status == "restored"


async def test_what_a_command_did_beside_a_call_is_the_sessions_own(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        start, before = session.leaf_id, plain_tree(cwd)
        waits = "touch waits; until [ -e go ]; do sleep 0.01; done; echo 2 > run"
        work.speaker.replies += [called(("bash", f'{{"command": "{waits}"}}')), said("done")]
        prompt(session, work.host.tasks, "go")
        await run_shell(session, "until [ -e waits ]; do sleep 0.01; done; echo 1 > mine; touch go")
        await settled(session)
        assert files_scope(await check(session)) == ("restored", "equal")
        moved = await navigate(session, start, restore="try")
        assert moved.environment.status == "restored"
        assert plain_tree(cwd) == before


async def test_what_a_command_made_and_the_run_changed_goes_with_both(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        start, before = session.leaf_id, plain_tree(cwd)
        appends = called(("bash", '{"command": "echo 2 >> made"}'))
        await during_a_reply(work, session, "echo 1 > made", appends)
        assert (cwd / "made").read_text() == "1\n2\n"
        moved = await navigate(session, start, restore="try")
        assert moved.environment.status == "restored"
        assert plain_tree(cwd) == before


async def test_what_the_user_edits_after_a_command_is_not_taken_for_the_sessions(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        start = session.leaf_id
        await during_a_reply(work, session, "echo 1 > made")
        (cwd / "made").write_text("by hand\n")
        await navigate(session, start)
        done = await restore(session, Restoring())
        assert [(one.path, one.reason) for one in done.refused] == [("made", "edited_since")]
        assert (cwd / "made").read_text() == "by hand\n"


async def test_a_command_that_outlives_its_run_is_bound_when_it_ends(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        start, before = session.leaf_id, plain_tree(cwd)
        door = Door()
        work.speaker.replies += [[door, *called(("write", '{"path": "b", "content": "b"}'))]]
        work.speaker.replies += [said("done")]
        prompt(session, work.host.tasks, "go")
        await door.until_reached()
        command = "echo 1 > made; until [ -e go ]; do sleep 0.01; done"

        async def outlasts() -> None:
            _, entry_id = await run_shell(session, command)
            assert entry_id is not None

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outlasts)
            while not (cwd / "made").exists():
                await anyio.lowlevel.checkpoint()
            door.opened.set()
            await settled(session)
            (cwd / "go").write_text("")
        assert files_scope(await check(session)) == ("restored", "equal")
        moved = await navigate(session, start, restore="try")
        assert moved.environment.status == "restored"
        assert plain_tree(cwd) == before


async def test_a_command_of_which_no_state_can_be_named_is_unknown(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path, enabled=False) as work:
        session = await work.opened(cwd)
        start = session.leaf_id
        await during_a_reply(work, session, "echo 1 > made")
        assert bindings(session) == []
        moved = await navigate(session, start)
        assert files_scope(moved.environment) == ("unknown", "versions_off")
