"""The working directory: how it stands to the leaf, its versions, and files brought back."""

import msgspec
from msgspec import UNSET, UnsetType

from pi_rpc.core.bindings import Bindings, EffectKind
from pi_rpc.core.errors import Failure, Invalid
from pi_rpc.core.events import Environment, ScopeVerdict, VerdictStatus
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.tools import LeftRunning
from pi_rpc.core.ports.workspace import LeftOut, PathChangeKind
from pi_rpc.core.scopes import ScopeName, ScopeRestored, ScopeVersion
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.paging import page_start
from pi_rpc.frontends.native.shapes import Result, SessionParams, StoredParams
from pi_rpc.session.restoring import Restoring, restore
from pi_rpc.session.versioning import (
    acknowledge,
    bound_version,
    check,
    record_effect,
    still_running,
    take_snapshot,
    workspace_of,
)

VERSIONS_MAX = 1000
DIFFS_MAX = 5000


class BoundVersion(Result, frozen=True, kw_only=True):
    """A version and the entry that binds it."""

    version: str
    entry_id: str


class ActualVersion(Result, frozen=True, kw_only=True):
    """The state the files are in."""

    version: str
    left_out: list[LeftOut] = []
    """What it does not hold; size and time of these are watched."""


class WorkspaceStatusResult(Result, frozen=True, kw_only=True):
    """Whether the world goes along with the leaf, after a fresh look."""

    cwd: str
    leaf_id: str | None
    status: VerdictStatus
    scopes: dict[str, ScopeVerdict]
    drift: list[JsonObject] = []
    drift_count: int = 0
    abandoned_effects: list[JsonObject] = []
    environment: Environment
    bound: BoundVersion | None = None
    """The version that holds at the leaf."""
    actual: ActualVersion | None = None
    kind: str
    """How versions are kept: git, manifest, none."""
    unavailable: str | None = None
    """Why there are none, when there are none."""
    acknowledged: bool
    """False while a drift after a move was not taken note of."""
    processes: list[LeftRunning] | None = None
    """What this session's commands started and still runs, at most a hundred; null: not known."""


async def status(connection: Connection, params: SessionParams) -> WorkspaceStatusResult:
    """How the working directory stands against the leaf now."""
    session = connection.host.session(params.session_id)
    environment = await check(session)
    actual, unavailable = None, "no_versions"
    if session.workspace is not None:
        try:
            taken = await session.workspace.snapshot()
            actual = ActualVersion(version=taken.version, left_out=list(taken.left_out))
        except Failure as failure:
            unavailable = failure.reason
    bound = None if session.workspace is None else session.bindings.of_leaf(session.leaf_row)
    return WorkspaceStatusResult(
        cwd=str(session.cwd),
        leaf_id=session.leaf_id,
        status=environment.status,
        scopes=environment.scopes,
        drift=environment.drift,
        drift_count=environment.drift_count,
        abandoned_effects=environment.abandoned_effects,
        environment=environment,
        bound=None
        if bound is None or bound.version is None
        else BoundVersion(version=bound.version, entry_id=session.tree.heads.id_of(bound.row)),
        actual=actual,
        kind="none" if session.workspace is None else session.workspace.kind,
        unavailable=None if actual is not None else unavailable,
        acknowledged=not session.standing.has_drifted,
        processes=await still_running(session),
    )


class WorkspaceVersionsParams(StoredParams, frozen=True, kw_only=True):
    """Which page of the versions."""

    cursor: str | None = None
    limit: int = 200


class NamedVersion(Result, frozen=True, kw_only=True):
    """A version as an entry of the session names it."""

    entry_id: str
    at: str
    """start, before_tools, after_tools, manual; or restore, which binds nothing."""
    version: str
    leaf_id: str | None
    """The entry it holds for beside the one above it."""
    timestamp: str
    changes: list[str]
    """Paths this session's calls changed since the version before; at most a hundred."""
    change_count: int


class WorkspaceVersionsResult(Result, frozen=True, kw_only=True):
    """Versions in file order, a page at a time."""

    versions: list[NamedVersion]
    next_cursor: str | None = None


