"""What a user's words become before they are admitted: commands of clients, hooks, expansion.

Words are looked at one after another, so that they are admitted in the order they came.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import anyio.abc

from pi_rpc.core.errors import Failure, Invalid
from pi_rpc.core.events import Diagnostic, DiagnosticTold
from pi_rpc.core.hooks import Input
from pi_rpc.core.instructions import (
    FrontmatterError,
    arguments_from,
    document_from,
    expanded,
    skill_call,
    split_command,
)
from pi_rpc.core.messages import Block, JsonObject
from pi_rpc.session.consulting import Answered, Offer, OfferedCommand
from pi_rpc.session.hooking import (
    Words,
    looking,
    question_of,
    tell_resolved,
    words_after_hooks,
)
from pi_rpc.session.session import Session

Way = Literal["prompt", "steer", "followUp"]
Source = Literal["client", "extension"]


def is_looked_at(session: Session, text: str) -> bool:
    """Whether words must be looked at first; others are admitted without a wait."""
    return (
        text.startswith("/")
        or session.wording.locked()
        or bool(session.around.consulting.hooks(session.session_id, "input"))
    )


@asynccontextmanager
async def looked_at(
    session: Session,
    tasks: anyio.abc.TaskGroup,
    text: str,
    images: Sequence[Block],
    way: Way,
    *,
    source: Source = "client",
) -> AsyncIterator[Words | None]:
    """The words to admit inside; None when they are dealt with.

    Raises Stopped when the session is aborted meanwhile, Invalid `command_not_queued`, and what a
    hook's refusal raises; then nothing was recorded.
    """
    with looking(session) as stop:
        async with session.wording:
            found = _command(session, text)
            if found is not None:
                if way != "prompt":
                    raise Invalid("command_not_queued", "a command does not wait in a queue")
                offer, command, arguments = found
                tasks.start_soon(_run_command, session, offer, command, arguments)
                yield None
                return
            told = Input(text=text, images=len(images), way=way, source=source)
            words = await words_after_hooks(session, Words(text, images), told, stop)
            if words is None:
                yield None
                return
            yield Words(await _expanded(session, words.text), words.images)


async def _expanded(session: Session, text: str) -> str:
    """A call of a skill or template written out; any other text as it is."""
    called = split_command(text)
    if called is None or session.around.instructions is None:
        return text
    kind, name = "prompt", called[0]
    if name.startswith("skill:"):
        kind, name = "skill", name.removeprefix("skill:")
    files = session.guidance.resources.files
    found = next((one for one in files if one.kind == kind and one.name == name), None)
    if found is None:
        return text
    try:
        document = document_from(await session.around.instructions.text(Path(found.path)))
    except (Failure, FrontmatterError) as problem:
        said = f"/{called[0]} is left as it is: {problem}"
        session.tell(
            DiagnosticTold(Diagnostic("warning", "resource_skipped", said, path=found.path))
        )
        return text
    if kind == "skill":
        return skill_call(name, found.path, document.body, called[1])
    return expanded(document.body, arguments_from(called[1]))


def _command(session: Session, text: str) -> tuple[Offer, OfferedCommand, str] | None:
    called = split_command(text)
    for offer, command in session.around.consulting.commands(session.session_id):
        if called is not None and command.name == called[0]:
            return offer, command, called[1]
    return None


async def _run_command(
    session: Session, offer: Offer, command: OfferedCommand, arguments: str
) -> None:
    asked: JsonObject = {"name": command.name, "arguments": arguments}
    question = question_of(session, "command", offer, command.timeout_ms, asked)
    with looking(session) as stop:
        reply = await session.around.consulting.ask(offer.consultant, question, stop)
    tell_resolved(session, question, reply)
    if isinstance(reply, Answered) or reply.why == "stopped":
        return
    text = f"the command /{command.name} was not carried out: {reply.text}"
    session.tell(DiagnosticTold(Diagnostic("warning", "command_failed", text)))
