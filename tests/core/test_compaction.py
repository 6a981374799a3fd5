"""A compaction cuts where nothing is torn apart, and keeps what is new."""

from collections.abc import Sequence

import pytest

from pi_rpc.core.compaction import CompactionPlan, plan_compaction
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.policy import OURS, PI3, Policy
from pi_rpc.core.projection import project
from pi_rpc.core.tree import ROOT, Tree
from tests.core.trees import (
    assistant,
    chain,
    compaction,
    edit,
    entry,
    message,
    result,
    system,
    tree_of,
    user,
)

TEN = "x" * 40
"""Ten tokens."""


def q(name: str, text: str = TEN) -> JsonObject:
    return user(name, text)


def a(name: str, *calls: str, text: str | None = None) -> JsonObject:
    # A call `read` with no arguments counts two tokens more.
    return assistant(name, *calls, text=TEN if text is None else text)


def r(name: str, call: str, text: str = TEN) -> JsonObject:
    return result(name, call, text)


def planned(
    entries: Sequence[JsonObject], keep: int, policy: Policy = PI3
) -> CompactionPlan | None:
    tree = tree_of(chain(*entries))
    return plan_compaction(project(tree, len(tree) - 1, policy), keep)


def ids(plan: CompactionPlan, rows: list[int]) -> str:
    id_of = plan.projection.tree.heads.id_of
    return " ".join(id_of(row) for row in plan.speaking(rows))


def told(plan: CompactionPlan | None) -> tuple[str, bool, str, str] | None:
    """The boundary, whether a turn is split, what is summarised, and of a split turn."""
    if plan is None:
        return None
    history, prefix = ids(plan, plan.history), ids(plan, plan.prefix)
    return plan.first_kept_id, plan.is_split_turn, history, prefix


BOTH = pytest.mark.parametrize("policy", [PI3, OURS], ids=lambda policy: policy.id)


@BOTH
@pytest.mark.parametrize(
    ("entries", "keep", "expected"),
    [
        (
            [q("u1"), a("a1"), q("u2"), a("a2"), q("u3"), a("a3")],
            20,
            ("u3", False, "u1 a1 u2 a2", ""),
        ),
        (
            [q("u1"), a("a1"), q("u2"), a("a2", "c"), r("r2", "c"), a("a3")],
            10,
            ("a3", True, "u1 a1", "u2 a2 r2"),
        ),
        ([q("u1"), a("a1")], 1000, None),
        ([q("u1")], 0, None),
        (
            [q("u1"), a("a1", "c"), r("r1", "c"), a("a2", "d"), r("r2", "d")],
            12,
            ("a2", True, "", "u1 a1 r1"),
        ),
        ([q("u1"), a("a1", "c"), r("r1", "c", "x" * 4000)], 100, ("a1", True, "", "u1")),
        (
            [q("u1"), a("a1", "c"), r("r1", "c", "x" * 4000), a("a2"), q("u2"), a("a3")],
            100,
            ("a2", True, "", "u1 a1 r1"),
        ),
        (
            [q("u1"), a("a1"), entry("model_change", "m"), system("s", TEN), q("u2"), a("a2")],
            20,
            ("u2", False, "u1 a1", ""),
        ),
        ([q("u1"), a("a1"), q("u2"), a("a2"), compaction("k", "u2")], 10, None),
        (
            [q("u1"), a("a1"), q("u2"), a("a2"), compaction("k", "u2"), entry("label", "l")],
            1000,
            None,
        ),
        (
            [*[q("u1"), a("a1"), q("u2"), a("a2"), compaction("k", "u2")], q("u3"), a("a3")],
            20,
            ("u3", False, "u2 a2", ""),
        ),
        (
            [*[q("u1"), a("a1"), compaction("k", "gone")], q("u3"), a("a3"), q("u4"), a("a4")],
            20,
            ("u4", False, "u3 a3", ""),
        ),
    ],
    ids=[
        "whole turns",
        "a split turn",
        "all fits",
        "one question",
        "one turn of calls",
        "a huge result keeps its call",
        "a huge result in the middle",
        "metadata and a system message before the boundary",
        "right after a compaction",
        "a label after a compaction",
        "the second compaction takes on what the first kept",
        "an unknown boundary",
    ],
)
def test_the_cut_falls_where_it_should(
    policy: Policy,
    entries: list[JsonObject],
    keep: int,
    expected: tuple[str, bool, str, str] | None,
) -> None:
    assert told(planned(entries, keep, policy)) == expected


METADATA_BEFORE_A_QUESTION = [
    *[q("u1"), a("a1"), entry("model_change", "m"), entry("label", "l"), q("u2"), a("a2")]
]


