"""Whoever changes a file does so alone, in the order of asking."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from pi_rpc.tools.queueing import FileTurns

pytestmark = pytest.mark.anyio


async def test_one_file_by_any_name_is_one_queue_in_the_order_of_asking(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    (tmp_path / "link").symlink_to("f")
    turns, said = FileTurns(), list[str]()
    names = ["f", "link", "./f", "@f", str(tmp_path / "f"), "link"]

    async def take(index: int, name: str) -> None:
        async with turns.turn_at(name, tmp_path):
            said.append(f"{index} in")
            await anyio.lowlevel.checkpoint()
            said.append(f"{index} out")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for index, name in enumerate(names):
                tasks.start_soon(take, index, name)
    assert said == [f"{index} {way}" for index in range(len(names)) for way in ("in", "out")]


async def test_a_file_that_is_not_there_yet_has_a_queue_too(tmp_path: Path) -> None:
    turns, inside = FileTurns(), list[int]()

    async def take() -> None:
        async with turns.turn_at("new", tmp_path) as path:
            assert path == tmp_path / "new"
            inside.append(1)
            assert len(inside) == 1
            await anyio.lowlevel.checkpoint()
            inside.pop()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(take)


async def test_different_files_do_not_wait_for_each_other(tmp_path: Path) -> None:
    turns, other_was_in = FileTurns(), anyio.Event()

    async def take_other() -> None:
        async with turns.turn_at("b", tmp_path):
            other_was_in.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks, turns.turn_at("a", tmp_path):
            tasks.start_soon(take_other)
            await other_was_in.wait()


async def test_who_gives_up_waiting_blocks_nobody_and_lets_nobody_in(tmp_path: Path) -> None:
    turns, said = FileTurns(), list[str]()
    waiting = anyio.CancelScope()

    async def wait_in_vain() -> None:
        with waiting:
            async with turns.turn_at("f", tmp_path):
                said.append("never")

    async def wait_in_line() -> None:
        async with turns.turn_at("f", tmp_path):
            said.append("third")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks, turns.turn_at("f", tmp_path):
            tasks.start_soon(wait_in_vain)
            tasks.start_soon(wait_in_line)
            # Both stand in the queue once somebody else has passed the door behind them.
            async with turns.turn_at("other", tmp_path):
                waiting.cancel()
            await anyio.lowlevel.checkpoint()
            said.append("first")
    assert said == ["first", "third"]


async def test_nothing_is_kept_of_queues_that_ended(tmp_path: Path) -> None:
    turns = FileTurns()
    for name in ("a", "b"):
        async with turns.turn_at(name, tmp_path):
            pass
    with pytest.raises(ZeroDivisionError):
        async with turns.turn_at("a", tmp_path):
            raise ZeroDivisionError
    assert turns.queue_count == 0
