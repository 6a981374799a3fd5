"""Permissions as whoever is asked meets them: what is shown, what is remembered, who answers."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.consultations import PermissionAnswer
from pi_rpc.core.events import DiagnosticTold, RequestResolved, RunSettled, ToolEnded
from pi_rpc.core.hooks import BeforeToolAnswer
from pi_rpc.core.permissions import PermissionPolicy, PermissionRule
from pi_rpc.session.building import Copying
from pi_rpc.session.prompting import abort, prompt
from pi_rpc.tools.edit import EditTool
from pi_rpc.tools.read import ReadTool
from pi_rpc.tools.write import WriteTool
from tests.session.guests import Scene, scene
from tests.session.living import WAIT_S, HeldTool, Speaker, called, said, tools_named
from tests.session.test_consulting import Client

pytestmark = pytest.mark.anyio

FILES: dict[str, Any] = {"write": WriteTool(), "edit": EditTool(), "read": ReadTool()}


class Bash(HeldTool):
    """A tool named like the shell's that runs nothing."""

    effect: Any = "outside"


def asks(one: Scene, *answers: Any) -> Client:
    client = Client(*answers)
    client.serves_permissions = True
    client.consulting = one.host.around.consulting
    one.host.around.consulting.join(client)
    return client


async def run(one: Scene, count: int = 1) -> RunSettled:
    prompt(one.session, one.host.tasks, "go")
    return await one.ear.until(RunSettled, count)


def options(client: Client, asked: int = 0) -> list[tuple[str, str | None]]:
    return [(one.decision, one.pattern) for one in client.asked[asked].asked["options"]]


