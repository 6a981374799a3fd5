"""Compaction: what it would do, doing it, and how a session does it by itself; pins."""

import msgspec
from msgspec import UNSET, UnsetType

from pi_rpc.core.compaction import CompactionPlan, plan_compaction
from pi_rpc.core.errors import Invalid, Refused
from pi_rpc.core.events import Environment
from pi_rpc.core.file_lists import FileLists
from pi_rpc.core.policy import POLICIES
from pi_rpc.core.projection import Projection, project
from pi_rpc.core.recalling import FilesCheck, Restated
from pi_rpc.core.summarised_files import files_of
from pi_rpc.core.thresholds import CompactionSettings
from pi_rpc.core.verifying import Checked, Finding, PinCheck
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.contexts import PolicyName, limits_at, window_of
from pi_rpc.frontends.native.histories import leaf_of
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import (
    JsonObject,
    MoveParams,
    Result,
    SessionParams,
    StoredParams,
)
from pi_rpc.session.compacting import Compacted, limits_of
from pi_rpc.session.compacting import window_of as session_window
from pi_rpc.session.condensing import (
    compact,
    configure,
    pin_entry,
    pin_words,
    refusal_to_compact,
)
from pi_rpc.session.moments import in_moments
from pi_rpc.session.prompting import start_from_queue
from pi_rpc.session.reading import View
from pi_rpc.session.undoing import undo_compaction
from pi_rpc.session.verifying import Verified, ask_to_restate, verify_summary


class CompactPreviewParams(StoredParams, frozen=True, kw_only=True):
    """What to plan; nothing is written."""

    leaf_id: str | None | UnsetType = UNSET
    """The session's own leaf unless it is named."""
    keep_recent_tokens: int | None = None
    """Instead of what the settings say."""
    policy: PolicyName = "default"
    """`pi3` cuts where Pi would."""
    with_files: bool = True
    """False leaves out the files: to find them, all that is summarised must be read."""


class PlannedFiles(Result, frozen=True, kw_only=True):
    """Paths that calls named; calls that failed do not count."""

    read: list[str]
    modified: list[str]


class CompactPreviewResult(Result, frozen=True, kw_only=True):
    """What a compaction would do; entries that say nothing are in none of the lists."""

    leaf_id: str | None
    first_kept_entry_id: str | None
    """Null when there is nothing to do; `reason` says why."""
    reason: str | None = None
    """already_compacted or nothing_to_compact."""
    is_split_turn: bool
    """Whether what is kept begins inside a turn."""
    tokens_before: int
    tokens_after: int
    """Estimated, without the summary, which is not known yet."""
    keep_recent_tokens: int
    """The budget that was used."""
    messages_to_summarize: list[str]
    turn_prefix: list[str]
    kept: list[str]
    files: PlannedFiles | None = None
    """Left out when it was not wanted."""
    previous_compaction_id: str | None = None
    window: int | None = None
    policy: str


async def preview(connection: Connection, params: CompactPreviewParams) -> CompactPreviewResult:
    """The plan of a compaction: the cut, what is summarised, what is kept. Writes nothing."""
    if params.keep_recent_tokens is not None and params.keep_recent_tokens < 0:
        raise Invalid("bad_compaction_settings", "keepRecentTokens must be 0 or more")
    view = await connection.host.view(params.which)
    projection = _projection(view, params)
    keep = params.keep_recent_tokens
    if keep is None:
        keep = limits_at(connection, view).keep_recent_tokens
    window = window_of(connection, view)
    plan = plan_compaction(projection, keep)
    if plan is None:
        return _nothing_to_do(projection, keep, window)
    # The session may go on while the files are looked for: all else is told of the same moment.
    planned = CompactPreviewResult(
        leaf_id=view.tree.id_or_none(plan.leaf_row),
        first_kept_entry_id=plan.first_kept_id,
        is_split_turn=plan.is_split_turn,
        tokens_before=plan.tokens_before,
        tokens_after=plan.system_tokens + plan.kept_tokens,
        keep_recent_tokens=keep,
        messages_to_summarize=_ids(plan, plan.history),
        turn_prefix=_ids(plan, plan.prefix),
        kept=_ids(plan, plan.kept),
        previous_compaction_id=plan.previous_id,
        window=window,
        policy=projection.policy.id,
    )
    if not params.with_files:
        return planned
    files = await in_moments(files_of(plan, counts_failed=params.policy == "pi3"))
    return msgspec.structs.replace(planned, files=_files(files))


def _projection(view: View, params: CompactPreviewParams) -> Projection:
    policy = POLICIES[params.policy]
    leaf_row = leaf_of(view, params.leaf_id)
    if leaf_row == view.projection.leaf_row and view.projection.policy == policy:
        return view.projection
    return project(view.tree, leaf_row, policy)


