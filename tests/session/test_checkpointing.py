"""Scopes somebody else keeps versions of: bound around calls, compared at moves, brought back."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from pi_rpc.core.events import DiagnosticTold, WorkspaceRestored
from pi_rpc.core.scopes import CheckpointAnswer
from pi_rpc.session.building import Copying
from pi_rpc.session.consulting import Consulting, Offer, OfferedScope, Question
from pi_rpc.session.navigating import navigate
from pi_rpc.session.prompting import abort, prompt
from pi_rpc.session.restoring import Restoring, restore
from pi_rpc.session.session import Session
from pi_rpc.session.shell import run_shell
from pi_rpc.session.versioning import check
from tests.session.living import WAIT_S, Ear, called, said
from tests.session.versioned import working

pytestmark = pytest.mark.anyio

CLONE = Copying("clone", None, "at", None, None, activate=False)


class Database:
    """A provider whose scope is one file outside of the folder; its states are named by content."""

    serves_permissions = False
    dialogs: frozenset[str] = frozenset()

    def __init__(self, path: Path, consulting: Consulting, timeout_ms: int = 5000) -> None:
        self.path = path
        self.asked: list[tuple[str, str, str | None]] = []
        self.answers = True
        self.says_same: bool | None = None
        self.withdrawn = 0
        self._consulting = consulting
        path.write_text("1\n")
        offered = (OfferedScope("database", timeout_ms),)
        consulting.register(Offer("d", self, None, offered))

    @property
    def state(self) -> str:
        return self.path.read_text().strip()

    def put(self, question: Question) -> None:
        asked = question.asked
        self.asked.append((asked["act"], asked["at"], asked["expected"]))
        if self.answers:
            self._consulting.answer(question.id, self._answer(asked))

    def _answer(self, asked: dict[str, str]) -> CheckpointAnswer:
        if asked["act"] == "checkpoint":
            return CheckpointAnswer(f"db:{self.state}", self.says_same)
        if not asked["dryRun"]:
            self.path.write_text(asked["expected"].removeprefix("db:") + "\n")
        return CheckpointAnswer(restored=True)

    def withdraw(self, question_id: str) -> None:
        self.withdrawn += 1

    def leave(self) -> None:
        self._consulting.leave(self)


def found(session: Session) -> tuple[str, str, str | None, str | None]:
    scope = session.environment.scopes["database"]
    return scope.status, scope.reason, scope.expected, scope.actual


async def test_a_scope_is_bound_around_a_run_compared_and_brought_back(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        database = Database(tmp_path / "db", session.around.consulting)
        ear = Ear(session.hub)
        start = session.leaf_id
        end = await work.shell(session, "echo 2 > ../db; echo made > made")
        assert found(session) == ("restored", "equal", "db:2", "db:2")

        moved = await navigate(session, start)
        assert moved.environment.status == "not_restored"
        assert found(session) == ("not_restored", "differs", "db:1", "db:2")

        foreseen = await restore(session, Restoring(dry_run=True))
        assert database.state == "2"
        assert (cwd / "made").exists()
        done = await restore(session, Restoring())
        assert (database.state, (cwd / "made").exists()) == ("1", False)
        assert foreseen.scopes == done.scopes
        scope = done.scopes["database"]
        assert (scope.restored, scope.reason, scope.safety_version) == (True, "restored", "db:2")
        assert done.environment.scopes["database"].by == "restore"
        assert done.environment.scopes["files"].by == "restore"
        assert ear.of(WorkspaceRestored)[-1].environment == done.environment

        undone = await restore(session, Restoring(scopes={"database": "db:2"}))
        assert undone.version is None
        assert database.state == "2"
        assert not (cwd / "made").exists()
        there = await navigate(session, end, restore="try")
        assert there.environment.status == "restored"
        assert (cwd / "made").exists()


async def test_a_move_that_restores_brings_scopes_along(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        database = Database(tmp_path / "db", session.around.consulting)
        start = session.leaf_id
        end = await work.shell(session, "echo 2 > ../db")
        for leaf, state in ((start, "1"), (end, "2")):
            moved = await navigate(session, leaf, restore="try")
            assert moved.environment.scopes["database"].status == "restored"
            assert moved.environment.scopes["database"].by == "restore"
            assert database.state == state


async def test_a_provider_is_asked_before_the_first_call_of_a_run_and_after_the_last(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        database = Database(tmp_path / "db", session.around.consulting)
        await work.does(session)
        await work.does(session, ("read", {"path": "nothing"}))
        assert database.asked == []
        write = called(("write", '{"path": "a", "content": "1"}'))
        work.speaker.replies += [write, write, said("done")]
        await work.does(session)
        times = [at for _, at, _ in database.asked]
        assert times == ["before_tools", "after_tools"]


async def test_where_nothing_ran_a_scope_fits_any_leaf(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        Database(tmp_path / "db", session.around.consulting)
        start = session.leaf_id
        await work.does(session)
        moved = await navigate(session, start)
        assert found(session)[:2] == ("restored", "nothing_ran")
        assert moved.environment.status == "restored"


@pytest.mark.parametrize("how", ["timeout", "disconnected", "gone"])
async def test_without_an_answer_a_scope_is_unknown_with_the_reason(
    tmp_path: Path, cwd: Path, how: str
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        database = Database(tmp_path / "db", session.around.consulting, timeout_ms=20)
        ear = Ear(session.hub)
        start = session.leaf_id
        await work.shell(session, "echo 2 > ../db; echo made > made")
        database.answers = False
        if how == "gone":
            database.leave()
        async with anyio.create_task_group() as tasks:
            if how == "disconnected":
                tasks.start_soon(leave_once_asked, database)
            moved = await navigate(session, start, restore="try")
        scope = moved.environment.scopes["database"]
        why = "no_provider" if how == "gone" else f"provider_{how}"
        if how == "disconnected":
            # Whoever is gone after the first question is not asked again.
            why = "no_provider"
        assert (scope.status, scope.reason, scope.expected) == ("unknown", why, "db:1")
        assert moved.environment.scopes["files"].status == "restored"
        told = [one.diagnostic.reason for one in ear.of(DiagnosticTold)]
        assert ("checkpoint_failed" in told) == (how != "gone")
        assert database.state == "2"


async def leave_once_asked(database: Database) -> None:
    count = len(database.asked)
    while len(database.asked) == count:
        await anyio.lowlevel.checkpoint()
    database.leave()


async def test_a_provider_that_does_not_answer_holds_up_no_run_that_is_stopped(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        database = Database(tmp_path / "db", session.around.consulting, timeout_ms=3_600_000)
        database.answers = False
        work.speaker.replies += [called(("bash", '{"command": "true"}')), said("done")]
        prompt(session, work.host.tasks, "go")
        with anyio.fail_after(WAIT_S):
            while not database.asked:
                await anyio.lowlevel.checkpoint()
            assert await abort(session) == "aborted"
        assert database.withdrawn == 1
        assert session.bindings.scopes() == frozenset()


async def test_the_end_of_the_daemon_does_not_wait_for_a_provider(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        start = session.leaf_id
        await work.does(session)
        database = Database(tmp_path / "db", session.around.consulting, timeout_ms=3_600_000)
        database.answers = False
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(navigate, session, start)
                while not database.asked:
                    await anyio.lowlevel.checkpoint()
                await work.host.close_all()
        assert session.closed
        assert session.leaf_id == start


async def test_whether_a_state_holds_is_for_its_provider_to_say(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        database = Database(tmp_path / "db", session.around.consulting)
        start = session.leaf_id
        await work.shell(session, "echo 2 > ../db")
        await navigate(session, start)
        database.says_same = True
        assert (await check(session)).scopes["database"].status == "restored"
        database.path.write_text("1\n")
        database.says_same = False
        assert (await check(session)).scopes["database"].status == "not_restored"


async def test_what_holds_when_the_leaf_leaves_a_place_is_bound_there(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        start = session.leaf_id
        end = await work.shell(session, "echo 1 > a")
        database = Database(tmp_path / "db", session.around.consulting)
        moved = await navigate(session, start)
        assert moved.environment.scopes["database"].reason == "not_bound"
        database.path.write_text("5\n")
        await navigate(session, end)
        assert found(session) == ("not_restored", "differs", "db:1", "db:5")


async def test_a_copy_and_whoever_opens_it_next_know_the_scope(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        database = Database(tmp_path / "db", session.around.consulting)
        await work.shell(session, "echo 2 > ../db")
        copy = (await work.host.copy(session, CLONE)).session
        assert found(copy) == ("restored", "equal", "db:2", "db:2")
        database.path.write_text("3\n")
        session_id = copy.session_id
        await work.host.close(copy)
        again = await work.host.open(session_id)
        assert found(again) == ("not_restored", "differs", "db:2", "db:3")


async def test_a_command_of_the_user_counts(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        Database(tmp_path / "db", session.around.consulting)
        start = session.leaf_id
        await run_shell(session, "echo 2 > ../db")
        assert found(session) == ("restored", "equal", "db:2", "db:2")
        await navigate(session, start)
        assert found(session) == ("not_restored", "differs", "db:1", "db:2")


async def test_a_scope_is_bound_where_the_files_have_no_versions(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path, enabled=False) as work:
        session = await work.opened(cwd)
        database = Database(tmp_path / "db", session.around.consulting)
        start = session.leaf_id
        await work.shell(session, "echo 2 > ../db")
        await navigate(session, start)
        assert found(session) == ("not_restored", "differs", "db:1", "db:2")
        done = await restore(session, Restoring())
        assert (done.version, done.scopes["database"].restored) == (None, True)
        assert database.state == "1"
