"""What commands of the user did to the files while a run went on, bound with their results.

A result that has to wait is written when the run is over, below all that the run did. Only then can
the state that holds there be named; what the command changed was noted when it ended.
"""

from collections.abc import Iterator, Sequence

import anyio
import msgspec

from pi_rpc.core.bindings import Change, binding_body
from pi_rpc.core.errors import Failure
from pi_rpc.core.ports.workspace import PathChange
from pi_rpc.core.restoring import Own, own_changes
from pi_rpc.session.binding import CALLS_WAIT_S, note_equal, tell_failed
from pi_rpc.session.session import Session
from pi_rpc.session.standing import Untied


async def bind_after_commands(session: Session) -> None:
    """Their results are written at the leaf: bind the state there, and what they changed to it."""
    untied, session.standing.untied = session.standing.untied, []
    workspace = session.workspace
    if not untied or workspace is None:
        return
    try:
        # What waits for this is the end of a run.
        with anyio.move_on_after(CALLS_WAIT_S):
            taken = await workspace.snapshot()
            since = [await workspace.compare(one.after, taken.version) for one in untied]
            body = binding_body(
                "after_tools",
                session.leaf_id,
                workspace.kind,
                taken.version,
                [msgspec.to_builtins(one) for one in taken.left_out],
                before=untied[0].before,
                changes=list(_changes(untied, since, own_changes(session.bindings.all()))),
                folder=str(session.cwd),
            )
            await session.record(body)
            note_equal(session, taken)
    except Failure as failure:
        tell_failed(session, failure)


def _changes(
    untied: Sequence[Untied], since: Sequence[Sequence[PathChange]], own: dict[str, Own]
) -> Iterator[Change]:
    """Each path the commands touched: as it was before them, and as it is now."""
    touched: dict[str, Change] = {}
    for one, later in zip(untied, since, strict=True):
        now = {change.path: change.after for change in later}
        for change in one.changes:
            _, before, _ = touched.get(change.path, (change.path, change.before, None))
            touched[change.path] = change.path, before, now.get(change.path, change.after)
    for path, before, after in touched.values():
        if path in own and after in own[path].states:
            # The run has it as its own change already. Told as another, it would seem that somebody
            # else had been at it meanwhile; only that a command made the file is news.
            yield path, None if before is None else after, after
        elif before != after:
            yield path, before, after
