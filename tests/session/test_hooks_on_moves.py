"""Who looks on when sessions come and go, and who may stop or change a move."""

from pathlib import Path
from typing import Any

import pytest

from pi_rpc.core.errors import Failure
from pi_rpc.core.events import CompactionEnded, DiagnosticTold, RequestResolved, RunSettled
from pi_rpc.core.hooks import (
    BashAnswer,
    BeforeCompactAnswer,
    BeforeMoveAnswer,
    BeforeTreeAnswer,
    MessageAnswer,
)
from pi_rpc.core.reply import ReplyEnded, ReplyError, ReplyStarted
from pi_rpc.core.thresholds import CompactionSettings
from pi_rpc.session.building import Copying, Opening
from pi_rpc.session.condensing import compact
from pi_rpc.session.navigating import navigate
from pi_rpc.session.prompting import prompt
from pi_rpc.session.shell import run_shell
from pi_rpc.session.summarising import SummaryWish
from tests.session.guests import Scene, scene
from tests.session.living import HeldTool, Speaker, called, messages, said, tools_named

pytestmark = pytest.mark.anyio

LONG = "word " * 400


def copying(reason: Any, activate: bool = True) -> Copying:
    return Copying(reason, None, "at", None, None, activate)


async def talked(one: Scene, *texts: str) -> None:
    for count, text in enumerate(texts, len(one.ear.of(RunSettled)) + 1):
        prompt(one.session, one.host.tasks, text)
        await one.ear.until(RunSettled, count)


def settings(one: Scene, keep: int = 20) -> None:
    one.session.chosen.compaction = CompactionSettings(keep_recent_tokens=keep)


async def test_who_looks_on_hears_of_every_beginning_and_end(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker(said("one"))) as one:
        one.guest.take_part("session/started", lambda told: None)
        one.guest.take_part("session/closing", lambda told: None)
        await talked(one, "hello")
        copy = (await one.host.copy(one.session, copying("clone"))).session
        await one.host.close(copy)
        told = [
            (name, told.reason, getattr(told, "parent_session_id", None))
            for name, told in one.guest.told
        ]
        assert sorted(told, key=str) == sorted(
            [
                ("session/closing", "clone", None),
                ("session/started", "clone", one.session.session_id),
                ("session/closing", "closed", None),
            ],
            key=str,
        )
        [swap] = [told for _, told in one.guest.told if getattr(told, "next_session_id", None)]
        assert swap.next_session_id == copy.session_id


async def test_an_end_is_held_up_by_nobody_who_only_looks_on(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker()) as one:
        one.guest.take_part("session/closing", None, timeout_ms=1, on_timeout="fail")
        await one.host.close(one.session)
        assert one.session.closed
        [resolved] = one.ear.of(RequestResolved)
        assert (resolved.hook, resolved.outcome) == ("session/closing", "timeout")


@pytest.mark.parametrize("act", ["new", "switch", "fork", "clone", "clone beside", "reload"])
async def test_every_move_can_be_stopped_with_a_reason_and_changes_nothing(
    tmp_path: Path, act: str
) -> None:
    async with scene(tmp_path, Speaker(said("one"))) as one:
        host, session = one.host, one.session
        other = await host.new(Opening(str(tmp_path)))
        await talked(one, "hello")
        one.guest.take_part(
            "session/before_replace", lambda told: BeforeMoveAnswer(True, "unsaved")
        )
        before = (session.leaf_id, len(session.tree), host.sessions)
        with pytest.raises(Failure) as caught:
            match act:
                case "new":
                    await host.new_replacing(session, Opening(str(tmp_path)))
                case "switch":
                    await host.switch(session, other.session_id, None)
                case "reload":
                    await host.relocate(session, None, "reload")
                case "clone beside":
                    await host.copy(session, copying("clone", activate=False))
                case _:
                    await host.copy(session, copying(act))
        assert caught.value.reason == "cancelled_by_hook"
        assert caught.value.data["hook"] == "session/before_replace"
        assert caught.value.data["said"] == "unsaved"
        assert (session.leaf_id, len(session.tree), host.sessions) == before
        assert not session.closed
        [(_, told)] = one.guest.told
        assert told.reason == act.partition(" ")[0]
        assert told.activates == (act != "clone beside")


