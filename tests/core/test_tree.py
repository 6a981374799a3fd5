"""The tree of a session's entries."""

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_rpc.core.errors import Damaged, Missing
from pi_rpc.core.heads import Columns, Heads
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.tree import ROOT, Tree
from tests.core.trees import Growing, assistant, chain, entry, tree_of, user


def below(parent: str | None, stored: JsonObject) -> JsonObject:
    return stored | {"parentId": parent}


def label_entry(entry_id: str, target: Any, text: Any = None) -> JsonObject:
    said = {} if text is None else {"label": text}
    return entry("label", entry_id, targetId=target, **said)


def name_entry(entry_id: str, name: Any) -> JsonObject:
    return entry("session_info", entry_id, name=name)


def cursor_entry(entry_id: str) -> JsonObject:
    return entry("custom", entry_id, customType="pi_rpc.cursor", data={"v": 1})


def two_branches() -> Tree:
    """q1 a1, then q2 a2 and q3 a3 below a1."""
    return tree_of(
        [
            user("q1"),
            below("q1", assistant("a1")),
            below("a1", user("q2")),
            below("q2", assistant("a2")),
            below("a1", user("q3")),
            below("q3", assistant("a3")),
        ]
    )


def ids(tree: Tree, rows: Any) -> list[str]:
    return [tree.heads.id_of(row) for row in rows]


def test_a_path_leads_from_the_root_down_and_upward_is_its_reverse() -> None:
    tree = two_branches()
    leaf = tree.row_of("a3")
    assert ids(tree, tree.path(leaf)) == ["q1", "a1", "q3", "a3"]
    assert list(tree.upward(leaf)) == tree.path(leaf)[::-1]
    assert tree.path(ROOT) == list(tree.upward(ROOT)) == []


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("a2", "a3", "a1"),
        ("a3", "a2", "a1"),
        ("a1", "a3", "a1"),
        ("q3", "a1", "a1"),
        ("a2", "a2", "a2"),
        ("q1", "a2", "q1"),
        (None, "a2", None),
        ("a2", None, None),
        (None, None, None),
    ],
)
def test_the_common_ancestor_is_the_deepest_row_on_both_paths(
    one: str | None, other: str | None, common: str | None
) -> None:
    tree = two_branches()
    found = tree.common_ancestor(tree.row_or_root(one), tree.row_or_root(other))
    assert tree.id_or_none(found) == common


@given(st.permutations(range(9)), st.lists(st.integers(0, 9), min_size=9, max_size=9))
def test_ways_up_are_found_where_parents_stand_below_their_children(
    order: list[int], choices: list[int]
) -> None:
    heads = Heads()
    parents = array("i", [ROOT] * 9)
    for place, row in enumerate(order):
        above = choices[place] % (place + 1) - 1
        parents[row] = ROOT if above < 0 else order[above]
    ids = b"".join(number.to_bytes(4) for number in range(9))
    heads.extend(Columns(ids=ids, parents=parents, kinds=bytes(9), odd_ids={}))
    tree = Tree(heads, lambda _: b"{}")
    for one in range(ROOT, 9):
        for other in range(ROOT, 9):
            shared = set(tree.upward(other))
            wanted = next((row for row in tree.upward(one) if row in shared), ROOT)
            assert tree.common_ancestor(one, other) == wanted
        rows = [row for row in range(9) if row % 2]
        assert tree.those_on_path(rows, one) == set(rows) & set(tree.upward(one))


def test_two_roots_share_nothing() -> None:
    tree = tree_of([user("q1"), user("p1")])
    assert tree.common_ancestor(0, 1) == ROOT
    assert ids(tree, tree.children(ROOT)) == ["q1", "p1"]


def test_an_unknown_id_is_missing_by_name() -> None:
    with pytest.raises(Missing) as caught:
        two_branches().row_of("none")
    assert (caught.value.reason, caught.value.data) == ("entry_not_found", {"entryId": "none"})


def test_a_line_that_cannot_be_read_says_no_more_than_its_place() -> None:
    growing = Growing()
    growing.add(user("q1"))
    growing.add(below("q1", label_entry("l1", "q1", "here")))
    growing.add(below("l1", entry("session_info", "i1", name="Named")))
    growing.add(below("i1", user("q2")))
    whole = list(growing.lines)
    growing.lines[:3] = [b"[1]", whole[1][:-1], whole[2] + b"x"]
    tree = growing.tree
    for row, entry_type in enumerate(["message", "label", "session_info"]):
        with pytest.raises(Damaged) as caught:
            tree.stored(row)
        assert caught.value.reason == "unreadable_line"
        assert tree.readable(row) is None
        assert (tree.entry(row).id, tree.entry(row).object) == (
            tree.heads.id_of(row),
            {"type": entry_type},
        )
    assert (tree.name(), tree.label_of("q1")) == (None, None)
    assert tree.entry(3).parent_id == "i1"
    # What could not be read for a moment is not taken for unreadable.
    growing.lines[:] = whole
    assert tree.entry(0).message is not None


