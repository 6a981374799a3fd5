"""Permissions: what the rules say, and what the user says where they want that.

Promises
- Whoever is asked sees what will run: arguments as hooks left them, where a path leads, what a file
  would become.
- A client that goes away while it is asked is no answer: the next one is asked.
- What the user wants remembered is remembered by the session until it is closed.
"""

import os
from pathlib import Path

import anyio.to_thread
import msgspec

from pi_rpc.core.consultations import (
    PERMISSION_TIMEOUT_MS,
    PermissionAnswer,
    PermissionOption,
)
from pi_rpc.core.errors import Failure, Stopped
from pi_rpc.core.events import Diagnostic, DiagnosticTold
from pi_rpc.core.messages import JsonObject, ToolCall
from pi_rpc.core.permissions import (
    COMMAND_ARGUMENT,
    Decision,
    Place,
    Subject,
    decision_for,
    is_fitting,
    path_given,
    pattern_to_suggest,
    rule_to_remember,
    subject_of,
)
from pi_rpc.core.ports.tools import Placed, Previewing, StopSignal, Tool
from pi_rpc.session.consulting import Answered, Consultant, Reply
from pi_rpc.session.dialogs import Choice, DialogOption, show
from pi_rpc.session.hooking import question_of, tell_resolved
from pi_rpc.session.session import Session

LONG_COMMAND_CHARS = 10_000
"""Longer ones are taken apart beside the loop."""

DENIED_BY_RULE = "The call was not run: a rule of the user denies it."
NOBODY_TO_ASK = "The call was not run: it needs the user's permission, and nobody can be asked."
STOPPED = "The call was not run: it was stopped before it began."


async def refusal_of(session: Session, tool: Tool, call: ToolCall, stop: StopSignal) -> str | None:
    """Why a call may not run, for the model; None when it may."""
    chosen, consulting = session.chosen, session.around.consulting
    policy = chosen.permissions
    has_rules = policy.rules or chosen.remembered or policy.default or policy.outside
    if not has_rules and (consulting.permitting is None or tool.effect == "none"):
        return None
    subject = await _subject(session, tool, call)
    decision = decision_for(policy, chosen.remembered, call.name, subject)
    if decision is None:
        is_asked = consulting.permitting is not None and tool.effect != "none"
        decision = "ask" if is_asked else "allow"
    if decision != "ask":
        return DENIED_BY_RULE if decision == "deny" else None
    if consulting.permitting is None:
        return await _by_dialog(session, call, subject, stop)
    return await _by_client(session, tool, call, subject, stop)


async def _subject(session: Session, tool: Tool, call: ToolCall) -> Subject:
    command = call.arguments.get(COMMAND_ARGUMENT)
    if isinstance(command, str) and len(command) > LONG_COMMAND_CHARS:
        return await anyio.to_thread.run_sync(subject_of, call.arguments)
    path = await _path(session, tool, call)
    if path is None:
        return subject_of(call.arguments)
    folder = await anyio.to_thread.run_sync(os.path.realpath, session.cwd)
    return subject_of(call.arguments, Place(str(path), folder, str(Path.home())))


async def _path(session: Session, tool: Tool, call: ToolCall) -> Path | str | None:
    """Where the call leads; None where it has no path, or one that leads nowhere."""
    if isinstance(tool, Placed):
        try:
            return await tool.place_of(call.arguments, session.cwd)
        except Failure:
            # Such a call fails by itself when it runs.
            return None
    given = path_given(call.arguments)
    if given is None or "\0" in given:
        return None
    return await anyio.to_thread.run_sync(os.path.realpath, session.cwd / given)


