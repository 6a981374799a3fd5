"""Reading is not opening: stored sessions are looked at without a lease."""

from pathlib import Path

import anyio
import pytest

from pi_rpc.core.entries import message_body
from pi_rpc.core.errors import Failure, Invalid, Missing
from pi_rpc.core.messages import text_of, user_message
from pi_rpc.session.reading import KEPT_VIEWS_MAX, View
from pi_rpc.session.session import Session
from tests.session.living import append_foreign, file_store, living_host, opened


async def say(session: Session, text: str) -> None:
    await session.record(message_body(user_message(text, (), 1)))


def words(view: View) -> list[str]:
    return [text_of(message) for message in view.projection.messages("session")]


@pytest.mark.anyio
async def test_a_live_session_is_seen_as_it_is_by_id_and_by_path(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        await say(session, "hello")
        assert session.stored.path is not None
        for which in (session.session_id, session.stored.path):
            view = await host.view(which)
            assert view.live is session
            assert words(view) == ["hello"]


@pytest.mark.anyio
async def test_a_path_that_leads_in_a_circle_or_nowhere_leads_to_no_session(
    root: Path, cwd: Path
) -> None:
    (cwd / "loop.jsonl").symlink_to("loop.jsonl")
    async with living_host(file_store(root), cwd) as host:
        await opened(host, cwd)
        for path in (cwd / "loop.jsonl", Path("a\0b"), Path("y" * 5000)):
            assert host.reader.live_of(path) is None
            with pytest.raises(Failure):
                await host.open(path)


@pytest.mark.anyio
async def test_a_stored_session_is_seen_without_a_lease_and_followed(root: Path, cwd: Path) -> None:
    store = file_store(root)
    async with living_host(store, cwd) as host, living_host(store, cwd, series=2) as other:
        session = await opened(host, cwd)
        await say(session, "one")
        view = await other.view(session.session_id)
        assert (view.live, words(view)) == (None, ["one"])
        assert other.sessions == []
        await say(session, "two")
        again = await other.view(session.session_id)
        assert words(again) == ["one", "two"]
        assert again.leaf_row == session.leaf_row
        assert again.stored is view.stored


@pytest.mark.anyio
async def test_a_session_open_to_read_is_seen_as_its_owner_left_it(root: Path, cwd: Path) -> None:
    store = file_store(root)
    async with living_host(store, cwd) as host, living_host(store, cwd, series=2) as other:
        session = await opened(host, cwd)
        reading = await other.open(session.session_id, "read")
        await say(session, "new")
        view = await other.view(session.session_id)
        assert view.live is reading
        assert words(view) == ["new"]


@pytest.mark.anyio
async def test_a_file_that_was_replaced_is_read_afresh(root: Path, cwd: Path) -> None:
    store = file_store(root)
    async with living_host(store, cwd) as host:
        session = await opened(host, cwd)
        path = session.stored.path
        assert path is not None
        await host.close(session)
        assert words(await host.view(path)) == []
        copy = path.with_suffix(".new")
        copy.write_bytes(path.read_bytes())
        append_foreign(copy, "f0000001", session.leaf_id, "another history")
        copy.rename(path)
        assert words(await host.view(path)) == ["another history"]
        path.unlink()
        with pytest.raises(Missing):
            await host.view(path)


@pytest.mark.anyio
async def test_what_is_no_session_cannot_be_seen(root: Path, cwd: Path, tmp_path: Path) -> None:
    junk = tmp_path / "junk.jsonl"
    junk.write_text("{}\n")
    async with living_host(file_store(root), cwd) as host:
        with pytest.raises(Invalid):
            await host.view(junk)
        with pytest.raises(Missing):
            await host.view("no-such-id")


@pytest.mark.anyio
async def test_few_views_are_kept_and_asking_again_is_always_right(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        ids: list[str] = []
        for number in range(KEPT_VIEWS_MAX + 3):
            session = await opened(host, cwd)
            await say(session, str(number))
            ids.append(session.session_id)
            await host.close(session)
        seen: list[tuple[int, list[str]]] = []

        async def look(number: int) -> None:
            seen.append((number, words(await host.view(ids[number]))))

        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                for number in range(len(ids)):
                    tasks.start_soon(look, number)
        assert sorted(seen) == sorted([(number, [str(number)]) for number in range(len(ids))] * 2)


@pytest.mark.anyio
async def test_deleting_a_session_lets_go_of_its_view(root: Path, cwd: Path) -> None:
    async with living_host(file_store(root), cwd) as host:
        session = await opened(host, cwd)
        await host.close(session)
        view = await host.view(session.session_id)
        await host.delete(session.session_id)
        with pytest.raises(Missing):
            await host.view(session.session_id)
        assert len(view.tree) > 0
