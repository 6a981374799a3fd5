"""A compaction is taken back, and nothing that came after it is lost."""

from pathlib import Path

import pytest

from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Busy, Missing, Refused
from pi_rpc.core.events import LeafMoved
from pi_rpc.core.stats import Tokens
from pi_rpc.session.condensing import compact, configure, pin_entry
from pi_rpc.session.navigating import edit_context, navigate
from pi_rpc.session.session import Session
from pi_rpc.session.undoing import undo_compaction
from tests.session.living import Ear, texts
from tests.session.test_compacting import LONG, ask, entries, replies, roles, talk, talking, used


async def tokens_used(session: Session) -> Tokens:
    counted = await session.history.counted.at(session.leaf_row)
    return counted.totals().tokens


@pytest.mark.anyio
async def test_what_came_after_follows_what_was_before(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", used(3, "NOTES"), "a2", "a3")) as (host, session):
        await talk(host, session, 2)
        before = texts(session)
        configure(session, keep_recent_tokens=50)
        made = await compact(session, host.tasks)
        await ask(host, session, "After?")
        ear, size = Ear(session.hub), session.stored.size_bytes
        cost = await tokens_used(session)
        undone = await undo_compaction(session)
        assert texts(session) == [*before, "After?", "a2"]
        assert "compactionSummary" not in roles(session)
        assert undone.compaction_id == made.entry_id
        assert session.stored.size_bytes > size
        # What was used is counted once.
        assert await tokens_used(session) == cost
        assert ear.of(LeafMoved)[0].op == "undo"
        assert await ask(host, session, "Go on.") == "done"
        # The compacted branch is still there.
        await navigate(session, list(undone.copies)[-1])
        assert texts(session)[-2:] == ["After?", "a2"] and "compactionSummary" in roles(session)


@pytest.mark.anyio
async def test_right_after_a_compaction_the_leaf_goes_back(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", "NOTES")) as (host, session):
        await talk(host, session, 2)
        leaf = session.leaf_id
        configure(session, keep_recent_tokens=50)
        await compact(session, host.tasks)
        assert (await undo_compaction(session)).copies == {}
        assert session.leaf_id == leaf
        with pytest.raises(Missing) as caught:
            await undo_compaction(session)
        assert caught.value.reason == "no_compaction"


@pytest.mark.anyio
async def test_edits_and_pins_made_after_hold_after_it(cwd: Path) -> None:
    async with talking(cwd, replies("a0", "a1", "NOTES", "a2", "NOTES")) as (host, session):
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        await compact(session, host.tasks)
        kept = session.projection.selection.rows[1]
        await ask(host, session, "After?")
        answer = session.leaf_id
        assert answer is not None
        await edit_context(
            session, [session.tree.heads.id_of(kept)], {"content": "Other."}, pairs=True
        )
        await edit_context(session, [answer], {"content": "Better."}, pairs=True)
        await pin_entry(session, answer, True)
        await undo_compaction(session)
        assert texts(session)[-3:] == ["a1", "After?", "Better."]
        assert texts(session)[2] == "Other."
        configure(session, keep_recent_tokens=0)
        await ask(host, session, LONG)
        assert "Better." in "".join(texts(session))


@pytest.mark.anyio
async def test_what_would_not_fit_is_not_taken_back(cwd: Path) -> None:
    script = replies("x" * 4 * 3000, "x" * 4 * 3000, "NOTES")
    async with talking(cwd, script | {"contextWindow": 0}) as (host, session):
        await talk(host, session, 2)
        configure(session, keep_recent_tokens=50)
        await compact(session, host.tasks)
        session.chosen.script = script | {"contextWindow": 7000}
        leaf = session.leaf_id
        with pytest.raises(Refused) as caught:
            await undo_compaction(session)
        assert caught.value.reason == "undo_would_overflow"
        assert caught.value.data["tokens"] > caught.value.data["limit"]
        assert session.leaf_id == leaf


@pytest.mark.anyio
async def test_nothing_is_taken_back_during_another_move(cwd: Path) -> None:
    async with talking(cwd, replies()) as (_, session):
        with session.acting("navigate"), pytest.raises(Busy):
            await undo_compaction(session)
        assert not entries(session, Kind.COMPACTION)
