"""Words for the model: accepted, queued or refused, and runs stopped and waited for.

Accepting is one step without a wait in it, so of two prompts that arrive together one starts and
the other is told so.
"""

from collections.abc import Sequence
from typing import Literal

import anyio.abc
import msgspec

from pi_rpc.core.errors import Busy, Invalid, Missing, Refused
from pi_rpc.core.events import Outcome, QueueMode
from pi_rpc.core.messages import Block, JsonObject, blocks_of, text_block, user_message
from pi_rpc.core.turns import QueueModes, QueueName, Stopped
from pi_rpc.session.live import LivePass, LiveRun
from pi_rpc.session.queues import Queued
from pi_rpc.session.running import run_until_settled
from pi_rpc.session.session import Session

WhenBusy = Literal["refuse", "steer", "followUp"]
Disposition = Literal["started", "queued", "handled"]

QUEUED_MAX = 1000
"""How many messages may wait in one queue."""


class Admission(msgspec.Struct, frozen=True):
    """What became of a prompt."""

    run_id: str | None
    disposition: Disposition
    item_id: str | None = None


def prompt(
    session: Session,
    tasks: anyio.abc.TaskGroup,
    text: str,
    images: Sequence[Block] = (),
    when_busy: WhenBusy = "refuse",
) -> Admission:
    """Start a run with these words, or do what `when_busy` says while one is live.

    Raises Busy, Locked, Invalid `empty_prompt`, Refused `no_model`, `no_key` or
    `drift_not_acknowledged`, Missing `model_not_found`; then nothing was recorded.
    """
    if session.live_pass is None or when_busy == "refuse":
        session.refuse_if_moving()
    session.refuse_unless_writable()
    if not text and not images:
        raise Invalid("empty_prompt", "a prompt needs a text or an image")
    if session.run is not None or session.live_pass is not None:
        if session.run is not None and when_busy == "refuse":
            raise Busy("run_in_progress", "a run is going on", runId=session.run.run_id)
        queue: QueueName = "steering" if when_busy == "steer" else "followUp"
        return enqueue(session, queue, text, images)
    message = user_message(text, images, session.around.clock.now_ms())
    return Admission(start_run(session, tasks, message).run_id, "started")


def start_run(session: Session, tasks: anyio.abc.TaskGroup, message: JsonObject) -> LiveRun:
    """Start a run with a message; nothing holds the session.

    Raises Refused `no_model`, `no_key` or `drift_not_acknowledged`, Missing `model_not_found`.
    """
    if session.chosen.model is None:
        raise Refused("no_model", "no model is chosen, and none is usable by itself")
    session.around.models.provider_of(*session.chosen.model)
    refuse_unless_acknowledged(session)
    return _start(session, tasks, message)


def _start(session: Session, tasks: anyio.abc.TaskGroup, message: JsonObject) -> LiveRun:
    run_id, makes_room = session.around.ids.unique_id(), session.chosen.compaction.enabled
    run = LiveRun(run_id, session.chosen.retry, makes_room=makes_room)
    session.run = run
    tasks.start_soon(run_until_settled, session, run, message)
    return run


def refuse_unless_acknowledged(session: Session) -> None:
    """Raise Refused `drift_not_acknowledged` where that is the rule and a drift was not noted."""
    if session.around.require_acknowledge and session.standing.has_drifted:
        status = session.environment.status
        text = "the files may not stand as the conversation has them; acknowledge that first"
        raise Refused("drift_not_acknowledged", text, status=status)


def start_from_queue(session: Session, tasks: anyio.abc.TaskGroup) -> LiveRun | None:
    """Start a run with the first words that wait, if any came while a summary was made."""
    if session.is_moving:
        return None
    came, session.has_words_waiting = session.has_words_waiting, False
    waiting = session.queues.steering or session.queues.follow_up
    if not came or not waiting or session.run or session.closed or session.chosen.model is None:
        return None
    first = waiting.pop(0)
    session.tell_queues()
    return _start(session, tasks, first.message)


def enqueue(
    session: Session, queue: QueueName, text: str, images: Sequence[Block] = ()
) -> Admission:
    """Let words wait for the next request, or for the end of the run.

    While idle, for the next run.
    """
    if session.live_pass is None:
        session.refuse_if_moving()
    session.refuse_unless_writable()
    if not text and not images:
        raise Invalid("empty_prompt", "a message needs a text or an image")
    message = user_message(text, images, session.around.clock.now_ms())
    item = wait_in_queue(session, queue, text, message)
    session.has_words_waiting = session.live_pass is not None
    return Admission(session.run.run_id if session.run else None, "queued", item.id)


def wait_in_queue(session: Session, queue: QueueName, text: str, message: JsonObject) -> Queued:
    """Let a message wait; `text` is what is told of it. Raises Refused `queue_full`."""
    waiting = session.queues.named(queue)
    if len(waiting) >= QUEUED_MAX:
        raise Refused("queue_full", "too many messages wait already", limit=QUEUED_MAX)
    item = Queued(session.around.ids.unique_id(), text, message)
    waiting.append(item)
    session.tell_queues()
    return item


