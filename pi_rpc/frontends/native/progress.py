"""How far long work has come, told while it goes on."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from pi_rpc.core.errors import Failure
from pi_rpc.core.meter import Meter
from pi_rpc.frontends.native.notifications import ProgressValue

REPORT_EACH_S = 0.25
"""How often the meter is looked at; what has not changed is not told again."""


async def reported(
    answer: Awaitable[Any],
    meter: Meter,
    tell: Callable[[ProgressValue], None],
    each_s: float = REPORT_EACH_S,
) -> Any:
    """The awaited answer; what the meter shows is told meanwhile and once more afterwards."""
    told: float | None = None

    def report() -> None:
        nonlocal told
        fraction = meter.fraction
        if fraction is not None and fraction != told:
            told = fraction
            tell(ProgressValue("report", fraction=round(fraction, 4)))

    async def keep_reporting() -> None:
        while True:
            await anyio.sleep(each_s)
            report()

    result: Any = None
    failed: Failure | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_reporting)
        try:
            result = await answer
        except Failure as failure:
            failed = failure
        tasks.cancel_scope.cancel()
    report()
    if failed is not None:
        raise failed
    return result
