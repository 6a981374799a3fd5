"""The memory of sessions nobody needs: given back, and there again before anybody sees it."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.errors import Damaged
from pi_rpc.core.events import ForeignAppended, RunSettled
from pi_rpc.core.idleness import UnloadRules
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.reply import Piece
from pi_rpc.session.host import Host
from pi_rpc.session.navigating import navigate, rename
from pi_rpc.session.prompting import prompt
from pi_rpc.session.session import Session
from pi_rpc.session.unloading import is_quiet
from tests.session.living import (
    Catalog,
    Door,
    Ear,
    Speaker,
    append_foreign,
    file_store,
    living_host,
    memory_store,
    opened,
    said,
    standing,
    texts,
)

pytestmark = pytest.mark.anyio

AT_ONCE = UnloadRules(idle_ms=1)


async def rested(host: Host) -> None:
    """Time enough passes without anybody needing anything."""
    await host.unloading.look()
    await host.unloading.look()


async def spoken(host: Host, cwd: Path, *words: str) -> Session:
    """A session in which something was said."""
    session = await opened(host, cwd)
    for text in words:
        ear = Ear(session.hub)
        prompt(session, host.tasks, text)
        await ear.until(RunSettled)
        session.hub.detach(ear)
    return session


def kept(session: Session) -> tuple[Any, ...]:
    """What must not change, histories aside."""
    return (
        session.session_id,
        session.runtime_id,
        session.hub,
        session.stored,
        session.chosen,
        session.queues,
        session.standing,
        session.leaf_row,
        session.closed,
    )


async def test_a_session_nobody_needs_gives_back_its_history_and_comes_back_as_it_was(
    tmp_path: Path,
) -> None:
    speaker = Speaker(said("one"), said("two"), said("three"))
    async with living_host(file_store(tmp_path), tmp_path, speaker, unloading=AT_ONCE) as host:
        session = await spoken(host, tmp_path, "first", "second")
        await navigate(session, session.tree.id_or_none(session.tree.parent(session.leaf_row)))
        ear = Ear(session.hub)
        before, same = standing(session), kept(session)
        await rested(host)
        assert not session.is_loaded and not session.stored.is_loaded
        assert kept(session) == same
        await host.unloading.load([session.session_id])
        assert session.is_loaded and standing(session) == before
        assert ear.events == []
        prompt(session, host.tasks, "third")
        await ear.until(RunSettled)
        assert texts(session)[-2:] == ["third", "three"]


async def test_what_the_provider_kept_of_a_history_goes_with_it(tmp_path: Path) -> None:
    class Keeping(Speaker):
        async def reply(self, request: ModelRequest) -> AsyncGenerator[Sequence[Piece], None]:
            request.kept["count"] = len(request.kept)
            async for pieces in super().reply(request):
                yield pieces

    speaker = Keeping(said("one"), said("two"))
    async with living_host(file_store(tmp_path), tmp_path, speaker, unloading=AT_ONCE) as host:
        session = await spoken(host, tmp_path, "first", "second")
        assert session.history.kept_by_provider == {"count": 1}
        await rested(host)
        assert session.history.kept_by_provider == {}


async def test_whoever_did_not_foresee_it_is_served_on_the_spot(tmp_path: Path) -> None:
    async with living_host(file_store(tmp_path), tmp_path, unloading=AT_ONCE) as host:
        session = await opened(host, tmp_path)
        before = standing(session)
        await rested(host)
        assert not session.is_loaded
        assert standing(session) == before and session.is_loaded
        await rested(host)
        await rename(session, "named")
        assert session.tree.name() == "named"


async def test_reading_and_opening_bring_it_back(tmp_path: Path) -> None:
    async with living_host(file_store(tmp_path), tmp_path, unloading=AT_ONCE) as host:
        session = await opened(host, tmp_path)
        assert session.stored.path is not None
        for which in (session.session_id, session.stored.path):
            await rested(host)
            assert not session.is_loaded
            assert (await host.view(which)).live is session
            await rested(host)
            assert await host.open(which) is session
            assert session.is_loaded


async def test_it_stays_while_somebody_needs_it_now_and_then(tmp_path: Path) -> None:
    rules = UnloadRules(idle_ms=4)
    async with living_host(file_store(tmp_path), tmp_path, unloading=rules) as host:
        session = await opened(host, tmp_path)
        for _ in range(8):
            await host.unloading.look()
            host.session(session.session_id)
        assert session.is_loaded
        for _ in range(8):
            await host.unloading.look()
        assert not session.is_loaded


async def test_it_stays_while_a_request_is_answered(tmp_path: Path) -> None:
    async with living_host(file_store(tmp_path), tmp_path, unloading=AT_ONCE) as host:
        session = await opened(host, tmp_path)
        with host.unloading.holding([session.session_id, "another"]):
            await rested(host)
            assert session.is_loaded
        await rested(host)
        assert not session.is_loaded


async def test_it_stays_while_a_run_goes_on_or_words_wait(tmp_path: Path) -> None:
    door = Door()
    speaker = Speaker([*said("late")[:1], door, *said("late")[1:]])
    async with living_host(file_store(tmp_path), tmp_path, speaker, unloading=AT_ONCE) as host:
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "hi")
        await door.until_reached()
        await rested(host)
        assert session.is_loaded and not is_quiet(session)
        door.opened.set()
        await ear.until(RunSettled)
        assert is_quiet(session)
        with session.acting("navigate"):
            await rested(host)
            assert session.is_loaded
        await rested(host)
        assert not session.is_loaded


async def test_what_is_only_in_memory_stays_there(tmp_path: Path) -> None:
    async with living_host(memory_store(), tmp_path, unloading=AT_ONCE) as host:
        session = await opened(host, tmp_path)
        await rested(host)
        assert session.is_loaded and not host.unloading.is_anything_unloaded


async def test_one_that_another_process_writes_stays_while_somebody_hears_it(
    tmp_path: Path,
) -> None:
    async with living_host(file_store(tmp_path), tmp_path) as writing:
        owned = await opened(writing, tmp_path)
        store = file_store(tmp_path, 8)
        async with living_host(store, tmp_path, series=2, unloading=AT_ONCE) as host:
            session = await host.open(owned.session_id, "read")
            ear = Ear(session.hub)
            await rested(host)
            assert session.is_loaded
            session.hub.detach(ear)
            await rested(host)
            assert not session.is_loaded
            await rename(owned, "grown")
            assert (await host.view(session.session_id)).tree.name() == "grown"


async def test_what_another_program_appended_meanwhile_is_told_as_ever(tmp_path: Path) -> None:
    async with living_host(file_store(tmp_path), tmp_path, unloading=AT_ONCE) as host:
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        assert session.stored.path is not None
        leaf_id = session.leaf_id
        await rested(host)
        append_foreign(session.stored.path, "0f0f0f0f", leaf_id)
        await session.load()
        assert session.leaf_id == leaf_id and ear.events == []
        await rename(session, "named")
        assert [event.entry_ids for event in ear.of(ForeignAppended)] == [["0f0f0f0f"]]


async def test_a_file_that_was_harmed_meanwhile_fails_whoever_needs_it_and_nobody_else(
    tmp_path: Path,
) -> None:
    async with living_host(file_store(tmp_path), tmp_path, unloading=AT_ONCE) as host:
        session, other = await opened(host, tmp_path), await opened(host, tmp_path)
        path = session.stored.path
        assert path is not None
        sound = path.read_bytes()
        await rested(host)
        with path.open("r+b") as file:
            file.truncate(len(sound) - 10)
        await host.unloading.load([session.session_id, other.session_id])
        assert other.is_loaded and host.unloading.is_unloaded(session.session_id)
        for _ in range(2):
            with pytest.raises(Damaged):
                await host.view(session.session_id)
        with path.open("r+b") as file:
            file.write(sound)
        assert (await host.view(session.session_id)).leaf_row == session.leaf_row
        await rested(host)
        path.unlink()
        await host.close(session)
        assert host.find(session.session_id) is None


async def test_those_who_come_while_it_is_loaded_meet_one_history(tmp_path: Path) -> None:
    async with living_host(file_store(tmp_path), tmp_path, unloading=AT_ONCE) as host:
        session = await opened(host, tmp_path)
        await rested(host)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(session.load)
            await anyio.lowlevel.checkpoint()
            on_the_spot = session.history
        assert session.history is on_the_spot
        assert session.tree.heads is session.stored.heads
        await rename(session, "named")
        assert session.tree.name() == "named"


async def test_free_memory_is_given_back_once_for_all_that_went(tmp_path: Path) -> None:
    trims: list[int] = []

    async def trim() -> None:
        trims.append(len(host.sessions))

    async with living_host(
        file_store(tmp_path), tmp_path, Catalog(), unloading=AT_ONCE, trim=trim
    ) as host:
        for _ in range(3):
            await opened(host, tmp_path)
        await rested(host)
        await rested(host)
        assert trims == [3]
