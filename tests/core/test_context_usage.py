"""How full a context is, with what, and how two contexts differ."""

import pytest

from pi_rpc.core.context_usage import ContextDiff, ContextUsage, diff, usage_by_part
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.policy import OURS
from pi_rpc.core.tree import ROOT
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


def usage(stored: list[JsonObject], window: int | None = 1000) -> ContextUsage:
    tree = tree_of(stored)
    return usage_by_part(tree, len(tree) - 1, OURS, window, 100)


def test_every_part_is_told_and_the_parts_add_up() -> None:
    found = usage(
        chain(
            compaction("k", "k", summary="x" * 40),
            system("s", "x" * 20, toolsAdded=[{"name": "x" * 27}]),
            user("u", "x" * 12),
            assistant("a", "c1", text="x" * 4),
            result("r", "c1", "x" * 16),
            message("b", "bashExecution", command="x" * 4, output=""),
        )
    )
    assert found == ContextUsage(
        system=5,
        tools=10,
        summary=10,
        messages=3 + 3 + 1,
        tool_results=4,
        total=36,
        tokens=None,
        estimate=36,
        method="unknown",
        usage_entry_id=None,
        window=1000,
        reserve=100,
        percent=None,
        policy="cjk-aware",
    )


def test_a_trusted_usage_is_the_total_and_names_its_reply() -> None:
    found = usage(chain(user("u", "abcd"), assistant("a", usage={"totalTokens": 70}), user("v")))
    assert (found.total, found.tokens, found.estimate) == (71, 71, 3)
    assert (found.method, found.usage_entry_id, found.percent) == ("usage", "a", 71 / 1000 * 100)


@pytest.mark.parametrize(
    ("last", "percent"), [(77, 0.77), (333, 3.3300000000000005), (700, 7.000000000000001)]
)
def test_a_percentage_is_not_rounded(last: int, percent: float) -> None:
    first = assistant("a", usage={"totalTokens": 50})
    found = usage(chain(user("u"), first, assistant("b", usage={"totalTokens": last})), 10_000)
    assert (found.tokens, found.percent) == (last, percent)


def test_what_a_command_put_out_after_the_last_answer_may_be_more_than_the_window() -> None:
    shell = message("b", "bashExecution", command="ls", output="x" * 80_000)
    found = usage(chain(user("u"), assistant("a", usage={"totalTokens": 100}), shell), 10_000)
    assert (found.tokens, found.percent, found.method) == (20_101, 201.01, "usage")


def test_without_any_usage_the_estimate_counts() -> None:
    found = usage(chain(user("u", "x" * 20)))
    assert (found.tokens, found.method, found.percent) == (5, "estimate", 0.5)


def test_after_an_edit_the_number_is_an_estimate() -> None:
    found = usage(
        chain(user("u"), assistant("a", usage={"totalTokens": 70}), edit("e", "u", "x" * 8))
    )
    assert (found.tokens, found.method, found.usage_entry_id) == (3, "estimate", None)


@pytest.mark.parametrize(
    ("reply", "known"),
    [
        ({"usage": {"totalTokens": 70}}, True),
        ({"usage": {"totalTokens": 70}, "stopReason": "error"}, False),
        ({"usage": {"totalTokens": 70}, "stopReason": "aborted"}, False),
        ({"usage": {"totalTokens": 0}}, False),
    ],
)
def test_after_a_compaction_the_number_is_unknown_until_a_good_reply(
    reply: JsonObject, known: bool
) -> None:
    found = usage(chain(user("u"), compaction("k", "u"), assistant("a", **reply)))
    assert (found.tokens is not None, found.percent is not None) == (known, known)
    assert found.method == ("usage" if known else "unknown")
    assert found.estimate > 0


def test_a_reply_from_before_the_compaction_makes_nothing_known() -> None:
    found = usage(chain(assistant("a", usage={"totalTokens": 70}), compaction("k", "a")))
    assert (found.tokens, found.total) == (None, 2)


@pytest.mark.parametrize("window", [None, 0, -5])
def test_an_unknown_window_gives_no_percentage(window: int | None) -> None:
    found = usage(chain(user("u")), window)
    assert (found.tokens, found.window, found.percent) == (1, None, None)


def test_an_empty_context_is_empty() -> None:
    found = usage_by_part(tree_of([user("u")]), ROOT, OURS, 1000, 100)
    assert (found.tokens, found.estimate, found.percent) == (0, 0, 0.0)


def test_a_context_differs_by_what_was_added_removed_and_changed() -> None:
    stored = [
        *chain(user("u"), user("v"), user("w")),
        *[edit("e", "v", "V") | {"parentId": "w"}, user("x") | {"parentId": "e"}],
        user("side") | {"parentId": "v"},
        entry("label", "l", targetId="u", label="x") | {"parentId": "side"},
    ]
    tree = tree_of(stored)
    rows = {name: tree.row_of(name) for name in ("w", "x", "l")}
    assert diff(tree, rows["w"], rows["x"], OURS) == ContextDiff(["x"], [], ["v"], 1)
    assert diff(tree, rows["x"], rows["w"], OURS) == ContextDiff([], ["x"], ["v"], 1)
    assert diff(tree, rows["w"], rows["l"], OURS) == ContextDiff(["side"], ["w"], [], 2)
    assert diff(tree, rows["w"], rows["w"], OURS) == ContextDiff([], [], [], 3)
    assert diff(tree, ROOT, rows["w"], OURS) == ContextDiff(["u", "v", "w"], [], [], 0)


def test_a_compaction_adds_its_summary_and_removes_what_it_stands_for() -> None:
    tree = tree_of(chain(user("u"), user("v"), compaction("k", "v")))
    assert diff(tree, 1, 2, OURS) == ContextDiff(["k"], ["u"], [], 0)
