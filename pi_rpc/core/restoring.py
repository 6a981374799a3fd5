"""Which files a restore may touch: the plan, decided before anything is touched.

Promises
- Only paths that differ are touched, and without being asked only those this session changed.
- What somebody changed since is left alone unless that path is confirmed.
- Nothing is deleted that this session did not create, confirmed or not.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from pi_rpc.core.bindings import Binding, Change
from pi_rpc.core.ports.workspace import PathChange


class Own(msgspec.Struct):
    """What a session did to one path."""

    states: tuple[str | None, ...]
    """States it left the path in last; None is absent."""
    created: bool
    """Whether it made the file that is there."""


class Denied(msgspec.Struct, frozen=True):
    """A path that is not restored, and why."""

    path: str
    reason: str


class RestorePlan(msgspec.Struct, frozen=True):
    """What becomes of each path that differs."""

    restore: Sequence[PathChange]
    refused: Sequence[Denied]
    """Wanted, and not done."""
    left: Sequence[Denied]
    """Not wanted."""


class OwnChanges:
    """Everything a session did to files, by path, learned in the order it was done."""

    def __init__(self) -> None:
        self.paths: dict[str, Own] = {}
        self._announced: dict[str, Change] = {}

    def learn(self, binding: Binding, changes: Iterable[Change]) -> None:
        """Take one binding into account, with all of its changes."""
        for change in changes:
            self._learn(change)
            path, before, after = change
            if binding.at == "restore":
                # Announced before it is done: after a crash either state may be there.
                self.paths[path].states = (before, after)
                self._announced[path] = change
        if binding.denied is None:
            return
        for path, before, after in self._announced.values():
            self.paths[path].states = (before if path in binding.denied else after,)
        self._announced.clear()

    def _learn(self, change: Change) -> None:
        path, before, after = change
        own = self.paths.get(path)
        if own is None:
            self.paths[path] = own = Own((), before is None)
        elif before is None:
            own.created = True
        elif before not in own.states:
            # Somebody else had been at it meanwhile: what was there is no longer this session's.
            own.created = False
        own.states = (after,)


def own_changes(bindings: Iterable[Binding]) -> dict[str, Own]:
    """Everything a session did to files, by path; bindings in the order they were written."""
    own = OwnChanges()
    for binding in bindings:
        own.learn(binding, binding.changes)
    return own.paths


def plan_restore(
    changes: Sequence[PathChange],
    own: dict[str, Own],
    asked: Collection[str] | None,
    confirmed: Collection[str],
) -> RestorePlan:
    """Decide for each difference, given as from the present state to the wanted one."""
    restore: list[PathChange] = []
    refused: list[Denied] = []
    left: list[Denied] = []
    for change in changes:
        path = change.path
        mine = own.get(path)
        wanted = asked is None or _is_asked(path, asked)
        if not wanted:
            left.append(Denied(path, "not_asked"))
        elif asked is None and mine is None:
            left.append(Denied(path, "not_ours"))
        elif not change.kept:
            refused.append(Denied(path, "not_kept"))
        elif change.after is None and (mine is None or not mine.created):
            refused.append(Denied(path, "not_created_here"))
        elif path in confirmed:
            restore.append(change)
        elif mine is None:
            refused.append(Denied(path, "not_ours"))
        elif change.before not in mine.states:
            refused.append(Denied(path, "edited_since"))
        else:
            restore.append(change)
    return RestorePlan(restore, refused, left)


def _is_asked(path: str, asked: Collection[str]) -> bool:
    return path in asked or any(path.startswith(f"{one.rstrip('/')}/") for one in asked)
