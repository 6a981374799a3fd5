"""Every method and notification of the native protocol, in one list."""

from pi_rpc.core.consultations import (
    ChoiceAnswer,
    CommandAnswer,
    ConfirmAnswer,
    PermissionAnswer,
    TextAnswer,
    ToolAnswer,
)
from pi_rpc.core.hooks import HOOKS
from pi_rpc.core.scopes import CheckpointAnswer
from pi_rpc.frontends.native import (
    additions,
    agents,
    branches,
    compactions,
    contexts,
    exports,
    finding,
    hearing,
    histories,
    life,
    models,
    permissions,
    preferences,
    registrations,
    serving,
    sessions,
    shells,
    statistics,
    workspaces,
)
from pi_rpc.frontends.native.method import ClientRequest, Method, NotificationRow
from pi_rpc.frontends.native.notifications import NOTIFICATION_OF, ProgressNotification

METHODS: dict[str, Method] = {
    method.name: method
    for group in (
        life,
        sessions,
        hearing,
        histories,
        finding,
        exports,
        branches,
        contexts,
        compactions,
        agents,
        additions,
        models,
        permissions,
        preferences,
        registrations,
        shells,
        statistics,
        workspaces,
    )
    for method in group.METHODS
}
"""Methods by name."""

REQUESTS: dict[str, ClientRequest] = {
    row.name: row
    for row in (
        ClientRequest(
            "hook/call",
            "Take part in an act.",
            serving.HookCallParams,
            tuple(dict.fromkeys(point.answer for point in HOOKS.values())),
        ),
        ClientRequest(
            "tool/execute",
            "Run a tool of the client; `tool/progress` may be sent meanwhile.",
            serving.ToolExecuteParams,
            (ToolAnswer,),
            serving.ClientToolProgressParams,
        ),
        ClientRequest(
            "permission/request",
            "Ask the user whether a call may run.",
            serving.PermissionRequestParams,
            (PermissionAnswer,),
        ),
        ClientRequest(
            "command/execute",
            "Carry out a command of the client.",
            serving.CommandExecuteParams,
            (CommandAnswer,),
        ),
        ClientRequest(
            "workspace/checkpoint",
            "Name the state of a scope of the client's, or go back to one.",
            serving.WorkspaceCheckpointParams,
            (CheckpointAnswer,),
        ),
        ClientRequest("ui/select", "Let the user choose.", serving.UiSelectParams, (ChoiceAnswer,)),
        ClientRequest(
            "ui/confirm", "Let the user agree.", serving.UiConfirmParams, (ConfirmAnswer,)
        ),
        ClientRequest("ui/input", "Ask for a line.", serving.UiInputParams, (TextAnswer,)),
        ClientRequest("ui/editor", "Ask for a text.", serving.UiEditorParams, (TextAnswer,)),
    )
}
"""Requests to the client, by name."""

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