def _ids(plan: CompactionPlan, rows: list[int]) -> list[str]:
    return plan.projection.tree.heads.ids_of(plan.speaking(rows))


def _files(files: FileLists) -> PlannedFiles:
    return PlannedFiles(read=files.read, modified=files.modified)


def _nothing_to_do(projection: Projection, keep: int, window: int | None) -> CompactPreviewResult:
    tree, tokens = projection.tree, projection.tokens().total
    selection = projection.selection
    rows = selection.rows[1:] if selection.compaction_row in selection.rows else selection.rows
    return CompactPreviewResult(
        leaf_id=tree.id_or_none(projection.leaf_row),
        first_kept_entry_id=None,
        reason=refusal_to_compact(projection).reason,
        is_split_turn=False,
        tokens_before=tokens,
        tokens_after=tokens,
        keep_recent_tokens=keep,
        messages_to_summarize=[],
        turn_prefix=[],
        kept=[tree.heads.id_of(row) for row in rows if projection.messages_of(row)],
        files=PlannedFiles(read=[], modified=[]),
        previous_compaction_id=tree.id_or_none(selection.compaction_row),
        window=window,
        policy=projection.policy.id,
    )


class CompactRunParams(SessionParams, frozen=True, kw_only=True):
    """A compaction to make now."""

    instructions: str | None = None
    """What the summary is to look at above all."""


class CompactRunResult(Result, frozen=True, kw_only=True):
    """The compaction that was stored."""

    entry_id: str
    summary: str
    first_kept_entry_id: str
    tokens_before: int
    tokens_after: int
    usage: JsonObject | None = None
    details: JsonObject
    effective: bool
    """False when it freed less than a tenth of the context."""
    missing_sections: list[str]
    """Headings the model left out of its notes."""


async def run(connection: Connection, params: CompactRunParams) -> CompactRunResult:
    """Summarise what is old and keep what is new; a live run is stopped first."""
    session = connection.host.session(params.session_id)
    return _run_result(await compact(session, connection.host.tasks, params.instructions or ""))


def _run_result(made: Compacted) -> CompactRunResult:
    return msgspec.convert(made, CompactRunResult, from_attributes=True)


class CompactConfigureParams(SessionParams, frozen=True, kw_only=True):
    """How this runtime compacts by itself; what is left out stays as it is."""

    enabled: bool | None = None
    reserve_tokens: int | None = None
    """Tokens kept free for the answer."""
    keep_recent_tokens: int | None = None
    """The newest tokens that are kept as they are."""


class CompactConfigureResult(Result, frozen=True, kw_only=True):
    """What holds now."""

    enabled: bool
    reserve_tokens: int
    keep_recent_tokens: int
    effective_reserve_tokens: int
    """Fitted into the model's window."""
    effective_keep_recent_tokens: int
    window: int | None = None
    """Left out when unknown: then nothing is compacted by itself."""


def configure_(connection: Connection, params: CompactConfigureParams) -> CompactConfigureResult:
    """Change how this runtime compacts by itself; holds until it is closed."""
    session = connection.host.session(params.session_id)
    settings: CompactionSettings = configure(
        session, params.enabled, params.reserve_tokens, params.keep_recent_tokens
    )
    provider, model_id = session.chosen.model or ("", "")
    limits, fitted = settings.limits_for(provider, model_id), limits_of(session)
    return CompactConfigureResult(
        enabled=settings.enabled,
        reserve_tokens=limits.reserve_tokens,
        keep_recent_tokens=limits.keep_recent_tokens,
        effective_reserve_tokens=fitted.reserve_tokens,
        effective_keep_recent_tokens=fitted.keep_recent_tokens,
        window=session_window(session),
    )


class ContextPinParams(SessionParams, frozen=True, kw_only=True):
    """An entry of the path to pin, or words; one of the two."""

    entry_id: str | None = None
    text: str | None = None
    pinned: bool = True
    """False lets an entry go."""


class ContextPinResult(Result, frozen=True, kw_only=True):
    """What is pinned."""

    entry_id: str
    """The entry whose words are pinned; for words a new one."""
    pin_entry_id: str
    """The mark on the path."""
    leaf_id: str | None
    pinned: bool


async def pin(connection: Connection, params: ContextPinParams) -> ContextPinResult:
    """Let the words of an entry, or new ones, stand in every summary as they are."""
    session = connection.host.session(params.session_id)
    if (params.entry_id is None) == (params.text is None):
        raise Invalid("name_one", "give either entryId or text")
    if params.entry_id is not None:
        entry_id = params.entry_id
        mark_id = await pin_entry(session, entry_id, params.pinned)
    else:
        entry_id, mark_id = await pin_words(session, str(params.text))
    return ContextPinResult(
        entry_id=entry_id, pin_entry_id=mark_id, leaf_id=session.leaf_id, pinned=params.pinned
    )


