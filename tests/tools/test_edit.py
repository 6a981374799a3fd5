"""Replacements are exact, all or none, and leave every other byte alone."""

import hashlib
import json
import stat
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.errors import Failure, Invalid, Missing, Overfull, Refused, Stopped
from pi_rpc.core.messages import ToolOutcome
from pi_rpc.tools.diff import lines_of
from pi_rpc.tools.edit import Edit, EditTool, Replacement, applied, changes_made, plan_edits
from pi_rpc.tools.matching import Span
from tests.tools.bench import Bench, shown

pytestmark = pytest.mark.anyio
EDIT = EditTool()


async def edit(bench: Bench, path: str, *pairs: tuple[str, str]) -> ToolOutcome:
    edits = [{"oldText": old, "newText": new} for old, new in pairs]
    return await bench.run(EDIT, path=path, edits=edits)


def details(outcome: ToolOutcome) -> dict[str, Any]:
    assert outcome.details is not None
    return outcome.details


async def test_the_outcome_has_text_diff_and_both_hashes(bench: Bench) -> None:
    path = bench.put("f", "a\nb\nc\n")
    outcome = await edit(bench, "f", ("b", "B"))
    assert path.read_text() == "a\nB\nc\n"
    assert shown(outcome) == "Replaced 1 block in f."
    assert outcome.details == {
        "patch": "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
        "diff": " 1 a\n-2 b\n+2 B\n 3 c",
        "firstChangedLine": 2,
        "matched": "exact",
        "beforeSha256": hashlib.sha256(b"a\nb\nc\n").hexdigest(),
        "afterSha256": hashlib.sha256(b"a\nB\nc\n").hexdigest(),
    }


async def test_edits_are_found_in_the_file_as_it_was_in_any_order(bench: Bench) -> None:
    path = bench.put("f", "one\ntwo\nthree\n")
    outcome = await edit(bench, "f", ("three", "one"), ("one", "two\nand"), ("two", ""))
    assert path.read_text() == "two\nand\n\none\n"
    assert shown(outcome) == "Replaced 3 blocks in f."
    assert details(outcome)["diff"] == "-1 one\n+1 two\n+2 and\n-2 two\n+3 \n-3 three\n+4 one"


async def test_touching_edits_are_fine(bench: Bench) -> None:
    path = bench.put("f", "abcd")
    await edit(bench, "f", ("cd", "2"), ("ab", "1"))
    assert path.read_text() == "12"


@pytest.mark.parametrize(
    ("pairs", "kind", "reason", "data"),
    [
        ([], Invalid, "no_edits", {}),
        ([("", "x")], Invalid, "empty_old_text", {"index": 0}),
        ([("b", "B"), ("nowhere", "x")], Missing, "not_found", {"index": 1}),
        ([("twice", "x")], Refused, "not_unique", {"index": 0, "count": 2}),
        ([("b\nc", "x"), ("a\nb", "y")], Invalid, "overlap", {"indexes": [0, 1]}),
        ([("b", "x"), ("b", "y")], Invalid, "overlap", {"indexes": [0, 1]}),
        ([("b", "b")], Invalid, "unchanged", {}),
    ],
)
async def test_each_mistake_has_its_reason_and_leaves_the_file_alone(
    pairs: list[tuple[str, str]],
    kind: type[Failure],
    reason: str,
    data: dict[str, Any],
    bench: Bench,
) -> None:
    path = bench.put("f", "a\nb\nc\ntwice\ntwice\n")
    before = path.stat()
    with pytest.raises(kind) as raised:
        await edit(bench, "f", *pairs)
    assert raised.value.reason == reason
    assert raised.value.data == {"path": "f", **data}
    assert path.stat() == before
    assert bench.names() == ["f"]


async def test_files_that_cannot_be_edited_are_told_by_their_reason(bench: Bench) -> None:
    (bench.cwd / "folder").mkdir()
    with (bench.cwd / "huge").open("wb") as file:
        file.truncate(1 << 40)
    for path, kind, reason in (
        ("none", Missing, "file_not_found"),
        ("folder", Refused, "is_a_directory"),
        ("/dev/null", Refused, "not_a_file"),
        ("huge", Overfull, "file_too_large"),
    ):
        with pytest.raises(kind) as raised:
            await edit(bench, path, ("a", "b"))
        assert raised.value.reason == reason


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nnew\r\nc\r\n"),
        (b"a\nb\nc\n", b"a\nB\nnew\nc\n"),
        (b"a\rb\rc\r", b"a\rB\rnew\rc\r"),
        (b"a\nb\r\nc\n", b"a\nB\r\nnew\r\nc\n"),
        (b"a\r\nb\nc\r\n", b"a\r\nB\nnew\nc\r\n"),
        (b"a\r\nb", b"a\r\nB\r\nnew"),
        (b"b", b"B\nnew"),
    ],
)
@pytest.mark.parametrize("new", ["B\nnew", "B\r\nnew", "B\rnew"])
async def test_new_lines_end_as_the_line_they_begin_in(
    before: bytes, after: bytes, new: str, bench: Bench
) -> None:
    path = bench.put("f", before)
    await edit(bench, "f", ("b", new))
    assert path.read_bytes() == after


