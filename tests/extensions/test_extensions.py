"""Code of the user's that takes part, and what it cannot break."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.consultations import ConfirmAnswer
from pi_rpc.core.events import (
    DiagnosticTold,
    RequestResolved,
    RunSettled,
    ToolEnded,
    ToolProgressed,
)
from pi_rpc.core.grants import Grant
from pi_rpc.core.messages import JsonObject, text_block
from pi_rpc.extensions.loading import GROUP, load
from pi_rpc.extensions.running import Extension
from pi_rpc.session.hooking import Words
from pi_rpc.session.host import Host
from pi_rpc.session.navigating import navigate
from pi_rpc.session.prompting import abort, prompt, wait_until_settled
from pi_rpc.session.session import Session
from pi_rpc.session.wording import looked_at
from tests.extensions import tiny
from tests.session.living import (
    WAIT_S,
    Ear,
    HeldTool,
    Speaker,
    called,
    file_store,
    living_host,
    messages,
    opened,
    said,
    tools_named,
)
from tests.session.test_consulting import Client

pytestmark = pytest.mark.anyio

ENTRIES = [
    EntryPoint(name, f"tests.extensions.{where}", GROUP)
    for name, where in {
        "tiny": "tiny:extend",
        "broken": "tiny:broken",
        "ending": "tiny:ending",
        "nowhere": "nothing:at_all",
        "not-callable": "tiny:seen",
        "again": "tiny:extend",
        "acting": "tiny:acting",
        "payloads": "tiny:payloads",
        "spoiling": "tiny:spoiling",
        "keeping": "tiny:keeping",
    }.items()
]


@asynccontextmanager
async def extended(
    folder: Path,
    speaker: Speaker,
    *names: str,
    held: HeldTool | None = None,
    grants: Mapping[str, Collection[Grant]] | None = None,
) -> AsyncIterator[Host]:
    tools = tools_named(held) if held is not None else {}
    tiny.seen.clear()
    async with living_host(file_store(folder), folder, speaker, tools) as host:
        load(names, host, ENTRIES, grants)
        yield host


def met(host: Host) -> list[tuple[str, str]]:
    return [(one.reason, one.text) for one in host.around.diagnostics]


async def test_only_what_is_named_is_loaded(tmp_path: Path) -> None:
    async with extended(tmp_path, Speaker()) as host:
        assert host.around.consulting.commands("s") == []
    async with extended(tmp_path, Speaker(), "tiny") as host:
        [(offer, command)] = host.around.consulting.commands("s")
        assert (offer.source, command.name) == ("extension", "greet")
        assert met(host) == []


async def test_a_broken_extension_is_a_diagnostic_and_the_next_one_is_loaded(
    tmp_path: Path,
) -> None:
    names = ["broken", "ending", "nowhere", "not-callable", "absent", "tiny", "again"]
    async with extended(tmp_path, Speaker(), *names) as host:
        told = met(host)
        assert [one.name for _, one in host.around.consulting.commands("s")] == ["greet"]
    assert told == [
        ("extension_failed", "the extension 'broken' is left out: RuntimeError: nothing works"),
        ("extension_failed", "the extension 'ending' is left out: it wanted to end the daemon"),
        (
            "extension_failed",
            "the extension 'nowhere' is left out: ModuleNotFoundError: No module named"
            " 'tests.extensions.nothing'",
        ),
        (
            "extension_failed",
            "the extension 'not-callable' is left out: TypeError: 'list' object is not callable",
        ),
        ("extension_missing", "there is no extension 'absent'"),
        (
            "extension_failed",
            "the extension 'again' is left out: Refused: 'count' is registered already",
        ),
    ]


async def test_its_tool_is_called_and_shows_how_far_it_is(tmp_path: Path) -> None:
    speaker = Speaker(called(("count", '{"text": "four"}')), said("Done."))
    async with extended(tmp_path, speaker, "tiny") as host:
        session = await opened(host, tmp_path)
        session.chosen.activate("count")
        ear = Ear(session.hub)
        prompt(session, host.tasks, "Count.")
        ended = await ear.until(ToolEnded)
        await ear.until(RunSettled)
    assert (ended.content[0]["text"], ended.is_error) == ("4", False)
    assert len(ear.of(ToolProgressed)) <= 1


@pytest.mark.parametrize("is_agreed", [True, False, None])
async def test_its_hook_may_ask_the_user(tmp_path: Path, is_agreed: bool | None) -> None:
    held = HeldTool("held")
    speaker = Speaker(called(("held", "{}")), said("Done."))
    async with extended(tmp_path, speaker, "tiny", held=held) as host:
        session = await opened(host, tmp_path)
        session.chosen.activate("held")
        if is_agreed is not None:
            client = Client(ConfirmAnswer(is_agreed))
            client.consulting = host.around.consulting
            client.dialogs = frozenset({"confirm"})
            host.around.consulting.join(client)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "Go.")
        await ear.until(RunSettled)
    assert len(held.calls) == (1 if is_agreed else 0)


@pytest.mark.parametrize(
    ("text", "wanted", "told"),
    [
        ("hi", "HI", ""),
        ("break", "break", "the extension tiny failed (ValueError: no such word), incident "),
        ("wrong", "wrong", "the extension tiny failed (TypeError: it answered with str, not "),
    ],
)
async def test_what_it_raises_is_told_and_things_go_their_way(
    tmp_path: Path, text: str, wanted: str, told: str
) -> None:
    async with extended(tmp_path, Speaker(), "tiny") as host:
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        async with looked_at(session, host.tasks, text, [], "prompt") as words:
            assert words == Words(wanted, [])
        found = [one.diagnostic for one in ear.of(DiagnosticTold)]
        assert [one.reason for one in found] == (["hook_error"] if told else [])
        assert all(told in one.text for one in found)


async def test_a_scope_it_keeps_is_bound_and_compared(tmp_path: Path) -> None:
    held = HeldTool("held")
    speaker = Speaker(called(("held", "{}")), said("done"))
    async with extended(tmp_path, speaker, "keeping", held=held) as host:
        session = await opened(host, tmp_path)
        start = session.leaf_id
        prompt(session, host.tasks, "go")
        with anyio.fail_after(WAIT_S):
            assert await wait_until_settled(session) == "done"
        assert tiny.seen == [
            ("drawer", "checkpoint", "before_tools"),
            ("drawer", "checkpoint", "after_tools"),
        ]
        moved = await navigate(session, start)
        scope = moved.environment.scopes["drawer"]
        assert (scope.status, scope.expected) == ("restored", "drawer:1")


async def test_an_abort_cancels_what_it_is_doing(tmp_path: Path) -> None:
    async with extended(tmp_path, Speaker(), "tiny") as host:
        session = await opened(host, tmp_path)
        ended: list[str] = []

        async def ask() -> None:
            try:
                async with looked_at(session, host.tasks, "hang", [], "prompt"):
                    ended.append("admitted")
            except Exception as problem:
                ended.append(type(problem).__name__)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await abort(session)
        await anyio.wait_all_tasks_blocked()
        assert (ended, tiny.seen) == (["Stopped"], ["cancelled"])


async def test_its_command_is_carried_out(tmp_path: Path) -> None:
    async with extended(tmp_path, Speaker(), "tiny") as host:
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        async with looked_at(session, host.tasks, "/greet a  b", [], "prompt") as words:
            assert words is None
        resolved = await ear.until(RequestResolved)
        assert (resolved.kind, resolved.outcome) == ("command", "answered")
        assert tiny.seen == [("a  b", "you")]


def stored(session: Session, kind: str) -> list[JsonObject]:
    tree = session.tree
    entries = [tree.entry(row).object for row in range(len(tree))]
    return [entry for entry in entries if entry["type"] == kind]


async def command(host: Host, session: Session, words: str) -> None:
    async with looked_at(session, host.tasks, words, [], "prompt") as left:
        assert left is None


async def test_what_it_begins_from_a_hook_begins_when_the_hook_has_answered(
    tmp_path: Path,
) -> None:
    speaker = Speaker(said("one"), said("two"), said("three"), said("four"), said("five"))
    async with extended(tmp_path, speaker, "acting") as host:
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled)
        await ear.until_true(lambda: len(stored(session, "custom_message")) >= 2)
        await ear.until_true(lambda: "and on" in str(speaker.requests))
        await abort(session)
        assert tiny.seen[0] == ("settled", True)
        assert stored(session, "custom")[0]["data"] == {"turn": 1}
        # During a run a message that would start one waits for the turn's end instead.
        assert {one["customType"] for one in stored(session, "custom_message")} == {"tiny.later"}


async def test_a_command_of_its_own_acts_on_the_session(tmp_path: Path) -> None:
    held = HeldTool("held")
    async with extended(tmp_path, Speaker(said("one")), "acting", held=held) as host:
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        await command(host, session, "/note remember this")
        await ear.until(RequestResolved)
        [noted] = stored(session, "custom_message")
        assert noted["content"] == "remember this"
        assert [one["label"] for one in stored(session, "label")] == ["noted"]
        assert session.tree.name() == "named by tiny"
        assert session.chosen.thinking_level == "high"
        assert tiny.seen == [[]]
        assert ear.of(RunSettled) == []
        await command(host, session, "/start begin")
        settled = await ear.until(RunSettled)
        assert settled.outcome == "aborted"


async def test_a_command_that_breaks_is_told_and_so_is_what_it_began_in_vain(
    tmp_path: Path,
) -> None:
    async with extended(tmp_path, Speaker(), "acting") as host:
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        await command(host, session, "/wrong")
        await ear.until(DiagnosticTold, 3)
        reasons = sorted(one.diagnostic.reason for one in ear.of(DiagnosticTold))
        assert reasons == ["command_failed", "extension_act_refused", "extension_act_refused"]
        assert ear.of(RequestResolved)[-1].outcome == "failed"


async def test_only_what_the_user_grants_can_be_taken_part_in(tmp_path: Path) -> None:
    async with extended(tmp_path, Speaker(), "payloads") as host:
        [(reason, text)] = met(host)
        assert reason == "extension_failed"
        assert "needs the grant 'payloads'" in text
        assert "not_granted" not in text
        assert not host.around.consulting.has_hooks("request/payload")
    grants: dict[str, list[Grant]] = {"payloads": ["payloads"], "tiny": ["words"]}
    async with extended(tmp_path, Speaker(), "payloads", "tiny", grants=grants) as host:
        assert [reason for reason, _ in met(host)] == ["extension_failed"]
        assert host.around.consulting.has_hooks("request/payload")
        assert not host.around.consulting.has_hooks("tool/before")


async def test_what_it_is_shown_is_its_own_to_change_and_nobody_elses(tmp_path: Path) -> None:
    speaker = Speaker(said("one"))
    async with extended(tmp_path, speaker, "spoiling") as host:
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled)
        assert tiny.seen == ["spoilt"] * 3
        assert speaker.requests[0][-1]["content"] == [text_block("go")]
        assert [one["role"] for one in messages(session)] == ["user", "assistant"]


async def test_an_abort_ends_a_dialog_that_a_hook_waits_for(tmp_path: Path) -> None:
    held = HeldTool("held")
    async with extended(tmp_path, Speaker(called(("held", "{}"))), "tiny", held=held) as host:
        session = await opened(host, tmp_path)
        client = Client()
        client.dialogs = frozenset({"confirm"})
        host.around.consulting.join(client)
        prompt(session, host.tasks, "go")
        asked = await client.until_asked()
        with anyio.fail_after(WAIT_S):
            assert await abort(session) == "aborted"
        assert client.withdrawn == [asked.id]
        host.around.consulting.answer(asked.id, ConfirmAnswer(True))
        assert held.calls == []


async def test_the_extension_on_the_page_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "protocol" / "README.md").read_text()
    [code] = [
        block.partition("```")[0]
        for block in page.split("```python\n")[1:]
        if "def extend(" in block
    ]
    made: dict[str, Any] = {}
    exec(code, made)
    held = HeldTool("bash")
    speaker = Speaker(called(("bash", '{"command": "deploy it"}')), said("Done."))
    async with extended(tmp_path, speaker, held=held) as host:
        assert Extension("page", host).begin(lambda: made["extend"]) is None
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled)
        assert held.calls == []
        [ended] = ear.of(ToolEnded)
        assert ended.content == [text_block("The call was blocked: nobody agreed")]
