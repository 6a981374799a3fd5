"""The tree at work: branches listed and compared, the leaf moved, sessions forked and cloned."""

from typing import Literal

from msgspec import UNSET, UnsetType

from pi_rpc.core import branches
from pi_rpc.core.branches import Branch, branch_at, segment
from pi_rpc.core.branching import Position, fork_points
from pi_rpc.core.events import Environment
from pi_rpc.core.tree import Tree
from pi_rpc.frontends.native.connection import Connection, shown_name
from pi_rpc.frontends.native.histories import leaf_of
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.paging import fitting, page_start, readable
from pi_rpc.frontends.native.shapes import (
    CopiedState,
    MoveParams,
    Result,
    SessionParams,
    StoredParams,
)
from pi_rpc.session.building import Copied, Copying
from pi_rpc.session.navigating import SummaryMade, navigate, set_label
from pi_rpc.session.prompting import start_from_queue
from pi_rpc.session.session import Session
from pi_rpc.session.summarising import SummaryWish, bring_conclusion, summarize_branch

IDS_TOLD_MAX = 1000
"""How many entry ids of one side a comparison names; the count is always whole."""


def _moved(connection: Connection, params: MoveParams) -> Session:
    session = connection.host.session(params.session_id)
    if params.expected_leaf is not UNSET:
        session.refuse_unless_leaf(params.expected_leaf)
    return session


class BranchNavigateParams(MoveParams, frozen=True, kw_only=True):
    """Where to go."""

    target_id: str | None
    """An entry; null is before the first one."""
    label: str | None = None
    """A label for the target."""
    restore: Literal["none", "try"] = "none"
    """Whether to try to bring the files along."""
    summarize: bool = False
    """Whether what is left is summarised, for the branch where it goes on."""
    instructions: str | None = None
    """What the summary is to look at above all."""
    replace_instructions: bool = False
    """Whether the instructions are all that is asked of the model."""


class BranchNavigateResult(Result, frozen=True, kw_only=True):
    """Where the leaf stands, and how the world stands to it."""

    leaf_id: str | None
    draft: str | None = None
    """The words of a user message that was chosen, for the editor."""
    draft_truncated: bool = False
    """They are too long for the client, and are read where they stand."""
    summary_entry_id: str | None = None
    summary: SummaryMade = "none"
    """`empty` when it was asked for and nothing was said on what was left: there is no entry."""
    environment: Environment


async def navigate_(connection: Connection, params: BranchNavigateParams) -> BranchNavigateResult:
    """Move the leaf inside its session; the files stay as they are unless restoring works."""
    session = _moved(connection, params)
    wish = _wish(params.instructions, params.replace_instructions) if params.summarize else None
    try:
        moved = await navigate(session, params.target_id, params.label, wish, params.restore)
    finally:
        # Words that came while a summary was made have waited for this.
        start_from_queue(session, connection.host.tasks)
    draft, is_truncated = readable(connection, moved.draft)
    return BranchNavigateResult(
        leaf_id=moved.leaf_id,
        draft=draft,
        draft_truncated=is_truncated,
        summary_entry_id=moved.summary_id,
        summary=moved.summary,
        environment=moved.environment,
    )


def _wish(instructions: str | None, replaces: bool) -> SummaryWish:
    return SummaryWish(instructions or "", replaces)


class BranchSummarizeParams(MoveParams, frozen=True, kw_only=True):
    """Another branch, to be told of on this one."""

    entry_id: str
    """Where that branch ends."""
    instructions: str | None = None
    replace_instructions: bool = False


class BranchSummarizeResult(Result, frozen=True, kw_only=True):
    """The summary."""

    leaf_id: str | None
    summary_entry_id: str | None = None
    summary: SummaryMade


async def summarize(connection: Connection, params: BranchSummarizeParams) -> BranchSummarizeResult:
    """Bring over what came of another branch, without going there."""
    session = _moved(connection, params)
    wish = _wish(params.instructions, params.replace_instructions)
    try:
        entry_id = await summarize_branch(session, params.entry_id, wish)
    finally:
        start_from_queue(session, connection.host.tasks)
    return BranchSummarizeResult(
        leaf_id=session.leaf_id,
        summary_entry_id=entry_id,
        summary="empty" if entry_id is None else "made",
    )


class BranchBringParams(MoveParams, frozen=True, kw_only=True):
    """A conclusion of another branch."""

    entry_id: str
    """Where that branch ends, such as `other` of a comparison."""
    text: str | None = None
    """What was concluded; the last answer on that branch unless given."""


class BranchBringResult(Result, frozen=True, kw_only=True):
    """The entry of type custom_message that tells of it."""

    entry_id: str
    leaf_id: str | None


