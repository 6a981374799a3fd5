"""Whoever takes part in a run: what is asked in which order, and what comes of the answers."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.drafts import (
    CompactionDraft,
    ContextEditDraft,
    CustomDraft,
    CustomMessageDraft,
)
from pi_rpc.core.entries import AddedMessage
from pi_rpc.core.errors import Failure
from pi_rpc.core.events import (
    DiagnosticTold,
    EntryAppended,
    MessageDelta,
    MessageEnded,
    RequestResolved,
    RunSettled,
    ToolEnded,
    TurnEnded,
)
from pi_rpc.core.hooks import (
    CONTINUES_MAX,
    AfterToolAnswer,
    BeforeToolAnswer,
    BoundaryAnswer,
    ContextAnswer,
    ContextChange,
    InputAnswer,
    MessageAnswer,
    PrepareAnswer,
)
from pi_rpc.core.messages import text_block
from pi_rpc.session.adding import add_message
from pi_rpc.session.choosing import set_active_tools
from pi_rpc.session.consulting import Unanswered
from pi_rpc.session.prompting import abort, prompt
from pi_rpc.session.wording import is_looked_at, looked_at
from tests.session.guests import Guest, Scene, scene
from tests.session.living import (
    WAIT_S,
    Door,
    HeldTool,
    Speaker,
    called,
    messages,
    said,
    tools_named,
)

pytestmark = pytest.mark.anyio

NOTE = AddedMessage("host.note", "a note")
DRAFTED = CustomMessageDraft("host.draft", "drafted")


def problems(one: Scene) -> list[str]:
    return [told.diagnostic.reason for told in one.ear.of(DiagnosticTold)]


async def run(one: Scene, text: str = "go", count: int = 1) -> RunSettled:
    prompt(one.session, one.host.tasks, text)
    return await one.ear.until(RunSettled, count)


async def test_the_points_of_one_tool_turn_come_in_their_order(tmp_path: Path) -> None:
    speaker, tools = Speaker(called(("touch", "{}")), said("done")), tools_named(HeldTool("touch"))
    async with scene(tmp_path, speaker, tools) as one:
        for name in (
            "run/settled",
            "run/before_settle",
            "turn/ended",
            "tool/after",
            "tool/before",
            "message/ended",
            "request/context",
            "run/prepare",
            "input",
        ):
            one.guest.take_part(name, lambda told: None)
        async with looked_at(one.session, one.host.tasks, "go", [], "prompt") as words:
            assert words is not None
        await run(one, words.text)
        await one.ear.until(RequestResolved, 14)
        assert one.guest.points == [
            "input",
            "run/prepare",
            "message/ended",
            "request/context",
            "message/ended",
            "tool/before",
            "tool/after",
            "message/ended",
            "turn/ended",
            "request/context",
            "message/ended",
            "turn/ended",
            "run/before_settle",
            "run/settled",
        ]
        assert problems(one) == []
        resolved = one.ear.of(RequestResolved)
        assert [told.hook for told in resolved] == one.guest.points
        assert all(told.elapsed_ms is not None and told.outcome == "answered" for told in resolved)


async def test_a_blocked_call_is_an_error_result_and_its_sibling_runs(tmp_path: Path) -> None:
    held = HeldTool("touch")
    speaker = Speaker(called(("touch", '{"a": 1}'), ("touch", '{"a": 2}')), said("done"))
    async with scene(tmp_path, speaker, tools_named(held)) as one:
        one.guest.take_part(
            "tool/before",
            lambda told: BeforeToolAnswer("block", "not one") if told.arguments["a"] == 1 else None,
        )
        settled = await run(one)
        assert settled.outcome == "done"
        assert [call.arguments for call in held.calls] == [{"a": 2}]
        first, second = one.ear.of(ToolEnded)
        blocked = first if first.call_id == "c0" else second
        assert (blocked.is_error, blocked.content[0]["text"]) == (
            True,
            "The call was blocked: not one",
        )


async def test_a_block_that_terminates_ends_the_run_without_another_request(tmp_path: Path) -> None:
    speaker = Speaker(called(("touch", "{}")))
    async with scene(tmp_path, speaker, tools_named(HeldTool("touch"))) as one:
        one.guest.take_part(
            "tool/before", lambda told: BeforeToolAnswer("block", "no", terminate=True)
        )
        assert (await run(one)).outcome == "done"
        assert len(speaker.requests) == 1


def broken(told: Any) -> Any:
    raise ValueError("the checker broke")


async def test_a_look_that_breaks_blocks_the_call_with_its_words(tmp_path: Path) -> None:
    held = HeldTool("touch")
    async with scene(tmp_path, Speaker(called(("touch", "{}")), said("x")), tools_named(held)) as s:
        s.guest.take_part("tool/before", broken)
        await run(s)
        assert held.calls == []
        [ended] = s.ear.of(ToolEnded)
        assert ended.content == [text_block("The call was blocked: the checker broke")]


async def test_changed_arguments_run_and_both_are_told_and_stored(tmp_path: Path) -> None:
    held = HeldTool("touch")
    speaker = Speaker(called(("touch", '{"a": 1}')), said("done"))
    async with scene(tmp_path, speaker, tools_named(held)) as one:
        by = one.guest.take_part("tool/before", lambda told: BeforeToolAnswer(arguments={"a": 2}))
        seen = one.guest.take_part(
            "tool/before", lambda told: BeforeToolAnswer(arguments=told.arguments | {"b": 3})
        )
        await run(one)
        assert [call.arguments for call in held.calls] == [{"a": 2, "b": 3}]
        [ended] = one.ear.of(ToolEnded)
        assert (ended.arguments, ended.effective_arguments) == ({"a": 1}, {"a": 2, "b": 3})
        assert (ended.changed_by, by) != (by, seen)
        [result] = [one for one in messages(one.session) if one["role"] == "toolResult"]
        assert result["effectiveArguments"] == {"a": 2, "b": 3}
        assert result["argumentsChangedBy"] == seen


async def test_a_changed_result_is_what_is_stored_and_sent_and_its_details_are_gone(
    tmp_path: Path,
) -> None:
    speaker = Speaker(called(("touch", "{}")), said("done"))
    async with scene(tmp_path, speaker, tools_named(HeldTool("touch"))) as one:
        one.guest.take_part(
            "tool/after", lambda told: AfterToolAnswer([text_block("redacted")], is_error=True)
        )
        await run(one)
        [result] = [said for said in messages(one.session) if said["role"] == "toolResult"]
        assert (result["content"], result["isError"]) == ([text_block("redacted")], True)
        assert "details" not in result
        assert "touch done" not in str(speaker.requests)


async def test_words_that_are_dealt_with_leave_no_mark(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker()) as one:
        one.guest.take_part("input", lambda told: InputAnswer("handled"))
        before = len(one.session.tree)
        assert is_looked_at(one.session, "go")
        async with looked_at(one.session, one.host.tasks, "go", [], "prompt") as words:
            assert words is None
        assert len(one.session.tree) == before


async def test_words_are_changed_by_one_after_another(tmp_path: Path) -> None:
    picture = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    async with scene(tmp_path, Speaker()) as one:
        one.guest.take_part("input", lambda told: InputAnswer("transform", told.text + "!"))
        one.guest.take_part(
            "input", lambda told: InputAnswer("transform", told.text + "?", images=[picture])
        )
        one.guest.take_part("input", lambda told: InputAnswer("transform", images=[{"data": "x"}]))
        async with looked_at(one.session, one.host.tasks, "go", [], "prompt") as words:
            assert words is not None
            assert (words.text, list(words.images)) == ("go!?", [picture])
        assert [told.images for _, told in one.guest.told] == [0, 0, 1]
        assert problems(one) == ["hook_error"]


async def test_a_message_for_a_run_goes_behind_the_prompt_in_every_run(tmp_path: Path) -> None:
    speaker = Speaker(said("one"), said("two"))
    async with scene(tmp_path, speaker) as one:
        one.guest.take_part("run/prepare", lambda told: PrepareAnswer([NOTE]))
        await run(one, "first")
        await run(one, "second", 2)
        roles = [entry.get("message", entry).get("role", entry["type"]) for entry in one.entries]
        talk = [role for role in roles if role in ("user", "custom_message", "assistant")]
        assert talk == ["user", "custom_message", "assistant"] * 2
        assert speaker.requests[0][-1]["content"] == [text_block("a note")]
        assert speaker.requests[0][-1]["role"] == "user"


async def test_a_section_that_changes_is_patched_alone(tmp_path: Path) -> None:
    texts = iter(("Be brief.", "Be long."))
    async with scene(tmp_path, Speaker(said("one"), said("two"))) as one:
        one.guest.take_part(
            "run/prepare", lambda told: PrepareAnswer(sections={"manner": next(texts)})
        )
        await run(one, "first")
        await run(one, "second", 2)
        patches = [
            entry["message"]
            for entry in one.stored("message")
            if entry["message"]["role"] == "system"
        ]
        assert {"preamble", "manner", "cwd"} <= set(patches[0]["sections"])
        assert patches[1]["sections"] == {"manner": "<manner>\nBe long.\n</manner>"}


async def test_a_forced_prompt_is_in_the_requests_and_the_file_has_the_sections(
    tmp_path: Path,
) -> None:
    held = HeldTool("touch")
    speaker = Speaker(called(("touch", "{}")), said("one"), said("two"))
    async with scene(tmp_path, speaker, tools_named(held)) as one:
        answers = iter((PrepareAnswer(system_prompt="Be a duck."), PrepareAnswer()))
        one.guest.take_part("run/prepare", lambda told: next(answers))
        await run(one, "first")
        await run(one, "second", 2)
        for request in speaker.requests[:2]:
            assert [said["role"] for said in request].count("system") == 1
            assert request[0]["content"] == "Be a duck."
            assert [tool["name"] for tool in request[0]["toolsAdded"]] == ["touch"]
            assert "sections" not in request[0]
        assert "sections" in speaker.requests[2][0]
        assert "Be a duck." not in str(one.entries)


async def test_a_hook_may_choose_the_tools_of_one_run(tmp_path: Path) -> None:
    speaker = Speaker(called(("b", "{}")), said("one"), said("two"))
    tools = tools_named(HeldTool("a"), HeldTool("b"))
    async with scene(tmp_path, speaker, tools) as one:
        answers = iter((PrepareAnswer(tools=["a", "unknown"]), PrepareAnswer()))
        one.guest.take_part("run/prepare", lambda told: next(answers))
        await run(one, "first")
        assert [tool["name"] for tool in speaker.requests[0][0]["toolsAdded"]] == ["a"]
        assert one.ear.of(ToolEnded)[0].is_error
        await run(one, "second", 2)
        added = [said["toolsAdded"] for said in speaker.requests[-1] if "toolsAdded" in said]
        assert [tool["name"] for tool in added[-1]] == ["b"]


async def test_what_is_added_to_a_request_is_in_it_and_not_in_the_file(tmp_path: Path) -> None:
    speaker = Speaker(said("one"), said("two"))
    async with scene(tmp_path, speaker) as one:
        one.guest.take_part("request/context", lambda told: ContextAnswer(append=["only now"]))
        await run(one)
        assert speaker.requests[0][-1]["content"] == [text_block("only now")]
        assert "only now" not in str(one.entries)
        await run(one, "again", 2)
        assert str(speaker.requests[1]).count("only now") == 1


async def test_a_request_is_shown_as_far_as_the_registration_wants(tmp_path: Path) -> None:
    speaker = Speaker(said("one"), said("two"))
    async with scene(tmp_path, speaker) as one:
        one.guest.take_part(
            "request/context",
            lambda told: ContextAnswer([ContextChange(told.messages[-1].entry_id, "hidden")]),
            last_messages=1,
        )
        await run(one, "first")
        await run(one, "second", 2)
        shown = [told for _, told in one.guest.told]
        assert [(told.count, len(told.messages), told.turn) for told in shown] == [
            (1, 1, 1),
            (3, 1, 1),
        ]
        assert [said["content"] for said in speaker.requests[1] if said["role"] == "user"] == [
            [text_block("first")],
            "hidden",
        ]
        assert "hidden" not in str(one.entries)


async def test_whoever_leaves_nothing_but_a_message_of_their_own_leaves_prompt_and_tools(
    tmp_path: Path,
) -> None:
    speaker = Speaker(said("one"), said("two"))
    async with scene(tmp_path, speaker, tools_named(HeldTool("touch"))) as one:
        one.guest.take_part(
            "request/context",
            lambda told: ContextAnswer(
                [ContextChange(shown.entry_id) for shown in told.messages], ["mine"]
            ),
        )
        await run(one, "first")
        await run(one, "second", 2)
        for request in speaker.requests:
            assert [message["role"] for message in request] == ["system", "user"]
            assert "preamble" in request[0]["sections"]
            assert [tool["name"] for tool in request[0]["toolsAdded"]] == ["touch"]
            assert request[1]["content"] == [text_block("mine")]
        assert problems(one) == []


async def test_a_change_that_would_leave_a_result_alone_is_passed_over_whole(
    tmp_path: Path,
) -> None:
    speaker = Speaker(said("one"))
    async with scene(tmp_path, speaker) as one:
        change = [ContextChange("nowhere"), ContextChange("elsewhere")]
        one.guest.take_part("request/context", lambda told: ContextAnswer(change, ["also not"]))
        assert (await run(one)).outcome == "done"
        assert "also not" not in str(speaker.requests)
        assert problems(one) == ["hook_error"]


async def test_what_a_hook_makes_of_a_reply_is_told_and_stored(tmp_path: Path) -> None:
    speaker = Speaker(said("the secret is 42"), said("two"))
    async with scene(tmp_path, speaker) as one:
        by = MessageAnswer("the secret is kept", {"host": {"redacted": 1}})
        one.guest.take_part("message/ended", lambda told: by, roles=("assistant",))
        await run(one)
        [ended] = [told for told in one.ear.of(MessageEnded) if told.message["role"] == "assistant"]
        [stored] = [said for said in messages(one.session) if said["role"] == "assistant"]
        assert ended.message == stored
        assert stored["content"] == [text_block("the secret is kept")]
        assert stored["annotations"] == {"host": {"redacted": 1}}
        assert one.guest.points == ["message/ended"]
        await run(one, "again", 2)
        assert "42" not in str(speaker.requests[1])


@pytest.mark.parametrize("holds", [True, False])
async def test_a_reply_is_told_to_nobody_before_who_wants_that_has_seen_it(
    tmp_path: Path, holds: bool
) -> None:
    async with scene(tmp_path, Speaker(said("the secret is 42"))) as one:
        one.guest.take_part(
            "message/ended", lambda told: MessageAnswer("nothing"), holds_deltas=holds
        )
        await run(one)
        assert bool(one.ear.of(MessageDelta)) == (not holds)
        assert ("42" in str(one.ear.events)) == (not holds)
        assert one.ear.names.count("MessageStarted") == one.ear.names.count("MessageEnded")


@pytest.mark.parametrize("point", ["turn/ended", "run/before_settle"])
async def test_a_draft_at_a_boundary_is_written_and_the_run_goes_on_once(
    tmp_path: Path, point: Any
) -> None:
    speaker = Speaker(said("one"), said("two"))
    async with scene(tmp_path, speaker) as one:
        answers = iter(
            (BoundaryAnswer([CustomDraft("host.state", {"n": 1}), DRAFTED], True), BoundaryAnswer())
        )
        one.guest.take_part(point, lambda told: next(answers))
        assert (await run(one)).outcome == "done"
        assert [entry["customType"] for entry in one.stored("custom")] == ["host.state"]
        [drafted] = one.stored("custom_message")
        assert drafted["content"] == "drafted"
        assert drafted["id"] in [told.id for told in one.ear.of(EntryAppended)]
        assert len(speaker.requests) == 2
        assert speaker.requests[1][-1]["content"] == [text_block("drafted")]
        assert [told.turn for told in one.ear.of(TurnEnded)] == [1, 2]


async def test_drafts_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker(said("one"))) as one:
        wrong = BoundaryAnswer([DRAFTED, ContextEditDraft("nowhere")])
        one.guest.take_part("turn/ended", lambda told: BoundaryAnswer([CustomDraft("host.a")]))
        one.guest.take_part("turn/ended", lambda told: wrong)
        one.guest.take_part(
            "turn/ended", lambda told: BoundaryAnswer([*told.entries, CustomDraft("host.b")])
        )
        await run(one)
        assert one.stored("custom_message") == []
        assert [entry["customType"] for entry in one.stored("custom")] == ["host.a", "host.b"]
        assert problems(one) == ["hook_error"]


async def test_a_boundary_may_bring_a_summary_of_what_came_before(tmp_path: Path) -> None:
    speaker = Speaker(said("one"), said("two"), said("three"))
    async with scene(tmp_path, speaker) as one:
        await run(one, "first")
        await run(one, "second", 2)
        kept_id = one.stored("message")[-2]["id"]
        one.guest.take_part(
            "turn/ended", lambda told: BoundaryAnswer([CompactionDraft("so far", kept_id)])
        )
        one.guest.told.clear()
        await run(one, "third", 3)
        [compaction] = one.stored("compaction")
        assert (compaction["fromHook"], compaction["firstKeptEntryId"]) == (True, kept_id)
        context = [said["role"] for said in one.session.projection.messages("session")]
        assert context == ["system", "compactionSummary", "user", "assistant", "user", "assistant"]


async def test_nobody_can_have_a_run_go_on_with_a_reply_as_its_end(tmp_path: Path) -> None:
    speaker = Speaker(said("one"))
    async with scene(tmp_path, speaker) as one:
        one.guest.take_part("turn/ended", lambda told: BoundaryAnswer(continues=True))
        assert (await run(one)).outcome == "done"
        assert len(speaker.requests) == 1
        assert problems(one) == ["hook_error"]


async def test_nobody_can_have_a_run_go_on_for_ever(tmp_path: Path) -> None:
    speaker = Speaker(*(said("more") for _ in range(CONTINUES_MAX + 1)))
    async with scene(tmp_path, speaker) as one:
        one.guest.take_part("turn/ended", lambda told: BoundaryAnswer([DRAFTED], True))
        assert (await run(one)).outcome == "done"
        assert len(speaker.requests) == CONTINUES_MAX + 1
        assert problems(one) == ["hook_error"]


async def test_words_that_come_while_hooks_have_the_last_say_are_not_left_behind(
    tmp_path: Path,
) -> None:
    speaker = Speaker(said("one"), said("two"))
    async with scene(tmp_path, speaker) as one:
        came = iter((True, False))

        def have_a_say(told: Any) -> None:
            if next(came):
                prompt(one.session, one.host.tasks, "and this", when_busy="steer")

        one.guest.take_part("run/before_settle", have_a_say)
        await run(one)
        assert speaker.requests[1][-1]["content"] == [text_block("and this")]
        assert one.session.queues.steering == []


async def test_what_is_prompted_while_a_run_settles_begins_after_all_who_look_on(
    tmp_path: Path,
) -> None:
    speaker = Speaker(said("one"), said("two"))
    async with scene(tmp_path, speaker) as one:
        seen: list[str] = []

        async def prompt_again() -> None:
            async with looked_at(one.session, one.host.tasks, "again", [], "prompt") as words:
                assert words is not None
                seen.append("admitted")
                prompt(one.session, one.host.tasks, words.text)

        def first(told: Any) -> None:
            if not seen:
                assert one.session.run is None
                assert is_looked_at(one.session, "again")
                one.host.tasks.start_soon(prompt_again)
            seen.append("first")

        one.guest.take_part("run/settled", first)
        one.guest.take_part("run/settled", lambda told: seen.append("second"))
        await run(one)
        await one.ear.until(RunSettled, 2)
        await one.ear.until(RequestResolved, 4)
        assert seen == ["first", "second", "admitted", "first", "second"]


async def test_one_who_looks_on_and_breaks_is_told_and_changes_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker(said("one"))) as one:
        for name in ("run/prepare", "request/context", "message/ended", "turn/ended"):
            one.guest.take_part(name, broken)
        one.guest.take_part("run/settled", broken, on_timeout="fail")
        assert (await run(one)).outcome == "done"
        await one.ear.until(DiagnosticTold, 6)
        assert set(problems(one)) == {"hook_error"}


async def test_a_message_beside_the_users_is_stored_or_starts_a_run(tmp_path: Path) -> None:
    speaker = Speaker(said("one"))
    async with scene(tmp_path, speaker) as one:
        added = await add_message(one.session, one.host.tasks, NOTE)
        assert added.disposition == "recorded"
        assert one.entries[-1]["id"] == added.entry_id
        assert one.ear.of(RunSettled) == []
        started = await add_message(one.session, one.host.tasks, NOTE, triggers_run=True)
        assert started.disposition == "started"
        await one.ear.until(RunSettled)
        assert len(one.stored("custom_message")) == 2
        assert not [said for said in messages(one.session) if said["role"] == "user"]
        assert [said["content"] for said in speaker.requests[0] if said["role"] == "user"] == [
            [text_block("a note")],
            [text_block("a note")],
        ]


async def test_a_message_for_the_next_prompt_goes_behind_those_words(tmp_path: Path) -> None:
    speaker = Speaker(said("one"))
    async with scene(tmp_path, speaker) as one:
        added = await add_message(one.session, one.host.tasks, NOTE, "nextPrompt")
        assert (added.disposition, one.stored("custom_message")) == ("waiting", [])
        await run(one, "words")
        sent = [said["content"] for said in speaker.requests[0] if said["role"] == "user"]
        assert sent == [[text_block("words")], [text_block("a note")]]
        assert one.session.queues.next_prompt == []


async def test_a_message_during_a_call_is_stored_when_the_turn_is_over(tmp_path: Path) -> None:
    door = Door()
    speaker = Speaker(called(("touch", "{}")), said("done"))
    async with scene(
        tmp_path, speaker, tools_named(HeldTool("touch", door, heeds_stop=False))
    ) as one:
        prompt(one.session, one.host.tasks, "go")
        await door.until_reached()
        added = await add_message(one.session, one.host.tasks, NOTE)
        steered = await add_message(
            one.session, one.host.tasks, AddedMessage("host.steer", "steered"), "steer"
        )
        assert (added.disposition, steered.disposition) == ("waiting", "queued")
        assert one.stored("custom_message") == []
        door.opened.set()
        await one.ear.until(RunSettled)
        last = [said["content"] for said in speaker.requests[1] if said["role"] == "user"][-2:]
        assert last == [[text_block("a note")], [text_block("steered")]]
        names = one.ear.names
        ended = next(
            place
            for place, event in enumerate(one.ear.events)
            if isinstance(event, MessageEnded) and event.message["role"] == "custom"
        )
        assert names.index("TurnEnded") < ended < len(names) - 1 - names[::-1].index("TurnStarted")


@pytest.mark.parametrize(
    ("added", "reason"),
    [
        (AddedMessage("pi_rpc.note", "x"), "reserved_type"),
        (AddedMessage("", "x"), "bad_draft"),
        (AddedMessage("a", [{"type": "thinking", "thinking": "x"}]), "bad_draft"),
        (AddedMessage("a", "x" * ((1 << 20) + 1)), "bad_draft"),
    ],
)
async def test_a_message_that_cannot_be_is_refused(
    tmp_path: Path, added: AddedMessage, reason: str
) -> None:
    async with scene(tmp_path, Speaker()) as one:
        with pytest.raises(Failure) as caught:
            await add_message(one.session, one.host.tasks, added)
        assert caught.value.reason == reason
        assert one.stored("custom_message") == []


async def test_tools_chosen_during_a_run_are_declared_before_the_next_request(
    tmp_path: Path,
) -> None:
    door = Door()
    speaker = Speaker(called(("a", "{}")), called(("b", "{}")), said("done"))
    tools = tools_named(HeldTool("a", door, heeds_stop=False), HeldTool("b"))
    async with scene(tmp_path, speaker, tools) as one:
        set_active_tools(one.session, ["a"])
        prompt(one.session, one.host.tasks, "go")
        await door.until_reached()
        set_active_tools(one.session, ["b"])
        door.opened.set()
        await one.ear.until(RunSettled)
        [patch] = [said for said in speaker.requests[1][1:] if said["role"] == "system"]
        assert [tool["name"] for tool in patch["toolsAdded"]] == ["b"]
        assert patch["toolsRemoved"] == [{"name": "a"}]
        assert speaker.requests[1][-1] == patch
        assert [ended.is_error for ended in one.ear.of(ToolEnded)] == [False, False]


async def test_a_hook_beyond_its_deadline_is_told_and_its_policy_holds(tmp_path: Path) -> None:
    held = HeldTool("touch")
    speaker = Speaker(called(("touch", "{}")), said("done"))
    async with scene(tmp_path, speaker, tools_named(held)) as one:
        one.guest.take_part("tool/before", None, timeout_ms=1)
        one.guest.take_part("request/context", None, timeout_ms=1)
        assert (await run(one)).outcome == "done"
        assert held.calls == []
        assert problems(one) == ["hook_timeout"] * 3
        late = [told.outcome for told in one.ear.of(RequestResolved)]
        assert late == ["timeout"] * 3
        assert len(one.guest.withdrawn) == 3


@pytest.mark.parametrize(
    "point",
    ["run/prepare", "request/context", "message/ended", "tool/before", "tool/after", "turn/ended"],
)
async def test_an_abort_ends_every_open_hook_within_the_grace(tmp_path: Path, point: Any) -> None:
    speaker = Speaker(called(("touch", "{}")), said("done"))
    async with scene(tmp_path, speaker, tools_named(HeldTool("touch"))) as one:
        one.guest.take_part(point, None, timeout_ms=86_400_000)
        prompt(one.session, one.host.tasks, "go")
        await one.guest.until_told()
        with anyio.fail_after(WAIT_S):
            assert await abort(one.session) == "aborted"
        assert one.guest.withdrawn != []
        assert [said["role"] for said in messages(one.session)][:1] == ["user"]


async def test_hooks_come_by_order_whoever_registered_them(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker(said("one"))) as one:
        other = Guest(one.host.around.consulting, "other")
        order: list[str] = []
        one.guest.take_part("run/prepare", lambda told: order.append("late"), order=5)
        other.take_part("run/prepare", lambda told: order.append("early"), order=-5)
        one.guest.take_part("run/prepare", lambda told: order.append("middle"))
        other.take_part("run/prepare", lambda told: order.append("middle too"))
        await run(one)
        assert order == ["early", "middle", "middle too", "late"]


async def test_a_hook_that_is_gone_does_not_hold_up_the_run(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker(said("one"))) as one:
        one.guest.take_part("run/prepare", lambda told: Unanswered("disconnected", "gone"))
        assert (await run(one)).outcome == "done"
        assert problems(one) == ["hook_disconnected"]
