"""A command ends with its children, and the outcome says how."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pi_rpc.core.errors import Invalid, Missing, Outside
from pi_rpc.core.messages import ToolOutcome
from pi_rpc.core.ports.tools import ToolSettings
from pi_rpc.tools.bash import BashTool
from pi_rpc.tools.command import CommandSettings
from tests.tools.bench import Bench, shown

pytestmark = pytest.mark.anyio
BASH = BashTool(CommandSettings(grace_s=0.3, progress_s=0.01))
PATIENT = BashTool(CommandSettings(grace_s=4))


def details(outcome: ToolOutcome) -> dict[str, Any]:
    assert outcome.details is not None
    return {name: value for name, value in outcome.details.items() if name != "durationS"}


def full_output_of(outcome: ToolOutcome) -> str:
    return Path(details(outcome)["fullOutputPath"]).read_text()


def is_running(pid: int) -> bool:
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return line.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def wait_until_ended(pid: int) -> None:
    with anyio.fail_after(5):
        while is_running(pid):
            await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def running(
    tool: BashTool, bench: Bench, **arguments: Any
) -> AsyncIterator[list[ToolOutcome]]:
    """A call that is under way; its outcome is in the list after the block."""
    outcomes: list[ToolOutcome] = []

    async def run() -> None:
        outcomes.append(await bench.run(tool, **arguments))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            yield outcomes


async def test_what_is_printed_is_the_outcome(bench: Bench) -> None:
    outcome = await bench.run(BASH, command="echo out; echo err >&2; echo again")
    assert shown(outcome) == "out\nerr\nagain"
    assert not outcome.is_error
    assert details(outcome) == {"exitCode": 0}
    assert isinstance(outcome.details and outcome.details["durationS"], float)
    assert not bench.spill_folder.exists()


async def test_a_silent_command_says_that_it_was_silent(bench: Bench) -> None:
    assert shown(await bench.run(BASH, command="true")) == "(no output)"


async def test_a_failing_command_is_an_error_with_its_output(bench: Bench) -> None:
    outcome = await bench.run(BASH, command="echo x; exit 7")
    assert outcome.is_error
    assert shown(outcome) == "x\n\n[Exit code 7]"
    assert details(outcome) == {"exitCode": 7}


async def test_a_command_ended_by_a_signal_counts_as_shells_count(bench: Bench) -> None:
    outcome = await bench.run(BASH, command="kill -TERM $$")
    assert details(outcome) == {"exitCode": 143}
    assert shown(outcome) == "(no output)\n\n[Exit code 143 (SIGTERM)]"


async def test_it_runs_in_the_working_directory_with_the_variables_given(bench: Bench) -> None:
    bench.environment["PI_SESSION"] = "s1"
    outcome = await bench.run(BASH, command="pwd -P; echo $PI_SESSION; echo $BASH_VERSION | wc -l")
    assert shown(outcome) == f"{bench.cwd.resolve()}\ns1\n1"


async def test_a_session_may_want_a_shell_and_a_line_before_commands(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(bench.cwd))
    shell = bench.put("own-shell", '#!/bin/sh\necho "own shell"\nexec /bin/sh "$@"\n')
    shell.chmod(0o755)
    bench.settings = ToolSettings(shell="~/own-shell", shell_prefix="word=hello")
    assert shown(await bench.run(BashTool(), command='echo "$word"')) == "own shell\nhello"


async def test_a_session_may_want_other_limits_of_time_and_output(bench: Bench) -> None:
    bench.settings = ToolSettings(timeout_s=0.2, spill_bytes_max=60_000)
    outcome = await bench.run(BASH, command="head -c 100000 /dev/zero | tr '\\0' x; sleep 5")
    assert outcome.details is not None and outcome.details["killed"]["cause"] == "timeout"
    assert bench.spilled().stat().st_size == 60_000
    assert "Timed out" not in shown(await bench.run(BASH, command="sleep 0.3", timeout=4))


async def test_a_prefix_comes_before_every_command(bench: Bench) -> None:
    tool = BashTool(CommandSettings(prefix="shopt -s expand_aliases\nalias hi='echo hello'"))
    assert shown(await bench.run(tool, command="hi")) == "hello"


async def test_input_is_empty_and_nothing_of_ours_is_inherited(bench: Bench) -> None:
    secret = os.open(bench.put("secret", "s"), os.O_RDONLY)
    os.set_inheritable(secret, True)
    try:
        # A last command would take the shell's place and open a descriptor for its own listing.
        command = "cat; readlink /proc/self/fd/0; ls /proc/$$/fd; true"
        outcome = await bench.run(BASH, command=command)
        assert shown(outcome) == "/dev/null\n0\n1\n2"
    finally:
        os.close(secret)


async def test_it_leads_a_session_of_its_own(bench: Bench) -> None:
    outcome = await bench.run(BASH, command="cut -d' ' -f1,5,6 /proc/$$/stat")
    pid, group, session = shown(outcome).split()
    assert pid == group == session
    assert int(session) != os.getsid(0)


async def test_long_output_is_cut_to_its_end_and_kept_whole(bench: Bench) -> None:
    outcome = await bench.run(BASH, command="seq 3000")
    path = bench.spilled()
    text, _, notice = shown(outcome).partition("\n\n")
    assert text.split("\n") == [str(number) for number in range(1001, 3001)]
    assert notice == f"[Lines 1001-3000 of 3000. Full output: {path}]"
    assert path.read_text() == "".join(f"{number}\n" for number in range(1, 3001))
    assert details(outcome)["fullOutputPath"] == str(path)
    assert details(outcome)["truncation"]["truncatedBy"] == "lines"


async def test_a_line_without_an_end_is_cut_to_its_last_bytes(bench: Bench) -> None:
    outcome = await bench.run(BASH, command="head -c 70000 /dev/zero | tr '\\0' x")
    path = bench.spilled()
    assert shown(outcome) == (
        "x" * 51200 + f"\n\n[Last 50.0KB of line 1, which has 68.4KB. Full output: {path}]"
    )
    assert path.read_bytes() == b"x" * 70000
    assert details(outcome)["truncation"]["lastLinePartial"] is True


async def test_a_megabyte_is_kept_to_the_last_byte(bench: Bench) -> None:
    outcome = await bench.run(BASH, command="seq 200000; exit 3")
    expected = "".join(f"{number}\n" for number in range(1, 200001))
    assert full_output_of(outcome) == expected
    assert details(outcome)["truncation"]["totalBytes"] == len(expected)
    assert details(outcome)["exitCode"] == 3
    assert shown(outcome).endswith("[Exit code 3]")


async def test_a_quota_cuts_the_file_and_not_the_command(bench: Bench) -> None:
    tool = BashTool(CommandSettings(spill_bytes_max=1000))
    outcome = await bench.run(tool, command="seq 3000; echo end")
    path = bench.spilled()
    assert path.stat().st_size == 1000
    assert details(outcome)["fullOutputCut"] == "size limit"
    assert "cut (size limit)" in shown(outcome)
    assert "\nend\n" in shown(outcome)


async def test_what_steers_a_terminal_is_not_shown(bench: Bench) -> None:
    outcome = await bench.run(BASH, command=r"printf '\033[31mred\033[0m\r\n\0done'")
    assert shown(outcome) == "red\ndone"


async def test_snapshots_are_told_while_it_runs_the_first_empty(bench: Bench) -> None:
    os.mkfifo(bench.cwd / "go")
    async with running(BASH, bench, command="echo first; cat go; echo last") as outcomes:
        await bench.progress.wait_until_shown("first")
        with (bench.cwd / "go").open("w") as go:
            go.write("second\n")
    assert shown(outcomes[0]) == "first\nsecond\nlast"
    assert bench.progress.told[:2] == [("", None), ("first\n", None)]


async def test_snapshots_of_long_output_are_bounded_and_name_the_file(bench: Bench) -> None:
    os.mkfifo(bench.cwd / "go")
    async with running(BASH, bench, command="seq 3000; cat go"):
        await bench.progress.wait_until_shown("\n3000")
        (bench.cwd / "go").write_text("")
    text, told = next(each for each in bench.progress.told if "\n3000" in each[0])
    assert len(text) <= 51200
    assert told is not None
    assert told["truncation"]["outputLines"] == 2000
    assert Path(told["fullOutputPath"]).parent == bench.spill_folder


async def test_snapshots_are_rare_however_much_is_printed(bench: Bench) -> None:
    tool = BashTool(CommandSettings(progress_s=60))
    await bench.run(tool, command="seq 200000")
    assert len(bench.progress.told) <= 2


async def test_a_timeout_ends_the_command_and_keeps_what_it_printed(bench: Bench) -> None:
    outcome = await bench.run(BASH, command="echo early; sleep 60", timeout=0.3)
    assert outcome.is_error
    assert shown(outcome) == "early\n\n[Timed out after 0.3 s; ended with SIGTERM.]"
    assert details(outcome) == {
        "exitCode": 143,
        "killed": {"cause": "timeout", "signal": "SIGTERM"},
    }


async def test_a_timeout_by_default_can_be_set(bench: Bench) -> None:
    tool = BashTool(CommandSettings(timeout_s=0.1))
    assert "Timed out after 0.1 s" in shown(await bench.run(tool, command="sleep 60"))
    longer = await bench.run(tool, command="sleep 0.2; echo done", timeout=4)
    assert shown(longer) == "done"


async def test_a_stopped_command_keeps_its_output_and_the_path_of_all_of_it(bench: Bench) -> None:
    async with running(PATIENT, bench, command="seq 3000; sleep 60") as outcomes:
        await bench.progress.wait_until_shown("\n3000")
        bench.stop.set()
    (outcome,) = outcomes
    assert outcome.is_error
    assert shown(outcome).endswith("[Stopped; ended with SIGTERM.]")
    found = details(outcome)
    assert full_output_of(outcome).endswith("\n3000\n")
    assert found["truncation"]["totalLines"] == 3000
    assert found["killed"] == {"cause": "aborted", "signal": "SIGTERM"}


async def test_a_command_stopped_before_it_began_is_not_started(bench: Bench) -> None:
    bench.stop.set()
    outcome = await bench.run(BASH, command="touch started")
    assert outcome.is_error
    assert shown(outcome) == "[Stopped before it was started.]"
    assert bench.names() == []


async def test_children_may_clean_up_before_they_are_killed(bench: Bench) -> None:
    script = "trap 'echo cleaned; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
    async with running(PATIENT, bench, command=script) as outcomes:
        await bench.progress.wait_until_shown("ready")
        bench.stop.set()
    assert "cleaned" in shown(outcomes[0])
    assert details(outcomes[0]) == {
        "exitCode": 5,
        "killed": {"cause": "aborted", "signal": "SIGTERM"},
    }


IGNORING = "bash -c 'trap \"\" TERM; echo child $$; while :; do sleep 0.01; done'"


@pytest.mark.parametrize("after", ["", " & wait", " > child.log & wait"])
async def test_a_child_that_will_not_end_is_killed(after: str, bench: Bench) -> None:
    command = IGNORING + after
    if "child.log" in after:
        shown_first = "while [ ! -s child.log ]; do sleep 0.01; done; cat child.log"
        command = f"{IGNORING} > child.log & {shown_first}; wait"
    async with running(BASH, bench, command=command) as outcomes:
        await bench.progress.wait_until_shown("child")
        bench.stop.set()
    assert shown(outcomes[0]).endswith("[Stopped; ended with SIGKILL.]")
    assert details(outcomes[0])["killed"] == {"cause": "aborted", "signal": "SIGKILL"}
    pid = int(shown(outcomes[0]).split()[1])
    await wait_until_ended(pid)


async def test_a_background_process_does_not_hold_the_outcome(bench: Bench) -> None:
    started = time.monotonic()
    outcome = await bench.run(BASH, command="sleep 60 & echo $!; echo done")
    assert time.monotonic() - started < 2
    pid, done = shown(outcome).split()
    assert done == "done"
    assert is_running(int(pid))
    os.kill(int(pid), signal.SIGKILL)


async def test_output_that_goes_on_after_the_shell_is_read_on(bench: Bench) -> None:
    writer = "for i in 1 2 3 4 5; do sleep 0.02; echo late $i; done"
    outcome = await bench.run(BASH, command=f"({writer}) & echo shell")
    assert shown(outcome) == "shell\nlate 1\nlate 2\nlate 3\nlate 4\nlate 5"


async def test_a_background_writer_is_ended_by_the_timeout_and_told_of(bench: Bench) -> None:
    command = "(while :; do echo tick; sleep 0.02; done) & echo $!; exit 4"
    outcome = await bench.run(BASH, command=command, timeout=0.4)
    assert outcome.is_error
    text = shown(outcome)
    assert "tick" in text
    assert "[Timed out after 0.4 s; ended with SIGTERM." in text
    assert "The shell had exited with code 4; background processes went on writing" in text
    assert details(outcome)["exitCode"] == 4
    (pid,) = (line for line in text.split("\n") if line.isdecimal())
    await wait_until_ended(int(pid))


async def test_a_shell_that_closed_its_output_is_waited_for(bench: Bench) -> None:
    outcome = await bench.run(BASH, command="echo a; exec >&- 2>&-; sleep 0.2; exit 6")
    assert shown(outcome) == "a\n\n[Exit code 6]"


async def test_a_process_that_left_the_group_does_not_hold_the_end(bench: Bench) -> None:
    command = "setsid sh -c 'echo escaped $$; while :; do echo x; sleep 0.01; done' & wait"
    async with running(BASH, bench, command=command) as outcomes:
        await bench.progress.wait_until_shown("escaped")
        bench.stop.set()
    lines = shown(outcomes[0]).split("\n")
    (pid,) = (int(line.split()[1]) for line in lines if line.startswith("escaped"))
    if is_running(pid):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("tool", [BASH, PATIENT])
async def test_a_cancelled_call_leaves_no_process_behind(tool: BashTool, bench: Bench) -> None:
    command = f"{IGNORING} & echo ready $$; wait" if tool is BASH else "echo child $$; sleep 60"
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                await bench.run(tool, command=command)

            tasks.start_soon(run)
            await bench.progress.wait_until_shown("child")
            tasks.cancel_scope.cancel()
    words = bench.progress.told[-1][0].split()
    pids = [int(word) for word in words if word.isdecimal()]
    assert pids
    for pid in pids:
        await wait_until_ended(pid)


async def test_a_call_cancelled_twice_leaves_no_process_behind(bench: Bench) -> None:
    tool = BashTool(CommandSettings(grace_s=60, progress_s=0.01))
    call = asyncio.ensure_future(bench.run(tool, command=IGNORING))
    await bench.progress.wait_until_shown("child")
    pid = int(bench.progress.told[-1][0].split()[1])
    call.cancel()
    # The first is spent on the grace; a loop that shuts down does not wait for it.
    for _ in range(10):
        await anyio.lowlevel.checkpoint()
    assert is_running(pid)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await wait_until_ended(pid)


async def test_no_descriptor_is_left_open(bench: Bench) -> None:
    await bench.run(BASH, command="seq 3000")
    before = open_descriptors()
    for command, timeout in (("seq 3000", 4), ("sleep 60", 0.05), ("sleep 5 & echo x", 4)):
        await bench.run(BASH, command=command, timeout=timeout)
    assert open_descriptors() == before


async def test_several_commands_run_at_once(bench: Bench) -> None:
    os.mkfifo(bench.cwd / "pipe")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for command in ("cat pipe", "echo through > pipe"):

                async def run(command: str = command) -> None:
                    outcome = await bench.run(BASH, command=command)
                    assert shown(outcome) == ("through" if "cat" in command else "(no output)")

                tasks.start_soon(run)


@pytest.mark.parametrize("timeout", [0, -1, 2147483.648, float("inf"), float("nan"), ""])
async def test_a_timeout_that_is_none_is_refused(timeout: object, bench: Bench) -> None:
    with pytest.raises(Invalid) as raised:
        await bench.run(BASH, command="touch started", timeout=timeout)
    assert raised.value.data["problems"][0]["path"] == "timeout"
    assert bench.names() == []


async def test_what_cannot_be_started_is_told_by_its_reason(bench: Bench) -> None:
    with pytest.raises(Outside) as raised:
        await bench.run(BashTool(CommandSettings(shell="/no/shell")), command="true")
    assert raised.value.reason == "start_failed"
    with pytest.raises(Outside):
        await bench.run(BASH, command="x" * 3_000_000)
    bench.cwd.rmdir()
    with pytest.raises(Missing) as missing:
        await bench.run(BASH, command="true")
    assert missing.value.reason == "cwd_missing"
