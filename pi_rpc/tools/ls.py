"""The names in one folder.

Promises
- Names come in one order, whatever the disk's: letters before their case.
- Memory is bounded by the limit, not by the folder.
"""

import heapq
import os
from collections.abc import Iterator
from pathlib import Path

import anyio.from_thread
import anyio.to_thread

from pi_rpc.core.arguments import checked
from pi_rpc.core.errors import Stopped
from pi_rpc.core.messages import JsonObject, ToolCall, ToolDeclaration, ToolOutcome, text_block
from pi_rpc.core.ports.tools import CallContext, Effect
from pi_rpc.tools.files import shown_name, system_failures
from pi_rpc.tools.paths import real_place, resolved
from pi_rpc.tools.truncate import Limits, head, size_text

ENTRIES_DEFAULT = 500
"""Names shown when no limit is given."""
ENTRIES_MAX = 100_000
"""Most names that may be asked for; more than fits into what a model is shown."""


class LsTool:
    """Lists a folder."""

    effect: Effect = "none"
    sequential = False
    declaration = ToolDeclaration(
        name="ls",
        description=(
            "List the names in a folder, hidden ones too; folders end with /. At most `limit` names"
            " or 50KB are shown."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Folder; the cwd if left out"},
                "limit": {"type": "integer", "description": "Most names to show, 500 if left out"},
            },
        },
    )

    def __init__(self, limits: Limits | None = None) -> None:
        # Names are limited by their own count, and never by lines.
        self._limits = limits or Limits(lines=ENTRIES_MAX)

    async def place_of(self, arguments: JsonObject, cwd: Path) -> Path:
        """Where it leads."""
        return await real_place(arguments.get("path", "."), cwd)

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        """Raises Missing `file_not_found`, Refused (`not_a_directory`, `permission_denied`)."""
        arguments = checked(call.arguments, self.declaration.parameters)
        return await anyio.to_thread.run_sync(self._list, arguments, context)

    def _list(self, arguments: JsonObject, context: CallContext) -> ToolOutcome:
        path = resolved(arguments.get("path", "."), context.cwd)
        limit = min(max(1, arguments.get("limit", ENTRIES_DEFAULT)), ENTRIES_MAX)
        with system_failures(path):
            # One more than wanted tells "exactly as many" from "more".
            names = heapq.nsmallest(
                limit + 1, _names_in(path, context), key=lambda name: (name.casefold(), name)
            )
        is_cut = len(names) > limit
        kept = head("\n".join(names[:limit]), self._limits)
        details: JsonObject = {}
        notices = []
        if is_cut:
            details["entryLimitReached"] = limit
            notices.append(f"Only the first {limit} names; for more, use limit {limit * 2}.")
        if kept.truncated:
            details["truncation"] = kept.as_object()
            notices.append(f"The limit of {size_text(kept.limits.size_bytes)} was reached.")
        text = kept.content or "(empty folder)"
        if notices:
            text += f"\n\n[{' '.join(notices)}]"
        return ToolOutcome(content=[text_block(text)], details=details or None)


def _names_in(path: Path, context: CallContext) -> Iterator[str]:
    with os.scandir(path) as entries:
        for entry in entries:
            anyio.from_thread.check_cancelled()
            if context.stop.is_set():
                raise Stopped("aborted", "Listing was stopped.")
            if entry.is_symlink() and not Path(entry.path).exists():
                continue
            name = shown_name(entry.name)
            yield f"{name}/" if entry.is_dir() else name
