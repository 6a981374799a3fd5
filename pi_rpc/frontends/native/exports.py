"""Sessions looked through for damage, repaired, and written out for others."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

from pi_rpc.core.events import Diagnostic
from pi_rpc.core.ports.store import RepairStep
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.notifications import ProgressNotification, ProgressValue
from pi_rpc.frontends.native.shapes import Result, StoredParams
from pi_rpc.session.checking import check, repair
from pi_rpc.session.exporting import Export, ExportForm, Exporting, exporting


class SessionCheckResult(Result, frozen=True, kw_only=True):
    """What is wrong with a session, line by line and entry by entry; nothing was changed."""

    session_id: str
    path: str | None = None
    entries: int
    size_bytes: int
    problems: list[Diagnostic]
    """`info` is as it may be, `warning` costs something, `error` is lost until it is repaired."""
    mended_by_repair: bool
    """Whether session/repair would mend any of them."""


async def check_(connection: Connection, params: StoredParams) -> SessionCheckResult:
    """Look at every line and every entry of a session."""
    found = await check(connection.host, params.which)
    return SessionCheckResult(
        session_id=found.session_id,
        path=None if found.path is None else str(found.path),
        entries=found.entries,
        size_bytes=found.size_bytes,
        problems=found.problems,
        mended_by_repair=found.mended_by_repair,
    )


class SessionRepairResult(Result, frozen=True, kw_only=True):
    """What was done; no steps when there was nothing to do."""

    steps: list[RepairStep]
    backup: str | None = None
    """Where the old file lies, byte for byte, when a new one took its place."""


async def repair_(connection: Connection, params: StoredParams) -> SessionRepairResult:
    """Make a session that nobody has open readable to the end, losing no byte."""
    done = await repair(connection.host, params.which)
    return SessionRepairResult(
        steps=done.steps, backup=None if done.backup is None else str(done.backup)
    )


class SessionExportParams(StoredParams, frozen=True, kw_only=True):
    """A session, and the form to write it in."""

    format: ExportForm = "jsonl"
    target: str | None = None
    """Absolute path of a file that is not there yet; unless given, a new name in the session's
    working directory."""
    branches: Literal["all", "path"] | None = None
    """Every branch, as the file has it, or one path. JSON lines hold all unless told otherwise,
    pages for people one path."""
    leaf_id: str | None = None
    """The end of the path; the session's leaf unless it is named."""
    redact: bool = True
    """Whether what looks like a key, a token or a password is taken out."""


class SessionExportResult(Result, frozen=True, kw_only=True):
    """What was written."""

    path: str
    size_bytes: int
    entries: int
    redactions: int
    """How often something was taken out."""
    skipped: int
    """Entries that could not be read."""


async def export(connection: Connection, params: SessionExportParams) -> SessionExportResult:
    """Write a session to a new file, whole or not at all."""
    branches = params.branches
    if branches is None:
        branches = "all" if params.format == "jsonl" and params.leaf_id is None else "path"
    wanted = Export(
        form=params.format,
        path=None if params.target is None else Path(params.target),
        leaf_id=params.leaf_id,
        every_branch=branches == "all",
        redacts=params.redact,
    )
    async with exporting(connection.host, params.which, wanted) as under_way:
        chunks = _told(connection, params.progress_token, under_way)
        written = await under_way.write(connection.host, chunks)
    return SessionExportResult(
        path=str(written.path),
        size_bytes=written.size_bytes,
        entries=written.entries,
        redactions=written.redactions,
        skipped=written.skipped,
    )


async def _told(
    connection: Connection, token: str | int | None, under_way: Exporting
) -> AsyncIterator[bytes]:
    silent = token is None or "$/progress" in connection.subscriptions.opt_out
    told = 0.0
    async for chunk in under_way.chunks():
        yield chunk
        if token is not None and not silent and under_way.fraction >= told + 0.01:
            told = under_way.fraction
            value = ProgressValue("report", fraction=round(told, 4))
            connection.outlet.notify("$/progress", ProgressNotification(token, value))


METHODS = (
    Method(
        "session/check",
        "Look at every line and entry of a session for damage.",
        StoredParams,
        SessionCheckResult,
        check_,
    ),
    Method(
        "session/repair",
        "Make a damaged session readable to the end.",
        StoredParams,
        SessionRepairResult,
        repair_,
    ),
    Method(
        "session/export",
        "Write a session to a new file, without its secrets.",
        SessionExportParams,
        SessionExportResult,
        export,
    ),
)
