"""Tools, hooks and commands that a client offers, and takes back."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from pi_rpc.core.consultations import (
    CHECKPOINT_TIMEOUT_MS,
    COMMAND_TIMEOUT_MS,
    TOOL_TIMEOUT_MS,
    TimeoutMs,
)
from pi_rpc.core.errors import Refused
from pi_rpc.core.hooks import (
    CONTEXT_MESSAGES_DEFAULT,
    CONTEXT_MESSAGES_MAX,
    HOOK_TIMEOUT_MS,
    HOOKS,
    HookName,
    OnTimeout,
)
from pi_rpc.core.messages import JsonObject, ToolDeclaration
from pi_rpc.core.ports.tools import Effect
from pi_rpc.core.scopes import ScopeName, check_scope_name
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import Done, Params, Result
from pi_rpc.session.consulting import (
    Hook,
    Offer,
    Offered,
    OfferedCommand,
    OfferedScope,
    OfferedTool,
)
from pi_rpc.session.session import Session

OFFERED_MAX = 200
"""How much one registration may offer."""
SCOPES_MAX = 16
"""How many scopes one may; each is asked at every move."""

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]
"""Names of tools and commands: what every provider takes."""


class RegisterParams(Params, frozen=True, kw_only=True):
    """An offer of the client."""

    session_id: str | None = None
    """The open session it holds for; without it, every session, also those opened later."""


class RegistrationResult(Result, frozen=True, kw_only=True):
    """The offer stands until it is taken back or the connection ends."""

    registration_id: str


class ClientTool(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A tool that the client runs."""

    name: Name
    description: str
    input_schema: JsonObject
    """JSON Schema of the arguments object."""
    mode: Literal["parallel", "sequential"] = "parallel"
    """Whether other calls of a batch may run beside it."""
    effect: Effect = "outside"
    """The most it may touch."""
    timeout_ms: TimeoutMs = TOOL_TIMEOUT_MS


class ToolsRegisterParams(RegisterParams, frozen=True, kw_only=True):
    """Tools that the client runs."""

    tools: Annotated[list[ClientTool], msgspec.Meta(min_length=1, max_length=OFFERED_MAX)]


