"""Code of the user's that takes part, and what it cannot break."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint
from pathlib import Path

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
from pi_rpc.extensions.loading import GROUP, load
from pi_rpc.session.host import Host
from pi_rpc.session.prompting import abort, prompt
from pi_rpc.session.wording import looked_at
from tests.extensions import tiny
from tests.session.living import (
    Ear,
    HeldTool,
    Speaker,
    called,
    file_store,
    living_host,
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
    }.items()
]


@asynccontextmanager
async def extended(
    folder: Path, speaker: Speaker, *names: str, held: HeldTool | None = None
) -> AsyncIterator[Host]:
    tools = tools_named(held) if held is not None else {}
    tiny.seen.clear()
    async with living_host(file_store(folder), folder, speaker, tools) as host:
        load(names, host, ENTRIES)
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
        session.activate("count")
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
        session.activate("held")
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
            assert words == wanted
        found = [one.diagnostic for one in ear.of(DiagnosticTold)]
        assert [one.reason for one in found] == (["hook_error"] if told else [])
        assert all(told in one.text for one in found)


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
