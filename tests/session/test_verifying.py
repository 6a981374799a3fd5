"""A summary is checked against the files and the model of its session, and nothing is written."""

from pathlib import Path

import anyio
import pytest

from pi_rpc.agent.stopping import Stop
from pi_rpc.core.errors import Stopped
from pi_rpc.core.messages import text_of
from pi_rpc.core.recalling import FilesCheck
from pi_rpc.session.condensing import compact, configure
from pi_rpc.session.prompting import abort
from pi_rpc.session.reading import View
from pi_rpc.session.session import Session
from pi_rpc.session.verifying import ask_to_restate, verify_summary
from tests.session.living import WAIT_S, Speaker, living_host, memory_store, opened, said
from tests.session.test_compacting import talk
from tests.session.versioned import working


def view_of(session: Session) -> View:
    return View(
        session.tree,
        session.leaf_row,
        session.stored,
        session,
        session.projection,
        session.history.counted,
    )


@pytest.mark.anyio
async def test_a_file_changed_by_a_command_is_missing_from_the_list(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    async with working(tmp_path) as work:
        session = await work.opened(folder)
        await work.writes(session, told__txt="1")
        await work.shell(session, "echo 2 > untold.txt")
        await work.does(session)
        configure(session, keep_recent_tokens=1)
        work.speaker.replies.append(said("## Goal\nFiles."))
        # Kept is the beginning of the last answer; its turn is told apart.
        work.speaker.replies.append(said("## Original Request\nFiles."))
        await compact(session, work.host.tasks)
        size = len(session.tree)
        verified = await verify_summary(view_of(session), None)
        assert (verified.versions.status, verified.versions.changed) == (
            "compared",
            ["told.txt", "untold.txt"],
        )
        missing = [
            one.path for one in verified.checked.findings if one.slug == "changed_file_missing"
        ]
        assert missing == ["untold.txt"]
        assert verified.disk == [("told.txt", True)]
        assert len(session.tree) == size


@pytest.mark.anyio
async def test_where_no_states_are_named_it_is_said(cwd: Path) -> None:
    speaker = Speaker(said("a0"), said("a1"), said("## Goal\nWords."))
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=1)
        speaker.replies.append(said("## Original Request\nWords."))
        await compact(session, host.tasks)
        verified = await verify_summary(view_of(session), None)
        assert verified.versions == FilesCheck("unknown", "no_versions")


@pytest.mark.anyio
async def test_the_model_restates_the_summary_and_nothing_is_written(cwd: Path) -> None:
    speaker = Speaker(said("a0"), said("a1"), said("## Goal\nThe words."), said("## Goal\nTurn."))
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=1)
        await compact(session, host.tasks)
        size = len(session.tree)
        verified = await verify_summary(view_of(session), None)
        speaker.replies.append(said("## Goal\nSomething else."))
        with session.summarising() as live:
            told, more = await ask_to_restate(session, verified, live.stop)
        asked = text_of(speaker.requests[-1][-1])
        assert "The words." in asked
        assert "Question 0" not in asked
        assert told.goal == "Something else."
        added = more.checked.findings[len(verified.checked.findings) :]
        assert "goal_not_restated" in [one.slug for one in added]
        assert len(session.tree) == size


@pytest.mark.anyio
async def test_asking_is_stopped_like_a_summary(cwd: Path) -> None:
    speaker = Speaker(said("a0"), said("a1"), said("## Goal\nWords."), said("Turn."))
    async with living_host(memory_store(), cwd, models=speaker) as host:
        session = await opened(host, cwd)
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=1)
        await compact(session, host.tasks)
        verified = await verify_summary(view_of(session), None)
        stop = Stop()
        stop.set()
        speaker.replies.append(said("## Goal\nToo late."))
        with anyio.fail_after(WAIT_S), pytest.raises(Stopped):
            await ask_to_restate(session, verified, stop)
        assert await abort(session) == "done"
