"""Lines that match, found by ripgrep where there is one, else by a search of our own.

Promises
- Files come in one order, whatever the disk's, and nothing that ignore files pass over.
- A search ends when enough is found, when it is stopped, and with the call; whatever the pattern,
  it holds up nobody else, for it runs in a process of its own.
"""

import os
import re
import shutil
import stat
import sys
import sysconfig
from pathlib import Path
from typing import Literal

import anyio
import msgspec

from pi_rpc.core.arguments import checked
from pi_rpc.core.errors import Invalid, Stopped
from pi_rpc.core.messages import JsonObject, ToolCall, ToolDeclaration, ToolOutcome, text_block
from pi_rpc.core.ports.tools import CallContext, Effect, StopSignal
from pi_rpc.tools.files import shown_bytes, system_failures
from pi_rpc.tools.globbing import glob_regex
from pi_rpc.tools.ignoring import is_in_repository
from pi_rpc.tools.own_grep import LINE_BYTES_MAX, Search
from pi_rpc.tools.paths import real_place, resolved_to_read
from pi_rpc.tools.process import Child
from pi_rpc.tools.truncate import Limits, head, size_text

MATCHES_DEFAULT = 100
"""Matches shown when no limit is given."""
MATCHES_MAX = 100_000
"""Most matches that may be asked for; more than fits into what a model is shown."""
CONTEXT_MAX = 1000
"""Most lines around a match that may be asked for."""
LINE_CHARS_MAX = 500
"""How much of a line is shown: enough to see what matched, little of a minified file."""
ERROR_BYTES_MAX = 2000
"""How much of what a search says of its failure is passed on."""
TIME_S_MAX = 300.0
"""A longer search is given up, with what it has found."""
GRACE_S = 0.2
"""A search has nothing to clean up."""

PACKAGES = Path(__file__).parent.parent.parent
"""Where a search of our own finds itself."""


class GrepTool:
    """Finds lines in files."""

    effect: Effect = "none"
    sequential = False
    declaration = ToolDeclaration(
        name="grep",
        description=(
            "Find lines that match a regular expression, in files sorted by path, hidden ones too."
            " What .gitignore passes over and binary files are left out. At most `limit` matches or"
            " 50KB are shown, of each line the first 500 characters."
        ),
        parameters={
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "Regular expression, or plain text"},
                "path": {
                    "type": "string",
                    "description": "Folder or file to search; the cwd if left out",
                },
                "glob": {"type": "string", "description": "Only files that fit, like *.ts"},
                "ignoreCase": {"type": "boolean", "description": "Capitals make no difference"},
                "literal": {"type": "boolean", "description": "The pattern is plain text"},
                "context": {"type": "integer", "description": "Lines shown around each match"},
                "limit": {"type": "integer", "description": "Most matches, 100 if left out"},
            },
            "required": ["pattern"],
        },
    )

    def __init__(
        self,
        limits: Limits | None = None,
        engine: Literal["rg", "own"] | None = None,
        time_s_max: float = TIME_S_MAX,
    ) -> None:
        # Lines are limited by matches, and never by their own count.
        self._limits = limits or Limits(lines=MATCHES_MAX)
        self._engine = engine
        self._time_s_max = time_s_max

    async def place_of(self, arguments: JsonObject, cwd: Path) -> Path:
        """Where it leads."""
        return await real_place(arguments.get("path", "."), cwd, resolved_to_read)

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        """Raises Missing `file_not_found`, Invalid (`bad_pattern`, `bad_glob`)."""
        arguments = checked(call.arguments, self.declaration.parameters)
        path = resolved_to_read(arguments.get("path", "."), context.cwd)
        with system_failures(path):
            is_folder = stat.S_ISDIR((await anyio.Path(path).stat()).st_mode)
        search = Search(
            arguments["pattern"],
            "./" if is_folder else f"./{path.name}",
            _usable_glob(arguments.get("glob")),
            arguments.get("ignoreCase", False),
            arguments.get("literal", False),
            min(max(0, arguments.get("context", 0)), CONTEXT_MAX),
        )
        limit = min(max(1, arguments.get("limit", MATCHES_DEFAULT)), MATCHES_MAX)
        folder = path if is_folder else path.parent
        found = await self._searched(search, folder, limit, context.stop)
        return self._outcome(found, limit)

    async def _searched(
        self, search: Search, folder: Path, limit: int, stop: StopSignal
    ) -> "_Found":
        if stop.is_set():
            raise Stopped("aborted", "Searching was stopped.")
        command, environment = _command(search, folder, self._engine)
        child = Child.started(command, folder, environment)
        found = _Found(search.context, limit)
        try:
            with anyio.move_on_after(self._time_s_max):
                async with anyio.create_task_group() as tasks:

                    async def heed_stop() -> None:
                        await stop.wait()
                        tasks.cancel_scope.cancel()

                    tasks.start_soon(heed_stop)
                    while not found.is_enough:
                        await child.wait_until_readable()
                        chunk = child.read()
                        if chunk == b"":
                            found.is_whole = True
                            break
                        found.feed(chunk or b"")
                    tasks.cancel_scope.cancel()
                if found.is_whole and not stop.is_set():
                    await child.wait_until_exited()
        finally:
            if not child.has_exited():
                with anyio.CancelScope(shield=True):
                    await child.end(GRACE_S)
            code = child.close()
        if stop.is_set():
            raise Stopped("aborted", "Searching was stopped.")
        if found.is_whole and code not in (0, 1) and not found.lines and found.said:
            raise Invalid("bad_pattern", f"The search failed: {shown_bytes(found.said).strip()}")
        return found

    def _outcome(self, found: "_Found", limit: int) -> ToolOutcome:
        kept = head("\n".join(found.lines), self._limits)
        details: JsonObject = {}
        notices = []
        if found.has_more:
            details["matchLimitReached"] = limit
            notices.append(
                f"Only the first {limit} matches; for more, use limit {limit * 2} or a narrower"
                " pattern."
            )
        if kept.truncated:
            details["truncation"] = kept.as_object()
            notices.append(f"The limit of {size_text(kept.limits.size_bytes)} was reached.")
        if found.has_cut_lines:
            details["linesTruncated"] = True
            notices.append(
                f"Of long lines the first {LINE_CHARS_MAX} characters are shown; read shows more."
            )
        if not (found.is_whole or found.is_enough):
            details["timedOut"] = True
            notices.append(f"The search was given up after {self._time_s_max:g} s.")
        text = kept.content or "(no line matches)"
        if notices:
            text += f"\n\n[{' '.join(notices)}]"
        return ToolOutcome(content=[text_block(text)], details=details or None)


