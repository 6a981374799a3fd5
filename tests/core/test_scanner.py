"""From the bytes of a session file to heads, and what was odd on the way."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Invalid
from pi_rpc.core.heads import Heads
from pi_rpc.core.scanner import DIAGNOSTICS_MAX, LINES_BEFORE_HEADER_MAX, Scan, Scanner

HEADER = b'{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w"}'


def entry(entry_id: Any, parent: Any, entry_type: str = "label", **fields: Any) -> bytes:
    stored = {"type": entry_type, "id": entry_id, "parentId": parent, "timestamp": "t"} | fields
    return json.dumps(stored, separators=(",", ":")).encode()


def shuffled(line: bytes) -> bytes:
    """The same object in another order of keys."""
    return json.dumps(dict(reversed(json.loads(line).items()))).encode()


def scanned(data: bytes, block: int = 1 << 20, scanner: Scanner | None = None) -> Scan:
    scanner = Scanner() if scanner is None else scanner
    waiting = b""
    for at in range(0, len(data), block):
        waiting += data[at : at + block]
        waiting = waiting[scanner.take(waiting, len(waiting)) :]
    return scanner.finish(waiting)


def joined(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in (HEADER, *lines))


def heads_of(scan: Scan) -> Heads:
    heads = Heads()
    heads.extend(scan.columns)
    return heads


def ids(scan: Scan) -> list[str]:
    heads = heads_of(scan)
    return [heads.id_of(row) for row in range(len(heads))]


def told(scan: Scan) -> list[tuple[str, int | None, str | None]]:
    return [(each.reason, each.line, each.entry_id) for each in scan.diagnostics]


A, B, C = "0000000a", "0000000b", "0000000c"


def test_rows_are_told_by_their_beginnings() -> None:
    lines = [
        entry(A, None, "message", message={"role": "user", "content": "x"}),
        entry(B, A, "message", message={"role": "toolResult"}),
        entry(C, A, "custom", customType="pi_rpc.cursor", data={"type": "x", "parentId": 1}),
        entry("root", C, "compaction", summary="s"),
        entry("0000000D", "root", "brand_new"),
        entry("0000000e", "0000000D", "custom_message", customType="x", content="y"),
    ]
    scan = scanned(joined(*lines))
    kinds = [Kind.USER, Kind.TOOL_RESULT, Kind.CURSOR, Kind.COMPACTION, Kind.UNKNOWN, 14]
    assert ids(scan) == [A, B, C, "root", "0000000D", "0000000e"]
    assert list(scan.columns.parents) == [-1, 0, 0, 2, 3, 4]
    assert list(scan.columns.kinds) == kinds
    assert [scan.lengths[row] for row in range(6)] == [len(line) for line in lines]
    assert scan.diagnostics == []
    assert scan.header is not None
    assert (scan.header.session_id, scan.header_offset, scan.header_length) == ("s", 0, len(HEADER))
    assert scan.lines == 7


simple_lines = st.sampled_from([A, B, C, "odd", "root", "00000000"]).flatmap(
    lambda entry_id: st.builds(
        entry,
        st.just(entry_id),
        st.sampled_from([None, A, B, C, "odd", "gone"]),
        st.sampled_from(["label", "message", "custom"]),
        message=st.sampled_from([{"role": "user"}, {"content": [], "role": "assistant"}, None]),
    )
)
odd_lines = st.sampled_from(
    [b"", b"  \r", b"garbage", b"null", b"7", b"[]", b"{}", HEADER, b'{"id":5}', b"\0\0\0", b"{\0}"]
)


@given(st.lists(simple_lines | odd_lines, max_size=12), st.integers(1, 90))
def test_neither_blocks_nor_key_order_change_what_is_found(lines: list[bytes], block: int) -> None:
    data = joined(*lines)
    scan = scanned(data)
    assert scanned(data, block) == scan
    other = scanned(
        joined(*(shuffled(line) if line[:8] == b'{"type":' else line for line in lines))
    )
    assert other.columns == scan.columns
    assert told(other) == told(scan)


@given(st.lists(simple_lines | odd_lines, max_size=12), st.data())
def test_a_file_read_in_two_passes_has_the_same_rows(
    lines: list[bytes], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(lines)))
    first, whole = joined(*lines[:cut]), joined(*lines)
    before, after = scanned(first), scanned(whole)
    if before.has_orphans:
        return
    heads = heads_of(before)
    rest = scanned(whole[len(first) :], scanner=Scanner(heads, len(first), before.lines))
    heads.extend(rest.columns)
    assert heads.columns() == after.columns
    assert before.offsets + rest.offsets == after.offsets
    assert rest.lines == after.lines
    assert sorted(told(before) + told(rest)) == sorted(told(after))


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_end_in_a_scan_or_in_a_refusal(data: bytes, headed: bool) -> None:
    try:
        scan = scanned(HEADER + b"\n" + data if headed else data, 64)
    except Invalid as error:
        assert error.reason == "not_a_session"
        assert not headed
    else:
        assert len(scan.offsets) == len(scan.columns.kinds) == len(scan.columns.parents)


@given(st.lists(simple_lines, min_size=1, max_size=4), st.data())
def test_damage_anywhere_costs_no_more_than_its_line(
    lines: list[bytes], data: st.DataObject
) -> None:
    whole = joined(*lines)
    at = data.draw(st.integers(len(HEADER) + 1, len(whole) - 1))
    damaged = (
        whole[:at]
        + data.draw(st.sampled_from([b"\0", b"}", b'"', b"\xff", b"\n"]))
        + whole[at + 1 :]
    )
    scan = scanned(damaged)
    assert len(scan.columns.kinds) >= len(lines) - 2


@pytest.mark.parametrize(
    ("lines", "found", "reasons"),
    [
        ([entry(A, None), b"garbage", entry(B, A)], [A, B], [("malformed_line", 3, None)]),
        ([b"", b" \r", entry(A, None) + b"\r"], [A], []),
        ([b"null", entry(A, None)], [A], [("not_an_object", 2, None)]),
        ([b"7", entry(A, None)], [A], [("not_an_object", 2, None)]),
        ([b'{"type":"label"}', entry(A, None)], [A], [("missing_id", 2, None)]),
        ([entry(7, None), entry(A, None)], [A], [("missing_id", 2, None)]),
        ([entry(A, None), HEADER, entry(B, A)], [A, B], [("second_header", 3, None)]),
        ([entry(A, "gone"), entry(B, A)], [A, B], [("orphan", 2, A)]),
        ([entry(A, 5)], [A], [("orphan", 2, A)]),
        ([entry(A, A)], [A], [("self_parent", 2, A)]),
        ([entry(A, None), entry(A, None), entry(B, A)], [A, A, B], [("duplicate_id", 3, A)]),
        ([entry(A, B), entry(B, None)], [A, B], [("forward_parent", 2, A)]),
        ([b"\0" * 50, entry(A, None)], [A], [("nul_bytes", 2, None)]),
        ([b"\0" * 50 + entry(A, None)], [A], [("glued_line", 2, None)]),
        ([entry(A, None)[:-9] + entry(A, None)], [A], [("glued_line", 2, None)]),
        ([entry(A, None)[:20] + entry(B, None)], [B], [("glued_line", 2, None)]),
        ([entry(A, None) + entry(B, A)], [A, B], [("glued_line", 2, None)]),
    ],
)
def test_what_is_odd_is_told_and_costs_its_line_only(
    lines: list[bytes], found: list[str], reasons: list[tuple[str, int, str | None]]
) -> None:
    scan = scanned(joined(*lines))
    assert ids(scan) == found
    assert told(scan) == reasons


def test_only_a_newline_ends_a_line() -> None:
    said = {"role": "user", "content": "one\u2028two\u0085three\x0b\rfour"}
    stored = {"type": "message", "id": A, "parentId": None, "timestamp": "t", "message": said}
    raw = json.dumps(stored, separators=(",", ":"), ensure_ascii=False).encode()
    scan = scanned(joined(raw, entry(B, A)))
    assert (ids(scan), scan.lengths[0], scan.diagnostics) == ([A, B], len(raw), [])


def test_both_halves_of_an_object_on_two_lines_are_told() -> None:
    scan = scanned(joined(b'{"type":"label","id":"0000000a",', b'"parentId":null}'))
    assert told(scan) == [("malformed_line", 2, None), ("malformed_line", 3, None)]


def test_the_offset_of_a_diagnostic_is_that_of_its_line() -> None:
    scan = scanned(joined(entry(A, None), b"garbage"))
    assert [each.offset for each in scan.diagnostics] == [len(joined(entry(A, None)))]


def test_a_glued_entry_is_found_where_it_begins() -> None:
    torn, whole = (
        entry(A, None, "message", message={"role": "user", "content": "long"}),
        entry(B, None),
    )
    data = joined(torn[:-4] + whole)
    scan = scanned(data)
    assert data[scan.offsets[0] : scan.offsets[0] + scan.lengths[0]] == whole


def test_a_circle_is_cut_where_it_begins_in_the_file() -> None:
    scan = scanned(joined(entry(A, B), entry(B, A), entry(C, B)))
    assert list(scan.columns.parents) == [-1, 0, 1]
    assert told(scan) == [("forward_parent", 2, A), ("cycle", 2, A)]


def test_the_last_line_is_looked_at_whole() -> None:
    good, bad = entry(A, None), entry(B, A)[:-2] + b":}"
    scan = scanned(joined(good, bad))
    assert ids(scan) == [A]
    assert told(scan) == [("malformed_line", 3, None)]


@pytest.mark.parametrize("deep", [b"[" * 3000 + b"]" * 3000, b'{"a":' * 3000 + b"0" + b"}" * 3000])
@pytest.mark.parametrize("careful", [True, False])
@pytest.mark.parametrize("places", [(0, 1, 2), (1, 2, 0), (0, 2, 1), (2, 0, 1)])
def test_a_line_nested_too_deeply_to_be_read_keeps_its_place_in_the_tree(
    deep: bytes, careful: bool, places: tuple[int, ...]
) -> None:
    unread = entry(B, A, "custom", customType="x", data=0).removesuffix(b"0}") + deep + b"}"
    lines = [entry(A, None), unread, entry(C, B)]
    scan = scanned(joined(*(lines[place] for place in places)), scanner=Scanner(careful=careful))
    heads = heads_of(scan)
    found = {heads.id_of(row): heads.parents[row] for row in range(3)}
    assert found == {A: -1, B: heads.row_of(A), C: heads.row_of(B)}
    assert not scan.has_orphans


def test_a_line_nested_too_deeply_is_no_entry_where_its_beginning_does_not_tell() -> None:
    unread = shuffled(entry(B, A, data=0)).removesuffix(b"}") + b',"x":' + b"[" * 3000 + b"}"
    scan = scanned(joined(entry(A, None), unread))
    assert ids(scan) == [A]
    assert told(scan) == [("malformed_line", 3, None)]


def test_a_repeated_key_at_the_end_of_the_file_wins() -> None:
    scan = scanned(joined(entry(A, None)[:-1] + b',"id":"0000000b"}'))
    assert ids(scan) == [B]


def test_a_repeated_parent_wins_on_every_line() -> None:
    twice = entry(C, B)[:-1] + b',"parentId":"0000000a"}'
    scan = scanned(joined(entry(A, None), entry(B, A), twice, entry("0000000d", C)))
    assert list(scan.columns.parents) == [-1, 0, 0, 2]


@pytest.mark.parametrize(
    ("tail", "found", "reasons", "whole"),
    [
        (entry(B, A), [A, B], [], True),
        (entry(B, A)[:-3], [A], ["torn_line"], False),
        (b"\0\0", [A], ["nul_bytes"], False),
        (HEADER, [A], ["second_header"], False),
    ],
)
def test_what_follows_the_last_newline_counts_if_it_is_whole(
    tail: bytes, found: list[str], reasons: list[str], whole: bool
) -> None:
    scan = scanned(joined(entry(A, None)) + tail)
    assert (ids(scan), [each.reason for each in scan.diagnostics]) == (found, reasons)
    assert scan.tail_is_entry is whole


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        entry(A, None),
        b'{"type":"session","id":7}\n',
        b"\xef\xbb\xbf" + HEADER,
        b"[]\n",
        b"text\n",
    ],
)
def test_a_file_without_a_header_is_no_session(data: bytes) -> None:
    with pytest.raises(Invalid) as caught:
        scanned(data + b"\n" + (HEADER if data.startswith((b"{", b"[")) else b""))
    assert caught.value.reason == "not_a_session"


def test_a_long_text_is_known_to_be_no_session_before_it_is_read_to_its_end() -> None:
    scanner = Scanner()
    text = b"words\n" * (LINES_BEFORE_HEADER_MAX + 1)
    with pytest.raises(Invalid) as caught:
        scanner.take(text, len(text))
    assert caught.value.reason == "not_a_session"


def test_what_stands_before_the_header_is_passed_over() -> None:
    scan = scanned(b"garbage\n\nnull\n0\n" + joined(entry(A, None)))
    assert ids(scan) == [A]
    assert [each.reason for each in scan.diagnostics] == [
        "malformed_line",
        "not_an_object",
        "not_an_object",
    ]


def test_more_oddities_than_anybody_reads_are_counted() -> None:
    scan = scanned(joined(*[b"garbage"] * (DIAGNOSTICS_MAX + 7)))
    assert len(scan.diagnostics) == DIAGNOSTICS_MAX + 1
    assert scan.diagnostics[-1].reason == "more_diagnostics"
    assert scan.diagnostics[-1].text.startswith("7 ")


def test_many_new_lines_on_known_rows_find_their_parents() -> None:
    before = [entry(f"{number:08x}", None) for number in range(300)]
    more = [entry(f"{number + 1000:08x}", f"{(number * 7) % 300:08x}") for number in range(300)]
    first = joined(*before)
    heads = heads_of(scanned(first))
    scan = scanned(b"\n".join(more), scanner=Scanner(heads, len(first), 301))
    assert list(scan.columns.parents) == [(number * 7) % 300 for number in range(300)]


def test_a_chain_of_forward_parents_into_a_circle_takes_linear_time() -> None:
    count = 20_000
    lines = [entry(f"{row:08x}", f"{min(row + 1, count - 1):08x}") for row in range(count - 1)]
    lines.append(entry(f"{count - 1:08x}", f"{count - 2:08x}"))
    scan = scanned(joined(*lines))
    assert [row for row, parent in enumerate(scan.columns.parents) if parent == -1] == [count - 2]


_ids = st.sampled_from([A, B, C, "0000000d", "0000000e", "ABCDEF00", 'x","y":"', "other"])
_texts = st.sampled_from(["t", "2026-01-01T00:00:00.000Z", 'q"' + "x" * 22, "\\" + "n" * 23, ""])
_lines_of_files = st.builds(
    lambda entry_id, parent, kind, stamp, fields: entry(
        entry_id, parent, kind, **{"timestamp": stamp, **fields}
    ),
    _ids,
    st.one_of(st.none(), _ids),
    st.sampled_from(
        ["message", "message", "message", "custom", "label", "compaction", "mess\u00e4"]
    ),
    _texts,
    st.sampled_from(
        [
            {"message": {"role": "user", "content": "a"}},
            {"message": {"role": "toolResult", "content": [], "timestamp": 1}},
            {"message": {"role": "r\u00f6le"}},
            {"message": {"role": 'a"b'}},
            {"message": {"content": "a", "role": "user"}},
            {"message": "none"},
            {"customType": "pi_rpc.cursor"},
            {},
        ]
    ),
)


@given(
    st.lists(st.one_of(_lines_of_files, _lines_of_files, st.sampled_from([b"", b"{", b"7}"]))),
    st.sampled_from([150, 400, 1 << 20]),
)
def test_lines_taken_together_are_what_they_are_one_by_one(lines: list[bytes], block: int) -> None:
    data = joined(*lines)
    assert scanned(data, block, Scanner(careful=False)) == scanned(data, block, Scanner())