async def bring(connection: Connection, params: BranchBringParams) -> BranchBringResult:
    """Tell the model on this branch what was concluded on another one; no model is asked."""
    session = _moved(connection, params)
    entry_id = await bring_conclusion(session, params.entry_id, params.text)
    return BranchBringResult(entry_id=entry_id, leaf_id=session.leaf_id)


class BranchLabelParams(SessionParams, frozen=True, kw_only=True):
    """A label for an entry; null or empty clears it."""

    entry_id: str
    label: str | None


class BranchLabelResult(Result, frozen=True, kw_only=True):
    """The entry that bears the label."""

    entry_id: str
    leaf_id: str | None


async def label(connection: Connection, params: BranchLabelParams) -> BranchLabelResult:
    """Label an entry, on whatever branch it stands."""
    session = connection.host.session(params.session_id)
    entry = await set_label(session, params.entry_id, params.label)
    return BranchLabelResult(entry_id=entry.id, leaf_id=session.leaf_id)


class Files(Result, frozen=True, kw_only=True):
    """Paths that calls named; calls that failed do not count."""

    read: list[str]
    modified: list[str]
    complete: bool
    """False when the branch is longer than what was read for this."""


class Tip(Result, frozen=True, kw_only=True):
    """The end of a branch."""

    leaf_id: str
    forked_from: str | None
    """The entry its own part hangs below."""
    size: int
    """Entries of its own part."""
    timestamp: str
    text: str
    """The last words on it."""
    label: str | None = None
    files: Files
    current: bool
    """Whether the leaf stands on it."""


class BranchListParams(StoredParams, frozen=True, kw_only=True):
    """Which page of the tips."""

    cursor: str | None = None
    limit: int = 50


class BranchListResult(Result, frozen=True, kw_only=True):
    """Tips in file order, a page at a time."""

    branches: list[Tip]
    leaf_id: str | None
    next_cursor: str | None = None


async def list_(connection: Connection, params: BranchListParams) -> BranchListResult:
    """The ends of all branches, with what each has for itself."""
    view = await connection.host.view(params.which)
    tips = view.tree.tips()
    start = page_start(params.cursor)
    wanted = tips[start : start + max(1, min(params.limit, 500))]
    # Nothing visible hangs below a tip, so of those on the path it is the last step there.
    here = view.tree.visible(view.leaf_row)
    told = (_tip(view.tree, branch_at(view.tree, row), row == here) for row in wanted)
    page = fitting(connection, told)
    end = start + len(page)
    return BranchListResult(
        branches=page,
        leaf_id=view.tree.id_or_none(view.leaf_row),
        next_cursor=str(end) if end < len(tips) else None,
    )


def _tip(tree: Tree, branch: Branch, current: bool) -> Tip:
    entry = tree.entry(branch.tip_row)
    return Tip(
        leaf_id=entry.id,
        forked_from=tree.id_or_none(branch.fork_row),
        size=branch.size,
        timestamp=entry.timestamp,
        text=branch.text,
        label=shown_name(tree.label_of(entry.id)),
        files=_files(branch.files),
        current=current,
    )


def _files(files: branches.FilesTouched) -> Files:
    return Files(read=files.read, modified=files.modified, complete=files.complete)


class BranchCompareParams(StoredParams, frozen=True, kw_only=True):
    """Two leaves; the first is the session's own unless it is named."""

    leaf_id: str | None | UnsetType = UNSET
    other_id: str | None


class Side(Result, frozen=True, kw_only=True):
    """What one side has and the other has not."""

    leaf_id: str | None
    count: int
    entry_ids: list[str]
    """Oldest first; the newest thousand when there are more."""
    text: str
    files: Files


class BranchCompareResult(Result, frozen=True, kw_only=True):
    """Where two leaves part, and what each has for itself."""

    common_ancestor: str | None
    leaf: Side
    other: Side


async def compare(connection: Connection, params: BranchCompareParams) -> BranchCompareResult:
    """What two leaves share and what each has for itself."""
    view = await connection.host.view(params.which)
    one = leaf_of(view, params.leaf_id)
    other = view.tree.row_or_root(params.other_id)
    ancestor = view.tree.common_ancestor(one, other)
    return BranchCompareResult(
        common_ancestor=view.tree.id_or_none(ancestor),
        leaf=_side(view.tree, one, ancestor),
        other=_side(view.tree, other, ancestor),
    )


def _side(tree: Tree, row: int, ancestor: int) -> Side:
    rows = segment(tree, row, ancestor)
    return Side(
        leaf_id=tree.id_or_none(row),
        count=len(rows),
        entry_ids=[tree.heads.id_of(each) for each in reversed(rows[:IDS_TOLD_MAX])],
        text=branches.last_words(tree, rows),
        files=_files(branches.files_touched(tree, rows)),
    )


