"""Secrets taken out of what leaves the house: one pass, the same for every form.

Patterns know the shapes of well-known keys, what stands behind names like `password` or
`Authorization`, and private keys. A secret that looks like any other word cannot be known.

Promises
- Only texts change, and of them only what is taken out; objects keep their form.
- The same text gives the same result, and a redacted text is not redacted again.
"""

import re
from typing import Any

REPLACED = "[redacted]"

_NAMES = (
    # Every part is bounded, for a text of one long word must not be tried in all its divisions.
    r"(?:[a-z0-9]{1,32}[_.-]){0,4}[a-z0-9]{0,24}?(?:api[_.-]?key|access[_.-]?key(?:[_.-]?id)?"
    r"|secret(?:[_.-]?(?:access[_.-]?)?key)?|token|passw(?:or)?d|passphrase|private[_.-]?key"
    r"|session[_.-]?key|signing[_.-]?key|encryption[_.-]?key|(?<![a-z0-9])_auth)"
)
_SECRET_NAME = re.compile(rf"\A{_NAMES}\Z|\A(?:proxy-)?authorization\Z|\A(?:set-)?cookie\Z", re.I)

_KEYS = re.compile(
    r"""
    -----BEGIN\ [A-Z0-9\ ]*PRIVATE\ KEY(?:\ BLOCK)?-----
        (?:.*?-----END\ [A-Z0-9\ ]*PRIVATE\ KEY(?:\ BLOCK)?-----|.*)
    | \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}                       # model providers
    | \b(?:sk|pk|rk|whsec)_(?:live|test)_[A-Za-z0-9]{16,}     # payments
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bglpat-[A-Za-z0-9_-]{16,}
    | \b(?:AKIA|ASIA|AGPA|AROA)[A-Z0-9]{16}\b
    | \bAIza[A-Za-z0-9_-]{30,} | \bya29\.[A-Za-z0-9._-]{20,}
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,} | \bxapp-[A-Za-z0-9-]{10,}
    | \bhf_[A-Za-z0-9]{20,} | \bnpm_[A-Za-z0-9]{30,} | \bpypi-[A-Za-z0-9_-]{30,}
    | \bdop_v1_[a-f0-9]{40,} | \bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*   # JSON web tokens
    """,
    re.X | re.S,
)
_HEADERS = re.compile(
    r"(?P<name>\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?|\b(?:set-)?cookie\s*:\s*)"
    r"(?P<secret>(?:(?:basic|bearer|token|digest|negotiate|apikey)\s+)?[^\s\"'][^\r\n\"']*)"
    r"|(?P<scheme>\b(?:bearer|basic)\s+)(?P<token>[A-Za-z0-9._~+/=-]{16,})",
    re.I,
)
_ASSIGNED = re.compile(
    rf"(?P<name>(?<![A-Za-z0-9]){_NAMES}[\"']?\s*(?:=|:)\s*)"
    r"(?P<secret>\"[^\"\r\n]{4,}\"|'[^'\r\n]{4,}'|[^\s\"',;(){}\[\]<>$]{6,}+(?![(\[]))",
    re.I,
)
_IN_URL = re.compile(
    r"(?P<name>\b[a-z][a-z0-9+.-]*://[^\s/:@\"']*:)(?P<secret>[^\s/@\"']+)(?=@)", re.I
)
_HINTS = re.compile(
    r"key|secret|token|passw|passphrase|auth|cookie|bearer|basic|://|-----BEGIN"
    r"|\b(?:sk|pk|rk|gh[pousr]|github_pat|glpat|AKIA|ASIA|AGPA|AROA|AIza|ya29|xox|xapp|hf|npm|pypi|dop"
    r"|SG|eyJ|whsec)",
    re.I,
)
"""Without one of these nothing below can be found; most texts hold none and are not looked at
closely."""


class Redaction:
    """One pass over one thing that leaves; it counts what it takes out."""

    def __init__(self, is_on: bool = True) -> None:
        self.is_on = is_on
        self.count = 0

    def text(self, text: str) -> str:
        """A text without its secrets."""
        if not self.is_on or not _HINTS.search(text):
            return text
        text = _KEYS.sub(self._whole, text)
        text = _HEADERS.sub(self._named, text)
        text = _IN_URL.sub(self._named, text)
        return _ASSIGNED.sub(self._named, text)

    def value(self, value: Any) -> Any:
        """Any JSON value without its secrets; the same object where it holds none."""
        if not self.is_on:
            return value
        return self._value(value)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            made = [self._value(each) for each in value]
            return value if all(map(_is_same, made, value)) else made
        if isinstance(value, dict):
            # An image is no text, though it is written with letters.
            kept = "data" if value.get("type") == "image" else None
            fields = {
                self.text(name): each if name == kept else self._field(name, each)
                for name, each in value.items()
            }
            same = all(name in value and fields[name] is value[name] for name in fields)
            return value if same and len(fields) == len(value) else fields
        return value

    def _field(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and len(value) >= 6 and _SECRET_NAME.match(name):
            return value if value == REPLACED else self._taken()
        return self._value(value)

    def _whole(self, found: "re.Match[str]") -> str:
        return self._taken()

    def _named(self, found: "re.Match[str]") -> str:
        groups = found.groupdict()
        secret = groups["secret"] or groups.get("token") or ""
        if REPLACED in secret:
            return found[0]
        quote = secret[0] if secret[0] in "\"'" and secret[-1] == secret[0] else ""
        return f"{groups['name'] or groups.get('scheme')}{quote}{self._taken()}{quote}"

    def _taken(self) -> str:
        self.count += 1
        return REPLACED


def _is_same(one: object, other: object) -> bool:
    return one is other
