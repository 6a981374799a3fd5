"""What the user lets an extension take part in."""

from typing import Literal

Grant = Literal["sessions", "words", "prompt", "tools", "payloads"]
"""The life of sessions; what is said; what the model is told beside it; what is done; what goes
over the net."""

DEFAULT_GRANTS: frozenset[Grant] = frozenset({"sessions", "words", "prompt", "tools"})
"""What holds unless the user says otherwise. Keys and headers can be had by no grant."""
