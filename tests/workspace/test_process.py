"""Processes of an act are bounded, and end when nobody waits for them."""

import os
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest

from pi_rpc.core.errors import Failure, Outside, Overfull, Stopped
from pi_rpc.workspace.process import Processes, off_loop

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def run(processes: Processes, *command: str, given: bytes = b"") -> bytes:
    return processes.start(command, os.environ, Path("/"), given).wait()


async def test_input_goes_in_and_output_comes_out_however_long() -> None:
    text = b"line\n" * 200_000
    assert await off_loop(lambda running: run(running, "cat", given=text), 5) == text


async def test_a_failing_command_says_what_it_said() -> None:
    with pytest.raises(Outside) as caught:
        await off_loop(lambda running: run(running, "sh", "-c", "echo why >&2; exit 3"), 5)
    assert (caught.value.reason, caught.value.data["exitStatus"]) == ("git_failed", 3)
    assert "why" in caught.value.message


async def test_a_command_that_is_not_there_failed_too() -> None:
    with pytest.raises(Outside) as caught:
        await off_loop(lambda running: run(running, "no-such-command"), 5)
    assert caught.value.reason == "git_failed"


def test_too_much_output_is_refused() -> None:
    running = Processes(output_bytes_max=10)
    with pytest.raises(Overfull) as caught:
        run(running, "echo", "more than ten bytes")
    assert caught.value.reason == "output_too_long"


async def test_when_time_is_up_the_process_ends_and_none_is_started_after_it() -> None:
    ended = anyio.Event()
    failures: list[Failure] = []
    token = anyio.lowlevel.current_token()

    def act(running: Processes) -> None:
        try:
            run(running, "sleep", "60")
        except Failure as failure:
            failures.append(failure)
        try:
            run(running, "true")
        except Failure as failure:
            failures.append(failure)
        anyio.from_thread.run_sync(ended.set, token=token)

    with pytest.raises(Overfull) as caught:
        await off_loop(act, 0.05)
    assert caught.value.reason == "out_of_time"
    with anyio.fail_after(5):
        await ended.wait()
    assert [type(failure) for failure in failures] == [Outside, Stopped]
    assert failures[1].reason == "given_up"


async def test_the_loop_goes_on_meanwhile() -> None:
    seen = anyio.Event()

    async def other(tasks: anyio.abc.TaskGroup) -> None:
        seen.set()
        tasks.cancel_scope.cancel()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other, tasks)
            await off_loop(lambda running: run(running, "sleep", "60"), 60)
    assert seen.is_set()
