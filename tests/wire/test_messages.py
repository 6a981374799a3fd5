import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.wire.errors import RpcError, overfull
from pi_rpc.wire.framing import FrameFault
from pi_rpc.wire.messages import (
    Batch,
    ErrorObject,
    Fault,
    Message,
    Notification,
    Request,
    Response,
    bytes_from_batch,
    bytes_from_error,
    bytes_from_notification,
    bytes_from_request,
    bytes_from_result,
    message_from_bytes,
    message_from_fault,
)

Plain = tuple[Any, ...]


def plain(message: Message) -> Plain:
    """A message as a value that can be compared: raw JSON is decoded."""
    match message:
        case Request(name, method, params):
            return ("request", name, method, json.loads(bytes(params)))
        case Notification(method, params):
            return ("notification", method, json.loads(bytes(params)))
        case Response(name, result, error):
            if error is not None:
                return ("error", name, error.code, error.message)
            return ("result", name, json.loads(bytes(result or b"")))
        case Fault():
            return ("fault", message.id, message.code, message.reason)
        case Batch(items):
            return ("batch", *(plain(item) for item in items))


def call(name: str, rest: str = "") -> bytes:
    return f'{{"jsonrpc":"2.0","id":{name},"method":"m"{rest}}}'.encode()


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (call("1"), ("request", 1, "m", {})),
        (call('"a"'), ("request", "a", "m", {})),
        (call("null"), ("request", None, "m", {})),
        (call("1.5"), ("request", 1.5, "m", {})),
        (call("123456789012345678901"), ("request", 123456789012345678901, "m", {})),
        (call("1", ',"params":{"a":1}'), ("request", 1, "m", {"a": 1})),
        (call("1", ',"params": [1, 2] '), ("request", 1, "m", [1, 2])),
        (call("1", ',"params":null'), ("request", 1, "m", {})),
        (call("1", ',"extra":1'), ("request", 1, "m", {})),
        (b" \t" + call("1") + b" ", ("request", 1, "m", {})),
        (b'{"params":{},"method":"m","id":1,"jsonrpc":"2.0"}', ("request", 1, "m", {})),
        (call("1", ',"id":2'), ("request", 2, "m", {})),
        (b'{"jsonrpc":"2.0","method":"n"}', ("notification", "n", {})),
        (b'{"jsonrpc":"2.0","method":"n","params":{"a":1}}', ("notification", "n", {"a": 1})),
        (b'{"jsonrpc":"2.0","id":"s1","result":null}', ("result", "s1", None)),
        (b'{"jsonrpc":"2.0","id":"s1","result":{"a":1}}', ("result", "s1", {"a": 1})),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}', ("error", 1, -1, "x")),
        (b'{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-1,"message":"x"}}',
         ("error", 1, -1, "x")),
        (b'{"jsonrpc":"2.0","id":1,"result":5,"error":null}', ("result", 1, 5)),
        (b'{"jsonrpc":"2.0","id":1,"error":"bad"}',
         ("error", 1, -32603, "an unreadable error object")),
        # What cannot be read at all.
        (b"", ("fault", None, -32700, "invalid_json")),
        (b"{", ("fault", None, -32700, "invalid_json")),
        (b'{"jsonrpc":"2.0","id":1,"method":"m"', ("fault", None, -32700, "invalid_json")),
        (call("1") + call("2"), ("fault", None, -32700, "invalid_json")),
        (call("1", ',"params":{"a":NaN}'), ("fault", None, -32700, "invalid_json")),
        (call("1", ',"params":{"a":Infinity}'), ("fault", None, -32700, "invalid_json")),
        (call("1").replace(b"m", b"\xff"), ("fault", None, -32700, "invalid_utf8")),
        (b'{"skipped":"\xed\xa0\x80"}', ("fault", None, -32700, "invalid_utf8")),
        (b"\xef\xbb\xbf" + call("1"), ("fault", None, -32700, "invalid_json")),
        (b"1 x", ("fault", None, -32700, "invalid_json")),
        # What is JSON and no message. The id is echoed where it can be read.
        (b"1", ("fault", None, -32600, "not_an_object")),
        (b'"text"', ("fault", None, -32600, "not_an_object")),
        (b"{}", ("fault", None, -32600, "not_jsonrpc_2")),
        (b'{"jsonrpc":"2.0"}', ("fault", None, -32600, "missing_method")),
        (b'{"jsonrpc":"2.0","id":7}', ("fault", 7, -32600, "missing_method")),
        (b'{"jsonrpc":"2.0","result":1}', ("fault", None, -32600, "missing_id")),
        (b'{"id":7,"method":"m"}', ("fault", 7, -32600, "not_jsonrpc_2")),
        (b'{"jsonrpc":"1.0","id":7,"method":"m"}', ("fault", 7, -32600, "not_jsonrpc_2")),
        (b'{"jsonrpc":2.0,"id":7,"method":"m"}', ("fault", 7, -32600, "not_jsonrpc_2")),
        (b'{"jsonrpc":"2.0","id":7,"method":1}', ("fault", 7, -32600, "invalid_method")),
        (b'{"jsonrpc":"2.0","method":1,"params":"bar"}',
         ("fault", None, -32600, "invalid_method")),
        (b'{"jsonrpc":"2.0","method":"n","params":1}', ("fault", None, -32600, "invalid_params")),
        (call("7", ',"params":"bar"'), ("fault", 7, -32600, "invalid_params")),
        (call("7", ',"params":true'), ("fault", 7, -32600, "invalid_params")),
        (call("true"), ("fault", None, -32600, "invalid_id")),
        (call("{}"), ("fault", None, -32600, "invalid_id")),
        (call("[1]"), ("fault", None, -32600, "invalid_id")),
        (call("1e999"), ("fault", None, -32600, "invalid_id")),
        # Batches.
        (b"[]", ("fault", None, -32600, "empty_batch")),
        (b" [ ] ", ("fault", None, -32600, "empty_batch")),
        (b"[1,", ("fault", None, -32700, "invalid_json")),
        (b"[1,[]]", ("batch", ("fault", None, -32600, "not_an_object"),
                     ("fault", None, -32600, "not_an_object"))),
        (b"[" + call("1") + b',{"jsonrpc":"2.0","method":"n"}]',
         ("batch", ("request", 1, "m", {}), ("notification", "n", {}))),
    ],
)  # fmt: skip
def test_a_frame_becomes_one_message(payload: bytes, expected: Plain) -> None:
    assert plain(message_from_bytes(payload)) == expected


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (r"\ud83d", "\ufffd"),
        (r"a\uDE00b", "a\ufffdb"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\\ud83d", r"\ud83d"),
        (r"\\\ud83d", "\\\ufffd"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\ud83d\n", "\ufffd\n"),
    ],
)
def test_half_an_emoji_is_read_as_a_replacement(text: str, read: str) -> None:
    payload = call("1", f',"params":{{"text":"{text}"}}')
    assert plain(message_from_bytes(payload)) == ("request", 1, "m", {"text": read})
    message = message_from_bytes(payload)
    assert isinstance(message, Request)
    assert msgspec.json.decode(message.params) == {"text": read}


