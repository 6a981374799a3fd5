"""A history in memory: the tree, where the leaf stands, and all that follows from it."""

from pi_rpc.core.bindings import Bindings
from pi_rpc.core.entries import Entry
from pi_rpc.core.policy import Policy
from pi_rpc.core.ports.store import StoredSession
from pi_rpc.core.projection import LiveProjection
from pi_rpc.core.tree import DEAD_END_KINDS, Tree
from pi_rpc.session.counting import Counting


class History:
    """The tree and what is derived from it."""

    def __init__(self, stored: StoredSession, policy: Policy, leaf_row: int | None = None) -> None:
        self.tree = Tree(stored.heads, stored.line, stored.block)
        self.leaf_row = self.tree.stored_leaf() if leaf_row is None else leaf_row
        self.projection = LiveProjection(self.tree, self.leaf_row, policy)
        self.bindings = Bindings(self.tree)
        self.counted = Counting(self.tree)
        self.kept_by_provider: dict[str, object] = {}
        """What the provider made of the context, to go on from with the next request."""

    def stand_at(self, row: int) -> None:
        """Move the leaf."""
        self.leaf_row = row
        self.projection.rebase(row)

    def advance(self, entry: Entry, *, moved: bool) -> None:
        """Let the leaf go along with an entry of ours that joined the tree.

        `moved`: it does not hang below the leaf.
        """
        if entry.kind in DEAD_END_KINDS:
            self.stand_at(self.tree.parent(entry.row))
        elif moved:
            self.stand_at(entry.row)
        else:
            self.leaf_row = entry.row
            self.projection.extend(entry.row)
