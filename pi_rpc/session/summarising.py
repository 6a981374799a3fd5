"""Summaries of branches: what came of a route that is left, told where the conversation goes on.

Promises
- Nothing is written before the summary is whole; a stop or a failure leaves the leaf where it was.
- A branch on which nothing was told to a model gives no entry, unless a hook says something of it.
"""

import msgspec

from pi_rpc.agent.stopping import Stop
from pi_rpc.agent.summarising import Summarised
from pi_rpc.core.branches import conclusion, last_answer, segment
from pi_rpc.core.entries import Body, Kind
from pi_rpc.core.errors import Invalid, Refused
from pi_rpc.core.file_lists import FileCount, FileLists
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.projection import project
from pi_rpc.core.summary import BRANCH_PREAMBLE, OWN_DETAILS, own_details, stored_summary
from pi_rpc.core.summary_rounds import WINDOW_WHEN_UNKNOWN, Room, branch_rounds
from pi_rpc.core.tokens import usage_total
from pi_rpc.core.told import Told
from pi_rpc.core.tree import ROOT
from pi_rpc.session.compacting import ask_for_summary, limits_of, window_of
from pi_rpc.session.moments import in_moments
from pi_rpc.session.session import Session

FROM_ROOT = "root"
"""What a summary names as its origin when the leaf stood before every entry."""


class SummaryWish(msgspec.Struct, frozen=True):
    """How a branch is to be summarised."""

    focus: str = ""
    replaces_instructions: bool = False
    """Whether the focus is all that is asked."""


async def branch_summary(
    session: Session,
    from_row: int,
    ancestor_row: int,
    wish: SummaryWish,
    stop: Stop,
    *,
    given: str | None = None,
) -> Body | None:
    """The entry that tells what came of a branch below its ancestor; None when nothing was said.

    With `given` a hook has said it, and no model is asked, even of a branch where nothing was said.
    Raises Refused `no_model`, Stopped `aborted`, Outside `summary_failed`.
    """
    if session.chosen.model is None and given is None:
        raise Refused("no_model", "no model is chosen, and none is usable by itself")
    own_rows = set(segment(session.tree, from_row, ancestor_row))
    projection = project(session.tree, from_row, session.around.policy)
    told = Told(projection, [row for row in projection.selection.rows if row in own_rows])
    window = window_of(session)
    room = Room(window, limits_of(session).reserve_tokens, session.around.policy)
    budget = (window or WINDOW_WHEN_UNKNOWN) - session.chosen.compaction.branch_reserve_tokens
    if given is not None:
        made = Summarised(given, None, 0)
    else:
        rounds = await in_moments(
            branch_rounds(told, room, budget, wish.focus, wish.replaces_instructions)
        )
        if rounds is None:
            return None
        made = await ask_for_summary(session, rounds, stop)
    files = _files_of_summaries(session, own_rows).with_more(await in_moments(told.files()))
    own: JsonObject = {
        "v": 1,
        "notesLength": len(BRANCH_PREAMBLE) + len(made.text),
        "requests": made.requests,
        "policy": session.around.policy.id,
    }
    if wish.focus:
        own["instructions"] = wish.focus
    fields: JsonObject = {
        "fromId": FROM_ROOT if from_row == ROOT else session.tree.heads.id_of(from_row),
        "summary": stored_summary(made.text, (), files, BRANCH_PREAMBLE),
        "details": files.as_details() | {OWN_DETAILS: own},
    }
    if made.usage is not None and usage_total({"usage": made.usage}):
        fields["usage"] = made.usage
    return Body("branch_summary", fields | {"fromHook": given is not None})


def _files_of_summaries(session: Session, own_rows: set[int]) -> FileLists:
    files = FileCount()
    kinds = session.tree.heads.kinds
    for row in own_rows:
        if kinds[row] in (Kind.BRANCH_SUMMARY, Kind.COMPACTION):
            summary = session.tree.entry(row).object
            if summary.get("fromHook") is not True or own_details(summary):
                files.add_details(summary.get("details"))
    return files.lists()


async def summarize_branch(session: Session, leaf_id: str, wish: SummaryWish) -> str | None:
    """Bring over what came of another branch, without going there; the id of the new entry.

    None when nothing was said on it. Raises Missing `entry_not_found`, Refused `on_path` when the
    entry lies on the path already, Busy, and what `branch_summary` does.
    """
    with session.acting("summarize"), session.summarising() as live:
        session.refuse_unless_writable()
        from_row = session.tree.row_of(leaf_id)
        ancestor = session.tree.common_ancestor(session.leaf_row, from_row)
        if ancestor == from_row:
            raise Refused("on_path", "the entry is on the path already", entryId=leaf_id)
        body = await branch_summary(session, from_row, ancestor, wish, live.stop)
        if body is None:
            return None
        [entry] = await session.record(body, durable=True)
        return entry.id


async def bring_conclusion(session: Session, leaf_id: str, text: str | None = None) -> str:
    """Tell on this branch what another one came to, in given words or in its last answer.

    The id of the new entry. Asks no model. Raises Missing `entry_not_found`, Invalid
    `empty_prompt`, Refused `on_path` when the entry lies on the path already and
    `nothing_to_bring` when no answer is on that branch, Busy during a run or a move.
    """
    session.refuse_unless_quiet()
    session.refuse_unless_writable()
    if text is not None and not text.strip():
        raise Invalid("empty_prompt", "words to bring over are needed")
    tree = session.tree
    from_row = tree.row_of(leaf_id)
    ancestor = tree.common_ancestor(session.leaf_row, from_row)
    if ancestor == from_row:
        raise Refused("on_path", "the entry is on the path already", entryId=leaf_id)
    words = text or last_answer(tree, segment(tree, from_row, ancestor))
    if not words:
        raise Refused("nothing_to_bring", "nothing was answered on that branch", entryId=leaf_id)
    [entry] = await session.record(conclusion(words, leaf_id), durable=True)
    return entry.id
