"""Names of files as models write them, resolved against the working directory.

A name that exists as it is written wins. Only where it does not, the habits of models and the
traps of keyboards are looked through: a leading `@`, odd spaces. `~` and `file://` are notations
and mean what they always mean. Nothing is confined to the working directory.
"""

import os
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import anyio.to_thread

from pi_rpc.core.errors import Invalid

_SPACES = dict.fromkeys((0x00A0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " ")


def resolved(given: str, cwd: Path) -> Path:
    """The absolute, normalised path a name means; it need not exist.

    Asks the disk whether the name exists as it is written. Raises Invalid `bad_path`.
    """
    if "\0" in given:
        raise Invalid("bad_path", "A path cannot contain a NUL character.", path=given)
    notation = given == "~" or given.startswith(("~/", "file://"))
    if not notation and _is_meant_literally(given, cwd):
        return _joined(given, cwd)
    name = given.translate(_SPACES).removeprefix("@")
    if name.startswith("file://"):
        name = _path_of_url(name)
    elif name == "~" or name.startswith("~/"):
        name = str(Path.home()) + name[1:]
    return _joined(name, cwd)


def resolved_to_read(given: str, cwd: Path) -> Path:
    """Like `resolved`; where nothing is there, a file whose name only looks the same will do.

    Names made by other programs differ in ways nobody sees: a narrow space before AM or PM, letters
    composed or not, a curly apostrophe.
    """
    path = resolved(given, cwd)
    if os.path.lexists(path):
        return path
    for name in _lookalikes(str(path)):
        if os.path.lexists(name):
            return Path(name)
    return path


async def real_place(
    given: str, cwd: Path, meaning: Callable[[str, Path], Path] = resolved
) -> Path:
    """Where a name leads, links followed; it need not exist. Raises Invalid `bad_path`."""

    def look() -> Path:
        return Path(os.path.realpath(meaning(given, cwd)))

    return await anyio.to_thread.run_sync(look)


def _is_meant_literally(given: str, cwd: Path) -> bool:
    if os.path.lexists(_joined(given, cwd)):
        return True
    # In `@types/new.ts` beside a folder `@types` the sign is part of the name, for a new file too.
    first, slash, _ = given.partition("/")
    return bool(slash) and first.startswith("@") and _joined(first, cwd).is_dir()


def _joined(name: str, cwd: Path) -> Path:
    return Path(os.path.normpath(cwd / name))


def _path_of_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise Invalid("bad_path", f"The URL names a file of another host: {url}", path=url)
    path = unquote(parts.path)
    if "\0" in path:
        raise Invalid("bad_path", "A path cannot contain a NUL character.", path=url)
    return path


def _lookalikes(path: str) -> Iterator[str]:
    narrow = path
    for half in ("AM", "PM", "am", "pm"):
        narrow = narrow.replace(f" {half}", f"\u202f{half}")
    yield narrow
    decomposed = unicodedata.normalize("NFD", path)
    yield decomposed
    yield path.replace("'", "\u2019")
    yield decomposed.replace("'", "\u2019")
