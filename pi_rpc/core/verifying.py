"""A stored summary held against what it was made of: what is missing, what nothing speaks for.

Everything here is read off the history; it asks no model. Words are compared by what they share,
so a finding is a question to look at and not a proof.

Promises
- The same history gives the same report; it names entries and slugs, and judges nothing by taste.
- Pins and file lists are compared exactly.
"""

import re
from collections.abc import Generator, Iterable, Sequence
from typing import Literal

import msgspec

from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Missing, Refused
from pi_rpc.core.file_lists import FileCount, FileLists
from pi_rpc.core.messages import JsonObject, text_of
from pi_rpc.core.pins import pins_at
from pi_rpc.core.policy import Policy
from pi_rpc.core.projection import Projection, project
from pi_rpc.core.summary import TURN_DIVIDER, missing_sections, notes_of, section_of
from pi_rpc.core.told import MOMENT_ROWS
from pi_rpc.core.transcript import parts_of
from pi_rpc.core.tree import ROOT, Tree

Slug = Literal[
    "section_missing",
    "file_missing",
    "file_without_evidence",
    "path_without_evidence",
    "pin_missing",
    "constraint_missing",
    "request_missing",
    "failure_missing",
    "next_step_missing",
    "changed_file_missing",
    "claimed_file_unchanged",
    "goal_not_restated",
    "constraint_not_restated",
    "request_not_restated",
    "changed_file_not_restated",
    "restated_file_without_evidence",
    "next_step_not_restated",
]

SHARED_WORDS = 0.6
"""How much of a sentence's longer words notes must share to count as telling of it."""

WORD_CHARS = 4
"""Shorter words tell little of what a sentence is about."""

QUOTED_CHARS = 200
FINDINGS_MAX = 200