def test_nesting_is_bounded_by_a_coded_error_that_has_the_id() -> None:
    def nested(depth: int) -> bytes:
        return call("7", f',"params":{"[" * depth}{"]" * depth}')

    assert plain(message_from_bytes(nested(9), nesting_limit=10))[0] == "request"
    assert plain(message_from_bytes(nested(10), nesting_limit=10)) == (
        "fault", 7, -32600, "nested_too_deep",
    )  # fmt: skip
    assert plain(message_from_bytes(nested(500)))[0] == "request"
    assert plain(message_from_bytes(nested(100_000)))[2:] == (-32600, "nested_too_deep")
    assert plain(message_from_bytes(b"[" * 100_000))[2:] == (-32600, "nested_too_deep")


def test_brackets_beside_each_other_and_in_strings_are_not_depth() -> None:
    wide = call("7", ',"params":[' + "{}," * 5000 + '"' + "[{" * 5000 + r"\"[[" + '"]')
    assert plain(message_from_bytes(wide, nesting_limit=10))[0] == "request"


def test_deep_nesting_that_no_limit_stops_is_answered_all_the_same() -> None:
    payload = call("7", f',"params":{"[" * 5000}{"]" * 5000}')
    found = plain(message_from_bytes(payload, nesting_limit=10_000))
    assert found == ("fault", 7, -32600, "nested_too_deep")


