"""The offline model: a provider that needs no key and no network, and says the same each time.

With a script it says what the script says; without one it does what it is asked in plain words, as
far as `offline.py` understands them. It reports its script position with the start of each reply.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence

import anyio
import anyio.lowlevel
import msgspec

from pi_rpc.core.errors import Invalid
from pi_rpc.core.messages import JsonObject, Usage
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.reply import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Piece,
    ReplyEnded,
    ReplyError,
    ReplyStarted,
)
from pi_rpc.core.retrying import kind_of
from pi_rpc.core.tokens import estimate, tokens_of_units
from pi_rpc.providers.offline import answer
from pi_rpc.providers.offline_summary import asks_for_summary, notes_on
from pi_rpc.providers.script import (
    EXHAUSTED,
    Script,
    ScriptedError,
    ScriptedReply,
    last_user_text,
    reply_for,
    script_from_object,
)

BATCH_PIECES = 256
"""How many pieces go together when nothing delays them: the cost of a batch vanishes among them."""

ESTIMATED_MESSAGES = 200
"""How many of the newest messages are weighed for a usage nobody wrote down; older ones count as
their mean, so that a long history need not be decoded for it."""

_KIND_NAMES = frozenset(
    {
        *("invalid_request", "unauthorized", "rate_limited", "overloaded", "quota", "refusal"),
        *("overflow", "server", "network", "cut", "timeout", "unknown"),
    }
)


class ScriptedProvider:
    """Answers from the daemon's script, or the request's own, or by understanding plain words."""

    api = "offline"

    def __init__(self, script: Script | None = None) -> None:
        self._script = script
        # The script of a session comes with each of its requests as the same object.
        self._converted: tuple[JsonObject, Script] | None = None

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Sequence[Piece], None]:
        """Stream the reply: one batch a delta when the script delays them, else large batches."""
        try:
            reply, position = self._reply_to(request)
        except Invalid as invalid:
            yield [ReplyEnded("error", error=ReplyError("invalid_request", invalid.message))]
            return
        pieces = pieces_of(reply, position, request.messages)
        if reply.delay_ms:
            for piece in pieces:
                if type(piece) is BlockDelta:
                    await anyio.sleep(reply.delay_ms / 1000)
                yield [piece]
            return
        for batch in _batches(pieces):
            # The only wait of a reply without delays: others must get their turn in a long one.
            await anyio.lowlevel.checkpoint()
            yield batch

    def _reply_to(self, request: ModelRequest) -> tuple[ScriptedReply, int]:
        script = self._script
        if request.script is not None:
            if self._converted is None or self._converted[0] is not request.script:
                self._converted = (request.script, script_from_object(request.script))
            script = self._converted[1]
        position, messages = request.script_position, request.messages
        if script is None:
            if asks_for_summary(messages):
                return ScriptedReply(text=notes_on(messages)), position + 1
            return answer(messages), position + 1
        if script.enforce_window and script.context_window:
            tokens = sum(map(estimate, messages))
            if tokens > script.context_window:
                return _too_long(tokens, script.context_window), position
        if not asks_for_summary(messages):
            return reply_for(script, position, messages)
        if script.summaries == "byRule":
            return ScriptedReply(text=notes_on(messages)), position
        reply, position = reply_for(script, position, messages)
        if reply is EXHAUSTED or (reply is script.default and reply.echo):
            reply = ScriptedReply(text=notes_on(messages))
        return reply, position


def _too_long(tokens: int, window: int) -> ScriptedReply:
    told = f"The context has about {tokens} tokens; the window is {window}."
    return ScriptedReply(error=ScriptedError(status=400, type="overflow", message=told))


def pieces_of(
    reply: ScriptedReply, position: int, messages: Sequence[JsonObject]
) -> Iterator[Piece]:
    """Every piece of a reply, in order; without an end when the script cuts it."""
    yield ReplyStarted(script_position=position)
    left = reply.cut_after
    for piece in _block_pieces(reply, position, messages):
        if left is not None and type(piece) is BlockDelta:
            if left == 0:
                break
            left -= 1
        yield piece
    if left is not None and reply.error is None:
        return
    usage = _usage_of(reply, messages)
    if reply.error is not None:
        yield ReplyEnded("error", usage, _error_from(reply.error))
    else:
        yield ReplyEnded(reply.stop or ("toolUse" if reply.tools else "stop"), usage)


def _block_pieces(
    reply: ScriptedReply, position: int, messages: Sequence[JsonObject]
) -> Iterator[Piece]:
    index = 0
    if reply.thinking:
        yield BlockStarted(index, "thinking")
        yield from _deltas(index, reply.thinking, reply.chunk)
        yield BlockEnded(index)
        index += 1
    text = reply.text + (last_user_text(messages) if reply.echo else "")
    if text or reply.repeat is not None:
        yield BlockStarted(index, "text")
        yield from _deltas(index, text, reply.chunk)
        if reply.repeat is not None:
            delta = BlockDelta(index, reply.repeat.text)
            for _ in range(reply.repeat.count):
                yield delta
        yield BlockEnded(index)
        index += 1
    for number, tool in enumerate(reply.tools):
        # Unlike the position, the length of the context tells apart a session and what forked off.
        call_id = tool.id or f"call_{position}_{len(messages)}_{number}"
        args = tool.args if isinstance(tool.args, str) else msgspec.json.encode(tool.args).decode()
        yield BlockStarted(index, "toolCall", call_id, tool.name)
        yield from _deltas(index, args, reply.chunk)
        yield BlockEnded(index)
        index += 1


def _deltas(index: int, text: str, chunk: int) -> Iterator[Piece]:
    for start in range(0, len(text), chunk):
        yield BlockDelta(index, text[start : start + chunk])


def _batches(pieces: Iterator[Piece]) -> Iterator[list[Piece]]:
    batch: list[Piece] = []
    for piece in pieces:
        batch.append(piece)
        if len(batch) == BATCH_PIECES:
            yield batch
            batch = []
    if batch:
        yield batch


def _usage_of(reply: ScriptedReply, messages: Sequence[JsonObject]) -> Usage:
    usage = reply.usage
    if usage is not None:
        return Usage(usage.input, usage.output, usage.cache_read, usage.cache_write)
    count = len(messages)
    weighed = min(count, ESTIMATED_MESSAGES)
    total = sum(estimate(messages[index]) for index in range(count - weighed, count))
    if count > weighed:
        total = total * count // weighed
    units = len(reply.text) + len(reply.thinking)
    if reply.echo:
        units += len(last_user_text(messages))
    if reply.repeat is not None:
        units += len(reply.repeat.text) * reply.repeat.count
    units += sum(len(tool.name) + len(msgspec.json.encode(tool.args)) for tool in reply.tools)
    return Usage(input=total, output=tokens_of_units(units))


def _error_from(error: ScriptedError) -> ReplyError:
    if error.type in _KIND_NAMES:
        kind = error.type
    else:
        kind = kind_of(error.status, error.type, error.message)
    return ReplyError(kind, error.message, error.status, error.type, error.retry_after_ms)