async def versions(
    connection: Connection, params: WorkspaceVersionsParams
) -> WorkspaceVersionsResult:
    """Every version the session's entries name, oldest first."""
    view = await connection.host.view(params.which)
    start = page_start(params.cursor)
    limit = max(1, min(params.limit, VERSIONS_MAX))
    named = [one for one in Bindings(view.tree).all() if one.version is not None]
    page = named[start : start + limit]
    return WorkspaceVersionsResult(
        versions=[
            NamedVersion(
                entry_id=view.tree.heads.id_of(one.row),
                at=one.at,
                version=str(one.version),
                leaf_id=view.tree.id_or_none(one.described),
                timestamp=view.tree.entry(one.row).timestamp,
                changes=[path for path, _, _ in one.changes[:100]],
                change_count=len(one.changes),
            )
            for one in page
        ],
        next_cursor=str(start + limit) if start + limit < len(named) else None,
    )


class WorkspaceSnapshotResult(Result, frozen=True, kw_only=True):
    """The state of the files has a name, and the leaf is bound to it."""

    version: str
    entry_id: str
    leaf_id: str | None
    left_out: list[LeftOut] = []
    environment: Environment


async def snapshot(connection: Connection, params: SessionParams) -> WorkspaceSnapshotResult:
    """Name the state of the files and bind it to the leaf."""
    session = connection.host.session(params.session_id)
    entry_id, taken = await take_snapshot(session)
    return WorkspaceSnapshotResult(
        version=taken.version,
        entry_id=entry_id,
        leaf_id=session.leaf_id,
        left_out=list(taken.left_out),
        environment=session.environment,
    )


class WorkspaceDiffParams(SessionParams, frozen=True, kw_only=True):
    """Two states: versions, or those bound to two entries.

    The first is the leaf's own unless it is named, the second the files as they are now.
    """

    version: str | None = None
    leaf_id: str | None | UnsetType = UNSET
    other_version: str | None = None
    other_leaf_id: str | None | UnsetType = UNSET
    patches: bool = False
    paths: list[str] | None = None


class DiffedFile(Result, frozen=True, kw_only=True):
    """How one file differs."""

    path: str
    change: PathChangeKind
    added: int | None
    """Lines; null where they cannot be counted."""
    removed: int | None
    patch: str | None = None
    """Only on request, and for text; files beyond a megabyte of patches have none."""


class WorkspaceDiffResult(Result, frozen=True, kw_only=True):
    """What differs from the first state to the second."""

    version: str
    other_version: str
    files: list[DiffedFile]
    """At most five thousand."""
    count: int
    added: int
    """Lines in all files."""
    removed: int


async def diff(connection: Connection, params: WorkspaceDiffParams) -> WorkspaceDiffResult:
    """What differs between two versions, two leaves, or a version and the files as they are."""
    session = connection.host.session(params.session_id)
    workspace = workspace_of(session)

    def named(version: str | None, leaf_id: str | None | UnsetType) -> str | None:
        if version is not None and leaf_id is not UNSET:
            raise Invalid("name_one", "give either a version or an entry")
        if leaf_id is UNSET:
            return version
        return bound_version(session, session.tree.row_or_root(leaf_id))

    one = named(params.version, params.leaf_id) or bound_version(session, session.leaf_row)
    other = named(params.other_version, params.other_leaf_id)
    other = other or (await workspace.snapshot()).version
    found = await workspace.diff(one, other, params.patches)
    if params.paths is not None:
        wanted = tuple(f"{path.rstrip('/')}/" for path in params.paths)
        found = [each for each in found if f"{each.path}/".startswith(wanted)]
    return WorkspaceDiffResult(
        version=one,
        other_version=other,
        files=[DiffedFile(**msgspec.structs.asdict(each)) for each in found[:DIFFS_MAX]],
        count=len(found),
        added=sum(each.added or 0 for each in found),
        removed=sum(each.removed or 0 for each in found),
    )


class WorkspaceRestoreParams(SessionParams, frozen=True, kw_only=True):
    """Which files to bring back, and to what."""

    version: str | None = None
    leaf_id: str | None = None
    """The version bound to this entry; with neither, the one bound to the leaf."""
    paths: list[str] | None = None
    """Only these, files or folders; then also files this session did not change."""
    dry_run: bool = False
    """Only say what would be done."""
    confirm: list[str] = []
    """Files to restore although they were changed since, or not by this session."""
    scopes: dict[ScopeName, ScopeVersion] | None = None
    """Versions that scopes of providers are to go to; files go along only when named too.

    Left out, each goes to its version at the entry, unless a version of files or paths are named.
    """


class NotRestored(Result, frozen=True, kw_only=True):
    """A path that differs and was not touched."""

    path: str
    reason: str


