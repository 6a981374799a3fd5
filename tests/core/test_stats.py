"""What a session has used is counted once, wherever it stands, and never goes down."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.codec import encode
from pi_rpc.core.entries import Kind
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.moments import finished
from pi_rpc.core.stats import (
    ROWS_OF_MOMENT,
    Count,
    SessionCount,
    Totals,
    counting,
    inherited_rows,
)
from pi_rpc.core.tree import ROOT, Tree
from pi_rpc.core.usage import combined_usage, money
from pi_rpc.core.uses import uses_in
from tests.core.trees import (
    Growing,
    assistant,
    chain,
    compaction,
    edit,
    entry,
    message,
    result,
    tree_of,
    user,
)


def usage(number: int) -> JsonObject:
    names = ("input", "output", "cacheRead", "cacheWrite")
    return dict.fromkeys(names, number) | {"cost": {"total": number * 4}}


def bearing(stored: JsonObject, number: int, **more: Any) -> JsonObject:
    return stored | {"message": stored["message"] | {"usage": usage(number)} | more}


def spent() -> Tree:
    """Usage of every place, each in a decimal of its own."""
    tool = bearing(result("r", "c"), 10)
    trunk = [
        user("u"),
        bearing(assistant("a", "c"), 1, provider="faux", model="faux-1"),
        tool,
        bearing(assistant("f", stopReason="error"), 100, provider="faux", model="faux-1"),
        entry("usage", "w", kind="cache_warm", provider="p", model="m", usage=usage(1000)),
        message("b", "bashExecution", command="ls", output=""),
        entry("branch_summary", "s", summary="x", fromId="o", usage=usage(100_000)),
        compaction("k", "s", usage=usage(1_000_000), fromHook=True),
        edit("e", "f", None),
        entry("label", "l", targetId="u", label="x"),
        entry("session_info", "i", name="x"),
        entry("custom_message", "m", customType="t", content="x", display=True),
    ]
    other = bearing(assistant("o"), 10_000, provider="faux", model="x", responseModel="resp")
    return tree_of([*chain(*trunk), other | {"parentId": "u"}])


def counted(tree: Tree) -> Totals:
    return taken_in(SessionCount(tree), tree.stored_leaf()).totals()


def taken_in(count: SessionCount, leaf_row: int) -> SessionCount:
    for _ in count.taking_in(leaf_row):
        pass
    return count


def totals_of(tree: Tree, rows: Sequence[int]) -> Totals:
    return finished(counting(tree, rows))


def test_every_place_counts_once() -> None:
    totals = counted(spent())
    tokens = totals.tokens
    four = (tokens.input, tokens.output, tokens.cache_read, tokens.cache_write)
    assert four == (1_111_111,) * 4
    assert (tokens.total, totals.cost, totals.cost_text) == (4_444_444, 4_444_444, "4444444")
    assert totals.cost_known


def test_messages_are_counted_by_role() -> None:
    totals = counted(spent())
    assert totals.messages == {
        "system": 0,
        "user": 1,
        "assistant": 3,
        "toolResult": 1,
        "bashExecution": 1,
        "other": 0,
    }
    assert (totals.total_messages, totals.tool_calls, totals.entries) == (6, 1, 13)


def test_cost_is_told_by_model_dearest_first() -> None:
    assert [(share.key, share.cost) for share in counted(spent()).breakdown] == [
        ("Tools/summaries", 4_400_040),
        ("faux/resp", 40_000),
        ("p/m", 4000),
        ("faux/faux-1", 404),
    ]


def test_a_path_has_less_than_the_session() -> None:
    tree = spent()
    path = totals_of(tree, tree.path(tree.row_of("m")))
    assert path.tokens.input == 1_101_111
    assert totals_of(tree, [tree.row_of("o")]).tokens.input == 10_000


@pytest.mark.parametrize("odd", [None, 5, [], {"input": "x", "cost": 3}, {"input": float("inf")}])
def test_usage_that_is_none_counts_nothing_and_raises_nothing(odd: Any) -> None:
    stored = assistant("a")
    tree = tree_of([stored | {"message": stored["message"] | {"usage": odd}}])
    totals = counted(tree)
    assert (totals.tokens.total, totals.cost) == (0, 0)
    assert totals.usage_missing == (not isinstance(odd, dict))


def test_tokens_without_a_price_are_not_told_to_be_free() -> None:
    stored = bearing(assistant("a"), 5, usage={"input": 5, "cost": {"total": 0}})
    assert not counted(tree_of([stored])).cost_known


def test_what_providers_report_is_told_beside_the_sum() -> None:
    stored = bearing(assistant("a"), 0, usage={"input": 1, "output": 2, "totalTokens": 50})
    tokens = counted(tree_of([stored])).tokens
    assert (tokens.total, tokens.reported) == (3, 50)


def test_money_is_summed_exactly() -> None:
    rows = [bearing(assistant(f"a{n}"), 0, usage={"cost": {"total": 0.1}}) for n in range(3)]
    totals = counted(tree_of(chain(*rows)))
    assert (totals.cost_text, totals.cost) == ("0.3", 0.3)
    assert money(True) == 0 == money("5")


def test_calls_within_a_result_are_not_counted() -> None:
    stored = result("r", "c")
    nested = {"calls": [{"id": "n", "name": "read", "status": "ok"}], "complete": True}
    tree = tree_of([stored | {"message": stored["message"] | {"nestedCalls": nested}}])
    assert counted(tree).tool_calls == 0


def test_totals_kept_up_equal_those_of_a_scan() -> None:
    chance = random.Random(7)
    growing = Growing()
    running = SessionCount(growing.tree)
    for place in range(1000):
        made = [
            user(f"{place:08x}"),
            bearing(assistant(f"{place:08x}", "c"), chance.randrange(1000)),
            bearing(result(f"{place:08x}", "c"), chance.randrange(1000)),
            entry("usage", f"{place:08x}", usage=usage(chance.randrange(9))),
        ]
        parent = f"{chance.randrange(place):08x}" if place else None
        growing.add(chance.choice(made) | {"parentId": parent})
        if chance.random() < 0.05:
            leaf_row = chance.randrange(-1, place)
            assert taken_in(running, leaf_row).totals() == counted(growing.tree)
    assert taken_in(running, 7).totals() == counted(growing.tree)


def test_what_is_off_the_path_follows_the_leaf() -> None:
    chance = random.Random(8)
    growing = Growing()
    running = SessionCount(growing.tree)
    for place in range(400):
        parent = f"{chance.randrange(place):08x}" if place else None
        stored = bearing(assistant(f"{place:08x}", "c"), chance.randrange(1000))
        growing.add(stored | {"parentId": parent})
        if chance.random() < 0.2:
            tree = growing.tree
            leaf_row = chance.randrange(-1, place + 1)
            on_path = set(tree.path(leaf_row))
            left = [row for row in range(len(tree)) if row not in on_path]
            wanted = totals_of(tree, left) if left else None
            assert taken_in(running, leaf_row).off_path() == wanted
            assert running.totals() == counted(tree)


def test_asking_again_reads_no_entry() -> None:
    tree = spent()
    running = SessionCount(tree)
    taken_in(running, tree.stored_leaf())
    read: list[int] = []
    watched = Tree(tree.heads, lambda row: (read.append(row), tree.line(row))[1])
    running._tree = watched
    assert taken_in(running, tree.stored_leaf()).off_path() is not None
    assert running.totals() == counted(tree)
    assert read == []


@pytest.mark.parametrize(
    "content", ["words", None, 5, [5, "x"], [{"type": "toolCall"}, {"type": 7}], {}]
)
def test_content_of_any_shape_costs_no_usage(content: Any) -> None:
    stored = bearing(assistant("a"), 5, provider="p", model="m", content=content)
    totals = counted(tree_of([stored]))
    assert (totals.tokens.input, totals.breakdown[0].key) == (5, "p/m")
    assert totals.tool_calls == (content == [{"type": "toolCall"}, {"type": 7}])


def test_what_a_fork_brought_along_is_known() -> None:
    own = chain(user("u"), bearing(assistant("a"), 5))
    mark = entry("custom", "f", customType="pi_rpc.fork", data={"v": 1}) | {"parentId": "a"}
    tree = tree_of([*own, mark, bearing(assistant("b"), 7) | {"parentId": "a"}])
    assert totals_of(tree, inherited_rows(tree)).tokens.input == 5
    assert inherited_rows(tree_of(own)) == []


def test_usages_are_combined_field_by_field() -> None:
    one = {"input": 1, "totalTokens": 9, "cost": {"total": 0.1, "totalFromProvider": True}}
    other = {"input": 2, "reasoning": 3, "cost": {"total": 0.2}}
    assert combined_usage([one, None, other]) == {
        "input": 3,
        "output": 0,
        "cacheRead": 0,
        "cacheWrite": 0,
        "totalTokens": 9,
        "reasoning": 3,
        "cost": {
            "input": 0,
            "output": 0,
            "cacheRead": 0,
            "cacheWrite": 0,
            "total": 0.3,
            "totalFromProvider": False,
        },
    }
    assert combined_usage([one]) is one
    assert combined_usage([None]) is None


def test_counting_goes_on_where_it_was_left() -> None:
    chance = random.Random(9)
    growing = Growing()
    count = SessionCount(growing.tree)
    for place in range(4 * ROWS_OF_MOMENT):
        parent = f"{max(0, place - chance.randrange(1, 4)):08x}" if place else None
        stored = bearing(assistant(f"{place:08x}", "c"), chance.randrange(1000))
        growing.add(stored | {"parentId": parent})
        if not place % 97:
            # Whoever asked went away in the middle.
            work = count.taking_in(chance.randrange(-1, place + 1))
            for _ in range(chance.randrange(4)):
                next(work, None)
            work.close()
    tree = growing.tree
    for leaf_row in (tree.stored_leaf(), 5, ROOT, len(tree) // 2):
        fresh = taken_in(SessionCount(tree), leaf_row)
        taken_in(count, leaf_row)
        assert (count.totals(), count.off_path()) == (fresh.totals(), fresh.off_path())


@given(st.lists(st.sampled_from(range(12)), max_size=9))
def test_lines_read_together_use_what_they_use_one_by_one(chosen: list[int]) -> None:
    reply = bearing(assistant("a", "c"), 3, provider="p", model="m")
    entries = [
        reply,
        reply | {"message": reply["message"] | {"responseModel": "r", "content": "words"}},
        reply | {"message": reply["message"] | {"usage": {"input": 1.5, "cost": {"total": 0}}}},
        reply | {"message": reply["message"] | {"usage": None}},
        assistant("b"),
        result("r", "c"),
        bearing(result("r", "c"), 2),
        user("u"),
        entry("usage", "w", kind="cache_warm", provider="p", model="m", usage=usage(1000)),
        compaction("k", "s", usage=usage(7), fromHook=True),
    ]
    lines = [encode(each) for each in entries] + [b'{"type":"message"', b"[]"]
    kinds = [*tree_of(entries).heads.kinds, Kind.ASSISTANT, Kind.TOOL_RESULT]
    single, together = Count(), Count()
    for place in chosen:
        single.add([], uses_in([kinds[place]], lines[place]))
    together.add(
        [], uses_in([kinds[place] for place in chosen], b"\n".join(map(lines.__getitem__, chosen)))
    )
    assert together.totals() == single.totals()