async def test_a_move_of_the_leaf_can_be_stopped_and_told_of_anew(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker(said("one"), said("two"))) as one:
        await talked(one, "first", "second")
        session = one.session
        target = next(entry["id"] for entry in one.stored("message")[1:2])
        answers = iter(
            (
                BeforeTreeAnswer(cancel=True, reason="stay"),
                BeforeTreeAnswer(summary="what a hook says", label="left"),
            )
        )
        one.guest.take_part("session/before_tree", lambda told: next(answers))
        leaf = session.leaf_id
        with pytest.raises(Failure) as caught:
            await navigate(session, target)
        assert (caught.value.reason, session.leaf_id) == ("cancelled_by_hook", leaf)
        moved = await navigate(session, target, wish=SummaryWish())
        assert moved.summary == "made"
        [summary] = one.stored("branch_summary")
        assert summary["fromHook"]
        assert "what a hook says" in summary["summary"]
        assert [entry["label"] for entry in one.stored("label")] == ["left"]
        told = one.guest.told[0][1]
        assert (told.target_id, told.leaf_id, told.wants_summary) == (target, leaf, False)
        assert told.left_count == 3


async def test_nobody_is_asked_of_a_move_to_where_the_leaf_is(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker(said("one"))) as one:
        await talked(one, "first")
        one.guest.take_part("session/before_tree", lambda told: BeforeTreeAnswer(cancel=True))
        await navigate(one.session, one.session.leaf_id, "here", SummaryWish())
        assert one.guest.told == [] and one.stored("label") == []


async def test_a_summary_of_a_hook_is_used_where_one_was_wished_for_also_of_nothing(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, Speaker(said("one"))) as one:
        await talked(one, "first")
        leaf = one.session.leaf_id
        answer = BeforeTreeAnswer(summary="what a hook says", instructions="other words")
        one.guest.take_part("session/before_tree", lambda told: answer)
        assert (await navigate(one.session, None)).summary == "none"
        assert one.stored("branch_summary") == []
        # From before every entry down again: nothing is left behind.
        moved = await navigate(one.session, leaf, wish=SummaryWish("these words"))
        [summary] = one.stored("branch_summary")
        assert (summary["id"], summary["parentId"]) == (moved.summary_id, leaf)
        assert (summary["fromId"], summary["fromHook"]) == ("root", True)
        assert summary["summary"].endswith("what a hook says")
        assert summary["details"]["piRpc"]["instructions"] == "other words"
        told = [(asked.wants_summary, asked.instructions) for _, asked in one.guest.told]
        assert told == [(False, ""), (True, "these words")]


async def test_a_later_hook_that_says_otherwise_holds_and_that_is_told(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker(said(LONG), said("two"))) as one:
        await talked(one, LONG, "more")
        settings(one)
        one.guest.take_part(
            "session/before_compact", lambda told: BeforeCompactAnswer(summary="first")
        )
        one.guest.take_part(
            "session/before_compact",
            lambda told: BeforeCompactAnswer(summary=f"second after {told.summary}"),
        )
        one.guest.take_part(
            "session/before_compact", lambda told: BeforeCompactAnswer(summary="  ")
        )
        await compact(one.session, one.host.tasks)
        [stored] = one.stored("compaction")
        assert "second after first" in stored["summary"]
        reasons = [told.diagnostic.reason for told in one.ear.of(DiagnosticTold)]
        assert reasons[:2] == ["hook_conflict", "hook_error"]


async def test_a_compaction_can_be_stopped_with_a_reason_and_the_session_goes_on(
    tmp_path: Path,
) -> None:
    speaker = Speaker(said(LONG), said("two"), said("three"))
    async with scene(tmp_path, speaker) as one:
        await talked(one, LONG, "more")
        settings(one)
        answers = iter((BeforeCompactAnswer(True, "not now"), BeforeCompactAnswer()))
        one.guest.take_part("session/before_compact", lambda told: next(answers))
        with pytest.raises(Failure) as caught:
            await compact(one.session, one.host.tasks)
        assert (caught.value.reason, caught.value.message) == ("cancelled_by_hook", "not now")
        [ended] = one.ear.of(CompactionEnded)
        assert ended.error is not None
        assert (ended.entry_id, ended.error["reason"]) == (None, "cancelled_by_hook")
        assert not one.session.is_compacting
        await talked(one, "on")
        assert one.ear.of(RunSettled)[-1].outcome == "done"


async def test_a_summary_of_a_hook_asks_no_model_and_carries_pins_and_files(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, Speaker(said(LONG), said("two"))) as one:
        await talked(one, LONG, "more")
        settings(one)
        one.guest.take_part(
            "session/before_compact",
            lambda told: BeforeCompactAnswer(summary="by a hook", details={"host": 1}),
        )
        compacted = await compact(one.session, one.host.tasks, "the names")
        [stored] = one.stored("compaction")
        assert stored["fromHook"] is True
        assert stored["summary"].startswith("by a hook")
        assert stored["details"]["host"] == 1
        assert {"readFiles", "modifiedFiles", "piRpc"} <= set(stored["details"])
        assert compacted.usage is None
        [(_, told)] = one.guest.told
        assert (told.reason, told.instructions, told.will_retry) == ("manual", "the names", False)
        assert told.summarised_count == len(told.summarised_entry_ids) > 0


