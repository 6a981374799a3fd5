"""One extension as somebody who can be asked; the fence around code that is not ours.

Promises
- Whatever an extension raises is an answer that failed, told under an incident id.
- What nobody waits for any more is cancelled.
- An extension that cannot begin has registered nothing.
"""

import logging
import os
from collections.abc import Callable, Collection
from typing import Any

import anyio
import msgspec

from pi_rpc.core.consultations import CommandAnswer, ToolAnswer
from pi_rpc.core.errors import Stopped
from pi_rpc.core.grants import DEFAULT_GRANTS, Grant
from pi_rpc.core.hooks import HOOKS, Told
from pi_rpc.core.scopes import CheckpointAnswer
from pi_rpc.extensions.extending import Context, Extending, Handler
from pi_rpc.session.consulting import Offer, Question
from pi_rpc.session.host import Host

_log = logging.getLogger(__name__)


class Extension:
    """Python code that answers questions of sessions."""

    serves_permissions = False
    dialogs: frozenset[str] = frozenset()

    def __init__(self, name: str, host: Host, grants: Collection[Grant] = DEFAULT_GRANTS) -> None:
        self.name = name
        self._grants = grants
        self._host = host
        self._handlers: dict[str, Handler] = {}
        self._under_way: dict[str, anyio.CancelScope] = {}

    def begin(self, load: Callable[[], Any]) -> str | None:
        """Import it and let it say what it takes part in; what went wrong, else None."""
        consulting = self._host.around.consulting
        extending = Extending(self._grants)
        try:
            load()(extending)
            for number, (offered, handler) in enumerate(extending.parts, 1):
                offer_id = f"{self.name}#{number}"
                self._handlers[offer_id] = handler
                consulting.register(Offer(offer_id, self, None, (offered,), "extension"))
        except SystemExit:
            problem = "it wanted to end the daemon"
        except Exception as error:
            _log.exception("the extension %s cannot be loaded", self.name)
            problem = f"{type(error).__name__}: {error}"
        else:
            return None
        consulting.leave(self)
        return problem

    def put(self, question: Question) -> None:
        """Let it answer, in a task of its own."""
        scope = self._under_way[question.id] = anyio.CancelScope()
        self._host.tasks.start_soon(self._answer, question, scope)

    def withdraw(self, question_id: str) -> None:
        """Nobody waits any more: what it is doing is cancelled."""
        scope = self._under_way.pop(question_id, None)
        if scope is not None:
            scope.cancel()

    async def _answer(self, question: Question, scope: anyio.CancelScope) -> None:
        consulting = self._host.around.consulting
        with scope:
            try:
                context = Context(self._host, question)
                consulting.answer(question.id, await self._asked(question, context))
                context.acting.begin_later()
            except Stopped as stopped:
                consulting.fail(question.id, "stopped", stopped.message)
            except Exception as error:
                incident = os.urandom(8).hex()
                _log.exception("incident %s: the extension %s failed", incident, self.name)
                told = f"the extension {self.name} failed ({type(error).__name__}: {error})"
                consulting.fail(question.id, "failed", f"{told}, incident {incident}")
        if self._under_way.get(question.id) is scope:
            del self._under_way[question.id]

    async def _asked(self, question: Question, context: Context) -> Any:
        assert question.registration_id is not None, "it is asked only what it registered for"
        handler: Any = self._handlers[question.registration_id]
        if question.hook is not None:
            wanted: type = HOOKS[question.hook].answer
            answer = await handler(_own_copy(question.asked["payload"]), context)
            answer = wanted() if answer is None else answer
        elif question.kind == "tool":
            wanted, answer = ToolAnswer, await handler(question.asked["arguments"], context)
        elif question.kind == "checkpoint":
            wanted, answer = CheckpointAnswer, await handler(question.asked, context)
        else:
            wanted, answer = CommandAnswer, CommandAnswer()
            await handler(question.asked["arguments"], context)
        if not isinstance(answer, wanted):
            raise TypeError(f"it answered with {type(answer).__name__}, not {wanted.__name__}")
        return answer


def _own_copy(told: Told) -> Told:
    """What a handler may do with as it likes: messages are shared with the session."""
    return msgspec.convert(msgspec.to_builtins(told), type(told))
