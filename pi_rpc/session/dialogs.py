"""Dialogs: something shown to the user, and what holds when nobody answers.

    chosen = await show(session, Choice(title="Which?", options=[...], default="a"))

Promises
- A dialog ends once: with an answer, with None when the user closed it, or with its default when
  nobody can show it, nobody answers in time, or what is answered is none of the options.
- An abort withdraws it.
"""

import msgspec

from pi_rpc.core.consultations import (
    DIALOG_TIMEOUT_MS,
    ChoiceAnswer,
    ConfirmAnswer,
    DialogName,
    TextAnswer,
)
from pi_rpc.core.errors import Stopped
from pi_rpc.core.events import Diagnostic, DiagnosticTold
from pi_rpc.core.ports.tools import StopSignal
from pi_rpc.session.consulting import Answered
from pi_rpc.session.hooking import looking, question_of, tell_resolved
from pi_rpc.session.session import Session


class DialogOption(msgspec.Struct, frozen=True):
    """Something that can be chosen."""

    value: str
    label: str


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One of several."""

    title: str
    options: list[DialogOption]
    message: str = ""
    default: str | None = None


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """Yes or no."""

    title: str
    message: str = ""
    default: bool | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of text."""

    title: str
    message: str = ""
    placeholder: str = ""
    default: str | None = None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A text to edit."""

    title: str
    message: str = ""
    text: str = ""
    default: str | None = None


_NAMES: dict[type, DialogName] = {
    Choice: "select",
    Confirmation: "confirm",
    Line: "input",
    Page: "editor",
}


async def show(
    session: Session,
    dialog: Choice | Line | Page,
    timeout_ms: int = DIALOG_TIMEOUT_MS,
    stop: StopSignal | None = None,
) -> str | None:
    """The value chosen or the text written; None when closed. Raises Stopped."""
    answer = await _answer(session, dialog, timeout_ms, stop)
    if isinstance(answer, ChoiceAnswer) and isinstance(dialog, Choice):
        if answer.value is None or any(one.value == answer.value for one in dialog.options):
            return answer.value
        _tell_failed(session, "select", f"{answer.value[:64]!r} is none of the options")
        return dialog.default
    return answer.text if isinstance(answer, TextAnswer) else dialog.default


async def confirm(
    session: Session,
    dialog: Confirmation,
    timeout_ms: int = DIALOG_TIMEOUT_MS,
    stop: StopSignal | None = None,
) -> bool | None:
    """Whether the user agrees; None when closed. Raises Stopped."""
    answer = await _answer(session, dialog, timeout_ms, stop)
    return answer.confirmed if isinstance(answer, ConfirmAnswer) else dialog.default


async def _answer(
    session: Session,
    dialog: Choice | Confirmation | Line | Page,
    timeout_ms: int,
    stop: StopSignal | None,
) -> object:
    """The answer as it came; None when the default holds."""
    name = _NAMES[type(dialog)]
    consulting = session.around.consulting
    consultant = consulting.showing(name)
    if consultant is None:
        return None
    question = question_of(session, name, None, timeout_ms, msgspec.to_builtins(dialog))
    with looking(session) as aborted:
        reply = await consulting.ask(consultant, question, aborted if stop is None else stop)
    tell_resolved(session, question, reply)
    if isinstance(reply, Answered):
        return reply.value
    if reply.why == "stopped":
        raise Stopped("stopped", "it was stopped while a dialog was shown")
    _tell_failed(session, name, reply.text)
    return None


def _tell_failed(session: Session, name: DialogName, text: str) -> None:
    told = f"the dialog ui/{name} gave no answer, its default holds: {text}"
    session.tell(DiagnosticTold(Diagnostic("warning", "dialog_unanswered", told)))
