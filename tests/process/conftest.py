"""What every test with real processes is given."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.daemons import Daemon

Start = Callable[..., Daemon]


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts daemons that share one home; they end with the test."""
    begun: list[Daemon] = []

    def begin(*arguments: str, **options: Any) -> Daemon:
        kind = options.pop("kind", Daemon)
        daemon: Daemon = kind(tmp_path, *arguments, **options)
        begun.append(daemon)
        return daemon

    yield begin
    for daemon in begun:
        daemon.dispose()
