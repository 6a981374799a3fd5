"""How full the context is, and with what; and how two contexts differ."""

from collections.abc import Generator
from typing import Literal

import msgspec

from pi_rpc.core.entries import Kind
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.policy import Policy
from pi_rpc.core.projection import Projection, project
from pi_rpc.core.tokens import tokens_of_units, tool_declaration_units, trusted_usage
from pi_rpc.core.tree import ROOT, Tree

SUMMARY_ROLES = frozenset({"compactionSummary", "branchSummary"})


class ContextUsage(msgspec.Struct, frozen=True, rename="camel"):
    """The size of a context in tokens. The five parts are estimates and add up to `estimate`."""

    system: int
    """Prompt text and sections, patches folded."""
    tools: int
    """Tool declarations."""
    summary: int
    """Summaries of what was compacted, and of branches left."""
    messages: int
    """Questions, answers, shell output and words of programs."""
    tool_results: int
    total: int
    """The best number there is: a reported usage and estimates of what followed, or `estimate`."""
    tokens: int | None
    """`total`, but None after a compaction until a reply reports its usage."""
    estimate: int
    method: Literal["usage", "estimate", "unknown"]
    """What `tokens` was read from; `unknown` when it is None."""
    usage_entry_id: str | None
    """The reply whose usage was trusted."""
    window: int | None
    """The model's context window; None when unknown."""
    reserve: int
    """Tokens kept free for the answer."""
    percent: float | None
    """`tokens` of the window, may exceed 100; None when either is unknown."""
    policy: str


def usage_by_part(
    tree: Tree, leaf_row: int, policy: Policy, window: int | None, reserve: int
) -> ContextUsage:
    """How full the context at a leaf is."""
    return usage_of(project(tree, leaf_row, policy), window, reserve)


def usage_of(projection: Projection, window: int | None, reserve: int) -> ContextUsage:
    """How full a context is that is at hand. A window of 0 counts as unknown."""
    work = measuring(projection, window, reserve)
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: ContextUsage = end.value
            return found


def measuring(
    projection: Projection, window: int | None, reserve: int
) -> Generator[None, None, ContextUsage]:
    """The same, a moment's work at a time."""
    sizes = yield from projection.sizing()
    tree, policy = projection.tree, projection.policy
    folded = projection.system()
    system = 0 if folded is None else policy.tokens_of(folded)
    tools = (
        0 if folded is None else tokens_of_units(tool_declaration_units(folded, policy.text_units))
    )
    counted = projection.tokens()
    known = _is_known(projection)
    window = window if window is not None and window > 0 else None
    by_usage = counted.usage_at is not None
    return ContextUsage(
        system=system - tools,
        tools=tools,
        summary=sizes.summary,
        messages=sizes.messages,
        tool_results=sizes.tool_results,
        total=counted.total,
        tokens=counted.total if known else None,
        estimate=system + sizes.total,
        method=("usage" if by_usage else "estimate") if known else "unknown",
        usage_entry_id=tree.id_or_none(ROOT if counted.usage_at is None else counted.usage_at),
        window=window,
        reserve=reserve,
        percent=counted.total / window * 100 if window and known else None,
        policy=policy.id,
    )


def _is_known(projection: Projection) -> bool:
    # What a provider counted before a compaction says nothing of the context after it.
    selection = projection.selection
    if selection.compaction_row == ROOT:
        return True
    return any(
        trusted_usage(message)
        for row in selection.rows[1 + selection.kept_count :]
        if projection.tree.heads.kinds[row] == Kind.ASSISTANT
        for message in projection.messages_of(row)
    )


class ContextDiff(msgspec.Struct, frozen=True, rename="camel"):
    """How one context differs from another, by the entries that say something in them."""

    added: list[str]
    """Only in the other one, in its order."""
    removed: list[str]
    """Only in the one, in its order."""
    changed: list[str]
    """In both, with other words; in the order of the other one."""
    common_prefix: int
    """Messages both begin with; a provider's cache reaches as far."""


def diff(tree: Tree, one_leaf: int, other_leaf: int, policy: Policy) -> ContextDiff:
    """What changes in the context from one leaf to another. Reads both whole."""
    one, other = (project(tree, leaf, policy).pairs() for leaf in (one_leaf, other_leaf))
    one_words, other_words = _by_entry(one), _by_entry(other)
    common = 0
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        common += 1
    return ContextDiff(
        added=[entry_id for entry_id in other_words if entry_id not in one_words],
        removed=[entry_id for entry_id in one_words if entry_id not in other_words],
        changed=[
            entry_id
            for entry_id, words in other_words.items()
            if entry_id in one_words and words != one_words[entry_id]
        ],
        common_prefix=common,
    )


def _by_entry(pairs: list[tuple[str, int, JsonObject]]) -> dict[str, list[JsonObject]]:
    found: dict[str, list[JsonObject]] = {}
    for entry_id, _, message in pairs:
        found.setdefault(entry_id, []).append(message)
    return found
