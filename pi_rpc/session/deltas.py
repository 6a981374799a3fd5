"""A streamed reply told piece by piece, or in fewer and larger pieces to whoever lags.

Promises
- The text told of a block is exactly the text that came, in order.
- Numbers have no gaps: what is merged is merged before it is numbered.
"""

from collections.abc import Sequence

from pi_rpc.core.events import DeltaKind, MessageDelta
from pi_rpc.core.reply import BlockDelta, BlockStarted, Piece
from pi_rpc.session.hub import Hub

MERGED_CHARS_MAX = 8 * 1024
"""The longest text of one delta, merged or not, and how much is held back for who lags.

However it is escaped, a message with it fits what the most modest client reads.
"""

_KIND: dict[str, DeltaKind] = {"text": "text", "thinking": "thinking", "toolCall": "toolArguments"}


class Deltas:
    """The deltas of one reply."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._kinds: dict[int, DeltaKind] = {}
        self._held: list[str] = []
        self._held_chars = 0
        self._held_block = -1

    def tell(self, pieces: Sequence[Piece]) -> None:
        """Publish what these pieces add, merged while a listener is pressed."""
        is_pressed = self._hub.is_pressed
        if self._held and not is_pressed:
            self.flush()
        publish, kinds = self._hub.publish, self._kinds
        for piece in pieces:
            if type(piece) is BlockDelta:
                if is_pressed:
                    self._hold(piece)
                elif len(piece.text) > MERGED_CHARS_MAX:
                    self._cut(piece.index, piece.text)
                elif piece.text:
                    text = piece.text
                    publish(MessageDelta(piece.index, kinds[piece.index], text), len(text))
            elif type(piece) is BlockStarted:
                self.flush()
                kinds[piece.index] = _KIND[piece.kind]
                if piece.kind == "toolCall":
                    publish(
                        MessageDelta(piece.index, "toolArguments", "", piece.call_id, piece.name)
                    )

    def _hold(self, piece: BlockDelta) -> None:
        if piece.index != self._held_block or self._held_chars >= MERGED_CHARS_MAX:
            self.flush()
        self._held_block = piece.index
        self._held.append(piece.text)
        self._held_chars += len(piece.text)

    def flush(self) -> None:
        """Publish what is held back."""
        text = "".join(self._held)
        self._cut(self._held_block, text)
        self._held.clear()
        self._held_chars = 0

    def _cut(self, block: int, text: str) -> None:
        for start in range(0, len(text), MERGED_CHARS_MAX):
            part = text[start : start + MERGED_CHARS_MAX]
            self._hub.publish(MessageDelta(block, self._kinds[block], part), len(part))
