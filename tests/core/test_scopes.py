"""Scopes that somebody else keeps versions of: what is said of them, and how they are bound."""

from typing import Any

import pytest

from pi_rpc.core.errors import Invalid
from pi_rpc.core.events import Environment, ScopeVerdict
from pi_rpc.core.scopes import (
    ScopeState,
    check_scope_name,
    scope_verdict,
)
from pi_rpc.core.versions import drift_note, with_offered

STATES = {
    "the same name": ("v1", ScopeState("v1"), ("restored", "equal")),
    "another name": ("v1", ScopeState("v2"), ("not_restored", "differs")),
    "said to be the same": ("v1", ScopeState("v2", same=True), ("restored", "equal")),
    "said to differ": ("v1", ScopeState("v1", same=False), ("not_restored", "differs")),
    "said without a name": ("v1", ScopeState(None, same=True), ("restored", "equal")),
    "nothing said": ("v1", ScopeState(), ("unknown", "not_told")),
    "nobody asked": ("v1", ScopeState(why_not="no_provider"), ("unknown", "no_provider")),
    "nothing bound": (None, ScopeState("v2"), ("unknown", "not_bound")),
}


@pytest.mark.parametrize(("expected", "state", "verdict"), STATES.values(), ids=STATES)
def test_a_verdict_says_no_more_than_its_provider(
    expected: str | None, state: ScopeState, verdict: tuple[str, str]
) -> None:
    said = scope_verdict(expected, state, has_run=True)
    assert (said.status, said.reason) == verdict
    assert said.expected == expected


def test_where_nothing_ran_nothing_can_have_changed() -> None:
    said = scope_verdict(None, ScopeState("v"), has_run=False)
    assert said == ScopeVerdict("restored", "nothing_ran", None, "v")


@pytest.mark.parametrize("name", ["files", "external"])
def test_what_is_looked_at_here_cannot_be_offered(name: str) -> None:
    with pytest.raises(Invalid):
        check_scope_name(name)
    check_scope_name("database")


@pytest.mark.parametrize(
    ("others", "worst"),
    [
        (["restored"], "restored"),
        (["unknown", "restored"], "unknown"),
        (["unknown", "not_restored"], "not_restored"),
    ],
)
def test_the_worst_scope_is_the_whole(others: list[Any], worst: str) -> None:
    files = ScopeVerdict("restored", "equal")
    offered = {f"s{place}": ScopeVerdict(one, "why") for place, one in enumerate(others)}
    whole = with_offered(Environment("restored", {"files": files}), offered)
    assert whole.status == worst
    assert whole.scopes == {"files": files} | offered


def test_the_model_is_told_of_a_scope_that_stayed() -> None:
    files = ScopeVerdict("restored", "equal")
    stayed = {"database": ScopeVerdict("not_restored", "differs")}
    lost = {"queue": ScopeVerdict("unknown", "no_provider")}
    environment = Environment("not_restored", {"files": files} | stayed | lost)
    note = drift_note(environment)
    assert note is not None
    assert "The database did not (differs)." in str(note.content)
    assert "The queue may not have done so (no_provider)." in str(note.content)
    assert drift_note(Environment("restored", {"files": files})) is None
