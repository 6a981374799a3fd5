"""A stop: looked at, waited for, called by."""

import anyio
import pytest

from pi_rpc.agent.stopping import Stop


def test_it_calls_once_whoever_is_there_when_it_is_set() -> None:
    stop, called = Stop(), list[str]()
    with stop.calling(lambda: called.append("left before")):
        pass
    with (
        stop.calling(lambda: called.append("first")),
        stop.calling(lambda: called.append("second")),
    ):
        assert (stop.is_set(), called) == (False, [])
        stop.set()
        stop.set()
    assert (stop.is_set(), called) == (True, ["first", "second"])


def test_whoever_comes_after_it_was_set_is_called_at_once() -> None:
    stop, called = Stop(), list[str]()
    stop.set()
    with stop.calling(lambda: called.append("late")):
        assert called == ["late"]
    assert called == ["late"]


@pytest.mark.anyio
async def test_it_can_be_waited_for() -> None:
    stop = Stop()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop.wait)
            await anyio.lowlevel.checkpoint()
            stop.set()
        await stop.wait()
