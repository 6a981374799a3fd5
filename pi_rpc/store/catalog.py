"""Folders and names: where sessions lie, and finding, listing and removing them. All of it blocks.

A session's folder is named after its working directory, in a way that gives some directories the
same name; so the header's own directory always decides.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from pi_rpc.core.codec import decode, header_from_object
from pi_rpc.core.entries import Header
from pi_rpc.core.errors import Damaged, Failure, Invalid, Missing, Refused
from pi_rpc.core.meter import Meter
from pi_rpc.core.ports.store import SessionListing
from pi_rpc.store.database import Database
from pi_rpc.store.disk import FILE_MODE, lexical, make_folder, open_regular
from pi_rpc.store.index import index_path
from pi_rpc.store.summary import Summaries

TRASH = ".trash"
HEADER_BYTES_MAX = 1 << 20
"""A header further on or longer is not looked for; such a file still opens by its path."""

_SESSION_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z", re.ASCII)
_NAMED = re.compile(r"\d{4}-\d\d-\d\dT[0-9Z-]+_(.+)\.jsonl\Z", re.ASCII)
_READ_BYTES = 4096
_NAME_BYTES_MAX = 255
_CANDIDATES_TOLD_MAX = 20


def is_session_id(text: str) -> bool:
    """Whether a text may be the id of a session."""
    return _SESSION_ID.match(text) is not None


def folder_name(cwd: str) -> str:
    """The name of the folder for sessions of a working directory."""
    path = lexical(cwd)
    inner = re.sub(r"[/\\:]", "-", path.removeprefix("/"))
    name = f"--{inner}--"
    if len(os.fsencode(name)) > _NAME_BYTES_MAX:
        digest = blake2b(os.fsencode(path), digest_size=8).hexdigest()
        tail = os.fsencode(inner)[-180:].decode("utf-8", "ignore")
        name = f"--{digest}-{tail}--"
    return name


def file_name(header: Header) -> str:
    """The name of a new session's file. Raises Invalid `bad_session_id`."""
    if not is_session_id(header.session_id):
        raise Invalid("bad_session_id", "letters, digits and . _ - between them")
    stamp = re.sub(r"[^0-9A-Za-z-]", "-", header.timestamp)
    return f"{stamp}_{header.session_id}.jsonl"


