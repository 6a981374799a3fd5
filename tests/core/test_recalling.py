"""What a model restates of a summary, and what the states of the files say of it."""

from typing import Any

from pi_rpc.core.bindings import Bindings
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.moments import finished
from pi_rpc.core.policy import OURS
from pi_rpc.core.recalling import VersionSpan, changes_against, restated, span_of
from pi_rpc.core.summary import RECALL_SECTIONS, Round
from pi_rpc.core.tree import Tree
from pi_rpc.core.verifying import Finding, verify
from tests.core.trees import chain, compaction, entry, message, tree_of, user

SUMMARY = """\
## Goal
Repair the parser of arithmetic expressions.

## Constraints & Preferences
- Forbidden: deleting the recorded fixtures

## Next Steps
1. Benchmark everything thoroughly"""


def wrote(entry_id: str, path: str) -> list[JsonObject]:
    call = {"type": "toolCall", "id": entry_id, "name": "write", "arguments": {"path": path}}
    return [
        message(entry_id, "assistant", [call], stopReason="toolUse"),
        message(f"r{entry_id}", "toolResult", [], toolCallId=entry_id, toolName="write"),
    ]


def bound(entry_id: str, at: str, leaf: str | None, version: str, **more: Any) -> JsonObject:
    data = {"at": at, "leaf": leaf, "scopes": {"files": {"version": version}}}
    return entry("custom", entry_id, customType="pi_rpc.workspace", data=data | more)


def summarised(*before: JsonObject) -> Tree:
    return tree_of(
        chain(
            user("u1", "Repair the parser. Never push commits upstream."),
            *before,
            *wrote("c1", "/work/src/parser.py"),
            bound("b2", "after_tools", "rc1", "v2", before="v1"),
            user("u2", "Benchmark everything thoroughly."),
            user("u3", "Kept."),
            compaction("k", "u3", summary=SUMMARY),
        )
    )


def found_in(answer: str) -> list[tuple[str, str | None]]:
    tree = summarised()
    checked = finished(verify(tree, tree.row_of("k"), OURS))
    _, findings = restated(checked, tree.entry(tree.row_of("k")).object, answer)
    return [(one.slug, one.path or one.entry_id or one.text) for one in findings]


def answer(goal: str, rules: str, files: str, steps: str) -> str:
    said = zip(RECALL_SECTIONS, (goal, rules, files, steps), strict=True)
    return "\n\n".join(f"## {name}\n{words}" for name, words in said)


def test_the_model_is_asked_from_the_summary_alone() -> None:
    prompt = Round("recall", ()).prompt("THE SUMMARY")
    assert prompt.startswith("<earlier-notes>\nTHE SUMMARY\n</earlier-notes>")
    assert "<conversation>" not in prompt
    assert [name for name in RECALL_SECTIONS if f"## {name}\n" not in prompt] == []


def test_an_answer_that_restates_all_gives_no_finding() -> None:
    rules = "Never push commits upstream.\nDeleting the recorded fixtures is forbidden."
    said = answer("Repair the parser", rules, "- src/parser.py", "Benchmark everything thoroughly")
    assert found_in(said) == []


def test_an_empty_answer_misses_everything() -> None:
    assert found_in("nothing") == [
        ("goal_not_restated", "Repair the parser of arithmetic expressions."),
        ("constraint_not_restated", "u1"),
        ("constraint_not_restated", "k"),
        ("request_not_restated", "u1"),
        ("request_not_restated", "u2"),
        ("changed_file_not_restated", "/work/src/parser.py"),
        ("next_step_not_restated", "1. Benchmark everything thoroughly"),
    ]


def test_a_file_that_nothing_changed_is_found() -> None:
    found = found_in(answer("(none)", "(none)", "src/parser.py\nsrc/lexer.py", "(none)"))
    assert ("restated_file_without_evidence", "src/lexer.py") in found
    assert not any(slug == "changed_file_not_restated" for slug, _ in found)


def test_what_the_notes_do_not_say_need_not_be_restated() -> None:
    tree = tree_of(
        chain(user("u1", "Go."), user("u2", "Kept."), compaction("k", "u2", summary="Bare."))
    )
    checked = finished(verify(tree, tree.row_of("k"), OURS))
    told, findings = restated(checked, tree.entry(tree.row_of("k")).object, answer(*["(none)"] * 4))
    assert (told.goal, told.constraints, told.changed_files, findings) == ("(none)", [], [], [])


def test_states_are_compared_from_the_first_that_is_named() -> None:
    tree = summarised(bound("b1", "start", "u1", "v1"))
    span = span_of(tree, Bindings(tree), tree.row_of("k"))
    assert span == VersionSpan("v1", "v2", is_whole=True)


def test_a_first_state_below_calls_is_no_whole_span() -> None:
    tree = summarised(*wrote("c0", "early.txt"), bound("b1", "before_tools", "rc0", "v1"))
    span = span_of(tree, Bindings(tree), tree.row_of("k"))
    assert span == VersionSpan("v1", "v2", is_whole=False)


def test_without_named_states_there_is_nothing_to_compare() -> None:
    tree = tree_of(chain(user("u1"), user("u2"), compaction("k", "u2")))
    assert span_of(tree, Bindings(tree), tree.row_of("k")) is None


def test_changed_files_are_held_against_the_list_however_they_are_spelled() -> None:
    claimed = ["/work/src/a.py", "./b.py", "c.py", "/tmp/elsewhere.txt"]
    changed = ["src/a.py", "b.py", "by-a-command.txt"]
    missing = Finding("changed_file_missing", path="by-a-command.txt")
    in_vain = Finding("claimed_file_unchanged", path="c.py")
    assert changes_against(claimed, changed, "/work", is_whole=True) == [missing, in_vain]
    assert changes_against(claimed, changed, "/work", is_whole=False) == [missing]
