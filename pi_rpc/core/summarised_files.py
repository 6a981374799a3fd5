"""Which files are named by what a compaction summarises, and by the summaries it stands on."""

from collections.abc import Generator

from pi_rpc.core.compaction import CompactionPlan
from pi_rpc.core.entries import Kind
from pi_rpc.core.file_lists import FileCount, FileLists
from pi_rpc.core.summary import own_details
from pi_rpc.core.tree import ROOT


def files_of(plan: CompactionPlan, counts_failed: bool = False) -> Generator[None, None, FileLists]:
    """The files of a plan; all that is summarised is read for it, unless it was told already."""
    tree, count = plan.projection.tree, FileCount()
    if plan.previous_row != ROOT:
        previous = tree.entry(plan.previous_row).object
        # What a hook of ours summarised has our list of files; what another program's did, not.
        if previous.get("fromHook") is not True or own_details(previous):
            count.add_details(previous.get("details"))
    kinds = tree.heads.kinds
    for row in plan.history + plan.prefix:
        if kinds[row] == Kind.BRANCH_SUMMARY:
            summary = tree.entry(row).object
            if summary.get("fromHook") is not True:
                count.add_details(summary.get("details"))
    files = count.lists()
    for told in (plan.told_history, plan.told_prefix):
        files = files.with_more((yield from told.files(counts_failed)))
    return files
