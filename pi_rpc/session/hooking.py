"""Hooks asked in order, and what holds when one does not answer.

Each hook is given what the one before it left. Whoever is asked may be a client or code in this
process; nothing here can tell them apart.

Promises
- A hook is waited for until its deadline, a stop or its end, and no longer.
- Every answer, missing or not, is told with the time it took.
- A hook that fails where nothing hangs on it changes nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
import msgspec

from pi_rpc.core.consultations import TIMEOUT_MS_MAX
from pi_rpc.core.errors import Failure, Outside, Refused, Stopped
from pi_rpc.core.events import Diagnostic, DiagnosticTold, RequestResolved
from pi_rpc.core.hooks import (
    BeforeCompact,
    BeforeCompactAnswer,
    BeforeMoveAnswer,
    BeforeReplace,
    BeforeTree,
    BeforeTreeAnswer,
    HookName,
    Input,
    InputAnswer,
    SessionClosing,
    Told,
)
from pi_rpc.core.images import checked_image
from pi_rpc.core.messages import Block, JsonObject
from pi_rpc.core.ports.tools import StopSignal
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

CLOSING_TIMEOUT_MS_MAX = 5_000
"""How long each of those who look on may hold up an end."""

REFUSED_TEXT = "the hook {name} did not answer, and refuses in that case"
FAILED_TEXT = "the hook {name} failed: {text}"


@contextmanager
def looking(session: Session) -> Iterator[anyio.Event]:
    """A stop for what clients are asked outside of runs; set when the session is aborted."""
    stop = anyio.Event()
    session.looked_at.append(stop)
    if session.asks_nobody:
        stop.set()
    try:
        yield stop
    finally:
        session.looked_at.remove(stop)


class Grace:
    """A stop that is heeded a moment later: what was begun may still be looked at."""

    def __init__(self, stop: StopSignal, grace_s: float) -> None:
        self._stop = stop
        self._grace_s = grace_s

    def is_set(self) -> bool:
        """False: what is asked after a stop has the moment, too."""
        return False

    async def wait(self) -> None:
        """Return a moment after the stop."""
        await self._stop.wait()
        await anyio.sleep(self._grace_s)


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


def tell_resolved(
    session: Session, question: Question, reply: Reply, elapsed_ms: int | None = None
) -> None:
    """Tell that a question is over, so that a dialog can be closed wherever it is shown."""
    outcome = "answered" if isinstance(reply, Answered) else reply.why
    resolved = RequestResolved(question.id, question.kind, outcome, question.hook, elapsed_ms)
    # A runtime that is over has had its last event.
    if not session.closed:
        session.tell(resolved)


async def call_hook(
    session: Session, offer: Offer, hook: Hook, told: Told, stop: StopSignal | None
) -> Any | None:
    """Ask one hook; its answer, or None when things go on as if it had none.

    Raises Stopped, HookError when it answered with an error, Refused `refused_by_hook` or Outside
    `hook_failed` when it did not answer and says so.
    """
    asked = {"hook": hook.name, "payload": told}
    question = question_of(session, "hook", offer, hook.timeout_ms, asked, hook=hook)
    began_s = anyio.current_time()
    reply = await session.around.consulting.ask(offer.consultant, question, stop)
    tell_resolved(session, question, reply, round((anyio.current_time() - began_s) * 1000))
    if isinstance(reply, Answered):
        return reply.value
    if reply.why == "stopped":
        raise Stopped("stopped", "it was stopped while a hook was asked")
    _tell_unanswered(session, hook, reply)
    if reply.why == "failed":
        raise HookError(reply.text)
    if hook.on_timeout == "deny":
        raise Refused("refused_by_hook", REFUSED_TEXT.format(name=hook.name), hook=hook.name)
    if hook.on_timeout == "fail":
        text = FAILED_TEXT.format(name=hook.name, text=reply.text)
        raise Outside("hook_failed", text, hook=hook.name, retryable=True)
    return None


async def answer_or_none(
    session: Session, offer: Offer, hook: Hook, told: Told, stop: StopSignal | None
) -> Any | None:
    """Ask one hook where an error of its own changes nothing. Raises else what `call_hook` does."""
    try:
        return await call_hook(session, offer, hook, told, stop)
    except HookError:
        return None


def _tell_unanswered(session: Session, hook: Hook, reply: Unanswered) -> None:
    text = f"the hook {hook.name} gave no answer: {reply.text}"
    if reply.why == "failed":
        told = Diagnostic("warning", "hook_error", text)
    else:
        is_late = reply.why == "timeout"
        told = Diagnostic("warning", "hook_timeout" if is_late else "hook_disconnected", text)
    if not session.closed:
        session.tell(DiagnosticTold(told))


def tell_unusable(session: Session, hook: Hook, problem: str) -> None:
    """Tell that an answer is passed over, and why."""
    text = f"an answer of the hook {hook.name} is passed over: {problem}"
    session.tell(DiagnosticTold(Diagnostic("warning", "hook_error", text)))


def tell_overruled(session: Session, hook: Hook, what: str) -> None:
    """Tell that a hook gave anew what one before it had given."""
    text = f"a later hook {hook.name} gave another {what} than one before it; the later holds"
    session.tell(DiagnosticTold(Diagnostic("info", "hook_conflict", text)))


async def observe(
    session: Session, name: HookName, told: Told, timeout_ms_max: int = TIMEOUT_MS_MAX
) -> None:
    """Tell those who look on, one after another; nothing they do changes anything."""
    hooks = session.around.consulting.hooks(session.session_id, name)
    if not hooks:
        return
    with looking(session) as stop:
        for offer, registered in hooks:
            timeout_ms = min(registered.timeout_ms, timeout_ms_max)
            hook = msgspec.structs.replace(registered, timeout_ms=timeout_ms)
            try:
                await answer_or_none(session, offer, hook, told, stop)
            except Stopped:
                return
            except Failure:
                # There is nothing to deny, and that it did not answer is told already.
                continue


async def tell_closing(session: Session, told: SessionClosing) -> None:
    """Tell those who look on that a runtime ends; however long they want, it is not held up."""
    await observe(session, "session/closing", told, CLOSING_TIMEOUT_MS_MAX)


class Words(msgspec.Struct, frozen=True):
    """What a user says."""

    text: str
    images: Sequence[Block] = ()


async def words_after_hooks(
    session: Session, words: Words, told: Input, stop: StopSignal
) -> Words | None:
    """A user's words as hooks leave them; None when one has dealt with them."""
    for offer, hook in session.around.consulting.hooks(session.session_id, "input"):
        told = msgspec.structs.replace(told, text=words.text, images=len(words.images))
        answer: InputAnswer | None = await answer_or_none(session, offer, hook, told, stop)
        if answer is None or answer.action == "continue":
            continue
        if answer.action == "handled":
            return None
        try:
            words = _transformed(words, answer)
        except Failure as problem:
            tell_unusable(session, hook, problem.message)
    return words


