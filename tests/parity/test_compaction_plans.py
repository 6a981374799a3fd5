"""At every leaf of every recorded session the plan of a compaction is the one Pi made."""

from pathlib import Path
from typing import Any

import pytest

from pi_rpc.core.compaction import plan_compaction
from pi_rpc.core.policy import OURS, PI3, Policy
from pi_rpc.core.projection import Projection, project
from pi_rpc.core.tree import ROOT
from tests.parity.test_projections import PROJECTIONS, THROWS, objects_of, tree_of_recording

KEPT_TOKENS = (50, 150, 1000, 20000)


def told(projection: Projection, keep_recent_tokens: int) -> list[Any] | None:
    """Our plan, in the words of the recordings."""
    plan = plan_compaction(projection, keep_recent_tokens)
    if plan is None:
        return None
    return [
        projection.tree.row_of(plan.first_kept_id),
        plan.is_split_turn,
        plan.tokens_before,
        len(list(plan.told_history)),
        len(list(plan.told_prefix)),
    ]


def plans(recording: Path, policy: Policy) -> list[tuple[Any, Any, Any, Any]]:
    tree = tree_of_recording(recording)
    found = []
    for recorded in objects_of(recording):
        leaf = ROOT if recorded["leaf"] is None else recorded["leaf"]
        projection = project(tree, leaf, policy)
        for keep in KEPT_TOKENS:
            theirs = recorded["prep"] if recorded["prep"] == THROWS else recorded["prep"][str(keep)]
            found.append((recorded["leaf"], keep, theirs, told(projection, keep)))
    return found


@pytest.mark.parametrize("recording", PROJECTIONS, ids=lambda path: path.stem)
def test_every_leaf_has_the_plan_pi_made(recording: Path) -> None:
    for leaf, keep, theirs, ours in plans(recording, PI3):
        if theirs != THROWS:
            assert ours == theirs, (leaf, keep)


SYSTEM_TOKENS_FILL_THE_BUDGET = "system tokens, which are never kept, fill the budget in Pi alone"
PRIVATE_SHELL_FILLS_THE_BUDGET = "shell output that no model is sent fills the budget in Pi alone"

DEVIATIONS = {
    "bash_command.session": PRIVATE_SHELL_FILLS_THE_BUDGET,
    "images.session": SYSTEM_TOKENS_FILL_THE_BUDGET,
    "retry_429_header.session": SYSTEM_TOKENS_FILL_THE_BUDGET,
    "retry_529_success.session": SYSTEM_TOKENS_FILL_THE_BUDGET,
    "retry_abort.session": SYSTEM_TOKENS_FILL_THE_BUDGET,
    "retry_exhausted.session": SYSTEM_TOKENS_FILL_THE_BUDGET,
    "stream_cut_retry.session": SYSTEM_TOKENS_FILL_THE_BUDGET,
}
"""Recordings in which our own rules give other plans, and why."""


@pytest.mark.parametrize("recording", PROJECTIONS, ids=lambda path: path.stem)
def test_our_own_plans_differ_from_pis_only_where_that_is_meant(recording: Path) -> None:
    differing = [
        (leaf, keep, theirs, ours)
        for leaf, keep, theirs, ours in plans(recording, OURS)
        if theirs not in (THROWS, ours)
    ]
    assert bool(differing) == (recording.stem in DEVIATIONS), differing
    for leaf, keep, theirs, ours in differing:
        # Whatever fills Pi's budget beside the words, without it all of them fit and stay.
        assert theirs is not None and ours is None, (leaf, keep, theirs, ours)
