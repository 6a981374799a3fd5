"""The model's context: what it holds, why, how full it is, how two differ, and edits of it."""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from pi_rpc.core.context_messages import message_for_model
from pi_rpc.core.context_usage import ContextUsage, measuring
from pi_rpc.core.context_usage import diff as context_diff
from pi_rpc.core.errors import Invalid
from pi_rpc.core.policy import POLICIES, Policy
from pi_rpc.core.projection import Form, Projection, project
from pi_rpc.core.receipt import Receipt, explain
from pi_rpc.core.thresholds import Limits
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.histories import leaf_of
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.paging import page_bytes_max, page_start, shortened
from pi_rpc.frontends.native.shapes import (
    JsonObject,
    ModelRef,
    Result,
    SessionParams,
    StoredParams,
)
from pi_rpc.session.compacting import limits_of
from pi_rpc.session.compacting import window_of as session_window
from pi_rpc.session.moments import in_moments
from pi_rpc.session.navigating import edit_context
from pi_rpc.session.reading import View

PolicyName = Literal["default", "pi3"]


class ContextParams(StoredParams, frozen=True, kw_only=True):
    """A leaf whose context is meant; the session's own unless it is named."""

    leaf_id: str | None | UnsetType = UNSET
    policy: PolicyName = "default"


def _projection(view: View, params: ContextParams) -> Projection:
    policy = POLICIES[params.policy]
    leaf_row = leaf_of(view, params.leaf_id)
    if leaf_row == view.projection.leaf_row and view.projection.policy == policy:
        return view.projection
    return project(view.tree, leaf_row, policy)


class ContextGetParams(ContextParams, frozen=True, kw_only=True):
    """Which form of the context, and which page."""

    form: Form = "session"
    """`session`: the roles the file knows; `llm`: only what a provider is sent."""
    cursor: str | None = None
    limit: int | None = None
    """Messages of a page; as many as one answer carries unless given."""


class ContextMessage(Result, frozen=True, kw_only=True):
    """A message, and the entry it comes from; one too long for the client without its content."""

    entry_id: str
    message: JsonObject


class ContextGetResult(Result, frozen=True, kw_only=True):
    """What the model would be sent."""

    leaf_id: str | None
    messages: list[ContextMessage]
    model: ModelRef | None = None
    thinking_level: str
    tokens: int
    """A reported usage and estimates of what followed, or estimates alone."""
    next_cursor: str | None = None


async def get(connection: Connection, params: ContextGetParams) -> ContextGetResult:
    """The context at a leaf, each message with the entry it comes from."""
    view = await connection.host.view(params.which)
    projection = _projection(view, params)
    said = _said(projection, params.form, params.cursor)
    messages, next_cursor = _page(connection, said, params.limit)
    model = projection.model
    return ContextGetResult(
        leaf_id=view.tree.id_or_none(projection.leaf_row),
        messages=messages,
        model=None if model is None else ModelRef(*model),
        thinking_level=projection.thinking_level,
        tokens=projection.tokens().total,
        next_cursor=next_cursor,
    )


_Said = tuple[str, str, JsonObject]
"""A cursor for where it stands, its entry, and a message."""


def _page(
    connection: Connection, said: Iterable[_Said], limit: int | None
) -> tuple[list[ContextMessage], str | None]:
    room = page_bytes_max(connection)
    page: list[ContextMessage] = []
    for cursor, entry_id, message in said:
        told, size = shortened(connection, message)
        room -= size
        is_full = limit is not None and len(page) >= limit
        if page and (room < 0 or is_full):
            return page, cursor
        page.append(ContextMessage(entry_id=entry_id, message=told))
    return page, None


def _said(projection: Projection, form: Form, cursor: str | None) -> Iterator[_Said]:
    """The messages from a place on; what stands before it is not read."""
    place, _, number = (cursor or "0").partition(".")
    start, skipped = page_start(place), page_start(number or "0")
    rows, id_of = projection.selection.rows, projection.tree.heads.id_of
    for at in range(start, len(rows)):
        messages = projection.messages_of(rows[at])
        for count in range(skipped if at == start else 0, len(messages)):
            message = messages[count]
            sent = message if form == "session" else message_for_model(message)
            if sent is not None:
                yield f"{at}.{count}", id_of(rows[at]), sent


class ExplainedContext(Receipt, frozen=True, kw_only=True, rename="camel"):
    """The receipt of a projection, and the room there is."""

    window: int | None
    """The model's context window in tokens; null when unknown."""
    reserve: int
    """Tokens kept free for the answer, as the session is configured."""


