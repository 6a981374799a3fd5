"""The syntax of keys and header values: a command, variables in a text, or the text itself; pure.

`!command` stands for what a command prints, `$NAME` and `${NAME}` for a variable, `$$` for a dollar
and `$!` for an exclamation mark. Everything else stands for itself.
"""

import re
from collections.abc import Mapping

_DOLLAR = re.compile(
    r"\$(?:(?P<plain>[$!])|\{(?P<braced>[^}]+)\}|(?P<name>[A-Za-z_][A-Za-z0-9_]*))"
)


def command_in(value: str) -> str | None:
    """The command a value stands for; None when it stands for a text."""
    return value[1:] if value.startswith("!") else None


def missing_in(value: str, environment: Mapping[str, str]) -> list[str]:
    """The variables a text names that are not set or empty. A command needs none."""
    if command_in(value) is not None:
        return []
    names = [found["braced"] or found["name"] for found in _DOLLAR.finditer(value)]
    return [name for name in names if name is not None and not environment.get(name)]


def text_of(value: str, environment: Mapping[str, str]) -> str | None:
    """The text a value stands for, None when a variable is missing. Not for commands."""
    if missing_in(value, environment):
        return None
    return _DOLLAR.sub(
        lambda found: found["plain"] or environment[found["braced"] or found["name"]], value
    )
