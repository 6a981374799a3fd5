"""Many listeners on one runtime, some of them slow: all hear the same, and others do not wait."""

from pathlib import Path

import anyio
import pytest

from pi_rpc.core.events import Event, MessageDelta
from pi_rpc.session.hub import Hub
from pi_rpc.session.prompting import prompt, wait_until_settled
from tests.session.living import Ear, Speaker, living_host, memory_store, opened, said

EARS = 20
WORDS = [f"{number:03} " for number in range(120)]


class Moody(Ear):
    """A listener that has had enough after every few events."""

    def __init__(self, hub: Hub, patience: int) -> None:
        super().__init__(hub)
        self._patience = patience

    def hear(self, hub: Hub, seq: int, event: Event) -> None:
        super().hear(hub, seq, event)
        self.is_pressed = len(self.heard) % self._patience > self._patience // 2
        self.is_full |= len(self.heard) % self._patience == self._patience - 1

    async def recover(self) -> None:
        """Catch up each time somebody waits for it."""
        seen = 0
        while True:
            await self.until_true(lambda: self.waits > seen)  # noqa: B023
            seen = self.waits
            self.catch_up()


@pytest.mark.anyio
@pytest.mark.parametrize("patience", [2, 3, 5])
async def test_slow_ears_among_quick_ones_all_hear_the_same(cwd: Path, patience: int) -> None:
    async with (
        living_host(memory_store(), cwd, Speaker(said(*WORDS), said(*WORDS))) as host,
        anyio.create_task_group() as tasks,
    ):
        shared, alone = await opened(host, cwd), await opened(host, cwd)
        slow = Moody(shared.hub, patience)
        quick = [Ear(shared.hub) for _ in range(EARS - 1)]
        undisturbed = Ear(alone.hub)
        tasks.start_soon(slow.recover)
        prompt(shared, host.tasks, "go")
        prompt(alone, host.tasks, "go")
        assert await wait_until_settled(alone) == await wait_until_settled(shared) == "done"
        tasks.cancel_scope.cancel()
    assert slow.waits > 0
    assert slow.numbers == list(range(slow.numbers[0], slow.numbers[0] + len(slow.numbers)))
    assert all(each.heard == slow.heard for each in quick)
    assert "".join(delta.text for delta in slow.of(MessageDelta)) == "".join(WORDS)
    # Nobody lags there, so nothing was merged.
    assert [delta.text for delta in undisturbed.of(MessageDelta)] == WORDS
