"""The user's own commands: told as they print, ended with their children."""

import os
from pathlib import Path

import anyio
import pytest

from pi_rpc.core.errors import Missing
from pi_rpc.core.ports.tools import ShellOutcome
from pi_rpc.tools.command import CommandSettings
from pi_rpc.tools.shell import PIECE_CHARS_MAX, UserShell
from tests.tools.bench import Bench

pytestmark = pytest.mark.anyio


class Told:
    """What was told of a command, and a way to wait for it."""

    def __init__(self) -> None:
        self.text = ""
        self.skipped = 0
        self.longest = 0
        self._came = anyio.Event()

    def tell(self, text: str, skipped_chars: int) -> None:
        self.text += text
        self.skipped += skipped_chars
        self.longest = max(self.longest, len(text))
        self._came.set()

    async def wait_until_told(self, text: str) -> None:
        while text not in self.text:
            self._came = anyio.Event()
            await self._came.wait()


def is_gone(process: int) -> bool:
    """Whether a process has ended, reaped or not."""
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


async def ran(bench: Bench, command: str, told: Told | None = None) -> ShellOutcome:
    with anyio.fail_after(5):
        return await UserShell().run(
            command, bench.cwd, bench.spill_folder, bench.stop, told or Told()
        )


async def test_a_command_tells_what_it_prints_as_plain_text(bench: Bench) -> None:
    told = Told()
    outcome = await ran(bench, r"printf '\033[1mbold\033[0m\r\n'; echo err >&2; exit 7", told)
    assert outcome == ShellOutcome("bold\nerr\n", 7, cancelled=False, truncated=False)
    assert (told.text, told.skipped) == ("bold\nerr\n", 0)


async def test_it_runs_in_the_folder_with_the_environment_of_the_daemon(bench: Bench) -> None:
    outcome = await ran(bench, "pwd -P; echo ${PI_SESSION_ID-none}; echo $HOME; cat")
    assert outcome.output == f"{bench.cwd.resolve()}\nnone\n{os.environ['HOME']}\n"


async def test_of_long_output_the_end_is_kept_and_a_file_has_all(bench: Bench) -> None:
    told = Told()
    outcome = await ran(bench, "seq 1 5000", told)
    assert outcome.truncated
    assert outcome.output.split("\n")[:1] == ["3001"]
    assert outcome.full_output_path is not None
    whole = "".join(f"{number}\n" for number in range(1, 5001))
    assert bench.spilled().read_text() == whole
    assert str(bench.spilled()) == outcome.full_output_path
    assert len(told.text) + told.skipped == len(whole)
    assert whole.endswith(told.text[-100:])


async def test_what_comes_too_fast_is_told_in_part_and_says_so(bench: Bench) -> None:
    told = Told()
    outcome = await ran(bench, "head -c 3000000 /dev/zero | tr '\\0' x", told)
    assert outcome.exit_code == 0
    assert told.longest <= PIECE_CHARS_MAX
    assert len(told.text) + told.skipped == 3_000_000


async def test_a_stopped_command_keeps_what_it_printed_and_leaves_no_child(bench: Bench) -> None:
    told = Told()
    outcomes: list[ShellOutcome] = []

    async def run() -> None:
        outcomes.append(await ran(bench, "echo begun; sleep 60 & echo $!; wait", told))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        with anyio.fail_after(5):
            await told.wait_until_told("begun")
            while told.text.count("\n") < 2:
                await anyio.lowlevel.checkpoint()
        bench.stop.set()
    [outcome] = outcomes
    assert outcome.output == told.text
    assert (outcome.cancelled, outcome.exit_code) == (True, None)
    assert is_gone(int(told.text.split("\n")[1]))


async def test_a_stop_that_came_first_starts_nothing(bench: Bench) -> None:
    bench.stop.set()
    outcome = await ran(bench, "touch made")
    assert outcome == ShellOutcome("", None, cancelled=True, truncated=False)
    assert bench.names() == []


async def test_a_time_limit_of_the_tool_does_not_hold_here(bench: Bench) -> None:
    shell = UserShell(CommandSettings(timeout_s=0.001, prefix="echo first"))
    with anyio.fail_after(5):
        outcome = await shell.run(
            "sleep 0.05; echo done", bench.cwd, bench.spill_folder, bench.stop, Told()
        )
    assert outcome.output == "first\ndone\n"


async def test_a_folder_that_is_gone_is_told(bench: Bench) -> None:
    bench.cwd.rmdir()
    with pytest.raises(Missing) as raised:
        await ran(bench, "true")
    assert raised.value.reason == "cwd_missing"
