"""Extensions found by their entry points, and loaded where the user's settings name them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from pi_rpc.core.events import Diagnostic
from pi_rpc.core.grants import DEFAULT_GRANTS, Grant
from pi_rpc.extensions.running import Extension
from pi_rpc.session.host import Host

GROUP = "pi_rpc.extensions"
"""The group of entry points."""


class Entry(Protocol):
    """What is known of an installed extension before it is loaded."""

    @property
    def name(self) -> str:
        """What settings name it by."""
        ...

    def load(self) -> Any:
        """Import it."""
        ...


def installed() -> Iterable[Entry]:
    """Every installed extension; nothing of them is loaded."""
    # Looking for entry points costs a start some time, and most have none.
    from importlib.metadata import entry_points  # noqa: PLC0415

    return entry_points(group=GROUP)


def load(
    names: Sequence[str],
    host: Host,
    entries: Iterable[Entry] | None = None,
    grants: Mapping[str, Collection[Grant]] | None = None,
) -> None:
    """Load the extensions named, in that order; one that is broken is told and left out.

    `grants`: by name, what the user lets one take part in, where that is not the default.
    """
    granted = grants or {}
    if not names:
        return
    found = {entry.name: entry for entry in (installed() if entries is None else entries)}
    for name in dict.fromkeys(names):
        entry = found.get(name)
        if entry is None:
            told = f"there is no extension {name!r}"
            host.around.diagnostics.append(Diagnostic("warning", "extension_missing", told))
            continue
        extension = Extension(name, host, granted.get(name, DEFAULT_GRANTS))
        problem = extension.begin(entry.load)
        if problem is not None:
            told = f"the extension {name!r} is left out: {problem}"
            host.around.diagnostics.append(Diagnostic("error", "extension_failed", told))
