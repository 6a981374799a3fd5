"""A context is what the last compaction left of a path, what came after, and the edits upon it."""

from collections.abc import Callable
from typing import Any

import pytest

from pi_rpc.core.errors import Missing
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.policy import OURS, PI3, Policy
from pi_rpc.core.projection import (
    MESSAGES_KEPT_ROWS,
    MOMENT_ROWS,
    LiveProjection,
    project,
)
from pi_rpc.core.selection import select
from pi_rpc.core.tokens import ContextTokens, estimate
from pi_rpc.core.tree import DECODED_ROWS_MAX, ROOT, Tree
from tests.core.trees import (
    TIME_MS,
    Growing,
    assistant,
    chain,
    compaction,
    edit,
    entry,
    message,
    result,
    system,
    tree_of,
    user,
)


def told(tree: Tree, leaf: str | None = None, policy: Policy = OURS) -> list[str]:
    """The context as the words of its messages, in order."""
    row = len(tree) - 1 if leaf is None else tree.row_of(leaf)
    return [words(said) for said in project(tree, row, policy).messages()]


def words(said: JsonObject) -> str:
    text = said.get("summary", said.get("content"))
    if isinstance(text, list):
        return "".join(block.get("text", "") for block in text)
    return str(text)


BOTH = pytest.mark.parametrize("policy", [PI3, OURS], ids=lambda policy: policy.id)


@BOTH
def test_a_compaction_comes_first_then_what_it_kept_then_what_came_after(policy: Policy) -> None:
    tree = tree_of(
        chain(user("u"), user("a"), user("c"), user("d"), compaction("k", "c"), user("e"))
    )
    assert told(tree, policy=policy) == ["K", "c", "d", "e"]


@BOTH
def test_of_two_compactions_of_one_context_the_one_on_the_path_counts(policy: Policy) -> None:
    # A pass whose end was not heard of, and the same pass made again.
    lost = compaction("l", "a") | {"parentId": "c"}
    tree = tree_of([*chain(user("u"), user("a"), user("c"), compaction("k", "c"), user("e")), lost])
    assert told(tree, "e", policy) == ["K", "c", "e"]
    made = chain(user("u"), user("a"), user("c"), compaction("k", "c"), user("e"))
    again = tree_of([*made[:3], lost, *made[3:]])
    assert told(again, "e", policy) == ["K", "c", "e"]


@BOTH
def test_a_checkpoint_replaces_the_system_messages_before_it(policy: Policy) -> None:
    checkpoint = {"role": "system", "content": "CHK", "timestamp": 1}
    tree = tree_of(
        chain(
            system("s1"),
            user("u"),
            user("a"),
            system("s2", "SYS2"),
            user("c"),
            compaction("k", "u", systemMessage=checkpoint),
            system("s3", "SYS3"),
            user("e"),
        )
    )
    assert told(tree, policy=policy) == ["CHK", "K", "u", "a", "c", "SYS3", "e"]


@BOTH
def test_a_compaction_without_a_checkpoint_leaves_no_system_message(policy: Policy) -> None:
    tree = tree_of(chain(system("s", "SYS"), user("u"), compaction("k", "u")))
    assert told(tree, policy=policy) == ["K", "u"]


def test_a_policy_may_make_the_checkpoint_that_is_missing() -> None:
    policy = Policy(id="kept", version="1", makes_checkpoints=True)
    tree = tree_of(
        chain(
            system("s1", "A"),
            compaction("k1", "k1", systemMessage={"role": "system", "content": "CHK"}),
            system("s2", "B"),
            user("u"),
            compaction("k2", "u"),
        )
    )
    assert told(tree, policy=policy) == ["CHK\n\nB", "K2", "u"]
    assert policy.options == {"makesCheckpoints": True}


@BOTH
@pytest.mark.parametrize(
    ("first", "mode"),
    [
        ("nowhere", "boundary_missing"),
        ("x", "boundary_missing"),
        ("k", "retain_none"),
        ("e", "boundary_missing"),
        (None, "boundary_missing"),
    ],
)
def test_a_boundary_that_is_not_before_the_compaction_keeps_nothing(
    policy: Policy, first: Any, mode: str
) -> None:
    tree = tree_of(
        [
            user("u"),
            user("x") | {"parentId": "u"},
            user("a") | {"parentId": "u"},
            compaction("k", first) | {"parentId": "a"},
            user("e") | {"parentId": "k"},
        ]
    )
    assert told(tree, policy=policy) == ["K", "e"]
    selection = select(tree, tree.row_of("e"))
    assert selection.mode == mode
    assert selection.kept_count == 0


