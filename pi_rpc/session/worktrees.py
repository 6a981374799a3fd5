"""Forks with a work tree of their own, and what becomes of it when its session ends.

Promises
- A fork that is not made leaves no work tree behind.
- A work tree is removed on request only, when nobody else works in it, and after its files have
  got a version, so that nothing is lost.
"""

import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from pi_rpc.core.errors import Failure, Invalid, Refused
from pi_rpc.core.ports.workspace import Worktrees
from pi_rpc.session.folders import folder
from pi_rpc.session.session import Session
from pi_rpc.session.surroundings import Surroundings

log = logging.getLogger(__name__)


class Place(msgspec.Struct, frozen=True):
    """Where a copy shall stand."""

    cwd: str | None = None
    """A folder; None is that of its source."""
    worktree: bool = False
    """A new work tree instead."""


class EndedWorktree(msgspec.Struct, frozen=True):
    """The work tree of a session that ended."""

    path: str
    removed: bool
    reason: str | None = None
    """Why it is still there."""
    version: str | None = None
    """The version its files had, kept when they were removed."""


async def require_place(source: Session, place: Place) -> None:
    """Raise what `standing_at` would be refused for, before anything is stopped for it."""
    if not place.worktree:
        _named_folder(source, place)
        return
    if place.cwd is not None:
        raise Invalid("name_one", "give either a folder or ask for a work tree")
    await _worktrees_of(source).require(source.cwd)


@asynccontextmanager
async def standing_at(source: Session, place: Place, leaf_row: int) -> AsyncIterator[Path]:
    """The folder a copy up to this row works in; a work tree goes again when the copy fails."""
    if not place.worktree:
        yield _named_folder(source, place)
        return
    worktrees = _worktrees_of(source)
    made = await worktrees.add(source.cwd)
    try:
        await _bring_files(source, made.cwd, leaf_row)
        yield made.cwd
    except BaseException:
        with anyio.CancelScope(shield=True):
            try:
                await worktrees.remove(made.top, kept=True)
            except Failure as failure:
                log.error("the work tree %s is left behind: %s", made.top, failure)
        raise


def _named_folder(source: Session, place: Place) -> Path:
    return source.cwd if place.cwd is None else folder(place.cwd)


def _worktrees_of(source: Session) -> Worktrees:
    if source.around.worktrees is None:
        raise Refused("no_repository", "no work trees are made here")
    return source.around.worktrees


async def _bring_files(source: Session, cwd: Path, leaf_row: int) -> None:
    """Make the new folder hold the version bound to where the copy ends, where there is one."""
    bound = source.bindings.of_leaf(leaf_row)
    if source.workspace is None or source.around.workspaces is None:
        return
    if bound is None or bound.version is None:
        return
    workspace = source.around.workspaces.of(cwd)
    try:
        now = await workspace.snapshot()
        await workspace.fetch(source.workspace, bound.version)
        changes = await workspace.compare(now.version, bound.version)
        await workspace.restore([change for change in changes if change.kept])
    except Failure as failure:
        # The files of the commit stay; the verdict tells that they are not those of the leaf.
        log.warning("the files of %s did not come along: %s", cwd, failure)


async def end_worktree(
    around: Surroundings, cwd: Path, others: Iterable[Session], wanted: bool
) -> EndedWorktree | None:
    """Say what becomes of the work tree a session stood in, and remove it if wanted.

    None where it stood in none of ours. Raises nothing: a refusal is the reason told.
    """
    top = None if around.worktrees is None else around.worktrees.top_of(cwd)
    if top is None or around.worktrees is None:
        return None
    if not wanted:
        return EndedWorktree(str(top), False, "not_asked")
    if any(around.worktrees.top_of(one.cwd) == top for one in others):
        return EndedWorktree(str(top), False, "in_use")
    try:
        version = await _kept_version(around, top)
        await around.worktrees.remove(top, kept=version is not None)
    except Failure as failure:
        return EndedWorktree(str(top), False, failure.reason)
    return EndedWorktree(str(top), True, version=version)


async def _kept_version(around: Surroundings, top: Path) -> str | None:
    if around.workspaces is None:
        return None
    try:
        taken = await around.workspaces.of(top).snapshot()
    except Failure as failure:
        log.info("the files of %s have no version: %s", top, failure)
        return None
    return None if taken.left_out else taken.version