def remove_queued(session: Session, item_id: str) -> Queued:
    """Take one waiting message back. Raises Missing `queue_item_not_found`."""
    for waiting in (session.queues.steering, session.queues.follow_up):
        for item in waiting:
            if item.id == item_id:
                waiting.remove(item)
                session.tell_queues()
                return item
    raise Missing("queue_item_not_found", "no such message waits", itemId=item_id)


def clear_queues(session: Session) -> tuple[list[Queued], list[Queued]]:
    """Take all waiting messages back: steering and follow-ups."""
    cleared = (list(session.queues.steering), list(session.queues.follow_up))
    session.queues.steering.clear()
    session.queues.follow_up.clear()
    if any(cleared):
        session.tell_queues()
    return cleared


def queues_object(session: Session) -> JsonObject:
    """Both queues as they are told."""
    return {
        "steering": [item.as_object() for item in session.queues.steering],
        "followUp": [item.as_object() for item in session.queues.follow_up],
    }


def edit_queued(session: Session, item_id: str, text: str | None, place: int | None) -> Queued:
    """Give a waiting message other words, another place in its queue, or both.

    Its images stay. Places count from 0; one beyond the end is the end. Raises Missing
    `queue_item_not_found`, Invalid `empty_prompt`.
    """
    for waiting in (session.queues.steering, session.queues.follow_up):
        for at, item in enumerate(waiting):
            if item.id != item_id:
                continue
            edited = item if text is None else _reworded(item, text)
            waiting.pop(at)
            waiting.insert(at if place is None else place, edited)
            session.tell_queues()
            return edited
    raise Missing("queue_item_not_found", "no such message waits", itemId=item_id)


def _reworded(item: Queued, text: str) -> Queued:
    images = [block for block in blocks_of(item.message) if block.get("type") == "image"]
    if not text and not images:
        raise Invalid("empty_prompt", "a message needs a text or an image")
    if item.message["role"] != "user":
        return Queued(item.id, text, item.message | {"content": [text_block(text), *images]})
    return Queued(item.id, text, user_message(text, images, item.message["timestamp"]))


def configure_queues(
    session: Session, steering: QueueMode | None, follow_up: QueueMode | None
) -> QueueModes:
    """Choose how many waiting messages go with one request; None leaves a mode as it is."""
    session.refuse_if_moving()
    modes = session.chosen.queue_modes
    session.chosen.queue_modes = QueueModes(
        steering or modes.steering, follow_up or modes.follow_up
    )
    if session.chosen.queue_modes != modes:
        session.tell_queues()
    return session.chosen.queue_modes


async def abort(session: Session, run_id: str | None = None) -> Outcome | None:
    """Stop the live run and the live summary, and wait until the session is quiet.

    What waits in the queues waits on.

    Returns the outcome, of the last run when it has already settled; None when none ever ran here.
    Raises Conflict `run_conflict` when another run is live than the one meant.
    """
    run = session.run_named(run_id)
    if run is not None:
        stop(run)
    await stop_pass(session)
    for looked_at in session.looked_at:
        looked_at.set()
    return await wait_until_settled(session, run_id)


async def stop_pass(session: Session) -> None:
    """Stop the summary that is asked for outside of runs, and wait until it has ended."""
    live = session.live_pass
    if live is not None:
        session.has_words_waiting = False
        live.stop.set()
        await live.ended.wait()


async def interrupt_summary(session: Session) -> None:
    """Let a summary that is made give way to a move that ends or replaces the runtime."""
    if session.live_pass is not None:
        await stop_pass(session)
        await session.wait_until_unmoved()


def stop(run: LiveRun) -> None:
    """Ask a run to end; asking again changes nothing."""
    if not run.stop.is_set():
        run.stop.set()
        run.machine.feed(Stopped())
        if run.pause is not None:
            run.pause.set()


async def abort_retry(session: Session, run_id: str | None = None) -> Outcome | None:
    """Give up the retry that is waited for, of a request or of a summary, and wait for the end.

    The outcome of its run once that has settled; None for a summary outside of runs. Raises Refused
    `no_retry` when none is waited for, Conflict `run_conflict` when another run is live than the
    one meant.
    """
    run = session.run_named(run_id)
    live = session.live_pass if run is None else run
    if live is None or live.pause is None:
        raise Refused("no_retry", "no retry is being waited for")
    live.pause.set()
    if isinstance(live, LivePass):
        await live.ended.wait()
        return None
    return await wait_until_settled(session, live.run_id)


async def wait_until_settled(session: Session, run_id: str | None = None) -> Outcome | None:
    """The outcome of the live run once it is settled, or of the last one.

    Raises Conflict `run_conflict` when another run is live than the one meant.
    """
    run = session.run_named(run_id) or session.last_run
    if run is None:
        return None
    await run.settled.wait()
    return run.outcome
