"""What clients offered to do, and the questions that wait for their answers.

A session that needs an answer asks here and waits; a front end hears of the question, puts it to
its client and brings the answer. The session never learns what a client is.

    reply = await consulting.ask(consultant, question, stop)

Promises
- Every question ends once: answered, too late, stopped, or with its client.
- A question that nobody waits for any more is withdrawn from the client.
- What a client registered goes with it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol, TypeVar

import anyio
import msgspec

from pi_rpc.agent.background import Background
from pi_rpc.core.consultations import DialogName
from pi_rpc.core.errors import Missing, Overfull, Refused
from pi_rpc.core.hooks import CONTEXT_MESSAGES_DEFAULT, HookName, OnTimeout
from pi_rpc.core.messages import Block, JsonObject, ToolDeclaration
from pi_rpc.core.permissions import fits
from pi_rpc.core.ports.tools import Effect, Progress, StopSignal

REGISTRATIONS_MAX = 1000
"""How many registrations may stand at once, of all clients."""

QuestionKind = Literal["hook", "tool", "command", "permission", "checkpoint"] | DialogName
Why = Literal["timeout", "stopped", "disconnected", "failed"]
"""How a question can end without an answer."""


class Question(msgspec.Struct, frozen=True):
    """Something a client is asked."""

    id: str
    kind: QuestionKind
    session_id: str
    runtime_id: str
    run_id: str | None
    registration_id: str | None
    timeout_ms: int
    asked: JsonObject
    """What else is said, by the names of the wire."""
    hook: HookName | None = None


class Answered(msgspec.Struct, frozen=True):
    """The client answered, in the shape its kind of question wants."""

    value: Any


class Unanswered(msgspec.Struct, frozen=True):
    """No answer, or one that is none."""

    why: Why
    text: str = ""


Reply = Answered | Unanswered


class Consultant(Protocol):
    """Somebody who carries questions to a client."""

    @property
    def serves_permissions(self) -> bool:
        """Whether its client answers permissions."""
        ...

    @property
    def dialogs(self) -> frozenset[str]:
        """Which dialogs its client can show."""
        ...

    def put(self, question: Question) -> None:
        """Carry a question to the client; never blocks."""
        ...

    def withdraw(self, question_id: str) -> None:
        """Nobody waits for this answer any more."""
        ...


class Hook(msgspec.Struct, frozen=True):
    """A point where a client takes part."""

    name: HookName
    timeout_ms: int
    on_timeout: OnTimeout
    order: int = 0
    """Lower goes first; equal ones in the order of registration."""
    tools: tuple[str, ...] = ()
    """Patterns of tool names, for hooks on tools; none means all."""
    shows_progress: bool = False
    """Whether output may be shown before `tool/after` has seen it."""
    roles: tuple[str, ...] = ()
    """For `message/ended`: roles of messages; none means all."""
    holds_deltas: bool = False
    """For `message/ended`: whether a reply is told to nobody before it has seen it."""
    last_messages: int = CONTEXT_MESSAGES_DEFAULT
    """For `request/context`: how many of the newest messages it is shown."""


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool that a client runs."""

    declaration: ToolDeclaration
    effect: Effect
    sequential: bool
    timeout_ms: int


class OfferedCommand(msgspec.Struct, frozen=True):
    """A command that a client carries out."""

    name: str
    description: str
    argument_hint: str | None
    timeout_ms: int


class OfferedScope(msgspec.Struct, frozen=True):
    """A part of the world that a client keeps versions of."""

    name: str
    timeout_ms: int


Offered = Hook | OfferedTool | OfferedCommand | OfferedScope
_Offered = TypeVar("_Offered", Hook, OfferedTool, OfferedCommand, OfferedScope)


class Offer(msgspec.Struct, frozen=True):
    """One registration."""

    id: str
    consultant: Consultant
    session_id: str | None
    """The session it holds for; None for all."""
    offered: tuple[Offered, ...]
    source: Literal["client", "extension"] = "client"


class _Open:
    """A question that waits."""

    def __init__(self, question: Question, consultant: Consultant, progress: Progress | None):
        self.question = question
        self.consultant = consultant
        self.progress = progress
        self.ended = anyio.Event()
        self.reply: Reply | None = None

    def end(self, reply: Reply) -> None:
        if self.reply is None:
            self.reply = reply
            self.ended.set()


