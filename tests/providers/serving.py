"""A small HTTP server on loopback that says what a test tells it to, byte for byte."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec


class Answer(msgspec.Struct, frozen=True):
    """One response: each chunk is written and drained by itself."""

    chunks: Sequence[bytes] = ()
    status: int = 200
    headers: dict[str, str] = msgspec.field(
        default_factory=lambda: {"content-type": "text/event-stream"}
    )
    hangs: bool = False
    """Whether nothing follows the chunks, not even the end."""
    waits: bool = False
    """Whether not even the head comes."""
    cuts: bool = False
    """Whether the connection ends without the end of the body."""


class Asked(msgspec.Struct, frozen=True):
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: Any
    connection: int


class Serving:
    """Answers in order, the last one again and again."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.asked: list[Asked] = []
        self.url = ""
        self.connections = 0
        self.left = asyncio.Event()
        """Set when a client went away before its answer was whole."""

    def answer_to(self, asked: Asked) -> Answer:
        """What a request gets."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def between_chunks(self) -> None:
        """Wait for nothing: the next chunk follows at once."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take requests of one connection until it ends."""
        self.connections += 1
        number = self.connections
        try:
            while await self._exchange(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        except asyncio.CancelledError:
            # The server ends while a client keeps its connection: nothing to tell anybody.
            pass
        finally:
            writer.close()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> bool:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return False
        first, *lines = head.decode().strip().split("\r\n")
        headers = {
            name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)
        }
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        body = json.loads(raw) if raw else None
        asked = Asked(first.split(" ")[1], headers, body, number)
        self.asked.append(asked)
        answer = self.answer_to(asked)
        if answer.waits:
            await reader.read(1)
            self.left.set()
            return False
        told = {**answer.headers, "transfer-encoding": "chunked"}
        lines = [f"{name}: {value}" for name, value in told.items()]
        writer.write("\r\n".join([f"HTTP/1.1 {answer.status} X", *lines, "", ""]).encode())
        for chunk in filter(None, answer.chunks):
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()
            await self.between_chunks()
        if answer.hangs:
            await reader.read(1)
            self.left.set()
            return False
        if answer.cuts:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[Serving]:
    """A server while the block runs."""
    async with listening(Serving(answers)) as served:
        yield served


@contextmanager
def served_beside(served: Serving) -> Iterator[None]:
    """The same in a thread of its own, for a test that waits in this one."""
    ready = threading.Event()
    ended: list[asyncio.Event] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        ended.append(asyncio.Event())
        async with listening(served):
            ready.set()
            await ended[0].wait()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    assert ready.wait(5), "the server did not start"
    try:
        yield
    finally:
        loops[0].call_soon_threadsafe(ended[0].set)
        thread.join(5)


@asynccontextmanager
async def listening(served: Serving) -> AsyncIterator[Serving]:
    """That server while the block runs."""
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0, backlog=1024)
    host, port = server.sockets[0].getsockname()[:2]
    served.url = f"http://{host}:{port}"
    try:
        yield served
    finally:
        server.close()


def sse(*events: Any, named: bool = False, done: bool = False) -> bytes:
    """Events as a stream's bytes; `named` also says each one's type as its name."""
    lines = []
    for event in events:
        if named:
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {json.dumps(event, ensure_ascii=False)}\n\n")
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()
