"""Counting what a session used lets the others go on."""

import anyio
import pytest

from pi_rpc.core.stats import ROWS_OF_MOMENT
from pi_rpc.session.counting import Counting
from tests.core.trees import Growing, assistant

PIECES = 5


def long_tree() -> Growing:
    growing = Growing()
    for place in range(PIECES * ROWS_OF_MOMENT):
        parent = f"{place - 1:08x}" if place else None
        growing.add(assistant(f"{place:08x}", "c") | {"parentId": parent})
    return growing


@pytest.mark.anyio
async def test_others_have_a_turn_after_each_piece_of_the_work() -> None:
    tree = long_tree().tree
    counting = Counting(tree)
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_turns)
        await anyio.lowlevel.checkpoint()
        found = await counting.at(tree.stored_leaf())
        assert turns >= PIECES
        assert found.totals().tool_calls == len(tree)
        before = turns
        await counting.at(tree.stored_leaf())
        assert turns - before <= 1
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_what_comes_while_it_is_counted_is_counted_once() -> None:
    growing = long_tree()
    tree, leaf_row = growing.tree, growing.tree.stored_leaf()
    counting = Counting(tree)
    entries: list[int] = []

    async def ask() -> None:
        entries.append((await counting.at(leaf_row)).totals().entries)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        tasks.start_soon(ask)
        await anyio.lowlevel.checkpoint()
        growing.add(assistant("0000ffff", "c") | {"parentId": tree.heads.id_of(leaf_row)})
    assert entries[-1] == len(tree)
    assert (await counting.at(leaf_row + 1)).totals().entries == len(tree)