async def test_old_text_of_several_lines_is_found_whatever_the_breaks_are(bench: Bench) -> None:
    path = bench.put("f", b"a\r\nb\r\nc\r\n")
    await edit(bench, "f", ("a\nb\n", "x\n"))
    assert path.read_bytes() == b"x\r\nc\r\n"


async def test_a_kept_break_and_a_new_one_do_not_melt_into_one(bench: Bench) -> None:
    path = bench.put("f", b"a\rb\nc\n")
    await edit(bench, "f", ("b", "\nB"))
    assert path.read_bytes() == b"a\r\n\nB\nc\n"
    bench.put("f", b"a\rb\nc\n")
    await edit(bench, "f", ("b", ""))
    assert path.read_bytes() == b"a\r\n\nc\n"


async def test_a_byte_order_mark_stays_first(bench: Bench) -> None:
    path = bench.put("f", b"\xef\xbb\xbfa\nb\n")
    outcome = await edit(bench, "f", ("a", "A"))
    assert path.read_bytes() == b"\xef\xbb\xbfA\nb\n"
    assert details(outcome)["diff"] == "-1 a\n+1 A\n 2 b"


async def test_new_text_is_taken_literally(bench: Bench) -> None:
    path = bench.put("f", "x = OLD\n")
    await edit(bench, "f", ("OLD", r"$& $1 \n \g<0> {0} %s"))
    assert path.read_text() == r"x = $& $1 \n \g<0> {0} %s" + "\n"


async def test_a_file_of_another_encoding_keeps_its_other_bytes(bench: Bench) -> None:
    path = bench.put("f", b"caf\xe9\nkey = 1\n\xff\xfe\x00\n")
    outcome = await edit(bench, "f", ("key = 1", "key = é"))
    assert path.read_bytes() == b"caf\xe9\nkey = \xc3\xa9\n\xff\xfe\x00\n"
    assert details(outcome)["diff"] == " 1 caf\ufffd\n-2 key = 1\n+2 key = é\n 3 \ufffd\ufffd\0"


async def test_a_near_match_is_told_and_changes_only_its_span(bench: Bench) -> None:
    path = bench.put("f", "keep  \n\tcall(\u201cx\u201d)  \nnext \uff41\u00a0 \n")
    outcome = await edit(bench, "f", ('call("x")\nnext a', "done\nnext b"))
    assert path.read_text() == "keep  \n\tdone\nnext b\u00a0 \n"
    assert details(outcome)["matched"] == "fuzzy"
    assert shown(outcome) == "Replaced 1 block in f (found nearly, not exactly)."


async def test_blanks_only_the_file_has_do_not_hinder_and_stay_on_other_lines(
    bench: Bench,
) -> None:
    path = bench.put("f", "one  \ntwo\t\nthree  \n")
    outcome = await edit(bench, "f", ("one\ntwo\nthree", "1\n2\n3"))
    assert details(outcome)["matched"] == "fuzzy"
    assert path.read_text() == "1\n2\n3  \n"


async def test_an_exact_place_is_taken_although_another_looks_the_same(bench: Bench) -> None:
    path = bench.put("f", "a 'x'\nb \u2018x\u2019\n")
    outcome = await edit(bench, "f", ("'x'", "'y'"))
    assert path.read_text() == "a 'y'\nb \u2018x\u2019\n"
    assert details(outcome)["matched"] == "exact"


async def test_two_near_places_are_not_unique(bench: Bench) -> None:
    bench.put("f", "\u2018x\u2019 \u201bx\u201b\n")
    with pytest.raises(Refused) as raised:
        await edit(bench, "f", ("'x'", "y"))
    assert raised.value.data["count"] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"edits": json.dumps([{"oldText": "a", "newText": "b"}])},
        {"edits": json.dumps({"oldText": "a", "newText": "b"})},
        {"edits": {"oldText": "a", "newText": "b"}},
        {"oldText": "a", "newText": "b"},
        {"edits": [], "oldText": "a", "newText": "b"},
    ],
)
async def test_other_forms_of_edits_are_understood(arguments: dict[str, Any], bench: Bench) -> None:
    path = bench.put("f", "a")
    before = json.dumps(arguments)
    expected = {"path": "f", "edits": [{"oldText": "a", "newText": "b"}]}
    assert EDIT.prepared({"path": "f", **arguments}) == expected
    await bench.run(EDIT, path="f", **arguments)
    assert path.read_text() == "b"
    assert json.dumps(arguments) == before


