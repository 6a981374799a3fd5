"""A file, whole.

Promises
- The file is the old one or the new one, whatever happens in between.
- The text is written as it is given: UTF-8, no newline added, none converted.
- The details name both states by hash, so that a later look can tell whether the file moved on.
"""

import hashlib
from pathlib import Path

import anyio.to_thread

from pi_rpc.core.arguments import checked
from pi_rpc.core.errors import Invalid, Missing, Stopped
from pi_rpc.core.messages import JsonObject, ToolCall, ToolDeclaration, ToolOutcome, text_block
from pi_rpc.core.ports.tools import CallContext, Effect
from pi_rpc.tools.diff import diff_details, lines_of
from pi_rpc.tools.files import bytes_of, replaced, sha256_of
from pi_rpc.tools.paths import real_place, resolved
from pi_rpc.tools.queueing import TURNS, FileTurns

DIFF_SOURCE_BYTES_MAX = 128 * 1024
"""Largest file, before or after, of which a diff is made."""


class WriteTool:
    """Puts a text where a path points to."""

    effect: Effect = "workspace"
    sequential = False
    declaration = ToolDeclaration(
        name="write",
        description=(
            "Put text into a file, replacing all it had. Missing folders are made. To change a part"
            " of a file, use edit."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File, absolute or relative to the cwd"},
                "content": {"type": "string", "description": "The whole text"},
            },
            "required": ["path", "content"],
        },
    )

    def __init__(self, turns: FileTurns = TURNS) -> None:
        self._turns = turns

    async def place_of(self, arguments: JsonObject, cwd: Path) -> Path:
        """Where it leads."""
        return await real_place(str(arguments["path"]), cwd)

    async def preview(self, arguments: JsonObject, cwd: Path) -> JsonObject:
        """What it would change; of a large file, or one that is no text, only whether it is new."""
        content = encoded(arguments["content"], "content")

        def look() -> JsonObject:
            given = arguments["path"]
            return _preview(given, resolved(given, cwd), content)

        return await anyio.to_thread.run_sync(look)

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        """Raises Refused (`is_a_directory`, `permission_denied`), Outside and Stopped."""
        arguments = checked(call.arguments, self.declaration.parameters)
        given = arguments["path"]
        content = encoded(arguments["content"], "content")
        async with self._turns.turn_at(given, context.cwd) as path:
            if context.stop.is_set():
                raise Stopped("aborted", f"Stopped before {given} was written.")
            details = await anyio.to_thread.run_sync(_write, given, path, content)
        verb = "Created" if details["created"] else "Replaced"
        text = f"{verb} {given} ({len(content)} bytes)."
        return ToolOutcome(content=[text_block(text)], details=details)


def encoded(text: str, name: str) -> bytes:
    """UTF-8 bytes. Raises Invalid `not_unicode` for half a surrogate pair, which has none."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Invalid("not_unicode", f"{name} holds half a surrogate pair.") from error


def _write(given: str, path: Path, content: bytes) -> JsonObject:
    before_sha256 = _sha256_if_there(path)
    before = b""
    if before_sha256 is not None and path.stat().st_size <= DIFF_SOURCE_BYTES_MAX:
        before = bytes_of(path)
    replaced(path, content)
    details: JsonObject = {
        "created": before_sha256 is None,
        "bytes": len(content),
        "beforeSha256": before_sha256,
        "afterSha256": hashlib.sha256(content).hexdigest(),
    }
    if before_sha256 is not None:
        details |= _diff(given, before, content, before_sha256)
    return details


def _preview(given: str, path: Path, content: bytes) -> JsonObject:
    sha256 = _sha256_if_there(path)
    if sha256 is None:
        return {"created": True} | _diff(given, b"", content, hashlib.sha256(b"").hexdigest())
    if path.stat().st_size > DIFF_SOURCE_BYTES_MAX:
        return {"created": False}
    return {"created": False} | _diff(given, bytes_of(path), content, sha256)


def _sha256_if_there(path: Path) -> str | None:
    try:
        return sha256_of(path)
    except Missing:
        return None


def _diff(given: str, before: bytes, after: bytes, before_sha256: str) -> JsonObject:
    """The diff where both are small texts and the bytes compared are those of the hash."""
    if len(after) > DIFF_SOURCE_BYTES_MAX or hashlib.sha256(before).hexdigest() != before_sha256:
        return {}
    try:
        return diff_details(given, lines_of(before.decode()), lines_of(after.decode()))
    except UnicodeDecodeError:
        return {}
