"""Files of older versions, made new: in memory to read them, by a new file to own them.

The one place where a session file is replaced. The new file is complete and on the disk before it
takes the name; the old one stays beside it as `<name>.v<N>.bak`, byte for byte.
"""

import os
from base64 import b64encode
from itertools import count
from pathlib import Path

from pi_rpc.core.codec import decode, encode, migrated
from pi_rpc.core.entries import FORMAT_VERSION, UNPARSED, Header, custom, entry_object
from pi_rpc.core.errors import Damaged
from pi_rpc.core.heads import Heads
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.clock import Ids
from pi_rpc.store.disk import copy_bytes, failing_as, sync_folder, temporary_beside, write_all

_SPACE = b" \t\r\n"


def version_of(header: Header, heads: Heads) -> int:
    """The version a file really has.

    One that names none is of version 1 only if no entry has an id: the rest lost the field.
    """
    if header.fields.get("version") is None and len(heads):
        return FORMAT_VERSION
    return header.version


class _Drawn:
    """New entry ids, none twice and none that is in the file."""

    def __init__(self, ids: Ids, objects: list[JsonObject]) -> None:
        self._ids = ids
        self._used = {stored["id"] for stored in objects if isinstance(stored.get("id"), str)}

    def __call__(self) -> str:
        entry_id = self._ids.entry_id()
        while entry_id in self._used:
            entry_id = self._ids.entry_id()
        self._used.add(entry_id)
        return entry_id


def migrated_lines(data: bytes, version: int, ids: Ids) -> list[bytes]:
    """The lines of a whole file as version 3 has them, header first.

    A line that holds no object becomes an entry of type custom that keeps its text, a dead end
    beside the entry before it.
    """
    objects: list[JsonObject] = []
    stored_lines: list[bytes] = []
    unparsed: list[tuple[int, bytes]] = []
    for line in data.split(b"\n"):
        if not line.strip(_SPACE):
            continue
        try:
            stored = decode(line)
        except Damaged:
            stored = None
        if isinstance(stored, dict):
            objects.append(stored)
            stored_lines.append(line)
        else:
            unparsed.append((len(objects), line))
    new_id = _Drawn(ids, objects)
    made = migrated(objects, version, new_id)
    lines = [
        line if new is old else encode(new)
        for line, old, new in zip(stored_lines, objects, made, strict=True)
    ]
    # From the end, so that the places of the others stay; never last, for the last is the leaf.
    for place, line in reversed(unparsed):
        at = max(1, min(place, len(made) - 1))
        above = next((held["id"] for held in reversed(made[1:at]) if "id" in held), None)
        body = custom(UNPARSED, kept_text(line))
        stamp = made[0].get("timestamp")
        lines.insert(at, encode(entry_object(body, new_id(), above, str(stamp or ""))))
    return lines


def kept_text(line: bytes) -> JsonObject:
    """A line that is no entry, as the data of one that keeps it."""
    try:
        return {"v": 1, "text": line.decode("utf-8")}
    except UnicodeDecodeError:
        return {"v": 1, "base64": b64encode(line).decode("ascii")}


def migrate_file(path: Path, fd: int, lines: list[bytes], version: int, syncs: bool) -> Path:
    """Put migrated lines in the place of an open file of an older version; where the old one lies.

    Raises Outside `migration_failed` or `disk_full`; the file is then as it was.
    """
    with failing_as("migration_failed", path), temporary_beside(path) as (new_fd, temporary):
        for line in lines:
            write_all(new_fd, line + b"\n")
        if syncs:
            os.fsync(new_fd)
        kept = keep_beside(path, fd, f".v{version}")
        temporary.replace(path)
        if syncs:
            sync_folder(path.parent)
    return kept


def keep_beside(path: Path, fd: int, mark: str = "") -> Path:
    """Keep an open file under a second name, `<name><mark>.bak` or the next that is free; which."""
    for number in count():
        kept = path.with_name(f"{path.name}{mark}{f'-{number}' if number else ''}.bak")
        try:
            os.link(path, kept)
        except FileExistsError:
            continue
        except OSError:
            # A file system without links.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            kept_fd = os.open(kept, flags, 0o600)
            try:
                copy_bytes(fd, kept_fd, 0, os.fstat(fd).st_size)
                os.fsync(kept_fd)
            finally:
                os.close(kept_fd)
        return kept
    raise AssertionError("numbers do not end")
