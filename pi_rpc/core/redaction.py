"""Secrets taken out of what leaves the house: one pass, the same for every form.

Patterns know the shapes of well-known keys, what stands behind names like `password` or
`Authorization`, and private keys. A secret that looks like any other word cannot be known.

Promises
- Only texts change, and of them only what is taken out; objects keep their form.
- The same text gives the same result, and a redacted text is not redacted again.
"""

import re
from collections.abc import Iterable
from typing import Any

REPLACED = "[redacted]"

_NAMES = (
    # Every part is bounded, for a text of one long word must not be tried in all its divisions.
    r"(?:[a-z0-9]{1,32}[_.-]){0,4}[a-z0-9]{0,24}?(?:(?:api|account)[_.-]?key|access[_.-]?key(?:[_.-]?id)?"
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
    | \bGOCSPX-[A-Za-z0-9_-]{20,} | \bhttps://hooks\.slack\.com/services/[A-Za-z0-9/_-]{20,}
    | \bdop_v1_[a-f0-9]{40,} | \bSG\.[A-Za-z0-9_-]{16,99}\.[A-Za-z0-9_-]{16,}
    | \beyJ[A-Za-z0-9_-]{8,2048}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*   # JSON web tokens
    """,
    re.X | re.S,
)
_QUOTE = r"(?:\\{0,8}[\"'])"
"""JSON within a string within a string has its quotes escaped more than once."""

_HEADERS = re.compile(
    rf"(?P<name>\b(?:proxy-)?authorization{_QUOTE}?\s*[:=]\s*{_QUOTE}?|\b(?:set-)?cookie\s*:\s*)"
    r"(?P<secret>(?:(?:basic|bearer|token|digest|negotiate|apikey)\s+)?[^\s\"'\\][^\r\n\"'\\]*)"
    r"|(?P<scheme>\b(?:bearer|basic)\s+)(?P<token>[A-Za-z0-9._~+/=-]{16,})",
    re.I,
)
_ASSIGNED = re.compile(
    rf"(?P<name>(?<![A-Za-z0-9]){_NAMES}[\"']?\s*(?:=|:)\s*)"
    r"(?P<secret>\"[^\"\r\n]{4,}\"|'[^'\r\n]{4,}'|[^\s\"',;(){}\[\]<>$]{6,}+(?![(\[]))",
    re.I,
)
_ESCAPED = re.compile(
    rf"(?P<name>(?<![A-Za-z0-9]){_NAMES}\\{{1,8}}[\"']\s*:\s*\\{{1,8}}[\"'])"
    r"(?P<secret>[^\"'\r\n\\]{4,})",
    re.I,
)
_ARGUMENTS = re.compile(
    rf"(?P<name>(?<!\S)--{_NAMES}\s+)"
    r"(?P<secret>\"[^\"\r\n]{4,}\"|'[^'\r\n]{4,}'|[^\s\"'\-][^\s\"']{5,})"
    # A user and a group told by number have no secret.
    r"|(?P<user>(?<!\S)(?:-u|--user)[ =][\"']?[^\s:\"'/]{1,100}:)"
    r"(?P<password>(?!\d+(?!\S))[^\s\"']{4,})"
    r"|(?P<login>\blogin\s{1,9}\S{1,100}\s{1,9}password\s{1,9})(?P<entry>\S+)",
    re.I,
)
_IN_URL = re.compile(
    r"(?P<name>\b[a-z][a-z0-9+.-]{0,31}://[^\s/:@\"']{0,255}:)(?P<secret>[^\s/@\"']{1,999})(?=@)",
    re.I,
)
_KEY_HINTS = (
    *("-----BEGIN", "sk-", "pk-", "rk-", "sk_", "pk_", "rk_", "whsec_", "ghp_", "gho_", "ghu_"),
    *("ghs_", "ghr_", "github_pat_", "glpat-", "AKIA", "ASIA", "AGPA", "AROA", "AIza", "ya29."),
    *("xox", "xapp-", "hf_", "npm_", "pypi-", "GOCSPX-", "hooks.slack", "dop_v1_", "SG.", "eyJ"),
)
_NAME_HINTS = ("key", "secret", "token", "passw", "passphrase", "_auth")
"""Without one of these a pattern finds nothing. Most texts hold none, and to look for a few words
is many times faster than to try a pattern at each place."""


class Redaction:
    """One pass over one thing that leaves; it counts what it takes out."""

    def __init__(self, is_on: bool = True) -> None:
        self.is_on = is_on
        self.count = 0

    def text(self, text: str) -> str:
        """A text without its secrets."""
        if not self.is_on:
            return text
        if _holds_one(text, _KEY_HINTS):
            text = _KEYS.sub(self._whole, text)
        small = text.lower()
        if _holds_one(small, ("authorization", "cookie", "bearer", "basic")):
            text = _HEADERS.sub(self._named, text)
        if "://" in text:
            text = _IN_URL.sub(self._named, text)
        is_named = _holds_one(small, _NAME_HINTS)
        if is_named and "\\" in text:
            text = _ESCAPED.sub(self._named, text)
        if "-u" in small or (is_named and ("--" in text or "login" in small)):
            text = _ARGUMENTS.sub(self._named, text)
        return _ASSIGNED.sub(self._named, text) if is_named else text

    def value(self, value: Any) -> Any:
        """Any JSON value without its secrets, however deep it nests."""
        if not self.is_on:
            return value
        top = [self._opened(value)]
        waiting: list[list[Any] | dict[str, Any]] = [top]
        while waiting:
            holder = waiting.pop()
            if isinstance(holder, list):
                within: Iterable[tuple[Any, Any]] = enumerate(holder)
            else:
                within = holder.items()
            for place, held in within:
                if isinstance(held, list | dict):
                    holder[place] = opened = held if holder is top else self._opened(held)
                    waiting.append(opened)
        return top[0]

    def _opened(self, held: Any) -> Any:
        """A value whose own texts are redacted; lists and objects in it are as they were."""
        if isinstance(held, str):
            return self.text(held)
        if isinstance(held, list):
            return [self.text(each) if isinstance(each, str) else each for each in held]
        if isinstance(held, dict):
            # An image is no text, though it is written with letters.
            kept = "data" if held.get("type") == "image" else None
            return {
                self.text(name): each if name == kept else self._field(name, each)
                for name, each in held.items()
            }
        return held

    def _field(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and len(value) >= 6 and _SECRET_NAME.match(name):
            return value if value == REPLACED else self._taken()
        return self.text(value) if isinstance(value, str) else value

    def _whole(self, found: "re.Match[str]") -> str:
        return self._taken()

    def _named(self, found: "re.Match[str]") -> str:
        # Every pattern has a name before a secret, and the last group that matched is the secret.
        name, secret = (part for part in found.groups() if part is not None)
        if REPLACED in secret:
            return found[0]
        quote = secret[0] if secret[0] in "\"'" and secret[-1] == secret[0] else ""
        return f"{name}{quote}{self._taken()}{quote}"

    def _taken(self) -> str:
        self.count += 1
        return REPLACED


def _holds_one(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)
