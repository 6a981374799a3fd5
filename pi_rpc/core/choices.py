"""Which model and which thinking level a path implies.

The model is that of the last model change or assistant message, failed and omitted ones too; the
level is that of the last change. Entries behind a compaction count like any other.
"""

import msgspec

from pi_rpc.core.entries import Kind
from pi_rpc.core.selection import entry_or_none
from pi_rpc.core.stretches import climb
from pi_rpc.core.tree import ROOT, Tree

THINKING_OFF = "off"
"""The thinking level of a path that never says one."""

ModelChoice = tuple[str, str]
"""A provider's name and a model's id."""

MODEL_KINDS = frozenset({Kind.MODEL_CHANGE, Kind.ASSISTANT})
"""Kinds that say which model answers."""

CHOOSING_KINDS = MODEL_KINDS | {Kind.THINKING_LEVEL_CHANGE}
"""Kinds that say which model answers, or how hard it thinks."""


class Choices(msgspec.Struct, frozen=True):
    """What the path to a leaf chooses."""

    leaf_row: int
    model: ModelChoice | None
    """None when it names none."""
    level: str | None
    """None when it says none."""


def choices_at(tree: Tree, leaf_row: int, known: Choices | None = None) -> Choices:
    """What the path to a leaf chooses; `known` is what another one does, of the same tree.

    Beginnings of long sessions often hold the only choice of a level: from a path that is known
    nearby, it need not be looked for there.
    """
    sought = {kind for kind in CHOOSING_KINDS if tree.heads.kinds.find(kind) != -1}
    joint = ROOT if known is None else tree.common_ancestor(known.leaf_row, leaf_row)
    model, level = _chosen(tree, leaf_row, joint, sought)
    if known is not None and sought:
        left = {tree.heads.kinds[row] for row in tree.path(known.leaf_row, joint)}
        if not left & MODEL_KINDS:
            model = model or known.model
            sought -= MODEL_KINDS
        if Kind.THINKING_LEVEL_CHANGE not in left:
            level = level or known.level
            sought.discard(Kind.THINKING_LEVEL_CHANGE)
        higher_model, higher_level = _chosen(tree, joint, ROOT, sought)
        model, level = model or higher_model, level or higher_level
    return Choices(leaf_row, model, level)


def _chosen(
    tree: Tree, row: int, end: int, sought: set[Kind]
) -> tuple[ModelChoice | None, str | None]:
    """What is chosen from a row up to below another; what is found is sought no more."""
    kinds = tree.heads.kinds
    model: ModelChoice | None = None
    level: str | None = None
    for stretch in climb(tree.heads.parents, row, end):
        beyond = stretch.stop
        while sought:
            beyond = max(kinds.rfind(kind, stretch.start, beyond) for kind in sought)
            if beyond == -1:
                break
            said_model, said_level = choices_of(tree, beyond)
            if said_model is not None:
                model = said_model
                sought -= MODEL_KINDS
            if said_level is not None:
                level = said_level
                sought.discard(Kind.THINKING_LEVEL_CHANGE)
        if not sought:
            break
    return model, level


def choices_of(tree: Tree, row: int) -> tuple[ModelChoice | None, str | None]:
    """The model and the thinking level that one row chooses; None for what it says nothing of."""
    entry = entry_or_none(tree, row)
    if entry is None:
        return None, None
    fields = entry.object
    if entry.kind == Kind.THINKING_LEVEL_CHANGE:
        level = fields.get("thinkingLevel")
        return None, level if isinstance(level, str) and level else None
    if entry.kind == Kind.MODEL_CHANGE:
        provider, model_id = fields.get("provider"), fields.get("modelId")
    elif entry.kind == Kind.ASSISTANT:
        message = entry.message or {}
        provider, model_id = message.get("provider"), message.get("model")
    else:
        return None, None
    if isinstance(provider, str) and isinstance(model_id, str):
        return (provider, model_id), None
    return None, None
