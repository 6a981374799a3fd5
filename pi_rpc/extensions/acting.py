"""What an extension may do to the session it is asked about.

Promises
- What would start work from within a hook begins when the hook has answered; there it is only
  noted, and what goes wrong with it is told as a diagnostic.
- Every act goes the way a client's request goes, and is refused for the same reasons.
"""

from collections.abc import Awaitable, Callable, Sequence

from pi_rpc.core.bindings import EffectKind
from pi_rpc.core.entries import AddedMessage
from pi_rpc.core.errors import Failure
from pi_rpc.core.events import Diagnostic, DiagnosticTold
from pi_rpc.core.messages import Block, JsonObject
from pi_rpc.session import adding, choosing, condensing, navigating, prompting, wording
from pi_rpc.session.host import Host
from pi_rpc.session.session import Session
from pi_rpc.session.versioning import record_effect

Later = Callable[[], Awaitable[object]]


class Acting:
    """Acts on one session; after a move that ends its runtime each raises Stopped."""

    def __init__(self, host: Host, session: Session, is_hook: bool) -> None:
        self._host = host
        self._session = session
        self._is_hook = is_hook
        self._later: list[Later] = []

    @property
    def is_idle(self) -> bool:
        """Whether no run is live."""
        return self._session.run is None

    @property
    def tokens(self) -> int:
        """How big the context is, as far as is known."""
        return self._session.projection.tokens().total

    def messages(self, last: int) -> Sequence[JsonObject]:
        """The newest messages of the context, oldest first; they are shared and not to change."""
        return self._session.projection.messages("session")[-last:] if last > 0 else []

    def prompt(
        self,
        text: str,
        images: Sequence[Block] = (),
        when_busy: prompting.WhenBusy = "followUp",
    ) -> None:
        """Prompt as the user would; it is admitted when whoever asks now has its answer."""

        async def act() -> None:
            session, tasks = self._session, self._host.tasks
            way: wording.Way = "prompt"
            async with wording.looked_at(
                session, tasks, text, images, way, source="extension"
            ) as words:
                if words is not None:
                    prompting.prompt(session, tasks, words.text, words.images, when_busy)

        self._begin(act)

    async def add_message(
        self,
        added: AddedMessage,
        deliver: adding.Deliver = "record",
        *,
        triggers_run: bool = False,
    ) -> adding.Added | None:
        """Tell the model something beside the user's words; None when that begins later.

        Raises what `adding.add_message` raises.
        """

        async def act() -> adding.Added:
            return await adding.add_message(
                self._session, self._host.tasks, added, deliver, triggers_run
            )

        if self._is_hook and triggers_run:
            self._begin(act)
            return None
        return await act()

    async def append_entry(self, custom_type: str, data: JsonObject | None = None) -> str:
        """Keep state on the path, never shown to the model; the entry's id."""
        return await adding.append_entry(self._session, custom_type, data)

    async def record_effect(
        self, kind: EffectKind, summary: str, *, reversible: bool = False, effect_id: str = ""
    ) -> None:
        """Write down what was done beyond the files, so that going back can tell of it."""
        effect: JsonObject = {
            "id": effect_id or self._session.around.ids.unique_id(),
            "kind": kind,
            "summary": summary,
            "reversible": reversible,
            "compensated": False,
        }
        await record_effect(self._session, effect)

    @property
    def active_tools(self) -> list[str]:
        """The tools the model is told of."""
        return list(self._session.chosen.active_tools)

    def set_active_tools(self, names: list[str]) -> None:
        """Choose them; it holds from the next request on. Raises Missing `tool_not_found`."""
        choosing.set_active_tools(self._session, names)

    async def set_model(self, provider: str, model_id: str) -> None:
        """Choose another model for the session. Raises Missing, Refused."""
        await choosing.set_model(self._session, provider, model_id)

    async def set_thinking_level(self, level: str) -> None:
        """Choose how hard the model thinks, for the session."""
        await choosing.set_thinking_level(self._session, level)

    async def rename(self, name: str) -> None:
        """Name the session."""
        await navigating.rename(self._session, name)

    async def set_label(self, entry_id: str, text: str | None) -> None:
        """Label an entry, or clear its label. Raises Missing `entry_not_found`."""
        await navigating.set_label(self._session, entry_id, text)

    def abort(self) -> None:
        """Stop the live run; it settles when whoever runs has stopped."""
        if self._session.run is not None:
            prompting.stop(self._session.run)

    def compact(self, instructions: str = "") -> None:
        """Compact the context, a live run stopped before."""

        async def act() -> None:
            await condensing.compact(self._session, self._host.tasks, instructions)

        self._begin(act)

    def navigate(self, target_id: str | None) -> None:
        """Move the leaf, when no run is live."""

        async def act() -> None:
            await navigating.navigate(self._session, target_id)

        self._begin(act)

    def _begin(self, act: Later) -> None:
        if self._is_hook:
            self._later.append(act)
        else:
            self._host.tasks.start_soon(self._carried_out, act)

    def begin_later(self) -> None:
        """Let what was noted begin; called when the hook has answered."""
        later, self._later = self._later, []
        for act in later:
            self._host.tasks.start_soon(self._carried_out, act)

    async def _carried_out(self, act: Later) -> None:
        try:
            await act()
        except Failure as failure:
            text = f"what an extension began was refused: {failure.message}"
            told = Diagnostic("warning", "extension_act_refused", text)
            self._session.tell(DiagnosticTold(told))