async def test_who_is_asked_sees_what_a_file_would_become(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    edit = '{"path": "a.txt", "edits": [{"oldText": "two", "newText": "three"}]}'
    write = '{"path": "@new/b.txt", "content": "hello\\n"}'
    wrong = '{"path": "a.txt", "edits": [{"oldText": "absent", "newText": "x"}]}'
    speaker = Speaker(called(("edit", edit), ("write", write), ("edit", wrong)), said("done"))
    async with scene(tmp_path, speaker, FILES) as one:
        client = asks(one, *(PermissionAnswer("reject_once") for _ in range(3)))
        await run(one)
        first, second, third = (question.asked for question in client.asked)
        assert "-two\n+three" in first["preview"]["patch"]
        assert (first["subject"], first["isOutside"]) == ("a.txt", False)
        assert second["preview"]["created"] is True
        assert "+hello" in second["preview"]["patch"]
        assert second["subject"] == "new/b.txt"
        assert "absent" not in third["preview"]
        assert "does not stand" in third["preview"]["problem"]
        assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
        assert not (tmp_path / "new").exists()


async def test_who_is_asked_sees_the_arguments_as_hooks_left_them(tmp_path: Path) -> None:
    speaker = Speaker(called(("bash", '{"command": "ls"}')), said("done"))
    async with scene(tmp_path, speaker, tools_named(Bash("bash"))) as one:
        one.guest.take_part(
            "tool/before", lambda told: BeforeToolAnswer(arguments={"command": "rm x"})
        )
        client = asks(one, PermissionAnswer("allow_once"))
        await run(one)
        assert client.asked[0].asked["subject"] == "rm x"


async def test_a_path_that_leads_out_of_the_folder_says_so_whatever_its_name(
    tmp_path: Path,
) -> None:
    cwd, other = tmp_path / "work", tmp_path / "other"
    cwd.mkdir()
    other.mkdir()
    (cwd / "link").symlink_to(other)
    calls = [
        ("write", f'{{"path": "{path}", "content": "x"}}')
        for path in (
            "link/a",
            "../other/a",
            f"{other}/a",
            "inside/a",
        )
    ]
    async with scene(cwd, Speaker(called(*calls), said("done")), FILES) as one:
        one.session.chosen.permissions = PermissionPolicy(
            rules=(PermissionRule("allow", "write", "link/*"),)
        )
        client = asks(one, *(PermissionAnswer("reject_once") for _ in range(4)))
        await run(one)
        assert [question.asked["isOutside"] for question in client.asked] == [
            True,
            True,
            True,
            False,
        ]
        assert [question.asked["subject"] for question in client.asked[:3]] == [f"{other}/a"] * 3


async def test_what_is_allowed_in_the_folder_is_not_allowed_beyond_it(tmp_path: Path) -> None:
    cwd = tmp_path / "work"
    cwd.mkdir()
    calls = [("write", f'{{"path": "{path}", "content": "x"}}') for path in ("a", "b", "../c")]
    async with scene(cwd, Speaker(called(*calls), said("done")), FILES) as one:
        client = asks(one, PermissionAnswer("allow_session"), PermissionAnswer("reject_once"))
        await run(one)
        assert [question.asked["subject"] for question in client.asked] == [
            "a",
            str(tmp_path / "c"),
        ]
        assert (cwd / "b").exists()
        assert not (tmp_path / "c").exists()


async def test_reading_beyond_the_folder_is_asked_for_where_the_user_wants_that(
    tmp_path: Path,
) -> None:
    cwd = tmp_path / "work"
    cwd.mkdir()
    (tmp_path / "secret").write_text("42")
    (cwd / "plain").write_text("1")
    calls = [("read", '{"path": "../secret"}'), ("read", '{"path": "plain"}')]
    async with scene(cwd, Speaker(called(*calls), said("done")), FILES) as one:
        one.session.chosen.permissions = PermissionPolicy(outside="ask")
        client = asks(one, PermissionAnswer("reject_once"))
        await run(one)
        assert len(client.asked) == 1
        assert [ended.is_error for ended in one.ear.of(ToolEnded)] == [True, False]


async def test_a_pattern_that_was_offered_and_chosen_is_remembered(tmp_path: Path) -> None:
    commands = ("git push origin", "git push fork", "git push && make", "git pull")
    calls = [("bash", f'{{"command": "{command}"}}') for command in commands]
    held = Bash("bash")
    speaker = Speaker(called(*calls), said("done"))
    async with scene(tmp_path, speaker, tools_named(held)) as one:
        client = asks(
            one,
            PermissionAnswer("allow_session", pattern="git push *"),
            PermissionAnswer("reject_once"),
            PermissionAnswer("allow_session", pattern="make *"),
        )
        await run(one)
        assert options(client) == [
            ("allow_once", None),
            ("allow_session", None),
            ("allow_session", "git push *"),
            ("reject_once", None),
            ("reject_always", None),
        ]
        assert ("allow_session", "git push *") not in options(client, 1)
        asked = [question.asked["subject"] for question in client.asked]
        assert asked == ["git push origin", "git push && make", "git pull"]
        assert one.session.chosen.remembered == [
            PermissionRule("allow", "bash", pattern="git push *")
        ]
        # One that does not fit its own call allows that call alone, and says so.
        assert [call.arguments["command"] for call in held.calls][-1] == "git pull"
        told = [one.diagnostic.reason for one in one.ear.of(DiagnosticTold)]
        assert told == ["pattern_does_not_fit"]


async def test_a_client_that_goes_away_while_asked_is_no_answer_and_the_next_is_asked(
    tmp_path: Path,
) -> None:
    held = HeldTool("touch")
    speaker = Speaker(called(("touch", "{}")), called(("touch", "{}")), said("done"))
    async with scene(tmp_path, speaker, tools_named(held)) as one:
        first, second = asks(one), asks(one, PermissionAnswer("allow_once"))
        prompt(one.session, one.host.tasks, "go")
        await first.until_asked()
        one.host.around.consulting.leave(first)
        await one.ear.until(ToolEnded)
        assert len(held.calls) == 1
        await second.until_asked(2)
        one.host.around.consulting.leave(second)
        await one.ear.until(RunSettled)
        assert len(held.calls) == 1
        assert one.ear.of(ToolEnded)[1].is_error
        outcomes = [told.outcome for told in one.ear.of(RequestResolved)]
        assert outcomes == ["disconnected", "answered", "disconnected"]


async def test_an_abort_withdraws_the_question_and_a_late_answer_changes_nothing(
    tmp_path: Path,
) -> None:
    held = HeldTool("touch")
    async with scene(tmp_path, Speaker(called(("touch", "{}"))), tools_named(held)) as one:
        client = asks(one)
        prompt(one.session, one.host.tasks, "go")
        question = await client.until_asked()
        with anyio.fail_after(WAIT_S):
            assert await abort(one.session) == "aborted"
        assert client.withdrawn == [question.id]
        one.host.around.consulting.answer(question.id, PermissionAnswer("allow_session"))
        assert held.calls == []
        assert one.session.chosen.remembered == []
        assert [told.outcome for told in one.ear.of(RequestResolved)] == ["stopped"]


async def test_a_copy_goes_on_forbidding_and_asks_again_for_the_rest(tmp_path: Path) -> None:
    async with scene(tmp_path, Speaker(said("hello"))) as one:
        await run(one)
        no = PermissionRule("deny", "write")
        one.session.chosen.remembered = [PermissionRule("allow", "edit"), no]
        one.session.chosen.permissions = PermissionPolicy(rules=(PermissionRule("ask", "bash"),))
        copying = Copying("clone", None, "at", None, None, False)
        copy = (await one.host.copy(one.session, copying)).session
        assert copy.chosen.remembered == [no]
        assert copy.chosen.permissions == one.session.chosen.permissions


async def test_a_policy_that_denies_by_default_runs_what_a_rule_allows_alone(
    tmp_path: Path,
) -> None:
    held = Bash("bash")
    calls = [("bash", f'{{"command": "{command}"}}') for command in ("git log", "git log | sh")]
    speaker = Speaker(called(*calls), said("done"))
    async with scene(tmp_path, speaker, tools_named(held)) as one:
        one.session.chosen.permissions = PermissionPolicy(
            default="deny", rules=(PermissionRule("allow", "bash", "git *"),)
        )
        await run(one)
        assert [call.arguments["command"] for call in held.calls] == ["git log"]


async def test_a_path_of_a_clients_tool_is_followed_like_any_other(tmp_path: Path) -> None:
    calls = [("save", '{"path": "src/../../x"}'), ("save", '{"path": "src/x"}')]
    held = HeldTool("save")
    async with scene(tmp_path, Speaker(called(*calls), said("done")), tools_named(held)) as one:
        one.session.chosen.permissions = PermissionPolicy(
            default="deny", rules=(PermissionRule("allow", "save", "src/*"),)
        )
        await run(one)
        assert [call.arguments["path"] for call in held.calls] == ["src/x"]


async def test_nobody_pays_for_rules_where_there_are_none(tmp_path: Path) -> None:
    class Watched(HeldTool):
        async def place_of(self, arguments: Any, cwd: Path) -> Path:
            raise AssertionError("nobody needs to know")

    held = Watched("save")
    speaker = Speaker(called(("save", '{"path": "a"}')), said("done"))
    async with scene(tmp_path, speaker, tools_named(held)) as one:
        await run(one)
        assert len(held.calls) == 1
