"""An edit of the context is refused for the first rule it breaks; calls keep their results."""

from typing import Any

import pytest

from pi_rpc.core.context_edits import plan_context_edit
from pi_rpc.core.entries import Body, context_edit, entry_object
from pi_rpc.core.errors import Failure, Invalid, Missing, Refused
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.policy import OURS
from pi_rpc.core.projection import project
from pi_rpc.core.receipt import explain
from pi_rpc.core.tree import ROOT, Tree
from tests.core.trees import (
    TIME,
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

TURN = chain(
    user("u"),
    assistant("a", "c1", "c2"),
    result("r1", "c1"),
    result("r2", "c2"),
    assistant("b"),
)


def refusal(stored: list[JsonObject], *targets: str, to: Any = None, pairs: bool = True) -> Failure:
    tree = tree_of(stored)
    with pytest.raises(Failure) as caught:
        plan_context_edit(tree, len(tree) - 1, targets, to, pairs)
    return caught.value


def planned(
    stored: list[JsonObject], *targets: str, to: Any = None, pairs: bool = True
) -> list[Body]:
    tree = tree_of(stored)
    return plan_context_edit(tree, len(tree) - 1, targets, to, pairs)


def after(stored: list[JsonObject], plan: list[Body]) -> Tree:
    """The tree with the planned entries appended."""
    above = stored[-1]["id"]
    grown = list(stored)
    for place, body in enumerate(plan):
        grown.append(entry_object(body, f"new{place}", above, TIME))
        above = f"new{place}"
    return tree_of(grown)


def speakers(tree: Tree) -> list[str]:
    return [entry_id for entry_id, _, _ in project(tree, len(tree) - 1, OURS).pairs()]


@pytest.mark.parametrize("shape", [5, "str", {}, [], {"content": None}, {"content": {}}])
def test_the_shape_is_checked_before_anything_else(shape: Any) -> None:
    found = refusal([user("u")], "nowhere", to=shape)
    assert (type(found), found.reason) == (Invalid, "bad_replacement")


def test_a_plan_needs_a_target() -> None:
    found = refusal([user("u")])
    assert (type(found), found.reason) == (Invalid, "no_target")


def test_an_unknown_target_is_missing() -> None:
    found = refusal([user("u")], "u", "nowhere")
    assert (type(found), found.reason) == (Missing, "entry_not_found")
    assert found.data == {"entryId": "nowhere"}


def test_a_target_on_another_branch_is_refused_before_its_kind() -> None:
    stored = [user("u"), system("left") | {"parentId": "u"}, user("here") | {"parentId": "u"}]
    found = refusal(stored, "left")
    assert (type(found), found.reason) == (Refused, "not_on_path")
    assert found.data == {"entryId": "left"}


def test_before_the_first_entry_nothing_is_on_the_path() -> None:
    with pytest.raises(Refused) as caught:
        plan_context_edit(tree_of([user("u")]), ROOT, ["u"], None)
    assert caught.value.reason == "not_on_path"


@pytest.mark.parametrize(
    "target",
    [
        entry("model_change", "x", provider="p", modelId="m"),
        system("x"),
        message("x", "bashExecution", command="ls", output=""),
        message("x", "custom", "old form"),
        compaction("x", "u"),
        entry("branch_summary", "x", summary="B", fromId="q"),
        entry("label", "x", targetId="u", label="l"),
        edit("x", "u", None),
    ],
    ids=lambda stored: str(stored["type"]),
)
def test_only_the_words_of_a_turn_may_be_edited(target: JsonObject) -> None:
    found = refusal(chain(user("u"), target, user("v")), "x")
    assert (type(found), found.reason) == (Refused, "not_editable")
    assert found.data == {"entryId": "x"}


@pytest.mark.parametrize(
    ("target", "content"),
    [
        (user("x"), "new"),
        (assistant("x"), [{"type": "text", "text": "new"}]),
        (entry("custom_message", "x", customType="t", content="", display=True), "new"),
    ],
    ids=["user", "assistant", "custom"],
)
def test_text_takes_the_form_its_target_has(target: JsonObject, content: Any) -> None:
    plan = planned([target], "x", to={"content": "new", "more": 1})
    assert plan == [context_edit("x", {"content": content})]


def test_text_for_a_result_becomes_a_block_and_blocks_stay() -> None:
    block = {"type": "text", "text": "new"}
    assert planned(TURN, "r1", to={"content": "new"}) == [context_edit("r1", {"content": [block]})]
    assert planned(TURN, "u", to={"content": [block]}) == [context_edit("u", {"content": [block]})]


def test_omitting_a_reply_omits_the_results_of_its_calls() -> None:
    plan = planned(TURN, "a")
    assert plan == [context_edit(target, None) for target in ("a", "r1", "r2")]
    assert speakers(after(TURN, plan)) == ["u", "b"]


def test_omitting_a_result_omits_its_call_and_the_other_results() -> None:
    assert planned(TURN, "r2") == [context_edit(target, None) for target in ("a", "r1", "r2")]


def test_several_targets_are_planned_in_path_order_each_once() -> None:
    plan = planned(TURN, "b", "u", "b")
    assert plan == [context_edit("u", None), context_edit("b", None)]


def test_without_pairs_a_result_may_be_orphaned_and_the_receipt_says_so() -> None:
    plan = planned(TURN, "a", pairs=False)
    assert plan == [context_edit("a", None)]
    tree = after(TURN, plan)
    found = explain(tree, len(tree) - 1, OURS, "s", 0)
    assert [(one.reason, one.entry_id) for one in found.diagnostics] == [
        ("orphan_result", "r1"),
        ("orphan_result", "r2"),
    ]


def test_replacing_a_reply_by_words_without_its_calls_would_orphan_the_results() -> None:
    found = refusal(TURN, "a", to={"content": "no calls"})
    assert (type(found), found.reason) == (Refused, "would_orphan_result")
    assert found.data == {"entryIds": ["r1", "r2"]}
    assert planned(TURN, "a", to={"content": "no calls"}, pairs=False)


def test_replacing_a_reply_by_one_with_the_same_calls_is_fine() -> None:
    calls: list[JsonObject] = [
        {"type": "toolCall", "id": call, "name": "read", "arguments": {}} for call in ("c1", "c2")
    ]
    assert planned(TURN, "a", to={"content": calls}) == [context_edit("a", {"content": calls})]


def test_bringing_back_a_result_alone_would_orphan_it() -> None:
    omitted = chain(*TURN, *(edit(f"e{target}", target, None) for target in ("a", "r1", "r2")))
    found = refusal(omitted, "r1", to={"content": "back"})
    assert (found.reason, found.data) == ("would_orphan_result", {"entryIds": ["r1"]})


def test_an_orphan_that_was_there_before_stops_nothing() -> None:
    stored = chain(result("r0", "c0"), user("u"))
    assert planned(stored, "u") == [context_edit("u", None)]
    assert planned(stored, "r0") == [context_edit("r0", None)]


def test_what_is_omitted_already_is_not_omitted_again() -> None:
    stored = chain(*TURN, edit("e", "r1", None))
    assert planned(stored, "a") == [context_edit(target, None) for target in ("a", "r2")]


def test_a_call_id_used_again_omits_only_its_own_result() -> None:
    again = chain(
        assistant("a", "c"), result("r", "c"), assistant("b", "c"), result("s", "c"), user("u")
    )
    assert planned(again, "a") == [context_edit("a", None), context_edit("r", None)]
    assert planned(again, "s") == [context_edit("b", None), context_edit("s", None)]


def test_a_target_behind_a_compaction_may_be_edited_and_changes_nothing_now() -> None:
    stored = chain(user("u"), compaction("k", "k"), user("v"))
    plan = planned(stored, "u", "v")
    assert plan == [context_edit("u", None), context_edit("v", None)]
    assert speakers(after(stored, plan)) == ["k"]
