"""Bytes to JSON-RPC messages and back.

Promises
- Every frame becomes exactly one message; what cannot be one becomes a `Fault` that says what to
  answer, with the id where it can be read.
- Nothing here is decoded deeper than the envelope: params and results stay raw, checked only to be
  JSON of bounded depth in valid UTF-8.
- A lone surrogate escape (half an emoji, cut by a careless sender) is read as U+FFFD, so that the
  message works.
"""

import re
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Literal

import msgspec

from pi_rpc.wire.errors import INTERNAL_ERROR, RpcError, invalid_request, overfull, parse_error
from pi_rpc.wire.framing import FrameFault

Id = str | int | float | None
"""What names a request. A request whose id is null is answered like any other."""

NESTING_LIMIT = 512
"""The deepest nesting read unless told otherwise: far above any message, below Python's stack."""
BATCH_LIMIT = 1024
"""The most messages in one batch unless told otherwise."""

_NO_PARAMS = msgspec.Raw(b"{}")
_ABSENT = msgspec.Raw(b"")


class Request(msgspec.Struct, frozen=True, gc=False):
    """A call that wants one answer. `params` is an object or an array, `{}` when left out."""

    id: Id
    method: str
    params: msgspec.Raw = _NO_PARAMS


class Notification(msgspec.Struct, frozen=True, gc=False):
    """A call that wants none."""

    method: str
    params: msgspec.Raw = _NO_PARAMS


class ErrorObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong, as it stands on the wire. `data` that came in is raw JSON."""

    code: int
    message: str
    data: Any = None


class Response(msgspec.Struct, frozen=True):
    """An answer to a request of ours. Holds: exactly one of `result` and `error` is not None."""

    id: Id
    result: msgspec.Raw | None = None
    error: ErrorObject | None = None


class Fault(msgspec.Struct, frozen=True):
    """What is no message, and the error to answer it with."""

    id: Id
    error: RpcError

    @property
    def code(self) -> int:
        """The code of the error."""
        return self.error.code

    @property
    def reason(self) -> str:
        """The stable reason of the error."""
        return str((self.error.data or {}).get("reason", ""))


Single = Request | Notification | Response | Fault
"""A message that is no batch."""


class Batch(msgspec.Struct, frozen=True):
    """Several messages in one frame, to be answered in one frame. Holds: never empty."""

    items: list[Single]


Message = Single | Batch
"""Whatever a frame can be."""


class _RequestLine(msgspec.Struct, frozen=True, gc=False):
    id: Id
    method: str
    jsonrpc: Literal["2.0"]
    params: msgspec.Raw = _NO_PARAMS


class _Envelope(msgspec.Struct, frozen=True):
    id: msgspec.Raw = _ABSENT
    method: msgspec.Raw = _ABSENT
    jsonrpc: msgspec.Raw = _ABSENT
    params: msgspec.Raw = _NO_PARAMS
    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT


class _RawError(msgspec.Struct, frozen=True):
    code: int
    message: str
    data: msgspec.Raw = _ABSENT


_decode_request = msgspec.json.Decoder(_RequestLine).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_any = msgspec.json.Decoder(msgspec.Raw).decode
_decode_many = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_id = msgspec.json.Decoder(Id).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_error = msgspec.json.Decoder(_RawError).decode

_JSON_SPACE = b" \t\r\n"
# An unended string matches to the end, so that the whole stays linear in the length.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
# Only plain members may stand before the id: then it is surely the one of the message itself.
_EARLY_ID = re.compile(
    rb'\s*\{(?:\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,)*'
    rb'\s*"id"\s*:\s*(?P<id>-?\d{1,30}|"[^"\\]*"|null)\s*[,}]'
    rb'(?P<answer>\s*"(?:result|error)"\s*:)?'
)
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_NO_STRUCTURE = bytes(byte for byte in range(256) if byte not in b"[]{},")
_STEP = {ord("["): 1, ord("]"): -1}


def message_from_bytes(
    payload: bytes, nesting_limit: int = NESTING_LIMIT, batch_limit: int = BATCH_LIMIT
) -> Message:
    """The message that one frame holds. Raises nothing: what is no message is a `Fault`."""
    if not payload.isascii():
        try:
            payload.decode()
        except UnicodeDecodeError:
            return Fault(None, parse_error("invalid_utf8"))
    # A text of n bytes cannot be nested deeper than n, nor deeper than it has brackets.
    if len(payload) > nesting_limit and _has_deeper_nesting(payload, nesting_limit):
        return Fault(_early_id(payload), invalid_request("nested_too_deep", limit=nesting_limit))
    try:
        line = _decode_request(payload)
    except msgspec.DecodeError:
        return _other_message(payload, nesting_limit, batch_limit)
    except RecursionError:
        return Fault(_early_id(payload), invalid_request("nested_too_deep", limit=nesting_limit))
    return _with_params(line.id, line.method, line.params)


def message_from_fault(fault: FrameFault, limit_bytes: int) -> Fault | Response:
    """What to answer to bytes that gave no frame.

    A response of the other side that was too long becomes a failed response, so that whoever waits
    for it hears of it.
    """
    if fault.reason != "too_long":
        return Fault(None, parse_error(fault.reason, sizeBytes=fault.size_bytes))
    error = overfull("message_too_long", sizeBytes=fault.size_bytes, limitBytes=limit_bytes)
    early = _EARLY_ID.match(fault.head)
    if early and early["answer"]:
        return Response(_decode_id(early["id"]), error=error_object(error))
    return Fault(_early_id(fault.head), error)


def _other_message(payload: bytes, nesting_limit: int, batch_limit: int) -> Message:
    """Whatever is no plain request: the rare kinds, and every fault."""
    if b"\\u" in payload:
        mended = _ESCAPE.sub(_mend_escape, payload)
        if mended != payload:
            return message_from_bytes(mended, nesting_limit, batch_limit)
    try:
        _decode_any(payload)
    except msgspec.DecodeError:
        return Fault(None, parse_error("invalid_json"))
    if payload.lstrip(_JSON_SPACE)[:1] == b"[":
        return _batch(payload, batch_limit)
    return _single(payload)


def _batch(payload: bytes, limit: int) -> Batch | Fault:
    if payload.count(b",") >= limit and _has_more_items(payload, limit):
        return Fault(None, overfull("batch_too_long", limit=limit))
    items = [_single(bytes(item)) for item in _decode_many(payload)]
    return Batch(items) if items else Fault(None, invalid_request("empty_batch"))


def _single(payload: bytes) -> Single:
    try:
        envelope = _decode_envelope(payload)
    except msgspec.DecodeError:
        return Fault(None, invalid_request("not_an_object"))
    has_id = bool(bytes(envelope.id))
    try:
        name = _decode_id(envelope.id) if has_id else None
    except msgspec.DecodeError:
        return Fault(None, invalid_request("invalid_id"))
    if bytes(envelope.jsonrpc) != b'"2.0"':
        return Fault(name, invalid_request("not_jsonrpc_2"))
    if not bytes(envelope.method):
        return _response(envelope, name, has_id)
    try:
        method = _decode_text(envelope.method)
    except msgspec.DecodeError:
        return Fault(name, invalid_request("invalid_method"))
    request = _with_params(name, method, envelope.params)
    if has_id or isinstance(request, Fault):
        return request
    return Notification(request.method, request.params)


def _with_params(name: Id, method: str, params: msgspec.Raw) -> Request | Fault:
    first = memoryview(params)[0]
    if first in b"{[":
        return Request(name, method, params)
    # Some client libraries write null for parameters that are left out.
    if bytes(params) == b"null":
        return Request(name, method)
    return Fault(name, invalid_request("invalid_params"))


def _response(envelope: _Envelope, name: Id, has_id: bool) -> Response | Fault:
    result, error = bytes(envelope.result), bytes(envelope.error)
    if not result and not error:
        return Fault(name, invalid_request("missing_method"))
    if not has_id:
        return Fault(None, invalid_request("missing_id"))
    # Older libraries write both members and set the one that does not apply to null.
    if not error or (error == b"null" and result):
        return Response(name, result=envelope.result)
    try:
        told = _decode_error(error)
    except msgspec.DecodeError:
        return Response(name, error=ErrorObject(INTERNAL_ERROR, "an unreadable error object"))
    data = told.data if bytes(told.data) else None
    return Response(name, error=ErrorObject(told.code, told.message, data))


def _early_id(head: bytes) -> Id:
    early = _EARLY_ID.match(head)
    return _decode_id(early["id"]) if early and not early["answer"] else None


def _mend_escape(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape["lone"] else escape[0]


def _has_deeper_nesting(payload: bytes, limit: int) -> bool:
    if payload.count(b"[") + payload.count(b"{") <= limit:
        return False
    brackets = _STRING.sub(b"", payload).translate(_BRACKETS, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > limit


def _has_more_items(payload: bytes, limit: int) -> bool:
    """Whether an array has more than `limit` items, told before any of them takes memory."""
    depth, items = 0, 1
    for byte in _STRING.sub(b"", payload).translate(_BRACKETS, _NO_STRUCTURE):
        if byte == 0x2C:
            items += depth == 1
            if items > limit:
                return True
        else:
            depth += _STEP[byte]
    return False


class _Success(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    id: Id
    result: Any


class _Failure(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    id: Id
    error: ErrorObject


class _Call(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    id: Id
    method: str
    params: Any


class _Notice(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    method: str
    params: Any


_ENCODER = msgspec.json.Encoder()


def bytes_from_result(name: Id, result: Any) -> bytes:
    """A response that succeeded. `result` is anything msgspec encodes; raw JSON goes as it is."""
    return _encoded(_Success(name, result))


def bytes_from_error(name: Id, error: RpcError) -> bytes:
    """A response that failed."""
    return _encoded(_Failure(name, error_object(error)))


def bytes_from_request(name: Id, method: str, params: Any = None) -> bytes:
    """A request. `params` is anything msgspec encodes to an object, or its JSON as bytes or Raw."""
    return _encoded(_Call(name, method, _params(params)))


def bytes_from_notification(method: str, params: Any = None) -> bytes:
    """A notification. `params` as in a request."""
    return _encoded(_Notice(method, _params(params)))


def bytes_from_batch(payloads: Iterable[bytes]) -> bytes:
    """A batch of messages already encoded."""
    return b"[%b]" % b",".join(payloads)


def error_object(error: RpcError) -> ErrorObject:
    """An error as it stands on the wire."""
    return ErrorObject(error.code, error.message, error.data)


def _params(params: Any) -> Any:
    if params is None:
        return _NO_PARAMS
    return msgspec.Raw(params) if isinstance(params, bytes) else params


def _encoded(message: msgspec.Struct) -> bytes:
    try:
        return _ENCODER.encode(message)
    except UnicodeEncodeError:
        return _encoded_with_lone_surrogates(message)


def _encoded_with_lone_surrogates(message: msgspec.Struct) -> bytes:
    # Rare, so that most processes never load it.
    import json  # noqa: PLC0415

    plain = msgspec.to_builtins(message, str_keys=True, enc_hook=_plain_from_raw)
    return json.dumps(plain, separators=(",", ":")).encode()


def _plain_from_raw(value: Any) -> Any:
    if isinstance(value, msgspec.Raw):
        import json  # noqa: PLC0415

        return json.loads(bytes(value))
    raise NotImplementedError(f"no JSON for a {type(value).__name__}")
