"""What a session goes by when a call needs permission, and what its user said before."""

from pi_rpc.core.permissions import PermissionPolicy, PermissionRule
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import Result, SessionParams


class PermissionListResult(Result, frozen=True, kw_only=True):
    """Rules of the settings, and what was remembered."""

    policy: PermissionPolicy
    remembered: list[PermissionRule]
    """What the user said "for this session", oldest first."""


class PermissionForgetParams(SessionParams, frozen=True, kw_only=True):
    """What is to be forgotten."""

    rule: PermissionRule | None = None
    """As `permission/list` has it; left out, everything."""


def listing(connection: Connection, params: SessionParams) -> PermissionListResult:
    """What decides before the user is asked."""
    chosen = connection.host.session(params.session_id).chosen
    return PermissionListResult(policy=chosen.permissions, remembered=list(chosen.remembered))


def forget(connection: Connection, params: PermissionForgetParams) -> PermissionListResult:
    """Take back what the user said "for this session"; from the next call on he is asked again."""
    chosen = connection.host.session(params.session_id).chosen
    kept = [] if params.rule is None else [one for one in chosen.remembered if one != params.rule]
    chosen.remembered = kept
    return PermissionListResult(policy=chosen.permissions, remembered=list(kept))


METHODS = (
    Method("permission/list", "What decides calls.", SessionParams, PermissionListResult, listing),
    Method(
        "permission/forget",
        "Take back what is remembered.",
        PermissionForgetParams,
        PermissionListResult,
        forget,
    ),
)
