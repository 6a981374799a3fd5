"""A run decides what comes next, from what happened alone."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.messages import JsonObject, ToolCall, ToolOutcome, text_block, tool_result_message
from pi_rpc.core.reply import ReplyError
from pi_rpc.core.retrying import RetryPolicy
from pi_rpc.core.turns import (
    CANCELLED,
    CUT_ARGUMENTS,
    Ask,
    Began,
    Call,
    Command,
    Drain,
    Drained,
    EndAttempt,
    EndRetry,
    EndTurn,
    Happening,
    Omit,
    Ran,
    Record,
    Replied,
    Run,
    ScheduleRetry,
    Settle,
    StartTurn,
    Stopped,
    Wait,
    Waited,
    Wanted,
)

USER: JsonObject = {"role": "user", "content": "hi"}
STEER: JsonObject = {"role": "user", "content": "wait"}
DONE = ToolOutcome([text_block("done")])
LAST = ToolOutcome([text_block("last")], terminate=True)
BAD = ToolOutcome([text_block("bad")], is_error=True)


def reply(stop: str = "stop", *calls: str) -> JsonObject:
    content = [{"type": "toolCall", "id": one, "name": "bash", "arguments": {}} for one in calls]
    return {"role": "assistant", "content": content, "stopReason": stop}


def called(*ids: str, error: str | None = None) -> list[ToolCall]:
    return [ToolCall(one, "bash", {}, error) for one in ids]


def results(outcome: ToolOutcome, *ids: str) -> list[JsonObject]:
    return [tool_result_message(one, outcome, 5) for one in called(*ids)]


def play(*happenings: Happening) -> list[Command]:
    run = Run()
    return [command for happening in happenings for command in run.feed(happening)]


BEGIN = (Began([USER]), Drained())
BEGUN: list[Command] = [StartTurn(1), Record([USER]), Drain("steering"), Ask()]


def recorded(*messages: JsonObject) -> Record:
    return Record(messages)


def plain(command: Command) -> Command:
    """Sequences compared as lists: which kind of sequence a command holds is no promise."""
    match command:
        case Record(messages=messages):
            return Record(list(messages))
        case Call(calls=calls):
            return Call(list(calls))
        case _:
            return command


def check(happenings: Sequence[Happening], expected: Sequence[Command]) -> None:
    assert [plain(one) for one in play(*happenings)] == [plain(one) for one in expected]


def test_a_plain_answer_is_recorded_and_the_run_is_done() -> None:
    check(
        [*BEGIN, Replied(reply()), Drained(), Drained()],
        [
            *BEGUN,
            recorded(reply()),
            EndTurn(1),
            Drain("steering"),
            Drain("followUp"),
            EndAttempt("none"),
            Settle("done"),
        ],
    )


def test_calls_are_run_and_their_results_recorded_before_the_next_request() -> None:
    asked = reply("toolUse", "a", "b")
    check(
        [*BEGIN, Replied(asked), Ran([DONE, BAD], 5), Drained()],
        [
            *BEGUN,
            recorded(asked),
            Call(called("a", "b")),
            recorded(*results(DONE, "a"), *results(BAD, "b")),
            EndTurn(1),
            Drain("steering"),
            StartTurn(2),
            Ask(),
        ],
    )


def test_calls_are_run_even_when_the_model_says_it_is_done() -> None:
    run = Run()
    for happening in BEGIN:
        run.feed(happening)
    assert plain(run.feed(Replied(reply("stop", "a")))[-1]) == Call(called("a"))


def test_calls_cut_at_the_length_limit_are_answered_by_an_error_and_the_run_goes_on() -> None:
    check(
        [*BEGIN, Replied(reply("length", "a")), Ran([BAD], 5), Drained()],
        [
            *BEGUN,
            recorded(reply("length", "a")),
            Call(called("a", error=CUT_ARGUMENTS)),
            recorded(*results(BAD, "a")),
            EndTurn(1),
            Drain("steering"),
            StartTurn(2),
            Ask(),
        ],
    )


def test_a_text_cut_at_the_length_limit_ends_a_truncated_run() -> None:
    assert play(*BEGIN, Replied(reply("length")), Drained(), Drained())[-1] == Settle("truncated")


def test_a_text_cut_at_the_length_limit_is_forgotten_once_another_reply_is_whole() -> None:
    happenings: list[Happening] = [
        *BEGIN,
        Replied(reply("length")),
        Drained([STEER]),
        Replied(reply()),
    ]
    assert play(*happenings, Drained(), Drained())[-1] == Settle("done")


@pytest.mark.parametrize(("stop", "outcome"), [("error", "failed"), ("aborted", "aborted")])
def test_a_failed_reply_ends_the_run_and_its_calls_are_never_run(stop: str, outcome: str) -> None:
    asked = reply(stop, "a")
    check(
        [*BEGIN, Replied(asked)],
        [*BEGUN, recorded(asked), EndTurn(1), EndAttempt("none"), Settle(outcome)],  # type: ignore[arg-type]
    )


def test_the_run_may_end_when_every_outcome_says_so() -> None:
    check(
        [*BEGIN, Replied(reply("toolUse", "a", "b")), Ran([LAST, LAST], 5), Drained(), Drained()],
        [
            *BEGUN,
            recorded(reply("toolUse", "a", "b")),
            Call(called("a", "b")),
            recorded(*results(LAST, "a", "b")),
            EndTurn(1),
            Drain("steering"),
            Drain("followUp"),
            EndAttempt("none"),
            Settle("done"),
        ],
    )


def test_one_outcome_that_does_not_end_the_run_is_enough_to_go_on() -> None:
    happenings: list[Happening] = [
        *BEGIN,
        Replied(reply("toolUse", "a", "b")),
        Ran([LAST, DONE], 5),
        Drained(),
    ]
    assert play(*happenings)[-2:] == [StartTurn(2), Ask()]


def test_steering_that_waited_goes_with_the_first_request() -> None:
    check(
        [Began([USER]), Drained([STEER])],
        [StartTurn(1), recorded(USER), Drain("steering"), recorded(STEER), Ask()],
    )


def test_steering_goes_with_the_request_after_the_results() -> None:
    happenings: list[Happening] = [
        *BEGIN,
        Replied(reply("toolUse", "a")),
        Ran([DONE], 5),
        Drained([STEER]),
    ]
    assert [plain(one) for one in play(*happenings)[-3:]] == [StartTurn(2), Record([STEER]), Ask()]


def test_steering_keeps_a_run_alive_that_would_end() -> None:
    happenings: list[Happening] = [*BEGIN, Replied(reply()), Drained([STEER])]
    assert [plain(one) for one in play(*happenings)[-3:]] == [StartTurn(2), Record([STEER]), Ask()]


def test_a_follow_up_is_taken_only_when_no_steering_waits_and_steering_is_asked_for_again() -> None:
    happenings: list[Happening] = [
        *BEGIN,
        Replied(reply()),
        Drained(),
        Drained([STEER]),
        Replied(reply()),
    ]
    assert [plain(one) for one in play(*happenings)[5:]] == [
        EndTurn(1),
        Drain("steering"),
        Drain("followUp"),
        EndAttempt("queued"),
        StartTurn(2),
        Record([STEER]),
        Ask(),
        Record([reply()]),
        EndTurn(2),
        Drain("steering"),
    ]


def test_a_stop_before_the_run_begins_still_records_the_question_and_asks_nobody() -> None:
    check(
        [Stopped(), Began([USER]), Replied(reply("aborted"))],
        [
            StartTurn(1),
            recorded(USER),
            Ask(stopped=True),
            recorded(reply("aborted")),
            EndTurn(1),
            EndAttempt("none"),
            Settle("aborted"),
        ],
    )


def test_a_stop_before_the_first_request_keeps_the_steering_that_was_already_drained() -> None:
    happenings: list[Happening] = [Began([USER]), Stopped(), Drained([STEER])]
    assert [plain(one) for one in play(*happenings)[3:]] == [Record([STEER]), Ask(stopped=True)]


def test_a_stop_while_calls_run_records_their_results_and_then_an_aborted_reply() -> None:
    check(
        [
            *BEGIN,
            Replied(reply("toolUse", "a", "b")),
            Stopped(),
            Stopped(),
            Ran([DONE, BAD], 5),
            Replied(reply("aborted")),
        ],
        [
            *BEGUN,
            recorded(reply("toolUse", "a", "b")),
            Call(called("a", "b")),
            recorded(*results(DONE, "a"), *results(BAD, "b")),
            EndTurn(1),
            StartTurn(2),
            Ask(stopped=True),
            recorded(reply("aborted")),
            EndTurn(2),
            EndAttempt("none"),
            Settle("aborted"),
        ],
    )


def test_a_stop_that_comes_as_the_reply_is_whole_still_answers_its_calls() -> None:
    happenings: list[Happening] = [*BEGIN, Stopped(), Replied(reply("toolUse", "a"))]
    assert plain(play(*happenings)[-1]) == Call(called("a"))


@pytest.mark.parametrize("stop", ["stop", "length", "error"])
def test_a_stop_before_the_run_would_end_takes_nothing_from_the_queues(stop: str) -> None:
    assert play(*BEGIN, Stopped(), Replied(reply(stop)))[-3:] == [
        EndTurn(1),
        EndAttempt("none"),
        Settle("aborted"),
    ]


def test_a_stop_between_the_two_queues_leaves_the_second_alone() -> None:
    assert play(*BEGIN, Replied(reply()), Stopped(), Drained())[-1] == Settle("aborted")


def test_a_stop_after_the_end_changes_nothing() -> None:
    happenings: list[Happening] = [*BEGIN, Replied(reply("error")), Stopped()]
    assert play(*happenings) == play(*happenings[:-1])


def failed(kind: str = "overloaded", retry_after_ms: int | None = None) -> JsonObject:
    error = ReplyError(kind, "not now", 529, None, retry_after_ms)
    told = {"errorMessage": error.message, "error": error.as_object()}
    return {"role": "assistant", "content": [], "stopReason": "error", **told}


BUSY = ReplyError("overloaded", "not now", 529)
QUICK = RetryPolicy(retries_max=2, base_ms=50)


def play_with(policy: RetryPolicy, *happenings: Happening) -> list[Command]:
    run = Run(policy)
    return [plain(command) for happening in happenings for command in run.feed(happening)]


def test_a_failure_that_may_pass_is_omitted_and_asked_again_as_a_new_attempt() -> None:
    happenings: list[Happening] = [
        *BEGIN,
        Replied(failed()),
        Waited(),
        Drained(),
        Replied(failed()),
        Waited(),
        Drained(),
        Replied(reply()),
        Drained(),
        Drained(),
    ]
    assert play_with(QUICK, *happenings) == [
        *map(plain, BEGUN),
        Record([failed()]),
        EndTurn(1),
        EndAttempt("retry"),
        ScheduleRetry(1, 2, 50, BUSY),
        Omit(),
        Wait(50),
        StartTurn(2),
        Drain("steering"),
        Ask(),
        Record([failed()]),
        EndTurn(2),
        EndAttempt("retry"),
        ScheduleRetry(2, 2, 100, BUSY),
        Omit(),
        Wait(100),
        StartTurn(3),
        Drain("steering"),
        Ask(),
        Record([reply()]),
        EndRetry(2),
        EndTurn(3),
        Drain("steering"),
        Drain("followUp"),
        EndAttempt("none"),
        Settle("done"),
    ]


def test_the_last_failure_stays_in_the_context_and_ends_the_run() -> None:
    again: list[Happening] = [Replied(failed()), Waited(), Drained()]
    assert play_with(QUICK, *BEGIN, *again, *again, Replied(failed()))[-5:] == [
        Record([failed()]),
        EndTurn(3),
        EndAttempt("none"),
        EndRetry(2, BUSY),
        Settle("failed"),
    ]


def test_any_reply_that_is_no_error_gives_all_retries_back() -> None:
    called_for = reply("toolUse", "a")
    happenings: list[Happening] = [
        *(*BEGIN, Replied(failed()), Waited(), Drained(), Replied(called_for)),
        *(Ran([DONE], 5), Drained(), Replied(failed())),
    ]
    told = play_with(QUICK, *happenings)
    assert [one for one in told if isinstance(one, ScheduleRetry | EndRetry)] == [
        ScheduleRetry(1, 2, 50, BUSY),
        EndRetry(1),
        ScheduleRetry(1, 2, 50, BUSY),
    ]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (RetryPolicy(enabled=False), failed()),
        (RetryPolicy(retries_max=0), failed()),
        (RetryPolicy(), failed("invalid_request")),
        (RetryPolicy(), failed("quota")),
        (RetryPolicy(), failed(retry_after_ms=60_001)),
    ],
    ids=["off", "none allowed", "our mistake", "no money", "later than we wait"],
)
def test_a_failure_that_is_not_asked_again_ends_the_run(
    policy: RetryPolicy, message: JsonObject
) -> None:
    assert play_with(policy, *BEGIN, Replied(message))[-3:] == [
        EndTurn(1),
        EndAttempt("none"),
        Settle("failed"),
    ]


def test_the_wait_is_shortened_by_chance_and_never_below_what_the_server_asked() -> None:
    policy = RetryPolicy(base_ms=1000)
    assert play_with(policy, *BEGIN, Replied(failed(), 0.8))[-1] == Wait(800)
    assert play_with(policy, *BEGIN, Replied(failed(retry_after_ms=5000), 0.8))[-1] == Wait(5000)


def test_a_retry_given_up_fails_the_run_and_a_stop_aborts_it() -> None:
    waiting: list[Happening] = [*BEGIN, Replied(failed())]
    given_up = play_with(QUICK, *waiting, Waited(given_up=True))
    assert given_up[-3:] == [Wait(50), EndRetry(1, CANCELLED), Settle("failed")]
    stopped = play_with(QUICK, *waiting, Stopped(), Waited())
    assert stopped[-3:] == [Wait(50), EndRetry(1, CANCELLED), Settle("aborted")]


def test_a_stop_during_a_retry_ends_it_before_the_run_settles() -> None:
    happenings: list[Happening] = [*BEGIN, Replied(failed()), Waited(), Drained(), Stopped()]
    assert play_with(QUICK, *happenings, Replied(reply("aborted")))[-4:] == [
        EndTurn(2),
        EndAttempt("none"),
        EndRetry(1, CANCELLED),
        Settle("aborted"),
    ]


def test_a_failure_after_a_stop_is_not_asked_again() -> None:
    assert play_with(QUICK, *BEGIN, Stopped(), Replied(failed()))[-1] == Settle("aborted")


def test_steering_that_came_during_the_wait_goes_with_the_retry() -> None:
    happenings: list[Happening] = [*BEGIN, Replied(failed()), Waited(), Drained([STEER])]
    assert play_with(QUICK, *happenings)[-2:] == [Record([STEER]), Ask()]


@pytest.mark.parametrize(
    ("before", "wrong"),
    [
        ((), Replied(reply())),
        ((Began([USER]),), Began([USER])),
        (BEGIN, Drained()),
        (BEGIN, Ran([], 5)),
        ((*BEGIN, Replied(reply("error"))), Began([USER])),
        ((*BEGIN, Replied(reply("error"))), Drained()),
    ],
)
def test_a_happening_nobody_waits_for_is_a_mistake(
    before: Sequence[Happening], wrong: Happening
) -> None:
    with pytest.raises(AssertionError):
        play(*before, wrong)


def test_fewer_outcomes_than_calls_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="shorter"):
        play(*BEGIN, Replied(reply("toolUse", "a", "b")), Ran([DONE], 5))


def unpaired(history: Sequence[JsonObject]) -> list[str]:
    """Ids of calls without, and of results beyond, exactly one answer right after their reply."""
    waiting: list[str] = []
    wrong: list[str] = []
    for message in history:
        if message["role"] == "toolResult":
            if message["toolCallId"] in waiting:
                waiting.remove(message["toolCallId"])
            else:
                wrong.append(message["toolCallId"])
            continue
        wrong += waiting
        waiting = []
        if message["role"] == "assistant" and message["stopReason"] not in ("error", "aborted"):
            waiting = [block["id"] for block in message["content"]]
    return wrong + waiting


@given(st.data())
def test_any_sequence_of_happenings_keeps_calls_paired_and_settles_once(
    data: st.DataObject,
) -> None:
    run = Run()
    history: list[JsonObject] = []
    settled: list[str] = []
    turns: list[int] = []
    attempts: list[str] = []
    retries: list[int] = []
    stopped = False
    happening: Happening = Began([USER])
    for step in range(60):
        if data.draw(st.integers(0, 9)) == 0:
            stopped = True
            assert run.feed(Stopped()) == ()
        commands = run.feed(happening)
        for command in commands:
            match command:
                case Record(messages=messages):
                    history += messages
                case StartTurn(number=number):
                    turns.append(number)
                case EndTurn(number=number):
                    assert number == turns[-1]
                case EndAttempt(next=following):
                    attempts.append(following)
                case ScheduleRetry(attempt=attempt):
                    retries.append(attempt)
                case EndRetry(attempt=attempt):
                    assert retries.pop() == attempt
                    retries.clear()
                case Settle(outcome=outcome):
                    settled.append(outcome)
        assert unpaired(history) == [] or isinstance(commands[-1], Call)
        match commands[-1]:
            case Ask(stopped=True):
                assert stopped
                happening = Replied(reply("aborted"))
            case Ask():
                # After many steps every reply is an error, so that every run of this test ends.
                stops = (
                    ["stop", "toolUse", "length", "error", "aborted"] if step < 40 else ["error"]
                )
                count = data.draw(st.integers(0, 3))
                ids = [f"{step}-{index}" for index in range(count)]
                happening = Replied(reply(data.draw(st.sampled_from(stops)), *ids))
                if data.draw(st.booleans()):
                    happening = Replied(failed(data.draw(st.sampled_from(["server", "quota"]))))
            case Wait():
                happening = Waited(data.draw(st.booleans()))
            case Call(calls=calls):
                drawn = st.lists(
                    st.sampled_from([DONE, BAD, LAST]), min_size=len(calls), max_size=len(calls)
                )
                happening = Ran(data.draw(drawn), 5)
            case Drain():
                assert not stopped
                happening = Drained(data.draw(st.lists(st.just(STEER), max_size=2)))
            case _:
                break
    assert len(settled) == 1
    assert run.is_settled
    assert turns == list(range(1, len(turns) + 1))
    assert retries == []
    assert "none" not in attempts[:-1]
    if stopped:
        assert settled == ["aborted"]


def test_one_more_request_is_made_when_it_is_wanted_and_nothing_else_leads_to_one() -> None:
    check(
        [
            *BEGIN,
            Replied(reply()),
            Wanted(),
            Drained(),
            Drained(),
            Drained(),
            Replied(reply()),
            Drained(),
            Drained(),
        ],
        [
            *BEGUN,
            recorded(reply()),
            EndTurn(1),
            Drain("steering"),
            Drain("followUp"),
            StartTurn(2),
            Drain("steering"),
            Ask(),
            recorded(reply()),
            EndTurn(2),
            Drain("steering"),
            Drain("followUp"),
            EndAttempt("none"),
            Settle("done"),
        ],
    )


def test_a_request_that_is_made_anyway_is_the_one_that_was_wanted() -> None:
    run = Run()
    asked = reply("toolUse", "a")
    for happening in (*BEGIN, Replied(asked), Wanted(), Ran([DONE], 5), Drained()):
        run.feed(happening)
    assert not run.wants_more
    for happening in (Replied(reply()), Wanted(), Drained([STEER])):
        run.feed(happening)
    assert not run.wants_more
    run.feed(Replied(reply()))
    run.feed(Drained())
    assert run.feed(Drained())[-1] == Settle("done")


def test_nothing_more_is_asked_for_by_a_run_that_is_stopped() -> None:
    run = Run()
    for happening in (*BEGIN, Replied(reply()), Wanted(), Stopped(), Drained()):
        commands = run.feed(happening)
    assert commands[-1] == Settle("aborted")
