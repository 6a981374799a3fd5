"""A client that is asked, over a real connection that may end."""

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from pi_rpc.frontends.native.serving import Serving
from pi_rpc.session.consulting import Answered, Question, Unanswered
from pi_rpc.wire.errors import DisconnectedError, RemoteError, overfull
from tests.session.living import WAIT_S, Speaker, file_store, living_host

pytestmark = pytest.mark.anyio

QUESTION = Question("q", "permission", "s", "r", "run", None, 5_000, {"callId": "c"})


class Line:
    """Where requests go: each ends as it is told to."""

    def __init__(self, *ends: Any) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.cancelled = 0
        self.came = anyio.Event()
        self._ends = list(ends)

    async def request(self, method: str, params: Any = None, timeout_s: Any = None) -> msgspec.Raw:
        self.asked.append((method, params))
        self.came.set()
        end = self._ends.pop(0) if self._ends else None
        if isinstance(end, Exception):
            raise end
        if end is not None:
            return msgspec.Raw(end)
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        raise AssertionError("nothing ends this but a withdrawal")


@pytest.mark.parametrize(
    ("end", "wanted"),
    [
        (DisconnectedError("eof"), ("disconnected", "the connection has ended: eof")),
        (RemoteError(-1, "no"), ("failed", "no")),
        (overfull("too_many_asked"), ("failed", "A limit is reached")),
        (b'{"decision": "perhaps"}', ("failed", "the answer cannot be read: ")),
        (b"[]", ("failed", "the answer cannot be read: ")),
    ],
)
async def test_a_question_without_an_answer_says_why(
    tmp_path: Path, end: Any, wanted: tuple[str, str]
) -> None:
    async with living_host(file_store(tmp_path), tmp_path, Speaker()) as host:
        serving = Serving(host, Line(end))
        with anyio.fail_after(WAIT_S):
            reply = await host.around.consulting.ask(serving, QUESTION)
        assert isinstance(reply, Unanswered)
        assert reply.why == wanted[0]
        assert reply.text.startswith(wanted[1])


async def test_an_answer_comes_in_its_shape(tmp_path: Path) -> None:
    async with living_host(file_store(tmp_path), tmp_path, Speaker()) as host:
        line = Line(b'{"decision": "allow_once", "later": 1}')
        reply = await host.around.consulting.ask(Serving(host, line), QUESTION)
        assert isinstance(reply, Answered)
        assert reply.value.decision == "allow_once"
        assert line.asked == [
            (
                "permission/request",
                {
                    "requestId": "q",
                    "sessionId": "s",
                    "runtimeId": "r",
                    "runId": "run",
                    "deadlineMs": 5_000,
                    "callId": "c",
                },
            )
        ]


async def test_what_nobody_waits_for_is_withdrawn_and_what_is_put_again_is_asked_again(
    tmp_path: Path,
) -> None:
    async with living_host(file_store(tmp_path), tmp_path, Speaker()) as host:
        line = Line()
        serving, consulting = Serving(host, line), host.around.consulting
        stop, replies = anyio.Event(), []

        async def ask() -> None:
            replies.append(await consulting.ask(serving, QUESTION, stop))

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await line.came.wait()
                line.came = anyio.Event()
                assert [one.request_id for one in serving.again("s")] == ["q"]
                assert serving.again("another") == []
                await line.came.wait()
                stop.set()
        assert replies == [Unanswered("stopped")]
        await anyio.lowlevel.checkpoint()
        assert (len(line.asked), line.cancelled) == (2, 2)


async def test_a_client_that_leaves_is_not_asked_any_more(tmp_path: Path) -> None:
    async with living_host(file_store(tmp_path), tmp_path, Speaker()) as host:
        serving = Serving(host, Line())
        serving.serves_permissions = True
        assert host.around.consulting.permitting is serving
        serving.leave()
        assert host.around.consulting.permitting is None
