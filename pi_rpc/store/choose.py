"""The store these settings ask for."""

from pathlib import Path

from pi_rpc.core.ports import Ids
from pi_rpc.store.catalog import Catalog
from pi_rpc.store.files import FileStore
from pi_rpc.store.shelf import MemoryStore


def open_store(root: Path, ids: Ids, flat: Path | None = None, syncs: bool = True) -> FileStore:
    """Sessions as files: one folder a working directory below `root`, or all of them in `flat`.

    Nothing is made until the first session is. `syncs` off leaves it to the system when bytes reach
    the disk: for tests, and for disks that are lost with the machine anyway.
    """
    return FileStore(Catalog(root, flat), ids, syncs)


def open_memory_store(ids: Ids) -> MemoryStore:
    """Sessions that are gone when the process is."""
    return MemoryStore(ids)
