"""Kinds of failure to wire codes."""

import pytest

from pi_rpc.core import errors
from pi_rpc.core.errors import Busy, Failure, Invalid
from pi_rpc.frontends.native.errors import CODE_OF_KIND, ERROR_KINDS, not_initialized, rpc_error

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Failure) and kind is not Failure
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_failure_is_told_with_its_code_kind_reason_and_data(
    kind: type[Failure],
) -> None:
    error = rpc_error(kind("some_reason", "Words for people.", entryId="e1"))
    assert (error.code, error.message) == (CODE_OF_KIND[kind.kind], "Words for people.")
    assert error.data == {"kind": kind.kind, "reason": "some_reason", "entryId": "e1"}


def test_codes_are_unique_and_our_own_lie_in_the_range_the_specification_leaves_us() -> None:
    codes = [row.code for row in ERROR_KINDS]
    assert len(set(codes)) == len(codes)
    assert all(code in (-32602, -32603) or -32099 <= code <= -32000 for code in codes)
    assert all(row.meaning and row.advice for row in ERROR_KINDS)


def test_a_failure_without_words_is_told_by_its_reason() -> None:
    assert rpc_error(Invalid("bad_cursor")).message == "bad cursor"


def test_a_busy_answer_names_the_run() -> None:
    assert rpc_error(Busy("run_in_progress", runId="r1")).data == {
        "kind": "busy",
        "reason": "run_in_progress",
        "runId": "r1",
    }


def test_before_the_handshake_the_method_is_named() -> None:
    error = not_initialized("session/new")
    assert error.code == -32014
    assert error.data == {
        "kind": "notInitialized",
        "reason": "not_initialized",
        "method": "session/new",
    }