class _Found:
    """Matches out of what a search prints: a path, NUL, number, `:` or `-`, the line."""

    def __init__(self, context: int, limit: int) -> None:
        self.lines: list[str] = []
        self.has_more = False
        """Whether a match exists beyond those shown."""
        self.has_cut_lines = False
        self.is_enough = False
        self.is_whole = False
        """Whether the search came to its end."""
        self.said = b""
        """What was printed beside lines: why a search failed, if it did."""
        self._rest = b""
        self._context = context
        self._left = limit
        self._last: tuple[bytes, int] = (b"", 0)
        """Where the last match shown stands."""

    def feed(self, chunk: bytes) -> None:
        records = (self._rest + chunk).split(b"\n")
        self._rest = records.pop()
        for record in records:
            path, nul, line = record.partition(b"\0")
            found = _NUMBERED.match(line) if nul else None
            if found is None:
                # What a search says about a file, or why it failed.
                self.said += (record + b"\n")[: max(0, ERROR_BYTES_MAX - len(self.said))]
                continue
            path = path.removeprefix(b"./")
            self._take(path, int(found[1]), found[2] == b":", line[found.end() :])
            if self.is_enough:
                return

    def _take(self, path: bytes, number: int, is_match: bool, line: bytes) -> None:
        if not self._left:
            last_path, last_number = self._last
            self.has_more = self.has_more or is_match
            if path != last_path or number > last_number + self._context:
                self.is_enough = self.has_more
                return
            is_match = False
        elif is_match:
            self._left -= 1
            self._last = (path, number)
        text = shown_bytes(line.removesuffix(b"\r"))
        if len(text) > LINE_CHARS_MAX:
            text = f"{text[:LINE_CHARS_MAX]}… (cut)"
            self.has_cut_lines = True
        mark = ":" if is_match else "-"
        self.lines.append(f"{shown_bytes(path)}{mark}{number}{mark} {text}")


_NUMBERED = re.compile(rb"(\d+)([:-])")


def ripgrep() -> str | None:
    """The ripgrep on the PATH, or the one installed beside us."""
    beside = Path(sysconfig.get_path("scripts"), "rg")
    return shutil.which("rg") or (str(beside) if os.access(beside, os.X_OK) else None)


def _command(
    search: Search, folder: Path, engine: Literal["rg", "own"] | None
) -> tuple[list[str], dict[str, str]]:
    """The words that start a search, and its environment."""
    program = None if engine == "own" else ripgrep()
    if program is not None:
        return [program, *_ripgrep_words(search, folder)], dict(os.environ)
    told = msgspec.json.encode(search).decode()
    # Without -P a folder that is searched could stand in for this package.
    command = [sys.executable, "-P", "-m", "pi_rpc.tools.own_grep", told]
    return command, {**os.environ, "PYTHONPATH": str(PACKAGES)}


def _ripgrep_words(search: Search, folder: Path) -> list[str]:
    words = ["--no-config", "--hidden", "--no-require-git", "--no-ignore-global", "--no-messages"]
    words += ["--sort=path", "--color=never", "--no-heading", "--with-filename", "--line-number"]
    words += ["--null", "--no-context-separator", f"--context={search.context}"]
    words += [f"--max-columns={LINE_BYTES_MAX}", "--max-columns-preview"]
    if not is_in_repository(folder):
        words.append("--no-ignore-parent")
    if search.ignore_case:
        words.append("--ignore-case")
    if search.literal:
        words.append("--fixed-strings")
    if search.glob is not None:
        words.append(f"--glob={search.glob}")
    return [*words, "--glob=!.git", f"--regexp={search.pattern}", "--", search.target]


def _usable_glob(given: str | None) -> str | None:
    """A glob without a leading `./`. Raises Invalid `bad_glob`."""
    if not given:
        return None
    negation = "!" if given.startswith("!") else ""
    glob = negation + given.removeprefix("!").removeprefix("./")
    try:
        glob_regex(glob.removeprefix("!"))
    except ValueError as error:
        raise Invalid("bad_glob", f"The glob cannot be used: {error}") from error
    return glob
