"""Who gives back its memory, as a table."""

import pytest

from pi_rpc.core.idleness import Resting, UnloadRules, to_unload

NOW_MS = 1_000_000
RULES = UnloadRules(idle_ms=1000, loaded_max=3)


def resting(*spoken: str) -> list[Resting]:
    """Sessions as `name idle_ms`, with a `!` behind those where something goes on."""
    found = []
    for one in spoken:
        name, idle_ms = one.rstrip("!").split()
        found.append(Resting(name, NOW_MS - int(idle_ms), not one.endswith("!")))
    return found


@pytest.mark.parametrize(
    ("loaded", "gone"),
    [
        ([], []),
        (["a 0"], []),
        (["a 999"], []),
        (["a 1000"], ["a"]),
        (["a 5000!"], []),
        (["a 1000", "b 999", "c 3000"], ["c", "a"]),
        (["a 1", "b 3", "c 2", "d 0"], ["b"]),
        (["a 1", "b 3!", "c 2", "d 0"], ["c"]),
        (["a 1!", "b 3!", "c 2!", "d 0!"], []),
        (["a 1", "b 3000", "c 2", "d 0", "e 4"], ["b", "e"]),
    ],
)
def test_the_quiet_go_after_their_time_and_beyond_the_limit_the_longest_unneeded(
    loaded: list[str], gone: list[str]
) -> None:
    assert to_unload(resting(*loaded), NOW_MS, RULES) == gone


def test_with_no_time_nobody_goes() -> None:
    rules = UnloadRules(idle_ms=0, loaded_max=1)
    assert to_unload(resting("a 99999", "b 99999"), NOW_MS, rules) == []


@pytest.mark.parametrize(
    ("idle_ms", "every_ms"), [(1, 50), (400, 100), (600_000, 30_000), (10**9, 30_000)]
)
def test_a_look_is_worth_it_a_few_times_within_the_time(idle_ms: int, every_ms: int) -> None:
    assert UnloadRules(idle_ms=idle_ms).look_every_ms == every_ms
