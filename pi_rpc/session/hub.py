"""Events of one runtime, numbered and fanned out to its listeners.

Promises
- Numbers count from 1 without gaps; every listener hears every event from when it attached.
- The window of past events is bounded in count and weight; what it no longer holds is said to be
  gone.
- A listener that is full makes the loop of this runtime wait, and no other.
"""

from collections import deque
from typing import Protocol

from pi_rpc.core.events import Event

WINDOW_EVENTS_MAX = 4096
"""Past events kept for catching up; a run of a few turns with its deltas merged."""

WINDOW_WEIGHT_MAX = 4 * 1024 * 1024
"""Weight in characters of the past events kept, whatever their number."""

EVENT_WEIGHT = 200
"""What an event weighs beside its text."""


class Listener(Protocol):
    """Somebody who hears the events of a runtime."""

    def hear(self, hub: "Hub", seq: int, event: Event) -> None:
        """Take one event; never blocks."""
        ...

    @property
    def is_pressed(self) -> bool:
        """Whether small events should be merged before they come."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether nothing more should come for now."""
        ...

    async def wait_until_free(self) -> None:
        """Return when more may come, or when nobody listens there any more."""
        ...


class Hub:
    """The one mouth of a runtime."""

    def __init__(self, session_id: str, runtime_id: str) -> None:
        self.session_id = session_id
        self.runtime_id = runtime_id
        self.seq = 0
        self._listeners: tuple[Listener, ...] = ()
        self._window: deque[tuple[int, Event, int]] = deque()
        self._weight = 0

    def publish(self, event: Event, weight: int = 0) -> None:
        """Number an event and tell it; `weight` is the length of its text in characters."""
        self.seq += 1
        seq = self.seq
        weight += EVENT_WEIGHT
        window = self._window
        window.append((seq, event, weight))
        self._weight += weight
        while self._weight > WINDOW_WEIGHT_MAX or len(window) > WINDOW_EVENTS_MAX:
            self._weight -= window.popleft()[2]
        for listener in self._listeners:
            listener.hear(self, seq, event)

    def attach(self, listener: Listener) -> None:
        """Let a listener hear what comes from now on; attaching twice changes nothing."""
        if listener not in self._listeners:
            self._listeners = (*self._listeners, listener)

    def detach(self, listener: Listener) -> None:
        """Let a listener hear no more."""
        self._listeners = tuple(other for other in self._listeners if other is not listener)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Who hears this runtime now."""
        return self._listeners

    def since(self, seq: int) -> list[tuple[int, Event]] | None:
        """Events after `seq`, or None when some of them are gone."""
        oldest = self._window[0][0] if self._window else self.seq + 1
        if seq > self.seq or seq + 1 < oldest:
            return None
        return [(number, event) for number, event, _ in self._window if number > seq]

    @property
    def is_pressed(self) -> bool:
        """Whether a listener asks for merged events."""
        return any(listener.is_pressed for listener in self._listeners)

    @property
    def is_full(self) -> bool:
        """Whether a listener wants nothing more for now."""
        return any(listener.is_full for listener in self._listeners)

    async def wait_until_free(self) -> None:
        """Return when no listener is full."""
        for listener in self._listeners:
            if listener.is_full:
                await listener.wait_until_free()
