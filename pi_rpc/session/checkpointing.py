"""Scopes that clients and extensions keep versions of: asked, bound to the leaf, brought back.

Promises
- A provider is waited for until its deadline, a stop or its end; whatever keeps it from answering
  is told, and stops nothing.
- A scope goes back only where somebody asked for it, and the state before is written down first.
"""

from collections.abc import Mapping, Sequence
from typing import get_args

import anyio
import anyio.abc

from pi_rpc.core.bindings import At
from pi_rpc.core.entries import Kind
from pi_rpc.core.events import Diagnostic, DiagnosticTold, ScopeVerdict
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.scopes import (
    CheckpointAct,
    CheckpointAnswer,
    CheckpointTime,
    ScopeRestored,
    ScopeState,
    holds,
    scope_verdict,
    scopes_body,
)
from pi_rpc.session.consulting import Answered, Offer, OfferedScope, Unanswered, Why
from pi_rpc.session.hooking import looking, question_of, tell_resolved
from pi_rpc.session.session import Session

_WHY_NOT: dict[Why, str] = {why: f"provider_{why}" for why in get_args(Why)}

States = Mapping[str, ScopeState]
"""By scope, what is known of it now."""


def bound_scopes(session: Session, leaf_row: int) -> dict[str, str | None]:
    """Every scope that is offered or was ever bound, with its version at a leaf."""
    offered = (one.name for _, one in session.around.consulting.scopes(session.session_id))
    names = session.bindings.scopes() | set(offered)
    return {name: session.bindings.scope_at(name, leaf_row) for name in sorted(names)}


def _providers(session: Session) -> dict[str, tuple[Offer, OfferedScope]]:
    offered = session.around.consulting.scopes(session.session_id)
    return {one.name: (offer, one) for offer, one in offered}


async def ask_states(
    session: Session, expected: Mapping[str, str | None], at: CheckpointTime
) -> dict[str, ScopeState]:
    """What the providers of these scopes say of their state, all asked at once."""
    providers, states = _providers(session), dict[str, ScopeState]()

    async def look(scope: str) -> None:
        reply = await _ask(session, providers[scope], "checkpoint", at, expected[scope])
        if isinstance(reply, Unanswered):
            states[scope] = ScopeState(why_not=_WHY_NOT[reply.why])
        else:
            states[scope] = ScopeState(reply.version, reply.same)

    async with anyio.create_task_group() as tasks:
        for scope in expected:
            states[scope] = ScopeState(why_not="no_provider")
            if scope in providers:
                tasks.start_soon(look, scope)
    return states


async def _ask(  # noqa: PLR0917
    session: Session,
    provider: tuple[Offer, OfferedScope],
    act: CheckpointAct,
    at: CheckpointTime,
    expected: str | None,
    dry_run: bool = False,
) -> CheckpointAnswer | Unanswered:
    offer, offered = provider
    asked: JsonObject = {"scope": offered.name, "act": act, "at": at, "leafId": session.leaf_id}
    asked |= {"expected": expected, "dryRun": dry_run}
    question = question_of(session, "checkpoint", offer, offered.timeout_ms, asked)
    began_s = anyio.current_time()
    with looking(session) as stop:
        reply = await session.around.consulting.ask(offer.consultant, question, stop)
    tell_resolved(session, question, reply, round((anyio.current_time() - began_s) * 1000))
    if isinstance(reply, Answered):
        assert isinstance(reply.value, CheckpointAnswer)
        return reply.value
    text = f"the provider of {offered.name} gave no answer: {reply.text or reply.why}"
    session.tell(DiagnosticTold(Diagnostic("warning", "checkpoint_failed", text)))
    return reply


async def scope_verdicts(
    session: Session,
    leaf_row: int,
    states: States | None = None,
    by: Mapping[str, str] = {},
) -> dict[str, ScopeVerdict]:
    """How each scope stands against a leaf; `states`: what was just said of them.

    `by`: what brought a scope where it is.
    """
    bound = bound_scopes(session, leaf_row)
    if not bound:
        return {}
    if states is None or not bound.keys() <= states.keys():
        states = await ask_states(session, bound, "look")
    kinds = session.tree.heads.kinds
    has_run = Kind.TOOL_RESULT in kinds or Kind.BASH_EXECUTION in kinds
    return {
        scope: scope_verdict(expected, states[scope], has_run=has_run, by=by.get(scope))
        for scope, expected in bound.items()
    }