class Catalog:
    """The folders sessions lie in: one for each working directory, or one for all (`flat`)."""

    def __init__(self, root: Path, flat: Path | None = None, cache: Database | None = None) -> None:
        self.root = root
        self.flat = flat
        self._summaries = Summaries(cache)

    def folder(self, cwd: str) -> Path:
        """Where sessions of a working directory lie."""
        return self.flat if self.flat is not None else self.root / folder_name(cwd)

    def folders(self) -> list[Path]:
        """Every folder that may hold sessions, linked ones too."""
        if self.flat is not None:
            return [self.flat]
        found = [self.root]
        with suppress(OSError), os.scandir(self.root) as entries:
            found += sorted(
                Path(entry.path)
                for entry in entries
                if not entry.name.startswith(".") and _is_folder(entry)
            )
        return found

    def files(self, folder: Path) -> list[Path]:
        """Session files of a folder by name; names that lead nowhere are left out."""
        return [Path(found) for found in _session_files(folder)]

    def listing(self, cwd: str | None, meter: Meter | None = None) -> list[SessionListing]:
        """Every session, latest activity first; of one working directory if given."""
        here = None if cwd is None else lexical(cwd)
        files = self._distinct(self.folders() if cwd is None else [self.folder(cwd)])
        times = {name: state.st_mtime_ns for name, state in files}
        found = [
            listing
            for listing in self._summaries.of(files, meter)
            if here is None or self._is_of(listing.cwd, here)
        ]
        # The file's own time only breaks a tie.
        found.sort(key=lambda each: (each.modified, times[each.file]), reverse=True)
        return found

    @staticmethod
    def _distinct(folders: Iterable[Path]) -> list[tuple[str, os.stat_result]]:
        """Session files with what they are now, one that has several names under its first."""
        found: dict[tuple[int, int], tuple[str, os.stat_result]] = {}
        for name in (name for folder in folders for name in _session_files(folder)):
            try:
                state = os.stat(name)  # noqa: PTH116  (a path object takes longer than the call)
            except OSError:
                continue
            found.setdefault((state.st_dev, state.st_ino), (name, state))
        return list(found.values())

    def _is_of(self, cwd: str, here: str) -> bool:
        # An old header that names no directory can only have come from the folder it lies in.
        return (not cwd and self.flat is None) or (bool(cwd) and lexical(cwd) == here)

    def find(self, text: str, cwd: str | None) -> Path:
        """The file of a session by its id or the unambiguous beginning of one.

        An id in full comes before a beginning, and the given working directory before the others.
        Raises Missing `session_not_found`, Refused `ambiguous_id`.
        """
        exact = self.find_exact(text, cwd)
        if exact is not None:
            return exact
        begun = [each for each in self._headed() if text and each[1].session_id.startswith(text)]
        if not begun:
            raise Missing("session_not_found", f"no session has the id {text}", sessionId=text)
        return self._only(begun, cwd)

    def find_exact(self, session_id: str, cwd: str | None = None) -> Path | None:
        """The file of a session by its whole id. Raises Refused `ambiguous_id` if there are two."""
        # Nearly every file is named after its session, so the right one is looked at first.
        named = [path for path in self._paths() if path.name.endswith(f"_{session_id}.jsonl")]
        for group in (_with_headers(named), self._headed()):
            found = [each for each in group if each[1].session_id == session_id]
            if found:
                return self._only(found, cwd)
        return None

    def is_taken(self, session_id: str) -> bool:
        """Whether a stored session has this id, as far as names tell where they follow our rule."""
        for path in self._paths():
            named = _NAMED.match(path.name)
            if named is None or named[1] == session_id:
                header = read_header(path)
                if header is not None and header.session_id == session_id:
                    return True
        return False

    def _paths(self) -> Iterator[Path]:
        return (path for folder in self.folders() for path in self.files(folder))

    def _headed(self) -> Iterator[tuple[Path, Header]]:
        return _with_headers(self._paths())

    def _only(self, found: list[tuple[Path, Header]], cwd: str | None) -> Path:
        here = None if cwd is None else lexical(cwd)
        near = [each for each in found if here is not None and self._is_of(each[1].cwd, here)]
        real = {path.resolve(): header.session_id for path, header in near or found}
        if len(real) > 1:
            raise Refused(
                "ambiguous_id",
                f"{len(real)} sessions are meant by this id",
                candidates=[
                    {"sessionId": session_id, "path": str(path)}
                    for path, session_id in list(real.items())[:_CANDIDATES_TOLD_MAX]
                ],
            )
        return next(iter(real))

    def is_inside(self, path: Path) -> bool:
        """Whether a resolved file lies where sessions are listed."""
        if path.suffix != ".jsonl" or path.name.startswith("."):
            return False
        return any(folder.resolve() == path.parent for folder in self.folders())

    def trash(self, path: Path) -> Path:
        """Move a session's file out of sight; where it lies now."""
        folder = (self.flat or self.root) / TRASH
        if self.flat is None and path.parent != self.root:
            folder /= path.parent.name
        make_folder(folder)
        target = reserved(folder, path.stem)
        try:
            path.rename(target)
        except OSError:
            target.unlink()
            raise
        with suppress(OSError):
            index_path(path).unlink()
        return target


def reserved(folder: Path, stem: str) -> Path:
    """A new empty file `stem.jsonl`, or `stem-1.jsonl` and so on where that is taken."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    number = 0
    while True:
        target = folder / (f"{stem}-{number}.jsonl" if number else f"{stem}.jsonl")
        try:
            os.close(os.open(target, flags, FILE_MODE))
        except FileExistsError:
            number += 1
        else:
            return target


def read_header(path: Path) -> Header | None:
    """The header of a file, of which at most a first part is read; None when it is no session."""
    try:
        fd = open_regular(path, writable=False)
    except Failure:
        return None
    try:
        return _header_within(fd)
    except (Failure, OSError):
        return None
    finally:
        os.close(fd)


def _header_within(fd: int) -> Header | None:
    data, start = b"", 0
    while len(data) < HEADER_BYTES_MAX:
        block = os.pread(fd, min(_READ_BYTES, HEADER_BYTES_MAX - len(data)), len(data))
        data += block
        while (stop := data.find(b"\n", start)) >= 0:
            line, start = data[start:stop], stop + 1
            if (header := _header_in(line)) is not None:
                return header
        if not block:
            return _header_in(data[start:])
    at_end = not os.pread(fd, 1, len(data))
    return _header_in(data[start:]) if at_end else None


def _header_in(line: bytes) -> Header | None:
    try:
        stored = decode(line)
    except Damaged:
        return None
    return header_from_object(stored) if stored or isinstance(stored, dict | list) else None


def _with_headers(paths: Iterable[Path]) -> Iterator[tuple[Path, Header]]:
    for path in paths:
        header = read_header(path)
        if header is not None:
            yield path, header


def _session_files(folder: Path) -> list[str]:
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(".jsonl") and name[0] != "." and _is_file(entry):
                found.append(entry.path)
    return sorted(found)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
