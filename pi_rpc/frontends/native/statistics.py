"""What a session has used: messages, tokens and money, whole or along a path."""

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from pi_rpc.core.context_usage import measuring
from pi_rpc.core.errors import Refused
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.projection import Projection, project
from pi_rpc.core.stats import Share, Tokens, Totals, counting
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.contexts import limits_at, window_of
from pi_rpc.frontends.native.histories import leaf_of
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import Result, StoredParams
from pi_rpc.session.moments import in_moments
from pi_rpc.session.reading import View

Scope = Literal["session", "path", "since"]


class SessionStatsParams(StoredParams, frozen=True, kw_only=True):
    """What to count."""

    scope: Scope = "session"
    """`session`: every entry of every branch; `path`: from the root to the leaf."""
    since: str | None = None
    """Only entries of the path below this one; alone it is enough."""
    leaf_id: str | None | UnsetType = UNSET
    """The end of the path; the session's own leaf unless it is named."""


class ContextPart(Result, frozen=True, kw_only=True):
    """How full the context is at the leaf."""

    tokens: int | None
    """Null after a compaction until a reply reports its usage."""
    percent: float | None
    window: int
    reserve: int
    """Tokens of it that are kept free for the answer, as the session is configured."""
    estimate: int
    method: str
    usage_entry_id: str | None = None
    policy: str


class StatsPart(Result, frozen=True, kw_only=True):
    """Counts of some entries."""

    entries: int
    messages: dict[str, int]
    """By role."""
    total_messages: int
    tool_calls: int
    tokens: Tokens
    cost: float
    cost_text: str
    """The same, as an exact decimal."""
    cost_known: bool
    """False when tokens were used and no price is known."""


class SessionStatsResult(StatsPart, frozen=True, kw_only=True):
    """Counts of the scope, and how full the context is."""

    session_id: str
    path: str | None = None
    scope: Scope
    leaf_id: str | None
    breakdown: list[Share]
    """By `provider/model`, dearest first; tools and summaries together."""
    context: ContextPart | None = None
    """Left out when the window is unknown."""
    by_branch: StatsPart | None = None
    """Of what is not on the path: the price of routes that were left. Of a whole session."""
    inherited: StatsPart | None = None
    """Of what was copied when this session was made; counted above as well."""
    diagnostics: list[Diagnostic] = []


async def stats(connection: Connection, params: SessionStatsParams) -> SessionStatsResult:
    """Messages, calls, tokens and money, over all branches or along a path."""
    view = await connection.host.view(params.which)
    tree = view.tree
    leaf_row = leaf_of(view, params.leaf_id)
    scope: Scope = "since" if params.since is not None else params.scope
    inherited = await view.counted.inherited()
    context = await _context(connection, view, leaf_row)
    left = None
    if params.since is not None:
        since_row = tree.row_of(params.since)
        if not tree.has_ancestor(leaf_row, since_row):
            raise Refused("not_on_path", "the entry is on another branch", entryId=params.since)
        totals = await in_moments(counting(tree, tree.path(leaf_row, since_row)))
    elif scope == "path":
        totals = await in_moments(counting(tree, tree.path(leaf_row)))
    else:
        counted = await view.counted.at(leaf_row)
        totals, left = counted.totals(), counted.off_path()
    return SessionStatsResult(
        **_fields(totals),
        session_id=view.header.session_id,
        path=None if view.stored.path is None else str(view.stored.path),
        scope=scope,
        leaf_id=tree.id_or_none(leaf_row),
        breakdown=totals.breakdown,
        context=context,
        by_branch=None if left is None else _part(left),
        inherited=None if inherited is None else _part(inherited),
        diagnostics=_diagnostics(totals),
    )


def _fields(totals: Totals) -> dict[str, Any]:
    return {name: getattr(totals, name) for name in StatsPart.__struct_fields__}


def _part(totals: Totals) -> StatsPart:
    return StatsPart(**_fields(totals))


def _diagnostics(totals: Totals) -> list[Diagnostic]:
    if not totals.usage_missing:
        return []
    text = f"{totals.usage_missing} replies tell no usage; they count as none"
    return [Diagnostic("warning", "usage_missing", text)]


async def _context(connection: Connection, view: View, leaf_row: int) -> ContextPart | None:
    window = window_of(connection, view)
    if not window:
        return None
    projection: Projection = view.projection
    if projection.leaf_row != leaf_row:
        projection = project(view.tree, leaf_row, projection.policy)
    reserve = limits_at(connection, view).reserve_tokens
    usage = await in_moments(measuring(projection, window, reserve))
    return ContextPart(
        tokens=usage.tokens,
        percent=usage.percent,
        window=window,
        reserve=usage.reserve,
        estimate=usage.estimate,
        method=usage.method,
        usage_entry_id=usage.usage_entry_id,
        policy=usage.policy,
    )


METHODS = (
    Method(
        "session/stats",
        "What a session has used.",
        SessionStatsParams,
        SessionStatsResult,
        stats,
    ),
)
