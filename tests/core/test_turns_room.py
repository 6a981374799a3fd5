"""A run makes room: after a reply that lacked it, and before it settles."""

from collections.abc import Sequence

import pytest

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.thresholds import Recovery
from pi_rpc.core.turns import (
    Ask,
    Began,
    Command,
    Drain,
    Drained,
    EndAttempt,
    EndTurn,
    Fit,
    Fitted,
    Happening,
    Record,
    Recover,
    Recovered,
    Replied,
    Run,
    Settle,
    StartTurn,
    Stopped,
)

USER: JsonObject = {"role": "user", "content": "hi"}
GOOD: JsonObject = {"role": "assistant", "content": [], "stopReason": "stop"}
CUT: JsonObject = {"role": "assistant", "content": [], "stopReason": "length"}
FULL: JsonObject = {
    "role": "assistant",
    "content": [],
    "stopReason": "error",
    "errorMessage": "too long",
    "error": {"kind": "overflow"},
}
BEGIN = (Began([USER]), Drained())


def last(*happenings: Happening, makes_room: bool = True) -> Sequence[Command]:
    """What the last happening leads to, records left out."""
    run = Run(makes_room=makes_room)
    commands: Sequence[Command] = ()
    for happening in happenings:
        commands = run.feed(happening)
    return [one for one in commands if not isinstance(one, Record)]


def lacking(message: JsonObject, recovery: Recovery) -> Replied:
    return Replied(message, recovery=recovery)


@pytest.mark.parametrize(
    ("message", "recovery"), [(FULL, "overflow"), (CUT, "length")], ids=["refused", "cut"]
)
def test_a_reply_that_lacked_room_is_recovered(message: JsonObject, recovery: Recovery) -> None:
    reply = lacking(message, recovery)
    assert last(*BEGIN, reply) == [EndTurn(1), Recover(recovery, is_first=True)]
    asked = [EndAttempt("recover"), StartTurn(2), Drain("steering")]
    assert last(*BEGIN, reply, Recovered(has_room=True)) == asked
    assert last(*BEGIN, reply, Recovered(has_room=True), Drained()) == [Ask()]


def test_a_refused_request_without_room_fails_the_run() -> None:
    ended = last(*BEGIN, lacking(FULL, "overflow"), Recovered(has_room=False))
    assert ended == [EndAttempt("none"), Settle("failed")]


def test_a_cut_reply_without_room_ends_the_run_as_ever() -> None:
    steps = [*BEGIN, lacking(CUT, "length"), Recovered(has_room=False)]
    assert last(*steps) == [Drain("steering")]
    assert last(*steps, Drained(), Drained(), Fitted()) == [EndAttempt("none"), Settle("truncated")]


def again(*between: Happening) -> Sequence[Command]:
    steps = [*BEGIN, lacking(FULL, "overflow"), Recovered(has_room=True), Drained()]
    return last(*steps, *between, lacking(FULL, "overflow"))


def test_room_is_made_once_for_an_input() -> None:
    assert again() == [EndTurn(2), Recover("overflow", is_first=False)]


def test_a_good_reply_or_new_words_let_room_be_made_again() -> None:
    assert again(Replied(GOOD), Drained([USER])) == [EndTurn(3), Recover("overflow", is_first=True)]


def test_a_stopped_run_makes_no_room() -> None:
    stopped = last(*BEGIN, Stopped(), lacking(FULL, "overflow"))
    assert stopped == [EndTurn(1), EndAttempt("none"), Settle("aborted")]
    waiting = last(*BEGIN, lacking(FULL, "overflow"), Stopped(), Recovered(has_room=True))
    assert waiting == [EndAttempt("none"), Settle("aborted")]


def test_before_a_run_settles_its_context_is_looked_at_once() -> None:
    steps = [*BEGIN, Replied(GOOD), Drained(), Drained()]
    assert last(*steps) == [Fit()]
    assert last(*steps, Fitted()) == [EndAttempt("none"), Settle("done")]
    assert last(*steps, makes_room=False) == [EndAttempt("none"), Settle("done")]


def test_words_that_came_while_room_was_made_are_answered() -> None:
    steps = [*BEGIN, Replied(GOOD), Drained(), Drained(), Fitted(compacted=True)]
    assert last(*steps) == [Drain("steering")]
    assert last(*steps, Drained(), Drained()) == [EndAttempt("none"), Settle("done")]
    assert last(*steps, Drained([USER])) == [StartTurn(2), Ask()]
    # The next end is looked at anew.
    assert last(*steps, Drained([USER]), Replied(GOOD), Drained(), Drained()) == [Fit()]


def test_a_failed_run_is_looked_at_and_sends_nothing_more() -> None:
    refused = FULL | {"error": {"kind": "invalid_request"}}
    assert last(*BEGIN, Replied(refused)) == [EndTurn(1), Fit()]
    ended = last(*BEGIN, Replied(refused), Fitted(compacted=True))
    assert ended == [EndAttempt("none"), Settle("failed")]


def test_a_stop_while_room_is_made_ends_the_run_as_aborted() -> None:
    steps = [*BEGIN, Replied(GOOD), Drained(), Drained(), Stopped(), Fitted(compacted=True)]
    assert last(*steps) == [EndAttempt("none"), Settle("aborted")]