@pytest.mark.parametrize("on_timeout", ["allow", "deny", "fail"])
async def test_an_automatic_compaction_that_a_hook_keeps_back_does_not_end_the_run(
    tmp_path: Path, on_timeout: Any
) -> None:
    script = {"contextWindow": 1000}
    speaker = Speaker(said(LONG), *(said("# Goal\n\nAll.") for _ in range(6)))
    async with scene(tmp_path, speaker) as one:
        one.session.chosen.script = script
        one.session.chosen.compaction = CompactionSettings(
            reserve_tokens=2500, keep_recent_tokens=50
        )
        one.guest.take_part("session/before_compact", None, timeout_ms=1, on_timeout=on_timeout)
        await talked(one, LONG, "more")
        assert [told.outcome for told in one.ear.of(RunSettled)] == ["done", "done"]
        ended = one.ear.of(CompactionEnded)
        assert ended
        kept_back = [told.error for told in ended if told.error is not None]
        assert bool(kept_back) == (on_timeout != "allow")
        assert not one.session.is_compacting


async def test_a_command_of_the_users_can_be_answered_without_being_run(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker()) as one:
        by = one.guest.take_part(
            "bash/before", lambda told: BashAnswer("replace", output="not real", exit_code=3)
        )
        outcome, _ = await run_shell(one.session, f"touch {tmp_path}/made")
        assert (outcome.output, outcome.exit_code) == ("not real", 3)
        assert not (tmp_path / "made").exists()
        [message] = messages(one.session)
        assert (message["output"], message["changedBy"]) == ("not real", by)


async def test_a_command_of_the_users_can_be_changed_or_refused(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker()) as one:
        answers = iter((BashAnswer(command="echo other"), BashAnswer("block", "not here")))

        def answering(told: Any) -> BashAnswer:
            try:
                return next(answers)
            except StopIteration:
                raise ValueError("it broke") from None

        one.guest.take_part("bash/before", answering)
        outcome, _ = await run_shell(one.session, "echo this")
        assert outcome.output.strip() == "other"
        [message] = messages(one.session)
        assert (message["command"], message["originalCommand"]) == ("echo other", "echo this")
        for said_so in ("not here", "it broke"):
            with pytest.raises(Failure) as caught:
                await run_shell(one.session, "echo this")
            assert (caught.value.reason, caught.value.message) == ("cancelled_by_hook", said_so)
        assert len(messages(one.session)) == 1
        assert one.session.shells == {}


async def test_a_reply_of_calls_keeps_them_whatever_a_hook_says(tmp_path: Path) -> None:
    held = HeldTool("touch")
    speaker = Speaker(called(("touch", "{}")), said("done"))
    async with scene(tmp_path, speaker, tools_named(held)) as one:
        one.guest.take_part(
            "message/ended", lambda told: MessageAnswer("only words"), roles=("assistant",)
        )
        await talked(one, "go")
        first = next(one for one in messages(one.session) if one["role"] == "assistant")
        assert [block["type"] for block in first["content"]] == ["text", "toolCall"]
        assert len(held.calls) == 1


async def test_a_recovery_that_a_hook_keeps_back_fails_the_run_and_leaves_the_session_usable(
    tmp_path: Path,
) -> None:
    refused = [ReplyStarted(), ReplyEnded("error", error=ReplyError("overflow", "too long"))]
    speaker = Speaker(said(LONG), said("two"), refused, said("three"))
    async with scene(tmp_path, speaker) as one:
        settings(one)
        await talked(one, LONG, "more")
        one.session.chosen.script = {"contextWindow": 100_000}
        one.guest.take_part(
            "session/before_compact", lambda told: BeforeCompactAnswer(True, "not now")
        )
        await talked(one, "and more")
        settled = one.ear.of(RunSettled)[-1]
        assert settled.outcome == "failed"
        [(_, told)] = one.guest.told
        assert (told.reason, told.will_retry) == ("overflow", True)
        [ended] = one.ear.of(CompactionEnded)
        assert ended.error is not None
        assert ended.error["reason"] == "cancelled_by_hook"
        await talked(one, "on")
        assert one.ear.of(RunSettled)[-1].outcome == "done"


async def test_the_last_event_of_a_runtime_is_the_last_also_where_somebody_still_looks_on(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, Speaker(said("one"))) as one:
        one.guest.take_part("run/settled", None)
        await talked(one, "hello")
        await one.guest.until_told()
        await one.host.close(one.session)
        assert one.ear.names[-1] == "SessionClosed"
        assert one.guest.withdrawn != []
