"""A summary checked against everything that can be asked: history, disk, file states, the model.

Promises
- Nothing is written, whoever is asked; what the model used is in the report alone.
- The model is shown the stored summary and nothing else.
"""

import msgspec

from pi_rpc.agent.stopping import Stop
from pi_rpc.core.errors import Failure
from pi_rpc.core.recalling import (
    CHANGED_TOLD_MAX,
    FilesCheck,
    Restated,
    changes_against,
    restated,
    span_of,
)
from pi_rpc.core.summary import Round
from pi_rpc.core.summary_rounds import SummaryRounds
from pi_rpc.core.verifying import Finding, Verification, verify
from pi_rpc.session.compacting import ask_for_summary
from pi_rpc.session.folders import on_disk
from pi_rpc.session.moments import in_moments
from pi_rpc.session.reading import View
from pi_rpc.session.session import Session


class Verified(msgspec.Struct, frozen=True):
    """The report, with whatever was found anywhere."""

    checked: Verification
    disk: list[tuple[str, bool]]
    """The files it names, and whether each is there."""
    versions: FilesCheck


async def verify_summary(view: View, compaction_id: str | None) -> Verified:
    """Hold a summary of a path against history, disk and the states of files. Raises as `verify`.

    States are compared for open sessions alone, between those bound to the path.
    """
    checked = await in_moments(
        verify(view.tree, view.leaf_row, view.projection.policy, compaction_id)
    )
    cwd = str(view.live.cwd) if view.live is not None else view.header.cwd
    files = checked.files
    versions, found = await _versions(view.live, checked, cwd)
    disk = await on_disk(cwd, [*files.read, *files.modified])
    return Verified(checked.with_more(found), disk, versions)


async def _versions(
    session: Session | None, checked: Verification, cwd: str
) -> tuple[FilesCheck, list[Finding]]:
    if session is None:
        return FilesCheck("unknown", "not_open"), []
    if session.workspace is None or session.workspace.kind == "none":
        return FilesCheck("unknown", "no_versions"), []
    compaction_row = session.tree.row_of(checked.compaction_id)
    span = span_of(session.tree, session.bindings, compaction_row)
    if span is None:
        return FilesCheck("unknown", "not_bound"), []
    try:
        changes = await session.workspace.compare(span.one, span.other)
    except Failure as failure:
        reason = failure.reason
        return FilesCheck("unknown", reason, span.one, span.other), []
    paths = [change.path for change in changes]
    told = FilesCheck("compared", None, span.one, span.other, paths[:CHANGED_TOLD_MAX], len(paths))
    return told, changes_against(checked.files.modified, paths, cwd, span.is_whole)


async def ask_to_restate(
    session: Session, verified: Verified, stop: Stop
) -> tuple[Restated, Verified]:
    """Let the model restate what a summary says; the report with where that differs.

    Raises Refused `no_model`, Stopped `aborted`, Outside `summary_failed`.
    """
    stored = session.tree.entry(session.tree.row_of(verified.checked.compaction_id)).object
    rounds = SummaryRounds(str(stored.get("summary")), [Round("recall", ())], ())
    made = await ask_for_summary(session, rounds, stop)
    told, found = restated(verified.checked, stored, made.text)
    checked = verified.checked.with_more(found)
    return msgspec.structs.replace(told, usage=made.usage), msgspec.structs.replace(
        verified, checked=checked
    )
