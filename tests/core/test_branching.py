"""Plans for leaving a path."""

from typing import Any

import pytest

from pi_rpc.core.branching import (
    CopyPlan,
    Kept,
    Position,
    Rewritten,
    fork_points,
    plan_copy,
    plan_navigation,
)
from pi_rpc.core.entries import entry_object
from pi_rpc.core.errors import Refused
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.policy import OURS
from pi_rpc.core.projection import project
from pi_rpc.core.tree import ROOT, Tree
from tests.core.test_tree import below, cursor_entry, label_entry, name_entry, two_branches
from tests.core.trees import (
    TIME,
    assistant,
    chain,
    compaction,
    entry,
    message,
    result,
    tree_of,
    user,
)


def custom_message(entry_id: str, *texts: str) -> JsonObject:
    content = [{"type": "text", "text": text} for text in texts]
    return entry("custom_message", entry_id, customType="note", content=content, display=True)


def pictured(entry_id: str) -> JsonObject:
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    said = [{"type": "text", "text": "look"}, picture, {"type": "text", "text": " here"}]
    return message(entry_id, "user", said)


@pytest.mark.parametrize(
    ("target", "leaf", "draft"),
    [
        ("q2", "a1", "second"),
        ("q1", None, "first"),
        ("a1", "a1", None),
        ("note", "a1", "hello"),
        ("seen", "note", "look here"),
        ("label", "label", None),
        (None, None, None),
    ],
)
def test_a_choice_leads_above_what_a_user_said_and_onto_anything_else(
    target: str | None, leaf: str | None, draft: str | None
) -> None:
    tree = tree_of(
        [
            user("q1", "first"),
            below("q1", assistant("a1")),
            below("a1", user("q2", "second")),
            below("a1", custom_message("note", "he", "llo")),
            below("note", pictured("seen")),
            below("seen", label_entry("label", "q1", "x")),
        ]
    )
    plan = plan_navigation(tree, tree.row_or_root(target))
    assert (tree.id_or_none(plan.leaf_row), plan.draft) == (leaf, draft)


def copied(tree: Tree, target: str, position: Position) -> tuple[CopyPlan, list[JsonObject]]:
    """The plan, and the entries of the new session as they would be stored."""
    plan = plan_copy(tree, tree.row_of(target), position, "source")
    entries: list[JsonObject] = []
    parent: str | None = None
    for piece in plan.pieces:
        objects = (
            [piece.object]
            if isinstance(piece, Rewritten)
            else [tree.entry(row).object for row in range(piece.first, piece.last)]
        )
        for stored in objects:
            entries.append(stored | {"parentId": parent})
            parent = stored["id"]
    for number, made in enumerate(plan.made):
        time = made.timestamp or "now"
        entries.append(entry_object(made.body, f"made{number}", parent, time))
        parent = entries[-1]["id"]
    return plan, entries


def kept_ids(entries: list[JsonObject]) -> list[str]:
    return [stored["id"] for stored in entries if not stored["id"].startswith("made")]


def contents(tree: Tree, leaf: int) -> list[Any]:
    return list(project(tree, leaf, OURS).messages("session"))


@pytest.mark.parametrize(
    ("target", "position", "kept", "draft"),
    [
        ("q2", "before", ["q1", "a1"], "q2"),
        ("q3", "before", ["q1", "a1"], "q3"),
        ("q1", "before", [], "q1"),
        ("a3", "at", ["q1", "a1", "q3", "a3"], None),
        ("a1", "at", ["q1", "a1"], None),
        ("q2", "at", ["q1", "a1", "q2"], None),
    ],
)
def test_a_copy_ends_before_the_user_message_or_at_the_entry(
    target: str, position: Position, kept: list[str], draft: str | None
) -> None:
    tree = two_branches()
    plan, entries = copied(tree, target, position)
    assert (kept_ids(entries), plan.draft) == (kept, draft)
    assert tree.id_or_none(plan.leaf_row) == (kept[-1] if kept else None)


@pytest.mark.parametrize("target", ["a1", "label", "note"])
def test_a_fork_before_anything_but_a_user_message_is_refused(target: str) -> None:
    tree = tree_of(
        chain(user("q1"), assistant("a1"), custom_message("note"), label_entry("label", "q1", "x"))
    )
    with pytest.raises(Refused) as caught:
        plan_copy(tree, tree.row_of(target), "before", "source")
    assert caught.value.reason == "fork_needs_user_message"
    assert caught.value.data == {"entryId": target}


def test_a_copy_says_where_it_came_from_and_an_empty_one_has_nothing_to_say_it_on() -> None:
    tree = two_branches()
    _, entries = copied(tree, "a3", "at")
    assert entries[-1]["customType"] == "pi_rpc.fork"
    assert entries[-1]["data"] == {"v": 1, "sessionId": "source", "entryId": "a3"}
    assert copied(tree, "q1", "before")[1] == []


def test_labels_and_cursors_on_the_path_are_dropped_and_the_chain_is_closed() -> None:
    stored = chain(
        user("q1"),
        label_entry("l1", "q1", "start"),
        assistant("a1"),
        cursor_entry("c1"),
        user("q2"),
        assistant("a2"),
    )
    tree = tree_of(stored)
    _, entries = copied(tree, "a2", "at")
    assert kept_ids(entries) == ["q1", "a1", "q2", "a2"]
    assert [each["parentId"] for each in entries] == [None, "q1", "a1", "q2", "a2", "made0"]
    again = tree_of(entries)
    assert contents(again, again.stored_leaf()) == contents(tree, tree.row_of("a2"))


