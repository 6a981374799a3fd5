"""What an extension is given: a place to say what it takes part in, and the user to ask.

    def extend(extending: Extending) -> None:
        extending.hook("tool/before", look, tools=("bash",))

The function is named by an entry point of the group `pi_rpc.extensions`. Hooks are asked and
answer with the types of `pi_rpc.core.hooks`, as a client's are; None lets things go their
way. Handlers share one thread with everything else, so they wait and never block.
"""

from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

from pi_rpc.core.consultations import (
    CHECKPOINT_TIMEOUT_MS,
    COMMAND_TIMEOUT_MS,
    DIALOG_TIMEOUT_MS,
    TOOL_TIMEOUT_MS,
    ToolAnswer,
)
from pi_rpc.core.errors import Refused
from pi_rpc.core.grants import DEFAULT_GRANTS, Grant
from pi_rpc.core.hooks import (
    CONTEXT_MESSAGES_DEFAULT,
    HOOK_TIMEOUT_MS,
    HOOKS,
    HookAnswer,
    HookName,
    OnTimeout,
)
from pi_rpc.core.messages import Block, JsonObject, ToolDeclaration
from pi_rpc.core.ports.tools import Effect
from pi_rpc.core.scopes import CheckpointAnswer, check_scope_name
from pi_rpc.extensions.acting import Acting
from pi_rpc.session import dialogs
from pi_rpc.session.consulting import (
    Hook,
    Offered,
    OfferedCommand,
    OfferedScope,
    OfferedTool,
    Question,
)
from pi_rpc.session.host import Host


class Context:
    """What is asked about, and the user."""

    def __init__(self, host: Host, question: Question) -> None:
        session = host.session(question.session_id)
        self.session_id = question.session_id
        self.run_id = question.run_id
        self.cwd: Path = session.cwd
        self.acting = Acting(host, session, is_hook=question.hook is not None)
        """What may be done to the session."""
        self._session = session
        self._call_id = question.asked.get("callId")

    async def show(
        self,
        dialog: dialogs.Choice | dialogs.Line | dialogs.Page,
        timeout_ms: int = DIALOG_TIMEOUT_MS,
    ) -> str | None:
        """The value chosen or the text written; None when the user closed it. Raises Stopped."""
        return await dialogs.show(self._session, dialog, timeout_ms)

    async def confirm(
        self, dialog: dialogs.Confirmation, timeout_ms: int = DIALOG_TIMEOUT_MS
    ) -> bool | None:
        """Whether the user agrees; None when the dialog was closed. Raises Stopped."""
        return await dialogs.confirm(self._session, dialog, timeout_ms)

    def tell(self, content: list[Block], details: JsonObject | None = None) -> None:
        """Show what a tool has so far, instead of what it showed before."""
        if isinstance(self._call_id, str):
            consulting = self._session.around.consulting
            consulting.progressed(self.session_id, self._call_id, content, details)


HookHandler = Callable[[Any, Context], Awaitable[HookAnswer | None]]
"""Given what the point tells, in the shape that `pi_rpc.core.hooks.HOOKS` names."""

ToolHandler = Callable[[JsonObject, Context], Awaitable[ToolAnswer]]
"""Given the validated arguments."""

CommandHandler = Callable[[str, Context], Awaitable[None]]
"""Given what stands behind the name, as it was written."""

ScopeHandler = Callable[[JsonObject, Context], Awaitable[CheckpointAnswer]]
"""Given what `workspace/checkpoint` tells: scope, act, at, leafId, expected, dryRun."""

Handler = HookHandler | ToolHandler | CommandHandler | ScopeHandler


class Extending:
    """What an extension takes part in, said while it is loaded."""

    def __init__(self, grants: Collection[Grant] = DEFAULT_GRANTS) -> None:
        self.parts: list[tuple[Offered, Handler]] = []
        self._grants = frozenset(grants)

    def _require(self, grant: Grant, what: str) -> None:
        if grant not in self._grants:
            told = f"{what} needs the grant {grant!r}, which the user has not given"
            raise Refused("not_granted", told, grant=grant)

    def hook(
        self,
        name: HookName,
        handler: HookHandler,
        *,
        tools: tuple[str, ...] = (),
        timeout_ms: int = HOOK_TIMEOUT_MS,
        on_timeout: OnTimeout | None = None,
        order: int = 0,
        shows_progress: bool = False,
        roles: tuple[str, ...] = (),
        holds_deltas: bool = False,
        last_messages: int = CONTEXT_MESSAGES_DEFAULT,
    ) -> None:
        """Take part at a point; the deadline holds for what the user is asked meanwhile too.

        Raises Refused `not_granted`, as `tool` and `command` do.
        """
        self._require(HOOKS[name].grant, f"the hook {name}")
        hook = Hook(
            name,
            timeout_ms,
            on_timeout or HOOKS[name].default,
            order,
            tools,
            shows_progress,
            roles,
            holds_deltas,
            last_messages,
        )
        self.parts.append((hook, handler))

    def tool(
        self,
        declaration: ToolDeclaration,
        handler: ToolHandler,
        *,
        effect: Effect = "outside",
        sequential: bool = False,
        timeout_ms: int = TOOL_TIMEOUT_MS,
    ) -> None:
        """Offer a tool."""
        self._require("tools", f"the tool {declaration.name}")
        self.parts.append((OfferedTool(declaration, effect, sequential, timeout_ms), handler))

    def scope(
        self, name: str, handler: ScopeHandler, *, timeout_ms: int = CHECKPOINT_TIMEOUT_MS
    ) -> None:
        """Keep versions of a part of the world, such as a database.

        Raises Invalid `scope_reserved`.
        """
        self._require("tools", f"the scope {name}")
        check_scope_name(name)
        self.parts.append((OfferedScope(name, timeout_ms), handler))

    def command(
        self,
        name: str,
        handler: CommandHandler,
        *,
        description: str = "",
        argument_hint: str | None = None,
        timeout_ms: int = COMMAND_TIMEOUT_MS,
    ) -> None:
        """Offer a command."""
        self._require("words", f"the command {name}")
        self.parts.append((OfferedCommand(name, description, argument_hint, timeout_ms), handler))