@BOTH
def test_an_older_compaction_in_the_kept_range_stays_and_says_nothing(policy: Policy) -> None:
    tree = tree_of(
        chain(
            user("u"),
            user("a"),
            compaction("k1", "a"),
            user("c"),
            user("d"),
            compaction("k2", "a"),
            user("e"),
        )
    )
    assert told(tree, policy=policy) == ["K2", "a", "c", "d", "e"]
    selection = select(tree, tree.row_of("e"))
    assert [tree.heads.id_of(row) for row in selection.rows] == ["k2", "a", "k1", "c", "d", "e"]
    assert selection.older_compactions(tree) == [tree.row_of("k1")]


@BOTH
def test_a_summarised_message_returns_when_a_later_boundary_lies_before_it(policy: Policy) -> None:
    tree = tree_of(
        chain(
            user("u"),
            user("a"),
            compaction("k1", "a"),
            user("c"),
            compaction("k2", "u"),
            user("e"),
        )
    )
    assert told(tree, policy=policy) == ["K2", "u", "a", "c", "e"]


@BOTH
def test_a_boundary_may_be_an_older_compaction(policy: Policy) -> None:
    tree = tree_of(chain(user("u"), compaction("k1", "u"), compaction("k2", "k1"), user("e")))
    assert told(tree, policy=policy) == ["K2", "e"]
    assert select(tree, 3).mode == "range"


@BOTH
def test_a_leaf_before_a_compaction_never_sees_it(policy: Policy) -> None:
    tree = tree_of(chain(user("u"), user("a"), compaction("k", "a")))
    assert told(tree, "a", policy) == ["u", "a"]
    assert told(tree, "k", policy) == ["K", "a"]


@BOTH
def test_the_latest_edit_at_each_leaf_holds(policy: Policy) -> None:
    tree = tree_of(
        chain(user("u"), edit("e1", "u", "ONE"), edit("e2", "u", None), edit("e3", "u", "THREE"))
    )
    leaves = [told(tree, leaf, policy) for leaf in ("u", "e1", "e2", "e3")]
    assert leaves == [["u"], ["ONE"], [], ["THREE"]]


@BOTH
def test_an_edit_in_the_kept_range_still_holds_after_a_compaction(policy: Policy) -> None:
    tree = tree_of(
        chain(user("u"), user("a"), edit("e", "a", "EDITED"), compaction("k", "a"), user("z"))
    )
    assert told(tree, policy=policy) == ["K", "EDITED", "z"]


@BOTH
def test_an_edit_after_the_compaction_reaches_a_kept_target(policy: Policy) -> None:
    tree = tree_of(chain(user("u"), user("a"), compaction("k", "a"), edit("e", "a", None)))
    assert told(tree, policy=policy) == ["K"]


def test_a_replacement_changes_the_content_and_nothing_else() -> None:
    tree = tree_of(chain(assistant("a", "c1"), edit("e", "a", "short")))
    (said,) = project(tree, 1, OURS).messages()
    original = tree.entry(0).message
    assert original is not None
    assert said == original | {"content": [{"type": "text", "text": "short"}]}


@pytest.mark.parametrize(("target", "removed"), [("k", "K"), ("b", "B"), ("s", "S")])
def test_a_null_edit_by_hand_of_what_may_not_be_edited_is_ignored_but_pi_follows_it(
    target: str, removed: str
) -> None:
    summary = entry("branch_summary", "b", summary="B", fromId="x")
    tree = tree_of(
        chain(compaction("k", "k"), summary, system("s", "S"), user("c"), edit("e", target, None))
    )
    everything = ["K", "B", "S", "c"]
    assert told(tree, policy=OURS) == everything
    assert told(tree, policy=PI3) == [said for said in everything if said != removed]


@BOTH
def test_a_replacement_by_hand_of_a_summary_changes_nothing(policy: Policy) -> None:
    tree = tree_of(chain(user("u"), compaction("k", "u"), edit("e", "k", "OTHER")))
    assert told(tree, policy=policy) == ["K", "u"]


@BOTH
@pytest.mark.parametrize("replacement", [5, "text", {}, {"content": None}, {"content": 3}, [1]])
def test_an_edit_that_says_nothing_leaves_the_one_before_it(
    policy: Policy, replacement: Any
) -> None:
    broken = entry("context_edit", "e2", targetId="u", replacement=replacement)
    tree = tree_of(chain(user("u"), edit("e1", "u", "ONE"), broken))
    assert told(tree, policy=policy) == ["ONE"]


