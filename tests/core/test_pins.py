"""Pins hold on their path, and say what their entry says there."""

import pytest

from pi_rpc.core.errors import Refused
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.pins import PINNED_TOKENS_MAX, check_pin, pinned_message, pins_at, words_to_carry
from pi_rpc.core.policy import OURS
from pi_rpc.core.projection import project
from pi_rpc.core.tree import ROOT, Tree
from tests.core.trees import assistant, chain, edit, entry, system, tree_of, user


def pin(entry_id: str, target: object, pinned: bool = True) -> JsonObject:
    data = {"v": 1, "entryId": target, "pinned": pinned}
    return entry("custom", entry_id, customType="pi_rpc.pin", data=data)


def texts(tree: Tree, leaf: str) -> list[tuple[str, str]]:
    return [(one.entry_id, one.text) for one in pins_at(tree, tree.row_of(leaf))]


def test_a_pin_holds_from_its_mark_until_it_is_let_go() -> None:
    tree = tree_of(
        chain(user("u", "one"), pin("p", "u"), assistant("a", text="two"), pin("n", "u", False))
    )
    assert [texts(tree, leaf) for leaf in "upan"] == [[], [("u", "one")], [("u", "one")], []]
    assert pins_at(tree, ROOT) == []


def test_a_pin_of_another_branch_holds_only_there() -> None:
    tree = tree_of(
        [*chain(user("u"), assistant("a"), pin("p", "a")), user("x") | {"parentId": "u"}]
    )
    assert texts(tree, "x") == []


def test_a_pin_says_what_an_edit_left() -> None:
    stored = chain(
        *[user("u", "one"), user("v", "two"), pin("p", "u"), pin("q", "v")],
        *[edit("e", "u", "other"), edit("o", "v", None)],
    )
    tree = tree_of(stored)
    assert texts(tree, "o") == [("u", "other"), ("v", "")]
    carried = words_to_carry(pins_at(tree, tree.row_of("o")), [])
    assert [one.text for one in carried] == ["other"]


def test_a_pin_is_of_the_entry_it_names_whatever_else_speaks_as_the_user() -> None:
    instructions = entry("custom_message", "i", customType="t", content="Rules of the project.")
    tree = tree_of(
        chain(instructions, user("f", "Rules again."), user("u", "Mend it."), pin("p", "u"))
    )
    carried = words_to_carry(pins_at(tree, tree.row_of("p")), [])
    assert [(one.entry_id, one.text) for one in carried] == [("u", "Mend it.")]


def test_words_of_kept_entries_are_not_carried() -> None:
    tree = tree_of(chain(user("u", "one"), user("v", "two"), pin("p", "u"), pin("q", "v")))
    carried = words_to_carry(pins_at(tree, tree.row_of("q")), [tree.row_of("v")])
    assert [one.entry_id for one in carried] == ["u"]


@pytest.mark.parametrize("odd", [None, 5, "gone"])
def test_a_mark_that_names_nothing_pins_nothing(odd: object) -> None:
    tree = tree_of(chain(user("u"), pin("p", odd)))
    assert texts(tree, "p") == []


def test_only_words_of_the_path_may_be_pinned_and_not_too_many() -> None:
    big = user("b", "x" * 4 * (PINNED_TOKENS_MAX + 1))
    tree = tree_of([*chain(user("u"), system("s"), big), user("x") | {"parentId": "u"}])
    projection = project(tree, tree.row_of("b"), OURS)
    check_pin(projection, tree.row_of("u"))
    for name, reason in (("x", "not_on_path"), ("s", "not_pinnable"), ("b", "pins_too_large")):
        with pytest.raises(Refused) as caught:
            check_pin(projection, tree.row_of(name))
        assert caught.value.reason == reason


def test_pinned_words_are_a_message_of_their_own() -> None:
    body = pinned_message("Never.")
    assert (body.type, body.fields["content"]) == ("custom_message", "Never.")
