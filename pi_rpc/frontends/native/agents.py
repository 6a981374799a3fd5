"""Runs: prompted, steered, stopped, waited for; and the queues of what waits."""

from typing import Annotated

import msgspec

from pi_rpc.core.errors import Overfull, Stopped
from pi_rpc.core.events import Outcome, QueueMode
from pi_rpc.core.images import checked_image
from pi_rpc.core.messages import Block
from pi_rpc.core.turns import QueueName
from pi_rpc.frontends.native.connection import Connection, queues_of, queues_shape
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import QueueItem, Queues, Result, SessionParams
from pi_rpc.session import prompting, wording
from pi_rpc.session.hooking import Words
from pi_rpc.session.prompting import Admission, Disposition, WhenBusy
from pi_rpc.session.session import Session


class Image(msgspec.Struct, frozen=True, rename="camel"):
    """An image to go with a prompt."""

    data: str
    """Base64, at most 4.5 MiB of it."""
    mime_type: str
    """image/png, image/jpeg, image/gif or image/webp."""


class WordsParams(SessionParams, frozen=True, kw_only=True):
    """Words for the model."""

    text: str
    images: list[Image] = []
    expected_run_id: str | None = None
    """The run the caller believes to be live."""


class AgentPromptParams(WordsParams, frozen=True, kw_only=True):
    """A prompt."""

    when_busy: WhenBusy = "refuse"
    wait: bool = False
    """Whether the answer is held until the run has settled."""


class AgentPromptResult(Result, frozen=True, kw_only=True):
    """What became of the words."""

    run_id: str | None
    disposition: Disposition
    item_id: str | None = None
    """Of a queued message."""
    outcome: Outcome | None = None
    """When waited for."""


def prompt(connection: Connection, params: AgentPromptParams) -> object:
    """Start a run with these words, or do with them what `whenBusy` says."""
    session = connection.host.session(params.session_id)
    if connection.shutting_down:
        raise Stopped("shutting_down", "the daemon is shutting down")
    if params.expected_run_id is not None:
        session.run_named(params.expected_run_id)
    # A request that is turned away for want of room must not leave a run behind.
    if params.wait and not connection.outlet.has_room:
        raise Overfull("too_many_in_flight", "too many requests wait already")
    if wording.is_looked_at(session, params.text):
        return _looked_at(connection, session, params)
    words = Words(params.text, _blocks(params.images))
    admission = _prompted(connection, session, params, words)
    if params.wait and admission.run_id is not None:
        return _settled(session, admission)
    return _admitted(admission)


def _prompted(
    connection: Connection, session: Session, params: AgentPromptParams, words: Words
) -> Admission:
    tasks = connection.host.tasks
    return prompting.prompt(session, tasks, words.text, words.images, params.when_busy)


async def _looked_at(
    connection: Connection, session: Session, params: AgentPromptParams
) -> AgentPromptResult:
    tasks, images = connection.host.tasks, _blocks(params.images)
    async with wording.looked_at(session, tasks, params.text, images, "prompt") as words:
        if words is None:
            return AgentPromptResult(run_id=None, disposition="handled")
        admission = _prompted(connection, session, params, words)
    if params.wait and admission.run_id is not None:
        return await _settled(session, admission)
    return _admitted(admission)


def _blocks(images: list[Image]) -> list[Block]:
    return [checked_image(image.data, image.mime_type) for image in images]


def _admitted(admission: Admission, outcome: Outcome | None = None) -> AgentPromptResult:
    return AgentPromptResult(
        run_id=admission.run_id,
        disposition=admission.disposition,
        item_id=admission.item_id,
        outcome=outcome,
    )


async def _settled(session: Session, admission: Admission) -> AgentPromptResult:
    outcome = await prompting.wait_until_settled(session, admission.run_id)
    return _admitted(admission, outcome)


def steer(connection: Connection, params: WordsParams) -> object:
    """Let words go with the live run's next request; while idle they wait for the next run."""
    session = connection.host.session(params.session_id)
    if params.expected_run_id is not None:
        session.run_named(params.expected_run_id)
    return _enqueued(connection, session, params, "steering")


def follow_up(connection: Connection, params: WordsParams) -> object:
    """Let words wait until the live run would otherwise end."""
    session = connection.host.session(params.session_id)
    if params.expected_run_id is not None:
        session.run_named(params.expected_run_id)
    return _enqueued(connection, session, params, "followUp")


