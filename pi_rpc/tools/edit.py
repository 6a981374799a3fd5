"""Exact replacements in a file, all or none, with a diff.

Promises
- Bytes outside the replaced spans stay as they are, whatever they are: other encodings, mixed line
  ends, a byte order mark.
- Every edit is found in the file as it was; the order of edits means nothing.
- An edit whose text is not there, is there twice, or overlaps another leaves the file alone.
"""

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec

from pi_rpc.core.arguments import checked
from pi_rpc.core.errors import Invalid, Missing, Refused, Stopped
from pi_rpc.core.messages import JsonObject, ToolCall, ToolDeclaration, ToolOutcome, text_block
from pi_rpc.core.ports.tools import CallContext, Effect
from pi_rpc.tools.diff import Change, changes_between, details_of, lines_of
from pi_rpc.tools.files import bytes_of, replaced
from pi_rpc.tools.matching import Source, Span, with_plain_breaks
from pi_rpc.tools.paths import real_place, resolved
from pi_rpc.tools.queueing import TURNS, FileTurns
from pi_rpc.tools.write import encoded

_BYTE_ORDER_MARK = "\ufeff"


class Edit(msgspec.Struct, frozen=True, rename="camel"):
    """What stands there, once, and what shall stand there instead."""

    old_text: str
    new_text: str


class Replacement(msgspec.Struct, frozen=True):
    """A span of a text and what takes its place, line breaks already as the file has them."""

    span: Span
    text: str


class EditTool:
    """Replaces parts of a text file."""

    effect: Effect = "workspace"
    sequential = False
    declaration = ToolDeclaration(
        name="edit",
        description=(
            "Replace parts of a file. Each oldText must stand exactly once in the file as it is"
            " before the call; edits may not overlap. Give several edits of one file in one call."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File, absolute or relative to the cwd"},
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "oldText": {
                                "type": "string",
                                "description": "Text to replace, long enough to be unique",
                            },
                            "newText": {"type": "string", "description": "What takes its place"},
                        },
                        "required": ["oldText", "newText"],
                    },
                },
            },
            "required": ["path", "edits"],
        },
    )

    def __init__(self, turns: FileTurns = TURNS) -> None:
        self._turns = turns

    def prepared(self, arguments: JsonObject) -> JsonObject:
        """Forms that models also use, brought into the declared one.

        These are: edits as JSON text, as one object, and `oldText` and `newText` beside the path.
        """
        edits: Any = arguments.get("edits", [])
        if isinstance(edits, str):
            try:
                edits = msgspec.json.decode(edits)
            except msgspec.DecodeError:
                return arguments
        if isinstance(edits, dict):
            edits = [edits]
        legacy = {name: arguments[name] for name in ("oldText", "newText") if name in arguments}
        if len(legacy) == 2 and isinstance(edits, list):
            edits = [*edits, legacy]
        elif "edits" not in arguments:
            return arguments
        others = {name: value for name, value in arguments.items() if name not in legacy}
        return {**others, "edits": edits}

    async def place_of(self, arguments: JsonObject, cwd: Path) -> Path:
        """Where it leads."""
        return await real_place(str(arguments["path"]), cwd)

    async def preview(self, arguments: JsonObject, cwd: Path) -> JsonObject:
        """What it would change. Raises what `run` raises for edits that cannot be made."""
        edits = msgspec.convert(arguments["edits"], list[Edit])

        def look() -> JsonObject:
            given = arguments["path"]
            return _planned(given, resolved(given, cwd), edits).details

        return await anyio.to_thread.run_sync(look)

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        """Raises what `plan_edits` raises, Invalid `unchanged`, Missing `file_not_found`, Refused
        (`file_changed`, `is_a_directory`, `permission_denied`), Overfull, Outside and Stopped."""
        arguments = checked(self.prepared(call.arguments), self.declaration.parameters)
        given = arguments["path"]
        edits = msgspec.convert(arguments["edits"], list[Edit])
        for edit in edits:
            encoded(edit.old_text, "oldText")
            encoded(edit.new_text, "newText")
        async with self._turns.turn_at(given, context.cwd) as path:
            if context.stop.is_set():
                raise Stopped("aborted", f"Stopped before {given} was edited.")
            details = await anyio.to_thread.run_sync(_edit, given, path, edits)
        blocks = "1 block" if len(edits) == 1 else f"{len(edits)} blocks"
        near = " (found nearly, not exactly)" if details["matched"] == "fuzzy" else ""
        text = f"Replaced {blocks} in {given}{near}."
        return ToolOutcome(content=[text_block(text)], details=details)


def plan_edits(text: str, edits: Sequence[Edit], path: str) -> list[Replacement]:
    """Where each edit goes, first place first.

    Raises Invalid (`no_edits`, `empty_old_text`, `overlap`), Missing `not_found` and Refused
    `not_unique`; `data.index` says which edit, counted from 0.
    """
    if not edits:
        raise Invalid("no_edits", "No edits were given.", path=path)
    source = Source(text)
    found: list[tuple[Span, int]] = []
    for index, edit in enumerate(edits):
        found.append((_only_span(source, edit, index, path), index))
    found.sort(key=lambda pair: pair[0].start)
    for (above, above_index), (below, below_index) in pairwise(found):
        if below.start < above.end:
            first, second = sorted((above_index, below_index))
            raise Invalid(
                "overlap",
                f"edits[{first}] and edits[{second}] touch the same text in {path};"
                " make one edit of them.",
                path=path,
                indexes=[first, second],
            )
    return [
        Replacement(span, _with_breaks_of(edits[index].new_text, text, span.start))
        for span, index in found
    ]


