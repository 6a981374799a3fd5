"""What every test of the store is given."""

from pathlib import Path

import pytest

from pi_rpc.store.choose import open_store
from pi_rpc.store.files import FileStore
from tests.store.samples import CountedIds


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def store(root: Path) -> FileStore:
    return open_store(root, CountedIds(), syncs=False)
