"""Every method and notification of the native protocol, in one list."""

from pi_rpc.frontends.native import (
    agents,
    branches,
    contexts,
    life,
    models,
    sessions,
    workspaces,
)
from pi_rpc.frontends.native.method import Method, NotificationRow
from pi_rpc.frontends.native.notifications import NOTIFICATION_OF, ProgressNotification

METHODS: dict[str, Method] = {
    method.name: method
    for group in (life, sessions, branches, contexts, agents, models, workspaces)
    for method in group.METHODS
}
"""Methods by name."""

NOTIFICATIONS: dict[str, NotificationRow] = {
    name: NotificationRow(name, (shape.__doc__ or "").strip(), shape)
    for name, shape, _ in NOTIFICATION_OF.values()
} | {
    "$/progress": NotificationRow(
        "$/progress", (ProgressNotification.__doc__ or "").strip(), ProgressNotification
    ),
    "$/cancelRequest": NotificationRow(
        "$/cancelRequest",
        "Withdraw a request; it is still answered, once.",
        life.CancelParams,
        sender="client",
    ),
}
"""Notifications by name."""
