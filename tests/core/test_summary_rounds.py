"""A summary is asked for in rounds that fit the model's window, however long the conversation."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pi_rpc.core.compaction import CompactionPlan, plan_compaction
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.moments import finished
from pi_rpc.core.policy import OURS
from pi_rpc.core.projection import project
from pi_rpc.core.summary import SUMMARISER, Round
from pi_rpc.core.summary_rounds import Room, branch_rounds, rounds_of
from pi_rpc.core.told import Told
from tests.core.trees import assistant, chain, compaction, result, tree_of, user

SMALL = Room(4000, 1000, OURS)


def planned(stored: list[JsonObject], keep: int) -> CompactionPlan:
    tree = tree_of(chain(*stored))
    plan = plan_compaction(project(tree, len(tree) - 1, OURS), keep)
    assert plan is not None
    return plan


def made(rounds: object) -> list[Round]:
    return [one for one in rounds if one is not None]  # type: ignore[attr-defined]


@given(
    st.lists(st.integers(1, 9_000), min_size=1, max_size=5),
    st.sampled_from(["x", "读", "é "]),
    st.integers(4000, 20_000),
    st.text("ab ", max_size=40),
)
@settings(deadline=None)
def test_every_request_leaves_room_for_its_answer(
    sizes: list[int], word: str, window: int, focus: str
) -> None:
    said = [user(f"u{place}", word * size) for place, size in enumerate(sizes)]
    plan = planned([*said, assistant("a", text="ok"), user("z", "z")], 1)
    room = Room(window, 1000, OURS)
    rounds = rounds_of(plan, room, focus)
    asked = made(rounds.history)
    # What an earlier round may have brought is as long as half of the room for an answer.
    earlier = "n" * (room.answer_tokens // 2) * 4 if len(asked) > 1 else None
    for one in asked:
        tokens = room.measure(one.prompt(earlier)) + room.measure(SUMMARISER)
        assert tokens + room.answer_tokens <= window
        assert one.focus == focus
    whole = "".join(part for one in asked for part in one.conversation)
    assert whole.count(word.strip()) >= sum(sizes)


def test_a_turn_split_right_after_a_compaction_takes_one_request() -> None:
    stored = [
        *[user("u1", "old"), assistant("a1", text="old"), user("u2", "x" * 40)],
        *[assistant("a2", "c", text="x" * 40), result("r2", "c", "x" * 40)],
        *[compaction("k", "u2"), assistant("a3", "d", text="x" * 40), result("r3", "d", "x" * 40)],
    ]
    plan = planned(stored, 12)
    rounds = rounds_of(plan, SMALL, "the focus")
    assert (plan.is_split_turn, rounds.earlier) == (True, "K")
    [asked] = [*made(rounds.history), *made(rounds.turn)]
    assert asked.task == "turn" and asked.focus == "the focus"
    assert "x" * 40 in asked.prompt(None) and "old" not in asked.prompt(None)


def test_rounds_tell_the_same_each_time_they_are_gone_through() -> None:
    plan = planned([user("u1", "x" * 90_000), assistant("a1", text="y"), user("u2", "z")], 1)
    rounds = rounds_of(plan, SMALL)
    first = made(rounds.history)
    assert len(first) > 5
    assert made(rounds.history) == first


def test_a_branch_is_told_within_its_budget_and_without_words_not_at_all() -> None:
    tree = tree_of(chain(user("u1", "a" * 40), user("u2", "b" * 40), user("u3", "c" * 40)))
    told = Told(project(tree, 2, OURS), [0, 1, 2])
    rounds = finished(branch_rounds(told, SMALL, 20, "look"))
    assert rounds is not None and rounds.earlier is None
    [asked] = made(rounds.history)
    assert asked.conversation == [f"[User]: {'b' * 40}", f"[User]: {'c' * 40}"]
    silent = Told(project(tree, 2, OURS), [])
    assert finished(branch_rounds(silent, SMALL, 20)) is None
