"""Commands for people at a terminal: list, show, check. No protocol is spoken here.

What is printed is what the protocol would answer, as text; codes for terminals that a session holds
are left out.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import anyio
import msgspec

from pi_rpc.config import Settings, settings_from
from pi_rpc.core.errors import Failure, Locked
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.pages import plain
from pi_rpc.session.checking import check, repair
from pi_rpc.session.exporting import Export, ExportForm, exporting
from pi_rpc.session.host import Host
from pi_rpc.wiring import running_host

Command = Literal["list", "show", "check"]

EXIT_FINE = 0
EXIT_PROBLEMS = 1
"""A check found something that costs something."""
EXIT_FAILED = 2
TITLE_CHARACTERS_MAX = 80
LIST_HEADING = ("LAST ACTIVITY", "SESSION", "MESSAGES", "FOLDER", "TITLE")


class Asked(msgspec.Struct, frozen=True):
    """A command and its flags."""

    command: Command
    session: str = ""
    """An id, the beginning of one, or a path."""
    cwd: str | None = None
    query: str | None = None
    form: ExportForm = "markdown"
    redacts: bool = True
    repairs: bool = False
    session_dir: str | None = None


def run(asked: Asked, environment: Mapping[str, str]) -> int:
    """Carry out a command; its exit status."""
    settings = settings_from(environment, asked.session_dir)
    status = EXIT_FINE
    try:
        status = anyio.run(_run, asked, settings)
        sys.stdout.flush()
    except* BrokenPipeError:
        # Whoever read has seen enough; Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return status


async def _run(asked: Asked, settings: Settings) -> int:
    status = EXIT_FINE
    async with running_host(settings) as host:
        try:
            match asked.command:
                case "list":
                    await _list(host, asked)
                case "show":
                    await _show(host, asked)
                case "check":
                    status = await _check(host, asked)
        except Failure as failure:
            owner = f" (process {failure.data['owner']['pid']})" if _is_owned(failure) else ""
            _say(f"{failure.message}{owner}")
            status = EXIT_FAILED
    return status


def _is_owned(failure: Failure) -> bool:
    return isinstance(failure, Locked) and bool(failure.data.get("owner"))


def _which(session: str) -> str | Path:
    # As the store has it: what can be no id is a path.
    is_path = "/" in session or session.endswith(".jsonl")
    return Path(session).absolute() if is_path else session


async def _list(host: Host, asked: Asked) -> None:
    wanted = (asked.query or "").casefold()
    rows = []
    for one in await host.store.listing(asked.cwd):
        title = " ".join(plain(one.name or one.first_message).split())[:TITLE_CHARACTERS_MAX]
        if wanted and wanted not in f"{title}\n{one.cwd}\n{one.session_id}".casefold():
            continue
        facts = (one.modified[:19], one.session_id, str(one.message_count), one.cwd)
        rows.append((*(plain(fact) for fact in facts), title))
    if rows:
        _print_table([LIST_HEADING, *rows], numbers=LIST_HEADING.index("MESSAGES"))


def _print_table(rows: Sequence[tuple[str, ...]], numbers: int) -> None:
    """Rows in columns; the column of numbers stands to the right, the last takes what it needs."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if place == numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


async def _show(host: Host, asked: Asked) -> None:
    export = Export(asked.form, None, None, every_branch=False, redacts=asked.redacts)
    async with exporting(host, _which(asked.session), export) as under_way:
        async for chunk in under_way.chunks():
            sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
    if under_way.redaction.count:
        left_out = _counted(under_way.redaction.count, "secret was", "secrets were")
        _say(f"{left_out} left out; --no-redact shows what was there")
    if under_way.is_empty and under_way.elsewhere:
        others = _counted(under_way.elsewhere, "entry", "entries")
        _say(f"nothing on this path; {others} on other branches")


def _say(what: str) -> None:
    print(f"pi-rpc: {what}", file=sys.stderr)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


async def _check(host: Host, asked: Asked) -> int:
    which = _which(asked.session)
    if asked.repairs:
        done = await repair(host, which)
        for step in done.steps:
            place = "" if step.offset is None else f" at byte {step.offset}"
            print(f"{step.action}{place}: {step.text}")
        if done.backup is not None:
            print(f"the old file: {done.backup}")
    found = await check(host, which)
    for problem in found.problems:
        print(_line(problem))
    entries = _counted(found.entries, "entry", "entries")
    problems = _counted(len(found.problems), "problem", "problems")
    print(f"{found.session_id}: {entries}, {problems}")
    if found.mended_by_repair and not asked.repairs:
        print("--repair mends what stands in single lines")
    costs = any(problem.severity != "info" for problem in found.problems)
    return EXIT_PROBLEMS if costs else EXIT_FINE


def _line(problem: Diagnostic) -> str:
    place = f" line {problem.line}" if problem.line is not None else ""
    entry = f" entry {plain(problem.entry_id)}" if problem.entry_id is not None else ""
    return f"{problem.severity} {problem.reason}{place}{entry}: {plain(problem.text)}"
