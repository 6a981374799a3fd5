"""Lines that match: the same answers from ripgrep, where there is one, and from our own search."""

import os
from typing import Any, Literal

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi_rpc.core.errors import Invalid, Missing, Stopped
from pi_rpc.tools.grep import GrepTool, ripgrep
from pi_rpc.tools.truncate import Limits
from tests.tools.bench import Bench, shown

pytestmark = pytest.mark.anyio

ENGINES = ["own", pytest.param("rg", marks=pytest.mark.skipif(ripgrep() is None, reason="no rg"))]


@pytest.fixture(params=ENGINES)
def grep(request: pytest.FixtureRequest) -> GrepTool:
    return GrepTool(engine=request.param)


@pytest.fixture
def full(bench: Bench) -> Bench:
    for folder in (".git", "src/deep", "out"):
        (bench.cwd / folder).mkdir(parents=True)
    bench.put(".gitignore", "out/\n*.log\n")
    bench.put(".hidden", "needle hidden\n")
    bench.put("src/a.py", "one\ntwo needle\nthree\nfour Needle\nfive\n")
    bench.put("src/deep/b.ts", "needle(1)\n")
    bench.put("src.txt", "needle at the end, no newline")
    bench.put("out/c.py", "needle ignored\n")
    bench.put("d.log", "needle ignored\n")
    bench.put(".git/e", "needle of git\n")
    bench.put("binary", b"needle\0\n")
    return bench


async def lines(bench: Bench, grep: GrepTool, **arguments: Any) -> list[str]:
    return shown(await bench.run(grep, **arguments)).split("\n")


ALL = [
    ".hidden:1: needle hidden",
    "src/a.py:2: two needle",
    "src/deep/b.ts:1: needle(1)",
    "src.txt:1: needle at the end, no newline",
]


async def test_matches_come_by_path_without_what_is_ignored(full: Bench, grep: GrepTool) -> None:
    assert await lines(full, grep, pattern="needle") == ALL


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.py", [ALL[1]]),
        ("./src/*", [ALL[1]]),
        ("src/**", ALL[1:3]),
        ("!*.ts", [ALL[0], ALL[1], ALL[3]]),
        ("!./src/**", [ALL[0], ALL[3]]),
        ("*.{py,ts}", ALL[1:3]),
        ("*.log", ["d.log:1: needle ignored"]),
        (".git", ["(no line matches)"]),
        ("", ALL),
    ],
)
async def test_a_glob_is_relative_to_the_folder_searched(
    glob: str, found: list[str], full: Bench, grep: GrepTool
) -> None:
    assert await lines(full, grep, pattern="needle", glob=glob) == found


async def test_one_file_is_named_without_its_folder(full: Bench, grep: GrepTool) -> None:
    assert await lines(full, grep, pattern="needle", path="src/a.py") == ["a.py:2: two needle"]
    assert await lines(full, grep, pattern="needle", path="out/c.py") == ["c.py:1: needle ignored"]
    assert await lines(full, grep, pattern="needle", path="src") == [
        "a.py:2: two needle",
        "deep/b.ts:1: needle(1)",
    ]


async def test_capitals_and_plain_text(full: Bench, grep: GrepTool) -> None:
    assert await lines(full, grep, pattern="NEEDLE", path="src/a.py", ignoreCase=True) == [
        "a.py:2: two needle",
        "a.py:4: four Needle",
    ]
    assert await lines(full, grep, pattern="needle(1)", literal=True) == [ALL[2]]
    assert await lines(full, grep, pattern="needle(1)") == ["(no line matches)"]


async def test_lines_around_a_match_are_shown_once(full: Bench, grep: GrepTool) -> None:
    assert await lines(full, grep, pattern="needle", path="src/a.py", context=1) == [
        "a.py-1- one",
        "a.py:2: two needle",
        "a.py-3- three",
    ]
    assert await lines(full, grep, pattern="eedle", path="src/a.py", context=1) == [
        "a.py-1- one",
        "a.py:2: two needle",
        "a.py-3- three",
        "a.py:4: four Needle",
        "a.py-5- five",
    ]


async def test_a_limit_is_told_only_when_there_is_more(full: Bench, grep: GrepTool) -> None:
    outcome = await full.run(grep, pattern="needle", limit=3)
    assert shown(outcome).split("\n") == [
        *ALL[:3],
        "",
        "[Only the first 3 matches; for more, use limit 6 or a narrower pattern.]",
    ]
    assert outcome.details == {"matchLimitReached": 3}
    assert (await full.run(grep, pattern="needle", limit=4)).details is None


async def test_after_the_last_match_its_lines_are_shown_a_further_match_among_them(
    full: Bench, grep: GrepTool
) -> None:
    outcome = await full.run(grep, pattern="eedle", path="src/a.py", context=2, limit=1)
    assert shown(outcome).split("\n")[:4] == [
        "a.py-1- one",
        "a.py:2: two needle",
        "a.py-3- three",
        "a.py-4- four Needle",
    ]
    assert outcome.details == {"matchLimitReached": 1}
    outcome = await full.run(grep, pattern="two", path="src/a.py", context=2, limit=1)
    assert len(shown(outcome).split("\n")) == 4
    assert outcome.details is None


