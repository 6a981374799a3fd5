"""Messages beside the user's, and state of programs, put into a session by whoever takes part.

Promises
- A message never stands between a call and its result: during a run it is written when the turn is
  over, or goes with a request like the user's words.
- What waits for a prompt goes behind it, and is lost by no run that could not be stored.
"""

from typing import Literal

import anyio.abc
import msgspec

from pi_rpc.core.drafts import check_added, check_custom_type
from pi_rpc.core.entries import AddedMessage, custom, custom_message
from pi_rpc.core.errors import Invalid, Refused
from pi_rpc.core.events import MessageEnded, MessageStarted
from pi_rpc.core.images import CONTENT_CHARS_MAX
from pi_rpc.core.messages import JsonObject, text_of
from pi_rpc.core.turns import QueueName
from pi_rpc.session.prompting import QUEUED_MAX, start_run, wait_in_queue
from pi_rpc.session.session import Session

Deliver = Literal["record", "steer", "followUp", "nextPrompt"]
"""When the model hears of it: at the next request, as steering, when the run would end, or with the
next prompt."""


class Added(msgspec.Struct, frozen=True):
    """What became of a message."""

    disposition: Literal["recorded", "started", "queued", "waiting"]
    entry_id: str | None = None
    run_id: str | None = None
    item_id: str | None = None


async def add_message(
    session: Session,
    tasks: anyio.abc.TaskGroup,
    added: AddedMessage,
    deliver: Deliver = "record",
    triggers_run: bool = False,
) -> Added:
    """Tell the model something beside the user's words.

    While idle it is stored at once, or starts a run if it triggers one. Raises Invalid `bad_draft`
    and `reserved_type`, Busy during a move, Refused `queue_full`, Locked, and where it starts a run
    what a prompt raises; then nothing was stored.
    """
    check_added(added)
    session.refuse_if_moving()
    session.refuse_unless_writable()
    message = added.as_message(session.around.clock.now_ms())
    if deliver == "nextPrompt":
        _let_wait(session.queues.next_prompt, message)
        return Added("waiting")
    if session.run is not None:
        run_id = session.run.run_id
        if deliver == "record":
            _let_wait(session.queues.after_turn, message)
            return Added("waiting", run_id=run_id)
        queue: QueueName = "steering" if deliver == "steer" else "followUp"
        item = wait_in_queue(session, queue, text_of(message), message)
        return Added("queued", run_id=run_id, item_id=item.id)
    if triggers_run:
        return Added("started", run_id=start_run(session, tasks, message).run_id)
    [entry] = await session.record(custom_message(added), durable=True)
    session.tell(MessageStarted("custom"))
    session.tell(MessageEnded(entry.id, message), weight=len(str(message)))
    return Added("recorded", entry.id)


def _let_wait(waiting: list[JsonObject], message: JsonObject) -> None:
    if len(waiting) >= QUEUED_MAX:
        raise Refused("queue_full", "too many messages wait already", limit=QUEUED_MAX)
    waiting.append(message)


async def append_entry(session: Session, custom_type: str, data: JsonObject | None) -> str:
    """Keep state of a program on the path, never shown to the model; the entry's id.

    Raises Invalid `bad_draft` and `reserved_type`, Busy during a move, Locked.
    """
    check_custom_type(custom_type)
    session.refuse_if_moving()
    if data is not None and len(msgspec.json.encode(data)) > CONTENT_CHARS_MAX:
        raise Invalid("bad_draft", f"more than {CONTENT_CHARS_MAX} bytes of data")
    [entry] = await session.record(custom(custom_type, data), durable=True)
    return entry.id
