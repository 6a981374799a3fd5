"""Tools as a run has them: the client's own, and any tool with its hooks and its permission.

Promises
- Calls of a batch are looked at in their order, one at a time; each runs once it is let through.
- Arguments a hook gives are validated again; the model's own stay beside them.
- What a client's tool shows or gives is bounded; a client that is gone is an error result.
- Output that a `tool/after` hook has yet to see is shown to nobody before.
"""

import anyio
import msgspec

from pi_rpc.agent.calling import Lenient
from pi_rpc.core.arguments import checked
from pi_rpc.core.consultations import ToolAnswer
from pi_rpc.core.errors import Failure, Invalid, Stopped
from pi_rpc.core.hooks import AfterToolAnswer, BeforeToolAnswer, ToolAfter, ToolBefore
from pi_rpc.core.images import problem_of_content
from pi_rpc.core.messages import Block, JsonObject, ToolCall, ToolOutcome, text_block
from pi_rpc.core.ports.tools import CallContext, Effect, Progress, StopSignal, Tool
from pi_rpc.session.consulting import Answered, Hook, Offer, OfferedTool
from pi_rpc.session.hooking import Grace, HookError, call_hook, question_of, tell_resolved
from pi_rpc.session.permitting import STOPPED, refusal_of
from pi_rpc.session.session import Session


class ClientTool:
    """A tool that a client runs."""

    def __init__(self, session: Session, offer: Offer, offered: OfferedTool) -> None:
        self.declaration = offered.declaration
        self.effect: Effect = offered.effect
        self.sequential = offered.sequential
        self._session = session
        self._offer = offer
        self._timeout_ms = offered.timeout_ms

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        """Let the client run it; whatever keeps it from answering is an error result."""
        session = self._session
        asked: JsonObject = {
            "callId": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "cwd": str(context.cwd),
        }
        question = question_of(session, "tool", self._offer, self._timeout_ms, asked)
        reply = await session.around.consulting.ask(
            self._offer.consultant, question, context.stop, _Bounded(context.progress)
        )
        if isinstance(reply, Answered):
            return _outcome_of(reply.value)
        tell_resolved(session, question, reply)
        text = {
            "timeout": f"The client did not answer the call in time ({reply.text}).",
            "stopped": "The call was stopped; what the client had done by then is not known.",
            "disconnected": "The client that runs this tool is disconnected.",
        }.get(reply.why, f"The client failed: {reply.text}")
        return _failed(text, {"reason": f"client_{reply.why}"})


