import pytest

from pi_rpc.wire.errors import (
    OUR_RANGE,
    OVERFULL,
    RemoteError,
    RpcError,
    cancelled,
    internal,
    invalid_request,
    overfull,
    parse_error,
)


@pytest.mark.parametrize(
    ("error", "code", "data"),
    [
        (parse_error("invalid_json"), -32700, {"kind": "invalid", "reason": "invalid_json"}),
        (
            invalid_request("nested_too_deep", limit=3),
            -32600,
            {"kind": "invalid", "reason": "nested_too_deep", "limit": 3},
        ),
        (overfull("full", limit=3), -32003, {"kind": "overfull", "reason": "full", "limit": 3}),
        (cancelled("withdrawn"), -32800, {"kind": "cancelled", "reason": "withdrawn"}),
        (
            internal("1a2b"),
            -32603,
            {"kind": "internal", "reason": "unexpected", "incident": "1a2b"},
        ),
    ],
)
def test_every_error_has_a_code_a_kind_and_a_reason(
    error: RpcError, code: int, data: dict[str, object]
) -> None:
    assert (error.code, error.data) == (code, data)


def test_our_range_is_the_one_left_to_servers() -> None:
    assert (min(OUR_RANGE), max(OUR_RANGE)) == (-32099, -32000)
    assert OVERFULL in OUR_RANGE


def test_what_we_were_answered_is_no_answer_of_ours() -> None:
    assert not issubclass(RemoteError, RpcError)
