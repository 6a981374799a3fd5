"""Terminal output made plain text: what a reader sees, without what steers a terminal; pure.

Promises
- Any split of the bytes gives the same text, if no control sequence is longer than is waited for.
- Memory is bounded: a control sequence that does not end is let go as text.
"""

import codecs
import re

HELD_CHARACTERS_MAX = 4096
"""Longest control sequence waited for; titles and links are far shorter."""

_SEQUENCE = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|[PX^_][^\x1b]*\x1b\\"  # DCS, SOS, PM, APC: strings
    r"|[ -/]*[0-~]"  # all the short ones
    r")"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[PX^_][^\x1b]*\x1b?|[ -/]*)\Z")
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])


class Plain:
    """Bytes in, plain text out, piece by piece."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, chunk: bytes, final: bool = False) -> str:
        """The text of the next piece; `final` gives out what was waited for."""
        text = self._held + self._decoder.decode(chunk, final)
        self._held = ""
        if not final:
            unfinished = _UNFINISHED.search(text)
            if unfinished and len(text) - unfinished.start() <= HELD_CHARACTERS_MAX:
                self._held = text[unfinished.start() :]
                text = text[: unfinished.start()]
        return _SEQUENCE.sub("", text).translate(_CONTROLS)
