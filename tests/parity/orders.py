"""Recorded orders of events, played again: the same words, replies and tools at the same moments.

A model says what the recorded one said, delta by delta, and waits where a command came; tools end
in the recorded order. What is told then is written in the words of the recordings.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from pi_rpc.core import events
from pi_rpc.core.errors import Busy, Failure
from pi_rpc.core.events import Event
from pi_rpc.core.messages import (
    ToolCall,
    ToolDeclaration,
    ToolOutcome,
    Usage,
    text_block,
)
from pi_rpc.core.ports.tools import CallContext, Effect
from pi_rpc.core.reply import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    ReplyEnded,
    ReplyError,
    ReplyStarted,
)
from pi_rpc.core.retrying import kind_of
from pi_rpc.session.condensing import compact, configure
from pi_rpc.session.host import Host
from pi_rpc.session.prompting import (
    abort,
    abort_retry,
    clear_queues,
    configure_queues,
    enqueue,
    prompt,
)
from pi_rpc.session.session import Session
from pi_rpc.session.shell import run_shell, stop_shells
from tests.parity.compactions import Compactions, End, RecordedSpeaker, Words, compactions_of
from tests.session.living import WAIT_S, Door, Ear, Part, Speaker

RECORDINGS = Path(__file__).parent / "recordings"

_UPDATE = re.compile(r"message_update (text|thinking|toolcall)_(start|delta|end)\[(\d+)\]")
_ERROR = re.compile(r"error='(.*)'\Z")
_KIND = {"text": "text", "thinking": "thinking", "toolcall": "toolCall"}


class Order(msgspec.Struct):
    """One scenario, read."""

    lines: list[str | Door]
    """Commands with `> `, events without; a door where a reply or a tool is held for a command."""
    replies: list[list[Part]]
    tools: dict[str, "RecordedTool"]
    compactions: Compactions | None = None

    def speaker(self) -> Speaker:
        """The model that says the replies."""
        if self.compactions is None:
            return Speaker(*self.replies)
        return RecordedSpeaker(self.replies, self.compactions)


class RecordedTool:
    """A tool that ends when and as the recorded one did."""

    effect: Effect = "workspace"
    sequential = False

    def __init__(self, name: str) -> None:
        self.declaration = ToolDeclaration(name, f"the tool {name}", {"type": "object"})
        self.ends: dict[str, anyio.Event] = {}
        self.is_error: dict[str, bool] = {}
        self.results: dict[str, str] = {}

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        ended = self.ends.setdefault(call.id, anyio.Event())
        async with anyio.create_task_group() as tasks:

            async def heed_stop() -> None:
                await context.stop.wait()
                ended.set()

            tasks.start_soon(heed_stop)
            await ended.wait()
            tasks.cancel_scope.cancel()
        text = self.results.get(call.id, "done")
        return ToolOutcome([text_block(text)], self.is_error.get(call.id, True))


def read(scenario: str) -> Order:
    """The order of a scenario, with the replies and tools it was made of."""
    folder = RECORDINGS / scenario
    text = (folder / "order.txt").read_text(encoding="utf-8")
    raw = [line for line in text.split("\n") if line and not line.startswith(("<", "# exit"))]
    commands = _whole_commands(folder, [line for line in raw if line.startswith(">")])
    called = _tool_names(raw)
    tools = {name: RecordedTool(name) for name in set(called) if name != "nosuchtool"}
    order = Order([], [], tools, compactions_of(folder))
    words = Words(folder / "session.jsonl") if order.compactions is not None else None
    ends = iter(order.compactions.ends if order.compactions is not None else ())
    parts: list[Part] | None = None
    stop = ""
    for line in (line.removeprefix("  ") for line in raw):
        if line.startswith((">", "#")):
            if parts is not None and not isinstance(parts[-1], Door):
                door = Door()
                parts.append(door)
                order.lines.append(door)
            if line.startswith(">"):
                order.lines.append(next(commands))
            continue
        if line.startswith("compaction_end"):
            order.lines.append(_compaction_end(line, next(ends)))
            continue
        if line.startswith("message_start assistant"):
            parts, stop = [ReplyStarted()], line
        elif parts is not None:
            update = _UPDATE.match(line)
            if update:
                number = len(order.replies)
                if words is not None and update[1] == "toolcall" and update[2] == "start":
                    result = words.results.pop(0)
                    tools[called[0]].results[f"call-{number}-{update[3]}"] = result
                parts += _parts(update, called, number, words)
            elif line.startswith("message_end assistant"):
                _end(parts, stop, line, words, len(order.replies))
                # Of a run stopped before it asked, nobody was asked.
                if "stop=aborted" not in stop:
                    order.replies.append(parts)
                parts = None
        order.lines.append(line)
    return order


def _tool_names(lines: list[str]) -> list[str]:
    """The names of all calls, in the order they were made."""
    return [line.split()[1] for line in lines if line.startswith("  tool_execution_start")]


def _whole_commands(folder: Path, cut: list[str]) -> Iterator[str]:
    """The commands with what the lines of the order have cut short."""
    path = folder / "commands.jsonl"
    if not path.exists():
        yield from cut
        return
    for line, stored in zip(cut, path.read_bytes().splitlines(), strict=True):
        told = json.loads(stored)
        whole = f"> {told.pop('type')} {json.dumps(told)}"
        assert whole.startswith(line)
        yield whole


def _compaction_end(line: str, end: End) -> str:
    reason = re.search(r'"reason": "(\w+)"', line)
    assert reason is not None
    return end.line(reason[1])


def _parts(
    update: re.Match[str], called: list[str], number: int, words: Words | None
) -> Iterator[Part]:
    kind, step, index = update[1], update[2], int(update[3])
    if step == "start" and kind == "toolcall":
        yield BlockStarted(index, "toolCall", f"call-{number}-{index}", called.pop(0))
    elif step == "start":
        yield BlockStarted(index, "text" if kind == "text" else "thinking")
    elif step == "delta":
        text = "" if kind == "toolcall" else "word "
        yield BlockDelta(index, text if words is None else words.spoken(number, index))
    else:
        yield BlockEnded(index)


def _end(parts: list[Part], start: str, end: str, words: Words | None, number: int) -> None:
    stop = re.search(r"stop=(\w+)", end)
    assert stop is not None
    usage = Usage() if words is None else words.usage(number)
    match stop[1]:
        case "aborted":
            assert "stop=aborted" in start or isinstance(parts[-1], Door), "nobody stops this"
        case "error":
            told = _ERROR.search(end)
            text = told[1] if told else ""
            if words is not None:
                text = words.error(number)
            error = ReplyError(kind_of(None, None, text), text)
            parts.append(ReplyEnded("error", usage, error))
        case "stop" | "length" | "toolUse" as kind:
            parts.append(ReplyEnded(kind, usage))


class Playing:
    """Plays an order against a session."""

    def __init__(self, order: Order, host: Host, session: Session, speaker: Speaker) -> None:
        self._order = order
        self._speaker = speaker
        self._compacted: anyio.Event | None = None
        """Set when the compaction that was asked for is over; None before one was."""
        self._host = host
        self._session = session
        self._ear = Ear(session.hub)
        self._seen: dict[str, int] = {}

    async def play(self) -> list[Event]:
        """Everything that was told."""
        held: Door | None = None
        async with anyio.create_task_group() as tasks:
            for line in self._order.lines:
                if isinstance(line, Door):
                    held = line
                    await held.until_reached()
                elif line.startswith(">"):
                    await self._until_told()
                    await self._command(line, tasks)
                else:
                    if held is not None and not line.startswith(("queue_update", "bash_")):
                        # What a stop ends goes no further.
                        if "stop=aborted" not in line:
                            held.opened.set()
                        held = None
                    await self._event(line)
            await self._until_told()
        return self._ear.events

    async def _event(self, line: str) -> None:
        name = line.split(maxsplit=1)[0]
        self._seen[name] = self._seen.get(name, 0) + 1
        if name == "compaction_end" and self._compacted is not None:
            if "aborted=False" in line and isinstance(self._speaker, RecordedSpeaker):
                self._speaker.door.opened.set()
            with anyio.fail_after(WAIT_S):
                await self._compacted.wait()
            self._compacted = None
        if name == "tool_execution_end":
            await self._until_told("tool_execution_start")
            self._end_tool(line)
            await self._until_told("tool_execution_end")

    def _end_tool(self, line: str) -> None:
        """Let the oldest running call of this tool end, as it ended."""
        name, is_error = line.split()[1], "isError=True" in line
        ended = {event.call_id for event in self._ear.of(events.ToolEnded)}
        tool = self._order.tools.get(name)
        if tool is None:
            return
        for event in self._ear.of(events.ToolStarted):
            if event.name == name and event.call_id not in ended:
                tool.is_error.setdefault(event.call_id, is_error)
                tool.ends.setdefault(event.call_id, anyio.Event()).set()
                return

    async def _until_told(self, *names: str) -> None:
        kinds: dict[str, type[Event]] = {
            "tool_execution_start": events.ToolStarted,
            "tool_execution_end": events.ToolEnded,
            "auto_retry_start": events.RetryScheduled,
            "agent_settled": events.RunSettled,
            "bash_execution_update": events.ShellPrinted,
        }
        for name, kind in kinds.items():
            if not names or name in names:
                least = min(1, self._seen.get(name, 0)) if name.startswith("bash") else None
                count = self._seen.get(name, 0) if least is None else least
                await self._ear.until_true(lambda k=kind, n=count: len(self._ear.of(k)) >= n)  # type: ignore[misc]

    async def _command(self, line: str, tasks: Any) -> None:
        _, name, *rest = line.split(" ", 2)
        told: dict[str, Any] = json.loads(rest[0]) if rest else {}
        session, text = self._session, str(told.get("message", ""))
        match name:
            case "prompt":
                self._prompt(
                    text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), told
                )
            case "steer":
                enqueue(session, "steering", text)
            case "follow_up":
                enqueue(session, "followUp", text)
            case "abort":
                tasks.start_soon(abort, session)
            case "abort_retry":
                run = session.run
                await self._ear.until_true(lambda: run is not None and run.pause is not None)
                tasks.start_soon(abort_retry, session)
            case "clear_queue":
                clear_queues(session)
            case "set_steering_mode":
                configure_queues(session, told["mode"], None)
            case "set_follow_up_mode":
                configure_queues(session, None, told["mode"])
            case "bash":
                if "sleep" in told["command"]:
                    count = len(self._ear.of(events.ShellPrinted))
                    tasks.start_soon(run_shell, session, told["command"])
                    await self._ear.until(events.ShellPrinted, count + 1)
                else:
                    is_private = told.get("excludeFromContext", False)
                    with anyio.fail_after(WAIT_S):
                        await run_shell(session, told["command"], is_private=is_private)
            case "set_auto_compaction":
                configure(session, enabled=told["enabled"])
            case "compact":
                await self._compact(tasks, told.get("customInstructions", ""))
            case "abort_bash":
                await stop_shells(session)

    async def _compact(self, tasks: Any, instructions: str) -> None:
        """Ask for a compaction, and go on when it is over or its summary is held."""
        assert isinstance(self._speaker, RecordedSpeaker)
        speaker, over = self._speaker, anyio.Event()
        self._compacted = over

        async def ask() -> None:
            # What is refused or fails is told too.
            with suppress(Failure):
                await compact(self._session, self._host.tasks, instructions)
            over.set()

        is_held = speaker.holds_next
        tasks.start_soon(ask)
        if is_held:
            await self._ear.until_true(lambda: self._session.is_compacting)
            await speaker.door.until_reached()
        else:
            with anyio.fail_after(WAIT_S):
                await over.wait()

    def _prompt(self, text: str, told: dict[str, Any]) -> None:
        match told.get("streamingBehavior"):
            case None if self._session.run is not None or self._session.live_pass is not None:
                with pytest.raises(Busy):
                    prompt(self._session, self._host.tasks, text)
            case "followUp":
                prompt(self._session, self._host.tasks, text, when_busy="followUp")
            case "steer":
                prompt(self._session, self._host.tasks, text, when_busy="steer")
            case _:
                images = told.get("images", ())
                prompt(self._session, self._host.tasks, text, images)
