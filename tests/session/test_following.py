"""A session open to read hears what its owner writes, as it comes."""

from pathlib import Path

import anyio
import pytest

from pi_rpc.core.entries import message_body
from pi_rpc.core.events import DiagnosticTold, ForeignAppended
from pi_rpc.core.messages import user_message
from tests.session.living import WAIT_S, Ear, file_store, living_host, opened, texts


@pytest.mark.anyio
async def test_what_the_owner_appends_is_told_to_who_listens_also_after_a_reload(
    root: Path, cwd: Path
) -> None:
    store = file_store(root)
    async with living_host(store, cwd) as host, living_host(store, cwd, series=2) as other:
        session = await opened(host, cwd)
        reading = await other.open(session.session_id, "read")
        for text in ("one", "two"):
            ear = Ear(reading.hub)
            [entry] = await session.record(message_body(user_message(text, (), 1)))
            assert await ear.until(ForeignAppended) == ForeignAppended([entry.id], 1)
            assert reading.leaf_id == entry.id
            reading = await other.relocate(reading, None, "reload")
        assert texts(reading) == ["one", "two"]


@pytest.mark.anyio
async def test_a_file_that_cannot_be_followed_any_more_is_said_once(root: Path, cwd: Path) -> None:
    store = file_store(root)
    async with living_host(store, cwd) as host, living_host(store, cwd, series=2) as other:
        session = await opened(host, cwd)
        reading = await other.open(session.session_id, "read")
        ear = Ear(reading.hub)
        assert session.stored.path is not None
        session.stored.path.unlink()
        told = await ear.until(DiagnosticTold)
        assert told.diagnostic.reason == "file_missing"
        with anyio.move_on_after(WAIT_S):
            await other.close(reading)
        assert ear.names == ["DiagnosticTold", "SessionClosed"]
