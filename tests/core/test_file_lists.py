"""Files are named by calls that did what they said."""

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