@BOTH
def test_an_empty_branch_summary_says_nothing_an_empty_compaction_does(policy: Policy) -> None:
    empty = entry("branch_summary", "b", summary="", fromId="x")
    tree = tree_of(chain(user("u"), compaction("k", "k", summary=""), empty))
    assert told(tree, policy=policy) == [""]


@BOTH
def test_missing_contents_are_empty(policy: Policy) -> None:
    tree = tree_of(
        chain(
            message("s", "system", None),
            message("u", "user", None),
            message("a", "assistant", None),
            message("t", "toolResult", None),
            entry("custom_message", "c", customType="x", display=True),
        )
    )
    said = project(tree, 4, policy).messages()
    assert [one["content"] for one in said] == ["", [], [], [], []]


@BOTH
def test_an_unknown_role_is_in_the_context_and_not_sent(policy: Policy) -> None:
    tree = tree_of(chain(message("w", "weird", "x"), user("u")))
    projection = project(tree, 1, policy)
    assert [said["role"] for said in projection.messages()] == ["weird", "user"]
    assert [said["role"] for said in projection.messages("llm")] == ["user"]


@BOTH
def test_a_message_entry_without_a_message_says_nothing(policy: Policy) -> None:
    tree = tree_of(chain(entry("message", "m"), entry("message", "n", message=3), user("u")))
    assert told(tree, policy=policy) == ["u"]


@BOTH
def test_entries_of_other_kinds_are_selected_and_say_nothing(policy: Policy) -> None:
    silent = [
        entry("label", "l", targetId="u", label="x"),
        entry("custom", "c", customType="x"),
        entry("usage", "g", kind="x"),
        entry("session_info", "i", name="x"),
        entry("never_seen", "n"),
    ]
    tree = tree_of(chain(user("u"), *silent))
    assert told(tree, policy=policy) == ["u"]
    assert select(tree, 5).rows == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"output": "hi", "exitCode": 0}, "Ran `ls`\n```\nhi\n```"),
        ({"output": "", "exitCode": 0}, "Ran `ls`\n(no output)"),
        (
            {"output": "hi", "exitCode": 2, "truncated": True, "fullOutputPath": "/t/o"},
            "Ran `ls`\n```\nhi\n```\n\nCommand exited with code 2"
            "\n\n[Output truncated. Full output: /t/o]",
        ),
        ({"output": "", "cancelled": True}, "Ran `ls`\n(no output)\n\n(command cancelled)"),
        (
            {"output": "x", "exitCode": 1, "cancelled": True},
            "Ran `ls`\n```\nx\n```\n\n(command cancelled)",
        ),
        ({"output": "```"}, "Ran `ls`\n```\n```\n```"),
        ({"output": "x", "truncated": True}, "Ran `ls`\n```\nx\n```"),
    ],
)
def test_shell_output_is_told_in_the_words_of_the_format(fields: JsonObject, text: str) -> None:
    shell = entry(
        "message",
        "b",
        message={"role": "bashExecution", "command": "ls", "timestamp": 5, **fields},
    )
    (sent,) = project(tree_of([shell]), 0, OURS).messages("llm")
    assert sent == {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 5}


def test_private_shell_output_is_shown_but_not_sent() -> None:
    shell = message("b", "bashExecution", command="ls", output="x" * 38, excludeFromContext=True)
    tree = tree_of(chain(shell, user("u", "abcd")))
    ours, pi = project(tree, 1, OURS), project(tree, 1, PI3)
    assert len(ours.messages()) == len(pi.messages()) == 2
    assert [said["role"] for said in ours.messages("llm")] == ["user"]
    assert list(ours.messages("llm")) == list(pi.messages("llm"))
    assert (ours.tokens().total, pi.tokens().total) == (1, 11)


def test_summaries_are_sent_in_the_words_of_the_format() -> None:
    summary = entry("branch_summary", "b", summary="left", fromId="x")
    tree = tree_of(chain(compaction("k", "k", summary="before"), summary))
    sent = [words(said) for said in project(tree, 1, OURS).messages("llm")]
    assert sent == [
        "The conversation history before this point was compacted into the following summary:"
        "\n\n<summary>\nbefore\n</summary>",
        "The following is a summary of a branch that this conversation came back from:"
        "\n\n<summary>\nleft</summary>",
    ]


