"""The kinds of failure, each saying what a caller can do about it.

A failure carries a `reason` (a stable slug a program may compare), a `message` for people (which
may change any day) and `data` a program needs. Front ends own the table from kinds to wire codes.
"""

from typing import Any, ClassVar


class Failure(Exception):  # noqa: N818  # what a caller meets is no mistake of anybody's
    """An act that did not happen, said in a way a program can use."""

    kind: ClassVar[str] = "failure"

    def __init__(self, reason: str, message: str = "", /, **data: Any) -> None:
        super().__init__(message or reason.replace("_", " "))
        self.reason = reason
        self.message = message or reason.replace("_", " ")
        self.data = data

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reason!r}, {self.message!r}, {self.data!r})"


class Invalid(Failure):
    """The words are not well formed; correct them and try again."""

    kind = "invalid"


class Missing(Failure):
    """What is named is not there."""

    kind = "missing"


class Refused(Failure):
    """It is there, but its state does not allow this now."""

    kind = "refused"


class Busy(Refused):
    """Another act holds the session; `data` names it (`runId` or `act`)."""

    kind = "busy"


class Conflict(Refused):
    """The leaf or the runtime moved since the caller looked; `data` has `expected` and `actual`."""

    kind = "conflict"


class Locked(Refused):
    """Another process owns the session; `data` has `owner` with pid, host and since."""

    kind = "locked"


class Experimental(Refused):
    """An experimental name was used without the client having asked for experiments."""

    kind = "experimental"


class Overfull(Failure):
    """A limit is reached; later may do, `retryAfterMs` says when if that is known."""

    kind = "overfull"


class Outside(Failure):
    """Disk, net, process or provider failed; `retryable` says whether trying again may help."""

    kind = "outside"


class Damaged(Failure):
    """Stored bytes break the format's promise; repair comes before anything else."""

    kind = "damaged"


class Stopped(Failure):
    """The caller or a shutdown ended it."""

    kind = "cancelled"