def options_for(call: ToolCall, subject: Subject) -> list[PermissionOption]:
    """What a user may choose from, in the order to show it."""
    if subject.line is not None:
        allowed = "Allow this command for this session"
    elif subject.is_outside:
        allowed = f"Allow {call.name} for this path for this session"
    elif subject.place is not None:
        allowed = f"Allow {call.name} in this folder for this session"
    else:
        allowed = f"Allow {call.name} for this session"
    options = [
        PermissionOption("allow_once", "Allow once"),
        PermissionOption("allow_session", allowed),
    ]
    pattern = pattern_to_suggest(subject)
    if pattern is not None and is_fitting(pattern, call.name, subject, "allow"):
        shown = pattern if subject.line is not None else f"{call.name} {pattern}"
        label = f"Allow {shown} for this session"
        options.append(PermissionOption("allow_session", label, pattern))
    rejected = "this command" if subject.line is not None else call.name
    return [
        *options,
        PermissionOption("reject_once", "Reject"),
        PermissionOption("reject_always", f"Reject {rejected} for this session"),
    ]


async def _by_client(
    session: Session, tool: Tool, call: ToolCall, subject: Subject, stop: StopSignal
) -> str | None:
    asked: JsonObject = {
        "callId": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "effect": tool.effect,
        "subject": subject.shown,
        "isOutside": subject.is_outside,
        "options": options_for(call, subject),
    }
    preview = await _preview(session, tool, call)
    if preview:
        asked["preview"] = preview
    gone: list[Consultant] = []
    consulting = session.around.consulting
    while (consultant := consulting.permitting) is not None and consultant not in gone:
        question = question_of(session, "permission", None, PERMISSION_TIMEOUT_MS, asked)
        reply = await consulting.ask(consultant, question, stop)
        tell_resolved(session, question, reply)
        if isinstance(reply, Answered):
            return _heeded(session, call, subject, reply.value)
        if reply.why != "disconnected":
            return _unanswered(reply)
        gone.append(consultant)
    return NOBODY_TO_ASK


def _unanswered(reply: Reply) -> str:
    assert not isinstance(reply, Answered)
    if reply.why == "stopped":
        return STOPPED
    return f"The call was not run: its permission was not given ({reply.text})."


async def _preview(session: Session, tool: Tool, call: ToolCall) -> JsonObject:
    if not isinstance(tool, Previewing):
        return {}
    try:
        return await tool.preview(call.arguments, session.cwd)
    except Failure as failure:
        # The user may know better than to allow what cannot be done.
        return {"problem": failure.message}


async def _by_dialog(
    session: Session, call: ToolCall, subject: Subject, stop: StopSignal
) -> str | None:
    """Ask with a plain choice, where a client can show one but knows nothing of permissions."""
    if session.around.consulting.showing("select") is None:
        return NOBODY_TO_ASK
    options = [one for one in options_for(call, subject) if one.pattern is None]
    shown = Choice(
        title=f"Allow {call.name}?",
        message=subject.shown,
        options=[DialogOption(one.decision, one.label) for one in options],
        default="reject_once",
    )
    try:
        chosen = await show(session, shown, PERMISSION_TIMEOUT_MS, stop)
    except Stopped:
        return STOPPED
    answer = {"decision": chosen or "reject_once"}
    return _heeded(session, call, subject, msgspec.convert(answer, PermissionAnswer))


def _heeded(
    session: Session, call: ToolCall, subject: Subject, answer: PermissionAnswer
) -> str | None:
    is_allowed = answer.decision in ("allow_once", "allow_session")
    if answer.decision in ("allow_session", "reject_always"):
        _remember(session, call, subject, "allow" if is_allowed else "deny", answer.pattern)
    if is_allowed:
        return None
    said = f": {answer.reason}" if answer.reason else "."
    return f"The call was not run: the user rejected it{said}"


def _remember(
    session: Session, call: ToolCall, subject: Subject, decision: Decision, pattern: str | None
) -> None:
    if pattern is not None and not is_fitting(pattern, call.name, subject, decision):
        text = f"nothing is remembered: {pattern!r} does not fit the call it was given for"
        told = Diagnostic("warning", "pattern_does_not_fit", text)
        session.tell(DiagnosticTold(told))
        return
    rule = rule_to_remember(call.name, subject, decision, pattern)
    if rule not in session.chosen.remembered:
        session.chosen.remembered.append(rule)
