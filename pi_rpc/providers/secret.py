"""Keys, wrapped so that they do not slip into a log, an error or an event; pure."""

from collections.abc import Iterable
from typing import NoReturn

HIDDEN = "[key]"
"""What stands where a key was."""

SHORTEST_HIDDEN = 6
"""Anything shorter is no key, and hiding it would tear words apart."""


class Secret:
    """A text that is shown only to who asks by name."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, to be sent and to be kept nowhere."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written down")


def hidden(text: str, secrets: Iterable[Secret]) -> str:
    """A text without these secrets: servers are known to quote the key they refuse.

    The text may have been cut in the middle of one.
    """
    for secret in secrets:
        key = secret.reveal()
        if len(key) < SHORTEST_HIDDEN:
            continue
        text = text.replace(key, HIDDEN)
        for chars in range(len(key) - 1, SHORTEST_HIDDEN - 1, -1):
            if text.endswith(key[:chars]):
                text = text[:-chars] + HIDDEN
                break
    return text
