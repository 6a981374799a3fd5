"""A receipt names every entry of a path once and says why it is in the context or not."""

import os
import subprocess
import sys
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from pi_rpc.core.codec import canonical
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.policy import OURS, PI3, Policy
from pi_rpc.core.projection import project
from pi_rpc.core.receipt import Receipt, Verdict, explain
from pi_rpc.core.tree import ROOT, Tree
from tests.core.trees import (
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


def receipt(stored: list[JsonObject], leaf: str | None = None, policy: Policy = OURS) -> Receipt:
    tree = tree_of(stored)
    row = len(tree) - 1 if leaf is None else tree.row_of(leaf)
    return explain(tree, row, policy, "session", 99)


def reasons(found: Receipt) -> dict[str, tuple[str, str]]:
    return {one.id: (one.decision, one.reason) for one in found.entries}


def oddities(found: Receipt) -> list[tuple[str, str | None]]:
    return [(one.reason, one.entry_id) for one in found.diagnostics]


TWICE = chain(
    user("u"),
    user("a"),
    compaction("k1", "a"),
    user("c"),
    user("d"),
    compaction("k2", "a"),
    user("e"),
)


def test_the_record_has_the_names_and_values_it_promises() -> None:
    stored = [
        *chain(
            entry("model_change", "m", provider="p", modelId="x"),
            user("u", "x" * 20),
            compaction(
                "k", "k", summary="x" * 8, systemMessage={"role": "system", "content": "x" * 16}
            ),
            user("c", "x" * 4),
        ),
        user("off") | {"parentId": "u"},
    ]
    told = msgspec.to_builtins(receipt(stored, "c", PI3))
    digest = told.pop("digest")
    assert told == {
        "v": 1,
        "policy": {"id": "pi3", "version": "1", "estimator": "u16/4", "options": {}},
        "sessionId": "session",
        "leafId": "c",
        "pathLength": 4,
        "rootId": "m",
        "fileEntryCount": 5,
        "fileBytes": 99,
        "compaction": {
            "entryId": "k",
            "firstKeptEntryId": "k",
            "mode": "retain_none",
            "keptCount": 0,
            "checkpoint": True,
            "olderIgnored": [],
        },
        "entries": [
            {
                "id": "k",
                "type": "compaction",
                "decision": "include",
                "reason": "checkpoint",
                "roles": ["system", "compactionSummary"],
                "messages": 2,
                "tokens": 6,
            },
            {
                "id": "m",
                "type": "model_change",
                "decision": "state",
                "reason": "model",
                "tokens": 0,
            },
            {
                "id": "u",
                "type": "message",
                "decision": "exclude",
                "reason": "summarised",
                "role": "user",
                "tokens": 5,
            },
            {
                "id": "c",
                "type": "message",
                "decision": "include",
                "reason": "message",
                "role": "user",
                "messages": 1,
                "tokens": 1,
            },
        ],
        "excludedTypes": {"message": 1, "model_change": 1},
        "offPath": {"count": 1, "types": {"message": 1}},
        "messages": 3,
        "tokens": {
            "total": 7,
            "system": 4,
            "conversation": 3,
            "notSent": 0,
            "method": "estimate",
            "usageEntryId": None,
        },
        "model": {"provider": "p", "modelId": "x"},
        "thinkingLevel": "off",
        "diagnostics": [],
    }
    assert digest.startswith("sha256:") and len(digest) == 71


def test_an_older_compaction_is_named_as_one() -> None:
    found = receipt(TWICE)
    assert found.compaction.mode == "range"
    assert found.compaction.older_ignored == ["k1"]
    assert found.compaction.kept_count == 4
    assert [one.id for one in found.entries] == ["k2", "u", "a", "k1", "c", "d", "e"]
    assert reasons(found)["k1"] == ("exclude", "older_compaction")
    assert reasons(found)["u"] == ("exclude", "summarised")
    assert found.messages == 5


EVERY_KIND = chain(
    system("s", "before"),
    user("old"),
    system("s2", "kept range"),
    user("kept"),
    compaction("k", "kept"),
    system("s3", "after"),
    assistant("a", "c1"),
    result("r", "c1"),
    user("gone"),
    edit("e1", "gone", None),
    edit("e2", "kept", "NEW"),
    entry("custom_message", "cm", customType="t", content="x", display=True),
    entry("branch_summary", "b", summary="B", fromId="x"),
    entry("branch_summary", "b0", summary="", fromId="x"),
    message("sh", "bashExecution", command="ls", output="x", excludeFromContext=True),
    entry("message", "bad"),
    entry("never_seen", "n"),
    entry("model_change", "mc", provider="p", modelId="x"),
    entry("thinking_level_change", "tl", thinkingLevel="low"),
    entry("label", "l", targetId="a", label="x"),
    entry("session_info", "i", name="x"),
    entry("usage", "g", kind="x"),
    entry("custom", "cu", customType="t"),
    entry("custom", "cur", customType="pi_rpc.cursor"),
    entry("custom", "ws", customType="pi_rpc.workspace"),
    entry("custom", "pr", customType="pi_rpc.projection"),
)


def test_every_entry_has_its_decision_and_reason() -> None:
    found = receipt(EVERY_KIND)
    assert reasons(found) == {
        "k": ("include", "checkpoint"),
        "s": ("exclude", "system_folded"),
        "old": ("exclude", "summarised"),
        "s2": ("exclude", "system_folded"),
        "kept": ("replace", "edited"),
        "s3": ("include", "message"),
        "a": ("include", "message"),
        "r": ("include", "message"),
        "gone": ("exclude", "omitted"),
        "e1": ("state", "edit"),
        "e2": ("state", "edit"),
        "cm": ("include", "custom_message"),
        "b": ("include", "branch_summary"),
        "b0": ("exclude", "empty_summary"),
        "sh": ("exclude", "bash_excluded"),
        "bad": ("exclude", "malformed"),
        "n": ("exclude", "unknown_type"),
        "mc": ("state", "model"),
        "tl": ("state", "thinking"),
        "l": ("state", "label"),
        "i": ("state", "info"),
        "g": ("state", "usage"),
        "cu": ("state", "custom"),
        "cur": ("state", "cursor"),
        "ws": ("state", "workspace"),
        "pr": ("state", "custom"),
    }
    assert oddities(found) == [("malformed_message", "bad")]
    assert found.thinking_level == "low"


def test_an_edit_that_decided_is_named() -> None:
    by_id = {one.id: one for one in receipt(EVERY_KIND).entries}
    assert by_id["gone"] == Verdict(
        "gone", "message", "exclude", "omitted", tokens=1, role="user", edit_id="e1"
    )
    assert by_id["kept"] == Verdict(
        "kept", "message", "replace", "edited", tokens=1, role="user", messages=1, edit_id="e2"
    )


@pytest.mark.parametrize("policy", [OURS, PI3], ids=lambda policy: policy.id)
@pytest.mark.parametrize("stored", [TWICE, EVERY_KIND], ids=["twice", "every"])
def test_the_sums_match_and_the_path_is_told_once(stored: list[Any], policy: Policy) -> None:
    tree = tree_of(stored)
    for row in range(len(tree)):
        found = explain(tree, row, policy, "s", 0)
        path = [tree.heads.id_of(above) for above in tree.path(row)]
        assert sorted(one.id for one in found.entries) == sorted(path)
        included = [one for one in found.entries if one.decision in ("include", "replace")]
        assert sum(one.messages for one in included) == found.messages
        assert sum(one.tokens for one in included) == found.tokens.total
        assert found.tokens.total == found.tokens.system + found.tokens.conversation
        assert sum(found.excluded_types.values()) == len(path) - len(included)


def test_private_shell_output_is_counted_by_pi_and_told_as_not_sent() -> None:
    shell = message("b", "bashExecution", command="ls", output="x" * 38, excludeFromContext=True)
    pi, ours = receipt([shell], policy=PI3), receipt([shell])
    assert reasons(pi) == {"b": ("include", "message")}
    assert (pi.tokens.total, pi.tokens.not_sent, pi.messages) == (10, 10, 1)
    assert (ours.tokens.total, ours.tokens.not_sent, ours.messages) == (0, 0, 0)


def test_a_failed_reply_counts_and_is_told_as_not_sent() -> None:
    found = receipt(chain(user("u", "abcd"), assistant("a", stopReason="error", text="x" * 40)))
    assert (found.tokens.total, found.tokens.not_sent) == (11, 10)


def test_a_trusted_usage_is_named() -> None:
    found = receipt(chain(user("u"), assistant("a", usage={"totalTokens": 70}), user("v", "abcd")))
    tokens = found.tokens
    assert (tokens.method, tokens.usage_entry_id, tokens.total) == ("usage", "a", 71)


def test_what_was_left_on_another_branch_is_counted_and_not_named() -> None:
    stored = [
        user("u"),
        user("left") | {"parentId": "u"},
        assistant("gone") | {"parentId": "left"},
        entry("odd_type", "o") | {"parentId": "gone"},
        entry("custom", "x", customType="t") | {"parentId": "o"},
        user("here") | {"parentId": "u"},
    ]
    found = receipt(stored, "here")
    assert found.off_path.count == 4
    assert found.off_path.types == {"custom": 1, "message": 2, "odd_type": 1}
    assert [one.id for one in found.entries] == ["u", "here"]


def test_no_leaf_gives_an_empty_record() -> None:
    found = explain(tree_of([user("u")]), ROOT, OURS, "s", 0)
    assert (found.leaf_id, found.root_id, found.path_length, found.entries) == (None, None, 0, [])
    assert found.off_path.count == 1
    assert found.compaction.mode == "none"


def test_a_boundary_that_is_missing_is_told() -> None:
    found = receipt(chain(user("u"), compaction("k", "nowhere")))
    assert found.compaction.mode == "boundary_missing"
    assert found.compaction.first_kept_entry_id == "nowhere"
    assert oddities(found) == [("boundary_missing", "k")]


def test_an_edit_by_hand_that_is_ignored_is_told() -> None:
    stored = chain(user("u"), compaction("k", "u"), edit("e", "k", None))
    ours, pi = receipt(stored), receipt(stored, policy=PI3)
    assert oddities(ours) == [("ignored_edit", "e")]
    assert reasons(ours)["k"] == ("include", "checkpoint")
    assert oddities(pi) == []
    assert reasons(pi)["k"] == ("exclude", "omitted")


def test_an_edit_that_says_nothing_is_told() -> None:
    stored = chain(user("u"), entry("context_edit", "e", targetId="u", replacement=5))
    assert oddities(receipt(stored)) == [("malformed_edit", "e")]


def test_a_time_that_cannot_be_read_is_told() -> None:
    summary = entry("branch_summary", "b", summary="B", fromId="x") | {"timestamp": "soon"}
    assert oddities(receipt([summary])) == [("invalid_timestamp", "b")]


def test_a_line_that_cannot_be_read_is_told() -> None:
    tree = tree_of(chain(user("u"), user("v")))
    lines = [tree.line(0), b'{"broken']
    found = explain(Tree(tree.heads, lines.__getitem__), 1, OURS, "s", 0)
    assert reasons(found)["v"] == ("exclude", "malformed")
    assert [one.severity for one in found.diagnostics] == ["error"]


def test_a_result_without_a_call_is_told() -> None:
    stored = chain(user("u"), assistant("a", "c1"), result("r", "c1"), edit("e", "a", None))
    assert receipt(stored).diagnostics == [
        Diagnostic("warning", "orphan_result", "a tool result without its call", entry_id="r")
    ]


def test_a_call_without_a_result_is_told_unless_it_is_the_last_word() -> None:
    stored = chain(assistant("a", "c1", "c2"), result("r", "c1"), user("u"))
    assert oddities(receipt(stored)) == [("open_call", "a")]
    assert oddities(receipt(stored, "a")) == []


def test_a_call_id_used_again_belongs_to_the_nearest_call() -> None:
    stored = chain(assistant("a", "c"), assistant("b", "c"), result("r", "c"), user("u"))
    assert oddities(receipt(stored)) == [("open_call", "a")]


def test_a_checkpoint_that_was_made_is_named_as_one() -> None:
    policy = Policy(id="kept", version="1", makes_checkpoints=True)
    found = receipt(chain(system("s", "x"), compaction("k", "k")), policy=policy)
    assert reasons(found)["k"] == ("include", "checkpoint_fallback")
    assert found.compaction.checkpoint


def test_the_digest_is_over_policy_leaf_and_messages() -> None:
    stored = chain(user("u"), user("v"))
    parts = [["u", "user"], ["v", "user"]]
    for part, one in zip(parts, stored, strict=True):
        part.append(sha256(canonical(one["message"])).hexdigest())
    whole = sha256(canonical([OURS.as_object(), "v", parts])).hexdigest()
    assert receipt(stored).digest == f"sha256:{whole}"


def test_the_digest_follows_path_leaf_and_policy_alone() -> None:
    digest = receipt(EVERY_KIND).digest
    grown = [*EVERY_KIND, user("later") | {"parentId": "s"}]
    tree = tree_of(grown)
    assert explain(tree, tree.row_of("pr"), OURS, "another session", 12345).digest == digest
    assert receipt(EVERY_KIND, policy=PI3).digest != digest
    assert receipt(EVERY_KIND, "ws").digest != digest


def test_the_digest_is_the_same_in_another_process() -> None:
    code = (
        "from tests.core.test_receipt import EVERY_KIND, receipt;print(receipt(EVERY_KIND).digest)"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == receipt(EVERY_KIND).digest


def test_the_header_is_the_record_without_its_entries() -> None:
    found = receipt(TWICE)
    told = msgspec.to_builtins(found)
    del told["entries"]
    assert found.header() == told


def test_a_receipt_and_a_projection_agree_on_the_messages() -> None:
    tree = tree_of(TWICE)
    for row in range(len(tree)):
        found = explain(tree, row, OURS, "s", 0)
        given = [one.id for one in found.entries for _ in range(one.messages)]
        assert given == [entry_id for entry_id, _, _ in project(tree, row, OURS).pairs()]
