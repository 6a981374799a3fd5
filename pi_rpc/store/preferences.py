"""The user's and the projects' settings, and which projects the user trusts.

The files belong to Pi too: other programs read and write them at any time. So a change reads the
file again under the lock Pi takes (a folder beside the file), changes one field and replaces the
file whole.

Promises
- A file that cannot be read as settings is never written.
- A project that is not trusted has no settings, whatever stands in its files.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, cast

from anyio import to_thread

from pi_rpc.core.errors import Locked, Refused
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.preferences import KeptSettings, Trust
from pi_rpc.core.settings import Layer, effective, with_value
from pi_rpc.store.disk import (
    failing_as,
    make_folder,
    outside,
    sync_folder,
    temporary_beside,
    write_all,
)

SETTINGS_BYTES_MAX = 1024 * 1024
"""A larger settings file is no settings file."""

LOCK_TRIES = 10
LOCK_PAUSE_S = 0.02
LOCK_STALE_S = 10.0
"""A lock as old as this was left behind: a change takes milliseconds."""

PROJECT_FOLDER = ".pi"
_WANT_TRUST = (
    *("settings.json", "mcp.json", "extensions", "skills", "prompts", "themes"),
    *("SYSTEM.md", "APPEND_SYSTEM.md"),
)
_SKILLS = Path(".agents") / "skills"

FlagTrust = Literal["always", "never"] | None


class _UnreadableError(Exception):
    """A file that is there and is no JSON object."""


class FilePreferences:
    """Settings and trust in files, as Pi has them."""

    def __init__(self, agent_dir: Path, home: Path, flag: FlagTrust = None) -> None:
        self._settings = agent_dir / "settings.json"
        self._trust = agent_dir / "trust.json"
        self._home = home
        self._flag = flag

    async def read(self, cwd: Path) -> KeptSettings:
        """The settings for a folder; what cannot be read is empty and told."""
        return await to_thread.run_sync(self._read, cwd)

    async def write(self, key: str, value: Any) -> None:
        """Change one of the user's settings; None takes it out."""
        await to_thread.run_sync(
            _patch, self._settings, lambda values: with_value(values, key, value)
        )

    async def decide_trust(self, folder: Path, trusted: bool | None) -> None:
        """Save a decision for a folder and those in it; None forgets it."""

        def change(values: JsonObject) -> JsonObject:
            decided = {**values, os.path.realpath(folder): trusted}
            return {path: decided[path] for path in sorted(decided) if decided[path] is not None}

        await to_thread.run_sync(_patch, self._trust, change)

    def _read(self, cwd: Path) -> KeptSettings:
        diagnostics: list[Diagnostic] = []
        layers = [self._layer("user", self._settings, diagnostics)]
        chosen = effective(layers).value("defaultProjectTrust")
        trust = self._trust_of(cwd, chosen, diagnostics)
        project = cwd / PROJECT_FOLDER / "settings.json"
        if trust.trusted:
            layers.append(self._layer("project", project, diagnostics))
        elif trust.decided_by == "nobody":
            text = "the project is not trusted, so its settings and resources are not used"
            diagnostics.append(Diagnostic("warning", "trust_required", text, path=str(cwd)))
        return KeptSettings(layers, trust, diagnostics)

    @staticmethod
    def _layer(
        name: Literal["user", "project"], path: Path, diagnostics: list[Diagnostic]
    ) -> Layer:
        try:
            values = _object_in(path)
        except _UnreadableError as problem:
            text = f"settings were not read, defaults hold: {problem}"
            diagnostics.append(Diagnostic("error", "bad_settings", text, path=str(path)))
            values = {}
        return Layer(name, values, str(path))

    def _trust_of(self, cwd: Path, chosen: str, diagnostics: list[Diagnostic]) -> Trust:
        requires = self._wanting(cwd)
        if self._flag is not None:
            return Trust(self._flag == "always", "flag", requires)
        saved, at = self._saved(cwd, diagnostics)
        if saved is not None:
            return Trust(saved, "saved", requires, at)
        if not requires:
            return Trust(True, "nothing_requires")
        if chosen != "ask":
            return Trust(chosen == "always", "setting", requires)
        return Trust(False, "nobody", requires)

    def _saved(self, cwd: Path, diagnostics: list[Diagnostic]) -> tuple[bool | None, str | None]:
        try:
            decisions = _object_in(self._trust)
        except _UnreadableError as problem:
            text = f"no saved decision holds: {problem}"
            diagnostics.append(Diagnostic("error", "bad_trust", text, path=str(self._trust)))
            # Who cannot read what was decided must not guess that it was yes.
            return (False, None)
        real = Path(os.path.realpath(cwd))
        for folder in (real, *real.parents):
            if isinstance(decisions.get(str(folder)), bool):
                return cast(bool, decisions[str(folder)]), str(folder)
        return None, None

    def _wanting(self, cwd: Path) -> list[str]:
        """What stands in and above a folder that wants trust; that it is there is enough."""
        own = [cwd / PROJECT_FOLDER / name for name in _WANT_TRUST]
        above = [folder / _SKILLS for folder in (cwd, *cwd.parents) if folder != self._home]
        return [str(path) for path in (*own, *above) if os.path.lexists(path)]


def _object_in(path: Path) -> JsonObject:
    """The JSON object in a file; empty when there is none. Raises _UnreadableError."""
    try:
        if not path.exists():
            return {}
        if not path.is_file():
            raise _UnreadableError("not a regular file")
        with path.open("rb") as file:
            raw = file.read(SETTINGS_BYTES_MAX + 1)
        if len(raw) > SETTINGS_BYTES_MAX:
            raise _UnreadableError(f"larger than {SETTINGS_BYTES_MAX} bytes")
        stored = json.loads(raw.decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as problem:
        raise _UnreadableError(str(problem)) from problem
    if not isinstance(stored, dict):
        raise _UnreadableError("not a JSON object")
    return stored


def _patch(path: Path, change: Callable[[JsonObject], JsonObject]) -> None:
    """Change the object in a file under its lock, and replace the file whole."""
    # Where the file is a link, what it leads to is replaced, and the link stays.
    target = Path(os.path.realpath(path))
    with failing_as("write_failed", target):
        make_folder(target.parent)
    with _locked(target):
        try:
            values = change(_object_in(target))
        except _UnreadableError as problem:
            raise Refused(
                "settings_unreadable",
                f"the file is not touched, for it cannot be read: {problem}",
                path=str(path),
            ) from problem
        text = json.dumps(values, ensure_ascii=False, indent=2) + "\n"
        with failing_as("write_failed", target), temporary_beside(target) as (fd, temporary):
            if target.exists():
                os.fchmod(fd, target.stat().st_mode & 0o777)
            write_all(fd, text.encode("utf-8", "surrogatepass"))
            os.fsync(fd)
            temporary.replace(target)
            sync_folder(target.parent)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = path.with_name(f"{path.name}.lock")
    for _ in range(LOCK_TRIES):
        try:
            lock.mkdir()
            break
        except FileExistsError:
            with suppress(FileNotFoundError):
                if time.time() - lock.stat().st_mtime > LOCK_STALE_S:
                    lock.rmdir()
                    continue
            time.sleep(LOCK_PAUSE_S)
        except OSError as error:
            raise outside(error, "write_failed", lock) from error
    else:
        raise Locked("settings_locked", "another program is changing the file", path=str(path))
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            lock.rmdir()
