"""What the model is told of the prompt and its tools: whole at first, then what has changed.

Promises
- What a request declares is in the file before it is asked; only a prompt that a hook forces on a
  run is not, and holds for its requests alone.
- A tool that comes or goes during a run is declared, or taken back, before the next request.
"""

from collections.abc import Sequence

from pi_rpc.core.messages import JsonObject, ToolDeclaration
from pi_rpc.core.ports.tools import Tool
from pi_rpc.core.prompt import (
    Declared,
    declared_for,
    declared_in,
    forced_prompt,
    system_patch,
    with_sections,
)
from pi_rpc.session.consulted_tools import active_tools, tools_of_run
from pi_rpc.session.preferring import prompt_parts
from pi_rpc.session.session import Session


class Declaring:
    """What one run declares."""

    def __init__(self, session: Session) -> None:
        self.sections: dict[str, str | None] = {}
        """Sections of the prompt as hooks want them in this run."""
        self.tool_names: Sequence[str] | None = None
        """The tools of this run, where a hook chose some; None for those of the session."""
        self.system_prompt: str | None = None
        """The whole prompt of this run's requests, where a hook wants one."""
        self._session = session
        self._seen: tuple[list[str], int] | None = None

    @property
    def active_names(self) -> list[str]:
        """The tools the model is told of."""
        return list(self._chosen(active_tools(self._session)))

    def tools(self) -> dict[str, Tool]:
        """The same as a run calls them, each with its hooks and its permission."""
        return self._chosen(tools_of_run(self._session))

    def _chosen(self, tools: dict[str, Tool]) -> dict[str, Tool]:
        if self.tool_names is None:
            return tools
        return {name: tools[name] for name in self.tool_names if name in tools}

    def patch(self) -> JsonObject | None:
        """The system message that says what has changed; None when nothing has."""
        session = self._session
        self._seen = (session.chosen.active_tools, session.around.consulting.generation)
        held = declared_in(session.projection.system())
        return system_patch(held, self._wanted(), session.around.clock.now_ms())

    @property
    def may_have_changed(self) -> bool:
        """Whether tools may be others than when it was asked for a patch; costs next to nothing."""
        session = self._session
        if self._seen is None or self._seen[0] is not session.chosen.active_tools:
            return True
        return self._seen[1] != session.around.consulting.generation

    def _wanted(self) -> Declared:
        session = self._session
        told = active_declarations(self._chosen(active_tools(session)))
        wanted = declared_for(str(session.cwd), told, prompt_parts(session))
        return with_sections(wanted, self.sections)

    def as_forced(self, messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """The messages of a request, with the prompt a hook forces on this run."""
        if self.system_prompt is None:
            return messages
        return forced_prompt(messages, self._session.projection.system(), self.system_prompt)


def active_declarations(tools: dict[str, Tool]) -> list[ToolDeclaration]:
    """The tools a model is told of, in their order."""
    return [tool.declaration for tool in tools.values()]
