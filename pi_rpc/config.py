"""One frozen `Settings` value from the environment, the user's settings file and flags.

The settings file is the user's alone: a project's own file could redirect storage, so none is read.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from pi_rpc.core.events import Diagnostic

Durability = Literal["entry", "turn", "off"]
"""When appended entries are synced to the disk.

Before each is told, at turn ends and moves, never.
"""

SETTINGS_BYTES_MAX = 1024 * 1024
"""A larger settings file is no settings file."""


class Settings(msgspec.Struct, frozen=True):
    """What a daemon goes by."""

    agent_dir: Path
    """Where sessions, settings and credentials of the user live."""
    session_dir: Path | None = None
    """A flat folder for all sessions instead of one for each working directory."""
    script_file: Path | None = None
    durability: Durability = "entry"
    grace_s: float = 5.0
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def sessions_root(self) -> Path:
        """The folder above the session folders."""
        return self.agent_dir / "sessions"


def settings_from(
    environment: Mapping[str, str],
    session_dir: str | None = None,
    script_file: str | None = None,
    durability: Durability | None = None,
) -> Settings:
    """Flags win over the environment, and that over the user's settings file."""
    named = environment.get("PI_CODING_AGENT_DIR")
    agent_dir = _path(named) if named else Path.home() / ".pi" / "agent"
    stored, diagnostics = _read(agent_dir / "settings.json")
    own = stored.get("piRpc")
    own = own if isinstance(own, dict) else {}
    session_dir = session_dir or environment.get("PI_CODING_AGENT_SESSION_DIR")
    if session_dir is None and isinstance(stored.get("sessionDir"), str):
        session_dir = stored["sessionDir"]
    if durability is None and own.get("durability") in ("entry", "turn", "off"):
        durability = cast(Durability, own["durability"])
    grace_s = own.get("graceS")
    return Settings(
        agent_dir=agent_dir,
        session_dir=_path(session_dir) if session_dir else None,
        script_file=_path(script_file) if script_file else None,
        durability=durability or "entry",
        grace_s=float(grace_s) if isinstance(grace_s, int | float) and 0 <= grace_s <= 60 else 5.0,
        diagnostics=tuple(diagnostics),
    )


def _path(text: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(text)))  # noqa: PTH100, PTH111


def _read(path: Path) -> tuple[dict[str, Any], list[Diagnostic]]:
    try:
        if not path.is_file():
            return {}, []
        with path.open("rb") as file:
            raw = file.read(SETTINGS_BYTES_MAX + 1)
        if len(raw) > SETTINGS_BYTES_MAX:
            raise ValueError(f"larger than {SETTINGS_BYTES_MAX} bytes")
        stored = json.loads(raw.decode("utf-8-sig"))
        if not isinstance(stored, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError) as problem:
        text = f"settings were not read, defaults hold: {problem}"
        return {}, [Diagnostic("error", "bad_settings", text, path=str(path))]
    return stored, []
