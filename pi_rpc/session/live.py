"""What is going on in a session: a run, commands of the user, a summary."""

import anyio

from pi_rpc.agent.stopping import Stop
from pi_rpc.core.events import Outcome
from pi_rpc.core.retrying import RetryPolicy
from pi_rpc.core.turns import Run


class LiveRun:
    """A run that was accepted and has not settled."""

    def __init__(
        self, run_id: str, retry: RetryPolicy | None = None, *, makes_room: bool = False
    ) -> None:
        self.run_id = run_id
        self.machine = Run(retry, makes_room=makes_room)
        self.stop = Stop()
        self.pause: Stop | None = None
        """While a retry is waited for; set by whoever wants the wait to end."""
        self.attempt_open = False
        self.retry = 0
        """The number of the retry that was told of and has not ended; 0 for none."""
        self.settled = anyio.Event()
        self.outcome: Outcome | None = None


class LiveShell:
    """A command the user runs that has not ended."""

    def __init__(self) -> None:
        self.stop = Stop()
        self.ended = anyio.Event()


class LivePass:
    """A summary somebody asked for, while no run is live."""

    def __init__(self) -> None:
        self.stop = Stop()
        self.pause: Stop | None = None
        """While it waits to ask again; set by whoever wants the wait to end."""
        self.ended = anyio.Event()