def test_made_messages_bear_the_fields_of_their_entries() -> None:
    custom = entry(
        "custom_message", "c", customType="t", content="hi", display=False, details={"a": 1}
    )
    summary = entry("branch_summary", "b", summary="B", fromId="x") | {"timestamp": "no time"}
    tree = tree_of(chain(compaction("k", "k"), custom, summary))
    assert list(project(tree, 2, OURS).messages()) == [
        {
            "role": "compactionSummary",
            "summary": "K",
            "tokensBefore": 1,
            "timestamp": TIME_MS,
        },
        {
            "role": "custom",
            "customType": "t",
            "content": "hi",
            "display": False,
            "details": {"a": 1},
            "timestamp": TIME_MS,
        },
        {"role": "branchSummary", "summary": "B", "fromId": "x", "timestamp": 0},
    ]


def test_a_custom_message_is_sent_as_the_user_saying_it() -> None:
    image = {"type": "image", "data": "AA", "mimeType": "image/png"}
    tree = tree_of(
        chain(
            entry("custom_message", "c", customType="t", content="hi", display=True),
            entry("custom_message", "d", customType="t", content=[image], display=True),
        )
    )
    assert list(project(tree, 1, OURS).messages("llm")) == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": TIME_MS},
        {"role": "user", "content": [image], "timestamp": TIME_MS},
    ]


def chosen(tree: Tree, row: int) -> tuple[tuple[str, str] | None, str]:
    found = project(tree, row, OURS)
    return found.model, found.thinking_level


def test_the_model_is_the_last_change_or_reply_and_the_level_the_last_change() -> None:
    changes = [
        entry("thinking_level_change", "t", thinkingLevel="high"),
        entry("model_change", "m1", provider="p", modelId="p1"),
        assistant("a", provider="p", model="p2", responseModel="other", thinkingLevel="low"),
        entry("model_change", "m3", provider="p", modelId="p3"),
    ]
    tree = tree_of(chain(*changes))
    found = [chosen(tree, row) for row in range(4)]
    assert found == [
        (None, "high"),
        (("p", "p1"), "high"),
        (("p", "p2"), "high"),
        (("p", "p3"), "high"),
    ]


def test_a_failed_omitted_and_compacted_reply_still_names_the_model() -> None:
    tree = tree_of(
        chain(assistant("a", stopReason="error"), edit("e", "a", None), compaction("k", "k"))
    )
    assert chosen(tree, 2) == (("p", "m"), "off")
    assert project(tree, 2, OURS).model == ("p", "m")


def test_no_leaf_is_an_empty_context_and_an_unknown_one_is_missing() -> None:
    tree = tree_of([user("u")])
    projection = project(tree, ROOT, OURS)
    assert list(projection.messages()) == []
    assert projection.tokens() == ContextTokens(total=0)
    assert (projection.model, projection.thinking_level) == (None, "off")
    with pytest.raises(Missing) as caught:
        project(tree, tree.row_or_root("nowhere"), OURS)
    assert caught.value.reason == "entry_not_found"


def test_a_branch_never_sees_another() -> None:
    tree = tree_of(
        [
            user("u"),
            user("left") | {"parentId": "u"},
            edit("e", "u", None) | {"parentId": "left"},
            user("right") | {"parentId": "u"},
        ]
    )
    assert told(tree, "right") == ["u", "right"]
    assert told(tree, "e") == ["left"]


def test_a_trusted_usage_counts_only_after_the_last_edit_or_compaction() -> None:
    said = [user("u", "x" * 20), assistant("a", usage={"totalTokens": 5000}), user("v", "x" * 80)]
    plain = tree_of(chain(*said))
    assert project(plain, 2, OURS).tokens() == ContextTokens(total=5020, usage_at=1)
    after_edit = tree_of(chain(*said, edit("e", "u", "xxxx")))
    assert project(after_edit, 3, OURS).tokens() == ContextTokens(total=1 + 1 + 20)
    compacted = tree_of(chain(*said, compaction("k", "a", summary="x" * 8)))
    assert project(compacted, 3, OURS).tokens() == ContextTokens(total=2 + 1 + 20)
    answered = tree_of(
        chain(*said, compaction("k", "a"), assistant("b", usage={"totalTokens": 70}))
    )
    assert project(answered, 4, OURS).tokens() == ContextTokens(total=70, usage_at=4)


