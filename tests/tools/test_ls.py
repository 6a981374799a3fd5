"""The names in one folder, in one order."""

import os

import pytest

from pi_rpc.core.errors import Missing, Refused, Stopped
from pi_rpc.tools.ls import LsTool
from pi_rpc.tools.truncate import Limits
from tests.tools.bench import Bench, shown

pytestmark = pytest.mark.anyio
LS = LsTool()


@pytest.fixture
def full(bench: Bench) -> Bench:
    for name in ("b.txt", "A.txt", ".hidden", "a.txt"):
        bench.put(name, "")
    (bench.cwd / "Dir").mkdir()
    (bench.cwd / "to-dir").symlink_to("Dir")
    (bench.cwd / "broken").symlink_to("nowhere")
    return bench


async def test_folders_are_marked_and_broken_links_left_out(full: Bench) -> None:
    outcome = await full.run(LS)
    assert shown(outcome) == ".hidden\nA.txt\na.txt\nb.txt\nDir/\nto-dir/"
    assert outcome.details is None


async def test_a_limit_is_told_only_when_there_is_more(full: Bench) -> None:
    outcome = await full.run(LS, limit=2)
    assert shown(outcome) == (".hidden\nA.txt\n\n[Only the first 2 names; for more, use limit 4.]")
    assert outcome.details == {"entryLimitReached": 2}
    assert (await full.run(LS, limit=6)).details is None


@pytest.mark.parametrize("limit", [0, -5])
async def test_at_least_one_name_is_shown(limit: int, full: Bench) -> None:
    assert shown(await full.run(LS, limit=limit)).startswith(".hidden\n\n")


async def test_many_long_names_are_cut_by_bytes(bench: Bench) -> None:
    for number in range(9):
        bench.put(f"name-{number}", "")
    outcome = await bench.run(LsTool(Limits(lines=100, size_bytes=20)))
    assert shown(outcome) == "name-0\nname-1\nname-2\n\n[The limit of 20B was reached.]"
    assert outcome.details is not None
    assert outcome.details["truncation"]["truncatedBy"] == "bytes"


async def test_an_empty_folder_is_told(bench: Bench) -> None:
    (bench.cwd / "empty").mkdir()
    assert shown(await bench.run(LS, path="empty")) == "(empty folder)"


async def test_what_is_no_folder_is_told_with_its_whole_path(full: Bench) -> None:
    for path, kind, reason in (
        ("none", Missing, "file_not_found"),
        ("a.txt", Refused, "not_a_directory"),
    ):
        with pytest.raises(kind) as raised:
            await full.run(LS, path=path)
        assert raised.value.reason == reason
        assert raised.value.data["path"] == str(full.cwd / path)


async def test_a_name_that_is_no_text_is_shown_as_well_as_it_can_be(bench: Bench) -> None:
    (bench.cwd / os.fsdecode(b"caf\xe9")).touch()
    assert shown(await bench.run(LS)) == "caf\ufffd"


async def test_a_stopped_call_lists_no_further(full: Bench) -> None:
    full.stop.set()
    with pytest.raises(Stopped):
        await full.run(LS)
