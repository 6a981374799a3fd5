import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from pi_rpc.wire.errors import RpcError
from pi_rpc.wire.framing import FrameDecoder, Framing, frame
from pi_rpc.wire.limits import Limits
from pi_rpc.wire.messages import Notification, Request
from pi_rpc.wire.pair import joined
from pi_rpc.wire.peer import Peer

pytestmark = pytest.mark.anyio
Connect = Callable[..., AbstractAsyncContextManager[tuple[Peer, Any]]]


async def turns(number: int = 20) -> None:
    """Let the loop turn, so that whatever is under way on either end has happened."""
    for _ in range(number):
        await anyio.lowlevel.checkpoint()


class Desk:
    """A dispatch whose handlers wait until they are let go."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.stopped: list[str] = []
        self.gates: dict[str, anyio.Event] = {}

    def __call__(self, request: Request, peer: Peer) -> Any:
        self.seen.append(request.method)
        match request.method.split("/"):
            case ["echo"]:
                return request.params
            case ["refuse"]:
                raise RpcError(-32002, "not now", {"kind": "refused", "reason": "not_now"})
            case ["break"]:
                raise ZeroDivisionError("a mistake of ours")
            case ["unencodable"]:
                return object()
            case ["wait", name]:
                return self._wait(name)
            case ["stubborn", name]:
                return self._wait_in_spite(name)
            case ["waiting", "refuse"]:
                return self._refuse()
            case ["waiting", "break"]:
                return self._break()
            case ["size", number]:
                return "x" * int(number)
            case ["waiting", "size", number]:
                return self._size(int(number))
        raise RpcError(-32601, "Method not found")

    def let_go(self, name: str) -> None:
        self.gate(name).set()

    def gate(self, name: str) -> anyio.Event:
        return self.gates.setdefault(name, anyio.Event())

    async def _wait(self, name: str) -> dict[str, str]:
        try:
            await self.gate(name).wait()
        except BaseException:
            self.stopped.append(name)
            raise
        return {"name": name}

    async def _wait_in_spite(self, name: str) -> str:
        try:
            await self.gate(name).wait()
        except anyio.get_cancelled_exc_class():
            return "done all the same"
        return "let go"

    async def _refuse(self) -> None:
        await anyio.lowlevel.checkpoint()
        raise RpcError(-32002, "not now", {"kind": "refused", "reason": "not_now"})

    async def _break(self) -> None:
        await anyio.lowlevel.checkpoint()
        raise ExceptionGroup("several", [ZeroDivisionError("a mistake of ours")])

    async def _size(self, number: int) -> str:
        await anyio.lowlevel.checkpoint()
        return "x" * number


def result(name: Any, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "result": value}


def reason(answer: dict[str, Any]) -> tuple[Any, int, str, str]:
    error = answer["error"]
    return (answer["id"], error["code"], error["data"]["kind"], error["data"]["reason"])


async def test_a_request_is_answered(connect: Connect) -> None:
    async with connect(Desk()) as (_, client):
        client.ask(1, "echo", {"a": 1})
        assert await client.next() == result(1, {"a": 1})


@pytest.mark.parametrize("name", [0, -5, "a", "", 1.5, None, 2**70])
async def test_the_id_comes_back_as_it_was(connect: Connect, name: Any) -> None:
    async with connect(Desk()) as (_, client):
        client.ask(name, "echo")
        client.ask(name, "wait/a")
        assert await client.next() == result(name, {})
        client.withdraw(name)
        if name is None:
            client.end_input()
            return
        assert reason(await client.next()) == (name, -32800, "cancelled", "withdrawn")


async def test_every_unreadable_line_gets_an_answer_and_work_goes_on(connect: Connect) -> None:
    async with connect(Desk()) as (_, client):
        client.send_bytes(b'{"jsonrpc":\n\n1\n[]\n{"id":5}\n')
        client.ask(6, "echo")
        assert [reason(await client.next()) for _ in range(5)] == [
            (None, -32700, "invalid", "invalid_json"),
            (None, -32700, "invalid", "invalid_json"),
            (None, -32600, "invalid", "not_an_object"),
            (None, -32600, "invalid", "empty_batch"),
            (5, -32600, "invalid", "not_jsonrpc_2"),
        ]
        assert await client.next() == result(6, {})


async def test_a_notification_gets_no_answer(connect: Connect) -> None:
    desk = Desk()
    heard: list[tuple[str, bytes]] = []

    def hear(notification: Notification) -> None:
        heard.append((notification.method, bytes(notification.params)))

    async with connect(desk, on_notification=hear) as (_, client):
        client.send({"jsonrpc": "2.0", "method": "exit", "params": {"a": 1}})
        client.ask(1, "echo")
        assert await client.next() == result(1, {})
    assert heard == [("exit", b'{"a": 1}')]
    assert desk.seen == ["echo"]


async def test_a_mistake_while_hearing_a_notification_ends_nothing(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    def hear(notification: Notification) -> None:
        raise ZeroDivisionError("a mistake of ours")

    async with connect(Desk(), on_notification=hear) as (_, client):
        client.send({"jsonrpc": "2.0", "method": "exit"})
        client.ask(1, "echo")
        assert await client.next() == result(1, {})
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("method", ["refuse", "waiting/refuse"])
async def test_an_error_raised_is_the_answer(connect: Connect, method: str) -> None:
    async with connect(Desk()) as (_, client):
        client.ask(1, method)
        answer = await client.next()
        assert reason(answer) == (1, -32002, "refused", "not_now")
        assert answer["error"]["message"] == "not now"


@pytest.mark.parametrize("method", ["break", "waiting/break", "unencodable"])
async def test_a_mistake_is_answered_with_the_incident_it_is_logged_under(
    connect: Connect, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    async with connect(Desk()) as (_, client):
        client.ask(1, method)
        answer = await client.next()
        client.ask(2, "echo")
        assert await client.next() == result(2, {})
    assert reason(answer) == (1, -32603, "internal", "unexpected")
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert answer["error"]["data"]["incident"] in record.getMessage()
    assert record.exc_info is not None


async def test_requests_that_wait_run_together_and_are_answered_as_they_end(
    connect: Connect,
) -> None:
    desk = Desk()
    async with connect(desk) as (_, client):
        client.ask(1, "wait/a")
        client.ask(2, "wait/b")
        client.ask(3, "echo")
        assert await client.next() == result(3, {})
        desk.let_go("b")
        assert await client.next() == result(2, {"name": "b"})
        desk.let_go("a")
        assert await client.next() == result(1, {"name": "a"})


async def test_a_withdrawn_request_gets_one_answer(connect: Connect) -> None:
    desk = Desk()
    async with connect(desk) as (_, client):
        client.ask(1, "wait/a")
        await turns()
        client.withdraw(1)
        client.withdraw(1)
        assert reason(await client.next()) == (1, -32800, "cancelled", "withdrawn")
        client.withdraw(1)
        client.withdraw("unknown")
        client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": None}})
        client.ask(2, "echo")
        assert await client.next() == result(2, {})
    assert desk.stopped == ["a"]
    assert len(client.received) == 2


async def test_a_request_withdrawn_in_the_same_breath_gets_one_answer(connect: Connect) -> None:
    async with connect(Desk()) as (_, client):
        client.ask(1, "wait/a")
        client.withdraw(1)
        client.ask(2, "echo")
        answers = [await client.next(), await client.next()]
    assert answers[0] == result(2, {})
    assert reason(answers[1]) == (1, -32800, "cancelled", "withdrawn")


async def test_a_handler_that_ends_in_spite_of_being_withdrawn_is_believed(
    connect: Connect,
) -> None:
    async with connect(Desk()) as (_, client):
        client.ask(1, "stubborn/a")
        await turns()
        client.withdraw(1)
        assert await client.next() == result(1, "done all the same")


async def test_an_id_in_use_is_refused_and_free_again_afterwards(connect: Connect) -> None:
    desk = Desk()
    async with connect(desk) as (_, client):
        client.ask(1, "wait/a")
        client.ask(1, "echo")
        assert reason(await client.next()) == (1, -32600, "invalid", "duplicate_id")
        desk.let_go("a")
        assert await client.next() == result(1, {"name": "a"})
        client.ask(1, "echo")
        assert await client.next() == result(1, {})
    assert desk.seen == ["wait/a", "echo"]


async def test_requests_without_a_name_do_not_stand_in_each_others_way(connect: Connect) -> None:
    desk = Desk()
    async with connect(desk) as (_, client):
        client.ask(None, "wait/a")
        client.ask(None, "wait/b")
        await turns()
        desk.let_go("b")
        assert await client.next() == result(None, {"name": "b"})
        desk.let_go("a")
        assert await client.next() == result(None, {"name": "a"})


async def test_a_batch_is_answered_in_one_frame_when_all_are_done(connect: Connect) -> None:
    desk = Desk()
    async with connect(desk) as (_, client):
        client.send(
            [
                {"jsonrpc": "2.0", "id": 1, "method": "wait/a"},
                {"jsonrpc": "2.0", "method": "notice"},
                {"jsonrpc": "2.0", "id": 2, "method": "echo"},
                5,
                {"jsonrpc": "2.0", "id": 3, "method": "nothing"},
                {"jsonrpc": "2.0", "id": 1, "method": "echo"},
                {"jsonrpc": "2.0", "id": "s9", "result": 1},
            ]
        )
        client.ask(9, "echo")
        assert await client.next() == result(9, {})
        desk.let_go("a")
        answers = await client.next()
        assert answers[0] == result(1, {"name": "a"})
        assert answers[1] == result(2, {})
        assert reason(answers[2]) == (None, -32600, "invalid", "not_an_object")
        assert (answers[3]["id"], answers[3]["error"]["code"]) == (3, -32601)
        assert reason(answers[4]) == (1, -32600, "invalid", "duplicate_id")
        assert len(answers) == 5


async def test_a_batch_of_notifications_gets_no_answer(connect: Connect) -> None:
    async with connect(Desk()) as (_, client):
        client.send([{"jsonrpc": "2.0", "method": "a"}, {"jsonrpc": "2.0", "method": "b"}])
        client.ask(1, "echo")
        assert await client.next() == result(1, {})


async def test_a_request_of_a_batch_can_be_withdrawn(connect: Connect) -> None:
    async with connect(Desk()) as (_, client):
        client.send([{"jsonrpc": "2.0", "id": 1, "method": "wait/a"}])
        await turns()
        client.withdraw(1)
        [answer] = await client.next()
        assert reason(answer) == (1, -32800, "cancelled", "withdrawn")


@pytest.mark.parametrize("method", ["size/500", "waiting/size/500"])
async def test_an_answer_that_is_too_large_becomes_an_error(connect: Connect, method: str) -> None:
    async with connect(Desk(), limits=Limits(outbound_bytes=400)) as (peer, client):
        client.ask(1, method)
        answer = await client.next()
        assert reason(answer) == (1, -32003, "overfull", "response_too_large")
        assert answer["error"]["data"]["limitBytes"] == 400
        with pytest.raises(RpcError) as caught:
            peer.notify("n", {"text": "x" * 500})
        assert (caught.value.data or {})["reason"] == "message_too_large"
        peer.outbound_limit_bytes = 1000
        client.ask(2, method)
        assert await client.next() == result(2, "x" * 500)


async def test_a_message_that_is_too_long_is_skipped_and_answered(connect: Connect) -> None:
    async with connect(Desk(), limits=Limits(inbound_bytes=1000)) as (_, client):
        client.ask(1, "echo", {"text": "x" * 200_000})
        client.ask(2, "echo", {"text": "y" * 900})
        answer = await client.next()
        assert reason(answer) == (1, -32003, "overfull", "message_too_long")
        assert answer["error"]["data"]["limitBytes"] == 1000
        assert await client.next() == result(2, {"text": "y" * 900})


async def test_nesting_too_deep_is_answered(connect: Connect) -> None:
    async with connect(Desk()) as (_, client):
        client.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"echo","params":%b%b}\n'
                          % (b"[" * 50_000, b"]" * 50_000))  # fmt: skip
        client.ask(2, "echo")
        assert reason(await client.next()) == (1, -32600, "invalid", "nested_too_deep")
        assert await client.next() == result(2, {})


async def test_too_many_in_flight_are_refused_unstarted_and_quick_ones_still_answered(
    connect: Connect,
) -> None:
    desk = Desk()
    async with connect(desk, limits=Limits(in_flight=2, retry_after_ms=70)) as (_, client):
        for name in (1, 2, 3):
            client.ask(name, f"wait/{name}")
        client.ask(4, "echo")
        answer = await client.next()
        assert reason(answer) == (3, -32003, "overfull", "too_many_in_flight")
        assert answer["error"]["data"]["retryAfterMs"] == 70
        assert await client.next() == result(4, {})
        desk.let_go("1")
        assert await client.next() == result(1, {"name": "1"})
        client.ask(5, "wait/5")
        desk.let_go("5")
        assert await client.next() == result(5, {"name": "5"})


async def test_what_is_told_before_an_answer_leaves_before_it(connect: Connect) -> None:
    def dispatch(request: Request, peer: Peer) -> Any:
        peer.notify("first", {"a": 1})
        peer.notify("second", msgspec.Raw(b'{"b":2}'))
        peer.progress("token", "report", "half", 0.5)
        return "answer"

    async with connect(dispatch) as (_, client):
        client.ask(1, "any")
        assert [await client.next() for _ in range(4)] == [
            {"jsonrpc": "2.0", "method": "first", "params": {"a": 1}},
            {"jsonrpc": "2.0", "method": "second", "params": {"b": 2}},
            {
                "jsonrpc": "2.0",
                "method": "$/progress",
                "params": {
                    "token": "token",
                    "value": {"kind": "report", "message": "half", "fraction": 0.5},
                },
            },
            result(1, "answer"),
        ]


async def test_a_client_that_does_not_read_is_not_read_from(connect: Connect) -> None:
    desk = Desk()
    async with connect(desk, outbox_limit_bytes=100_000) as (peer, client):
        client.transport.pause()
        for name in range(1000):
            client.ask(name, "size/10000")
        await turns()
        assert len(desk.seen) < 30
        assert peer.is_full
        assert peer.is_pressed
        client.transport.resume()
        for name in range(1000):
            assert await client.next() == result(name, "x" * 10_000)
        with anyio.fail_after(5):
            await peer.wait_until_free()
        assert not peer.is_full


async def test_the_end_of_input_is_told_and_what_runs_is_still_answered(connect: Connect) -> None:
    desk = Desk()
    async with connect(desk) as (peer, client):
        client.ask(1, "wait/a")
        client.send_bytes(b'{"jsonrpc":"2.0","id":2,"method":"echo"}')
        await turns()
        client.end_input()
        assert await peer.wait_until_ended() == "eof"
        assert await client.next() == result(2, {})
        assert await peer.drain(timeout_s=0) is False
        desk.let_go("a")
        assert await peer.drain(timeout_s=5) is True
        assert await client.next() == result(1, {"name": "a"})


async def test_what_still_waits_at_the_close_is_answered_as_cancelled(connect: Connect) -> None:
    desk = Desk()
    async with connect(desk) as (peer, client):
        client.ask(1, "wait/a")
        await turns()
        client.ask(2, "wait/b")
        client.ask(3, "wait/c")
        while len(desk.seen) < 3:
            await anyio.lowlevel.checkpoint()
    with anyio.fail_after(5):
        await client.is_at_end.wait()
    assert sorted(reason(answer) for answer in client.received) == [
        (1, -32800, "cancelled", "closing"),
        (2, -32800, "cancelled", "closing"),
        (3, -32800, "cancelled", "closing"),
    ]
    assert peer.ended == "stopped"


async def test_stopping_to_read_leaves_what_was_read_alone(connect: Connect) -> None:
    desk = Desk()
    async with connect(desk) as (peer, client):
        client.ask(1, "wait/a")
        await turns()
        peer.stop_reading()
        client.ask(2, "echo")
        assert await peer.wait_until_ended() == "stopped"
        desk.let_go("a")
        assert await client.next() == result(1, {"name": "a"})
    assert desk.seen == ["wait/a"]


async def test_a_client_that_is_gone_ends_the_connection_as_broken(connect: Connect) -> None:
    async with connect(Desk()) as (peer, client):
        client.transport.pause()
        client.ask(1, "echo")
        await turns()
        near_input_open = peer.ended is None
        client.transport._incoming.abandon()  # Its reading end only.
        peer.notify("n")
        assert near_input_open
        assert await peer.wait_until_ended() == "broken"
        peer.notify("goes nowhere")


async def test_running_serves_until_the_end_of_input() -> None:
    near, far = joined()
    received: list[bytes] = []
    far.start(received.append, lambda: None)
    far.outbox.put(frame(b'{"jsonrpc":"2.0","id":1,"method":"echo"}', Framing.LINES))
    await far.outbox.flush()
    far.outbox.close()
    with anyio.fail_after(5):
        assert await Peer(near, Desk()).run() == "eof"
    await turns()
    assert b"".join(received) == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


async def test_a_client_with_headers_is_answered_with_headers() -> None:
    near, far = joined()
    received: list[bytes] = []
    far.start(received.append, lambda: None)
    far.outbox.put(frame(b'{"jsonrpc":"2.0","id":1,"method":"echo"}', Framing.HEADERS))
    await far.outbox.flush()
    far.outbox.close()
    with anyio.fail_after(5):
        await Peer(near, Desk()).run()
    await turns()
    assert b"".join(received) == b'Content-Length: 36\r\n\r\n{"jsonrpc":"2.0","id":1,"result":{}}'


async def test_a_handshake_before_the_loop_hands_over_what_it_read(connect: Connect) -> None:
    decoder = FrameDecoder()
    stream = b'{"jsonrpc":"2.0","id":%d,"method":"echo"}\n'
    first, *rest = decoder.feed(stream % 1 + stream % 2 + (stream % 3)[:20])
    assert json.loads(bytes(first))["id"] == 1  # type: ignore[arg-type]
    async with connect(Desk(), decoder=decoder, received=rest) as (_, client):
        client.send_bytes((stream % 3)[20:])
        assert [await client.next(), await client.next()] == [result(2, {}), result(3, {})]


async def test_a_handler_that_asks_the_client_does_not_hold_up_its_answer(
    connect: Connect,
) -> None:
    def dispatch(request: Request, peer: Peer) -> Awaitable[Any]:
        return peer.request("ui/confirm", {"text": "sure?"}, timeout_s=5)

    async with connect(dispatch) as (_, client):
        client.ask(1, "any")
        asked = await client.next()
        assert asked == {
            "jsonrpc": "2.0",
            "id": "s1",
            "method": "ui/confirm",
            "params": {"text": "sure?"},
        }
        client.send(result("s1", True))
        assert await client.next() == result(1, True)


async def test_cancelling_the_owner_of_a_peer_closes_it() -> None:
    near, far = joined()
    received: list[bytes] = []
    ended = anyio.Event()
    far.start(received.append, ended.set)
    far.outbox.put(b'{"jsonrpc":"2.0","id":1,"method":"wait/a"}\n')
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Peer(near, Desk()).run)
            await turns()
            tasks.cancel_scope.cancel()
        await ended.wait()
    assert json.loads(received[0])["error"]["code"] == -32800