def _transformed(words: Words, answer: InputAnswer) -> Words:
    images = words.images
    if answer.images is not None:
        images = [
            checked_image(str(block.get("data")), str(block.get("mimeType")))
            for block in answer.images
        ]
    text = words.text if answer.text is None else answer.text
    return Words(text, images)


async def ask_before(session: Session, told: BeforeReplace) -> None:
    """Let hooks stop a replacement before anything has happened.

    Raises Refused `cancelled_by_hook` with the reason and the hook, and what `call_hook` does.
    """
    name: HookName = "session/before_replace"
    hooks = session.around.consulting.hooks(session.session_id, name)
    with looking(session) as stop:
        for offer, hook in hooks:
            answer: BeforeMoveAnswer | None = await answer_or_none(session, offer, hook, told, stop)
            _refuse_if_cancelled(hook, answer)


def _refuse_if_cancelled(
    hook: Hook, answer: BeforeMoveAnswer | BeforeTreeAnswer | BeforeCompactAnswer | None
) -> None:
    if answer is not None and answer.cancel:
        said = answer.reason or f"the hook {hook.name} does not want it"
        raise Refused("cancelled_by_hook", said, hook=hook.name, said=answer.reason)


async def ask_before_tree(session: Session, told: BeforeTree) -> BeforeTreeAnswer:
    """Let hooks stop a move of the leaf, or say what becomes of what is left.

    Raises Refused `cancelled_by_hook`, and what `call_hook` does.
    """
    hooks = session.around.consulting.hooks(session.session_id, "session/before_tree")
    held = BeforeTreeAnswer()
    with looking(session) as stop:
        for offer, hook in hooks:
            answer: BeforeTreeAnswer | None = await answer_or_none(session, offer, hook, told, stop)
            _refuse_if_cancelled(hook, answer)
            if answer is None:
                continue
            held = merged(session, hook, held, answer)
            told = msgspec.structs.replace(
                told, instructions=held.instructions or told.instructions
            )
    return held


async def ask_before_compact(
    session: Session, told: BeforeCompact, stop: StopSignal
) -> BeforeCompactAnswer:
    """Let hooks stop a compaction, give its summary, or say what it is to look at.

    Raises Refused `cancelled_by_hook`, Stopped, and what `call_hook` does.
    """
    hooks = session.around.consulting.hooks(session.session_id, "session/before_compact")
    held = BeforeCompactAnswer()
    for offer, hook in hooks:
        answer: BeforeCompactAnswer | None = await answer_or_none(session, offer, hook, told, stop)
        _refuse_if_cancelled(hook, answer)
        if answer is None:
            continue
        held = merged(session, hook, held, answer)
        told = msgspec.structs.replace(
            told,
            instructions=told.instructions if held.instructions is None else held.instructions,
            summary=held.summary,
        )
    return held


_Merged = TypeVar("_Merged", BeforeTreeAnswer, BeforeCompactAnswer)


def merged(session: Session, hook: Hook, held: _Merged, answer: _Merged) -> _Merged:
    """What hooks gave so far and one more answer; where both say something the later holds."""
    changes: JsonObject = {}
    for name in ("summary", "instructions", "label", "details"):
        given = getattr(answer, name, None)
        if given is None:
            continue
        if name == "summary" and not str(given).strip():
            tell_unusable(session, hook, "an empty summary")
            continue
        if getattr(held, name) not in (None, given):
            tell_overruled(session, hook, name)
        changes[name] = given
    return msgspec.structs.replace(held, **changes)
