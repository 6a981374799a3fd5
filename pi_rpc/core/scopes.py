"""Scopes of the world beyond the files that somebody else keeps versions of: what is known of them.

A database or a container has states that nobody here can name. Whoever offers a scope names them,
says whether one holds, and may go back to one.

Promises
- Nothing is said to be restored that its provider did not say is.
- Whatever keeps the provider from answering is a reason, and the verdict is `unknown`.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from pi_rpc.core.bindings import At
from pi_rpc.core.entries import WORKSPACE, Body, custom
from pi_rpc.core.errors import Invalid
from pi_rpc.core.events import ScopeVerdict
from pi_rpc.core.messages import JsonObject

OWN_SCOPES = frozenset({"files", "external"})
"""Scopes nobody else can offer: what is compared here, and what nobody sees."""

ScopeName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
"""Such as `database` or `container`."""

VERSION_CHARS_MAX = 1000

ScopeVersion = Annotated[str, msgspec.Meta(min_length=1, max_length=VERSION_CHARS_MAX)]

CheckpointAct = Literal["checkpoint", "restore"]
CheckpointTime = Literal["before_tools", "after_tools", "move", "look", "restore"]
"""When a provider is asked: around the calls of a run, when the leaf moves, when somebody looks,
and around a restore."""


class CheckpointAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """To `workspace/checkpoint`: the state the scope is in now, or what came of going back."""

    version: ScopeVersion | None = None
    """The name of the present state, by which it can be gone back to; null when it has none."""
    same: bool | None = None
    """Whether the state `expected` holds; left out, the two names are compared."""
    restored: bool = False
    """To `restore`: it is at `expected` again; with `dryRun`, it could be."""
    reason: str | None = None
    """Why there is no version, or why it did not go back; for people."""


def check_scope_name(name: str) -> None:
    """Raise Invalid `scope_reserved` for a scope that is looked at here."""
    if name in OWN_SCOPES:
        raise Invalid("scope_reserved", f"the scope {name} is looked at here", name=name)


class ScopeState(msgspec.Struct, frozen=True):
    """What is known of a scope now."""

    version: str | None = None
    same: bool | None = None
    why_not: str | None = None
    """The reason when nobody said anything: no_provider, provider_timeout, …"""


def scope_verdict(
    expected: str | None, state: ScopeState, *, has_run: bool, by: str | None = None
) -> ScopeVerdict:
    """How a scope stands against the version bound to a leaf, None where there is none.

    `has_run`: whether anything of this session may have marked the world.
    """
    if expected is None:
        if has_run:
            return ScopeVerdict("unknown", "not_bound", actual=state.version)
        return ScopeVerdict("restored", "nothing_ran", actual=state.version)
    if state.why_not is not None:
        return ScopeVerdict("unknown", state.why_not, expected)
    same = holds(expected, state)
    if same is None:
        return ScopeVerdict("unknown", "not_told", expected)
    if same:
        return ScopeVerdict("restored", "equal", expected, state.version, by)
    return ScopeVerdict("not_restored", "differs", expected, state.version)


def holds(expected: str | None, state: ScopeState) -> bool | None:
    """Whether a scope is in the state of this name; None when that is not known."""
    if expected is None or state.why_not is not None:
        return None
    if state.same is not None:
        return state.same
    return None if state.version is None else state.version == expected


class ScopeRestored(msgspec.Struct, frozen=True, rename="camel"):
    """What came of bringing one scope back."""

    version: str
    """Where it was to go."""
    restored: bool
    """Whether its provider says it is there; of a dry run, that it could be."""
    reason: str
    """equal, restored, refused, no_provider, provider_timeout, …"""
    safety_version: str | None = None
    """The state before, where it has a name; restore to it to undo."""
    said: str | None = None
    """What the provider says of it."""


def scopes_body(
    at: At, described: str | None, versions: Mapping[str, str], before: Mapping[str, str] = {}
) -> Body:
    """The entry that names states of scopes; `before`: those a restore begins with."""
    scopes: JsonObject = {
        scope: {"kind": "provider", "version": version}
        | ({"before": before[scope]} if scope in before else {})
        for scope, version in versions.items()
    }
    return custom(WORKSPACE, {"v": 1, "at": at, "leaf": described, "scopes": scopes})
