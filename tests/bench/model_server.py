"""A model server on loopback: answers Anthropic Messages requests at once.

``Say N words.`` as the last of a prompt gives N text deltas, ``Loop N turns.`` a call of `read`
until N results have come, anything else one delta. It runs as a process of its own, so that its
work is not the measuring process's.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"input_tokens": 100, "output_tokens": 1}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted"}


def reply(words: int) -> bytes:
    """The whole event stream of an answer of ``words`` deltas."""
    message: dict[str, Any] = {**MESSAGE, "content": [], "stop_reason": None, "usage": USAGE}
    delta = {"type": "text_delta", "text": "tok "}
    return b"".join(
        [
            _event("message_start", message=message),
            _event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            _event("content_block_delta", index=0, delta=delta) * words,
            _event("content_block_stop", index=0),
            _event("message_delta", delta={"stop_reason": "end_turn"}, usage=USAGE),
            _event("message_stop"),
        ]
    )


def call(number: int) -> bytes:
    """The whole event stream of an answer that reads a file."""
    message: dict[str, Any] = {**MESSAGE, "content": [], "stop_reason": None, "usage": USAGE}
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"path": "note.txt"}'}
    return b"".join(
        [
            _event("message_start", message=message),
            _event("content_block_start", index=0, content_block=block),
            _event("content_block_delta", index=0, delta=delta),
            _event("content_block_stop", index=0),
            _event("message_delta", delta={"stop_reason": "tool_use"}, usage=USAGE),
            _event("message_stop"),
        ]
    )


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or the client's delayed acknowledgement costs 40 ms an answer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        asked = re.findall(rb"(Say|Loop) (\d+) (?:words|turns)", body)
        what, count = asked[-1] if asked else (b"Say", b"1")
        done = body.count(b'"tool_result"')
        if what == b"Loop":
            answer = call(done) if done < int(count) else reply(1)
        else:
            answer = reply(int(count))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def model_server() -> Iterator[str]:
    """Its address while it runs."""
    process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