def test_children_are_in_file_order_and_grow_with_the_file() -> None:
    growing = Growing()
    for stored in chain(user("q1"), assistant("a1")):
        growing.add(stored)
    assert list(growing.tree.children(0)) == [1]
    growing.add(below("q1", assistant("b1")))
    assert ids(growing.tree, growing.tree.children(0)) == ["a1", "b1"]


def test_an_orphan_is_a_root_whose_path_is_itself() -> None:
    tree = tree_of([user("q1"), below("nobody", user("q2"))])
    assert ids(tree, tree.path(1)) == ["q2"]
    assert ids(tree, tree.children(ROOT)) == ["q1", "q2"]


@pytest.mark.parametrize(
    ("entries", "leaf", "visible"),
    [
        ([], None, None),
        ([user("q1")], "q1", "q1"),
        ([user("q1"), below("q1", label_entry("l1", "q1", "x"))], "l1", "q1"),
        ([user("q1"), below("q1", name_entry("n1", "x"))], "n1", "q1"),
        ([user("q1"), below("q1", assistant("a1")), below("q1", cursor_entry("c1"))], "q1", "q1"),
        ([user("q1"), cursor_entry("c1")], None, None),
        # Another program may append below a cursor: then it is a step of the path like any other.
        ([user("q1"), below("q1", cursor_entry("c1")), below("c1", user("q2"))], "q2", "q2"),
        (
            [user("q1"), below("q1", cursor_entry("c1")), below("c1", cursor_entry("c2"))],
            "c1",
            "q1",
        ),
    ],
)
def test_the_stored_leaf_is_the_last_line_or_what_a_cursor_there_points_to(
    entries: list[JsonObject], leaf: str | None, visible: str | None
) -> None:
    tree = tree_of(entries)
    stored = tree.stored_leaf()
    assert (tree.id_or_none(stored), tree.id_or_none(tree.visible(stored))) == (leaf, visible)


def test_tips_are_the_ends_of_branches_and_marks_on_them_are_none() -> None:
    tree = tree_of(
        [
            user("q1"),
            below("q1", assistant("a1")),
            below("a1", user("q2")),
            below("a1", user("q3")),
            below("q3", label_entry("l1", "q2", "here")),
            below("a1", cursor_entry("c1")),
            below("l1", name_entry("n1", "named")),
        ]
    )
    assert ids(tree, tree.tips()) == ["q2", "q3"]


def test_a_mark_with_words_below_it_is_no_tip_and_neither_is_what_it_marks() -> None:
    tree = tree_of([user("q1"), below("q1", label_entry("l1", "q1", "x")), below("l1", user("q2"))])
    assert ids(tree, tree.tips()) == ["q2"]


def test_the_last_label_in_the_file_counts_whatever_its_branch() -> None:
    growing = Growing()
    for stored in (user("q1"), below("q1", user("q2")), below("q1", user("q3"))):
        growing.add(stored)
    growing.add(below("q2", label_entry("l1", "q3", "first")))
    growing.add(below("q3", label_entry("l2", "q1", "root")))
    assert growing.tree.label_of("q3") == "first"
    growing.add(below("q3", label_entry("l3", "q3", "second")))
    assert growing.tree.label_of("q3") == "second"
    assert list(growing.tree.labels()) == ["q3", "q1"]
    growing.add(below("q3", label_entry("l4", "q3")))
    growing.add(below("q3", label_entry("l5", "q1", "")))
    assert growing.tree.labels() == {}
    assert growing.tree.label_of("q3") is None


def test_a_label_that_names_no_target_is_passed_over() -> None:
    tree = tree_of([user("q1"), below("q1", label_entry("l1", 5, "x"))])
    assert tree.labels() == {}


@pytest.mark.parametrize(
    ("names", "name"),
    [
        ([], None),
        (["one"], "one"),
        (["one", "two"], "two"),
        (["one", "  "], None),
        (["one", ""], None),
        ([" one "], "one"),
        (["one", 7], None),
    ],
)
def test_the_last_name_in_the_file_counts_and_blanks_clear_it(
    names: list[Any], name: str | None
) -> None:
    entries = [user("q1")] + [name_entry(f"n{n}", said) for n, said in enumerate(names)]
    assert tree_of(chain(*entries)).name() == name


def test_of_an_id_used_twice_the_first_is_meant_and_the_second_is_no_child() -> None:
    tree = tree_of([user("q1"), below("q1", user("q2")), below("q1", user("q2", "again"))])
    assert tree.row_of("q2") == 1
    assert list(tree.children(0)) == [1]
    assert tree.tips() == [1]
    assert list(tree.rows_of_kind(tree.kind(0))) == [0, 1]


def test_ancestors_are_found_and_everything_hangs_below_nothing() -> None:
    tree = two_branches()
    row = tree.row_of
    assert tree.has_ancestor(row("a3"), row("a1"))
    assert tree.has_ancestor(row("a3"), row("a3"))
    assert tree.has_ancestor(row("a3"), ROOT)
    assert not tree.has_ancestor(row("a3"), row("q2"))