@pytest.mark.parametrize(
    "arguments", [{}, {"edits": "not json"}, {"edits": "7"}, {"oldText": "a"}, {"edits": [7]}]
)
async def test_forms_that_are_not_understood_are_refused(
    arguments: dict[str, Any], bench: Bench
) -> None:
    bench.put("f", "a")
    with pytest.raises(Invalid) as raised:
        await bench.run(EDIT, path="f", **arguments)
    assert raised.value.reason == "invalid_arguments"


async def test_five_edits_at_once_all_land(bench: Bench) -> None:
    path = bench.put("f", "".join(f"line {number}\n" for number in range(5)))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for number in range(5):
                pair = (f"line {number}", f"LINE {number}")
                tasks.start_soon(edit, bench, "f", pair)
    assert path.read_text() == "".join(f"LINE {number}\n" for number in range(5))


async def test_mode_and_symlink_stay(bench: Bench) -> None:
    target = bench.put("script", "a")
    target.chmod(0o700)
    (bench.cwd / "link").symlink_to("script")
    await edit(bench, "link", ("a", "b"))
    assert (bench.cwd / "link").is_symlink()
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("b", 0o700)


async def test_a_stopped_call_edits_nothing(bench: Bench) -> None:
    path = bench.put("f", "a")
    bench.stop.set()
    with pytest.raises(Stopped):
        await edit(bench, "f", ("a", "b"))
    assert path.read_text() == "a"


async def test_edits_far_apart_in_a_long_file_have_a_short_diff(bench: Bench) -> None:
    bench.put("f", "".join(f"{number}\n" for number in range(1, 20_001)))
    outcome = await edit(bench, "f", ("\n5\n", "\n"), ("\n19999\n", "\nx\ny\n"))
    lines = details(outcome)["diff"].split("\n")
    assert len(lines) == 4 + 1 + 4 + 1 + 4 + 3 + 1
    assert "-    5 5" in lines
    # The file is one line shorter above, so the new lines count from one less.
    assert lines[-4:] == ["-19999 19999", "+19998 x", "+19999 y", " 20000 20000"]


async def test_joined_lines_are_shown_as_they_become(bench: Bench) -> None:
    bench.put("f", "a\nb\nc\n")
    outcome = await edit(bench, "f", ("a\n", "a "))
    assert details(outcome)["diff"] == "-1 a\n-2 b\n+1 a b\n 3 c"


CHUNKS = st.lists(
    st.sampled_from(
        [b"key", b"\n", b"\r\n", b"\r", b"\xff", b"\xe2\x82", b"\xe2\x82\xac", b" ", b"x", b"\0"]
    )
    | st.binary(max_size=3),
    max_size=12,
).map(b"".join)


@given(CHUNKS, CHUNKS, st.text(max_size=6), st.text(st.sampled_from("ab\n"), max_size=6))
def test_bytes_outside_the_spans_are_untouched_whatever_they_are(
    above: bytes, below: bytes, middle: str, new: str
) -> None:
    old = f"<<{middle}>>"
    content = above + old.encode() + below
    text = content.decode("utf-8", "surrogateescape")
    try:
        (only,) = plan_edits(text, [Edit(old, new)], "f")
    except Refused:
        # The bytes around happened to hold it too.
        return
    after = applied(text, [only]).encode("utf-8", "surrogateescape")
    # Breaks that must not melt are the one thing added, and they stand where the span stood.
    assert after.startswith(text[: only.span.start].encode("utf-8", "surrogateescape"))
    assert after.endswith(text[only.span.end :].encode("utf-8", "surrogateescape"))
    if not only.span.is_fuzzy and content.count(old.encode()) == 1:
        assert (after.startswith(above), after.endswith(below)) == (True, True)
        added = len(after) - len(above) - len(below) - len(only.text.encode())
        assert added in (0, 1, 2)


@given(st.text("ab\r\n", max_size=40), st.lists(st.text("x\n", max_size=3), max_size=4), st.data())
def test_the_changed_lines_turn_the_old_lines_into_the_new(
    text: str, news: list[str], data: st.DataObject
) -> None:
    at, replacements = 0, []
    for new in news:
        start = data.draw(st.integers(at, len(text)))
        end = data.draw(st.integers(start, len(text)))
        # As spans that are found: never empty, and never parting a line break.
        if start < end and "\r\n" not in (text[start - 1 : start + 1], text[end - 1 : end + 1]):
            replacements.append(Replacement(Span(start, end), new))
            at = end
    old, new_lines = lines_of(text), lines_of(applied(text, replacements))
    made, row = list[str](), 0
    for change in changes_made(text, replacements):
        made += old[row : change.old_start]
        assert len(made) == change.new_start
        made += new_lines[change.new_start : change.new_end]
        row = change.old_end
    assert made + old[row:] == new_lines


@given(st.binary(max_size=30))
def test_any_bytes_survive_being_read_and_written(content: bytes) -> None:
    text = content.decode("utf-8", "surrogateescape")
    assert text.encode("utf-8", "surrogateescape") == content