class Consulting:
    """Everything clients offered, and every question that waits."""

    def __init__(self) -> None:
        self._offers: dict[str, Offer] = {}
        self._open: dict[str, _Open] = {}
        self._consultants: list[Consultant] = []
        self._hooked: frozenset[HookName] = frozenset()
        self.generation = 0
        """Another number whenever what is offered has changed."""

    def join(self, consultant: Consultant) -> None:
        """A client is there and may be asked."""
        if consultant not in self._consultants:
            self._consultants.append(consultant)

    def leave(self, consultant: Consultant) -> None:
        """A client is gone: its registrations too, and what it was asked is not answered."""
        if consultant in self._consultants:
            self._consultants.remove(consultant)
        gone = [offer.id for offer in self._offers.values() if offer.consultant is consultant]
        for offer_id in gone:
            del self._offers[offer_id]
        self._note_change()
        for one in list(self._open.values()):
            if one.consultant is consultant:
                one.end(Unanswered("disconnected", "the client is gone"))

    def register(self, offer: Offer) -> None:
        """Take an offer. Raises Overfull, Refused `name_taken` for one of its kind and name."""
        if len(self._offers) >= REGISTRATIONS_MAX:
            raise Overfull(
                "too_many_registrations", "too many registrations", limit=REGISTRATIONS_MAX
            )
        for one in offer.offered:
            if isinstance(one, Hook):
                continue
            name = _name(one)
            for other in self._offers.values():
                apart = None not in (offer.session_id, other.session_id)
                if apart and offer.session_id != other.session_id:
                    continue
                if any(type(one) is type(held) and _name(held) == name for held in other.offered):
                    raise Refused("name_taken", f"{name!r} is registered already", name=name)
        self._offers[offer.id] = offer
        self._note_change()

    def _note_change(self) -> None:
        self.generation += 1
        offered = (one for offer in self._offers.values() for one in offer.offered)
        self._hooked = frozenset(one.name for one in offered if isinstance(one, Hook))

    def unregister(self, offer_id: str, consultant: Consultant) -> Offer:
        """Take an offer back; what is under way is not disturbed.

        Raises Missing `registration_not_found`.
        """
        offer = self._offers.get(offer_id)
        if offer is None or offer.consultant is not consultant:
            raise Missing("registration_not_found", "no such registration", registrationId=offer_id)
        del self._offers[offer_id]
        self._note_change()
        return offer

    def has_hooks(self, name: HookName) -> bool:
        """Whether anybody takes part at a point, in any session; one look into a set."""
        return name in self._hooked

    def hooks(
        self, session_id: str, name: HookName, tool: str | None = None, role: str | None = None
    ) -> Sequence[tuple[Offer, Hook]]:
        """Who takes part at a point, first to be asked first."""
        if name not in self._hooked:
            return ()
        found = [
            (offer, hook)
            for offer, hook in self._offered(session_id, Hook)
            if hook.name == name
            and (tool is None or not hook.tools or any(fits(one, tool) for one in hook.tools))
            and (role is None or not hook.roles or role in hook.roles)
        ]
        return sorted(found, key=lambda pair: pair[1].order)

    def tools(self, session_id: str) -> list[tuple[Offer, OfferedTool]]:
        """The clients' tools of a session, oldest first."""
        return list(self._offered(session_id, OfferedTool))

    def commands(self, session_id: str) -> list[tuple[Offer, OfferedCommand]]:
        """The clients' commands of a session, oldest first."""
        return list(self._offered(session_id, OfferedCommand))

    def scopes(self, session_id: str) -> list[tuple[Offer, OfferedScope]]:
        """The clients' scopes of a session, oldest first."""
        return list(self._offered(session_id, OfferedScope))

    def _offered(self, session_id: str, kind: type[_Offered]) -> Iterator[tuple[Offer, _Offered]]:
        for offer in self._offers.values():
            if offer.session_id in (None, session_id):
                for one in offer.offered:
                    if isinstance(one, kind):
                        yield offer, one

    @property
    def permitting(self) -> Consultant | None:
        """Who can be asked for a permission."""
        return next((one for one in self._consultants if one.serves_permissions), None)

    def showing(self, dialog: DialogName) -> Consultant | None:
        """Who can show a dialog."""
        return next((one for one in self._consultants if dialog in one.dialogs), None)

    async def ask(
        self,
        consultant: Consultant,
        question: Question,
        stop: StopSignal | None = None,
        progress: Progress | None = None,
    ) -> Reply:
        """Put a question and wait for its end: the answer, the deadline, the stop, the client's."""
        if stop is not None and stop.is_set():
            return Unanswered("stopped")
        one = self._open[question.id] = _Open(question, consultant, progress)
        consultant.put(question)
        try:
            with anyio.move_on_after(question.timeout_ms / 1000):
                async with Background() as tasks:
                    if stop is not None:
                        tasks.start_soon(_end_on_stop, one, stop)
                    await one.ended.wait()
            if one.reply is None:
                one.reply = Unanswered("timeout", f"no answer within {question.timeout_ms} ms")
            return one.reply
        finally:
            del self._open[question.id]
            if one.reply is None or _is_withdrawn(one.reply):
                consultant.withdraw(question.id)

    def answer(self, question_id: str, value: Any) -> None:
        """Bring an answer; one that comes too late changes nothing."""
        if question_id in self._open:
            self._open[question_id].end(Answered(value))

    def fail(self, question_id: str, why: Why, text: str) -> None:
        """Say that there will be no answer."""
        if question_id in self._open:
            self._open[question_id].end(Unanswered(why, text))

    def progressed(
        self, session_id: str, call_id: str, content: list[Block], details: JsonObject | None
    ) -> None:
        """What a client's tool has to show so far; of a call that is over, nothing."""
        for one in self._open.values():
            asked = one.question
            is_meant = asked.session_id == session_id and asked.asked.get("callId") == call_id
            if asked.kind == "tool" and is_meant and one.progress is not None:
                one.progress.tell(content, details)

    def is_asked_for(self, session_id: str) -> bool:
        """Whether anybody is asked something for a session."""
        return any(one.question.session_id == session_id for one in self._open.values())

    def pending(self, session_id: str, consultant: Consultant) -> Sequence[Question]:
        """What a client was asked about a session and has not answered, oldest first."""
        return [
            one.question
            for one in self._open.values()
            if one.consultant is consultant and one.question.session_id == session_id
        ]


def _name(offered: OfferedTool | OfferedCommand | OfferedScope) -> str:
    return offered.declaration.name if isinstance(offered, OfferedTool) else offered.name


def _is_withdrawn(reply: Reply) -> bool:
    return isinstance(reply, Unanswered) and reply.why in ("timeout", "stopped")


async def _end_on_stop(one: _Open, stop: StopSignal) -> None:
    await stop.wait()
    one.end(Unanswered("stopped"))
