"""The lines of a new file: a chain, ids and times kept, marks of the old file left out."""

from pathlib import Path

import pytest

from pi_rpc.core.codec import decode
from pi_rpc.core.entries import Kind, model_change, session_info, thinking_level_change
from pi_rpc.session.building import Copying
from pi_rpc.session.copying import chained
from pi_rpc.session.host import Host
from pi_rpc.session.navigating import edit_context, navigate, rename, set_label
from pi_rpc.session.prompting import prompt, wait_until_settled
from pi_rpc.session.session import Session
from tests.conftest import CountedIds
from tests.session.living import (
    HeldTool,
    Speaker,
    called,
    file_store,
    kinds,
    living_host,
    opened,
    said,
    texts,
    tools_named,
)


class Repeating(CountedIds):
    """Gives every name twice."""

    def __init__(self) -> None:
        super().__init__()
        self._given: list[str] = []

    def entry_id(self) -> str:
        if not self._given:
            self._given = [super().entry_id()] * 2
        return self._given.pop()


async def asked(host: Host, session: Session, *questions: str) -> None:
    for question in questions:
        prompt(session, host.tasks, question)
        assert await wait_until_settled(session) == "done"


async def cloned(host: Host, session: Session) -> Session:
    return (await host.copy(session, Copying("clone", None, "at", None, None, False))).session


async def forked(host: Host, session: Session, entry_id: str) -> Session:
    fork = Copying("fork", entry_id, "before", None, None, False)
    return (await host.copy(session, fork)).session


def of_kind(session: Session, kind: Kind) -> list[str]:
    return [session.tree.heads.id_of(row) for row in session.tree.rows_of_kind(kind)]


def is_chain(session: Session) -> bool:
    rows = [row for row in range(len(session.tree)) if session.tree.kind(row) != Kind.FORK]
    return [session.tree.parent(row) for row in rows] == [-1, *rows[:-1]]


def test_first_lines_hang_below_each_other_and_no_id_is_given_twice() -> None:
    bodies = [model_change("p", "m"), thinking_level_change("off"), session_info("n")]
    lines = chained(bodies, Repeating(), "2026-01-02T03:04:05.678Z")
    stored = [decode(line.raw) for line in lines]
    assert [one["parentId"] for one in stored] == [None, stored[0]["id"], stored[1]["id"]]
    assert len({one["id"] for one in stored}) == 3
    assert [line.parent_row for line in lines] == [-1, 0, 1]
    assert {one["timestamp"] for one in stored} == {"2026-01-02T03:04:05.678Z"}


@pytest.mark.anyio
async def test_a_clone_keeps_ids_times_and_bytes_of_its_path(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first", "second")
        clone = await cloned(host, session)
        path = session.tree.path(session.leaf_row)
        assert [clone.tree.line(row) for row in range(len(path))] == [
            session.tree.line(row) for row in path
        ]
        assert clone.leaf_id == session.leaf_id
        assert kinds(clone)[-1] == Kind.FORK
        mark = clone.tree.entry(len(clone.tree) - 1).object["data"]
        assert mark == {"v": 1, "sessionId": session.session_id, "entryId": session.leaf_id}
        assert texts(clone) == texts(session)


@pytest.mark.anyio
async def test_labels_are_made_anew_and_the_name_of_another_branch_comes_along(
    root: Path, cwd: Path
) -> None:
    speaker = Speaker(said("1"), said("2"), said("3"))
    async with living_host(file_store(root), cwd, speaker) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        first = of_kind(session, Kind.USER)[0]
        await set_label(session, first, "on the path")
        await asked(host, session, "second")
        await rename(session, "named elsewhere")
        await set_label(session, of_kind(session, Kind.ASSISTANT)[1], "off the path")
        fork = await forked(host, session, of_kind(session, Kind.USER)[1])
        assert fork.tree.label_of(first) == "on the path"
        assert len(fork.tree.labels()) == 1
        assert fork.tree.name() == "named elsewhere"
        assert is_chain(fork)
        stamp = session.tree.entry(session.tree.labels()[first]).timestamp
        assert fork.tree.entry(fork.tree.labels()[first]).timestamp == stamp


@pytest.mark.anyio
async def test_a_label_between_kept_entries_closes_the_chain(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        await set_label(session, of_kind(session, Kind.USER)[0], "between")
        await asked(host, session, "second")
        clone = await cloned(host, session)
        assert is_chain(clone)
        assert texts(clone) == texts(session)
        assert clone.tree.entry(0).object == session.tree.entry(0).object


@pytest.mark.anyio
async def test_edits_and_moves_come_along_as_their_effect(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        await navigate(session, of_kind(session, Kind.USER)[0])
        await asked(host, session, "other")
        await edit_context(session, [of_kind(session, Kind.USER)[1]], {"content": "less"}, True)
        clone = await cloned(host, session)
        assert texts(clone) == texts(session) == ["less", "2"]
        assert Kind.CURSOR not in kinds(clone)
        assert is_chain(clone)


@pytest.mark.anyio
async def test_a_copy_of_a_copy_bears_one_mark(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first")
        first = await cloned(host, session)
        await asked(host, first, "second")
        second = await cloned(host, first)
        assert kinds(second).count(Kind.FORK) == 1
        assert second.header.parent_session == str(first.stored.path)
        assert texts(second) == texts(first)


@pytest.mark.anyio
async def test_a_fork_of_the_first_question_is_empty_and_asks_like_its_source(
    root: Path, cwd: Path
) -> None:
    async with living_host(file_store(root), cwd, Speaker(said("1"), said("2"))) as host:
        session = await opened(host, cwd)
        await navigate(session, None)
        await asked(host, session, "root")
        fork = await forked(host, session, of_kind(session, Kind.USER)[0])
        assert texts(fork) == []
        assert fork.chosen.model == session.chosen.model
        await asked(host, fork, "again")
        assert texts(fork) == ["again", "2"]


@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "status"), [("read", "restored"), ("write", "unknown")])
async def test_a_copy_says_of_the_files_what_is_known_at_its_leaf(
    tool: str, status: str, root: Path, cwd: Path
) -> None:
    speaker = Speaker(said("1"), called((tool, "{}")), said("2"))
    async with living_host(file_store(root), cwd, speaker, tools_named(HeldTool(tool))) as host:
        session = await opened(host, cwd)
        await asked(host, session, "first", "second")
        assert (await cloned(host, session)).environment.status == "restored"
        fork = await forked(host, session, of_kind(session, Kind.USER)[1])
        assert fork.environment.status == status
