"""Files and leaf: bound, compared after every move, brought back on request and only then."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Missing, Outside, Overfull, Refused
from pi_rpc.core.events import DiagnosticTold, RunSettled, WorkspaceDrifted, WorkspaceRestored
from pi_rpc.core.ports.workspace import FileDiff, PathChange, Snapshot, Workspace
from pi_rpc.core.version_limits import VersionLimits
from pi_rpc.session.binding import RunVersions
from pi_rpc.session.building import Copying, Opening
from pi_rpc.session.navigating import navigate
from pi_rpc.session.prompting import prompt
from pi_rpc.session.restoring import Restoring, restore
from pi_rpc.session.session import Session
from pi_rpc.session.shell import run_shell
from pi_rpc.session.summarising import SummaryWish
from pi_rpc.session.versioning import acknowledge, check, record_effect, take_snapshot
from tests.session.living import Door, Ear, Speaker, called, file_store, living_host, said
from tests.session.versioned import Working, bindings, drift, files_scope, kinds, working
from tests.workspace.repositories import plain_tree

pytestmark = pytest.mark.anyio


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


CLONE = Copying("clone", None, "at", None, None, activate=True)


async def test_the_story_of_two_routes(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        (cwd / "login.py").write_text("broken\n")
        session = await work.opened(cwd)
        ear = Ear(session.hub)
        start, files = session.leaf_id, plain_tree(cwd)
        await work.does(
            session, ("edit", {"path": "login.py", "oldText": "broken", "newText": "one"})
        )
        one = await work.shell(session, "echo it fails; exit 1")
        route_one = plain_tree(cwd)

        moved = await navigate(session, start)
        assert moved.environment.status == "not_restored"
        assert drift(moved.environment) == [("login.py", "modified")]
        assert list(session.projection.messages("llm")) == []
        assert plain_tree(cwd) == route_one
        assert ear.of(WorkspaceDrifted)[-1].environment == moved.environment

        done = await restore(session, Restoring())
        assert (list(done.restored), done.refused, done.left) == (["login.py"], [], [])
        assert done.environment.status == "restored"
        assert done.environment.scopes["files"].by == "restore"
        assert plain_tree(cwd) == files
        assert ear.of(WorkspaceRestored)[-1].paths == ["login.py"]

        two = await work.writes(session, login__py="two\n")
        assert (await check(session)).status == "restored"

        copied = await work.host.copy(session, CLONE)
        assert files_scope(copied.session.environment) == ("restored", "equal")
        assert copied.session.session_id != session.session_id

        back = await navigate(copied.session, copied.session.tree.heads.id_of(0))
        assert files_scope(back.environment) == ("not_restored", "differs")
        assert one != two


async def test_a_binding_never_stands_between_a_call_and_its_result(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        await work.writes(session, a="1", b="2")
        await work.shell(session, "true")
        order = kinds(session)
        for row, kind in enumerate(order):
            if kind == Kind.WORKSPACE:
                above = session.tree.parent(row)
                assert order[above] != Kind.ASSISTANT or not session.tree.entry(above).message[
                    "content"
                ][0].get("id")
        assert bindings(session) == [
            ("start", []),
            ("after_tools", ["a", "b"]),
            ("after_tools", []),
        ]


async def test_looking_and_talking_write_nothing(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        (cwd / "a").write_text("a")
        session = await work.opened(cwd)
        await work.does(session, ("read", {"path": "a"}))
        await check(session)
        assert bindings(session) == []
        assert (await check(session)).status == "restored"


async def test_navigating_to_a_turn_without_edits_asks_for_nothing(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        (cwd / "a").write_text("a")
        session = await work.opened(cwd)
        leaf = await work.writes(session, b="b")
        await work.does(session, ("read", {"path": "a"}))
        await work.does(session)
        moved = await navigate(session, leaf)
        assert files_scope(moved.environment) == ("restored", "equal")
        assert moved.environment.status == "restored"


async def test_a_command_that_left_no_trace_in_the_files_is_unknown(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        leaf = await work.writes(session, a="a")
        await work.shell(session, "true")
        moved = await navigate(session, leaf)
        assert files_scope(moved.environment) == ("restored", "equal")
        assert moved.environment.scopes["external"].reason == "unseen_calls"
        assert moved.environment.status == "unknown"
        await acknowledge(session)
        assert (await check(session)).status == "restored"


async def reopened(work: Working, session: Session) -> Session:
    await work.host.close(session)
    return await work.host.open(session.session_id)


@pytest.mark.parametrize("how", ["cursor", "label", "summary"])
async def test_what_nobody_saw_stays_unknown_after_opening_again(
    tmp_path: Path, cwd: Path, how: str
) -> None:
    wishes: dict[str, dict[str, Any]] = {
        "cursor": {},
        "label": {"label_text": "here"},
        "summary": {"wish": SummaryWish()},
    }
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        leaf = await work.writes(session, a="a")
        await work.shell(session, "true")
        if how == "summary":
            work.speaker.replies.append(said("it came to nothing"))
        moved = await navigate(session, leaf, **wishes[how])
        assert moved.environment.scopes["external"].reason == "unseen_calls"
        for _ in range(2):
            session = await reopened(work, session)
            assert session.leaf_id == moved.leaf_id or how == "label"
            assert session.environment.scopes["external"].reason == "unseen_calls"
            assert session.environment.abandoned_effects == moved.environment.abandoned_effects
            assert session.standing.has_drifted
        again = await work.host.relocate(session, None, "reload")
        assert (await check(again)).status == "unknown"


async def test_a_copy_remembers_what_nobody_saw_on_the_route_it_left(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        leaf = await work.writes(session, a="a")
        await work.shell(session, "true")
        fork = Copying("fork", leaf, "at", None, None, activate=False)
        copy = (await work.host.copy(session, fork)).session
        assert copy.environment.scopes["external"].reason == "unseen_calls"
        stood = copy.leaf_id
        copy = await reopened(work, copy)
        assert copy.leaf_id == stood
        assert copy.environment.scopes["external"].reason == "unseen_calls"
        await acknowledge(copy)
        assert (await reopened(work, copy)).environment.status == "restored"


async def test_a_copys_file_tells_of_the_world_from_its_first_moment(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        leaf = await work.writes(session, a="a")
        await work.shell(session, "true")
        fork = Copying("fork", leaf, "at", None, None, activate=False)
        copy = (await work.host.copy(session, fork)).session
        # Nothing was appended to it: a failure after its making would have left it as whole.
        told = [type(event).__name__ for _, event in copy.hub.since(0) or []]
        assert "EntryAppended" not in told
        last = copy.tree.entry(len(copy.tree) - 1)
        assert last.kind is Kind.CURSOR
        data = last.object["data"]
        assert data["env"]["scopes"]["external"]["reason"] == "unseen_calls"
        assert last.object["parentId"] == data["leaf"] == copy.leaf_id


@pytest.mark.parametrize("by", ["acknowledge", "restore", "restore_on_the_way"])
async def test_what_was_taken_note_of_stays_so_after_opening_again(
    tmp_path: Path, cwd: Path, by: str
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        leaf = await work.writes(session, a="a")
        end = await work.shell(session, "true")
        await navigate(session, leaf)
        session = await reopened(work, session)
        stood = session.leaf_id
        if by == "acknowledge":
            await acknowledge(session)
        elif by == "restore":
            assert (await restore(session, Restoring())).environment.status == "restored"
        else:
            await navigate(session, end)
            await navigate(session, leaf, restore="try")
        assert session.leaf_id == stood
        session = await reopened(work, session)
        assert session.leaf_id == stood
        assert (session.environment.status, session.standing.has_drifted) == ("restored", False)
        # Going there and leaving it once more is a thing to take note of once more.
        await navigate(session, end)
        assert (await navigate(session, leaf)).environment.status == "unknown"


async def test_a_command_a_crash_cut_short_may_have_done_anything(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        leaf = await work.writes(session, a="a")
        await work.shell(session, "true")
        path, asked = (
            session.stored.path,
            session.tree.parent(max(session.tree.rows_of_kind(Kind.TOOL_RESULT))),
        )
        assert path is not None and session.tree.kind(asked) == Kind.ASSISTANT
        asked_id = session.tree.heads.id_of(asked)
        await work.host.close(session)
        # The file as it was while the command ran.
        whole = path.read_bytes().split(b"\n")
        path.write_bytes(b"\n".join([*whole[: asked + 2], b""]))
        session = await work.host.open(session.session_id)
        assert session.leaf_id == asked_id
        assert (await check(session)).status == "unknown"
        moved = await navigate(session, leaf)
        assert files_scope(moved.environment) == ("restored", "equal")
        assert moved.environment.scopes["external"].reason == "unseen_calls"
        assert moved.environment.abandoned_effects == [{"entryId": asked_id, "tool": "bash"}]
        assert moved.environment.status == "unknown"


async def test_an_edit_by_a_command_is_seen(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        (cwd / "a").write_text("old\n")
        session = await work.opened(cwd)
        start = session.leaf_id
        await work.shell(session, "sed -i s/old/new/ a")
        assert bindings(session)[-1] == ("after_tools", ["a"])
        moved = await navigate(session, start, restore="try")
        assert moved.environment.status == "restored"
        assert (cwd / "a").read_text() == "old\n"


async def test_without_being_asked_nothing_is_restored(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        start = session.leaf_id
        await work.writes(session, made="1")
        (cwd / "made").rename(cwd / "moved")
        await navigate(session, start)
        await work.does(session)
        assert names_in(cwd) == ["moved"]


async def test_files_made_on_a_route_go_with_it_and_come_back_with_it(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        (cwd / "users").write_text("mine")
        session = await work.opened(cwd)
        start = session.leaf_id
        leaf = await work.shell(session, "mkdir -p d/e && echo 1 > d/e/f && ln -s f d/e/link")
        made = plain_tree(cwd)
        assert (await navigate(session, start, restore="try")).environment.status == "restored"
        assert plain_tree(cwd) == {b"users": ("plain", b"mine")}
        assert (await navigate(session, leaf, restore="try")).environment.status == "restored"
        assert plain_tree(cwd) == made


async def test_files_of_others_are_left_and_edits_since_are_refused(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        (cwd / "users").write_text("mine")
        session = await work.opened(cwd)
        start = session.leaf_id
        await work.writes(session, a="tool", b="tool", c="tool")
        (cwd / "users").write_text("mine, later")
        (cwd / "new").write_text("mine too")
        (cwd / "a").write_text("user over tool")
        (cwd / "b").unlink()
        await navigate(session, start)
        done = await restore(session, Restoring())
        assert list(done.restored) == ["c"]
        assert [(one.path, one.reason) for one in done.refused] == [("a", "edited_since")]
        assert [(one.path, one.reason) for one in done.left] == [
            ("new", "not_ours"),
            ("users", "not_ours"),
        ]
        assert done.environment.status == "not_restored"
        assert (cwd / "a").read_text() == "user over tool"

        sure = await restore(session, Restoring(confirmed=["a"], dry_run=True))
        assert list(sure.restored) == ["a"] and (cwd / "a").exists()
        await restore(session, Restoring(confirmed=["a"]))
        assert not (cwd / "a").exists()
        asked = await restore(
            session, Restoring(paths=["new", "users"], confirmed=["users", "new"])
        )
        assert list(asked.restored) == ["users"]
        assert [(one.path, one.reason) for one in asked.refused] == [("new", "not_created_here")]
        assert (cwd / "new").read_text() == "mine too"
        assert (cwd / "users").read_text() == "mine"


async def test_a_restore_can_be_undone(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        (cwd / "a").write_text("before")
        session = await work.opened(cwd)
        start = session.leaf_id
        await work.writes(session, a="after", b="made")
        after = plain_tree(cwd)
        await navigate(session, start)
        (cwd / "a").write_text("and then the user")
        later = plain_tree(cwd)
        done = await restore(session, Restoring(confirmed=["a"]))
        assert plain_tree(cwd) == {b"a": ("plain", b"before")}
        undone = await restore(session, Restoring(version=done.safety_version))
        assert (sorted(undone.restored), undone.refused, undone.left) == (["a", "b"], [], [])
        assert plain_tree(cwd) == later != after


async def test_only_paths_that_are_asked_for_are_restored(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        start = session.leaf_id
        await work.shell(session, "mkdir d && echo 1 > d/x && echo 2 > d/y && echo 3 > z")
        await navigate(session, start)
        done = await restore(session, Restoring(paths=["d"]))
        assert list(done.restored) == ["d/x", "d/y"]
        assert [(one.path, one.reason) for one in done.left] == [("z", "not_asked")]
        assert names_in(cwd) == ["z"]


async def test_a_large_file_is_told_and_never_pretended_to_be_restored(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path, limits=VersionLimits(file_bytes=10)) as work:
        session = await work.opened(cwd)
        start = session.leaf_id
        await work.writes(session, large="more than ten bytes", small="few")
        moved = await navigate(session, start, restore="try")
        assert moved.environment.status == "not_restored"
        assert drift(moved.environment) == [("large", "added")]
        done = await restore(session, Restoring())
        assert [(one.path, one.reason) for one in done.refused] == [("large", "not_kept")]


async def test_versions_that_were_lost_are_unknown_and_nothing_is_done(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        (cwd / "a").write_text("before")
        session = await work.opened(cwd)
        start = session.leaf_id
        await work.writes(session, a="after")
        # In one step, whatever git may just be writing there.
        (tmp_path / "versions").rename(tmp_path / "versions-elsewhere")
        moved = await navigate(session, start, restore="try")
        assert files_scope(moved.environment) == ("not_restored", "differs_unlisted")
        assert moved.environment.drift == []
        with pytest.raises(Missing) as caught:
            await restore(session, Restoring())
        assert caught.value.reason == "version_not_found"
        assert (cwd / "a").read_text() == "after"


@pytest.mark.parametrize(("enabled", "reason"), [(False, "versions_off"), (True, "git_missing")])
async def test_without_versions_the_reason_is_told(
    tmp_path: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch, enabled: bool, reason: str
) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    if enabled:
        monkeypatch.setenv("PATH", str(empty))
    async with working(tmp_path, enabled=enabled) as work:
        session = await work.opened(cwd)
        start = session.leaf_id
        await work.writes(session, a="1")
        moved = await navigate(session, start, restore="try")
        assert files_scope(moved.environment) == ("unknown", reason)
        assert moved.environment.abandoned_effects[0]["tool"] == "write"
        with pytest.raises(Outside) as caught:
            await take_snapshot(session)
        assert caught.value.reason == reason


async def test_out_of_time_is_unknown_and_holds_up_no_run(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path, limits=VersionLimits(first_s=0.0, next_s=0.0)) as work:
        session = await work.opened(cwd)
        ear = Ear(session.hub)
        start = session.leaf_id
        await work.writes(session, a="1")
        assert (cwd / "a").exists()
        [told, *_] = ear.of(DiagnosticTold)
        assert told.diagnostic.reason == "versions_unavailable"
        moved = await navigate(session, start)
        assert files_scope(moved.environment) == ("unknown", "not_bound")


async def test_a_folder_that_is_too_large_is_not_looked_at_again_for_every_batch(
    tmp_path: Path, cwd: Path
) -> None:
    for name in "xyz":
        (cwd / name).touch()
    async with working(tmp_path, limits=VersionLimits(files=1)) as work:
        session = await work.opened(cwd)
        ear = Ear(session.hub)
        await work.writes(session, a="1")
        await work.writes(session, a="2")
        [told] = ear.of(DiagnosticTold)
        assert told.diagnostic.reason == "versions_unavailable"
        assert told.diagnostic.text.endswith("workspace/snapshot looks again")
        # Whoever asks for it has it tried again; when that works, so it goes on.
        with pytest.raises(Overfull):
            await take_snapshot(session)
        for name in "xyz":
            (cwd / name).unlink()
        await take_snapshot(session)
        await work.writes(session, a="3")
        assert [one for one, _ in bindings(session)] == ["manual", "after_tools"]


class HeldWorkspace:
    """A folder so large that the first look at it does not end."""

    kind = "git"

    def __init__(self) -> None:
        self.door = Door()

    def warm(self) -> None:
        """It will not be warm."""

    async def snapshot(self, *, again: bool = False) -> Snapshot:
        await self.door.wait()
        return Snapshot("git:later")

    async def compare(
        self, one: str, other: str, *, beside: Workspace | None = None
    ) -> list[PathChange]:
        return []

    async def diff(self, one: str, other: str, patches: bool) -> list[FileDiff]:
        return []

    async def restore(self, changes: Sequence[PathChange]) -> dict[str, str]:
        return {}


async def test_calls_do_not_wait_long_for_the_state_before_them(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work, anyio.create_task_group() as tasks:
        session = await work.opened(cwd)
        session.workspace = HeldWorkspace()
        ear = Ear(session.hub)
        versions = RunVersions(session, tasks, wait_s=0.01)
        await versions.before_reply(["bash"])
        versions.call_ended("bash", {})
        versions.results_recorded(marked=True)
        await versions.end()
        assert [told.diagnostic.reason for told in ear.of(DiagnosticTold)] == [
            "versions_unavailable"
        ]
        assert bindings(session) == []
        tasks.cancel_scope.cancel()


async def test_a_snapshot_overlaps_the_next_request(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        door = Door()
        ear = Ear(session.hub)
        arguments = json.dumps({"path": "a", "content": "1"})
        work.speaker.replies += [called(("write", arguments)), [door, *said("done")]]
        prompt(session, work.host.tasks, "do it")
        await door.until_reached()
        # The model is still being asked when the state after the call is bound.
        await ear.until_true(lambda: len(session.bindings.all()) == 2)
        assert bindings(session)[-1] == ("after_tools", ["a"])
        assert session.run is not None and not ear.of(RunSettled)
        door.opened.set()
        await ear.until(RunSettled)


async def test_where_no_versions_are_kept_nothing_is_restored(tmp_path: Path, cwd: Path) -> None:
    async with living_host(file_store(tmp_path / "sessions"), tmp_path, Speaker()) as host:
        session = await host.new(Opening(str(cwd)))
        with pytest.raises(Refused) as caught:
            await restore(session, Restoring(version="git:x"))
        assert caught.value.reason == "no_versions"
        with pytest.raises(Refused):
            await take_snapshot(session)


async def test_after_opening_the_files_are_compared_and_nothing_is_written(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        await work.writes(session, a="1")
        session_id, leaf, path = session.session_id, session.leaf_id, session.stored.path
        await work.host.close(session)
        assert path is not None
        before = path.read_bytes()
        again = await work.host.open(session_id)
        assert files_scope(again.environment) == ("restored", "equal")
        await work.host.close(again)
        (cwd / "a").write_text("2")
        again = await work.host.open(session_id)
        assert files_scope(again.environment) == ("not_restored", "differs")
        assert drift(again.environment) == [("a", "modified")]
        assert again.standing.has_drifted and again.leaf_id == leaf
        assert path.read_bytes() == before


async def test_own_changes_are_known_after_a_restart(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        (cwd / "a").write_text("0")
        session = await work.opened(cwd)
        start, session_id = session.leaf_id, session.session_id
        await work.writes(session, a="1", b="1")
    async with working(tmp_path, series=3) as work:
        again = await work.host.open(session_id)
        await navigate(again, start)
        done = await restore(again, Restoring())
        assert sorted(done.restored) == ["a", "b"]
        assert plain_tree(cwd) == {b"a": ("plain", b"0")}


async def test_undo_in_one_session_never_touches_what_another_did(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        one, other = await work.opened(cwd), await work.opened(cwd)
        start = one.leaf_id
        await work.writes(one, mine="1", both="1")
        await work.writes(other, theirs="2", both="2")
        await navigate(one, start)
        done = await restore(one, Restoring())
        assert list(done.restored) == ["mine"]
        assert [(d.path, d.reason) for d in done.refused] == [("both", "edited_since")]
        assert [(d.path, d.reason) for d in done.left] == [("theirs", "not_ours")]
        assert names_in(cwd) == ["both", "theirs"]


async def test_recorded_effects_off_the_path_are_not_restored_until_made_good(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        start = await work.writes(session, a="1")
        await work.does(session)
        effect = {"id": "m1", "kind": "mail", "summary": "told them", "compensated": False}
        await record_effect(session, effect)
        assert (await check(session)).status == "restored"
        moved = await navigate(session, start)
        assert moved.environment.scopes["external"].status == "not_restored"
        assert moved.environment.scopes["external"].reason == "recorded_effects"
        assert moved.environment.abandoned_effects[0]["summary"] == "told them"
        copied = await work.host.copy(session, CLONE)
        assert copied.session.environment.scopes["external"].status == "not_restored"
        await record_effect(copied.session, effect | {"compensated": True})


async def test_a_command_of_the_user_counts(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        start = session.leaf_id
        await run_shell(session, "echo 1 > made")
        assert bindings(session) == [("start", []), ("after_tools", ["made"])]
        moved = await navigate(session, start, restore="try")
        assert moved.environment.status == "restored"
        assert names_in(cwd) == []


async def test_a_prompt_waits_for_an_acknowledgement_where_that_is_the_rule(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path, require_acknowledge=True) as work:
        session = await work.opened(cwd)
        start = session.leaf_id
        await work.writes(session, a="1")
        await navigate(session, start)
        with pytest.raises(Refused) as caught:
            prompt(session, work.host.tasks, "go on")
        assert caught.value.reason == "drift_not_acknowledged"
        await acknowledge(session)
        await work.does(session)


async def test_a_version_on_request_binds_the_leaf(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        leaf = session.leaf_id
        (cwd / "mine").write_text("1")
        await take_snapshot(session)
        (cwd / "mine").write_text("2")
        assert files_scope(await check(session)) == ("not_restored", "differs")
        done = await restore(session, Restoring(paths=["mine"]))
        assert [(d.path, d.reason) for d in done.refused] == [("mine", "not_ours")]
        await restore(session, Restoring(paths=["mine"], confirmed=["mine"]))
        assert (cwd / "mine").read_text() == "1"
        assert leaf != session.leaf_id


async def test_a_leaf_without_a_version_cannot_be_restored(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        with pytest.raises(Refused) as caught:
            await restore(session, Restoring())
        assert caught.value.reason == "not_bound"


async def test_a_folder_swapped_for_a_link_is_not_followed(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        await work.shell(session, "mkdir d && echo 1 > d/f")
        leaf = await work.shell(session, "echo 2 > d/f")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "f").write_text("not ours")
        shutil.rmtree(cwd / "d")
        (cwd / "d").symlink_to(elsewhere)
        await restore(session, Restoring(leaf_id=leaf, confirmed=["d/f"]))
        assert (elsewhere / "f").read_text() == "not ours"
