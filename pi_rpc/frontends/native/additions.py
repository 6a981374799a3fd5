"""What a client puts into a session beside the user's words."""

import msgspec

from pi_rpc.core.entries import AddedMessage
from pi_rpc.core.messages import Block, JsonObject
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import Result, SessionParams
from pi_rpc.session.adding import Deliver, add_message, append_entry


class ContextAddParams(SessionParams, frozen=True, kw_only=True):
    """A message for the model that is not the user's."""

    custom_type: str
    """Whose it is and what it means, `myHost.note`; names that begin with `pi_rpc.` are ours."""
    content: str | list[Block]
    """Text and images."""
    display: bool = True
    """Whether editors show it."""
    details: JsonObject | None = None
    """For programs; never sent to the model."""
    deliver: Deliver = "record"
    """During a run `record` waits for the turn's end, `steer` and `followUp` go to the queues;
    `nextPrompt` waits until the user prompts and goes behind those words."""
    triggers_run: bool = False
    """Whether it starts a run when none is live."""


class ContextAddResult(Result, frozen=True, kw_only=True):
    """What became of it."""

    disposition: str
    """recorded, started, queued, waiting."""
    entry_id: str | None = None
    run_id: str | None = None
    item_id: str | None = None
    """Of a queued message."""


async def add(connection: Connection, params: ContextAddParams) -> ContextAddResult:
    """Tell the model something beside the user's words; its role for the model is the user's."""
    session = connection.host.session(params.session_id)
    message = AddedMessage(params.custom_type, params.content, params.display, params.details)
    added = await add_message(
        session, connection.host.tasks, message, params.deliver, params.triggers_run
    )
    return ContextAddResult(**msgspec.structs.asdict(added))


class EntryAppendParams(SessionParams, frozen=True, kw_only=True):
    """State of a program, kept in the session's file."""

    custom_type: str
    """Names that begin with `pi_rpc.` are ours."""
    data: JsonObject | None = None


class EntryAppendResult(Result, frozen=True, kw_only=True):
    """Where it stands."""

    entry_id: str


async def append(connection: Connection, params: EntryAppendParams) -> EntryAppendResult:
    """Keep something on the path that the model never sees; branches have their own."""
    session = connection.host.session(params.session_id)
    entry_id = await append_entry(session, params.custom_type, params.data)
    return EntryAppendResult(entry_id=entry_id)


METHODS = (
    Method("context/add", "A message beside the user's.", ContextAddParams, ContextAddResult, add),
    Method(
        "entry/append",
        "State of a program, on the path.",
        EntryAppendParams,
        EntryAppendResult,
        append,
    ),
)
