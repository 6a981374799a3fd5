"""At every leaf of every recorded session the context is the one Pi made."""

import json
from pathlib import Path
from typing import Any

import pytest

from pi_rpc.core.policy import PI3
from pi_rpc.core.projection import LiveProjection, Projection, project
from pi_rpc.core.tree import ROOT, Tree
from tests.core.trees import Growing

RECORDINGS = Path(__file__).parent / "recordings"
PROJECTIONS = sorted((RECORDINGS / "projections").glob("*.jsonl"))


def objects_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def tree_of_recording(recording: Path) -> Tree:
    scenario, session = recording.name.split(".", 1)
    growing = Growing()
    for stored in objects_of(RECORDINGS / scenario / session)[1:]:
        growing.add(stored)
    return growing.tree


THROWS = "throws TypeError"
"""Where Pi failed there is nothing to compare with but that we do not."""


def told(projection: Projection) -> dict[str, Any]:
    """Our context, in the words of the recordings."""
    pairs = projection.pairs()
    model = projection.model
    return {
        "ctx": " ".join(
            f"{row}:{message['role']}:{projection.policy.tokens_of(message)}"
            for _, row, message in pairs
        ),
        "contextEntries": " ".join(map(str, projection.selection.rows)),
        "thinkingLevel": projection.thinking_level,
        "model": "/".join(model) if model else None,
        "estimate": projection.tokens().total,
    }


def compare(projection: Projection, recorded: dict[str, Any]) -> None:
    ours = told(projection)
    theirs = {name: recorded[name] for name in ours}
    if theirs["estimate"] == THROWS:
        ours["estimate"] = THROWS
    theirs["ctx"] = theirs["ctx"].replace(THROWS, "?")
    words = zip(ours["ctx"].split(), theirs["ctx"].split(), strict=True)
    ours["ctx"] = " ".join(
        mine.rsplit(":", 1)[0] + ":?" if other.endswith(":?") else mine for mine, other in words
    )
    assert ours == theirs, recorded["leaf"]


@pytest.mark.parametrize("recording", PROJECTIONS, ids=lambda path: path.stem)
def test_every_leaf_has_the_context_pi_made(recording: Path) -> None:
    tree = tree_of_recording(recording)
    leaves = objects_of(recording)
    assert len(leaves) == len(tree) + 1
    for recorded in leaves:
        leaf = ROOT if recorded["leaf"] is None else recorded["leaf"]
        compare(project(tree, leaf, PI3), recorded)


@pytest.mark.parametrize("recording", PROJECTIONS, ids=lambda path: path.stem)
def test_a_live_context_walked_over_every_leaf_is_the_one_pi_made(recording: Path) -> None:
    tree = tree_of_recording(recording)
    live = LiveProjection(tree, ROOT, PI3)
    for recorded in objects_of(recording):
        if recorded["leaf"] is not None:
            live.extend(recorded["leaf"])
        compare(live, recorded)


def test_there_are_recordings_with_compactions_edits_and_branches() -> None:
    assert len(PROJECTIONS) > 50
    together = "".join(path.read_text(encoding="utf-8") for path in PROJECTIONS)
    assert "compactionSummary" in together and "branchSummary" in together
