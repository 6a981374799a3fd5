"""What stands on the branches of a tree."""

from typing import Any

import pytest

from pi_rpc.core.branches import (
    ROWS_READ_MAX,
    TEXT_CHARS_MAX,
    branch_at,
    files_touched,
    last_words,
    segment,
    words_shown,
)
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.tree import ROOT
from tests.core.test_tree import below, label_entry, name_entry, two_branches
from tests.core.trees import assistant, chain, compaction, entry, message, tree_of, user


def calling(entry_id: str, **calls: tuple[str, Any]) -> JsonObject:
    blocks = [
        {"type": "toolCall", "id": call, "name": name, "arguments": {"path": path}}
        for call, (name, path) in calls.items()
    ]
    return message(entry_id, "assistant", blocks)


def answered(entry_id: str, call: str, *, fails: bool = False) -> JsonObject:
    return message(entry_id, "toolResult", [], toolCallId=call, toolName="x", isError=fails)


def test_a_branch_is_what_stands_below_the_last_fork() -> None:
    tree = two_branches()
    branch = branch_at(tree, tree.row_of("a3"))
    assert (tree.id_or_none(branch.fork_row), branch.size, branch.text) == ("a1", 2, "a3")


def test_a_line_without_forks_is_one_branch_from_the_root() -> None:
    tree = tree_of(chain(user("q1"), assistant("a1"), user("q2")))
    branch = branch_at(tree, 2)
    assert (branch.fork_row, branch.size, branch.text) == (ROOT, 3, "q2")


def test_a_tip_that_itself_bears_several_marks_is_measured_from_above() -> None:
    tree = tree_of(
        [
            user("q1"),
            below("q1", label_entry("l1", "q1", "x")),
            below("q1", label_entry("l2", "q1", "y")),
        ]
    )
    assert (branch_at(tree, 0).fork_row, branch_at(tree, 0).size) == (ROOT, 1)


def test_a_segment_is_newest_first_and_ends_above_the_ancestor() -> None:
    tree = two_branches()
    row = tree.row_of
    assert segment(tree, row("a3"), row("a1")) == [row("a3"), row("q3")]
    assert segment(tree, row("a1"), row("a1")) == []
    assert len(segment(tree, row("a3"), ROOT)) == 4


def test_files_are_read_or_modified_and_failed_calls_do_not_count() -> None:
    tree = tree_of(
        chain(
            calling("a1", c1=("read", "map.txt"), c2=("read", "way.txt"), c3=("write", "no.txt")),
            answered("r1", "c1"),
            answered("r2", "c2"),
            answered("r3", "c3", fails=True),
            calling("a2", c4=("edit", "way.txt"), c5=("bash", "x"), c6=("read", 7)),
        )
    )
    found = files_touched(tree, list(tree.upward(4)))
    assert (found.read, found.modified, found.complete) == (["map.txt"], ["way.txt"], True)


def test_a_long_branch_is_counted_whole_and_read_in_part() -> None:
    entries = [calling("a0", c1=("read", "old.txt"))]
    entries += [user(f"q{n}") for n in range(ROWS_READ_MAX)]
    tree = tree_of(chain(*entries))
    branch = branch_at(tree, ROWS_READ_MAX)
    assert branch.size == ROWS_READ_MAX + 1
    assert (branch.files.read, branch.files.complete) == ([], False)


def test_last_words_are_the_newest_of_user_and_model_that_say_something() -> None:
    tree = tree_of(chain(user("q1", "words"), message("a1", "assistant", []), name_entry("n", "x")))
    assert last_words(tree, tree.upward(2)) == "words"
    assert last_words(tree, []) == ""


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (user("q1", "one\n\n two"), "one two"),
        (user("q1", "x" * 1000), "x" * TEXT_CHARS_MAX),
        (compaction("k1", "k1"), "K1"),
        (name_entry("n1", "named"), "named"),
        (label_entry("l1", "q1", "marked"), "marked"),
        (label_entry("l1", "q1"), ""),
        (entry("custom_message", "m1", content="note"), "note"),
        (entry("message", "m1", message="broken"), ""),
        (entry("unheard_of", "u1", summary=["odd"]), ""),
    ],
)
def test_what_an_entry_shows_is_the_start_of_what_it_says_on_one_line(
    stored: JsonObject, shown: str
) -> None:
    assert words_shown(tree_of([stored]), 0) == shown
