"""How the working directory stands to a session."""

from collections.abc import Sequence

import msgspec

from pi_rpc.core.events import Environment
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.workspace import PathChange, Snapshot
from pi_rpc.core.versions import FilesAt


class Untied(msgspec.Struct, frozen=True):
    """What a command of the user did to the files, whose result is not written yet."""

    before: str
    """The version it began with."""
    after: str
    changes: Sequence[PathChange]


class Standing(msgspec.Struct):
    """What is known of the files, and what is to be told of them."""

    files: FilesAt
    """Which place in the tree they are as."""
    checked: Environment | None = None
    """What was found when somebody last looked how the files stand to the leaf."""
    abandoned: dict[str, JsonObject] = {}
    """By entry id, calls on routes that were left and may have marked the world."""
    is_too_much_told: bool = False
    """Whether it was told that there is too much in the folder for its states to be named."""
    before_commands: tuple[int, Snapshot] | None = None
    """The leaf and the state that such a command began with, where nobody could bind it yet."""
    effects: list[JsonObject] = []
    """What was done beyond the files, to be written when calls have their results."""
    untied: list[Untied] = []
    """To be bound when the results are written."""
    has_drifted: bool = False
    """Whether a move was not followed by the world and nobody took note of it yet."""
    is_drift_untold: bool = False
    """Whether the model was not told of a drift yet."""