async def explain_(connection: Connection, params: ContextParams) -> ExplainedContext:
    """What a context is made of: every entry of the path, in or out, and why."""
    view = await connection.host.view(params.which)
    leaf_row = leaf_of(view, params.leaf_id)
    policy: Policy = POLICIES[params.policy]
    receipt = explain(view.tree, leaf_row, policy, view.header.session_id, view.stored.size_bytes)
    told = {name: getattr(receipt, name) for name in receipt.__struct_fields__}
    window, limits = window_of(connection, view), limits_at(connection, view)
    return ExplainedContext(**told, window=window, reserve=limits.reserve_tokens)


def window_of(connection: Connection, view: View) -> int | None:
    """The window of the model a session has, None when unknown."""
    if view.live is not None:
        return session_window(view.live)
    model = view.projection.model
    for one in connection.host.around.models.listing():
        if model == (one.provider, one.model_id):
            return one.context_window or None
    return None


def limits_at(connection: Connection, view: View) -> Limits:
    """The limits a session is compacted by, fitted into its model's window.

    One that nobody has opened goes by the settings it would be opened with.
    """
    if view.live is not None:
        return limits_of(view.live)
    provider, model_id = view.projection.model or ("", "")
    settings = connection.host.around.compaction
    return settings.limits_for(provider, model_id).within(window_of(connection, view))


async def usage(connection: Connection, params: ContextParams) -> ContextUsage:
    """How full the context is, by part."""
    view = await connection.host.view(params.which)
    window, limits = window_of(connection, view), limits_at(connection, view)
    projection = _projection(view, params)
    return await in_moments(measuring(projection, window, limits.reserve_tokens))


class ContextDiffParams(StoredParams, frozen=True, kw_only=True):
    """Two leaves of one session."""

    leaf_id: str | None | UnsetType = UNSET
    """The one; the session's own leaf unless it is named."""
    other_id: str | None | UnsetType = UNSET
    """The other; where the last request was made unless it is named."""
    policy: PolicyName = "default"


class ContextDiffResult(Result, frozen=True, kw_only=True):
    """How the other context differs from the one."""

    leaf_id: str | None
    other_id: str | None
    added: list[str]
    removed: list[str]
    changed: list[str]
    common_prefix: int
    """Messages both begin with; a provider's cache reaches as far."""


async def diff(connection: Connection, params: ContextDiffParams) -> ContextDiffResult:
    """How the context at another leaf differs: entries that come in, go, or say something else."""
    view = await connection.host.view(params.which)
    one = leaf_of(view, params.leaf_id)
    if params.other_id is not UNSET:
        other = view.tree.row_or_root(params.other_id)
    elif view.live is not None and view.live.last_asked_row is not None:
        one, other = view.live.last_asked_row, one
    else:
        raise Invalid("no_request_yet", "nothing was asked yet: name the other leaf")
    found = context_diff(view.tree, one, other, POLICIES[params.policy])
    return ContextDiffResult(
        leaf_id=view.tree.id_or_none(one),
        other_id=view.tree.id_or_none(other),
        added=found.added,
        removed=found.removed,
        changed=found.changed,
        common_prefix=found.common_prefix,
    )


class Replacement(msgspec.Struct, frozen=True):
    """Another content: a text, or content blocks."""

    content: str | list[JsonObject]


class ContextEditParams(SessionParams, frozen=True, kw_only=True):
    """What the model is shown instead of an entry; null omits it."""

    target_id: str | None = None
    target_ids: list[str] = []
    """Several entries at once."""
    replacement: Replacement | None
    pairs: bool = True
    """Whether an omitted call takes its results along, and a result its call."""


class ContextEditResult(Result, frozen=True, kw_only=True):
    """The entry that makes the edit hold on this branch."""

    entry_id: str
    entry_ids: list[str]
    """Of every edit that was written."""
    leaf_id: str | None


async def edit(connection: Connection, params: ContextEditParams) -> ContextEditResult:
    """Show the model another content for entries of the path, or none; the entries stay."""
    session = connection.host.session(params.session_id)
    named = [] if params.target_id is None else [params.target_id]
    replacement = params.replacement
    entries = await edit_context(
        session,
        [*named, *params.target_ids],
        None if replacement is None else {"content": replacement.content},
        params.pairs,
    )
    return ContextEditResult(
        entry_id=entries[-1].id,
        entry_ids=[entry.id for entry in entries],
        leaf_id=session.leaf_id,
    )


METHODS = (
    Method("context/get", "The model's context.", ContextGetParams, ContextGetResult, get),
    Method(
        "context/explain",
        "What the context is made of, and why.",
        ContextParams,
        ExplainedContext,
        explain_,
    ),
    Method("context/usage", "How full it is, by part.", ContextParams, ContextUsage, usage),
    Method("context/diff", "How two contexts differ.", ContextDiffParams, ContextDiffResult, diff),
    Method(
        "context/edit",
        "Show the model another content for entries, or none.",
        ContextEditParams,
        ContextEditResult,
        edit,
    ),
)