class _Bounded:
    """Progress that is small enough to be told."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def tell(self, content: list[Block], details: JsonObject | None = None) -> None:
        """Show it, unless it is too much."""
        if problem_of_content(content) is None:
            self._progress.tell(content, details)


class _Nowhere:
    """Progress that nobody may see yet."""

    def tell(self, content: list[Block], details: JsonObject | None = None) -> None:
        """Nothing."""


class ConsultedTool:
    """A tool as a run calls it: hooks before, permission, the tool, hooks after."""

    def __init__(self, inner: Tool, session: Session, turn: anyio.Lock) -> None:
        self.declaration = inner.declaration
        self.effect: Effect = inner.effect
        self.sequential = inner.sequential
        self.inner = inner
        self._session = session
        self._turn = turn
        """Holds: one call of the batch is looked at, and those before it were."""

    def prepared(self, arguments: JsonObject) -> JsonObject:
        """The arguments as the tool understands them."""
        inner = self.inner
        return inner.prepared(arguments) if isinstance(inner, Lenient) else arguments

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        """Run the call if it is let through; the outcome as the hooks leave it."""
        async with self._turn:
            looked = await _Looking(self._session, self, call).let_through(context.stop)
        if isinstance(looked, ToolOutcome):
            return looked
        after = self._session.around.consulting.hooks(
            self._session.session_id, "tool/after", call.name
        )
        if looked.changed_by is None and not after:
            return await self.inner.run(looked.call, context)
        if not all(hook.shows_progress for _, hook in after):
            context = msgspec.structs.replace(context, progress=_Nowhere())
        outcome = await self._run(looked.call, context)
        # A stop does not keep a result from being looked at; it gives it a moment.
        grace = Grace(context.stop, self._session.around.grace_s)
        for offer, hook in after:
            told = _told_after(call, looked.call, outcome)
            outcome = await self._after(offer, hook, told, outcome, grace)
        if looked.changed_by is not None:
            outcome = msgspec.structs.replace(
                outcome,
                effective_arguments=looked.call.arguments,
                changed_by=looked.changed_by,
            )
        return outcome

    async def _run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        clock = self._session.around.clock
        began_ms = clock.now_ms()
        try:
            outcome = await self.inner.run(call, context)
        except Failure as failure:
            outcome = _failed(failure.message, {"reason": failure.reason, **failure.data})
        if outcome.duration_ms is not None:
            return outcome
        return msgspec.structs.replace(outcome, duration_ms=clock.now_ms() - began_ms)

    async def _after(
        self, offer: Offer, hook: Hook, told: ToolAfter, outcome: ToolOutcome, stop: StopSignal
    ) -> ToolOutcome:
        try:
            answer: AfterToolAnswer | None = await call_hook(self._session, offer, hook, told, stop)
        except HookError:
            return outcome
        except Failure as failure:
            # What should have been looked at and was not is not passed on.
            return _withheld(outcome, failure.message)
        if answer is None:
            return outcome
        changes: JsonObject = {}
        if answer.content is not None:
            problem = problem_of_content(answer.content)
            if problem is not None:
                return _withheld(outcome, f"the hook {hook.name} gave {problem}")
            changes["content"] = answer.content
        if answer.details is not None or answer.content is not None:
            changes["details"] = answer.details
        if answer.is_error is not None:
            changes["is_error"] = answer.is_error
        return msgspec.structs.replace(outcome, **changes)


class _Let(msgspec.Struct, frozen=True):
    """A call that may run."""

    call: ToolCall
    changed_by: str | None


class _Looking:
    """One call being looked at."""

    def __init__(self, session: Session, tool: ConsultedTool, call: ToolCall) -> None:
        self._session = session
        self._tool = tool
        self._call = call
        self._changed_by: str | None = None

    async def let_through(self, stop: StopSignal) -> _Let | ToolOutcome:
        """The call as it will run, or its outcome when it will not."""
        session, name = self._session, self._call.name
        effective = self._call
        for offer, hook in session.around.consulting.hooks(session.session_id, "tool/before", name):
            try:
                answer = await call_hook(session, offer, hook, self._told(effective), stop)
            except Stopped:
                return not_run(STOPPED)
            except (Failure, HookError) as failure:
                return not_run(f"The call was blocked: {failure.message}")
            if answer is None:
                continue
            decided = self._decided(offer, answer, effective)
            if isinstance(decided, ToolOutcome):
                return decided
            effective = decided
        refusal = await refusal_of(session, self._tool.inner, effective, stop)
        if refusal is not None:
            return not_run(refusal)
        return _Let(effective, self._changed_by)

    def _told(self, effective: ToolCall) -> ToolBefore:
        return ToolBefore(
            call_id=effective.id,
            name=effective.name,
            arguments=effective.arguments,
            effect=self._tool.effect,
        )

    def _decided(
        self, offer: Offer, answer: BeforeToolAnswer, call: ToolCall
    ) -> ToolCall | ToolOutcome:
        if answer.action == "block":
            said = answer.reason or "a hook blocked it"
            return not_run(f"The call was blocked: {said}", answer.terminate)
        if answer.arguments is None:
            return call
        try:
            arguments = checked(answer.arguments, self._tool.declaration.parameters)
        except Invalid as invalid:
            return not_run(
                "The call was blocked: a hook gave it arguments that it does not take:\n"
                f"{invalid.message}"
            )
        self._changed_by = offer.id
        return msgspec.structs.replace(call, arguments=arguments)


def tools_of_run(session: Session) -> dict[str, Tool]:
    """The active tools of a session, each with its hooks and its permission."""
    turn = anyio.Lock()
    return {
        name: ConsultedTool(tool, session, turn) for name, tool in active_tools(session).items()
    }


def all_tools(session: Session) -> dict[str, Tool]:
    """Every tool of a session; a client's takes the place of a built-in one of its name."""
    offered = session.around.consulting.tools(session.session_id)
    own: dict[str, Tool] = {
        one.declaration.name: ClientTool(session, offer, one) for offer, one in offered
    }
    return {**session.around.tools, **own}


def active_tools(session: Session) -> dict[str, Tool]:
    """The tools a model is told of, in their order; those that are gone are left out."""
    tools = all_tools(session)
    return {name: tools[name] for name in session.chosen.active_tools if name in tools}


def _told_after(call: ToolCall, effective: ToolCall, outcome: ToolOutcome) -> ToolAfter:
    return ToolAfter(
        call_id=call.id,
        name=call.name,
        arguments=call.arguments,
        effective_arguments=effective.arguments,
        content=outcome.content,
        is_error=outcome.is_error,
        details=outcome.details,
    )


def _outcome_of(answer: ToolAnswer) -> ToolOutcome:
    problem = problem_of_content(answer.content)
    if problem is not None:
        return _failed(f"The client gave {problem}.", {"reason": "client_failed"})
    return ToolOutcome(answer.content, answer.is_error, answer.details, answer.terminate)


def not_run(text: str, terminate: bool = False) -> ToolOutcome:
    """The outcome of a call that did not begin."""
    return ToolOutcome([text_block(text)], is_error=True, terminate=terminate, ran=False)


def _failed(text: str, details: JsonObject | None = None) -> ToolOutcome:
    return ToolOutcome([text_block(text)], is_error=True, details=details)


def _withheld(outcome: ToolOutcome, why: str) -> ToolOutcome:
    text = text_block(f"The call ran; its result is withheld: {why}")
    return msgspec.structs.replace(outcome, content=[text], details=None, is_error=True)