class WorkspaceRestoreResult(Result, frozen=True, kw_only=True):
    """What was restored, what was refused, and what nobody asked for."""

    restored: list[str]
    refused: list[NotRestored]
    left: list[NotRestored]
    version: str | None
    """Null where only scopes were meant."""
    safety_version: str | None
    """The state of the files before; restore to it to undo."""
    scopes: dict[str, ScopeRestored] = {}
    """What came of each scope of a provider."""
    dry_run: bool
    environment: Environment


async def restore_(
    connection: Connection, params: WorkspaceRestoreParams
) -> WorkspaceRestoreResult:
    """Bring files and scopes back to a version; the state before is kept, to go back to."""
    if params.version is not None and params.leaf_id is not None:
        raise Invalid("name_one", "give either a version or an entry")
    asked = Restoring(
        version=params.version,
        leaf_id=params.leaf_id,
        paths=params.paths,
        confirmed=params.confirm,
        dry_run=params.dry_run,
        scopes=params.scopes,
    )
    done = await restore(connection.host.session(params.session_id), asked)
    return WorkspaceRestoreResult(
        restored=list(done.restored),
        refused=[NotRestored(path=one.path, reason=one.reason) for one in done.refused],
        left=[NotRestored(path=one.path, reason=one.reason) for one in done.left],
        version=done.version,
        safety_version=done.safety_version,
        scopes={**done.scopes},
        dry_run=params.dry_run,
        environment=done.environment,
    )


class WorkspaceAcknowledgeResult(Result, frozen=True, kw_only=True):
    """How the world stands, of which somebody took note."""

    environment: Environment


async def acknowledge_(connection: Connection, params: SessionParams) -> WorkspaceAcknowledgeResult:
    """Take note of how things stand, and go on."""
    session = connection.host.session(params.session_id)
    await acknowledge(session)
    return WorkspaceAcknowledgeResult(environment=await check(session))


class WorkspaceRecordEffectParams(SessionParams, frozen=True, kw_only=True):
    """Something that was done beyond the files."""

    kind: EffectKind
    summary: str
    reversible: bool = False
    compensated: bool = False
    """It was made good, or never took effect."""
    effect_id: str | None = None
    """An effect recorded before, to say more of it; else a new one."""


class WorkspaceRecordEffectResult(Result, frozen=True, kw_only=True):
    """It is written down, or will be as soon as the calls of a run have their results."""

    effect_id: str
    entry_id: str | None
    """Null during a run."""
    leaf_id: str | None


async def record_effect_(
    connection: Connection, params: WorkspaceRecordEffectParams
) -> WorkspaceRecordEffectResult:
    """Write down what was done beyond the files, so that going back can tell of it."""
    session = connection.host.session(params.session_id)
    effect_id = params.effect_id or session.around.ids.unique_id()
    effect: JsonObject = {
        "id": effect_id,
        "kind": params.kind,
        "summary": params.summary,
        "reversible": params.reversible,
        "compensated": params.compensated,
    }
    entry_id = await record_effect(session, effect)
    return WorkspaceRecordEffectResult(
        effect_id=effect_id, entry_id=entry_id, leaf_id=session.leaf_id
    )


METHODS = (
    Method(
        "workspace/status",
        "How the files stand to the leaf.",
        SessionParams,
        WorkspaceStatusResult,
        status,
    ),
    Method(
        "workspace/versions",
        "Versions the session's entries name.",
        WorkspaceVersionsParams,
        WorkspaceVersionsResult,
        versions,
    ),
    Method(
        "workspace/snapshot",
        "Name the state of the files and bind it to the leaf.",
        SessionParams,
        WorkspaceSnapshotResult,
        snapshot,
    ),
    Method(
        "workspace/diff",
        "What differs between two states of the files.",
        WorkspaceDiffParams,
        WorkspaceDiffResult,
        diff,
    ),
    Method(
        "workspace/restore",
        "Bring files back to a version.",
        WorkspaceRestoreParams,
        WorkspaceRestoreResult,
        restore_,
    ),
    Method(
        "workspace/acknowledge",
        "Take note of how the files stand.",
        SessionParams,
        WorkspaceAcknowledgeResult,
        acknowledge_,
    ),
    Method(
        "workspace/recordEffect",
        "Write down what was done beyond the files.",
        WorkspaceRecordEffectParams,
        WorkspaceRecordEffectResult,
        record_effect_,
    ),
)
