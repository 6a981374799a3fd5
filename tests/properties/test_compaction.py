"""Over any history and any number of passes, compactions lose nothing and tear nothing apart."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pi_rpc.core.branching import plan_copy
from pi_rpc.core.compaction import plan_compaction
from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Missing
from pi_rpc.core.pairing import pairing_of
from pi_rpc.core.policy import OURS, PI3
from pi_rpc.core.projection import Projection, project
from pi_rpc.core.tree import ROOT
from pi_rpc.core.undoing import plan_undo
from tests.core.trees import Growing, assistant, edit, entry, result, system, user

WORDS = st.sampled_from(["a", "x" * 40, "x" * 400, "读取文件"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["user", "answer", "calls", "system", "note", "label", "omit", "compact"]),
        WORDS,
        st.integers(0, 200),
    ),
    min_size=1,
    max_size=40,
)


class History:
    """A conversation that grows, compacted now and then."""

    def __init__(self) -> None:
        self.growing = Growing()
        self.leaf = ROOT
        self.summarised: list[int] = []
        """Rows that were summarised, once for each time."""

    def add(self, stored: dict[str, Any]) -> int:
        parent = self.growing.tree.id_or_none(self.leaf)
        self.leaf = self.growing.add(stored | {"parentId": parent})
        return self.leaf

    def projection(self) -> Projection:
        return project(self.growing.tree, self.leaf, OURS)

    def step(self, kind: str, words: str, number: int) -> None:
        own = f"{len(self.growing.lines):08x}"
        match kind:
            case "user":
                self.add(user(own, words))
            case "answer":
                self.add(assistant(own, text=words))
            case "calls":
                self.add(assistant(own, own + "a", own + "b", text=words))
                self.add(result(own + "r", own + "a", words))
                if number % 3 == 0:
                    self.add(entry("custom_message", own + "m", customType="t", content=words))
                self.add(result(own + "s", own + "b", words))
            case "system":
                self.add(system(own, words))
            case "note":
                self.add(entry("custom_message", own, customType="t", content=words))
            case "label":
                self.add(entry("label", own, targetId="x", label="y"))
            case "omit":
                self.omit(own)
            case "compact":
                self.compact(own, number)

    def omit(self, own: str) -> None:
        # A plain reply may go without tearing anything.
        for row in self.growing.tree.upward(self.leaf):
            stored = self.growing.tree.entry(row)
            if stored.kind == Kind.ASSISTANT and not _calls(stored.object):
                self.add(edit(own, stored.id, None))
                return

    def compact(self, own: str, keep: int) -> None:
        plan = plan_compaction(self.projection(), keep)
        if plan is None:
            return
        self.summarised += plan.speaking(plan.history + plan.prefix)
        held = plan.speaking(plan.kept)
        self.add(
            entry(
                "compaction",
                own,
                summary="S",
                firstKeptEntryId=plan.first_kept_id,
                tokensBefore=plan.tokens_before,
                **_checkpoint(self.projection()),
            )
        )
        selection = self.projection().selection
        assert selection.mode in ("range", "retain_none")
        said = [row for row in selection.rows[1:] if self.projection().messages_of(row)]
        assert said == held


def _calls(stored: dict[str, Any]) -> bool:
    return any(block.get("type") == "toolCall" for block in stored["message"]["content"])


def _checkpoint(projection: Projection) -> dict[str, Any]:
    folded = projection.system()
    return {} if folded is None else {"systemMessage": folded}


def grown(steps: list[tuple[str, str, int]]) -> History:
    history = History()
    for kind, words, number in steps:
        history.step(kind, words, number)
    return history


@given(STEPS)
@settings(deadline=None)
def test_every_message_is_kept_or_summarised_exactly_once(steps: list[Any]) -> None:
    history = grown(steps)
    assert len(history.summarised) == len(set(history.summarised))
    tree, projection = history.growing.tree, history.projection()
    kept = {row for row in projection.selection.rows if projection.messages_of(row)}
    whole = project(tree, history.leaf, OURS)
    edits = set(whole.selection.edits)
    for row in tree.path(history.leaf):
        speaks = tree.kind(row) in (
            *(Kind.USER, Kind.ASSISTANT, Kind.TOOL_RESULT),
            Kind.CUSTOM_MESSAGE,
        )
        if speaks and row not in edits and not _was_omitted(history, row):
            assert (row in kept) != (row in history.summarised), tree.heads.id_of(row)


def _was_omitted(history: History, row: int) -> bool:
    tree = history.growing.tree
    own_id = tree.heads.id_of(row)
    return any(
        tree.entry(one).object.get("targetId") == own_id
        for one in tree.path(history.leaf)
        if tree.kind(one) == Kind.CONTEXT_EDIT
    )


@given(STEPS)
@settings(deadline=None)
def test_no_result_loses_its_call(steps: list[Any]) -> None:
    projection = grown(steps).projection()
    assert not pairing_of(projection.messages("session")).orphans


@given(STEPS)
@settings(deadline=None)
def test_the_system_prompt_is_the_same_before_and_after(steps: list[Any]) -> None:
    history = grown(steps)
    before = history.projection().system()
    history.compact("last", 10)
    after = history.projection().system()
    assert before == after


@given(STEPS)
@settings(deadline=None)
def test_an_undo_gives_the_context_before_and_what_came_after(steps: list[Any]) -> None:
    history = grown([*steps, ("compact", "", 30), ("user", "after", 0), ("calls", "after", 1)])
    tree, projection = history.growing.tree, history.projection()
    try:
        plan = plan_undo(projection, None)
    except Missing:
        assert projection.selection.compaction_row == ROOT
        return
    selection = projection.selection
    before = project(tree, plan.below_row, OURS).messages("session")
    later = [
        message
        for row in selection.rows[1 + selection.kept_count :]
        for message in projection.messages_of(row)
    ]
    later_edits = [row for row in selection.edits.values() if row > selection.compaction_row]
    history.leaf = plan.below_row
    for place, body in enumerate(plan.copies):
        history.add(entry(body.type, f"copy{place:04x}") | body.fields)
    made = list(history.projection().messages("session"))
    assert [_words(one) for one in made[len(made) - len(later) :]] == [_words(one) for one in later]
    if not later_edits:
        assert made[: len(made) - len(later)] == list(before)


def _words(message: dict[str, Any]) -> Any:
    return message["role"], message.get("content")


@given(STEPS)
@settings(deadline=None)
def test_a_copy_of_a_compacted_path_has_its_context(steps: list[Any]) -> None:
    history = grown([*steps, ("compact", "", 30), ("user", "after", 0)])
    tree = history.growing.tree
    copied = History()
    for piece in plan_copy(tree, history.leaf, "at", "source").pieces:
        rows = getattr(piece, "row", None)
        for row in range(piece.first, piece.last) if rows is None else [rows]:  # type: ignore[union-attr]
            stored = tree.entry(row).object if rows is None else piece.object  # type: ignore[union-attr]
            copied.add(stored)
    mine, theirs = history.projection(), copied.projection()
    assert list(mine.messages("session")) == list(theirs.messages("session"))


@given(STEPS, st.integers(0, 300))
@settings(deadline=None)
def test_pi_and_we_agree_on_what_is_the_span(steps: list[Any], keep: int) -> None:
    history = grown([step for step in steps if step[0] != "compact"])
    projections = [project(history.growing.tree, history.leaf, policy) for policy in (PI3, OURS)]
    for projection in projections:
        plan = plan_compaction(projection, keep)
        if plan is not None:
            rows = plan.history + plan.prefix + plan.kept
            assert rows == projection.selection.rows
