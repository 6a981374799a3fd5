"""The words that wait for the model."""

import msgspec

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.turns import QueueName


class Queued(msgspec.Struct, frozen=True):
    """Words that wait for the model."""

    id: str
    text: str
    message: JsonObject

    def as_object(self) -> JsonObject:
        """As it is told."""
        return {"id": self.id, "text": self.text}


class Queues(msgspec.Struct):
    """Both queues, first to be delivered first; they outlast the runtime they wait in."""

    steering: list[Queued] = []
    follow_up: list[Queued] = []
    after_turn: list[JsonObject] = []
    """Messages beside the user's that are written when the turn is over."""
    next_prompt: list[JsonObject] = []
    """Such messages that go behind the next prompt."""

    def named(self, name: QueueName) -> list[Queued]:
        """One of them."""
        return self.steering if name == "steering" else self.follow_up
