"""How far work has come is told while it goes on, and nothing twice."""

import anyio
import pytest

from pi_rpc.core.errors import Missing
from pi_rpc.core.meter import Meter
from pi_rpc.frontends.native.notifications import ProgressValue
from pi_rpc.frontends.native.progress import reported

WAIT_S = 5


class Heard:
    def __init__(self) -> None:
        self.fractions: list[float | None] = []
        self.came = anyio.Event()

    def tell(self, value: ProgressValue) -> None:
        assert value.kind == "report"
        self.fractions.append(value.fraction)
        self.came.set()


@pytest.mark.anyio
async def test_a_report_comes_while_the_work_goes_on_and_one_when_it_is_done() -> None:
    heard, meter = Heard(), Meter()

    async def work() -> str:
        meter.total, meter.done = 4, 1
        await heard.came.wait()
        meter.done = 4
        return "done"

    with anyio.fail_after(WAIT_S):
        assert await reported(work(), meter, heard.tell, each_s=0) == "done"
    assert heard.fractions == [0.25, 1.0]


@pytest.mark.anyio
async def test_work_that_fails_or_measures_nothing_is_not_told_to_be_done() -> None:
    heard, meter = Heard(), Meter()

    async def fail() -> None:
        raise Missing("session_not_found", "no such session")

    with anyio.fail_after(WAIT_S), pytest.raises(Missing):
        await reported(fail(), meter, heard.tell, each_s=0)
    assert heard.fractions == []
