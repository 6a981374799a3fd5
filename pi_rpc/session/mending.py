"""What is written before a run goes on, so that the context it begins with is whole.

Reading a session never writes. A call that a crash left without a result gets one when the session
is next run, and until then its state says so. What the user ran in a shell meanwhile is written
when no call can wait for its result.
"""

from pi_rpc.core.entries import body_of_message
from pi_rpc.core.errors import Failure
from pi_rpc.core.events import Diagnostic, DiagnosticTold, MessageEnded, MessageStarted
from pi_rpc.core.messages import JsonObject, ToolOutcome, text_block, tool_result_message
from pi_rpc.core.pairing import interrupted_calls
from pi_rpc.core.versions import files_after_calls
from pi_rpc.session.binding import bind_before_commands
from pi_rpc.session.deferring import bind_after_commands
from pi_rpc.session.session import Session
from pi_rpc.session.versioning import record_waiting_effects

INTERRUPTED = (
    "There is no result: the run was interrupted before the call had ended, or the result is on "
    "another branch. Whether the call ran, and what it did, is not known."
)
"""What a model is told of such a call."""


async def answer_interrupted_calls(session: Session) -> None:
    """Give each call that the context ends with, and no result answers, an explicit result."""
    calls = interrupted_calls(session.projection.messages("session"))
    if not calls:
        return
    outcome = ToolOutcome([text_block(INTERRUPTED)], True, {"interrupted": True})
    now = session.around.clock.now_ms()
    await _record(session, [tool_result_message(call, outcome, now) for call in calls])


async def record_shell_results(session: Session) -> str | None:
    """Write down what shell commands came to while nothing could be written; the last entry."""
    # Taken before the first wait, so that two who write at once do not write the same.
    taken, session.unwritten = session.unwritten, []
    if not taken:
        return None
    try:
        await bind_before_commands(session)
        before = session.leaf_row
        written = await _record(session, taken)
    except BaseException:
        session.unwritten[:0] = taken
        raise
    session.standing.files = files_after_calls(
        session.tree, session.standing.files, before, session.leaf_row, marked=True
    )
    await bind_after_commands(session)
    return written[-1]


async def record_added(session: Session) -> None:
    """Write down messages beside the user's that waited for the turn to be over."""
    taken, session.queues.after_turn = session.queues.after_turn, []
    if not taken:
        return
    try:
        await _record(session, taken)
    except BaseException:
        session.queues.after_turn[:0] = taken
        raise


async def record_last_shell_results(session: Session) -> None:
    """Write down what still waits when a runtime ends; what cannot be stored is told and lost."""
    try:
        await record_waiting_effects(session)
        await record_shell_results(session)
    except Failure as failure:
        lost = ", ".join(str(message["command"]) for message in session.unwritten)
        text = f"the output of these commands could not be stored ({failure.message}): {lost}"
        session.tell(DiagnosticTold(Diagnostic("error", "shell_results_lost", text)))


async def _record(session: Session, messages: list[JsonObject]) -> list[str]:
    entries = await session.record(*(body_of_message(message) for message in messages))
    for entry, message in zip(entries, messages, strict=True):
        session.tell(MessageStarted(message["role"]))
        session.tell(MessageEnded(entry.id, message), weight=len(str(message)))
    return [entry.id for entry in entries]