def test_pi_takes_a_turn_after_metadata_for_a_split_one() -> None:
    assert told(planned(METADATA_BEFORE_A_QUESTION, 20)) == ("m", True, "", "u1 a1")


def test_metadata_before_a_question_splits_no_turn_and_is_kept_with_it() -> None:
    assert told(planned(METADATA_BEFORE_A_QUESTION, 20, OURS)) == ("m", False, "u1 a1", "")


def test_the_summary_before_is_handed_on() -> None:
    entries = [q("u1"), compaction("k", "gone"), q("u2"), a("a2"), q("u3")]
    plan = planned(entries, 10)
    assert plan is not None
    assert (plan.previous_id, plan.previous_summary) == ("k", "K")


OMITTED = [
    *[q("u1"), a("a1"), q("U", "x" * 1600)],
    assistant("e", text="", stopReason="error"),
    edit("o", "e", None),
]


@BOTH
def test_a_big_input_that_nobody_answered_is_summarised_itself(policy: Policy) -> None:
    assert told(planned(OMITTED, 50, policy)) == ("e", True, "u1 a1", "U")
    assert planned(OMITTED, 5000, policy) is None


@BOTH
def test_a_replacement_elsewhere_keeps_the_big_input(policy: Policy) -> None:
    entries = [*OMITTED, edit("p", "u1", "other words")]
    assert told(planned(entries, 50, policy)) == ("U", False, "u1 a1", "")


@BOTH
def test_what_would_be_omitted_is_planned_as_if_it_were(policy: Policy) -> None:
    tree = tree_of(chain(*OMITTED[:-1]))
    plan = plan_compaction(project(tree, 3, policy), 50, frozenset({3}))
    assert told(plan) == ("e", True, "u1 a1", "U")


def test_a_result_is_kept_with_its_call_whatever_stands_between() -> None:
    note = entry("custom_message", "n", customType="t", content=TEN, display=True)
    entries = [q("u1"), a("a1", "c"), note, r("r1", "c"), a("a2")]
    assert told(planned(entries, 25, OURS)) == ("a1", True, "", "u1")
    parted = planned(entries, 25)
    assert parted is not None and parted.first_kept_id == "n"


def test_system_messages_take_no_room_from_what_is_kept() -> None:
    entries = [q("u1"), a("a1"), q("u2"), system("s", "x" * 4000), a("a2")]
    pi, ours = planned(entries, 100), planned(entries, 100, OURS)
    assert pi is not None and pi.first_kept_id == "a2"
    assert ours is None


def test_shell_output_kept_from_the_model_is_nothing_to_summarise() -> None:
    private = message(
        "b", "bashExecution", command="ls", output=TEN, excludeFromContext=True, exitCode=0
    )
    entries = [private, q("u1"), a("a1")]
    assert told(planned(entries, 20)) == ("u1", False, "b", "")
    assert planned(entries, 20, OURS) is None


@BOTH
def test_a_context_without_entries_has_no_plan(policy: Policy) -> None:
    tree = tree_of([])
    assert plan_compaction(project(tree, ROOT, policy), 10) is None


@pytest.mark.parametrize(
    ("entries", "tokens"),
    [
        ([q("u1"), assistant("a1", text=TEN, usage={"totalTokens": 5000}), q("u2")], 5010),
        (
            [
                *[q("u1"), assistant("a1", text=TEN, usage={"totalTokens": 5000}), q("u2")],
                edit("e", "u1", "abcd"),
            ],
            21,
        ),
    ],
)
def test_the_size_before_trusts_a_usage_until_an_edit(
    entries: list[JsonObject], tokens: int
) -> None:
    plan = planned([*entries, a("z", text="z")], 1)
    assert plan is not None and plan.tokens_before == tokens + 1


def test_what_is_kept_costs_what_it_says() -> None:
    plan = planned([q("u1"), a("a1"), q("u2"), a("a2")], 20)
    assert plan is not None and plan.kept_tokens == 20


def test_messages_told_leave_out_system_messages() -> None:
    entries = [system("s", "hello"), q("u1"), a("a1"), q("u2"), a("a2")]
    plan = planned(entries, 20)
    assert plan is not None
    assert [said["role"] for said in plan.told_history] == ["user", "assistant"]


def test_a_plan_of_a_long_history_reads_only_its_end() -> None:
    counted = assistant("last", text=TEN, usage={"totalTokens": 50_000})
    whole = tree_of(chain(*(q(f"{place:08x}") for place in range(5000)), counted))
    reads: list[int] = []

    def read(row: int) -> bytes:
        reads.append(row)
        return whole.line(row)

    tree = Tree(whole.heads, read)
    plan = plan_compaction(project(tree, len(tree) - 1, OURS), 100)
    assert plan is not None and len(plan.history) == 4991
    assert len(reads) < 20
