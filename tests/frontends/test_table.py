"""The table of methods and notifications: whole, named by the rules, and told by types."""

import re
import typing

import msgspec
import pytest

from pi_rpc.core import events
from pi_rpc.frontends.native.notifications import NOTIFICATION_OF
from pi_rpc.frontends.native.shapes import Params
from pi_rpc.frontends.native.table import METHODS, NOTIFICATIONS

NAME = re.compile(r"[a-z]+/[a-z][a-zA-Z]*|initialize|shutdown|exit")
EVENTS = typing.get_args(events.Event)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_a_noun_and_a_verb_with_shapes_that_can_be_told(name: str) -> None:
    method = METHODS[name]
    assert NAME.fullmatch(name)
    assert method.summary.endswith(".")
    assert issubclass(method.params, Params)
    msgspec.json.schema(method.params)
    msgspec.json.schema(method.result)
    known = {field.name for field in msgspec.structs.fields(method.params)}
    assert set(method.experimental_fields) <= known


def test_every_event_has_a_notification_of_its_own() -> None:
    assert set(NOTIFICATION_OF) == set(EVENTS)
    names = [name for name, _, _ in NOTIFICATION_OF.values()]
    assert len(set(names)) == len(names)
    assert set(names) <= set(NOTIFICATIONS)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_a_notification_carries_what_its_event_tells(event: type[msgspec.Struct]) -> None:
    _, shape, _ = NOTIFICATION_OF[event]
    told = {field.name for field in msgspec.structs.fields(shape)}
    assert {"session_id", "runtime_id", "seq", "subscription_ids"} <= told
    renamed = {
        "visible_leaf_id": "visible_leaf",
        "old_runtime_id": "old",
        "new_runtime_id": "new",
        "provider": "model",
        "model_id": "model",
        "attempts_max": "max_attempts",
    }
    carried = {renamed.get(field.name, field.name) for field in msgspec.structs.fields(event)}
    assert carried <= told
