import json
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pi_rpc.wire.asking import Asking
from pi_rpc.wire.errors import DisconnectedError, RemoteError, RpcError
from pi_rpc.wire.messages import Response, message_from_bytes

pytestmark = pytest.mark.anyio


class Line:
    """What was put, decoded; and a way to answer."""

    def __init__(self, limit: int = 10) -> None:
        self.put: list[dict[str, Any]] = []
        self.asking = Asking(lambda payload: self.put.append(json.loads(payload)), limit)

    def answer(self, **members: Any) -> None:
        response = message_from_bytes(json.dumps({"jsonrpc": "2.0", **members}).encode())
        assert isinstance(response, Response)
        self.asking.take(response)


async def asked(line: Line, then: Callable[[], None], timeout_s: float | None = 5) -> Any:
    """Ask "m", do `then` once the request is out, and return what came back."""
    back: list[Any] = []

    async def ask() -> None:
        try:
            back.append(json.loads(bytes(await line.asking.ask("m", {"a": 1}, timeout_s))))
        except Exception as failure:
            back.append(failure)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            before = len(line.put)
            tasks.start_soon(ask)
            while len(line.put) == before:
                await anyio.lowlevel.checkpoint()
            then()
    return back[0]


async def test_a_result_comes_back_to_who_asked() -> None:
    line = Line()
    assert await asked(line, lambda: line.answer(id="s1", result={"b": 2})) == {"b": 2}
    assert await asked(line, lambda: line.answer(id="s2", result=None)) is None
    assert line.put == [
        {"jsonrpc": "2.0", "id": "s1", "method": "m", "params": {"a": 1}},
        {"jsonrpc": "2.0", "id": "s2", "method": "m", "params": {"a": 1}},
    ]


async def test_an_error_of_the_other_side_is_raised_with_its_data() -> None:
    line = Line()
    error = {"code": -7, "message": "no", "data": {"kind": "x"}}
    failure = await asked(line, lambda: line.answer(id="s1", error=error))
    assert isinstance(failure, RemoteError)
    assert (failure.code, failure.message) == (-7, "no")
    assert json.loads(failure.data or b"") == {"kind": "x"}


async def test_what_is_not_answered_in_time_is_withdrawn() -> None:
    line = Line()
    failure = await asked(line, lambda: None, timeout_s=0.01)
    assert isinstance(failure, TimeoutError)
    assert line.put[1] == {
        "jsonrpc": "2.0",
        "method": "$/cancelRequest",
        "params": {"id": "s1"},
    }


async def test_what_is_given_up_is_withdrawn() -> None:
    line = Line()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(line.asking.ask, "m", None, None)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert [sent["method"] for sent in line.put] == ["m", "$/cancelRequest"]


async def test_the_end_of_the_connection_fails_what_waits_and_what_comes_after() -> None:
    line = Line()
    failure = await asked(line, lambda: line.asking.end("eof"))
    assert isinstance(failure, DisconnectedError)
    assert failure.reason == "eof"
    with pytest.raises(DisconnectedError):
        await line.asking.ask("m", None, None)
    assert len(line.put) == 1


async def test_an_answer_that_came_before_the_end_counts() -> None:
    line = Line()

    def answer_and_end() -> None:
        line.answer(id="s1", result=5)
        line.asking.end("eof")

    assert await asked(line, answer_and_end) == 5


async def test_no_more_is_asked_than_the_limit() -> None:
    line = Line(limit=1)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(line.asking.ask, "m", None, None)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(RpcError) as caught:
                await line.asking.ask("m", None, None)
            tasks.cancel_scope.cancel()
    assert (caught.value.data or {})["reason"] == "too_many_asked"


async def test_a_late_answer_is_nothing_strange_and_an_unasked_one_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = Line()
    await asked(line, lambda: None, timeout_s=0.01)
    line.answer(id="s1", result=1)
    assert caplog.messages == []
    for name in ("s2", "s0", "x", "s", 1, None, "s" + "9" * 40):
        line.answer(id=name, result=1)
    assert len(caplog.messages) == 7