def test_a_batch_is_bounded_in_its_items() -> None:
    items = [call(str(number), ',"params":{"a":[1,2,3]}') for number in range(20)]
    assert plain(message_from_bytes(bytes_from_batch(items), batch_limit=20))[0] == "batch"
    assert plain(message_from_bytes(bytes_from_batch(items), batch_limit=19)) == (
        "fault", None, -32003, "batch_too_long",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (call("7"), ("fault", 7, -32003, "message_too_long")),
        (b'{"id": "a", "method"', ("fault", "a", -32003, "message_too_long")),
        (b'{"jsonrpc":"2.0","params":{"id":7,', ("fault", None, -32003, "message_too_long")),
        (b"xxxxxxxx", ("fault", None, -32003, "message_too_long")),
        (
            b'{"jsonrpc":"2.0","id":"s3","result":{"te',
            ("error", "s3", -32003, "A limit is reached"),
        ),
    ],
)
def test_what_is_too_long_is_answered_by_its_id(head: bytes, expected: Plain) -> None:
    assert plain(message_from_fault(FrameFault("too_long", 99, head), 50)) == expected


def test_a_broken_frame_is_a_parse_error() -> None:
    found = message_from_fault(FrameFault("malformed_header", 12), 50)
    assert plain(found) == ("fault", None, -32700, "malformed_header")


@given(
    st.binary(max_size=200) | st.text(alphabet='[]{}",:\\ud83d1.e-n', max_size=80).map(str.encode)
)
def test_any_bytes_become_a_message(payload: bytes) -> None:
    plain(message_from_bytes(payload, nesting_limit=20, batch_limit=5))


@given(
    st.one_of(
        st.none(), st.integers(), st.text(), st.floats(allow_nan=False, allow_infinity=False)
    ),
    st.text(),
    st.dictionaries(st.text(), st.integers() | st.text()),
)
def test_a_request_written_is_read_back(name: Any, method: str, params: dict[str, Any]) -> None:
    written = message_from_bytes(bytes_from_request(name, method, params))
    assert plain(written) == ("request", name, method, params)


def test_answers_and_notices_are_written_as_the_specification_has_them() -> None:
    raw = msgspec.Raw(b'{"a":1}')
    assert bytes_from_result(1, raw) == b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'
    assert bytes_from_result(None, None) == b'{"jsonrpc":"2.0","id":null,"result":null}'
    assert bytes_from_error("a", RpcError(-32001, "no", {"kind": "missing"})) == (
        b'{"jsonrpc":"2.0","id":"a","error":{"code":-32001,"message":"no",'
        b'"data":{"kind":"missing"}}}'
    )
    assert bytes_from_error(1, RpcError(-1, "no")) == (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'
    )
    assert bytes_from_notification("n", b'{"a":1}') == (
        b'{"jsonrpc":"2.0","method":"n","params":{"a":1}}'
    )
    assert bytes_from_notification("n") == b'{"jsonrpc":"2.0","method":"n","params":{}}'


def test_half_an_emoji_can_be_written() -> None:
    written = bytes_from_result(1, {"text": "\ud83d", "raw": msgspec.Raw(b"[1]")})
    assert written == b'{"jsonrpc":"2.0","id":1,"result":{"text":"\\ud83d","raw":[1]}}'


def test_what_is_no_json_number_is_written_as_null() -> None:
    assert bytes_from_result(1, math.nan) == b'{"jsonrpc":"2.0","id":1,"result":null}'


def test_error_data_of_the_other_side_is_kept_raw() -> None:
    response = message_from_bytes(
        bytes_from_error(1, overfull("too_many", limit=3)),
    )
    assert isinstance(response, Response)
    assert isinstance(response.error, ErrorObject)
    assert json.loads(bytes(response.error.data)) == {
        "kind": "overfull",
        "reason": "too_many",
        "limit": 3,
    }
