"""Commands the user runs beside the conversation, and where their results go.

Promises
- A result never stands between a call and its result: while a run or a move is going on it waits,
  and is written when that is over, before anything else is said.
- However a command ends, stopped or left by its caller, what it printed is recorded.
"""

import anyio

from pi_rpc.agent.background import Background
from pi_rpc.core.errors import Overfull, Refused
from pi_rpc.core.events import ShellPrinted
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports import ShellOutcome
from pi_rpc.session.binding import RunVersions
from pi_rpc.session.mending import record_shell_results
from pi_rpc.session.session import LiveShell, Session

SHELLS_MAX = 32
"""How many commands of one session may run or wait to be written at once."""


class _Telling:
    """Tells a session's listeners what a command prints, as far as they keep up."""

    def __init__(self, session: Session, shell_id: str) -> None:
        self._session = session
        self._shell_id = shell_id
        self._skipped = 0

    def tell(self, text: str, skipped_chars: int) -> None:
        self._skipped += skipped_chars
        # A command does not wait for who reads: what would pile up is left out, and counted.
        if self._session.hub.is_full:
            self._skipped += len(text)
            return
        self._session.tell(ShellPrinted(self._shell_id, text, self._skipped), len(text))
        self._skipped = 0


async def run_shell(
    session: Session, command: str, shell_id: str | None = None, is_private: bool = False
) -> tuple[ShellOutcome, str | None]:
    """Run a command in the session's folder; what came of it, and its entry if it is written.

    `is_private` keeps the result from the model. A caller that goes away stops the command. Raises
    Refused `shell_exists`, Overfull `too_many_shells`, and as `Shell.run` and `record` do.
    """
    session.refuse_if_moving()
    session.refuse_unless_writable()
    shell_id = shell_id or session.around.ids.unique_id()
    if shell_id in session.shells:
        raise Refused("shell_exists", "a command of this id is running", shellId=shell_id)
    if len(session.shells) + len(session.unwritten) >= SHELLS_MAX:
        raise Overfull("too_many_shells", "too many commands run or wait", limit=SHELLS_MAX)
    live = session.shells[shell_id] = LiveShell()
    telling = _Telling(session, shell_id)
    kept: list[tuple[ShellOutcome, str | None]] = []
    try:
        async with Background() as tasks:
            tasks.start_soon(_stop_when_left, live)
            with anyio.CancelScope(shield=True):
                versions = RunVersions(session, tasks)
                if _is_quiet(session):
                    await versions.before_reply([], certain=True)
                outcome = await session.around.shell.run(
                    command, session.cwd, session.spill_folder, live.stop, telling
                )
                message = _message(command, outcome, session.around.clock.now_ms(), is_private)
                versions.call_ended("shell", {})
                entry_id = await _kept(session, message)
                kept.append((outcome, entry_id))
                versions.results_recorded(marked=entry_id is not None)
                await versions.end()
    finally:
        del session.shells[shell_id]
        live.ended.set()
    return kept[0]


async def stop_shells(session: Session) -> int:
    """Stop every command, and wait until each has ended and is kept; how many there were."""
    live = list(session.shells.values())
    for one in live:
        one.stop.set()
    for one in live:
        await one.ended.wait()
    return len(live)


async def _stop_when_left(live: LiveShell) -> None:
    try:
        await live.ended.wait()
    finally:
        live.stop.set()


def _message(command: str, outcome: ShellOutcome, at_ms: int, is_private: bool) -> JsonObject:
    message: JsonObject = {"role": "bashExecution", "command": command, "output": outcome.output}
    if outcome.exit_code is not None:
        message["exitCode"] = outcome.exit_code
    message["cancelled"] = outcome.cancelled
    message["truncated"] = outcome.truncated
    if outcome.full_output_path is not None:
        message["fullOutputPath"] = outcome.full_output_path
    message["timestamp"] = at_ms
    if is_private:
        message["excludeFromContext"] = True
    return message


def _is_quiet(session: Session) -> bool:
    return session.run is None and not session.is_moving


async def _kept(session: Session, message: JsonObject) -> str | None:
    """The id of the entry a result became; None while it has to wait."""
    session.unwritten.append(message)
    if not _is_quiet(session):
        return None
    return await record_shell_results(session)