async def test_long_lines_and_long_answers_are_cut(bench: Bench, grep: GrepTool) -> None:
    bench.put("long", "x" * 300_000 + "\nxx\n")
    outcome = await bench.run(grep, pattern="x")
    first, second, _, notice = shown(outcome).split("\n")
    assert first == "long:1: " + "x" * 500 + "… (cut)"
    assert second == "long:2: xx"
    assert notice == "[Of long lines the first 500 characters are shown; read shows more.]"
    assert outcome.details == {"linesTruncated": True}
    bench.put("long", "x\n" * 100)
    small = GrepTool(Limits(lines=100, size_bytes=30), grep._engine)
    outcome = await bench.run(small, pattern="x", limit=99)
    assert shown(outcome).endswith(
        "[Only the first 99 matches; for more, use limit 198 or a narrower pattern."
        " The limit of 30B was reached.]"
    )
    assert outcome.details is not None
    assert outcome.details["truncation"]["truncatedBy"] == "bytes"


async def test_only_the_end_of_a_line_is_taken_off(bench: Bench, grep: GrepTool) -> None:
    bench.put("a", b"\xef\xbb\xbf  x\t \r\n\xffx\n")
    bench.put("b", "x\n".encode("utf-16"))
    assert await lines(bench, grep, pattern="^ +x|x$", path="a") == ["a:1:   x\t ", "a:2: \ufffdx"]
    assert await lines(bench, grep, pattern="^x$") == ["b:1: x"]


async def test_links_and_pipes_below_the_folder_are_left_alone(full: Bench, grep: GrepTool) -> None:
    (full.cwd / "link").symlink_to("src.txt")
    (full.cwd / "src" / "up").symlink_to("..")
    os.mkfifo(full.cwd / "pipe")
    assert await lines(full, grep, pattern="needle") == ALL


async def test_an_ignore_file_that_is_a_pipe_says_nothing(full: Bench) -> None:
    (full.cwd / "src" / ".ignore").symlink_to("/dev/zero")
    os.mkfifo(full.cwd / "src" / ".gitignore")
    assert await lines(full, GrepTool(engine="own"), pattern="needle") == ALL


@pytest.mark.skipif(ripgrep() is None, reason="no rg")
async def test_a_search_that_does_not_end_is_given_up_with_what_it_has_found(full: Bench) -> None:
    # ripgrep waits for somebody to write into it.
    os.mkfifo(full.cwd / "src" / ".gitignore")
    outcome = await full.run(GrepTool(engine="rg", time_s_max=0.5), pattern="needle")
    assert outcome.details == {"timedOut": True}
    assert shown(outcome).endswith("[The search was given up after 0.5 s.]")


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "*", "a{2,1}"])
async def test_a_pattern_that_is_none_is_told_with_its_reason(
    pattern: str, full: Bench, grep: GrepTool
) -> None:
    with pytest.raises(Invalid) as raised:
        await full.run(grep, pattern=pattern)
    assert raised.value.reason == "bad_pattern"
    assert len(raised.value.message) > len("The search failed: ")


async def test_a_pattern_that_looks_like_an_option_is_a_pattern(
    full: Bench, grep: GrepTool
) -> None:
    full.put("o", "--files\n")
    assert await lines(full, grep, pattern="--files") == ["o:1: --files"]
    assert await lines(full, grep, pattern=r"[[:alpha:]]+\(\d") == [ALL[2]]


async def test_what_is_not_there_is_told(full: Bench, grep: GrepTool) -> None:
    with pytest.raises(Missing) as missing:
        await full.run(grep, pattern="x", path="gone")
    assert missing.value.reason == "file_not_found"
    with pytest.raises(Invalid) as invalid:
        await full.run(grep, pattern="x", glob="{a,b}" * 9)
    assert invalid.value.reason == "bad_glob"


async def test_a_stop_ends_a_search_that_would_take_for_ever(bench: Bench) -> None:
    bench.put("a", "a" * 60 + "b\n")
    outcomes: list[str] = []

    async def search() -> None:
        with pytest.raises(Stopped) as stopped:
            await bench.run(GrepTool(engine="own"), pattern="(a+)+$")
        outcomes.append(stopped.value.reason)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(search)
        await anyio.wait_all_tasks_blocked()
        bench.stop.set()
    assert outcomes == ["aborted"]


ENGINE_NAMES: tuple[Literal["own", "rg"], ...] = ("own", "rg")
NAMES = st.sampled_from(["a", "b.py", "c", "d.log"])
TEXTS = st.text("ab\n", max_size=12)


@pytest.mark.skipif(ripgrep() is None, reason="no rg")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(st.tuples(NAMES, NAMES), TEXTS, max_size=5),
    st.sampled_from(["", "*.log", "a/", "/c/*", "!b.py", "**/d.log\n!a/d.log"]),
    st.fixed_dictionaries(
        {
            "pattern": st.sampled_from(["a", "^b", "a$", "b*", "(a|b)b"]),
            "context": st.integers(0, 2),
        },
        optional={"glob": st.sampled_from(["*.py", "!c", "a/*"])},
    ),
)
async def test_both_searches_give_the_same_answer(
    tmp_path_factory: pytest.TempPathFactory,
    files: dict[tuple[str, str], str],
    ignored: str,
    asked: dict[str, Any],
) -> None:
    bench = Bench(tmp_path_factory.mktemp("both"))
    bench.put(".gitignore", ignored)
    for (folder, name), text in files.items():
        (bench.cwd / folder).mkdir(exist_ok=True)
        bench.put(f"{folder}/{name}", text)
    own, other = [
        await bench.run(GrepTool(engine=engine), limit=5, **asked) for engine in ENGINE_NAMES
    ]
    assert own == other
