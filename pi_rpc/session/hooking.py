"""Hooks of clients, asked in order, and what holds when one does not answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from pi_rpc.core.consultations import (
    AddedMessage,
    BeforeMoveAnswer,
    HookName,
    InputAnswer,
    PrepareAnswer,
)
from pi_rpc.core.errors import Outside, Refused, Stopped
from pi_rpc.core.events import Diagnostic, DiagnosticTold, RequestResolved
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports import StopSignal
from pi_rpc.core.prompt import is_section_name
from pi_rpc.session.consulting import (
    Answered,
    Hook,
    Offer,
    Question,
    QuestionKind,
    Reply,
    Unanswered,
)
from pi_rpc.session.session import Session

REFUSED_TEXT = "the hook {name} did not answer, and refuses in that case"
FAILED_TEXT = "the hook {name} failed: {text}"


@contextmanager
def looking(session: Session) -> Iterator[anyio.Event]:
    """A stop for what clients are asked outside of runs; set when the session is aborted."""
    stop = anyio.Event()
    session.looked_at.append(stop)
    try:
        yield stop
    finally:
        session.looked_at.remove(stop)


class HookError(Exception):
    """A hook answered with an error; whoever asked says what that means."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def question_of(
    session: Session,
    kind: QuestionKind,
    offer: Offer | None,
    timeout_ms: int,
    asked: JsonObject,
    *,
    hook: Hook | None = None,
) -> Question:
    """A question about a session, under an id of its own."""
    return Question(
        id=session.around.ids.unique_id(),
        kind=kind,
        session_id=session.session_id,
        runtime_id=session.runtime_id,
        run_id=session.run.run_id if session.run is not None else None,
        registration_id=None if offer is None else offer.id,
        timeout_ms=timeout_ms,
        asked=asked,
        hook=None if hook is None else hook.name,
    )


def tell_resolved(session: Session, question: Question, reply: Reply) -> None:
    """Tell that a question is over, so that a dialog can be closed wherever it is shown."""
    outcome = "answered" if isinstance(reply, Answered) else reply.why
    session.tell(RequestResolved(question.id, question.kind, outcome))


async def call_hook(
    session: Session,
    offer: Offer,
    hook: Hook,
    payload: JsonObject,
    stop: StopSignal | None,
) -> Any | None:
    """Ask one hook; its answer, or None when things go on as if it had none.

    Raises Stopped, HookError when it answered with an error, Refused `refused_by_hook` or Outside
    `hook_failed` when it did not answer and says so.
    """
    asked = {"hook": hook.name, "payload": payload}
    question = question_of(session, "hook", offer, hook.timeout_ms, asked, hook=hook)
    reply = await session.around.consulting.ask(offer.consultant, question, stop)
    if isinstance(reply, Answered):
        return reply.value
    if reply.why == "stopped":
        raise Stopped("stopped", "it was stopped while a hook was asked")
    tell_resolved(session, question, reply)
    _tell_diagnostic(session, hook, reply)
    if reply.why == "failed":
        raise HookError(reply.text)
    if hook.on_timeout == "deny":
        raise Refused("refused_by_hook", REFUSED_TEXT.format(name=hook.name), hook=hook.name)
    if hook.on_timeout == "fail":
        text = FAILED_TEXT.format(name=hook.name, text=reply.text)
        raise Outside("hook_failed", text, hook=hook.name, retryable=True)
    return None


def _tell_diagnostic(session: Session, hook: Hook, reply: Unanswered) -> None:
    text = f"the hook {hook.name} gave no answer: {reply.text}"
    if reply.why == "failed":
        told = Diagnostic("warning", "hook_error", text)
    else:
        is_late = reply.why == "timeout"
        told = Diagnostic("warning", "hook_timeout" if is_late else "hook_disconnected", text)
    session.tell(DiagnosticTold(told))


async def _asked_in_order(
    session: Session, name: HookName, payload: JsonObject, stop: StopSignal | None
) -> list[tuple[Hook, Any]]:
    """The answers of every hook of a name; one that answers with an error is passed over."""
    answers = []
    for offer, hook in session.around.consulting.hooks(session.session_id, name):
        try:
            answer = await call_hook(session, offer, hook, payload, stop)
        except HookError:
            continue
        if answer is not None:
            answers.append((hook, answer))
    return answers


async def words_after_hooks(
    session: Session, text: str, payload: JsonObject, stop: StopSignal
) -> str | None:
    """A user's words as hooks leave them; None when one has dealt with them.

    Each hook is given what the one before it left.
    """
    for offer, hook in session.around.consulting.hooks(session.session_id, "input"):
        try:
            answer: InputAnswer | None = await call_hook(
                session, offer, hook, payload | {"text": text}, stop
            )
        except HookError:
            continue
        if answer is None:
            continue
        if answer.action == "handled":
            return None
        if answer.action == "transform" and answer.text is not None:
            text = answer.text
    return text


async def prepare_run(session: Session, message: JsonObject, stop: StopSignal) -> PrepareAnswer:
    """What hooks add to a run, put together: messages in order, the last word on a section."""
    messages: list[AddedMessage] = []
    sections: dict[str, str | None] = {}
    payload: JsonObject = {"message": message}
    for hook, answer in await _asked_in_order(session, "run/prepare", payload, stop):
        messages += answer.messages
        for name, text in answer.sections.items():
            if is_section_name(name):
                sections[name] = text
            else:
                wrong = Unanswered("failed", f"{name[:64]!r} is no name of a section")
                _tell_diagnostic(session, hook, wrong)
    return PrepareAnswer(messages, sections)


async def ask_before(session: Session, name: HookName, payload: JsonObject) -> None:
    """Let hooks stop a move before anything has happened.

    Raises Refused `cancelled_by_hook` with the reason and the hook, and what `call_hook` does.
    """
    with looking(session) as stop:
        answers = await _asked_in_order(session, name, payload, stop)
    for hook, answer in answers:
        assert isinstance(answer, BeforeMoveAnswer)
        if answer.cancel:
            said = answer.reason or f"the hook {hook.name} does not want it"
            raise Refused("cancelled_by_hook", said, hook=hook.name, said=answer.reason)
