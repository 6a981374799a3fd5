"""Syncs of open files: real files, and pipes, which no system syncs."""

import gc
import os
import threading
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest

from pi_rpc.store.syncing import Syncs

pytestmark = pytest.mark.anyio


def threads_of_syncs() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "syncs"}


async def test_what_was_written_is_synced_and_the_loop_is_told(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb", buffering=0) as file:
        file.write(b"line\n")
        await Syncs().sync(file.fileno())


async def test_a_sync_that_fails_says_so_and_the_next_one_goes_on(tmp_path: Path) -> None:
    syncs = Syncs(threads_max=1)
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError, match="Invalid argument"):
            await syncs.sync(writing)
    finally:
        os.close(reading)
        os.close(writing)
    with (tmp_path / "file").open("wb") as file:
        await syncs.sync(file.fileno())


async def test_many_files_are_synced_by_few_threads(tmp_path: Path) -> None:
    before = threads_of_syncs()
    syncs = Syncs(threads_max=2)
    with ExitStack() as stack:
        files = [stack.enter_context((tmp_path / f"{n}").open("wb")) for n in range(10)]
        async with anyio.create_task_group() as tasks:
            for file in files:
                tasks.start_soon(syncs.sync, file.fileno())
    assert len(threads_of_syncs() - before) == 2


async def test_a_sync_that_has_begun_is_waited_for_whatever_is_cancelled(tmp_path: Path) -> None:
    syncs, ended = Syncs(), []
    with (tmp_path / "file").open("wb") as file:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await syncs.sync(file.fileno())
            ended.append(True)
    assert ended == [True]


async def test_the_threads_end_with_who_started_them(tmp_path: Path) -> None:
    before = threads_of_syncs()
    syncs = Syncs()
    with (tmp_path / "file").open("wb") as file:
        await syncs.sync(file.fileno())
    [thread] = threads_of_syncs() - before
    del syncs
    gc.collect()
    thread.join(5)
    assert not thread.is_alive()
