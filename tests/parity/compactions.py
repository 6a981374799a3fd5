"""What a recording of compactions needs beside its order: limits, words, and summaries.

When a context is compacted depends on how long everything is that was said, so in these scenarios
the model says the recorded words with the recorded usage, and tools give the recorded results.
"""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pi_rpc.core.messages import Usage, text_of
from pi_rpc.core.ports.providers import ModelListing, ModelRequest
from pi_rpc.core.reply import BlockEnded, BlockStarted, Piece, ReplyEnded, ReplyError, ReplyStarted
from pi_rpc.core.retrying import kind_of
from pi_rpc.core.thresholds import CompactionSettings
from tests.session.living import Door, Part, Speaker, said

NOTES = "## Goal\nNotes of what was said."
"""A summary of which the recording does not say what it was."""


class Summary(msgspec.Struct, frozen=True):
    """How the model answers one request for a summary."""

    text: str = ""
    stop: str = "stop"
    error: str | None = None
    call: str | None = None
    """A tool that is called instead."""
    held: bool = False
    """Whether the answer waits until the recorded compaction ends."""


class End(msgspec.Struct, frozen=True, rename="camel"):
    """What Pi told at the end of a compaction."""

    stored: bool
    aborted: bool
    will_retry: bool

    def line(self, reason: str) -> str:
        """The end in one line."""
        told = f"stored={self.stored} aborted={self.aborted} willRetry={self.will_retry}"
        return f"compaction_end {reason} {told}"


class Compactions(msgspec.Struct, frozen=True, rename="camel"):
    """`compactions.json` of a scenario."""

    context_window: int
    max_tokens: int
    reserve_tokens: int
    keep_recent_tokens: int
    summaries: list[Summary]
    ends: list[End]

    @property
    def settings(self) -> CompactionSettings:
        """What the session goes by."""
        return CompactionSettings(
            reserve_tokens=self.reserve_tokens, keep_recent_tokens=self.keep_recent_tokens
        )


class Words:
    """What was said in a recorded session, each role in its order."""

    def __init__(self, session: Path) -> None:
        messages = [
            entry["message"]
            for line in session.read_bytes().splitlines()
            if (entry := msgspec.json.decode(line))["type"] == "message"
        ]
        self._assistant = [one for one in messages if one["role"] == "assistant"]
        self.results = [text_of(one) for one in messages if one["role"] == "toolResult"]

    def spoken(self, number: int, index: int) -> str:
        """The text of a block of the `number`th reply, or its arguments."""
        block: dict[str, Any] = self._assistant[number]["content"][index]
        if block["type"] == "toolCall":
            return msgspec.json.encode(block["arguments"]).decode()
        return str(block.get("text", block.get("thinking", "")))

    def error(self, number: int) -> str:
        """The whole failure of the `number`th reply."""
        return str(self._assistant[number].get("errorMessage", ""))

    def usage(self, number: int) -> Usage:
        """What the `number`th reply used."""
        used = self._assistant[number]["usage"]
        return Usage(used["input"], used["output"], used["cacheRead"], used["cacheWrite"])


class RecordedSpeaker(Speaker):
    """Says the recorded replies, and summaries when it is asked for them."""

    def __init__(self, replies: Sequence[Sequence[Part]], recorded: Compactions) -> None:
        super().__init__(*replies)
        self._recorded = recorded
        self._summaries = list(recorded.summaries)
        self.door = Door()
        """Where the summary that is held waits."""

    @property
    def holds_next(self) -> bool:
        """Whether the next summary waits at the door."""
        return bool(self._summaries) and self._summaries[0].held

    def listing(self) -> list[ModelListing]:
        window, most = self._recorded.context_window, self._recorded.max_tokens
        return [ModelListing("speaker", "one", "one", window, most, False, True)]

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Sequence[Piece], None]:
        if request.is_single:
            self.replies.insert(0, self._summary())
        async for pieces in super().reply(request):
            yield pieces

    def _summary(self) -> list[Part]:
        summary = self._summaries.pop(0) if self._summaries else Summary(NOTES)
        if summary.error is not None:
            failed = ReplyError(kind_of(None, None, summary.error), summary.error)
            return [ReplyStarted(), ReplyEnded("error", error=failed)]
        if summary.call is not None:
            call = BlockStarted(0, "toolCall", "call-summary", summary.call)
            return [ReplyStarted(), call, BlockEnded(0), ReplyEnded("toolUse")]
        parts = said(summary.text)
        parts[-1] = ReplyEnded("length" if summary.stop == "length" else "stop")
        if summary.held:
            parts.insert(-1, self.door)
        return parts


def compactions_of(folder: Path) -> Compactions | None:
    """What a scenario says of compactions; None when it has none."""
    path = folder / "compactions.json"
    return msgspec.json.decode(path.read_bytes(), type=Compactions) if path.exists() else None
