"""What a runtime is given to work with."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio.abc
import msgspec

from pi_rpc.core.events import Diagnostic
from pi_rpc.core.idleness import UnloadRules
from pi_rpc.core.permissions import PermissionPolicy
from pi_rpc.core.policy import OURS, Policy
from pi_rpc.core.ports.clock import Chance, Clock, Ids
from pi_rpc.core.ports.instructions import Instructions
from pi_rpc.core.ports.preferences import Preferences
from pi_rpc.core.ports.providers import Models
from pi_rpc.core.ports.tools import FindRunning, Shell, Tool
from pi_rpc.core.ports.workspace import Workspaces, Worktrees
from pi_rpc.core.retrying import RetryPolicy
from pi_rpc.core.thresholds import CompactionSettings
from pi_rpc.core.turns import QueueModes
from pi_rpc.session.batches import Batches
from pi_rpc.session.consulting import Consulting


class Foreseen:
    """Chance that leaves nothing open: always 0."""

    def fraction(self) -> float:
        """0."""
        return 0.0


class Surroundings(msgspec.Struct, frozen=True):
    """What a runtime is given to work with."""

    clock: Clock
    ids: Ids
    models: Models
    tools: dict[str, Tool]
    spill_root: Path
    """Where output too long to show is kept, a folder for each session."""
    left_behind: anyio.abc.TaskGroup
    """Where tools run, so that one which withstands being stopped holds up nobody."""
    shell: Shell
    grace_s: float = 5.0
    """How long a stopped tool may take to end before it is abandoned."""
    sync_each_entry: bool = True
    """Whether an entry is synced before it is told; else at turn ends and moves only."""
    policy: Policy = OURS
    compaction: CompactionSettings = CompactionSettings()
    """What a session starts with; each may be told otherwise."""
    retry: RetryPolicy = RetryPolicy()
    queue_modes: QueueModes = QueueModes()
    chance: Chance = Foreseen()
    consulting: Consulting = msgspec.field(default_factory=Consulting)
    """What clients offered to do, and what they are asked."""
    permissions: PermissionPolicy = PermissionPolicy()
    preferences: Preferences | None = None
    """Settings and trust in files; None where there are none."""
    instructions: Instructions | None = None
    """Context files, skills and templates; None where there are none."""
    workspaces: Workspaces | None = None
    """States of folders; None where nobody asks for them."""
    find_running: FindRunning | None = None
    """Finds what commands left running; None where nobody looks."""
    worktrees: Worktrees | None = None
    """Work trees for forks; None where none are made."""
    batches: Batches = msgspec.field(default_factory=Batches)
    diagnostics: list[Diagnostic] = []
    """What was odd when the daemon was put together."""
    require_acknowledge: bool = False
    """Whether no prompt is taken after a drift before somebody took note of it."""
    tells_drift: bool = False
    """Whether the model is told when it goes on with files that did not go back with it."""
    unloading: UnloadRules = UnloadRules()
    """When open sessions give back their memory."""
    trim: Callable[[], Awaitable[None]] | None = None
    """Gives memory that is free back to the system; None where nobody can."""