def applied(text: str, replacements: Sequence[Replacement]) -> str:
    """The text with every span replaced."""
    pieces: list[str] = []
    at = 0
    for each in replacements:
        pieces += text[at : each.span.start], each.text
        at = each.span.end
    pieces.append(text[at:])
    joined: list[str] = []
    for piece in filter(None, pieces):
        if joined and joined[-1].endswith("\r") and piece.startswith("\n"):
            # Side by side the two would melt into one line break.
            joined.append("\n")
        joined.append(piece)
    return "".join(joined)


def changes_made(text: str, replacements: Sequence[Replacement]) -> list[Change]:
    """The changed lines. Only what the edits touch is compared, so a long file costs no more."""
    changes: list[Change] = []
    row = new_row = at = 0
    for start, end, inside in _blocks(text, replacements):
        between = text.count("\n", at, start)
        row, new_row = row + between, new_row + between
        moved = [
            Replacement(Span(each.span.start - start, each.span.end - start), each.text)
            for each in inside
        ]
        old, new = lines_of(text[start:end]), lines_of(applied(text[start:end], moved))
        changes += [
            Change(row + c.old_start, row + c.old_end, new_row + c.new_start, new_row + c.new_end)
            for c in changes_between(old, new)
        ]
        row, new_row, at = row + len(old), new_row + len(new), end
    return changes


def _only_span(source: Source, edit: Edit, index: int, path: str) -> Span:
    where = f"edits[{index}].oldText"
    if not edit.old_text:
        raise Invalid("empty_old_text", f"{where} is empty.", path=path, index=index)
    spans = source.spans_of(edit.old_text)
    if not spans:
        raise Missing(
            "not_found",
            f"{where} does not stand in {path}. Read the file again and copy the text as it is.",
            path=path,
            index=index,
        )
    if len(spans) > 1:
        raise Refused(
            "not_unique",
            f"{where} stands {len(spans)} times in {path}. Add more of what surrounds it.",
            path=path,
            index=index,
            count=len(spans),
        )
    return spans[0]


def _with_breaks_of(new: str, text: str, at: int) -> str:
    """The new text with the line break of the line at a place; if it has none, of the one above."""
    plain = with_plain_breaks(new)
    found = text.find("\n", at)
    if found < 0:
        found = text.rfind("\n", 0, at)
    if found < 0:
        return plain.replace("\n", "\r") if "\r" in text else plain
    return plain.replace("\n", "\r\n") if text[found - 1 : found] == "\r" else plain


class _Planned(msgspec.Struct, frozen=True):
    before: bytes
    after: bytes
    details: JsonObject


def _edit(given: str, path: Path, edits: Sequence[Edit]) -> JsonObject:
    planned = _planned(given, path, edits)
    replaced(path, planned.after, expected=planned.before)
    return planned.details


def _planned(given: str, path: Path, edits: Sequence[Edit]) -> _Planned:
    before = bytes_of(path)
    # Each undecodable byte becomes a lone surrogate and is that byte again afterwards; no text of a
    # call can hold one, so it is never part of a match.
    whole = before.decode("utf-8", "surrogateescape")
    text = whole.removeprefix(_BYTE_ORDER_MARK)
    replacements = plan_edits(text, edits, given)
    after_text = applied(text, replacements)
    after = (whole[: len(whole) - len(text)] + after_text).encode("utf-8", "surrogateescape")
    if after == before:
        raise Invalid("unchanged", f"The edits leave {given} as it is.", path=given)
    changes = changes_made(text, replacements)
    details = details_of(given, lines_of(text), lines_of(after_text), changes)
    is_fuzzy = any(each.span.is_fuzzy for each in replacements)
    told = {
        **{name: _shown(value) for name, value in details.items()},
        "matched": "fuzzy" if is_fuzzy else "exact",
        "beforeSha256": hashlib.sha256(before).hexdigest(),
        "afterSha256": hashlib.sha256(after).hexdigest(),
    }
    return _Planned(before, after, told)


def _blocks(
    text: str, replacements: Sequence[Replacement]
) -> list[tuple[int, int, list[Replacement]]]:
    """Stretches of whole lines around the spans. The line a span ends before is in it too, for it
    may be joined to the one above."""
    blocks: list[tuple[int, int, list[Replacement]]] = []
    for each in replacements:
        start = text.rfind("\n", 0, each.span.start) + 1
        end = text.find("\n", each.span.end) + 1 or len(text)
        if blocks and start < blocks[-1][1]:
            first, _, inside = blocks.pop()
            blocks.append((first, end, [*inside, each]))
        else:
            blocks.append((start, end, [each]))
    return blocks


def _shown(value: Any) -> Any:
    """Text that may leave the process: a byte that is no UTF-8 is shown as the replacement sign."""
    if not isinstance(value, str):
        return value
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
