"""A small HTTP server on loopback that says what a test tells it to, byte for byte."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
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

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take requests of one connection until it ends."""
        self.connections += 1
        number = self.connections
        try:
            while await self._exchange(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
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
        self.asked.append(Asked(first.split(" ")[1], headers, body, number))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        told = {**answer.headers, "transfer-encoding": "chunked"}
        lines = [f"{name}: {value}" for name, value in told.items()]
        writer.write("\r\n".join([f"HTTP/1.1 {answer.status} X", *lines, "", ""]).encode())
        for chunk in filter(None, answer.chunks):
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()
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
    served = Serving(answers)
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
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