class ForkPoint(Result, frozen=True, kw_only=True):
    """A user message to fork before."""

    entry_id: str
    text: str


class ForkPointsParams(StoredParams, frozen=True, kw_only=True):
    """Which page of the fork points."""

    cursor: str | None = None
    limit: int = 500


class ForkPointsResult(Result, frozen=True, kw_only=True):
    """User messages of every branch, in file order."""

    points: list[ForkPoint]
    next_cursor: str | None = None


async def points(connection: Connection, params: ForkPointsParams) -> ForkPointsResult:
    """User messages of every branch that a fork may start before."""
    view = await connection.host.view(params.which)
    start = page_start(params.cursor)
    limit = max(1, min(params.limit, 5000))
    found: list[ForkPoint] = []
    is_more = False
    for place, (row, text) in enumerate(fork_points(view.tree)):
        if place >= start + limit:
            is_more = True
            break
        if place >= start:
            found.append(ForkPoint(entry_id=view.tree.heads.id_of(row), text=text[:2000]))
    page = fitting(connection, found)
    is_more = is_more or len(page) < len(found)
    return ForkPointsResult(points=page, next_cursor=str(start + len(page)) if is_more else None)


class CopyParams(MoveParams, frozen=True, kw_only=True):
    """A new session out of a path of this one."""

    activate: bool = True
    """Whether it replaces the runtime it comes from; else both live."""
    cwd: str | None = None
    """Another folder for it; its header then names that one."""
    new_session_id: str | None = None
    follow: bool = True


class SessionForkParams(CopyParams, frozen=True, kw_only=True):
    """Where to fork."""

    entry_id: str
    position: Position = "before"
    """`before` a user message, or `at` any entry."""
    worktree: bool = False
    """Make it a git work tree of its own to stand in, instead of `cwd`."""


class SessionCloneParams(CopyParams, frozen=True, kw_only=True):
    """A clone of the active path."""


async def fork(connection: Connection, params: SessionForkParams) -> CopiedState:
    """Make a session that ends before a user message, or at an entry."""
    source = _moved(connection, params)
    copying = _copying(params, "fork", params.entry_id, params.position, params.worktree)
    copied = await connection.host.copy(source, copying)
    return _copied_state(connection, copied, params.follow)


async def clone(connection: Connection, params: SessionCloneParams) -> CopiedState:
    """Make a session that ends where this one's leaf stands."""
    source = _moved(connection, params)
    copied = await connection.host.copy(source, _copying(params, "clone", None, "at"))
    return _copied_state(connection, copied, params.follow)


def _copying(
    params: CopyParams,
    reason: Literal["fork", "clone"],
    entry_id: str | None,
    position: Position,
    worktree: bool = False,
) -> Copying:
    return Copying(
        reason=reason,
        entry_id=entry_id,
        position=position,
        cwd=params.cwd,
        new_session_id=params.new_session_id,
        activate=params.activate,
        worktree=worktree,
    )


def _copied_state(connection: Connection, copied: Copied, follow: bool) -> CopiedState:
    subscription_id = connection.hear(copied.session, follow)
    fields = connection.state_fields(copied.session, subscription_id)
    draft, is_truncated = readable(connection, copied.draft)
    return CopiedState(**fields, draft=draft, draft_truncated=is_truncated)


METHODS = (
    Method("branch/list", "The ends of all branches.", BranchListParams, BranchListResult, list_),
    Method(
        "branch/navigate",
        "Move the leaf inside its session.",
        BranchNavigateParams,
        BranchNavigateResult,
        navigate_,
    ),
    Method(
        "branch/compare",
        "What two leaves share and what each has.",
        BranchCompareParams,
        BranchCompareResult,
        compare,
    ),
    Method(
        "branch/summarize",
        "Tell of another branch on this one.",
        BranchSummarizeParams,
        BranchSummarizeResult,
        summarize,
    ),
    Method(
        "branch/bring",
        "Bring over what another branch concluded.",
        BranchBringParams,
        BranchBringResult,
        bring,
    ),
    Method("branch/label", "Label an entry.", BranchLabelParams, BranchLabelResult, label),
    Method(
        "branch/forkPoints",
        "User messages to fork before.",
        ForkPointsParams,
        ForkPointsResult,
        points,
    ),
    Method(
        "session/fork",
        "A new session that ends before a user message, or at an entry.",
        SessionForkParams,
        CopiedState,
        fork,
        brings=lambda params: params.new_session_id,
    ),
    Method(
        "session/clone",
        "A new session that ends at the leaf.",
        SessionCloneParams,
        CopiedState,
        clone,
        brings=lambda params: params.new_session_id,
    ),
)
