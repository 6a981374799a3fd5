"""What a session goes by: what was chosen for it, and what was found in files."""

import msgspec

from pi_rpc.core.errors import Failure
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.permissions import PermissionPolicy, PermissionRule
from pi_rpc.core.ports.instructions import Resources
from pi_rpc.core.ports.preferences import KeptSettings, Trust
from pi_rpc.core.ports.providers import Models
from pi_rpc.core.projection import LiveProjection
from pi_rpc.core.retrying import RetryPolicy
from pi_rpc.core.settings import Effective
from pi_rpc.core.thresholds import CompactionSettings
from pi_rpc.core.turns import QueueModes
from pi_rpc.session.surroundings import Surroundings


class Chosen(msgspec.Struct):
    """What was chosen for a session; it outlasts the runtime it was chosen in."""

    model: tuple[str, str] | None
    """Provider and id."""
    thinking_level: str
    active_tools: list[str]
    permissions: PermissionPolicy
    retry: RetryPolicy
    queue_modes: QueueModes
    compaction: CompactionSettings
    remembered: list[PermissionRule] = []
    """What the user said "for this session", newest last."""
    own_settings: JsonObject = {}
    """What was set for this session alone."""
    effective: Effective | None = None
    """The settings as they hold, all layers laid over each other."""
    script: JsonObject | None = None
    """What the offline model plays here instead of the daemon's script."""
    script_position: int = 0
    """How many of its replies were used."""

    def activate(self, tool: str) -> None:
        """Let the model be told of one more tool from the next run on."""
        if tool not in self.active_tools:
            self.active_tools = [*self.active_tools, tool]

    def taken_along(self) -> "Chosen":
        """The same for the next runtime of the session."""
        return msgspec.structs.replace(self)

    def hand_to_copy(self, other: "Chosen") -> None:
        """Let a fork or clone go by it as far as a copy does."""
        other.model = other.model or self.model
        other.retry, other.queue_modes = self.retry, self.queue_modes
        other.script, other.script_position = self.script, self.script_position
        # What was forbidden stays so in a copy; what was allowed is asked for again.
        other.permissions = self.permissions
        other.remembered = [rule for rule in self.remembered if rule.decision == "deny"]


class Guidance(msgspec.Struct):
    """What was found when settings and instructions in files were looked at last."""

    kept: KeptSettings = KeptSettings([], Trust(False, "nobody"), [])
    resources: Resources = Resources()
    noticed: list[Diagnostic] = []
    """What was odd about them."""


def first_choice(
    session_id: str, projection: LiveProjection, around: Surroundings
) -> tuple[Chosen, list[Diagnostic]]:
    """What a runtime begins with, before its settings are looked at; and what was odd."""
    model, odd = _restored_model(projection, around.models)
    chosen = Chosen(
        model=model,
        thinking_level=projection.thinking_level,
        active_tools=list(around.tools),
        permissions=around.permissions,
        retry=around.retry,
        queue_modes=around.queue_modes,
        compaction=around.compaction,
    )
    for _, tool in around.consulting.tools(session_id):
        chosen.activate(tool.declaration.name)
    return chosen, odd


def _restored_model(
    projection: LiveProjection, models: Models
) -> tuple[tuple[str, str] | None, list[Diagnostic]]:
    recorded = projection.model
    if recorded is None:
        return models.default(), []
    try:
        models.provider_of(*recorded)
    except Failure as failure:
        fallback = models.default()
        instead = "none" if fallback is None else "/".join(fallback)
        told = f"{'/'.join(recorded)} cannot be used ({failure.message}); using {instead}"
        return fallback, [Diagnostic("warning", "model_unavailable", told)]
    return recorded, []
