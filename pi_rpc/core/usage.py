"""Reported usage: read whatever a file holds, and added up.

Promises
- Malformed or missing usage counts nothing and raises nothing.
- Money is summed in exact decimals, so no order of adding changes a sum.
"""

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from pi_rpc.core.messages import JsonObject

COUNTERS = ("input", "output", "cacheRead", "cacheWrite", "totalTokens")
OPTIONAL_COUNTERS = ("cacheWrite1h", "reasoning")
"""Parts of other counters; in a sum only when at least one side tells them."""

COSTS = ("input", "output", "cacheRead", "cacheWrite", "total")


def count(value: object) -> int:
    """A stored number as a whole count; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if math.isfinite(value) else 0


def money(value: object) -> Decimal:
    """A stored price, exactly as it was written down; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Decimal(0)
    # The shortest text of a float is the one that stood in the file.
    return Decimal(repr(value)) if math.isfinite(value) else Decimal(0)


def combined_usage(usages: Iterable[object]) -> JsonObject | None:
    """One usage that says what several say together; None when none of them is one."""
    found = [usage for usage in usages if isinstance(usage, dict)]
    if not found:
        return None
    if len(found) == 1:
        return found[0]
    sums: JsonObject = {name: sum(count(usage.get(name)) for usage in found) for name in COUNTERS}
    for name in OPTIONAL_COUNTERS:
        if any(name in usage for usage in found):
            sums[name] = sum(count(usage.get(name)) for usage in found)
    sums["cost"] = _combined_cost([_object(usage.get("cost")) for usage in found])
    return sums


def _combined_cost(costs: list[JsonObject]) -> JsonObject:
    cost: JsonObject = {
        name: float(sum((money(one.get(name)) for one in costs), Decimal(0))) for name in COSTS
    }
    if any("totalFromProvider" in one for one in costs):
        cost["totalFromProvider"] = all(one.get("totalFromProvider") is True for one in costs)
    return cost


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}
