"""Session files and lines for tests of the store."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pi_rpc.core.codec import encode
from pi_rpc.core.entries import Header, Kind
from pi_rpc.core.ports.store import NewLine, StoredSession

CWD = "/home/u/proj"
STAMP = "2026-11-29T21:09:31.887Z"


class CountedIds:
    """Ids in the order they are drawn."""

    def __init__(self) -> None:
        self._count = 0

    def entry_id(self) -> str:
        self._count += 1
        return f"{self._count:08x}"

    def unique_id(self) -> str:
        self._count += 1
        return f"0193f000-0000-7000-8000-{self._count:012x}"


def header(session_id: str = "s1", cwd: str = CWD, **fields: Any) -> Header:
    return Header(session_id=session_id, timestamp=STAMP, cwd=cwd, **fields)


def message(
    entry_id: str, parent: str | None, text: str = "hi", role: str = "user"
) -> dict[str, Any]:
    return {
        "type": "message",
        "id": entry_id,
        "parentId": parent,
        "timestamp": STAMP,
        "message": {"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1},
    }


def line(entry_id: str, parent_row: int, parent: str | None, text: str = "hi") -> NewLine:
    return NewLine(encode(message(entry_id, parent, text)), entry_id, parent_row, Kind.USER)


def chain(count: int, first: int = 1) -> list[NewLine]:
    """Lines each below the one before, ids counted from `first`."""
    lines, parent = [], None
    for number in range(first, first + count):
        lines.append(line(f"{number:08x}", number - first - 1, parent, f"text {number}"))
        parent = f"{number:08x}"
    return lines


def stored_lines(entries: Iterable[Any], head: dict[str, Any] | None = None) -> list[bytes]:
    first = header().as_object() if head is None else head
    return [
        each if isinstance(each, bytes) else json.dumps(each, separators=(",", ":")).encode()
        for each in (first, *entries)
    ]


def write_session(path: Path, entries: Iterable[Any], head: dict[str, Any] | None = None) -> bytes:
    """Write a session file; entries are objects, or lines as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = b"".join(each + b"\n" for each in stored_lines(entries, head))
    path.write_bytes(data)
    return data


def ids_of(session: StoredSession) -> list[str]:
    return [session.heads.id_of(row) for row in range(len(session.heads))]


def reasons(session: StoredSession) -> list[str]:
    return [each.reason for each in session.diagnostics]


def texts_of(session: StoredSession, rows: Sequence[int] | range) -> list[bytes]:
    return [session.line(row) for row in rows]


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())
