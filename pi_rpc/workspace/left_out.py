"""The list of what a version does not hold, as it is kept beside the files; pure."""

from collections.abc import Iterable, Sequence

import msgspec

from pi_rpc.core.ports.workspace import LeftOut, PathChange

_Line = tuple[str, str, int, int]


def encode_left_out(found: Iterable[LeftOut]) -> bytes:
    """One line a path, sorted, so that the same list has the same name; empty for none."""
    lines = sorted((one.path, one.reason, one.size_bytes, one.changed_ns) for one in found)
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def decode_left_out(kept: bytes) -> list[LeftOut]:
    """The list again."""
    lines = kept.split(b"\n")
    return [LeftOut(*msgspec.json.decode(line, type=_Line)) for line in lines if line]


def left_out_changes(
    changes: Sequence[PathChange], before: Sequence[LeftOut], after: Sequence[LeftOut]
) -> list[PathChange]:
    """Changes of files, with those of what was left out: known of, but not kept."""
    old = {one.path: one for one in before}
    new = {one.path: one for one in after}
    found = {change.path: change for change in changes}
    for path in old.keys() | new.keys():
        if old.get(path) == new.get(path):
            continue
        known = found.get(path)
        was = path in old or (known is not None and known.before is not None)
        now = path in new or (known is not None and known.after is not None)
        found[path] = PathChange(
            path,
            "modified" if was and now else "added" if now else "removed",
            None if known is None else known.before,
            None if known is None else known.after,
            kept=False,
        )
    return sorted(found.values(), key=lambda change: change.path)
