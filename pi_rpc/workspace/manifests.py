"""A version as a list of files: each path with its mode and the digest of its bytes; pure."""

import difflib
import hashlib
from collections.abc import Mapping

import msgspec

from pi_rpc.core.ports.workspace import LeftOut, PathChange
from pi_rpc.workspace.left_out import left_out_changes

COUNTED_BYTES_MAX = 1024 * 1024
"""Lines of a longer file are not counted."""
COUNTED_LINES_MAX = 20_000
_BINARY_LOOK_BYTES = 8000
_NO_LINE_END = b"\\ No newline at end of file"


class Manifest(msgspec.Struct, frozen=True, array_like=True):
    """What a folder held: by path its state, `mode:digest`; and what is only known of."""

    files: dict[str, str]
    left_out: list[LeftOut]

    def encoded(self) -> bytes:
        """The same bytes for the same folder."""
        found = sorted(self.left_out, key=lambda one: one.path)
        return msgspec.msgpack.encode(Manifest(dict(sorted(self.files.items())), found))


def decode_manifest(raw: bytes) -> Manifest:
    """The list again. Raises msgspec.MsgspecError for what is none."""
    return msgspec.msgpack.decode(raw, type=Manifest)


def digest_of(raw: bytes) -> str:
    """The name of these bytes."""
    return hashlib.sha256(raw).hexdigest()


def compared(one: Manifest, other: Manifest) -> list[PathChange]:
    """What differs from one to the other, by path."""
    changes = [
        PathChange(path, "modified" if path in other.files else "removed", state, after)
        for path, state in one.files.items()
        if (after := other.files.get(path)) != state
    ]
    changes += [
        PathChange(path, "added", None, state)
        for path, state in other.files.items()
        if path not in one.files
    ]
    return left_out_changes(changes, one.left_out, other.left_out)


def line_diff(path: str, before: bytes, after: bytes) -> tuple[int, int, str] | None:
    """Lines added and removed, and the patch; None for what is no text, or too long."""
    if any(len(raw) > COUNTED_BYTES_MAX or _is_binary(raw) for raw in (before, after)):
        return None
    old, new = _lines(before), _lines(after)
    if max(len(old), len(new)) > COUNTED_LINES_MAX:
        return None
    name = path.encode("utf-8", "surrogateescape")
    told = list(
        difflib.diff_bytes(difflib.unified_diff, old, new, b"a/" + name, b"b/" + name, lineterm=b"")
    )
    body = told[2:]
    added = sum(line.startswith(b"+") for line in body)
    removed = sum(line.startswith(b"-") for line in body)
    text = b"".join(line + b"\n" for line in told).decode(errors="replace")
    return added, removed, text


def _lines(raw: bytes) -> list[bytes]:
    lines = raw.split(b"\n")
    last = lines.pop()
    # A last line without its end is another line than one with it.
    return [*lines, last + b"\n" + _NO_LINE_END] if last else lines


def _is_binary(raw: bytes) -> bool:
    return b"\0" in raw[:_BINARY_LOOK_BYTES]


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was read: what tells that it is still the same, and its state then."""

    size: int
    changed_ns: int
    inode_changed_ns: int
    inode: int
    state: str


def decode_seen(raw: bytes) -> Mapping[str, Seen]:
    """What was seen of each path. Raises msgspec.MsgspecError for what is no such list."""
    return msgspec.msgpack.decode(raw, type=dict[str, Seen])
