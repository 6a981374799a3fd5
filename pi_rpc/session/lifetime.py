"""A runtime made known as it begins, and brought to rest before it ends."""

import anyio.abc

from pi_rpc.core.events import DiagnosticTold, SessionOpened
from pi_rpc.core.hooks import SessionStarted
from pi_rpc.session.following import follow_writer
from pi_rpc.session.hooking import observe
from pi_rpc.session.mending import record_last_shell_results
from pi_rpc.session.prompting import abort
from pi_rpc.session.session import Session
from pi_rpc.session.shell import stop_shells


def begin(
    session: Session, tasks: anyio.abc.TaskGroup, reason: str, parent: str | None = None
) -> None:
    """Tell of a runtime that lives from now on; of a fork or clone with its parent."""
    parent_session = session.header.parent_session
    session.tell(SessionOpened(reason, session.leaf_id, parent_session, parent))
    if reason != "open":
        # An opening is answered with them.
        for diagnostic in session.guidance.noticed:
            session.tell(DiagnosticTold(diagnostic))
    if not session.stored.writable:
        tasks.start_soon(follow_writer, session)
    if session.around.consulting.has_hooks("session/started"):
        started = SessionStarted(reason=reason, parent_session_id=parent)
        tasks.start_soon(observe, session, "session/started", started)


async def settle(session: Session) -> None:
    """Stop whatever goes on and have it stored and told."""
    await abort(session)
    await stop_shells(session)
    if session.stored.writable:
        await record_last_shell_results(session)
    # A label or a name may be on its way to the disk; it is told before the end is.
    await session.wait_until_written()