def test_an_estimate_counts_the_system_messages_as_the_one_they_fold_to() -> None:
    tree = tree_of(
        chain(
            system("s", sections={"a": "x" * 400}),
            user("u", "abcd"),
            system("t", sections={"a": "x" * 8}),
        )
    )
    projection = project(tree, 2, OURS)
    assert projection.tokens() == ContextTokens(total=2 + 1)
    assert projection.system() == {
        "role": "system",
        "content": "",
        "sections": {"a": "x" * 8},
        "timestamp": TIME_MS,
    }
    assert sum(map(estimate, projection.messages())) == 100 + 1 + 2


def test_a_fresh_baseline_is_honoured_by_us_and_merged_by_pi() -> None:
    tree = tree_of(chain(system("s", "old"), system("t", "new", replace=True)))
    ours, pi = project(tree, 1, OURS).system(), project(tree, 1, PI3).system()
    assert ours is not None and pi is not None
    assert (ours["content"], pi["content"]) == ("new", "old\n\nnew")


def test_pairs_name_the_entry_each_message_comes_from() -> None:
    checkpoint = {"role": "system", "content": "CHK"}
    tree = tree_of(chain(user("u"), compaction("k", "u", systemMessage=checkpoint)))
    found = [
        (entry_id, row, said["role"]) for entry_id, row, said in project(tree, 1, OURS).pairs()
    ]
    assert found == [("k", 1, "system"), ("k", 1, "compactionSummary"), ("u", 0, "user")]


class Reading:
    """A tree whose reads are counted."""

    def __init__(self, stored: list[JsonObject]) -> None:
        growing = Growing()
        for one in stored:
            growing.add(one)
        self.read: list[int] = []
        self.lines = growing.lines
        self.tree = Tree(growing.heads, self._line)

    def _line(self, row: int) -> bytes:
        self.read.append(row)
        return self.lines[row]


LONG = chain(*(user(f"u{place}") for place in range(500)))


@pytest.mark.parametrize(
    ("ask", "rows_read"),
    [
        (lambda said: said[-1], 1),
        (lambda said: said[-3:], 3),
        (lambda said: next(reversed(said)), 1),
        (lambda said: next(iter(said)), 1),
        (lambda said: [said[-2], said[-1]], 2),
    ],
)
def test_looking_at_one_end_decodes_that_end_only(
    ask: Callable[[Any], Any], rows_read: int
) -> None:
    counted = Reading(LONG)
    ask(project(counted.tree, 499, OURS).messages("llm"))
    assert len(counted.read) == rows_read


def test_messages_are_a_sequence() -> None:
    said = project(tree_of(LONG), 499, OURS).messages()
    plain = [{"role": "user", "content": f"u{n}", "timestamp": TIME_MS} for n in range(500)]
    assert len(said) == 500
    assert list(said) == plain
    assert list(reversed(said)) == plain[::-1]
    assert (said[0], said[7], said[-500]) == (plain[0], plain[7], plain[0])
    assert said[3:5] == plain[3:5]
    assert said[-4:] == plain[-4:]
    assert said[-4:-2] == plain[-4:-2]
    assert said[-1000:] == plain
    assert said[::-100] == plain[::-100]
    for index in (500, -501):
        with pytest.raises(IndexError):
            said[index]


def test_a_context_behind_a_compaction_costs_what_it_holds() -> None:
    tail = chain(*LONG, compaction("k", "u498"), user("z"))
    counted = Reading(tail)
    projection = project(counted.tree, 501, OURS)
    assert [words(said) for said in projection.messages()] == ["K", "u498", "u499", "z"]
    assert set(counted.read) == {498, 499, 500, 501}


def test_a_line_that_cannot_be_read_costs_that_line_only() -> None:
    growing = Growing()
    for one in chain(user("u"), user("v"), compaction("k", "v"), user("w")):
        growing.add(one)
    growing.lines[1] = b'{"broken'
    assert told(growing.tree, "v") == ["u"]
    assert told(growing.tree, "w") == ["K", "w"]
    broken = Growing()
    for one in chain(user("u"), compaction("k", "u"), user("w")):
        broken.add(one)
    broken.lines[1] = b"{"
    assert told(broken.tree, "w") == ["u", "w"]


