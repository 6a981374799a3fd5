"""Long work of the core lets others have their turn."""

from collections.abc import Generator

import anyio
import anyio.lowlevel
import pytest

from pi_rpc.core.moments import finished
from pi_rpc.session.moments import in_moments
from tests.session.living import WAIT_S


def counting(to: int, done: list[int]) -> Generator[None, None, str]:
    for number in range(to):
        done.append(number)
        yield
    return "all of it"


def test_work_may_be_done_at_once() -> None:
    assert finished(counting(3, [])) == "all of it"


@pytest.mark.anyio
async def test_after_each_moment_others_have_their_turn() -> None:
    done: list[int] = []
    seen: list[int] = []

    async def watch() -> None:
        while len(done) < 5:
            seen.append(len(done))
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            assert await in_moments(counting(5, done)) == "all of it"
    assert seen == [1, 2, 3, 4]
