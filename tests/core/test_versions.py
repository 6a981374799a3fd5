"""Whether the world went along when the leaf moved."""

import pytest

from pi_rpc.core.bindings import Bindings
from pi_rpc.core.entries import Body, cursor, entry_object, note_taken
from pi_rpc.core.events import Environment, ScopeVerdict
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.moments import finished
from pi_rpc.core.tree import ROOT, Tree
from pi_rpc.core.versions import (
    EFFECTS_TOLD_MAX,
    REPLIES_LOOKED_AT_MAX,
    ROWS_OF_MOMENT,
    FilesAt,
    abandoned_at_opening,
    abandoned_calls,
    effects_between,
    files_after_calls,
    files_at_opening,
    outside_verdict,
    verdict,
)
from tests.core.test_tree import below
from tests.core.trees import Growing, assistant, chain, message, tree_of, user


def ran(entry_id: str, tool: str) -> JsonObject:
    return message(entry_id, "toolResult", [], toolCallId=entry_id, toolName=tool)


def work() -> Tree:
    """A user; B read; C edit; D a command of the user. Beside C, from B on: R read only."""
    return tree_of(
        [
            user("a"),
            below("a", ran("b", "read")),
            below("b", ran("c", "edit")),
            below("c", message("d", "bashExecution", command="make", output="")),
            below("b", ran("r", "grep")),
        ]
    )


NOTHING_RAN = Environment("restored", {"files": ScopeVerdict("restored", "nothing_ran")})
EDIT, SHELL = {"entryId": "c", "tool": "edit"}, {"entryId": "d", "tool": "shell"}


@pytest.mark.parametrize(
    ("files", "leaf", "effects"),
    [
        ("d", "d", []),
        ("d", "c", [SHELL]),
        ("d", "b", [SHELL, EDIT]),
        ("d", "r", [SHELL, EDIT]),
        ("d", None, [SHELL, EDIT]),
        ("b", "r", []),
        ("r", "a", []),
        ("b", "d", [SHELL, EDIT]),
        ("a", None, []),
    ],
)
def test_files_fit_a_leaf_when_nothing_that_leaves_a_mark_lies_between(
    files: str, leaf: str | None, effects: list[JsonObject]
) -> None:
    tree = work()
    found = verdict(tree, FilesAt(tree.row_of(files)), tree.row_or_root(leaf))
    if effects:
        unknown = ScopeVerdict("unknown", "no_versions")
        assert found == Environment("unknown", {"files": unknown}, effects)
    else:
        assert found == NOTHING_RAN


def test_files_nobody_watched_are_unknown_everywhere() -> None:
    tree = work()
    found = verdict(tree, FilesAt(0, known=False, reason="not_watched"), 0)
    assert found == Environment("unknown", {"files": ScopeVerdict("unknown", "not_watched")})


@pytest.mark.parametrize(
    ("entries", "files"),
    [
        ([], FilesAt(ROOT)),
        ([user("a")], FilesAt(0)),
        ([user("a"), ran("b", "read")], FilesAt(1, known=False, reason="not_watched")),
        (
            [user("a"), message("d", "bashExecution", command="ls")],
            FilesAt(1, known=False, reason="not_watched"),
        ),
        ([user("a"), assistant("b")], FilesAt(1)),
        ([user("a"), assistant("b", "c", stopReason="aborted")], FilesAt(1)),
        # Its call may have run although nothing came of it.
        ([user("a"), assistant("b", "c")], FilesAt(1, known=False, reason="not_watched")),
        (
            [user("a"), assistant("b", "c"), user("d"), assistant("e")],
            FilesAt(3, known=False, reason="not_watched"),
        ),
        (
            [assistant(f"a{number}") for number in range(REPLIES_LOOKED_AT_MAX)],
            FilesAt(REPLIES_LOOKED_AT_MAX - 1),
        ),
        (
            [assistant(f"a{number}") for number in range(REPLIES_LOOKED_AT_MAX + 1)],
            FilesAt(REPLIES_LOOKED_AT_MAX, known=False, reason="not_watched"),
        ),
    ],
)
def test_at_opening_only_a_session_in_which_nothing_ran_is_known(
    entries: list[JsonObject], files: FilesAt
) -> None:
    tree = tree_of(chain(*entries))
    assert files_at_opening(tree, tree.stored_leaf()) == files


@pytest.mark.parametrize(
    ("files", "before", "after", "marked", "then"),
    [
        # Calls that left a mark on the files that stood there: they stand below them now.
        (FilesAt(1), 1, 2, True, FilesAt(2)),
        # Calls that left none, whatever their name: they stand there too.
        (FilesAt(1), 1, 2, False, FilesAt(2)),
        # On another route: no leaf fits any more.
        (FilesAt(2), 4, 4, True, FilesAt(4, known=False, reason="mixed_routes")),
        # On another route without a mark: where they stood.
        (FilesAt(2), 4, 4, False, FilesAt(2)),
        (
            FilesAt(0, known=False, reason="not_watched"),
            1,
            2,
            True,
            FilesAt(0, known=False, reason="not_watched"),
        ),
    ],
)
def test_files_go_along_with_calls_on_their_own_path_only(
    files: FilesAt, before: int, after: int, marked: bool, then: FilesAt
) -> None:
    assert files_after_calls(work(), files, before, after, marked) == then


