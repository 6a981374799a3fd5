"""The store these settings ask for."""

from pathlib import Path
from typing import Literal

from pi_rpc.core.ports.clock import Ids
from pi_rpc.store.catalog import Catalog
from pi_rpc.store.database import Database
from pi_rpc.store.files import FileStore
from pi_rpc.store.preferences import FilePreferences
from pi_rpc.store.search import Searcher
from pi_rpc.store.shelf import MemoryStore


def open_store(
    root: Path,
    ids: Ids,
    flat: Path | None = None,
    syncs: bool = True,
    cache: Path | None = None,
) -> FileStore:
    """Sessions as files: one folder a working directory below `root`, or all of them in `flat`.

    Nothing is made until the first session is. `syncs` off leaves it to the system when bytes reach
    the disk: for tests, and for disks that are lost with the machine anyway. `cache` is where what
    lists and searches need of the files is kept; without it every process reads them itself.
    """
    database = None if cache is None else Database(cache)
    return FileStore(Catalog(root, flat, database), Searcher(database), ids, syncs)


def open_memory_store(ids: Ids) -> MemoryStore:
    """Sessions that are gone when the process is."""
    return MemoryStore(ids)


def open_preferences(
    agent_dir: Path, home: Path, trust: Literal["always", "never"] | None = None
) -> FilePreferences:
    """Settings and trust in the user's folder; `trust` decides for every project instead."""
    return FilePreferences(agent_dir, home, trust)
