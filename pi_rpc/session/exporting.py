"""A session written to a file for others, without its secrets unless they are asked for."""

import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Literal

import msgspec
from anyio import to_thread

from pi_rpc.core.codec import decode, encode
from pi_rpc.core.entries import Header
from pi_rpc.core.errors import Damaged, Invalid
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.pages import entry_on_page, page_end, page_start
from pi_rpc.core.ports.store import StoredSession
from pi_rpc.core.redaction import Redaction
from pi_rpc.core.stamps import stamp_at
from pi_rpc.core.tree import Tree
from pi_rpc.session.checking import chunks_of, looked_into
from pi_rpc.session.host import Host

ExportForm = Literal["jsonl", "markdown", "html"]
SUFFIXES: dict[ExportForm, str] = {"jsonl": ".jsonl", "markdown": ".md", "html": ".html"}
"""How exports are named that nobody named."""


class Export(msgspec.Struct, frozen=True):
    """What to write, and where."""

    form: ExportForm
    path: Path | None
    """None: a new name in the session's working directory."""
    leaf_id: str | None
    """The path to this entry; None is the leaf."""
    every_branch: bool
    """Everything the file holds, in its order; only as JSON lines."""
    redacts: bool


class Exported(msgspec.Struct, frozen=True):
    """What was written."""

    path: Path
    size_bytes: int
    entries: int
    redactions: int
    skipped: int
    """Entries that could not be read."""


class Exporting:
    """One export under way."""

    def __init__(self, stored: StoredSession, leaf_row: int, export: Export) -> None:
        tree = Tree(stored.heads, stored.line)
        self.fraction = 0.0
        self.redaction = Redaction(export.redacts)
        self.skipped = 0
        self.is_empty = True
        """Whether nothing of the conversation was written yet."""
        self._stored = stored
        self._export = export
        self._name = tree.name()
        self._above: str | None = None
        if export.leaf_id is not None:
            leaf_row = tree.row_of(export.leaf_id)
        self.rows: Sequence[int] = range(len(tree)) if export.every_branch else tree.path(leaf_row)
        self.elsewhere = len(tree) - len(self.rows)
        """Entries that are not on the path written."""

    async def chunks(self) -> AsyncIterator[bytes]:
        """The file, piece by piece."""
        yield self._head()
        done = 0
        async for rows in chunks_of(self.rows):
            chunk = await to_thread.run_sync(self._body, rows)
            done += len(rows)
            self.is_empty = self.is_empty and not chunk
            self.fraction = done / len(self.rows)
            yield chunk
        if self._export.form != "jsonl":
            yield page_end(self._export.form).encode()

    def _head(self) -> bytes:
        stored = self._stored.header.as_object()
        if not self._export.every_branch:
            # A path is no copy of the file that the parent was copied from.
            stored.pop("parentSession", None)
        stored = self.redaction.value(stored)
        if self._export.form == "jsonl":
            return encode(stored) + b"\n"
        header = Header(
            self._stored.header.session_id,
            str(stored.get("timestamp", "")),
            str(stored.get("cwd", "")),
        )
        name = None if self._name is None else self.redaction.text(self._name)
        return page_start(self._export.form, header, name).encode("utf-8", "replace")

    def _body(self, rows: Sequence[int]) -> bytes:
        return b"".join(self._rendered(rows))

    def _rendered(self, rows: Sequence[int]) -> Iterator[bytes]:
        form = self._export.form
        for row in rows:
            raw = self._stored.line(row)
            if form == "jsonl" and self._export.every_branch and not self.redaction.is_on:
                yield raw + b"\n"
                continue
            stored = self._object(raw)
            if stored is None:
                self.skipped += 1
            elif form == "jsonl":
                yield encode(self._rechained(self.redaction.value(stored))) + b"\n"
            else:
                page = entry_on_page(form, self.redaction.value(stored))
                yield page.encode("utf-8", "replace")

    @staticmethod
    def _object(raw: bytes) -> JsonObject | None:
        try:
            stored = decode(raw)
        except Damaged:
            return None
        return stored if isinstance(stored, dict) else None

    def _rechained(self, stored: JsonObject) -> JsonObject:
        if self._export.every_branch:
            return stored
        # An entry that could not be read is left out, so the next hangs below the one before.
        above, self._above = self._above, stored.get("id")
        return stored if stored.get("parentId") == above else stored | {"parentId": above}

    async def write(self, host: Host, chunks: AsyncIterable[bytes]) -> Exported:
        """Write the chunks, ours as they come or passed on by somebody who looks on.

        Raises Refused `file_exists`, Missing `folder_missing`, Outside; then nothing was written.
        """
        path = self._export.path or self._free_path(host)
        size_bytes = await host.store.publish(path, chunks)
        return Exported(
            path, size_bytes, len(self.rows) - self.skipped, self.redaction.count, self.skipped
        )

    def _free_path(self, host: Host) -> Path:
        session_id = self._stored.header.session_id
        live = host.find(session_id)
        folder = Path(self._stored.header.cwd) if live is None else live.cwd
        stamp = re.sub(r"[^0-9T]", "", stamp_at(host.around.clock.now_ms()))
        for number in count():
            more = f"-{number}" if number else ""
            path = folder / f"session-{session_id}-{stamp}{more}{SUFFIXES[self._export.form]}"
            if not path.exists():
                return path
        raise AssertionError("numbers do not end")


@asynccontextmanager
async def exporting(
    host: Host, which: str | Path, export: Export
) -> AsyncGenerator[Exporting, None]:
    """An export about to be written.

    Raises Invalid `path_not_absolute` or `one_path_only`, Missing `entry_not_found`, and what
    opening to read raises.
    """
    if export.path is not None and not export.path.is_absolute():
        raise Invalid(
            "path_not_absolute", "an export needs an absolute path", path=str(export.path)
        )
    if export.every_branch and (export.form != "jsonl" or export.leaf_id is not None):
        raise Invalid(
            "one_path_only", "only JSON lines hold every branch, and then no leaf is named"
        )
    async with looked_into(host, which) as (stored, leaf_row):
        yield Exporting(stored, leaf_row, export)
