"""Runs: prompted, steered, stopped, waited for; and the queues of what waits."""

import msgspec

from pi_rpc.core.errors import Stopped
from pi_rpc.core.events import Outcome
from pi_rpc.core.messages import Block, image_block
from pi_rpc.frontends.native.connection import Connection, queues_shape
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import QueueItem, Queues, Result, SessionParams
from pi_rpc.session import prompting
from pi_rpc.session.prompting import Admission, Disposition, WhenBusy
from pi_rpc.session.session import Session


class Image(msgspec.Struct, frozen=True, rename="camel"):
    """An image to go with a prompt."""

    data: str
    """Base64."""
    mime_type: str


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
    admission = prompting.prompt(
        session, connection.host.tasks, params.text, _blocks(params.images), params.when_busy
    )
    if params.wait and admission.run_id is not None:
        return _waited(session, admission)
    return _admitted(admission)


def _blocks(images: list[Image]) -> list[Block]:
    return [image_block(image.data, image.mime_type) for image in images]


def _admitted(admission: Admission, outcome: Outcome | None = None) -> AgentPromptResult:
    return AgentPromptResult(
        run_id=admission.run_id,
        disposition=admission.disposition,
        item_id=admission.item_id,
        outcome=outcome,
    )


async def _waited(session: Session, admission: Admission) -> AgentPromptResult:
    outcome = await prompting.wait_until_settled(session, admission.run_id)
    return _admitted(admission, outcome)


def steer(connection: Connection, params: WordsParams) -> AgentPromptResult:
    """Let words go with the live run's next request; while idle they wait for the next run."""
    session = connection.host.session(params.session_id)
    if params.expected_run_id is not None:
        session.run_named(params.expected_run_id)
    return _admitted(prompting.enqueue(session, "steering", params.text, _blocks(params.images)))


def follow_up(connection: Connection, params: WordsParams) -> AgentPromptResult:
    """Let words wait until the live run would otherwise end."""
    session = connection.host.session(params.session_id)
    if params.expected_run_id is not None:
        session.run_named(params.expected_run_id)
    return _admitted(prompting.enqueue(session, "followUp", params.text, _blocks(params.images)))


class RunParams(SessionParams, frozen=True, kw_only=True):
    """A run; the live one, or the last, unless it is named."""

    run_id: str | None = None


class RunResult(Result, frozen=True, kw_only=True):
    """How it ended."""

    outcome: Outcome | None
    """Null when no run was ever live here."""


async def abort(connection: Connection, params: RunParams) -> RunResult:
    """Stop the live run; answered when the session is quiet. Waiting messages wait on."""
    session = connection.host.session(params.session_id)
    return RunResult(outcome=await prompting.abort(session, params.run_id))


async def wait(connection: Connection, params: RunParams) -> RunResult:
    """Answered when the live run has settled; at once when none is live."""
    session = connection.host.session(params.session_id)
    return RunResult(outcome=await prompting.wait_until_settled(session, params.run_id))


def queue(connection: Connection, params: SessionParams) -> Queues:
    """What waits for the model."""
    session = connection.host.session(params.session_id)
    return queues_shape(session.steering, session.follow_up)


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
    return queues_shape(*prompting.clear_queues(session))


METHODS = (
    Method("agent/prompt", "Start a run.", AgentPromptParams, AgentPromptResult, prompt),
    Method("agent/steer", "Words for the next request.", WordsParams, AgentPromptResult, steer),
    Method(
        "agent/followUp", "Words for when the run ends.", WordsParams, AgentPromptResult, follow_up
    ),
    Method("agent/abort", "Stop the live run.", RunParams, RunResult, abort),
    Method("agent/wait", "Wait until settled.", RunParams, RunResult, wait),
    Method("queue/get", "What waits for the model.", SessionParams, Queues, queue),
    Method("queue/remove", "Take one message back.", QueueRemoveParams, QueueItem, remove),
    Method("queue/clear", "Take all messages back.", SessionParams, Queues, clear),
)
