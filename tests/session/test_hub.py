"""Events are numbered without gaps, kept for a while, and nobody waits for another's listener."""

import anyio
import pytest

from pi_rpc.core.events import MessageDelta, QueueChanged
from pi_rpc.session.hub import EVENT_WEIGHT, WINDOW_EVENTS_MAX, WINDOW_WEIGHT_MAX, Hub
from tests.session.living import WAIT_S, Ear


def delta(text: str) -> MessageDelta:
    return MessageDelta(0, "text", text)


@pytest.fixture
def hub() -> Hub:
    return Hub("session", "runtime")


def test_numbers_count_from_one_without_gaps_for_every_listener(hub: Hub) -> None:
    first = Ear(hub)
    hub.publish(delta("a"))
    second = Ear(hub)
    hub.publish(delta("b"))
    hub.publish(delta("c"))
    assert first.heard == [(1, delta("a")), (2, delta("b")), (3, delta("c"))]
    assert second.heard == [(2, delta("b")), (3, delta("c"))]
    assert hub.seq == 3


def test_a_listener_that_attaches_twice_hears_once(hub: Hub) -> None:
    ear = Ear(hub, hub)
    hub.publish(delta("a"))
    assert ear.numbers == [1]
    hub.detach(ear)
    hub.publish(delta("b"))
    assert ear.numbers == [1]
    assert hub.listeners == ()


def test_events_since_a_number_are_those_after_it(hub: Hub) -> None:
    for text in "abc":
        hub.publish(delta(text))
    assert hub.since(0) == [(1, delta("a")), (2, delta("b")), (3, delta("c"))]
    assert hub.since(2) == [(3, delta("c"))]
    assert hub.since(3) == []


def test_a_number_nobody_was_ever_told_is_a_gap(hub: Hub) -> None:
    assert hub.since(0) == []
    assert hub.since(1) is None
    hub.publish(delta("a"))
    assert hub.since(2) is None


def test_the_window_is_bounded_in_count_and_says_what_is_gone(hub: Hub) -> None:
    for _ in range(WINDOW_EVENTS_MAX + 10):
        hub.publish(delta(""))
    assert hub.since(9) is None
    kept = hub.since(10)
    assert kept is not None
    assert [seq for seq, _ in kept] == list(range(11, WINDOW_EVENTS_MAX + 11))


def test_the_window_is_bounded_in_weight(hub: Hub) -> None:
    heavy = WINDOW_WEIGHT_MAX // 4
    for _ in range(20):
        hub.publish(delta("x"), heavy - EVENT_WEIGHT)
    assert hub.since(15) is None
    kept = hub.since(16)
    assert kept is not None
    assert [seq for seq, _ in kept] == [17, 18, 19, 20]


def test_an_event_heavier_than_the_whole_window_is_told_and_not_kept(hub: Hub) -> None:
    ear = Ear(hub)
    hub.publish(delta("light"))
    hub.publish(delta("heavy"), WINDOW_WEIGHT_MAX + 1)
    assert ear.numbers == [1, 2]
    assert hub.since(1) is None
    assert hub.since(2) == []
    hub.publish(QueueChanged([], []))
    assert hub.since(2) == [(3, QueueChanged([], []))]


@pytest.mark.anyio
async def test_a_full_listener_is_waited_for_and_a_free_one_is_not(hub: Hub) -> None:
    other = Hub("other", "other")
    slow, quick = Ear(hub), Ear(hub, other)
    slow.is_full = True
    passed = anyio.Event()

    async def go_on() -> None:
        await hub.wait_until_free()
        passed.set()

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go_on)
            await slow.until_true(lambda: slow.waits == 1)
            await other.wait_until_free()
            assert not passed.is_set()
            slow.catch_up()
            await passed.wait()
    assert quick.waits == 0


def test_a_hub_is_pressed_while_any_listener_is(hub: Hub) -> None:
    assert not hub.is_pressed
    _, lagging = Ear(hub), Ear(hub)
    lagging.is_pressed = True
    assert hub.is_pressed
    hub.detach(lagging)
    assert not hub.is_pressed
