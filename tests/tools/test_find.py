"""Paths that fit a pattern."""

import pytest

from pi_rpc.core.errors import Invalid, Missing, Refused, Stopped
from pi_rpc.tools.find import FindTool
from pi_rpc.tools.truncate import Limits
from tests.tools.bench import Bench, shown

pytestmark = pytest.mark.anyio
FIND = FindTool()


@pytest.fixture
def full(bench: Bench) -> Bench:
    for folder in (".git", "pkg/s", "s", "node_modules/x"):
        (bench.cwd / folder).mkdir(parents=True)
    for name in (
        *("s/a.ts", "pkg/s/b.ts", "pkg/C.TS", ".hidden.ts", "node_modules/x/d.ts"),
        *(".git/e.ts", "notes.md"),
    ):
        bench.put(name, "")
    bench.put(".gitignore", "node_modules\n")
    return bench


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.ts", [".hidden.ts", "pkg/C.TS", "pkg/s/b.ts", "s/a.ts"]),
        ("*.TS", ["pkg/C.TS"]),
        ("s/*.ts", ["s/a.ts"]),
        ("./s/*.ts", ["s/a.ts"]),
        ("**/s/*.ts", ["pkg/s/b.ts", "s/a.ts"]),
        ("s", ["pkg/s/", "s/"]),
        ("pkg/**", ["pkg/C.TS", "pkg/s/", "pkg/s/b.ts"]),
        ("{notes,.git}*", [".git/", ".gitignore", "notes.md"]),
    ],
)
async def test_paths_that_fit_come_sorted(pattern: str, found: list[str], full: Bench) -> None:
    outcome = await full.run(FIND, pattern=pattern)
    assert shown(outcome).split("\n") == found
    assert outcome.details is None


async def test_paths_are_those_below_the_folder_searched(full: Bench) -> None:
    assert shown(await full.run(FIND, pattern="s/*.ts", path="pkg")) == "s/b.ts"


async def test_nothing_found_is_no_error(full: Bench) -> None:
    outcome = await full.run(FIND, pattern="nothing")
    assert (shown(outcome), outcome.is_error) == ("(no path fits)", False)


async def test_a_limit_is_told_only_when_there_is_more(full: Bench) -> None:
    outcome = await full.run(FIND, pattern="*.ts", limit=3)
    assert shown(outcome) == (
        ".hidden.ts\npkg/C.TS\npkg/s/b.ts\n\n"
        "[Only the first 3 paths; for more, use limit 6 or a narrower pattern.]"
    )
    assert outcome.details == {"resultLimitReached": 3}
    assert (await full.run(FIND, pattern="*.ts", limit=4)).details is None
    assert shown(await full.run(FIND, pattern="*.ts", limit=0)).startswith(".hidden.ts\n\n")


async def test_many_long_paths_are_cut_by_bytes(bench: Bench) -> None:
    for number in range(9):
        bench.put(f"name-{number}", "")
    outcome = await bench.run(FindTool(Limits(lines=100, size_bytes=20)), pattern="name*")
    assert shown(outcome) == "name-0\nname-1\nname-2\n\n[The limit of 20B was reached.]"
    assert outcome.details is not None
    assert outcome.details["truncation"]["truncatedBy"] == "bytes"


async def test_a_name_that_is_no_text_is_shown_as_well_as_it_can_be(bench: Bench) -> None:
    (bench.cwd / b"a\xff".decode("utf-8", "surrogateescape")).write_text("")
    assert shown(await bench.run(FIND, pattern="a*")) == "a\ufffd"


async def test_what_cannot_be_searched_is_told(full: Bench) -> None:
    with pytest.raises(Missing) as missing:
        await full.run(FIND, pattern="*", path="gone")
    assert missing.value.reason == "file_not_found"
    with pytest.raises(Refused) as refused:
        await full.run(FIND, pattern="*", path="notes.md")
    assert refused.value.reason == "not_a_directory"
    with pytest.raises(Invalid) as invalid:
        await full.run(FIND, pattern="{a,b}" * 9)
    assert invalid.value.reason == "bad_glob"


async def test_a_stop_ends_the_search(full: Bench) -> None:
    full.stop.set()
    with pytest.raises(Stopped):
        await full.run(FIND, pattern="*")