def test_a_live_context_follows_what_is_appended() -> None:
    growing = Growing()
    live = LiveProjection(growing.tree, ROOT, OURS)
    asked: list[list[str]] = []
    steps = chain(
        user("u"),
        edit("e", "u", "U"),
        compaction("k", "u"),
        user("v"),
        entry("thinking_level_change", "t", thinkingLevel="low"),
    )
    for step in steps:
        live.extend(growing.add(step))
        asked.append([words(said) for said in live.messages()])
    assert asked == [["u"], ["U"], ["K", "U"], ["K", "U", "v"], ["K", "U", "v"]]
    assert live.thinking_level == "low"
    live.rebase(growing.tree.row_of("u"))
    assert [words(said) for said in live.messages()] == ["u"]
    assert live.thinking_level == "off"
    live.rebase(ROOT)
    assert list(live.messages()) == []


def test_a_live_context_moves_when_an_entry_hangs_elsewhere() -> None:
    growing = Growing()
    for step in chain(user("u"), user("a")):
        growing.add(step)
    live = LiveProjection(growing.tree, 1, OURS)
    live.extend(growing.add(user("b") | {"parentId": "u"}))
    assert [words(said) for said in live.messages()] == ["u", "b"]
    assert live.leaf_row == 2


def test_messages_handed_out_stay_as_they_were() -> None:
    growing = Growing()
    growing.add(user("u"))
    live = LiveProjection(growing.tree, 0, OURS)
    before = live.messages("llm")
    live.extend(growing.add(edit("e", "u", None) | {"parentId": "u"}))
    live.extend(growing.add(user("v") | {"parentId": "e"}))
    assert [words(said) for said in before] == ["u"]
    assert [words(said) for said in live.messages("llm")] == ["v"]


def test_messages_asked_for_time_and_again_are_the_same_as_those_asked_for_at_once() -> None:
    growing = Growing()
    live = LiveProjection(growing.tree, ROOT, OURS)
    steps = chain(
        user("u"),
        user("v"),
        edit("e", "u", "U"),
        user("w"),
        compaction("k", "v"),
        user("x"),
    )

    def at_once() -> list[JsonObject]:
        return list(project(growing.tree, live.leaf_row, OURS).messages("llm"))

    for step in steps:
        early = live.messages("llm")
        then = at_once()
        live.extend(growing.add(step))
        assert list(live.messages("llm")) == at_once()
        assert list(early) == then
    early, then = live.messages("llm"), at_once()
    live.rebase(growing.tree.row_of("v"))
    assert list(live.messages("llm")) == at_once()
    assert list(early) == then


def test_a_message_given_out_again_is_the_same_object() -> None:
    growing = Growing()
    live = LiveProjection(growing.tree, ROOT, OURS)
    live.extend(growing.add(entry("custom_message", "c", customType="t", content="note")))
    live.extend(growing.add(user("u") | {"parentId": "c"}))
    first, second = list(live.messages("llm")), list(live.messages("llm"))
    assert [one is other for one, other in zip(first, second, strict=True)] == [True, True]


def test_a_live_context_decodes_only_what_is_new() -> None:
    counted = Reading(chain(*LONG, result("r", "c")))
    live = LiveProjection(counted.tree, 499, OURS)
    live.tokens()
    counted.read.clear()
    live.extend(500)
    live.tokens()
    assert set(counted.read) <= {500}


def test_a_context_longer_than_what_is_kept_is_read_once_for_a_list_of_it() -> None:
    rows = MESSAGES_KEPT_ROWS + DECODED_ROWS_MAX + 10
    counted = Reading(chain(*(user(f"m{place}") for place in range(rows))))
    projection = project(counted.tree, rows - 1, OURS)
    assert len(list(projection.messages())) == rows
    assert len(counted.read) == rows
    counted.read.clear()
    assert len(list(projection.messages())) == rows
    assert len(counted.read) <= rows - MESSAGES_KEPT_ROWS + 1


def test_a_long_context_is_read_a_moment_at_a_time() -> None:
    rows = 2 * MOMENT_ROWS + 1
    tree = tree_of(chain(*(user(f"m{place}") for place in range(rows))))
    messages = project(tree, rows - 1, OURS).messages("llm")
    work = messages.listed()
    assert [next(work), next(work)] == [None, None]
    with pytest.raises(StopIteration) as end:
        next(work)
    assert end.value.value == list(messages)


def test_a_path_longer_than_python_recurses_is_no_trouble() -> None:
    tree = tree_of(chain(*(user(f"m{place}") for place in range(20_000))))
    live = LiveProjection(tree, 19_999, OURS)
    assert live.messages()[-1]["content"] == "m19999"
    assert chosen(tree, 19_999) == (None, "off")
