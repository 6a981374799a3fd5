"""Settings and instructions as a session goes by them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pi_rpc.core.errors import Failure
from pi_rpc.core.events import DiagnosticTold, QueueChanged, RunSettled, SettingsChanged
from pi_rpc.core.permissions import PermissionPolicy, PermissionRule
from pi_rpc.core.ports.instructions import LoadedFile, ResourceQuery, Resources
from pi_rpc.core.ports.preferences import KeptSettings, Trust
from pi_rpc.core.ports.providers import ModelListing
from pi_rpc.core.retrying import RetryPolicy
from pi_rpc.core.settings import Layer, with_value
from pi_rpc.core.turns import QueueModes
from pi_rpc.session.building import Opening
from pi_rpc.session.host import Host
from pi_rpc.session.preferring import prefer_again, set_setting
from pi_rpc.session.prompting import configure_queues, prompt
from tests.session.living import (
    Ear,
    HeldTool,
    Speaker,
    file_store,
    living_host,
    opened,
    said,
    tools_named,
)

pytestmark = pytest.mark.anyio


class Kept:
    """Settings that a test holds in its hand."""

    def __init__(self, **values: Any) -> None:
        self.user: dict[str, Any] = values
        self.project: dict[str, Any] = {}

    async def read(self, cwd: Path) -> KeptSettings:
        layers = [Layer("user", self.user, "/user"), Layer("project", self.project, "/project")]
        return KeptSettings(layers, Trust(True, "saved"), [])

    async def write(self, key: str, value: Any) -> None:
        self.user = with_value(self.user, key, value)

    async def decide_trust(self, folder: Path, trusted: bool | None) -> None:
        raise AssertionError("nobody decides here")


class Told:
    """Instructions that a test holds in its hand."""

    def __init__(self, *files: LoadedFile) -> None:
        self.files = files
        self.queries: list[ResourceQuery] = []

    async def load(self, query: ResourceQuery) -> Resources:
        self.queries.append(query)
        return Resources(self.files)

    async def text(self, path: Path) -> str:
        return next(one.text for one in self.files if one.path == str(path))


@asynccontextmanager
async def host_with(
    folder: Path, kept: Kept | None, told: Told | None = None, *tools: HeldTool, speaker: Any = None
) -> AsyncIterator[Host]:
    async with living_host(
        file_store(folder),
        folder,
        speaker or Speaker(),
        tools_named(*tools),
        preferences=kept,
        instructions=told,
    ) as host:
        yield host


async def test_a_session_goes_by_its_files_from_its_first_moment(tmp_path: Path) -> None:
    kept = Kept(steeringMode="all", retry={"maxRetries": 9}, compaction={"enabled": False})
    kept.project = {"retry": {"baseDelayMs": 7}, "defaultTools": ["a", "gone"]}
    kept.user["piRpc"] = {"permissions": {"rules": [{"decision": "deny", "tool": "a"}]}}
    tools = HeldTool("a"), HeldTool("b")
    async with host_with(tmp_path, kept, None, *tools) as host:
        session = await opened(host, tmp_path)
        assert session.chosen.retry == RetryPolicy(True, 9, 7, 60_000)
        assert session.chosen.queue_modes == QueueModes("all", "one-at-a-time")
        assert not session.chosen.compaction.enabled
        assert session.chosen.permissions == PermissionPolicy(rules=(PermissionRule("deny", "a"),))
        assert session.chosen.active_tools == ["a"]
        assert [one.reason for one in session.diagnostics] == ["unknown_tool"]


async def test_without_files_what_the_daemon_was_given_holds(tmp_path: Path) -> None:
    async with host_with(tmp_path, None, None, HeldTool("a")) as host:
        session = await opened(host, tmp_path)
        assert session.chosen.retry == host.around.retry
        assert session.chosen.active_tools == ["a"]
        with pytest.raises(Failure) as caught:
            await set_setting(session, "steeringMode", "all", "user")
        assert caught.value.reason == "no_settings_file"
        assert (await set_setting(session, "steeringMode", "all", "session")).layer == "session"
        assert session.chosen.queue_modes.steering == "all"


async def test_what_was_changed_in_the_session_stays_until_its_file_says_something_new(
    tmp_path: Path,
) -> None:
    kept = Kept(steeringMode="all")
    async with host_with(tmp_path, kept) as host:
        session = await opened(host, tmp_path)
        configure_queues(session, "one-at-a-time", None)
        await prefer_again(session)
        assert session.chosen.queue_modes.steering == "one-at-a-time"
        session = await host.relocate(session, None, "reload")
        assert session.chosen.queue_modes.steering == "one-at-a-time"
        kept.user = {"followUpMode": "all"}
        await prefer_again(session)
        assert session.chosen.queue_modes == QueueModes("one-at-a-time", "all")


async def test_a_sessions_own_setting_survives_a_reload_and_is_told(tmp_path: Path) -> None:
    async with host_with(tmp_path, Kept()) as host:
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        await set_setting(session, "followUpMode", "all", "session")
        assert ear.of(SettingsChanged) == [SettingsChanged("followUpMode", "all", "session")]
        assert len(ear.of(QueueChanged)) == 1
        session = await host.relocate(session, None, "reload")
        assert session.chosen.queue_modes.follow_up == "all"
        other = await opened(host, tmp_path)
        assert other.chosen.queue_modes.follow_up == "one-at-a-time"


class Two(Speaker):
    """Two models that can be used."""

    def listing(self) -> list[ModelListing]:
        return [
            ModelListing("speaker", name, name, 1000, 100, reasoning=True, usable=True)
            for name in ("one", "two")
        ]


@pytest.mark.parametrize(
    ("enabled", "model", "level"),
    [
        (["speaker/two:high", "one:low"], "one", "low"),
        (["*two:high", "nobody"], "two", "high"),
        (["nobody/*"], "one", "minimal"),
        (["two"], "two", "minimal"),
    ],
)
async def test_a_new_session_begins_with_one_of_the_models_to_choose_from(
    tmp_path: Path, enabled: list[str], model: str, level: str
) -> None:
    kept = Kept(
        defaultProvider="speaker",
        defaultModel="one",
        enabledModels=enabled,
        defaultThinkingLevel="minimal",
    )
    async with host_with(tmp_path, kept, speaker=Two()) as host:
        session = await opened(host, tmp_path)
    assert session.chosen.model == ("speaker", model)
    assert session.chosen.thinking_level == level


async def test_levels_and_models_of_a_new_session(tmp_path: Path) -> None:
    kept = Kept(defaultThinkingLevel="low", modelThinkingLevels={"speaker/one": "high"})
    async with host_with(tmp_path, kept) as host:
        session = await opened(host, tmp_path)
        assert (session.chosen.model, session.chosen.thinking_level) == (("speaker", "one"), "high")
        own = await host.new(Opening(str(tmp_path), thinking_level="max"))
        assert own.chosen.thinking_level == "max"
        kept.project = {"defaultProvider": "speaker", "defaultModel": "two"}
        session = await opened(host, tmp_path)
        assert (session.chosen.model, session.chosen.thinking_level) == (("speaker", "two"), "low")
        kept.project = {"defaultProvider": "nobody", "defaultModel": "two"}
        assert (await opened(host, tmp_path)).chosen.model == ("speaker", "one")


async def test_something_odd_is_told_once_and_again_when_it_changes(tmp_path: Path) -> None:
    kept = Kept()
    async with host_with(tmp_path, kept, None) as host:
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        kept.project = {"steeringMode": "some"}
        await prefer_again(session)
        await prefer_again(session)
        assert [one.diagnostic.path for one in ear.of(DiagnosticTold)] == ["/project"]
        kept.project = {"steeringMode": "other"}
        await prefer_again(session)
        assert len(ear.of(DiagnosticTold)) == 2


async def test_instructions_go_into_the_prompt_and_are_looked_at_before_each_run(
    tmp_path: Path,
) -> None:
    told = Told(
        LoadedFile("context", "/a", "1", text="Use tabs."),
        LoadedFile("append_system", "/b", "2", text="More."),
        LoadedFile("skill", "/s", "3", "s", "does", text="---\ndescription: does\n---\nx"),
        LoadedFile("skill", "/h", "4", "h", "hidden", is_hidden=True),
    )
    speaker = Speaker(said("1"), said("2"), said("3"))
    kept = Kept(skills=["/more"], piRpc={"contextFiles": "repository"})
    read = HeldTool("read")
    async with host_with(tmp_path, kept, told, read, speaker=speaker) as host:
        session = await opened(host, tmp_path)
        assert told.queries == [
            ResourceQuery(tmp_path, True, "repository", ("/more",), ()),
        ]
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled)
        system = speaker.requests[0][0]
        assert list(system["sections"]) == [
            "preamble",
            "tools",
            "addendum",
            "project_context",
            "skills",
            "cwd",
        ]
        assert "hidden" not in system["sections"]["skills"]
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled, 2)
        told.files = (LoadedFile("context", "/a", "5", text="Use blanks."),)
        session.chosen.active_tools = []
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled, 3)
        assert "Use blanks." in str(speaker.requests[2])
        assert len(told.queries) == 4
        patches = [
            entry["sections"]
            for row in range(len(session.tree))
            if (entry := session.tree.entry(row).message) and entry["role"] == "system"
        ]
        assert len(patches) == 2
        assert {name for name, text in patches[1].items() if text is None} == {
            "tools",
            "addendum",
            "skills",
        }
