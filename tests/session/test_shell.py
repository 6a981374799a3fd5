"""Commands beside the conversation: where their results stand, and that none is lost."""

from pathlib import Path

import anyio
import pytest

from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Locked, Overfull, Refused
from pi_rpc.core.events import (
    DiagnosticTold,
    EntryAppended,
    MessageEnded,
    RunSettled,
    SessionClosed,
    ShellPrinted,
)
from pi_rpc.core.ports.tools import ShellOutcome
from pi_rpc.session.building import Copying
from pi_rpc.session.prompting import prompt, wait_until_settled
from pi_rpc.session.session import Session
from pi_rpc.session.shell import SHELLS_MAX, run_shell, stop_shells
from tests.session.living import (
    WAIT_S,
    BrittleStore,
    Disk,
    Door,
    Ear,
    HeldTool,
    Speaker,
    called,
    file_store,
    kinds,
    living_host,
    memory_store,
    opened,
    said,
    tools_named,
)

pytestmark = pytest.mark.anyio


async def ran(session: Session, command: str) -> tuple[ShellOutcome, str | None]:
    with anyio.fail_after(WAIT_S):
        return await run_shell(session, command)


async def test_a_result_is_stored_before_it_is_told(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        outcome, entry_id = await ran(session, "echo hello")
        assert outcome.output == "hello\n"
        assert entry_id == session.leaf_id
        assert ear.names == ["ShellPrinted", "EntryAppended", "MessageStarted", "MessageEnded"]
        assert ear.of(ShellPrinted)[0].text == "hello\n"
        message = ear.of(MessageEnded)[0].message
        assert list(message) == [
            *("role", "command", "output", "exitCode", "cancelled", "truncated", "timestamp"),
        ]
        assert session.environment.status == "restored"
        assert not session.shells


async def test_a_result_stands_after_the_run_it_came_in(root: Path, cwd: Path) -> None:
    door = Door()
    tool = HeldTool("held", door, heeds_stop=False)
    speaker = Speaker(called(("held", "{}")), said("done"))
    async with living_host(file_store(root), cwd, speaker, tools_named(tool)) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await door.until_reached()
        _, entry_id = await ran(session, "echo during")
        assert entry_id is None
        door.opened.set()
        assert await wait_until_settled(session) == "done"
        assert kinds(session)[-4:] == [
            *(Kind.ASSISTANT, Kind.TOOL_RESULT, Kind.ASSISTANT, Kind.BASH_EXECUTION),
        ]
        assert ear.names[-5:] == [
            *("AttemptEnded", "EntryAppended", "MessageStarted", "MessageEnded", "RunSettled"),
        ]
        assert session.unwritten == []


async def test_a_result_that_waits_for_a_move_goes_before_the_next_words(cwd: Path) -> None:
    speaker = Speaker(said("done"))
    async with living_host(memory_store(), cwd, speaker) as host:
        session = await opened(host, cwd)
        async with anyio.create_task_group() as tasks:
            ear = Ear(session.hub)
            tasks.start_soon(ran, session, "echo begun; while [ ! -e go ]; do sleep 0.01; done")
            await ear.until(ShellPrinted)
            with session.moving("test"):
                (cwd / "go").touch()
                await ear.until_true(lambda: True)
                with anyio.fail_after(WAIT_S):
                    while session.shells:
                        await anyio.lowlevel.checkpoint()
        assert len(session.unwritten) == 1
        assert Kind.BASH_EXECUTION not in kinds(session)
        prompt(session, host.tasks, "go")
        await wait_until_settled(session)
        assert kinds(session)[-4:] == [
            *(Kind.BASH_EXECUTION, Kind.SYSTEM, Kind.USER, Kind.ASSISTANT),
        ]


async def test_an_earlier_result_that_could_not_be_stored_goes_first(cwd: Path) -> None:
    disk = Disk()
    async with living_host(BrittleStore(memory_store(), disk), cwd) as host:
        session = await opened(host, cwd)
        disk.is_full = True
        with pytest.raises(Exception, match="no space left"):
            await ran(session, "echo one")
        disk.is_full = False
        await ran(session, "echo two")
        stored = [session.tree.entry(row).message for row in range(len(session.tree))]
        outputs = [message["output"] for message in stored if message and "output" in message]
        assert outputs == ["one\n", "two\n"]


async def test_a_command_is_stopped_and_recorded_before_its_runtime_ends(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        outcomes: list[tuple[ShellOutcome, str | None]] = []

        async def run() -> None:
            outcomes.append(await ran(session, "echo begun; sleep 60"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await ear.until(ShellPrinted)
            await host.close(session)
        assert outcomes[0][0].cancelled
        assert outcomes[0][0].output == "begun\n"
        assert isinstance(ear.events[-1], SessionClosed)
        again = await host.open(session.session_id)
        assert kinds(again)[-1] == Kind.BASH_EXECUTION


async def test_a_result_that_cannot_be_stored_at_the_end_is_told(cwd: Path) -> None:
    disk = Disk()
    async with living_host(BrittleStore(memory_store(), disk), cwd) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ran, session, "echo begun; sleep 60")
            await ear.until(ShellPrinted)
            disk.is_full = True
            await host.close(session)
        [told] = ear.of(DiagnosticTold)
        assert told.diagnostic.reason == "shell_results_lost"
        assert "echo begun" in told.diagnostic.text
        assert session.closed


async def test_a_caller_that_leaves_stops_its_command_and_the_result_is_kept(cwd: Path) -> None:
    async with living_host(memory_store(), cwd) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ran, session, "echo begun; sleep 60")
            await ear.until(ShellPrinted)
            tasks.cancel_scope.cancel()
        message = ear.of(MessageEnded)[0].message
        assert (message["output"], message["cancelled"]) == ("begun\n", True)


async def test_several_run_at_once_and_all_are_stopped(cwd: Path) -> None:
    async with living_host(memory_store(), cwd) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ran, session, "echo begun; sleep 60")
            await ear.until(ShellPrinted, 3)
            assert len(session.shells) == 3
            assert await stop_shells(session) == 3
        assert len(ear.of(EntryAppended)) == 3
        assert await stop_shells(session) == 0


async def test_commands_are_refused_beyond_their_number_and_without_the_right(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        session.unwritten.extend({"role": "bashExecution"} for _ in range(SHELLS_MAX))
        with pytest.raises(Overfull) as overfull:
            await ran(session, "true")
        assert overfull.value.reason == "too_many_shells"
        session.unwritten.clear()
        async with anyio.create_task_group() as tasks:
            ear = Ear(session.hub)
            tasks.start_soon(run_shell, session, "echo begun; sleep 60", "same")
            await ear.until(ShellPrinted)
            with pytest.raises(Refused) as refused:
                await run_shell(session, "true", "same")
            assert refused.value.reason == "shell_exists"
            await stop_shells(session)
        await host.close(session)
        reading = await host.open(session.session_id, "read")
        with pytest.raises(Locked):
            await ran(reading, "true")


async def test_a_fork_goes_without_the_command_and_its_source_keeps_it(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("one"))) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ran, session, "echo begun; sleep 60")
            await ear.until(ShellPrinted)
            copying = Copying("fork", session.leaf_id, "at", None, None, activate=False)
            copied = await host.copy(session, copying)
            assert Kind.BASH_EXECUTION not in kinds(copied.session)
            assert await stop_shells(session) == 1
        assert kinds(session)[-1] == Kind.BASH_EXECUTION


async def test_a_listener_that_never_reads_costs_no_memory_and_holds_up_no_command(
    cwd: Path,
) -> None:
    async with living_host(memory_store(), cwd) as host:
        session = await opened(host, cwd)
        ear = Ear(session.hub)
        ear.is_full = True
        outcome, _ = await ran(session, "seq 3")
        assert outcome.output == "1\n2\n3\n"
        assert ear.of(ShellPrinted) == []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                ran,
                session,
                "echo unheard; echo > a; while [ ! -e b ]; do sleep 0.01; done; echo x",
            )
            with anyio.fail_after(WAIT_S):
                while not (cwd / "a").exists():
                    await anyio.lowlevel.checkpoint()
            ear.catch_up()
            (cwd / "b").touch()
        text = "".join(one.text for one in ear.of(ShellPrinted))
        skipped = sum(one.skipped_chars for one in ear.of(ShellPrinted))
        assert text.endswith("x\n")
        assert len(text) + skipped == len("unheard\nx\n")