_FORBIDS = re.compile(
    r"\b(?:never|do not|don't|must not|mustn't|forbidden|may not|without asking)\b", re.IGNORECASE
)
_WORD = re.compile(r"[\w./-]{4,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
PATH_IN_WORDS = re.compile(r"(?<![\w/])(?:[\w.-]+/)*[\w-]+\.[A-Za-z][A-Za-z0-9]{0,5}(?![\w/])")


_Told = tuple[str, JsonObject]
"""A message that was summarised, behind the id of its entry."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One thing to look at."""

    slug: Slug
    entry_id: str | None = None
    path: str | None = None
    text: str | None = None
    """The words in question, or the name of a section."""


class PinCheck(msgspec.Struct, frozen=True, rename="camel"):
    """What became of a pin."""

    entry_id: str
    status: Literal["kept", "carried", "missing"]


class Checked(msgspec.Struct, frozen=True, rename="camel"):
    """A sentence or request of the user, and whether the notes tell of it."""

    entry_id: str
    text: str
    mentioned: bool


class Verification(msgspec.Struct, frozen=True, rename="camel"):
    """A summary's report."""

    compaction_id: str
    summarized: list[str]
    """Entries the summary stands for since the one before it."""
    sections: list[str]
    """Headings that are missing."""
    files: FileLists
    """What the summary is stored with."""
    evidence: FileLists
    """What calls that succeeded name, earlier summaries included."""
    pins: list[PinCheck]
    goal: str
    constraints: list[Checked]
    unanswered: list[Checked]
    """Requests that were summarised before they were answered."""
    failures: list[Checked]
    next_steps: str
    findings: list[Finding]

    def with_more(self, found: Iterable[Finding]) -> "Verification":
        """The same report with what was found elsewhere."""
        return msgspec.structs.replace(self, findings=[*self.findings, *found][:FINDINGS_MAX])

    @property
    def focus(self) -> str:
        """What a new summary would have to look at."""
        named = (one.text or one.path or one.slug for one in self.findings)
        return "these must not be missing: " + "; ".join(dict.fromkeys(named))


def verify(
    tree: Tree, leaf_row: int, policy: Policy, compaction_id: str | None = None
) -> Generator[None, None, Verification]:
    """Check the summary the context begins with, or another one on the path; a moment at a time.

    Raises Missing `no_compaction` and `entry_not_found`, Refused `not_on_path`, `not_a_compaction`.
    """
    compaction_row = _compaction_row(tree, leaf_row, policy, compaction_id)
    stored = tree.entry(compaction_row).object
    at_it = project(tree, compaction_row, policy)
    kept = set(at_it.selection.rows[1 : 1 + at_it.selection.kept_count])
    before = project(tree, tree.parent(compaction_row), policy)
    told = yield from _told(before, kept | {before.selection.compaction_row})
    notes = notes_of(stored)
    of_history = notes.partition(TURN_DIVIDER)[0]
    count = FileCount()
    if before.selection.compaction_row != ROOT:
        count.add_details(tree.entry(before.selection.compaction_row).object.get("details"))
    for row in before.selection.rows:
        if tree.kind(row) == Kind.BRANCH_SUMMARY and row not in kept:
            count.add_details(tree.entry(row).object.get("details"))
    count.add_messages([message for _, message in told])
    evidence = yield from _evidence(told)
    if before.selection.compaction_row != ROOT:
        evidence += str(tree.entry(before.selection.compaction_row).object.get("summary"))
    return _report(
        Verification(
            compaction_id=tree.heads.id_of(compaction_row),
            summarized=list(dict.fromkeys(entry_id for entry_id, _ in told)),
            sections=missing_sections(notes),
            files=_stored_files(stored),
            evidence=count.lists(),
            pins=_pins(tree, compaction_row, kept, str(stored.get("summary"))),
            goal=section_of(of_history, "Goal"),
            constraints=_constraints(told, notes),
            unanswered=_unanswered(told, notes),
            failures=_failures(told, notes),
            next_steps=section_of(of_history, "Next Steps"),
            findings=_unfounded(notes, evidence),
        )
    )


def _compaction_row(tree: Tree, leaf_row: int, policy: Policy, compaction_id: str | None) -> int:
    if compaction_id is None:
        row = project(tree, leaf_row, policy).selection.compaction_row
        if row == ROOT:
            raise Missing("no_compaction", "there is no compaction on the path")
        return row
    row = tree.row_of(compaction_id)
    if tree.kind(row) != Kind.COMPACTION:
        raise Refused("not_a_compaction", "the entry is no compaction", entryId=compaction_id)
    if not tree.has_ancestor(leaf_row, row):
        raise Refused("not_on_path", "the entry is on another branch", entryId=compaction_id)
    return row


def _stored_files(stored: JsonObject) -> FileLists:
    count = FileCount()
    count.add_details(stored.get("details"))
    return count.lists()


def _pins(tree: Tree, compaction_row: int, kept: set[int], summary: str) -> list[PinCheck]:
    checks = []
    for pin in pins_at(tree, compaction_row):
        is_carried = pin.text in summary
        status: Literal["kept", "carried", "missing"] = "carried" if is_carried else "missing"
        checks.append(PinCheck(pin.entry_id, "kept" if pin.row in kept else status))
    return checks


def _told(before: Projection, left_out: set[int]) -> Generator[None, None, list[_Told]]:
    """What was summarised, message by message, with the entry each is from."""
    told: list[_Told] = []
    for place, row in enumerate(before.selection.rows):
        if row not in left_out:
            entry_id = before.tree.heads.id_of(row)
            said = before.messages_of(row)
            told += [(entry_id, one) for one in said if one.get("role") != "system"]
        if place % MOMENT_ROWS == 0:
            yield
    return told


def _evidence(told: Sequence[_Told]) -> Generator[None, None, str]:
    """All that was said, results uncut: what a summary may rest on."""
    found: list[str] = []
    for place, (_, message) in enumerate(told):
        found += parts_of(message)
        if message.get("role") == "toolResult":
            found.append(text_of(message))
        if place % MOMENT_ROWS == 0:
            yield
    return "\n".join(found)


def _constraints(told: Sequence[_Told], notes: str) -> list[Checked]:
    lines = (
        (entry_id, line.strip())
        for entry_id, message in told
        if message.get("role") == "user"
        for line in re.split(r"[\n.!?。]+", text_of(message))
    )
    return [_checked(entry_id, line, notes) for entry_id, line in lines if _FORBIDS.search(line)]


def _unanswered(told: Sequence[_Told], notes: str) -> list[Checked]:
    waiting: list[tuple[str, str]] = []
    for entry_id, message in told:
        if message.get("role") == "user":
            waiting.append((entry_id, text_of(message)))
        elif message.get("role") == "assistant" and message.get("stopReason") == "stop":
            waiting.clear()
    return [_checked(entry_id, text, notes) for entry_id, text in waiting if text]


def _failures(told: Sequence[_Told], notes: str) -> list[Checked]:
    return [
        _checked(entry_id, text_of(message).strip().split("\n")[0], notes)
        for entry_id, message in told
        if message.get("role") == "toolResult" and message.get("isError")
    ]


def _checked(entry_id: str, text: str, notes: str) -> Checked:
    return Checked(entry_id, text[:QUOTED_CHARS], tells_of(notes, text[:QUOTED_CHARS]))


def tells_of(notes: str, text: str) -> bool:
    """Whether notes share most of the longer words of a text."""
    words = {word.casefold().strip("./-") for word in _WORD.findall(text)}
    held = notes.casefold()
    return not words or sum(word in held for word in words) >= SHARED_WORDS * len(words)


def _unfounded(notes: str, evidence: str) -> list[Finding]:
    named = dict.fromkeys(PATH_IN_WORDS.findall(notes))
    return [Finding("path_without_evidence", path=path) for path in named if path not in evidence]


def _report(checked: Verification) -> Verification:
    claimed = {*checked.files.read, *checked.files.modified}
    founded = {*checked.evidence.read, *checked.evidence.modified}
    missing: list[tuple[Slug, list[Checked]]] = [
        ("constraint_missing", checked.constraints),
        ("request_missing", checked.unanswered),
        ("failure_missing", checked.failures),
    ]
    findings = [Finding("section_missing", text=name) for name in checked.sections]
    findings += [Finding("file_missing", path=path) for path in sorted(founded - claimed)]
    findings += [Finding("file_without_evidence", path=path) for path in sorted(claimed - founded)]
    findings += [
        Finding("pin_missing", entry_id=pin.entry_id)
        for pin in checked.pins
        if pin.status == "missing"
    ]
    findings += [
        Finding(slug, entry_id=one.entry_id, text=one.text)
        for slug, all_of in missing
        for one in all_of
        if not one.mentioned
    ]
    if checked.unanswered and checked.next_steps in ("", "(none)"):
        findings.append(Finding("next_step_missing", entry_id=checked.unanswered[-1].entry_id))
    found = [*findings, *checked.findings][:FINDINGS_MAX]
    return msgspec.structs.replace(checked, findings=found)
