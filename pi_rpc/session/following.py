"""Following a session that another process writes: what it appends is told as it comes."""

import anyio

from pi_rpc.core.errors import Failure
from pi_rpc.core.events import Diagnostic, DiagnosticTold
from pi_rpc.session.session import Session

LOOK_EVERY_S = 0.25
"""How long what another process wrote may stay unseen; a look costs one question for a size."""


async def follow_writer(session: Session) -> None:
    """Take in what is appended, until the runtime is over or its file can be followed no more."""
    while not session.closed:
        await anyio.sleep(LOOK_EVERY_S)
        if session.closed or not session.hub.listeners:
            continue
        try:
            await session.follow_file()
        except Failure as failure:
            if session.closed:
                return
            text = f"the file is followed no more: {failure.message}"
            session.tell(DiagnosticTold(Diagnostic("error", failure.reason, text)))
            return
