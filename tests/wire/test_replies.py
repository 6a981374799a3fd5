import json

from pi_rpc.wire.messages import bytes_from_result
from pi_rpc.wire.replies import BatchReply


def test_a_batch_is_answered_once_in_the_order_of_its_requests() -> None:
    put: list[bytes] = []
    replies = BatchReply(put.append, 3, 1000)
    slots = [replies.slot(name) for name in (1, 2, 3)]
    slots[2](b"three")
    slots[0](b"one")
    assert put == []
    slots[1](b"two")
    assert put == [b"[one,two,three]"]


def test_an_answer_without_room_becomes_an_error_and_the_others_stay() -> None:
    put: list[bytes] = []
    replies = BatchReply(put.append, 2, 400)
    slots = [replies.slot(name) for name in (1, 2)]
    slots[0](bytes_from_result(1, "x" * 500))
    slots[1](bytes_from_result(2, "y"))
    first, second = json.loads(put[0])
    assert (first["id"], first["error"]["data"]["reason"]) == (1, "response_too_large")
    assert second == {"jsonrpc": "2.0", "id": 2, "result": "y"}
    assert len(put[0]) <= 400
