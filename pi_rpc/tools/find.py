"""Paths that fit a pattern.

Promises
- Paths come in one order, whatever the disk's, and nothing that ignore files pass over.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import anyio.from_thread
import anyio.to_thread

from pi_rpc.core.arguments import checked
from pi_rpc.core.errors import Invalid, Stopped
from pi_rpc.core.messages import JsonObject, ToolCall, ToolDeclaration, ToolOutcome, text_block
from pi_rpc.core.ports.tools import CallContext, Effect
from pi_rpc.tools.files import require_folder, shown_name
from pi_rpc.tools.globbing import glob_regex
from pi_rpc.tools.paths import real_place, resolved
from pi_rpc.tools.truncate import Limits, head, size_text
from pi_rpc.tools.walking import walked

RESULTS_DEFAULT = 1000
"""Paths shown when no limit is given."""
RESULTS_MAX = 100_000
"""Most paths that may be asked for; more than fits into what a model is shown."""


class FindTool:
    """Finds files and folders by their paths."""

    effect: Effect = "none"
    sequential = False
    declaration = ToolDeclaration(
        name="find",
        description=(
            "Find files and folders by a glob pattern, sorted by path, hidden ones too. What"
            " .gitignore passes over is left out; folders end with /. A pattern without / fits"
            " names at any depth, one with / fits paths from the folder searched. At most `limit`"
            " paths or 50KB are shown."
        ),
        parameters={
            "type": "object",
            "properties": {
                "pattern": {
                    "type": "string",
                    "description": "Like *.ts, **/test_*.py or src/**/*.{c,h};"
                    " ignores case when it has no capitals",
                },
                "path": {"type": "string", "description": "Folder to search; the cwd if left out"},
                "limit": {"type": "integer", "description": "Most paths to show, 1000 if left out"},
            },
            "required": ["pattern"],
        },
    )

    def __init__(self, limits: Limits | None = None) -> None:
        # Paths are limited by their own count, and never by lines.
        self._limits = limits or Limits(lines=RESULTS_MAX)

    async def place_of(self, arguments: JsonObject, cwd: Path) -> Path:
        """Where it leads."""
        return await real_place(arguments.get("path", "."), cwd)

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        """Raises Missing `file_not_found`, Refused `not_a_directory`, Invalid `bad_glob`."""
        arguments = checked(call.arguments, self.declaration.parameters)
        return await anyio.to_thread.run_sync(self._find, arguments, context)

    def _find(self, arguments: JsonObject, context: CallContext) -> ToolOutcome:
        folder = resolved(arguments.get("path", "."), context.cwd)
        require_folder(folder)
        fits = fitting(arguments["pattern"])
        limit = min(max(1, arguments.get("limit", RESULTS_DEFAULT)), RESULTS_MAX)
        # One more than wanted tells "exactly as many" from "more".
        found = list(islice(_found(folder, fits, context), limit + 1))
        is_cut = len(found) > limit
        kept = head("\n".join(found[:limit]), self._limits)
        details: JsonObject = {}
        notices = []
        if is_cut:
            details["resultLimitReached"] = limit
            notices.append(
                f"Only the first {limit} paths; for more, use limit {limit * 2} or a narrower"
                " pattern."
            )
        if kept.truncated:
            details["truncation"] = kept.as_object()
            notices.append(f"The limit of {size_text(kept.limits.size_bytes)} was reached.")
        text = kept.content or "(no path fits)"
        if notices:
            text += f"\n\n[{' '.join(notices)}]"
        return ToolOutcome(content=[text_block(text)], details=details or None)


def fitting(pattern: str) -> Callable[[str], object]:
    """Whether a path fits a pattern. Raises Invalid `bad_glob`."""
    pattern = pattern.removeprefix("./")
    only_name = "/" not in pattern
    try:
        regex = glob_regex(pattern, ignore_case=pattern == pattern.lower())
    except ValueError as error:
        raise Invalid("bad_glob", f"The pattern cannot be used: {error}") from error
    if only_name:
        return lambda path: regex.match(path.rpartition("/")[2])
    return regex.match


def _found(folder: Path, fits: Callable[[str], object], context: CallContext) -> Iterator[str]:
    for path, is_folder in walked(folder):
        anyio.from_thread.check_cancelled()
        if context.stop.is_set():
            raise Stopped("aborted", "Searching was stopped.")
        if fits(path):
            yield shown_name(f"{path}/" if is_folder else path)