class ClientHook(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A point where the client takes part."""

    name: HookName
    tools: list[str] = []
    """For hooks on tools: patterns of names; none means all."""
    timeout_ms: TimeoutMs = HOOK_TIMEOUT_MS
    on_timeout: OnTimeout | None = None
    """What holds without an answer; `deny` for `tool/before`, else `allow`."""
    order: int = 0
    """Lower is asked first; equal ones in the order of registration."""
    shows_progress: bool = False
    """For `tool/after`: whether output may be shown before it was asked."""
    roles: list[str] = []
    """For `message/ended`: roles of messages; none means all."""
    holds_deltas: bool = False
    """For `message/ended`: whether a reply is told to nobody before it was asked; then there are no
    `message/delta`."""
    last_messages: Annotated[int, msgspec.Meta(ge=0, le=CONTEXT_MESSAGES_MAX)] = (
        CONTEXT_MESSAGES_DEFAULT
    )
    """For `request/context`: how many of the newest messages it is shown."""


class HooksRegisterParams(RegisterParams, frozen=True, kw_only=True):
    """Points where the client takes part."""

    hooks: Annotated[list[ClientHook], msgspec.Meta(min_length=1, max_length=OFFERED_MAX)]


class ClientCommand(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A command that the client carries out."""

    name: Name
    description: str = ""
    argument_hint: str | None = None
    timeout_ms: TimeoutMs = COMMAND_TIMEOUT_MS


class CommandsRegisterParams(RegisterParams, frozen=True, kw_only=True):
    """Commands that the client carries out."""

    commands: Annotated[list[ClientCommand], msgspec.Meta(min_length=1, max_length=OFFERED_MAX)]


class ClientScope(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of the world beyond the files that the client keeps versions of."""

    name: ScopeName
    """Such as `database` or `container`; not `files` or `external`."""
    timeout_ms: TimeoutMs = CHECKPOINT_TIMEOUT_MS


class ScopesRegisterParams(RegisterParams, frozen=True, kw_only=True):
    """Parts of the world that the client keeps versions of."""

    scopes: Annotated[list[ClientScope], msgspec.Meta(min_length=1, max_length=SCOPES_MAX)]


class UnregisterParams(Params, frozen=True, kw_only=True):
    """The registration to take back."""

    registration_id: str


def register_tools(connection: Connection, params: ToolsRegisterParams) -> RegistrationResult:
    """Offer tools; the model is told of them before its next request.

    One that bears the name of a built-in tool takes its place.
    """
    offered = [
        OfferedTool(
            ToolDeclaration(one.name, one.description, one.input_schema),
            one.effect,
            one.mode == "sequential",
            one.timeout_ms,
        )
        for one in params.tools
    ]
    offer = _offer(connection, params, offered)
    for session in _meant(connection, params):
        for one in params.tools:
            session.chosen.activate(one.name)
    return RegistrationResult(registration_id=offer.id)


def register_hooks(connection: Connection, params: HooksRegisterParams) -> RegistrationResult:
    """Take part at some points; a `hook/call` is answered within its deadline.

    Work that an answer starts begins when the hook has answered. Raises Refused `not_granted` for
    a point that only extensions may take part in.
    """
    for one in params.hooks:
        if HOOKS[one.name].is_local:
            told = f"only an extension may take part in {one.name}"
            raise Refused("not_granted", told, hook=one.name, grant=HOOKS[one.name].grant)
    offered = [
        Hook(
            one.name,
            one.timeout_ms,
            one.on_timeout or HOOKS[one.name].default,
            one.order,
            tuple(one.tools),
            one.shows_progress,
            tuple(one.roles),
            one.holds_deltas,
            one.last_messages,
        )
        for one in params.hooks
    ]
    return RegistrationResult(registration_id=_offer(connection, params, offered).id)


def register_commands(connection: Connection, params: CommandsRegisterParams) -> RegistrationResult:
    """Offer commands; a prompt that begins with `/name` is then the client's to carry out."""
    offered = [
        OfferedCommand(one.name, one.description, one.argument_hint, one.timeout_ms)
        for one in params.commands
    ]
    return RegistrationResult(registration_id=_offer(connection, params, offered).id)


def register_scopes(connection: Connection, params: ScopesRegisterParams) -> RegistrationResult:
    """Keep versions of scopes; `workspace/checkpoint` asks for them around calls and moves.

    Raises Invalid `scope_reserved`.
    """
    for one in params.scopes:
        check_scope_name(one.name)
    offered = [OfferedScope(one.name, one.timeout_ms) for one in params.scopes]
    return RegistrationResult(registration_id=_offer(connection, params, offered).id)


def _offer(connection: Connection, params: RegisterParams, offered: Sequence[Offered]) -> Offer:
    around = connection.host.around
    if params.session_id is not None:
        connection.host.session(params.session_id)
    offer = Offer(around.ids.unique_id(), connection.serving, params.session_id, tuple(offered))
    around.consulting.register(offer)
    return offer


def _meant(connection: Connection, params: RegisterParams) -> list[Session]:
    if params.session_id is not None:
        return [connection.host.session(params.session_id)]
    return connection.host.sessions


def unregister(connection: Connection, params: UnregisterParams) -> Done:
    """Take an offer back; what the client is carrying out goes on."""
    consulting = connection.host.around.consulting
    consulting.unregister(params.registration_id, connection.serving)
    return Done()


METHODS = (
    Method(
        "tools/register", "Offer tools.", ToolsRegisterParams, RegistrationResult, register_tools
    ),
    Method("tools/unregister", "Take tools back.", UnregisterParams, Done, unregister),
    Method("hooks/register", "Take part.", HooksRegisterParams, RegistrationResult, register_hooks),
    Method("hooks/unregister", "Take part no more.", UnregisterParams, Done, unregister),
    Method(
        "commands/register",
        "Offer commands.",
        CommandsRegisterParams,
        RegistrationResult,
        register_commands,
    ),
    Method("commands/unregister", "Take commands back.", UnregisterParams, Done, unregister),
    Method(
        "scopes/register",
        "Offer versions of scopes.",
        ScopesRegisterParams,
        RegistrationResult,
        register_scopes,
    ),
    Method("scopes/unregister", "Take scopes back.", UnregisterParams, Done, unregister),
)
