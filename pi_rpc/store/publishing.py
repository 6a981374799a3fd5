"""New files outside the store: whole or not at all, and never in the place of another."""

import os
from collections.abc import AsyncIterable
from pathlib import Path

import anyio
from anyio import to_thread

from pi_rpc.core.errors import Missing, Refused
from pi_rpc.store.disk import failing_as, publish, sync_folder, temporary_beside, write_all


async def publish_chunks(
    target: Path, chunks: AsyncIterable[bytes], limiter: anyio.CapacityLimiter
) -> int:
    """Write the chunks to a new file; its size.

    Raises Refused `file_exists`, Missing `folder_missing`, Outside `write_failed` or `disk_full`.
    """
    _refuse_unless_free(target)
    size = 0
    with failing_as("write_failed", target), temporary_beside(target) as (fd, temporary):
        async for chunk in chunks:
            await to_thread.run_sync(write_all, fd, chunk, limiter=limiter)
            size += len(chunk)
        try:
            await to_thread.run_sync(_finish, fd, temporary, target, limiter=limiter)
        except FileExistsError as error:
            raise _exists(target) from error
    return size


def _refuse_unless_free(target: Path) -> None:
    if not target.parent.is_dir():
        raise Missing("folder_missing", f"no such folder: {target.parent}", path=str(target.parent))
    if os.path.lexists(target):
        raise _exists(target)


def _finish(fd: int, temporary: Path, target: Path) -> None:
    os.fsync(fd)
    publish(temporary, target)
    sync_folder(target.parent)


def _exists(target: Path) -> Refused:
    return Refused("file_exists", "a file of this name is there already", path=str(target))
