"""A summary held against what a model restates from it, and against the states of the files.

Promises
- The same history, answer and changes give the same findings; each is a question to look at.
- A path counts as the same however it is spelled: relative to the folder, or absolute.
"""

from collections.abc import Iterable
from posixpath import join, normpath
from typing import Literal

import msgspec

from pi_rpc.core.bindings import BINDING_TIMES, Bindings, marking_tool
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.summary import notes_of, section_of
from pi_rpc.core.tree import Tree
from pi_rpc.core.verifying import (
    PATH_IN_WORDS,
    QUOTED_CHARS,
    Checked,
    Finding,
    Verification,
    tells_of,
)

CHANGED_TOLD_MAX = 1000
"""How many changed paths a report names; the count is always whole."""

NOTHING = frozenset({"", "(none)"})


class Restated(msgspec.Struct, frozen=True, rename="camel"):
    """What a model restated, that was shown the summary and nothing else."""

    goal: str
    constraints: list[Checked]
    """Prohibitions of the user and of the notes, and whether they were restated."""
    changed_files: list[str]
    """Paths it names as changed."""
    next_steps: str
    usage: JsonObject | None = None


def restated(
    checked: Verification, stored: JsonObject, answer: str
) -> tuple[Restated, list[Finding]]:
    """An answer read, and where it differs from the history and from the notes themselves."""
    notes = notes_of(stored)
    goal, next_steps = section_of(answer, "Goal"), section_of(answer, "Next Steps")
    rules = section_of(answer, "Constraints & Preferences")
    named = section_of(answer, "Changed Files")
    paths = list(dict.fromkeys(PATH_IN_WORDS.findall(named)))
    constraints = [
        msgspec.structs.replace(one, mentioned=tells_of(rules, one.text))
        for one in [*checked.constraints, *_forbidden(checked, notes)]
    ]
    findings = []
    if not _agree(goal, checked.goal):
        findings.append(Finding("goal_not_restated", text=checked.goal[:QUOTED_CHARS]))
    findings += [
        Finding("constraint_not_restated", entry_id=one.entry_id, text=one.text)
        for one in constraints
        if not one.mentioned
    ]
    findings += [
        Finding("request_not_restated", entry_id=one.entry_id, text=one.text)
        for one in checked.unanswered
        if not tells_of(answer, one.text)
    ]
    changed = checked.evidence.modified
    findings += [
        Finding("changed_file_not_restated", path=path)
        for path in changed
        if path not in named and not any(_is_same(path, one) for one in paths)
    ]
    findings += [
        Finding("restated_file_without_evidence", path=path)
        for path in paths
        if not any(_is_same(path, one) for one in changed)
    ]
    if not _agree(next_steps, checked.next_steps):
        findings.append(Finding("next_step_not_restated", text=checked.next_steps[:QUOTED_CHARS]))
    return Restated(goal, constraints, paths, next_steps), findings


def _forbidden(checked: Verification, notes: str) -> Iterable[Checked]:
    """What the notes list as forbidden, beyond what was forbidden in what they stand for."""
    for line in section_of(notes, "Constraints & Preferences").split("\n"):
        _, mark, rule = line.partition("Forbidden:")
        if mark and not any(tells_of(rule, one.text) for one in checked.constraints):
            yield Checked(checked.compaction_id, rule.strip()[:QUOTED_CHARS], mentioned=True)


def _agree(restated_words: str, words: str) -> bool:
    if words.strip() in NOTHING:
        return True
    if restated_words.strip() in NOTHING:
        return False
    # A shorter wording of the same says less; that what it says is in the other is enough.
    return tells_of(restated_words, words) or tells_of(words, restated_words)


def _is_same(one: str, other: str) -> bool:
    one, other = normpath(one), normpath(other)
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


class VersionSpan(msgspec.Struct, frozen=True):
    """The states of the files between which a summary tells of."""

    one: str
    other: str
    is_whole: bool
    """False when calls that may have changed files came before the first state was named."""


def span_of(tree: Tree, bindings: Bindings, compaction_row: int) -> VersionSpan | None:
    """From the first state named on the path to that where the kept part begins; None without."""
    first_kept = tree.heads.row_of(str(tree.entry(compaction_row).object.get("firstKeptEntryId")))
    end_row = tree.parent(compaction_row if first_kept is None else first_kept)
    end = bindings.of_leaf(end_row)
    on_path = set(tree.upward(end_row))
    first = next(
        (
            one
            for one in bindings.all()
            if one.row in on_path and one.at in BINDING_TIMES and one.version is not None
        ),
        None,
    )
    if end is None or end.version is None or first is None or first.version is None:
        return None
    before = (row for row in on_path if row < first.row)
    is_whole = first.before is None and all(marking_tool(tree, row) is None for row in before)
    return VersionSpan(first.before or first.version, end.version, is_whole)


class FilesCheck(msgspec.Struct, frozen=True, rename="camel"):
    """What the states of the files say of a summary."""

    status: Literal["compared", "unknown"]
    reason: str | None = None
    """Why it is unknown: not_open, no_versions, not_bound, or what a comparison failed of."""
    version: str | None = None
    other_version: str | None = None
    changed: list[str] = []
    """Paths that differ from one to the other, relative to the folder."""
    count: int = 0


def changes_against(
    claimed: Iterable[str], changed: Iterable[str], cwd: str, is_whole: bool
) -> list[Finding]:
    """Paths that changed and are not claimed, then paths inside the folder claimed in vain."""
    said = {normpath(join(cwd, path)): path for path in claimed}
    differ = {normpath(join(cwd, path)): path for path in changed}
    missing = [
        Finding("changed_file_missing", path=path)
        for name, path in differ.items()
        if name not in said
    ]
    if not is_whole:
        return missing
    return missing + [
        Finding("claimed_file_unchanged", path=path)
        for name, path in said.items()
        if name not in differ and name.startswith(f"{cwd.rstrip('/')}/")
    ]
