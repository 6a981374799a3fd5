"""What users and projects have chosen."""

from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from pi_rpc.core.events import Diagnostic
from pi_rpc.core.settings import Layer


class Trust(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Whether the files of a project may steer what is done in it."""

    trusted: bool
    decided_by: Literal["flag", "nothing_requires", "saved", "setting", "nobody"]
    """`nobody`: the user would have to be asked, so it is not trusted."""
    requires: list[str] = []
    """The files and folders that want trust."""
    saved_at: str | None = None
    """The folder whose saved decision holds."""


class KeptSettings(msgspec.Struct, frozen=True):
    """The settings files of a folder, as they are now."""

    layers: list[Layer]
    """The user's, then the project's when it is trusted."""
    trust: Trust
    diagnostics: list[Diagnostic]


class Preferences(Protocol):
    """What users and projects have chosen, in files that other programs read and write too."""

    async def read(self, cwd: Path) -> KeptSettings:
        """The settings for a folder; what cannot be read is empty and told."""
        ...

    async def write(self, key: str, value: Any) -> None:
        """Change one of the user's settings, and nothing else of the file; None takes it out.

        Raises Refused `settings_unreadable`, Locked `settings_locked`, Outside `write_failed`; then
        nothing has changed.
        """
        ...

    async def decide_trust(self, folder: Path, trusted: bool | None) -> None:
        """Save a decision for a folder and those in it; None forgets it. Raises as `write` does."""
        ...