def _enqueued(
    connection: Connection, session: Session, params: WordsParams, queue: QueueName
) -> object:
    images = _blocks(params.images)
    if not wording.is_looked_at(session, params.text):
        return _admitted(prompting.enqueue(session, queue, params.text, images))

    async def look() -> AgentPromptResult:
        tasks = connection.host.tasks
        way: wording.Way = "steer" if queue == "steering" else "followUp"
        async with wording.looked_at(session, tasks, params.text, images, way) as words:
            if words is None:
                return AgentPromptResult(run_id=None, disposition="handled")
            return _admitted(prompting.enqueue(session, queue, words.text, words.images))

    return look()


class RunParams(SessionParams, frozen=True, kw_only=True):
    """A run; the live one, or the last, unless it is named."""

    run_id: str | None = None


class RunResult(Result, frozen=True, kw_only=True):
    """How it ended."""

    outcome: Outcome | None
    """Null when no run was ever live here, or it was no run's."""


async def abort(connection: Connection, params: RunParams) -> RunResult:
    """Stop the live run; answered when the session is quiet. Waiting messages wait on."""
    session = connection.host.session(params.session_id)
    return RunResult(outcome=await prompting.abort(session, params.run_id))


async def abort_retry(connection: Connection, params: RunParams) -> RunResult:
    """Give up the retry that is waited for, of a request or of a summary; answered at its end.

    A request's run has then failed. A summary's pass has; a run it was made in goes on.
    """
    session = connection.host.session(params.session_id)
    return RunResult(outcome=await prompting.abort_retry(session, params.run_id))


async def wait(connection: Connection, params: RunParams) -> RunResult:
    """Answered when the live run has settled; at once when none is live."""
    session = connection.host.session(params.session_id)
    return RunResult(outcome=await prompting.wait_until_settled(session, params.run_id))


def queue(connection: Connection, params: SessionParams) -> Queues:
    """What waits for the model."""
    session = connection.host.session(params.session_id)
    return queues_shape(connection, session)


class QueueConfigureParams(SessionParams, frozen=True, kw_only=True):
    """How many waiting messages go with one request; what is left out stays as it is."""

    steering_mode: QueueMode | None = None
    follow_up_mode: QueueMode | None = None


class QueueConfigureResult(Result, frozen=True, kw_only=True):
    """The modes as they are now."""

    steering_mode: QueueMode
    follow_up_mode: QueueMode


def configure(connection: Connection, params: QueueConfigureParams) -> QueueConfigureResult:
    """Choose how many waiting messages go with one request, in this session."""
    session = connection.host.session(params.session_id)
    modes = prompting.configure_queues(session, params.steering_mode, params.follow_up_mode)
    return QueueConfigureResult(steering_mode=modes.steering, follow_up_mode=modes.follow_up)


class QueueEditParams(SessionParams, frozen=True, kw_only=True):
    """Other words or another place for a waiting message; its id and its images stay."""

    item_id: str
    text: str | None = None
    position: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Place in its queue, from 0."""


def edit(connection: Connection, params: QueueEditParams) -> QueueItem:
    """Change a waiting message."""
    session = connection.host.session(params.session_id)
    item = prompting.edit_queued(session, params.item_id, params.text, params.position)
    return QueueItem(id=item.id, text=item.text)


class QueueRemoveParams(SessionParams, frozen=True, kw_only=True):
    """A waiting message to take back."""

    item_id: str


def remove(connection: Connection, params: QueueRemoveParams) -> QueueItem:
    """Take one waiting message back; its words are answered."""
    session = connection.host.session(params.session_id)
    item = prompting.remove_queued(session, params.item_id)
    return QueueItem(id=item.id, text=item.text)


def clear(connection: Connection, params: SessionParams) -> Queues:
    """Take all waiting messages back; their words are answered."""
    session = connection.host.session(params.session_id)
    return queues_of(connection, session, *prompting.clear_queues(session))


METHODS = (
    Method("agent/prompt", "Start a run.", AgentPromptParams, AgentPromptResult, prompt),
    Method("agent/steer", "Words for the next request.", WordsParams, AgentPromptResult, steer),
    Method(
        "agent/followUp", "Words for when the run ends.", WordsParams, AgentPromptResult, follow_up
    ),
    Method("agent/abort", "Stop the live run.", RunParams, RunResult, abort),
    Method("agent/abortRetry", "Give up a retry.", RunParams, RunResult, abort_retry),
    Method("agent/wait", "Wait until settled.", RunParams, RunResult, wait),
    Method("queue/get", "What waits for the model.", SessionParams, Queues, queue),
    Method(
        "queue/configure",
        "How many messages go with one request.",
        QueueConfigureParams,
        QueueConfigureResult,
        configure,
    ),
    Method("queue/edit", "Change a waiting message.", QueueEditParams, QueueItem, edit),
    Method("queue/remove", "Take one message back.", QueueRemoveParams, QueueItem, remove),
    Method("queue/clear", "Take all messages back.", SessionParams, Queues, clear),
)
