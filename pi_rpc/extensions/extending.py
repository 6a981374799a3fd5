"""What an extension is given: a place to say what it takes part in, and the user to ask.

    def extend(extending: Extending) -> None:
        extending.hook("tool/before", look, tools=("bash",))

The function is named by an entry point of the group `pi_rpc.extensions`. Hooks are asked and
answer with the types of `pi_rpc.core.consultations`, as a client's are; None lets things go their
way. Handlers share one thread with everything else, so they wait and never block.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

from pi_rpc.core.consultations import (
    COMMAND_TIMEOUT_MS,
    DIALOG_TIMEOUT_MS,
    HOOK_TIMEOUT_MS,
    TOOL_TIMEOUT_MS,
    HookAnswer,
    HookName,
    OnTimeout,
    ToolAnswer,
    default_on_timeout,
)
from pi_rpc.core.messages import Block, JsonObject, ToolDeclaration
from pi_rpc.core.ports import Effect
from pi_rpc.session import dialogs
from pi_rpc.session.consulting import Hook, Offered, OfferedCommand, OfferedTool, Question
from pi_rpc.session.host import Host


class Context:
    """What is asked about, and the user."""

    def __init__(self, host: Host, question: Question) -> None:
        session = host.session(question.session_id)
        self.session_id = question.session_id
        self.run_id = question.run_id
        self.cwd: Path = session.cwd
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


HookHandler = Callable[[JsonObject, Context], Awaitable[HookAnswer | None]]
"""Given the payload of the hook, as a client's `hook/call` has it."""

ToolHandler = Callable[[JsonObject, Context], Awaitable[ToolAnswer]]
"""Given the validated arguments."""

CommandHandler = Callable[[str, Context], Awaitable[None]]
"""Given what stands behind the name, as it was written."""

Handler = HookHandler | ToolHandler | CommandHandler


class Extending:
    """What an extension takes part in, said while it is loaded."""

    def __init__(self) -> None:
        self.parts: list[tuple[Offered, Handler]] = []

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
    ) -> None:
        """Take part at a point; the deadline holds for what the user is asked meanwhile too."""
        policy = on_timeout or default_on_timeout(name)
        hook = Hook(name, timeout_ms, policy, order, tools, shows_progress)
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
        self.parts.append((OfferedTool(declaration, effect, sequential, timeout_ms), handler))

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
        self.parts.append((OfferedCommand(name, description, argument_hint, timeout_ms), handler))
