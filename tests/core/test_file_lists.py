"""Files are named by calls that did what they said."""

from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.codec import encode
from pi_rpc.core.file_lists import FileCount
from pi_rpc.core.messages import JsonObject


def call(call_id: str, name: str, path: object) -> JsonObject:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": {"path": path}}


def asked(*calls: JsonObject) -> JsonObject:
    return {"role": "assistant", "content": list(calls)}


def came(
    call_id: str, is_error: bool = False, nested: list[JsonObject] | None = None
) -> JsonObject:
    said: JsonObject = {"role": "toolResult", "toolCallId": call_id, "isError": is_error}
    if nested is not None:
        said["nestedCalls"] = {"calls": nested, "complete": True}
    return said


def nested(name: str, path: str, status: str = "ok") -> JsonObject:
    return {"id": "n", "name": name, "arguments": {"path": path}, "status": status}


MESSAGES = [
    asked(
        call("1", "read", "r1"),
        call("2", "write", "w1"),
        call("3", "edit", "z"),
        call("4", "bash", "x"),
        call("5", "read", 7),
        call("6", "read", ""),
    ),
    came("1"),
    came("4", nested=[nested("read", "nested-r"), nested("write", "nested-w")]),
]
OLD = {"readFiles": ["old-read", "w1"], "modifiedFiles": ["old-mod"]}


def test_calls_nested_calls_and_earlier_lists_are_gathered_and_sorted() -> None:
    files = FileCount()
    files.add_details(OLD)
    files.add_messages(MESSAGES)
    assert files.lists().as_details() == {
        "readFiles": ["nested-r", "old-read", "r1"],
        "modifiedFiles": ["nested-w", "old-mod", "w1", "z"],
    }


def test_a_failed_call_names_no_file() -> None:
    failed = [asked(call("1", "write", "a"), call("2", "read", "b")), came("1", is_error=True)]
    failed += [came("2", nested=[nested("write", "c", "error")])]
    ours, pis = FileCount(), FileCount(counts_failed=True)
    ours.add_messages(failed)
    pis.add_messages(failed)
    assert ours.lists().as_details() == {"readFiles": ["b"], "modifiedFiles": []}
    assert pis.lists().as_details() == {"readFiles": ["b"], "modifiedFiles": ["a", "c"]}


def test_paths_are_sorted_by_code_units() -> None:
    files = FileCount()
    files.add_details({"readFiles": ["\uff5e", "\U0001f600", "b", "a"]})
    assert files.lists().read == ["a", "b", "\U0001f600", "\uff5e"]


def test_details_that_are_none_name_nothing() -> None:
    files = FileCount()
    files.add_details(None)
    files.add_details({"readFiles": "x", "modifiedFiles": [1]})
    assert files.lists().as_details() == {"readFiles": [], "modifiedFiles": []}


def lines_of(messages: list[JsonObject]) -> bytes:
    return b"\n".join(encode({"type": "message", "message": one}) for one in messages)


def test_stored_lines_are_counted_without_being_decoded_whole() -> None:
    files = FileCount()
    files.add_details(OLD)
    assert files.add_lines(lines_of(MESSAGES))
    whole = FileCount()
    whole.add_details(OLD)
    whole.add_messages(MESSAGES)
    assert files.lists() == whole.lists()


NAMES = st.sampled_from(["read", "write", "edit", "bash"])
IDS = st.sampled_from(["1", "2", "3"])
PATHS = st.sampled_from(["a", "b", "c", "", 7, None])
CALLS = st.builds(call, IDS, NAMES, PATHS)
NESTED = st.builds(nested, NAMES, st.sampled_from(["d", "e"]), st.sampled_from(["ok", "error"]))
SAID = st.one_of(
    st.builds(lambda calls: asked(*calls), st.lists(CALLS, max_size=3)),
    st.builds(came, IDS, st.booleans(), st.one_of(st.none(), st.lists(NESTED, max_size=2))),
    st.just({"role": "user", "content": "read a"}),
)


@given(st.lists(SAID, max_size=8), st.booleans(), st.integers(0, 8))
def test_lines_and_messages_name_the_same_files(
    messages: list[JsonObject], counts_failed: bool, at: int
) -> None:
    whole, parted = FileCount(counts_failed), FileCount(counts_failed)
    whole.add_messages(messages)
    assert parted.add_lines(lines_of(messages[:at])) or not messages[:at]
    parted.add_messages(messages[at:])
    assert parted.lists() == whole.lists()


def test_of_lines_of_an_odd_shape_nothing_is_counted() -> None:
    files = FileCount()
    odd = {"role": "assistant", "content": [{"type": "hologram"}]}
    assert not files.add_lines(lines_of([asked(call("1", "read", "a")), odd]))
    assert files.lists().read == []


def test_an_id_that_comes_again_is_another_call() -> None:
    files = FileCount()
    files.add_messages([asked(call("1", "read", "a")), came("1"), asked(call("1", "read", "b"))])
    files.add_messages([came("1", is_error=True)])
    assert files.lists().read == ["a"]
