"""Entries wanted at a boundary: all of them or none."""

from typing import Any

import pytest

from pi_rpc.core.drafts import (
    DRAFTS_MAX,
    CompactionDraft,
    ContextEditDraft,
    CustomDraft,
    CustomMessageDraft,
    plan_drafts,
)
from pi_rpc.core.errors import Failure
from tests.core.trees import assistant, chain, result, tree_of, user

TREE = tree_of(
    [*chain(user("u"), assistant("a", "c"), result("r", "c"), user("v")), user("elsewhere")]
)
LEAF = 3
STATE = CustomDraft("host.state", {"n": 1})
WORDS = CustomMessageDraft("host.note", "hello")


def test_drafts_become_entries_in_their_order() -> None:
    plan = plan_drafts(TREE, LEAF, [STATE, WORDS, ContextEditDraft("u", {"content": "x"})])
    assert [body.type for body in plan.bodies] == ["custom", "custom_message", "context_edit"]
    assert plan.bodies[1].fields == {
        "customType": "host.note",
        "content": "hello",
        "display": True,
    }
    assert plan.compaction is None


def test_an_omission_takes_along_what_belongs_to_it() -> None:
    plan = plan_drafts(TREE, LEAF, [ContextEditDraft("r")])
    assert sorted(body.fields["targetId"] for body in plan.bodies) == ["a", "r"]


def test_a_compaction_comes_last_and_is_left_to_who_writes_it() -> None:
    draft = CompactionDraft("so far", "v")
    plan = plan_drafts(TREE, LEAF, [WORDS, draft])
    assert (len(plan.bodies), plan.compaction) == (1, draft)


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (CustomDraft("pi_rpc.cursor"), "reserved_type"),
        (CustomDraft("x" * 129), "bad_draft"),
        (CustomMessageDraft("a", [{"type": "toolCall"}]), "bad_draft"),
        (CustomMessageDraft("a", [{"type": "image", "data": "x"}]), "bad_draft"),
        (ContextEditDraft("nowhere"), "entry_not_found"),
        (ContextEditDraft("elsewhere"), "not_on_path"),
        (ContextEditDraft("u", {"no": "content"}), "bad_replacement"),
        (CompactionDraft(" ", "v"), "bad_draft"),
        (CompactionDraft("so far", "nowhere"), "entry_not_found"),
        (CompactionDraft("so far", "elsewhere"), "not_on_path"),
        (CompactionDraft("so far", "r"), "not_editable"),
    ],
)
def test_one_that_cannot_be_refuses_all_and_is_named(draft: Any, reason: str) -> None:
    with pytest.raises(Failure) as caught:
        plan_drafts(TREE, LEAF, [STATE, draft])
    assert (caught.value.reason, caught.value.data["draft"]) == (reason, 1)


def test_nothing_comes_behind_a_compaction_and_there_are_not_too_many() -> None:
    for drafts in ([CompactionDraft("so far", "v"), STATE], [STATE] * (DRAFTS_MAX + 1)):
        with pytest.raises(Failure) as caught:
            plan_drafts(TREE, LEAF, drafts)
        assert caught.value.reason == "bad_draft"