def test_effects_told_are_bounded_and_newest_first() -> None:
    entries = [user("a")] + [ran(f"e{n}", "bash") for n in range(EFFECTS_TOLD_MAX + 10)]
    tree = tree_of(chain(*entries))
    told = effects_between(tree, len(tree) - 1, ROOT)
    assert len(told) == EFFECTS_TOLD_MAX
    assert told[0] == {"entryId": f"e{EFFECTS_TOLD_MAX + 9}", "tool": "bash"}


def interrupted() -> Tree:
    """A user; B asked for two commands and read a file, then everything ended."""
    blocks = [
        {"type": "toolCall", "id": f"c{number}", "name": tool, "arguments": {}}
        for number, tool in enumerate(("bash", "read", "write"))
    ]
    return tree_of(chain(user("a"), message("b", "assistant", blocks, stopReason="toolUse")))


CUT_SHORT = [{"entryId": "b", "tool": "bash"}, {"entryId": "b", "tool": "write"}]


def test_calls_without_a_result_count_on_both_ways() -> None:
    tree = interrupted()
    assert effects_between(tree, 1, 0) == effects_between(tree, 0, 1) == CUT_SHORT
    assert verdict(tree, FilesAt(0), 1).status == "unknown"
    left = finished(abandoned_calls(tree, Bindings(tree), 1, 0))
    assert list(left.values()) == [effect | {"seen": False} for effect in CUT_SHORT]
    outside, told = outside_verdict(tree, Bindings(tree), 0, left)
    assert (outside, told) == (ScopeVerdict("unknown", "unseen_calls"), CUT_SHORT)
    assert outside_verdict(tree, Bindings(tree), 1, left) == (None, [])


def reopened(*marks: Body) -> dict[str, JsonObject]:
    """What is remembered of a session that ends with these marks."""
    growing = Growing()
    for stored in chain(user("a"), ran("b", "bash")):
        growing.add(stored)
    for number, mark in enumerate(marks):
        growing.add(entry_object(mark, f"m{number}", "a", "2026-01-02T03:04:05.678Z"))
    return abandoned_at_opening(growing.tree, Bindings(growing.tree))


def went(*effects: JsonObject, outside: str | None = "unknown") -> Body:
    scopes = {} if outside is None else {"external": {"status": outside}}
    return cursor("a", "b", "a", {"scopes": scopes, "abandonedEffects": list(effects)})


BASH = {"entryId": "b", "tool": "bash"}
ELSEWHERE = {"entryId": "elsewhere", "id": "e", "kind": "mail", "summary": "told them"}


def test_what_was_left_is_remembered_by_the_newest_cursor() -> None:
    assert reopened() == {}
    assert reopened(went(BASH)) == {"b": BASH | {"seen": False}}
    assert reopened(went(BASH), went(outside=None)) == {}
    assert reopened(went(BASH), cursor("a", "b", "a", None)) == {"b": BASH | {"seen": False}}
    assert reopened(went(BASH), note_taken()) == {}
    assert reopened(went(BASH), note_taken(), went(BASH)) == {"b": BASH | {"seen": False}}
    assert list(reopened(went(BASH, ELSEWHERE)).values()) == [BASH | {"seen": False}, ELSEWHERE]
    # What this session recorded itself is in its own entries.
    assert reopened(went(ELSEWHERE | {"entryId": "b"})) == {}


@pytest.mark.parametrize(
    "environment", [5, {}, {"abandonedEffects": 5}, {"abandonedEffects": [5, {}, {"entryId": 5}]}]
)
def test_a_cursor_that_is_none_of_ours_says_nothing(environment: object) -> None:
    assert reopened(cursor("a", "b", "a", environment)) == {}


def test_a_long_way_is_looked_at_a_moment_at_a_time_and_no_call_on_it_is_missed() -> None:
    rows = 3 * ROWS_OF_MOMENT
    steps = []
    for number in range(rows):
        name = f"{number:08x}"
        called = number in (7, rows // 2)
        steps.append(assistant(name, *([name] if called else ())))
        if called:
            steps[-1]["message"]["content"][-1]["name"] = "bash"
    tree = tree_of(chain(*steps))
    work = abandoned_calls(tree, Bindings(tree), rows - 1, 3)
    assert next(work) is None
    assert [one["entryId"] for one in finished(work).values()] == [f"{rows // 2:08x}", f"{7:08x}"]
