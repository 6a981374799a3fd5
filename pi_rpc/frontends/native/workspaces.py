"""The working directory: how it stands to the leaf."""

from pi_rpc.core.events import Environment
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import Result, SessionParams


class WorkspaceStatusResult(Result, frozen=True, kw_only=True):
    """Whether the world went along with the leaf."""

    cwd: str
    leaf_id: str | None
    environment: Environment


def status(connection: Connection, params: SessionParams) -> WorkspaceStatusResult:
    """How the working directory stands against the leaf, as far as it is known."""
    session = connection.host.session(params.session_id)
    return WorkspaceStatusResult(
        cwd=str(session.cwd), leaf_id=session.leaf_id, environment=session.environment
    )


METHODS = (
    Method(
        "workspace/status",
        "How the files stand to the leaf.",
        SessionParams,
        WorkspaceStatusResult,
        status,
    ),
)
