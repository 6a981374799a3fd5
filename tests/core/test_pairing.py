"""Which calls still wait for a result; pairs themselves are seen in receipts and context edits."""

import pytest

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.pairing import interrupted_calls


def asking(*ids: str, stop: str = "toolUse") -> JsonObject:
    content = [{"type": "toolCall", "id": one, "name": "bash", "arguments": {}} for one in ids]
    return {"role": "assistant", "content": content, "stopReason": stop}


def answer(call_id: str) -> JsonObject:
    return {"role": "toolResult", "toolCallId": call_id}


USER: JsonObject = {"role": "user", "content": "go"}


@pytest.mark.parametrize(
    ("said", "waiting"),
    [
        ([], []),
        ([USER], []),
        ([USER, asking("a", "b")], ["a", "b"]),
        ([USER, asking("a", "b", "c"), answer("b")], ["a", "c"]),
        ([USER, asking("a"), answer("a")], []),
        ([USER, asking("a"), USER], []),
        ([USER, asking("a"), answer("a"), asking("a")], ["a"]),
        ([USER, asking("a"), asking("b"), answer("b")], []),
        ([USER, asking("a", stop="error")], []),
        ([USER, asking("a", stop="aborted")], []),
        ([USER, asking("a", stop="length")], ["a"]),
        ([answer("a")], []),
        # A file may hold anything where an id or a word is wanted.
        ([USER, asking("a"), {"role": "toolResult", "toolCallId": []}], ["a"]),
        ([USER, asking("a") | {"stopReason": []}], ["a"]),
    ],
)
def test_calls_wait_that_the_newest_reply_made_and_nothing_answered(
    said: list[JsonObject], waiting: list[str]
) -> None:
    assert [call.id for call in interrupted_calls(said)] == waiting
