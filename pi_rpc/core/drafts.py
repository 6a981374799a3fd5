"""Entries that somebody wants written at a boundary: checked as a whole, written together or not.

Promises
- A plan is made of all drafts or of none; the first that cannot be is named.
- What is planned leaves no result without its call.
"""

from collections.abc import Sequence

import msgspec

from pi_rpc.core.context_edits import plan_context_edit
from pi_rpc.core.context_messages import EDITABLE_KINDS
from pi_rpc.core.entries import AddedMessage, Body, Kind, custom, custom_message
from pi_rpc.core.errors import Failure, Invalid, Refused
from pi_rpc.core.images import CONTENT_CHARS_MAX, problem_of_content
from pi_rpc.core.messages import Block, JsonObject
from pi_rpc.core.tree import Tree

DRAFTS_MAX = 100
"""How many entries one boundary may bring."""

RESERVED = "pi_rpc."
"""How the types of our own entries begin."""


class CustomDraft(msgspec.Struct, frozen=True, rename="camel", tag_field="type", tag="custom"):
    """State of a program, never shown to the model."""

    custom_type: str
    data: JsonObject | None = None


class CustomMessageDraft(AddedMessage, frozen=True, tag_field="type", tag="custom_message"):
    """A message for the model."""


class ContextEditDraft(
    msgspec.Struct, frozen=True, rename="camel", tag_field="type", tag="context_edit"
):
    """Other content for an entry in the context, or none."""

    target_id: str
    replacement: JsonObject | None = None
    """An object with `content`; null leaves the entry out, a call together with its results."""


class CompactionDraft(
    msgspec.Struct, frozen=True, rename="camel", tag_field="type", tag="compaction"
):
    """A summary that stands for what came before an entry."""

    summary: str
    first_kept_entry_id: str
    """Words of a turn on the path; a result would be kept without its call."""


Draft = CustomDraft | CustomMessageDraft | ContextEditDraft | CompactionDraft


class DraftPlan(msgspec.Struct, frozen=True):
    """What to write, in order."""

    bodies: list[Body]
    compaction: CompactionDraft | None = None
    """It comes last, and whoever writes it adds what every compaction has."""


def plan_drafts(tree: Tree, leaf_row: int, drafts: Sequence[Draft]) -> DraftPlan:
    """The entries that drafts become.

    Raises Invalid `bad_draft`, `reserved_type`, Missing `entry_not_found`, Refused `not_on_path`,
    `not_editable` and what `plan_context_edit` raises; `draft` is the place of the one that cannot
    be.
    """
    if len(drafts) > DRAFTS_MAX:
        raise Invalid("bad_draft", f"at most {DRAFTS_MAX} drafts", limit=DRAFTS_MAX)
    bodies: list[Body] = []
    compaction: CompactionDraft | None = None
    for place, draft in enumerate(drafts):
        try:
            if compaction is not None:
                raise Invalid("bad_draft", "a compaction is the last of the drafts")
            if isinstance(draft, CompactionDraft):
                _check_compaction(tree, leaf_row, draft)
                compaction = draft
            else:
                bodies += _bodies(tree, leaf_row, draft)
        except Failure as failure:
            failure.data["draft"] = place
            raise
    return DraftPlan(bodies, compaction)


def _bodies(
    tree: Tree, leaf_row: int, draft: CustomDraft | CustomMessageDraft | ContextEditDraft
) -> list[Body]:
    match draft:
        case CustomDraft():
            check_custom_type(draft.custom_type)
            return [custom(draft.custom_type, draft.data)]
        case CustomMessageDraft():
            check_added(draft)
            return [custom_message(draft)]
        case ContextEditDraft():
            return plan_context_edit(tree, leaf_row, [draft.target_id], draft.replacement)


def check_added(added: AddedMessage) -> None:
    """Raise Invalid `bad_draft` or `reserved_type` for a message of somebody else's."""
    check_custom_type(added.custom_type)
    check_content(added.content)


def check_custom_type(custom_type: str) -> None:
    """Raise Invalid `reserved_type` for a type of ours, `bad_draft` for none at all."""
    if not custom_type or len(custom_type) > 128:
        raise Invalid("bad_draft", "a type has 1 to 128 characters")
    if custom_type.startswith(RESERVED):
        raise Invalid("reserved_type", f"types that begin with {RESERVED} are the daemon's")


def check_content(content: str | list[Block]) -> None:
    """Raise Invalid `bad_draft` for content that is neither text nor images, or too long."""
    problem = problem_of_content(content)
    if problem is not None:
        raise Invalid("bad_draft", problem)


def _check_compaction(tree: Tree, leaf_row: int, draft: CompactionDraft) -> None:
    if not draft.summary.strip() or len(draft.summary) > CONTENT_CHARS_MAX:
        raise Invalid("bad_draft", "a summary has some words, and not too many")
    kept_id = draft.first_kept_entry_id
    row = tree.row_of(kept_id)
    if not tree.has_ancestor(leaf_row, row):
        raise Refused("not_on_path", "the entry is on another branch", entryId=kept_id)
    if tree.kind(row) not in EDITABLE_KINDS - {Kind.TOOL_RESULT}:
        raise Refused("not_editable", "what is kept begins with words of a turn", entryId=kept_id)
