"""The rules a context is made by, each set under a name and a version.

Promises
- A policy never changes under its name: another rule, another estimator, is another policy.
"""

import msgspec

from pi_rpc.core.context_messages import is_kept_from_model
from pi_rpc.core.entries import Kind
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.tokens import (
    CJK_ESTIMATOR,
    ESTIMATOR,
    TextUnits,
    cjk_units,
    estimate,
    utf16_units,
)

UNTOUCHABLE_KINDS = frozenset({Kind.COMPACTION, Kind.BRANCH_SUMMARY, Kind.SYSTEM})
"""Kinds whose words only an edit made by hand could take away."""


class Policy(msgspec.Struct, frozen=True):
    """The rules a context is made by; a record names them, so another rule is another policy."""

    id: str
    version: str
    estimator: str = ESTIMATOR
    honours_replace: bool = False
    """Whether a system message with `replace: true` drops what came before it."""
    ignores_hand_edits: bool = False
    """Whether an edit of a compaction, branch summary or system message does nothing."""
    counts_private_shell: bool = True
    """Whether shell output that is never sent counts in estimates."""
    makes_checkpoints: bool = False
    """Whether a compaction without a checkpoint is given the system messages it follows."""

    @property
    def text_units(self) -> TextUnits:
        """How the estimator weighs a text."""
        return cjk_units if self.estimator == CJK_ESTIMATOR else utf16_units

    @property
    def options(self) -> JsonObject:
        """What differs from Pi, as a record shows it."""
        told = {
            "honoursReplace": (self.honours_replace, False),
            "ignoresHandEdits": (self.ignores_hand_edits, False),
            "countsPrivateShell": (self.counts_private_shell, True),
            "makesCheckpoints": (self.makes_checkpoints, False),
        }
        return {name: value for name, (value, pi_value) in told.items() if value != pi_value}

    def as_object(self) -> JsonObject:
        """The policy as records and digests name it."""
        return {
            "id": self.id,
            "version": self.version,
            "estimator": self.estimator,
            "options": self.options,
        }

    def tokens_of(self, message: JsonObject) -> int:
        """Estimated tokens of one message in the session form."""
        if not self.counts_private_shell and is_kept_from_model(message):
            return 0
        return estimate(message, self.text_units)


PI3 = Policy(id="pi3", version="1")
"""What Pi 1.6 makes of a file, its oddities included."""

OURS = Policy(
    id="cjk-aware",
    version="1",
    estimator=CJK_ESTIMATOR,
    honours_replace=True,
    ignores_hand_edits=True,
    counts_private_shell=False,
)
"""What this daemon goes by."""

POLICIES = {"default": OURS, OURS.id: OURS, PI3.id: PI3}
"""Policies by the names clients ask for them."""
