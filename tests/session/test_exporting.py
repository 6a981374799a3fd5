"""Sessions written out and looked through, live, stored, in memory, and beside one another."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.entries import message_body
from pi_rpc.core.errors import Refused
from pi_rpc.core.messages import user_message
from pi_rpc.session.checking import ROWS_AT_ONCE, check, repair
from pi_rpc.session.exporting import Export, Exported, exporting
from pi_rpc.session.host import Host
from pi_rpc.session.session import Session
from tests.session.living import file_store, living_host, memory_store, opened

pytestmark = pytest.mark.anyio

ALL = Export("jsonl", None, None, every_branch=True, redacts=True)
PATH = Export("jsonl", None, None, every_branch=False, redacts=False)
SECRET = "sk-abcdefghij0123456789"


async def say(session: Session, text: str) -> None:
    await session.record(message_body(user_message(text, (), 1)))


async def written(host: Host, which: str | Path, export: Export) -> Exported:
    async with exporting(host, which, export) as under_way:
        return await under_way.write(host, under_way.chunks())


def objects(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


@pytest.mark.parametrize("make_store", [file_store, lambda _: memory_store()])
async def test_a_live_session_is_written_as_it_is(make_store: Any, root: Path, cwd: Path) -> None:
    async with living_host(make_store(root), cwd) as host:
        session = await opened(host, cwd, name=f"about {SECRET}")
        await say(session, f"my key {SECRET}")
        done = await written(host, session.session_id, ALL)
        assert done.path.parent == cwd
        lines = objects(done.path)
        assert lines[0]["id"] == session.session_id
        assert [line["id"] for line in lines[1:]] == [
            session.tree.heads.id_of(row) for row in range(len(session.tree))
        ]
        assert SECRET not in done.path.read_text()
        assert (done.redactions, done.entries, done.skipped) == (2, len(session.tree), 0)
        assert done.size_bytes == len(done.path.read_bytes())
        plain = await written(host, session.session_id, PATH)
        assert plain.path != done.path
        assert plain.path.read_text().count(SECRET) == 2


async def test_a_path_is_a_session_of_its_own(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd, parent_session="/from/here.jsonl")
        for number in range(ROWS_AT_ONCE + 3):
            await say(session, str(number))
        done = await written(host, session.session_id, PATH)
        lines = objects(done.path)
        assert "parentSession" not in lines[0]
        assert [line["parentId"] for line in lines[1:]] == [None, *(x["id"] for x in lines[1:-1])]
        assert len(lines) == len(session.tree) + 1
        copy = await host.view(done.path)
        assert copy.tree.id_or_none(copy.leaf_row) == session.leaf_id


async def test_two_exports_at_once_are_two_files(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        await say(session, "hello")
        made: list[Exported] = []

        async def one() -> None:
            made.append(await written(host, session.session_id, ALL))

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(one)
        assert len({each.path for each in made}) == 4
        assert len({each.path.read_bytes() for each in made}) == 1
        one_name = one_file(cwd)
        await written(host, session.session_id, one_name)
        with pytest.raises(Refused) as caught:
            await written(host, session.session_id, one_name)
        assert caught.value.reason == "file_exists"


def one_file(cwd: Path) -> Export:
    return Export("markdown", cwd / "one.md", None, every_branch=False, redacts=True)


async def test_an_entry_that_cannot_be_read_is_left_out_and_counted(root: Path, cwd: Path) -> None:
    store = file_store(root)
    async with living_host(store, cwd) as host:
        session = await opened(host, cwd)
        for text in ("one", "two", "three"):
            await say(session, text)
        path = session.stored.path
        assert path is not None
        await host.close(session)
        path.write_bytes(path.read_bytes().replace(b'"text":"two"', b'"text":"two'))
        done = await written(host, session.session_id, PATH)
        assert done.skipped == 1
        lines = objects(done.path)[1:]
        assert [line["parentId"] for line in lines] == [None, *(each["id"] for each in lines[:-1])]
        found = await check(host, session.session_id)
        assert [each.reason for each in found.problems] == ["unreadable_entry"]
        assert found.mended_by_repair
        assert len((await repair(host, session.session_id)).steps) == 1
        assert (await check(host, session.session_id)).problems == []


async def test_a_check_beside_a_live_session_disturbs_nobody(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        await say(session, "hello")
        found = await check(host, session.session_id)
        assert (found.problems, found.entries) == ([], len(session.tree))
        assert not found.mended_by_repair
        await say(session, "still here")
        with pytest.raises(Refused) as caught:
            await repair(host, session.session_id)
        assert caught.value.reason == "session_open"
