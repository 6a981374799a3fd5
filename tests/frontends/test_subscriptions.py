"""A client's ears, without a host: what is told, to whom, and when."""

from typing import Any

import msgspec
import pytest

from pi_rpc.core.errors import Missing, Overfull
from pi_rpc.core.events import (
    MessageDelta,
    MessageEnded,
    RuntimeReplaced,
    SessionClosed,
    SessionRenamed,
)
from pi_rpc.frontends.native import subscriptions
from pi_rpc.frontends.native.subscriptions import Subscriptions
from pi_rpc.session.hub import Hub
from pi_rpc.wire.errors import RpcError


class Heard:
    """An outlet that keeps what it was told, and refuses messages that are too long."""

    is_pressed = False
    is_full = False
    outbound_limit_bytes = 1000

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    async def wait_until_free(self) -> None:
        raise AssertionError("nobody waits here")

    def notify(self, method: str, params: Any = None) -> None:
        if len(msgspec.json.encode(params)) > self.outbound_limit_bytes:
            raise RpcError(-32003, "too long", {})
        self.told.append((method, msgspec.to_builtins(params)))


class Live(msgspec.Struct):
    """As much of a session as subscriptions ask for."""

    hub: Hub


class OneHost:
    """A host whose only session is the one that takes over."""

    def __init__(self, hub: Hub) -> None:
        self._live = Live(hub)

    def session(self, session_id: str) -> Live:
        assert session_id == self._live.hub.session_id
        return self._live


@pytest.fixture
def hub() -> Hub:
    return Hub("s1", "r1")


@pytest.fixture
def next_hub() -> Hub:
    return Hub("s2", "r2")


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def ears(heard: Heard, next_hub: Hub) -> Subscriptions:
    return Subscriptions(OneHost(next_hub), heard)  # type: ignore[arg-type]


def test_an_event_is_told_once_with_all_ids_that_hear_it(
    ears: Subscriptions, hub: Hub, heard: Heard
) -> None:
    ids = [ears.add(hub, follow=True), ears.add(hub, follow=False)]
    hub.publish(SessionRenamed("x"))
    assert heard.told == [
        (
            "session/renamed",
            {"sessionId": "s1", "runtimeId": "r1", "seq": 1, "subscriptionIds": ids, "name": "x"},
        )
    ]


def test_ids_are_new_each_time_and_an_ended_one_is_unknown(ears: Subscriptions, hub: Hub) -> None:
    first = ears.add(hub, follow=True)
    ears.remove(first)
    assert ears.add(hub, follow=True) != first
    with pytest.raises(Missing) as caught:
        ears.remove(first)
    assert caught.value.reason == "subscription_not_found"


def test_the_last_ear_that_goes_leaves_the_hub_without_a_listener(
    ears: Subscriptions, hub: Hub
) -> None:
    one, other = ears.add(hub, follow=True), ears.add(hub, follow=True)
    ears.remove(one)
    assert list(hub.listeners) == [ears]
    assert ears.existing(hub) == other
    ears.remove(other)
    assert not hub.listeners
    assert ears.existing(hub) is None


def test_catching_up_is_told_to_the_one_who_asked_and_to_no_other(
    ears: Subscriptions, hub: Hub, heard: Heard
) -> None:
    hub.publish(SessionRenamed("a"))
    hub.publish(SessionRenamed("b"))
    first = ears.add(hub, follow=True)
    again = ears.add(hub, follow=True, since=1)
    assert [(params["seq"], params["subscriptionIds"]) for _, params in heard.told] == [
        (2, [again])
    ]
    hub.publish(SessionRenamed("c"))
    assert heard.told[-1][1]["subscriptionIds"] == [first, again]


def test_at_a_swap_who_follows_hears_the_new_and_who_does_not_hears_nothing_more(
    ears: Subscriptions, hub: Hub, next_hub: Hub, heard: Heard
) -> None:
    follows, stays = ears.add(hub, follow=True), ears.add(hub, follow=False)
    hub.publish(RuntimeReplaced("r1", "s1", "r2", "s2", "fork"))
    notices = [(params["subscriptionIds"], params["rebound"]) for _, params in heard.told]
    assert notices == [([follows], True), ([stays], False)]
    assert not hub.listeners
    next_hub.publish(SessionRenamed("new"))
    assert heard.told[-1][1]["subscriptionIds"] == [follows]
    with pytest.raises(Missing):
        ears.remove(stays)


def test_the_end_of_a_runtime_ends_its_subscriptions(
    ears: Subscriptions, hub: Hub, heard: Heard
) -> None:
    ears.add(hub, follow=True)
    hub.publish(SessionClosed("closed"))
    assert [method for method, _ in heard.told] == ["session/closed"]
    assert not hub.listeners


def test_kinds_opted_out_of_are_not_told(ears: Subscriptions, hub: Hub, heard: Heard) -> None:
    ears.opt_out = frozenset({"message/delta", "session/renamed"})
    ears.add(hub, follow=True)
    hub.publish(MessageDelta(0, "text", "x"))
    hub.publish(SessionRenamed("x"))
    hub.publish(SessionClosed("closed"))
    assert [(method, params["seq"]) for method, params in heard.told] == [("session/closed", 3)]


def test_news_too_long_for_the_client_come_without_their_content(
    ears: Subscriptions, hub: Hub, heard: Heard
) -> None:
    ears.add(hub, follow=True)
    hub.publish(MessageEnded("e1", {"role": "user", "content": "x" * 2000}))
    [(method, params)] = heard.told
    assert (method, params["entryId"], params["truncated"]) == ("message/ended", "e1", True)
    assert "message" not in params


def test_a_client_that_goes_hears_nothing_any_more(
    ears: Subscriptions, hub: Hub, next_hub: Hub
) -> None:
    ears.add(hub, follow=True)
    ears.add(next_hub, follow=True)
    ears.remove_all()
    assert not hub.listeners
    assert not next_hub.listeners


def test_more_than_enough_subscriptions_are_refused(ears: Subscriptions) -> None:
    hubs = [Hub("s", f"r{number}") for number in range(subscriptions.SUBSCRIPTIONS_MAX)]
    for hub in hubs:
        ears.add(hub, follow=True)
    with pytest.raises(Overfull) as caught:
        ears.add(Hub("s", "one more"), follow=True)
    assert caught.value.reason == "too_many_subscriptions"
