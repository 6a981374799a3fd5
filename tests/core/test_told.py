"""Rows gone through in bulk say what their messages say."""

from collections.abc import Sequence

import pytest

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.moments import finished
from pi_rpc.core.policy import OURS
from pi_rpc.core.projection import Projection, project
from pi_rpc.core.told import Told
from pi_rpc.core.transcript import parts_of
from pi_rpc.core.tree import Tree
from tests.core.trees import assistant, chain, edit, entry, message, result, system, tree_of, user


def calling(entry_id: str, call: str, name: str, path: str) -> JsonObject:
    block = {"type": "toolCall", "id": call, "name": name, "arguments": {"path": path}}
    return message(entry_id, "assistant", [block], stopReason="toolUse")


FAILED = result("r2", "c2", "no such file")
FAILED["message"]["isError"] = True
ODD = message("h", "assistant", [{"type": "hologram"}, {"type": "text", "text": "Seen."}])

STORED = chain(
    *[system("s", "rules"), user("u1", "Read it."), calling("a1", "c1", "read", "a.py")],
    *[result("r1", "c1", "x" * 3000), calling("a2", "c2", "write", "b.py"), FAILED],
    *[entry("label", "l", targetId="u1", label="here"), calling("a3", "c3", "edit", "c.py")],
    *[result("r3", "c3"), message("b", "bashExecution", command="ls", output="a.py", exitCode=0)],
    # What a program puts beside a custom message is none of its words.
    entry("custom_message", "n", customType="t", content="Noted.", message={"role": "user"}),
    *[ODD, entry("branch_summary", "k", fromId="x", summary="Elsewhere."), user("u2", "And?")],
    *[
        calling("a4", "c4", "write", "gone.py"),
        assistant("a5", text="Done."),
        edit("e", "a4", None),
    ],
    edit("f", "u2", "And now?"),
)


def read_in_blocks(tree: Tree, size: int) -> Tree:
    def block(rows: Sequence[int], start: int) -> tuple[bytes, int]:
        lines = [tree.line(row) for row in rows[start : start + size]]
        return b"\n".join(lines), len(lines)

    return Tree(tree.heads, tree.line, block)


@pytest.mark.parametrize("size", [0, 1, 3, 100])
def test_all_that_is_said_is_told_in_order_whatever_is_read_at_once(size: int) -> None:
    whole = tree_of(STORED)
    projection = project(read_in_blocks(whole, size) if size else whole, len(whole) - 1, OURS)
    told = Told(projection, projection.selection.rows)
    messages = [
        said
        for row in projection.selection.rows
        for said in projection.messages_of(row)
        if said.get("role") != "system"
    ]
    assert list(told) == messages
    parts = [part for stretch in told.parts() for part in stretch]
    assert parts == [part for said in messages for part in parts_of(said)]
    assert "[User]: And now?" in parts and "[Assistant]: Seen." in parts
    newest = [said for said in told.newest_first() if said is not None]
    assert newest == messages[::-1]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_files_are_the_same_looked_for_or_counted_while_it_is_told(size: int) -> None:
    whole = tree_of(STORED)
    projection = project(read_in_blocks(whole, size), len(whole) - 1, OURS)
    looked_for = finished(told_of(projection).files())
    assert (looked_for.read, looked_for.modified) == (["a.py"], ["c.py"])
    told = told_of(projection)
    for _ in told.parts():
        pass
    assert finished(told.files()) == looked_for
    assert finished(told.files(counts_failed=True)).modified == ["b.py", "c.py"]


def told_of(projection: Projection) -> Told:
    return Told(projection, projection.selection.rows)
