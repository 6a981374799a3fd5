"""Permissions: what the rules say, and what the user says where they want that."""

import msgspec

from pi_rpc.core.consultations import PERMISSION_TIMEOUT_MS, PermissionAnswer
from pi_rpc.core.errors import Stopped
from pi_rpc.core.messages import ToolCall
from pi_rpc.core.permissions import Decision, decision_for, rule_to_remember, subject_of
from pi_rpc.core.ports import Effect, StopSignal
from pi_rpc.session.consulting import Answered
from pi_rpc.session.dialogs import Choice, DialogOption, show
from pi_rpc.session.hooking import question_of, tell_resolved
from pi_rpc.session.session import Session

OPTIONS = [
    {"decision": "allow_once", "label": "Allow once"},
    {"decision": "allow_session", "label": "Allow for this session"},
    {"decision": "reject_once", "label": "Reject"},
    {"decision": "reject_always", "label": "Reject for this session"},
]
"""What a user may choose from, in the order to show it."""

DENIED_BY_RULE = "The call was not run: a rule of the user denies it."
NOBODY_TO_ASK = "The call was not run: it needs the user's permission, and nobody can be asked."
STOPPED = "The call was not run: it was stopped before it began."


async def refusal_of(
    session: Session, call: ToolCall, effect: Effect, stop: StopSignal
) -> str | None:
    """Why a call may not run, for the model; None when it may.

    What the user wants remembered is remembered by the session until it is closed.
    """
    decision = decision_for(session.permissions, session.remembered, call.name, call.arguments)
    consultant = session.around.consulting.permitting
    if decision is None:
        decision = "ask" if consultant is not None and effect != "none" else "allow"
    if decision != "ask":
        return DENIED_BY_RULE if decision == "deny" else None
    if consultant is None:
        return await _by_dialog(session, call, stop)
    asked = {
        "callId": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "effect": effect,
        "subject": subject_of(call.arguments),
        "options": OPTIONS,
    }
    question = question_of(session, "permission", None, PERMISSION_TIMEOUT_MS, asked)
    reply = await session.around.consulting.ask(consultant, question, stop)
    tell_resolved(session, question, reply)
    if isinstance(reply, Answered):
        return _heeded(session, call, reply.value)
    if reply.why == "stopped":
        return STOPPED
    return f"The call was not run: its permission was not given ({reply.text})."


async def _by_dialog(session: Session, call: ToolCall, stop: StopSignal) -> str | None:
    """Ask with a plain choice, where a client can show one but knows nothing of permissions."""
    if session.around.consulting.showing("select") is None:
        return NOBODY_TO_ASK
    shown = Choice(
        title=f"Allow {call.name}?",
        message=subject_of(call.arguments),
        options=[DialogOption(one["decision"], one["label"]) for one in OPTIONS],
        default="reject_once",
    )
    try:
        chosen = await show(session, shown, PERMISSION_TIMEOUT_MS, stop)
    except Stopped:
        return STOPPED
    answer = {"decision": chosen or "reject_once"}
    return _heeded(session, call, msgspec.convert(answer, PermissionAnswer))


def _heeded(session: Session, call: ToolCall, answer: PermissionAnswer) -> str | None:
    if answer.decision in ("allow_session", "reject_always"):
        decision: Decision = "allow" if answer.decision == "allow_session" else "deny"
        rule = rule_to_remember(call.name, call.arguments, decision)
        if rule not in session.remembered:
            session.remembered.append(rule)
    if answer.decision in ("allow_once", "allow_session"):
        return None
    said = f": {answer.reason}" if answer.reason else "."
    return f"The call was not run: the user rejected it{said}"
