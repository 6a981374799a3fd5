"""The mark that a settings file was read and held nothing odd, light enough for the first moment.

A handshake answered before anything is loaded has no diagnostics to tell. That is true when there
are no settings, and when they are the very bytes an earlier start found sound. The mark is derived:
lost, stale or damaged, it only costs the next start its head start.
"""

import os

from pi_rpc import __version__

SETTINGS_FILE = "settings.json"
MARK_FILE = os.path.join("pi-rpc", "settings.known")  # noqa: PTH118  (pathlib takes a third of the start)


def agent_folder() -> str:
    """The user's folder, by the environment or by default."""
    named = os.environ.get("PI_CODING_AGENT_DIR")
    return os.path.abspath(os.path.expanduser(named or "~/.pi/agent"))  # noqa: PTH100, PTH111


def is_known_sound(folder: str) -> bool:
    """Whether there are no settings to tell of, or none but those an earlier start found sound."""
    mark = _mark(folder)
    if mark is None:
        return True
    try:
        with open(os.path.join(folder, MARK_FILE), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            return file.read(len(mark) + 1) == mark
    except (OSError, ValueError):
        return False


def remember_sound(folder: str) -> None:
    """Leave the mark that the settings, as they are now, hold nothing odd; failing is no matter."""
    mark = _mark(folder)
    if mark is None or is_known_sound(folder):
        return
    path = os.path.join(folder, MARK_FILE)  # noqa: PTH118
    fresh = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(mark)
        os.replace(fresh, path)  # noqa: PTH105
    except OSError:
        # Nothing is lost: the next start reads the settings before it answers.
        return


def _mark(folder: str) -> str | None:
    try:
        state = os.stat(os.path.join(folder, SETTINGS_FILE))  # noqa: PTH116, PTH118
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        # They are there and cannot be looked at: that is something to tell of.
        return f"unreadable {os.getpid()}"
    return f"{__version__} {state.st_ino} {state.st_size} {state.st_mtime_ns}"