class CompactUndoParams(MoveParams, frozen=True, kw_only=True):
    """The last compaction of the path."""


class CompactUndoResult(Result, frozen=True, kw_only=True):
    """Where the leaf stands without it."""

    compaction_id: str
    leaf_id: str | None
    copies: dict[str, str]
    """Entries that came after it, and the copy of each on the new branch."""
    tokens: int
    """Estimated size of the context now."""
    environment: Environment


async def undo(connection: Connection, params: CompactUndoParams) -> CompactUndoResult:
    """Go back to the context without the last compaction; what came after it is kept."""
    session = connection.host.session(params.session_id)
    if params.expected_leaf is not UNSET:
        session.refuse_unless_leaf(params.expected_leaf)
    undone = await undo_compaction(session)
    return msgspec.convert(undone, CompactUndoResult, from_attributes=True)


class CompactVerifyParams(StoredParams, frozen=True, kw_only=True):
    """Which summary to check; the last one of the path unless it is named."""

    compaction_id: str | None = None
    ask: bool = False
    """Whether the model of an open session is shown the summary alone and asked to restate it.

    Only while the session is quiet. Nothing of it is stored; `restated` bears what it used.
    """
    recompact: bool = False
    """Whether to take the compaction back and make it again with what is missing as its focus.

    Only of the last compaction of an open session, and only when there are findings.
    """


class OnDisk(Result, frozen=True, kw_only=True):
    """A file the summary names."""

    path: str
    exists: bool


class CompactVerifyResult(Result, frozen=True, kw_only=True):
    """The summary held against what it was made of."""

    compaction_id: str
    ok: bool
    """Whether there are no findings."""
    findings: list[Finding]
    summarized: list[str]
    missing_sections: list[str]
    files: PlannedFiles
    """What the summary is stored with."""
    evidence: PlannedFiles
    """What calls that succeeded name, earlier summaries included."""
    disk: list[OnDisk]
    """The files it names, as they stand in the working directory."""
    versions: FilesCheck
    """What the states of the files say, where the session's folder has them."""
    pins: list[PinCheck]
    constraints: list[Checked]
    unanswered: list[Checked]
    failures: list[Checked]
    next_steps: str
    restated: Restated | None = None
    recompacted: CompactRunResult | None = None


async def verify_(connection: Connection, params: CompactVerifyParams) -> CompactVerifyResult:
    """Hold a summary against the entries it stands for, the disk, and what a model makes of it."""
    view = await connection.host.view(params.which)
    verified = await verify_summary(view, params.compaction_id)
    restated = None
    if params.ask:
        restated, verified = await _restated(connection, view, verified)
    found = verified.checked
    recompacted = None
    if params.recompact and found.findings:
        session = connection.host.session(view.header.session_id)
        if found.compaction_id != _last_compaction_id(view):
            raise Refused("not_the_last", "only the last compaction of the path is made again")
        await undo_compaction(session)
        recompacted = _run_result(await compact(session, connection.host.tasks, found.focus))
    return CompactVerifyResult(
        compaction_id=found.compaction_id,
        ok=not found.findings,
        findings=found.findings,
        summarized=found.summarized,
        missing_sections=found.sections,
        files=_files(found.files),
        evidence=_files(found.evidence),
        disk=[OnDisk(path=path, exists=there) for path, there in verified.disk],
        versions=verified.versions,
        pins=found.pins,
        constraints=found.constraints,
        unanswered=found.unanswered,
        failures=found.failures,
        next_steps=found.next_steps,
        restated=restated,
        recompacted=recompacted,
    )


async def _restated(
    connection: Connection, view: View, verified: Verified
) -> tuple[Restated, Verified]:
    session = connection.host.session(view.header.session_id)
    try:
        with session.acting("verify"), session.summarising() as live:
            return await ask_to_restate(session, verified, live.stop)
    finally:
        # Words that came while the model was asked have waited for this.
        start_from_queue(session, connection.host.tasks)


def _last_compaction_id(view: View) -> str | None:
    return view.tree.id_or_none(view.projection.selection.compaction_row)


METHODS = (
    Method(
        "compact/preview",
        "What a compaction would do.",
        CompactPreviewParams,
        CompactPreviewResult,
        preview,
    ),
    Method("compact/run", "Compact now.", CompactRunParams, CompactRunResult, run),
    Method(
        "compact/configure",
        "How a session compacts by itself.",
        CompactConfigureParams,
        CompactConfigureResult,
        configure_,
    ),
    Method(
        "compact/verify",
        "Hold a summary against what it was made of.",
        CompactVerifyParams,
        CompactVerifyResult,
        verify_,
    ),
    Method("compact/undo", "Take a compaction back.", CompactUndoParams, CompactUndoResult, undo),
    Method(
        "context/pin", "Words that outlast compactions.", ContextPinParams, ContextPinResult, pin
    ),
)
