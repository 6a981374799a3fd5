"""Requests for sessions that are on their way: they wait for them, in the order they came.

So a client may send a request that makes or opens a session and those that need it in one write.

Promises
- A request for a session is handled after the earlier ones that may bring it are answered.
- Of the requests for one session none overtakes another that waits.
- Nobody waits longer than ARRIVAL_S: the request is then handled as things stand.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from typing import Any

import anyio

ARRIVAL_S = 30.0
"""How long a request waits for a session; opening the longest history takes a few seconds."""


class Place:
    """A place in the order of requests, held until what was asked for is done."""

    def __init__(self, name: str, *, brings: bool) -> None:
        self.name = name
        """Of a session: its id; for one that is brought also the beginning of it."""
        self.brings = brings
        self.left = anyio.Event()

    def concerns(self, session_id: str) -> bool:
        """Whether a request for this session has to wait for it."""
        return session_id.startswith(self.name) if self.brings else session_id == self.name


class Arrivals:
    """The requests of one client that bring a session or wait for one."""

    def __init__(self) -> None:
        self._places: list[Place] = []

    @property
    def is_anything_expected(self) -> bool:
        """Whether any request may have to wait."""
        return bool(self._places)

    def before(self, session_ids: Iterable[str], is_live: Callable[[str], bool]) -> list[Place]:
        """What a request that names these sessions has to wait for."""
        return [
            place
            for session_id in session_ids
            for place in self._places
            # A session that is there is not brought by what may bring any.
            if place.concerns(session_id) and (place.name or not is_live(session_id))
        ]

    def waiting(self, session_ids: Iterable[str]) -> list[Place]:
        """Places for a request that waits for these sessions."""
        return self._taken([Place(session_id, brings=False) for session_id in session_ids])

    def bringing(self, beginning: str) -> list[Place]:
        """The place of a request that brings a session whose id begins so."""
        return self._taken([Place(beginning, brings=True)])

    def _taken(self, places: list[Place]) -> list[Place]:
        self._places += places
        return places

    def _leave(self, places: Iterable[Place]) -> None:
        for place in places:
            self._places.remove(place)
            place.left.set()

    async def after(
        self,
        earlier: Sequence[Place],
        places: Sequence[Place],
        prepare: Callable[[], Awaitable[None]],
        act: Callable[[], Any],
    ) -> Any:
        """Prepare and act once the earlier places are left, then leave these; the awaited answer.

        No wait stands between preparing and acting.
        """
        try:
            with anyio.move_on_after(ARRIVAL_S):
                for place in earlier:
                    await place.left.wait()
            await prepare()
            answer = act()
        finally:
            self._leave(places)
        return await answer if isawaitable(answer) else answer

    async def brought(self, places: Sequence[Place], answer: Awaitable[Any]) -> Any:
        """The awaited answer, after which these places are left."""
        try:
            return await answer
        finally:
            self._leave(places)
