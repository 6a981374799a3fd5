"""One line of a session file, both ways."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.codec import (
    canonical,
    decode,
    encode,
    header_from_object,
    migrated,
    with_parent,
)
from pi_rpc.core.errors import Damaged, Invalid

LEGACY = Path(__file__).parents[1] / "parity" / "recordings" / "legacy"

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(values)
def test_what_is_encoded_is_decoded_to_the_same_value(value: Any) -> None:
    line = encode(value)
    assert b"\n" not in line
    assert decode(line) == value


@given(values)
def test_canonical_bytes_do_not_depend_on_the_order_of_keys(value: Any) -> None:
    reordered = json.loads(
        json.dumps({"a": value, "b": 1}), object_pairs_hook=lambda p: dict(p[::-1])
    )
    assert canonical({"a": value, "b": 1}) == canonical(reordered)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (rb'{"a":"cut \ud83d"}', {"a": "cut \ud83d"}),
        (b'{"a":"\xff"}', {"a": "�"}),
        (b"1e400", float("inf")),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b"9" * 5000, float("inf")),
        (b'{"a":1}\r', {"a": 1}),
        ('"\u2028\u0085"'.encode(), "\u2028\u0085"),
        (b'{"a":1,"a":2}', {"a": 2}),
    ],
)
def test_what_other_programs_read_is_read(line: bytes, value: Any) -> None:
    assert decode(line) == value


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"NaN",
        b"[Infinity]",
        b'{"a":1}{"a":2}',
        b"\xef\xbb\xbf{}",
        b"[" * 100_000,
        b"\0" * 9,
    ],
)
def test_what_nobody_reads_is_damaged(line: bytes) -> None:
    with pytest.raises(Damaged) as caught:
        decode(line)
    assert caught.value.reason == "unreadable_line"


def test_a_lone_surrogate_is_written_as_an_escape() -> None:
    assert encode({"a": "\ud83d", "b": float("inf")}) == rb'{"a":"\ud83d","b":null}'


def test_other_text_is_written_as_it_is() -> None:
    assert encode({"a": "\u2028é"}) == '{"a":"\u2028é"}'.encode()


def test_a_value_nested_too_deeply_is_refused() -> None:
    value: Any = "\ud83d"
    for _ in range(100_000):
        value = [value]
    for write in (encode, canonical):
        with pytest.raises(Invalid) as caught:
            write(value)
        assert caught.value.reason == "too_deep"


@pytest.mark.parametrize(
    ("line", "parent", "made"),
    [
        (
            b'{"type":"label","id":"a","parentId":null,"timestamp":"t", "x" : 1.0}',
            "b",
            b'{"type":"label","id":"a","parentId":"b","timestamp":"t", "x" : 1.0}',
        ),
        (
            b'{"type":"label","id":"a","parentId":"b","timestamp":"t"}',
            None,
            b'{"type":"label","id":"a","parentId":null,"timestamp":"t"}',
        ),
        (b'{"id":"a","parentId":"b"}', "c", b'{"id":"a","parentId":"c"}'),
        (
            b'{"type":"x","id":"a","parentId":"b","timestamp":"t","parentId":"z"}',
            "c",
            b'{"type":"x","id":"a","parentId":"c","timestamp":"t"}',
        ),
    ],
)
def test_only_the_parent_changes(line: bytes, parent: str | None, made: bytes) -> None:
    assert with_parent(line, parent) == made


def test_a_header_keeps_what_it_does_not_know() -> None:
    stored = {
        "type": "session",
        "version": 3,
        "id": "s",
        "timestamp": "t",
        "cwd": "/w",
        "more": [1],
    }
    header = header_from_object(stored)
    assert (header.session_id, header.timestamp, header.cwd, header.version) == ("s", "t", "/w", 3)
    assert header.as_object() == stored


@pytest.mark.parametrize(
    ("version", "read"),
    [
        (None, 1),
        (1, 1),
        (2, 2),
        (2.0, 2),
        ("3", 3),
        ("2", 2),
        (4, 4),
        ("new", 3),
        (True, 3),
        ([], 3),
    ],
)
def test_versions_are_read_as_loosely_as_they_are_written(version: Any, read: int) -> None:
    assert header_from_object({"type": "session", "id": "s", "version": version}).version == read


@pytest.mark.parametrize(
    "stored", [None, 1, [], {}, {"type": "message", "id": "x"}, {"type": "session", "id": 7}]
)
def test_anything_else_is_no_session(stored: Any) -> None:
    with pytest.raises(Invalid) as caught:
        header_from_object(stored)
    assert caught.value.reason == "not_a_session"


def migrate(objects: list[dict[str, Any]], version: int) -> list[dict[str, Any]]:
    numbers = count(1)
    return migrated(objects, version, lambda: f"n{next(numbers)}")


def test_version_1_becomes_one_chain_with_new_ids() -> None:
    made = migrate(
        [
            {"type": "session", "id": "s"},
            {"type": "message", "timestamp": "t", "message": {"role": "hookMessage"}, "id": "old"},
            {"type": "compaction", "timestamp": "t", "firstKeptEntryIndex": 1, "summary": "x"},
            {"type": "compaction", "timestamp": "t", "firstKeptEntryIndex": 0},
            {"type": "compaction", "timestamp": "t", "firstKeptEntryIndex": 9},
            {"type": "compaction", "timestamp": "t", "firstKeptEntryIndex": "1"},
        ],
        1,
    )
    assert made == [
        {"type": "session", "id": "s", "version": 3},
        {
            "type": "message",
            "id": "n1",
            "parentId": None,
            "timestamp": "t",
            "message": {"role": "custom"},
        },
        {
            "type": "compaction",
            "id": "n2",
            "parentId": "n1",
            "timestamp": "t",
            "firstKeptEntryId": "n1",
            "summary": "x",
        },
        {"type": "compaction", "id": "n3", "parentId": "n2", "timestamp": "t"},
        {"type": "compaction", "id": "n4", "parentId": "n3", "timestamp": "t"},
        {
            "type": "compaction",
            "id": "n5",
            "parentId": "n4",
            "timestamp": "t",
            "firstKeptEntryIndex": "1",
        },
    ]
    assert list(made[1])[:4] == ["type", "id", "parentId", "timestamp"]


def test_version_2_keeps_ids_and_renames_a_role() -> None:
    objects = [
        {"type": "session", "id": "s", "version": 2},
        {
            "type": "message",
            "id": "a",
            "parentId": None,
            "message": {"role": "hookMessage", "x": 1},
        },
        {"type": "message", "id": "b", "parentId": "a", "message": None},
    ]
    made = migrate(objects, 2)
    assert made[0]["version"] == 3
    assert made[1]["message"] == {"role": "custom", "x": 1}
    assert made[2] is objects[2]
    assert objects[1]["message"]["role"] == "hookMessage"


@pytest.mark.parametrize("version", [3, 4])
def test_newer_files_stay_as_they_are(version: int) -> None:
    objects = [{"type": "session", "id": "s", "version": version}, {"type": "x"}]
    assert migrate(objects, version) == objects


@pytest.mark.skipif(not LEGACY.is_dir(), reason="the recordings are not in this checkout")
@pytest.mark.parametrize("version", [1, 2])
def test_old_files_become_what_pi_makes_of_them(version: int) -> None:
    stored = [decode(line) for line in (LEGACY / f"v{version}.jsonl").read_bytes().splitlines()]
    recorded = [
        decode(line) for line in (LEGACY / f"v{version}.migrated.jsonl").read_bytes().splitlines()
    ]
    ids = iter([entry["id"] for entry in recorded[1:]])
    assert migrated(stored, version, lambda: next(ids)) == recorded