async def bind_scopes(
    session: Session, expected: Mapping[str, str | None], states: States, at: At
) -> None:
    """Bind states to the leaf where it has none or another."""
    for scope, state in states.items():
        bound = expected[scope]
        if state.version is None or holds(bound, state):
            continue
        leaf_row = session.leaf_row
        when, described = at, session.leaf_id
        if bound is None and at == "before_tools":
            when = "start"
            top = session.bindings.unbound_scope_top(scope, leaf_row)
            described = session.tree.id_or_none(top)
        await session.record(scopes_body(when, described, {scope: state.version}))


async def bind_left(session: Session, leaf_row: int) -> States:
    """Ask before the leaf goes elsewhere, and bind what holds to the one that is left."""
    expected = bound_scopes(session, leaf_row)
    if not expected:
        return {}
    states = await ask_states(session, expected, "move")
    here = bound_scopes(session, session.leaf_row)
    unbound = {scope: state for scope, state in states.items() if here[scope] is None}
    # What `same` says is of the place it goes to; here it is the name that counts.
    named = {scope: ScopeState(state.version) for scope, state in unbound.items()}
    await bind_scopes(session, here, named, "left")
    return states


async def restore_scopes(
    session: Session, wanted: Mapping[str, str], *, dry_run: bool = False
) -> dict[str, ScopeRestored]:
    """Have each scope brought back to a version, or ask whether it could be."""
    states = await ask_states(session, wanted, "restore")
    providers = _providers(session)
    ready: list[str] = []
    done: dict[str, ScopeRestored] = {}
    for scope, version in wanted.items():
        state = states[scope]
        if state.why_not is not None:
            done[scope] = ScopeRestored(version, False, state.why_not)
        elif holds(version, state):
            done[scope] = ScopeRestored(version, True, "equal", state.version)
        else:
            ready.append(scope)
    if ready and not dry_run:
        await _announce(session, wanted, states, ready)
    for scope in ready:
        version, safety = wanted[scope], states[scope].version
        reply = await _ask(session, providers[scope], "restore", "restore", version, dry_run)
        if isinstance(reply, Unanswered):
            done[scope] = ScopeRestored(version, False, _WHY_NOT[reply.why], safety)
        else:
            reason = "restored" if reply.restored else "refused"
            done[scope] = ScopeRestored(version, reply.restored, reason, safety, reply.reason)
    return done


async def _announce(
    session: Session, wanted: Mapping[str, str], states: States, scopes: Sequence[str]
) -> None:
    versions = {scope: wanted[scope] for scope in scopes}
    before = {scope: version for scope in scopes if (version := states[scope].version) is not None}
    await session.record(scopes_body("restore", session.leaf_id, versions, before), durable=True)


class RunCheckpoints:
    """States of scopes around the calls of one run, or around a command of the user."""

    def __init__(self, session: Session, tasks: anyio.abc.TaskGroup) -> None:
        self._session = session
        self._tasks = tasks
        self._asked: anyio.Event | None = None
        self._expected: dict[str, str | None] = {}
        self._states: dict[str, ScopeState] = {}
        self._is_bound = False
        self._has_marked = False

    def expect(self) -> None:
        """Something is about to run that may mark the world; only the first time counts."""
        session = self._session
        if self._asked is None and session.around.consulting.scopes(session.session_id):
            self._asked = anyio.Event()
            self._expected = bound_scopes(session, session.leaf_row)
            self._tasks.start_soon(self._ask)

    async def _ask(self) -> None:
        assert self._asked is not None, "it was expected"
        try:
            self._states = await ask_states(self._session, self._expected, "before_tools")
        finally:
            self._asked.set()

    async def before(self, *, binds: bool) -> None:
        """Return when the providers have answered; `binds`: nothing keeps it from the leaf."""
        if self._asked is None or self._is_bound:
            return
        await self._asked.wait()
        self._is_bound = True
        if binds:
            await bind_scopes(self._session, self._expected, self._states, "before_tools")

    def call_ended(self) -> None:
        """A call that may have marked the world is over."""
        self._has_marked = True

    async def end(self) -> dict[str, ScopeVerdict]:
        """Bind what holds now, where something ran, and say how it stands."""
        session = self._session
        is_stopped = session.run is not None and session.run.stop.is_set()
        if self._asked is None or not self._has_marked or is_stopped:
            return {}
        self._has_marked = False
        expected = bound_scopes(session, session.leaf_row)
        states = await ask_states(session, expected, "after_tools")
        await bind_scopes(session, expected, states, "after_tools")
        return await scope_verdicts(session, session.leaf_row, states)
