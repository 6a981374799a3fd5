"""Commands the user runs beside the conversation."""

from typing import Annotated

import msgspec

from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import Result, SessionParams
from pi_rpc.session.shell import run_shell, stop_shells


class ShellRunParams(SessionParams, frozen=True, kw_only=True):
    """A command for a shell in the session's folder."""

    command: Annotated[str, msgspec.Meta(min_length=1)]
    shell_id: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | None = None
    """What its `shell/output` is to be told under; one is made when it is left out."""
    exclude_from_context: bool = False
    """Whether the result is kept from the model."""


class ShellRunResult(Result, frozen=True, kw_only=True):
    """What came of it."""

    output: str
    """Plain text, stdout and stderr together; its end when it is long."""
    exit_code: int | None = None
    """Left out when it was stopped."""
    cancelled: bool
    truncated: bool
    full_output_path: str | None = None
    """A file with the bytes as they came, when the output is long."""
    entry_id: str | None = None
    """Left out while a run or a move is going on: the result is written when that is over."""


async def run(connection: Connection, params: ShellRunParams) -> ShellRunResult:
    """Run a command; answered at its end. Withdrawing the request stops it."""
    session = connection.host.session(params.session_id)
    outcome, entry_id = await run_shell(
        session, params.command, params.shell_id, params.exclude_from_context
    )
    return ShellRunResult(
        output=outcome.output,
        exit_code=outcome.exit_code,
        cancelled=outcome.cancelled,
        truncated=outcome.truncated,
        full_output_path=outcome.full_output_path,
        entry_id=entry_id,
    )


class ShellAbortResult(Result, frozen=True, kw_only=True):
    """How many commands were stopped."""

    stopped: int


async def abort(connection: Connection, params: SessionParams) -> ShellAbortResult:
    """Stop every command of a session; answered when each has ended."""
    session = connection.host.session(params.session_id)
    return ShellAbortResult(stopped=await stop_shells(session))


METHODS = (
    Method(
        "shell/run", "Run a command beside the conversation.", ShellRunParams, ShellRunResult, run
    ),
    Method("shell/abort", "Stop all such commands.", SessionParams, ShellAbortResult, abort),
)
