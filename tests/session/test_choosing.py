"""Model, thinking level and tools: stored, then in force, then told; the same again is nothing."""

from pathlib import Path

import anyio
import pytest

from pi_rpc.core.errors import Missing, Outside
from pi_rpc.core.events import ModelChanged, ThinkingChanged
from pi_rpc.core.ports.providers import Provider
from pi_rpc.session.choosing import set_active_tools, set_model, set_thinking_level
from tests.session.living import (
    WAIT_S,
    BrittleStore,
    Disk,
    Door,
    Ear,
    HeldTool,
    Speaker,
    file_store,
    living_host,
    opened,
    standing,
    tools_named,
)


class Many(Speaker):
    """Serves every model but one."""

    def provider_of(self, provider: str, model_id: str) -> Provider:
        if model_id == "none":
            raise Missing("model_not_found", provider=provider, modelId=model_id)
        return self


@pytest.mark.anyio
async def test_a_model_is_stored_told_and_there_again_after_reopening(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd, Many()) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        await set_model(session, "speaker", "two")
        assert session.chosen.model == ("speaker", "two")
        assert ear.names == ["EntryAppended", "ModelChanged"]
        assert ear.of(ModelChanged) == [ModelChanged("speaker", "two")]
        await host.close(session)
        assert (await host.open(session.session_id)).chosen.model == ("speaker", "two")


@pytest.mark.anyio
async def test_an_unknown_model_leaves_everything_as_it_was(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Many()) as host:
        session = await opened(host, cwd)
        before = standing(session)
        with pytest.raises(Missing) as failure:
            await set_model(session, "speaker", "none")
        assert failure.value.reason == "model_not_found"
        assert standing(session) == before


@pytest.mark.anyio
async def test_a_choice_that_cannot_be_stored_is_not_in_force(root: Path, cwd: Path) -> None:
    disk = Disk()
    async with living_host(BrittleStore(file_store(root), disk), cwd, Many()) as host:
        session = await opened(host, cwd)
        ear, before = Ear(session.hub), standing(session)
        disk.is_full = True
        with pytest.raises(Outside):
            await set_model(session, "speaker", "two")
        with pytest.raises(Outside):
            await set_thinking_level(session, "high")
        assert standing(session) == before
        assert ear.events == []


@pytest.mark.anyio
async def test_a_choice_whose_caller_is_cancelled_is_in_force_once_it_is_stored(
    root: Path, cwd: Path
) -> None:
    disk = Disk()
    async with living_host(BrittleStore(file_store(root), disk), cwd, Many()) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        for choose in (
            lambda: set_model(session, "speaker", "two"),
            lambda: set_thinking_level(session, "high"),
        ):
            disk.door = Door()
            with anyio.fail_after(WAIT_S):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(choose)
                    await disk.door.until_reached()
                    tasks.cancel_scope.cancel()
                    disk.door.opened.set()
        assert session.chosen.model == session.projection.model == ("speaker", "two")
        assert session.chosen.thinking_level == session.projection.thinking_level == "high"
        assert ear.of(ModelChanged) == [ModelChanged("speaker", "two")]
        assert ear.of(ThinkingChanged) == [ThinkingChanged("high")]


@pytest.mark.anyio
async def test_the_same_thinking_level_again_changes_nothing(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Many()) as host:
        session = await opened(host, cwd)
        await set_thinking_level(session, "high")
        before = standing(session)
        await set_thinking_level(session, "high")
        assert standing(session) == before


@pytest.mark.anyio
async def test_tools_are_chosen_by_name_each_once_and_unknown_ones_refused(
    root: Path, cwd: Path
) -> None:
    tools = tools_named(HeldTool("a"), HeldTool("b"))
    async with living_host(file_store(root), cwd, Many(), tools) as host:
        session = await opened(host, cwd)
        set_active_tools(session, ["b", "a", "b"])
        assert session.chosen.active_tools == ["b", "a"]
        with pytest.raises(Missing) as failure:
            set_active_tools(session, ["a", "c"])
        assert failure.value.reason == "tool_not_found"
        assert session.chosen.active_tools == ["b", "a"]
