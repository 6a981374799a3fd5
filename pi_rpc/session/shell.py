"""Commands the user runs beside the conversation, and where their results go.

Promises
- A result never stands between a call and its result: while a run or a move is going on it waits,
  and is written when that is over, before anything else is said.
- However a command ends, stopped or left by its caller, what it printed is recorded.
"""

import anyio
import msgspec

from pi_rpc.agent.background import Background
from pi_rpc.core.errors import Overfull, Refused
from pi_rpc.core.events import ShellPrinted
from pi_rpc.core.hooks import BashAnswer, BashBefore
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.tools import ShellOutcome, StopSignal
from pi_rpc.session.binding import RunVersions
from pi_rpc.session.hooking import HookError, call_hook
from pi_rpc.session.live import LiveShell
from pi_rpc.session.mending import record_shell_results
from pi_rpc.session.preferring import tool_settings
from pi_rpc.session.session import Session

SHELLS_MAX = 32
"""How many commands of one session may run or wait to be written at once."""


GIVEN_CHARS_MAX = 1 << 20
"""How much a hook may say a command printed."""


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
    Refused `shell_exists` and `cancelled_by_hook`, Overfull `too_many_shells`, and as
    `Shell.run`, `record` and `call_hook` do.
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
                begun_row = session.leaf_row
                decided = await _decided(session, command, is_private, live.stop)
                outcome = decided.outcome
                if outcome is None:
                    await versions.before_command(binds=_is_quiet(session))
                    begun_row = session.leaf_row
                    outcome = await session.around.shell.run(
                        decided.command,
                        session.cwd,
                        session.spill_folder,
                        live.stop,
                        telling,
                        settings=tool_settings(session),
                    )
                    versions.call_ended("shell", {})
                now = session.around.clock.now_ms()
                message = _message(decided.command, outcome, now, is_private)
                if decided.changed_by is not None:
                    message |= {"originalCommand": command, "changedBy": decided.changed_by}
                overlapped = not _is_quiet(session) or session.leaf_row != begun_row
                if overlapped:
                    await versions.keep_for_later()
                entry_id = await _kept(session, message)
                kept.append((outcome, entry_id))
                versions.results_recorded(marked=entry_id is not None and decided.outcome is None)
                await versions.end()
    finally:
        del session.shells[shell_id]
        live.ended.set()
    return kept[0]


class _Decided(msgspec.Struct, frozen=True):
    """A command as hooks leave it."""

    command: str
    changed_by: str | None = None
    """The registration that gave another command, or what came of it."""
    outcome: ShellOutcome | None = None
    """What came of it, where a hook says so: then nothing is run."""


async def _decided(session: Session, command: str, is_private: bool, stop: StopSignal) -> _Decided:
    decided = _Decided(command)
    for offer, hook in session.around.consulting.hooks(session.session_id, "bash/before"):
        told = BashBefore(command=decided.command, exclude_from_context=is_private)
        try:
            answer: BashAnswer | None = await call_hook(session, offer, hook, told, stop)
        except HookError as error:
            # A command that could not be looked at is not run.
            raise Refused("cancelled_by_hook", error.message, hook=hook.name) from error
        if answer is None:
            continue
        if answer.action == "block":
            said = answer.reason or f"the hook {hook.name} does not want it"
            raise Refused("cancelled_by_hook", said, hook=hook.name, said=answer.reason)
        if answer.action == "replace":
            return _Decided(decided.command, offer.id, _given(answer))
        if answer.command:
            decided = _Decided(answer.command, offer.id)
    return decided


def _given(answer: BashAnswer) -> ShellOutcome:
    is_cut = len(answer.output) > GIVEN_CHARS_MAX
    output = answer.output[-GIVEN_CHARS_MAX:] if is_cut else answer.output
    return ShellOutcome(output, answer.exit_code, answer.exit_code is None, is_cut)


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
