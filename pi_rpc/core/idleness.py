"""Which sessions give back their memory: those nobody has needed for a while."""

from collections.abc import Sequence

import msgspec


class UnloadRules(msgspec.Struct, frozen=True):
    """When a session that is open gives back its memory."""

    idle_ms: int = 600_000
    """How long nobody has needed it; 0 for never."""
    loaded_max: int = 200
    """How many may be in memory at once; beyond it those go first that were needed longest ago."""

    @property
    def look_every_ms(self) -> int:
        """How often it is worth looking."""
        return max(50, min(self.idle_ms // 4, 30_000))


class Resting(msgspec.Struct, frozen=True):
    """A session in memory."""

    session_id: str
    needed_ms: int
    """When somebody needed it last, in Unix milliseconds."""
    is_quiet: bool
    """Whether nothing goes on there and nothing waits."""


def to_unload(loaded: Sequence[Resting], now_ms: int, rules: UnloadRules) -> list[str]:
    """The ids of those that go, longest unneeded first; never of one where something goes on."""
    if rules.idle_ms == 0:
        return []
    quiet = sorted((one for one in loaded if one.is_quiet), key=lambda one: one.needed_ms)
    beyond = len(loaded) - rules.loaded_max
    return [
        one.session_id
        for place, one in enumerate(quiet)
        if place < beyond or now_ms - one.needed_ms >= rules.idle_ms
    ]
