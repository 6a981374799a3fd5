"""Recorded orders of events, played again: the same words, replies and tools at the same moments.

A model says what the recorded one said, delta by delta, and waits where a command came; tools end
in the recorded order. What is told then is written in the words of the recordings.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import msgspec

from pi_rpc.core import events
from pi_rpc.core.events import Event
from pi_rpc.core.messages import ToolCall, ToolDeclaration, ToolOutcome, text_block, text_of
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
from pi_rpc.frontends.native.notifications import NOTIFICATION_OF
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
from tests.session.living import WAIT_S, Door, Ear, Part

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


class RecordedTool:
    """A tool that ends when and as the recorded one did."""

    effect: Effect = "workspace"
    sequential = False

    def __init__(self, name: str) -> None:
        self.declaration = ToolDeclaration(name, f"the tool {name}", {"type": "object"})
        self.ends: dict[str, anyio.Event] = {}
        self.is_error: dict[str, bool] = {}

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        ended = self.ends.setdefault(call.id, anyio.Event())
        async with anyio.create_task_group() as tasks:

            async def heed_stop() -> None:
                await context.stop.wait()
                ended.set()

            tasks.start_soon(heed_stop)
            await ended.wait()
            tasks.cancel_scope.cancel()
        return ToolOutcome([text_block("done")], self.is_error.get(call.id, True))


def read(scenario: str) -> Order:
    """The order of a scenario, with the replies and tools it was made of."""
    text = (RECORDINGS / scenario / "order.txt").read_text(encoding="utf-8")
    raw = [line for line in text.split("\n") if line and not line.startswith(("<", "# exit"))]
    called = _tool_names(raw)
    order = Order(
        [], [], {name: RecordedTool(name) for name in set(called) if name != "nosuchtool"}
    )
    parts: list[Part] | None = None
    stop = ""
    for line in (line.removeprefix("  ") for line in raw):
        if line.startswith((">", "#")):
            if parts is not None and not isinstance(parts[-1], Door):
                door = Door()
                parts.append(door)
                order.lines.append(door)
            if line.startswith(">"):
                order.lines.append(line)
            continue
        if line.startswith("message_start assistant"):
            parts, stop = [ReplyStarted()], line
        elif parts is not None:
            update = _UPDATE.match(line)
            if update:
                parts += _parts(update, called, len(order.replies))
            elif line.startswith("message_end assistant"):
                _end(parts, stop, line)
                # Of a run stopped before it asked, nobody was asked.
                if "stop=aborted" not in stop:
                    order.replies.append(parts)
                parts = None
        order.lines.append(line)
    return order


def _tool_names(lines: list[str]) -> list[str]:
    """The names of all calls, in the order they were made."""
    return [line.split()[1] for line in lines if line.startswith("  tool_execution_start")]


def _parts(update: re.Match[str], called: list[str], number: int) -> Iterator[Part]:
    kind, step, index = update[1], update[2], int(update[3])
    if step == "start" and kind == "toolcall":
        yield BlockStarted(index, "toolCall", f"call-{number}-{index}", called.pop(0))
    elif step == "start":
        yield BlockStarted(index, "text" if kind == "text" else "thinking")
    elif step == "delta":
        yield BlockDelta(index, "" if kind == "toolcall" else "word ")
    else:
        yield BlockEnded(index)


def _end(parts: list[Part], start: str, end: str) -> None:
    stop = re.search(r"stop=(\w+)", end)
    assert stop is not None
    match stop[1]:
        case "aborted":
            assert "stop=aborted" in start or isinstance(parts[-1], Door), "nobody stops this"
        case "error":
            told = _ERROR.search(end)
            text = told[1] if told else ""
            parts.append(ReplyEnded("error", error=ReplyError(kind_of(None, None, text), text)))
        case "stop" | "length" | "toolUse" as kind:
            parts.append(ReplyEnded(kind))


class Playing:
    """Plays an order against a session."""

    def __init__(self, order: Order, host: Host, session: Session) -> None:
        self._order = order
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
                tasks.start_soon(run_shell, session, told["command"])
                count = len(self._ear.of(events.ShellPrinted))
                await self._ear.until(events.ShellPrinted, count + 1)
                if "sleep" not in told["command"]:
                    with anyio.fail_after(WAIT_S):
                        while session.shells:
                            await anyio.lowlevel.checkpoint()
            case "abort_bash":
                await stop_shells(session)

    def _prompt(self, text: str, told: dict[str, Any]) -> None:
        match told.get("streamingBehavior"):
            case None if self._session.run is not None:
                return
            case "followUp":
                prompt(self._session, self._host.tasks, text, when_busy="followUp")
            case "steer":
                prompt(self._session, self._host.tasks, text, when_busy="steer")
            case _:
                prompt(self._session, self._host.tasks, text)


def line_of(event: Event) -> str | None:
    """What we tell, in the words of the recordings; None for what they have no word for."""
    match event:
        case events.RunStarted():
            return "agent_start"
        case events.AttemptEnded(next=following):
            return f"agent_end willRetry={following == 'retry'}" if following != "queued" else None
        case events.RunSettled(outcome=outcome):
            return f"agent_settled aborted={outcome == 'aborted'}"
        case events.TurnStarted():
            return "turn_start"
        case events.TurnEnded(tool_result_entry_ids=results):
            return f"turn_end toolResults={len(results)}"
        case events.MessageStarted(role=role):
            return f"message_start {role}"
        case events.MessageDelta(block=block):
            return f"message_update [{block}]"
        case events.MessageEnded(message=message):
            more = message.get("stopReason") or (
                text_of(message) if message["role"] == "user" else ""
            )
            return f"message_end {message['role']} {more}".rstrip()
        case events.ToolStarted(name=name):
            return f"tool_execution_start {name}"
        case events.ToolEnded(name=name, is_error=is_error):
            return f"tool_execution_end {name} isError={is_error}"
        case events.QueueChanged(steering=steering, follow_up=follow_up):
            waiting = [[item["text"] for item in queue] for queue in (steering, follow_up)]
            return f"queue_update {waiting}"
        case events.RetryScheduled(attempt=attempt, attempts_max=most, delay_ms=delay_ms):
            return f"auto_retry_start {attempt} {most} {delay_ms}"
        case events.RetryEnded(attempt=attempt, success=success):
            return f"auto_retry_end {success} {attempt}"
        case events.EntryAppended(type="context_edit"):
            return "entry_appended context_edit"
        case events.ShellPrinted():
            return "bash_execution_update"
    assert type(event) in NOTIFICATION_OF
    return None


def recorded_line(line: str) -> str:
    """A recorded event line, without what differs from run to run."""
    name, _, rest = line.partition(" ")
    match name:
        case "agent_end":
            return f"agent_end {rest.split()[-1]}"
        case "agent_settled":
            return f"agent_settled aborted={json.loads(rest)['aborted']}"
        case "turn_end":
            return f"turn_end {rest.split()[-1]}"
        case "message_start":
            return f"message_start {rest.split()[0]}"
        case "message_update":
            return f"message_update {rest[rest.index('[') :].split()[0]}"
        case "message_end":
            return _recorded_end(rest)
        case "queue_update":
            waiting = json.loads(rest)
            return f"queue_update {[waiting['steering'], waiting['followUp']]}"
        case "auto_retry_start":
            told = json.loads(rest)
            return f"auto_retry_start {told['attempt']} {told['maxAttempts']} {told['delayMs']}"
        case "auto_retry_end":
            told = json.loads(rest)
            return f"auto_retry_end {told['success']} {told['attempt']}"
        case "entry_appended":
            return f"entry_appended {json.loads(rest)['entry']['type']}"
        case "bash_execution_update":
            return name
    return line


def _recorded_end(rest: str) -> str:
    role, _, more = rest.partition(" ")
    if role == "user":
        told = json.loads(more).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return f"message_end user {told}".rstrip()
    stop = re.search(r"stop=(\w+)", more)
    return f"message_end {role} {stop[1]}" if stop else f"message_end {role}"
