"""Whatever a history is, its contexts keep what they promise."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pi_rpc.core.choices import Choices, choices_at
from pi_rpc.core.codec import canonical
from pi_rpc.core.context_edits import plan_context_edit
from pi_rpc.core.context_usage import usage_of
from pi_rpc.core.entries import entry_object
from pi_rpc.core.errors import Refused
from pi_rpc.core.folding import fold
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.pairing import pairing_of
from pi_rpc.core.policy import OURS, PI3, Policy
from pi_rpc.core.projection import LiveProjection, Projection, project
from pi_rpc.core.receipt import explain
from pi_rpc.core.tree import ROOT, Tree
from tests.core.trees import (
    TIME,
    Growing,
    assistant,
    compaction,
    edit,
    entry,
    message,
    result,
    system,
    user,
)

WORDS = st.sampled_from(["", "a", "words of some length", "读取", "😀"])
BACK = st.integers(0, 9)
"""How many entries before itself an entry points at; 0 is itself."""


def stored(kind: str, words: str, back: int, place: int) -> JsonObject:
    """An entry of a kind, pointing `back` entries back where it points at one."""
    own, target = f"{place:08x}", f"{max(place - back, 0):08x}"
    call = f"c{max(place - back, 0) // 2}"
    made = {
        "user": lambda: user(own, words),
        "assistant": lambda: assistant(
            own, *([f"c{place // 2}"] if back % 2 else []), text=words, **_reply(back)
        ),
        "result": lambda: result(own, call, words),
        "system": lambda: system(own, words, sections={words: words, "x": None}),
        "fresh": lambda: system(own, words, replace=True, toolsAdded=[{"name": words}]),
        "shell": lambda: message(
            own, "bashExecution", command=words, output=words, excludeFromContext=back > 4
        ),
        "compaction": lambda: compaction(own, target),
        "checkpoint": lambda: compaction(
            own, target, systemMessage={"role": "system", "content": words}
        ),
        "omit": lambda: edit(own, target, None),
        "edit": lambda: edit(own, target, words),
        "summary": lambda: entry("branch_summary", own, summary=words, fromId="x"),
        "custom": lambda: entry("custom_message", own, customType="t", content=words, display=True),
        "model": lambda: entry("model_change", own, provider="p", modelId=own),
        "thinking": lambda: entry("thinking_level_change", own, thinkingLevel=words or "low"),
        "label": lambda: entry("label", own, targetId=target, label=words),
    }
    return made[kind]()


def _reply(back: int) -> dict[str, Any]:
    stops = {3: "error", 5: "aborted"}
    return {"stopReason": stops.get(back, "stop"), "usage": {"totalTokens": back * 10}}


KINDS = st.sampled_from(
    [
        *["user", "assistant", "result", "system", "fresh", "shell", "compaction", "checkpoint"],
        *["omit", "edit", "summary", "custom", "model", "thinking", "label"],
    ]
)
STEP = st.tuples(KINDS, WORDS, BACK, st.one_of(st.none(), BACK))
"""What to append, and whether to move the leaf back first."""
STEPS = st.lists(STEP, min_size=1, max_size=40)
POLICIES = st.sampled_from(
    [PI3, OURS, Policy(id="checkpoints", version="1", makes_checkpoints=True)]
)


def grown(steps: list[Any]) -> tuple[Growing, list[int]]:
    """The tree these steps make, and the leaf after each."""
    growing, leaf = Growing(), ROOT
    leaves = []
    for kind, words, back, move in steps:
        if move is not None and leaf != ROOT:
            leaf = max(leaf - move, 0)
        parent = growing.tree.id_or_none(leaf)
        made = stored(kind, words, back, len(growing.lines)) | {"parentId": parent}
        leaf = growing.add(made)
        leaves.append(leaf)
    return growing, leaves


def whole(projection: Projection) -> dict[str, Any]:
    """Everything a projection says."""
    return {
        "selection": projection.selection,
        "pairs": projection.pairs(),
        "llm": list(projection.messages("llm")),
        "tokens": projection.tokens(),
        "estimate": projection.estimated_tokens(),
        "system": projection.system(),
        "parts": usage_of(projection, 1000, 100),
        "model": projection.model,
        "level": projection.thinking_level,
    }


@given(STEPS, POLICIES)
def test_an_extended_context_is_the_one_made_at_once(steps: list[Any], policy: Policy) -> None:
    growing = Growing()
    live = LiveProjection(growing.tree, ROOT, policy)
    for kind, words, back, move in steps:
        if move is not None and live.leaf_row != ROOT:
            live.rebase(max(live.leaf_row - move, ROOT))
            assert whole(live) == whole(project(growing.tree, live.leaf_row, policy))
        parent = growing.tree.id_or_none(live.leaf_row)
        made = stored(kind, words, back, len(growing.lines)) | {"parentId": parent}
        live.extend(growing.add(made))
        assert whole(live) == whole(project(growing.tree, live.leaf_row, policy))


@given(STEPS, POLICIES)
def test_later_entries_elsewhere_change_no_context(steps: list[Any], policy: Policy) -> None:
    growing, leaves = grown(steps[: len(steps) // 2 + 1])
    before = [canonical(project(growing.tree, leaf, policy).pairs()) for leaf in leaves]
    complete, _ = grown(steps)
    assert before == [canonical(project(complete.tree, leaf, policy).pairs()) for leaf in leaves]


@given(STEPS, POLICIES)
def test_a_context_holds_rows_of_its_path_each_once(steps: list[Any], policy: Policy) -> None:
    growing, leaves = grown(steps)
    for leaf in leaves:
        rows = project(growing.tree, leaf, policy).selection.rows
        assert len(set(rows)) == len(rows)
        assert set(rows) <= set(growing.tree.path(leaf))


@given(STEPS, POLICIES, st.integers(1, 6))
def test_the_end_of_a_context_is_the_same_from_either_side(
    steps: list[Any], policy: Policy, count: int
) -> None:
    growing, leaves = grown(steps)
    for form in ("session", "llm"):
        forward = list(project(growing.tree, leaves[-1], policy).messages(form))
        backward = project(growing.tree, leaves[-1], policy).messages(form)
        assert backward[-count:] == forward[-count:]
        assert list(reversed(backward)) == forward[::-1]
        assert len(backward) == len(forward)


@given(STEPS, POLICIES)
def test_a_receipt_accounts_for_the_whole_path(steps: list[Any], policy: Policy) -> None:
    growing, leaves = grown(steps)
    tree = growing.tree
    found = explain(tree, leaves[-1], policy, "s", 0)
    path = [tree.heads.id_of(row) for row in tree.path(leaves[-1])]
    assert sorted(one.id for one in found.entries) == sorted(path)
    included = [one for one in found.entries if one.decision in ("include", "replace")]
    assert sum(one.messages for one in included) == found.messages
    assert found.off_path.count == sum(found.off_path.types.values())
    assert found.off_path.count + found.path_length == found.file_entry_count
    if found.tokens.method == "estimate":
        assert sum(one.tokens for one in included) == found.tokens.total
    assert found.digest == explain(tree, leaves[-1], policy, "other", 1).digest


@given(STEPS)
def test_the_model_found_on_the_way_up_is_the_last_on_the_way_down(steps: list[Any]) -> None:
    growing, leaves = grown(steps)
    tree = growing.tree
    model, level = None, None
    for row in tree.path(leaves[-1]):
        fields = tree.entry(row).object
        said = fields.get("message", {})
        if fields["type"] == "model_change":
            model = (fields["provider"], fields["modelId"])
        elif said.get("role") == "assistant":
            model = (said["provider"], said["model"])
        elif fields["type"] == "thinking_level_change":
            level = fields["thinkingLevel"]
    assert choices_at(tree, leaves[-1]) == Choices(leaves[-1], model, level)
    for other in leaves:
        known = choices_at(tree, other)
        assert choices_at(tree, leaves[-1], known) == Choices(leaves[-1], model, level)


@given(STEPS)
def test_a_fold_stands_for_all_it_was_made_of(steps: list[Any]) -> None:
    growing, leaves = grown(steps)
    said = list(project(growing.tree, leaves[-1], OURS).messages())
    folded = fold(said)
    assert fold([folded] if folded else []) == folded
    for cut in range(len(said)):
        before = fold(said[:cut])
        assert fold(([before] if before else []) + said[cut:]) == folded


def orphans(tree: Tree, leaf: int) -> set[str]:
    pairs = project(tree, leaf, OURS).pairs()
    places = pairing_of(said for _, _, said in pairs).orphans
    return {pairs[place][0] for place in places}


@settings(max_examples=200)
@given(STEPS, st.integers(0, 40))
def test_a_planned_omission_takes_its_target_out_and_orphans_nothing(
    steps: list[Any], place: int
) -> None:
    growing, leaves = grown(steps)
    tree, leaf = growing.tree, leaves[-1]
    target = tree.heads.id_of(place % len(tree))
    try:
        plan = plan_context_edit(tree, leaf, [target], None)
    except Refused as refused:
        assert refused.reason in ("not_on_path", "not_editable")
        return
    before = orphans(tree, leaf)
    above = tree.heads.id_of(leaf)
    for number, body in enumerate(plan):
        leaf = growing.add(entry_object(body, f"n{number}", above, TIME))
        above = f"n{number}"
    assert orphans(tree, leaf) <= before
    assert target not in {entry_id for entry_id, _, _ in project(tree, leaf, OURS).pairs()}