def test_labels_of_kept_entries_are_made_anew_at_the_end_with_their_old_times() -> None:
    tree = tree_of(
        [
            user("q1"),
            below("q1", assistant("a1")),
            below("a1", user("q2")),
            below("q2", label_entry("l1", "a1", "one") | {"timestamp": "2020-01-01T00:00:00.000Z"}),
            below("l1", label_entry("l2", "q2", "gone along with its target")),
            below("l2", label_entry("l3", "q1", "two")),
            below("l3", label_entry("l4", "a1", "three")),
            below("l4", label_entry("l5", "q1")),
        ]
    )
    _, entries = copied(tree, "q2", "before")
    labels = [each for each in entries if each["type"] == "label"]
    assert [(each["targetId"], each["label"], each["timestamp"]) for each in labels] == [
        ("a1", "three", TIME)
    ]
    _, entries = copied(tree, "q2", "at")
    assert [each["targetId"] for each in entries if each["type"] == "label"] == ["a1", "q2"]


def test_a_label_keeps_the_time_it_was_set_at() -> None:
    old = "2020-01-01T00:00:00.000Z"
    tree = tree_of(chain(user("q1"), label_entry("l1", "q1", "x") | {"timestamp": old}))
    _, entries = copied(tree, "q1", "at")
    assert [each["timestamp"] for each in entries if each["type"] == "label"] == [old]


@pytest.mark.parametrize(
    ("between", "boundary"),
    [
        ([label_entry("l1", "q1", "x"), user("q2")], "q2"),
        ([cursor_entry("l1"), user("q2")], "q2"),
        ([label_entry("l1", "q1", "x"), label_entry("l2", "q1", "y"), user("q2")], "q2"),
        ([user("q2"), label_entry("l1", "q1", "x")], "k1"),
    ],
)
def test_a_kept_boundary_that_was_dropped_moves_to_the_next_kept_entry(
    between: list[JsonObject], boundary: str
) -> None:
    tree = tree_of(chain(user("q1"), assistant("a1"), *between, compaction("k1", "l1"), user("q3")))
    plan, entries = copied(tree, "q3", "at")
    [summary] = [each for each in entries if each["type"] == "compaction"]
    assert summary["firstKeptEntryId"] == boundary
    assert sum(isinstance(piece, Rewritten) for piece in plan.pieces) == 1
    again = tree_of(entries)
    assert contents(again, again.stored_leaf()) == contents(tree, tree.row_of("q3"))


def test_a_compaction_whose_boundary_stays_is_copied_byte_for_byte() -> None:
    tree = tree_of(
        chain(label_entry("l1", "q1", "x"), user("q1"), assistant("a1"), compaction("k1", "a1"))
    )
    plan, _ = copied(tree, "k1", "at")
    assert list(plan.pieces) == [Kept(1, 4)]


def test_rows_that_stand_together_are_copied_together() -> None:
    tree = two_branches()
    assert list(copied(tree, "a2", "at")[0].pieces) == [Kept(0, 4)]
    assert list(copied(tree, "a3", "at")[0].pieces) == [Kept(0, 2), Kept(4, 6)]


def test_calls_and_results_right_after_a_compaction_stay_together() -> None:
    tree = tree_of(
        chain(
            user("q1"),
            assistant("a1", "c1"),
            result("r1", "c1"),
            compaction("k1", "a1"),
            user("q2"),
        )
    )
    _, entries = copied(tree, "q2", "before")
    again = tree_of(entries)
    assert contents(again, again.stored_leaf()) == contents(tree, tree.row_of("k1"))


@pytest.mark.parametrize(
    ("on_path", "elsewhere", "made"),
    [
        ([], [], []),
        (["Mine"], [], []),
        ([" Mine "], [], []),
        ([], ["Other"], ["Other"]),
        (["Mine"], ["Other"], ["Other"]),
        (["Mine"], ["Mine"], []),
        (["Mine"], [""], [""]),
        ([], ["Other", ""], []),
    ],
)
def test_a_copy_bears_the_name_its_source_bears(
    on_path: list[str], elsewhere: list[str], made: list[str]
) -> None:
    stored = chain(user("q1"), *(name_entry(f"n{n}", name) for n, name in enumerate(on_path)))
    leaf = stored[-1]["id"]
    stored += [below("q1", name_entry(f"e{n}", name)) for n, name in enumerate(elsewhere)]
    tree = tree_of(stored)
    _, entries = copied(tree, leaf, "at")
    names = [each["name"] for each in entries if each["id"].startswith("made") and "name" in each]
    assert names == made
    assert tree_of(entries).name() == tree.name()


def test_fork_points_are_user_messages_with_words_on_every_branch() -> None:
    stored = [user("q1"), below("q1", user("q2", "two")), below("q1", message("q3", "user", []))]
    stored += [below("q1", assistant("a1")), below("q1", user("q2", "a copy of an id"))]
    tree = tree_of(stored)
    found = [(tree.heads.id_of(row), text) for row, text in fork_points(tree)]
    assert found == [("q1", "q1"), ("q2", "two")]


def test_a_plan_is_the_same_each_time() -> None:
    tree = two_branches()
    assert copied(tree, "a3", "at") == copied(tree, "a3", "at")
    assert plan_navigation(tree, ROOT) == plan_navigation(tree, ROOT)
