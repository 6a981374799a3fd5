"""What a client serves: tools, hooks, commands and permissions, offered to us and asked by us."""

from typing import Any, Literal, Protocol

import anyio
import msgspec

from pi_rpc.core.consultations import (
    ChoiceAnswer,
    CommandAnswer,
    ConfirmAnswer,
    PermissionAnswer,
    PermissionOption,
    TextAnswer,
    ToolAnswer,
)
from pi_rpc.core.hooks import HOOKS, HookName
from pi_rpc.core.messages import Block, JsonObject
from pi_rpc.core.ports.tools import Effect
from pi_rpc.core.scopes import CheckpointAct, CheckpointAnswer, CheckpointTime, ScopeName
from pi_rpc.session.consulting import Question, QuestionKind
from pi_rpc.session.dialogs import DialogOption
from pi_rpc.session.host import Host
from pi_rpc.wire.errors import DisconnectedError, RemoteError, RpcError


class AskedParams(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """What every request about a session carries."""

    request_id: str
    """Names the question; it stays when the question is put again."""
    session_id: str
    runtime_id: str
    run_id: str | None = None
    deadline_ms: int
    """How long the answer is waited for, from when the question was put first."""


class HookCallParams(AskedParams, frozen=True, kw_only=True):
    """A point that the client wants to take part in."""

    registration_id: str
    hook: HookName
    payload: JsonObject
    """What the point tells; its shape bears the point's name."""


class ToolExecuteParams(AskedParams, frozen=True, kw_only=True):
    """A call of a tool that the client runs; `tool/progress` may be sent meanwhile."""

    registration_id: str
    call_id: str
    name: str
    arguments: JsonObject
    """Validated by the tool's schema."""
    cwd: str


class PermissionRequestParams(AskedParams, frozen=True, kw_only=True):
    """A call that needs the user's permission."""

    call_id: str
    name: str
    arguments: JsonObject
    """As they will run."""
    effect: Effect
    subject: str
    """The command it is about, or where its path leads, as seen from the folder; empty when it has
    neither."""
    is_outside: bool
    """Whether its path leads out of the session's folder, as far as is known."""
    preview: JsonObject = {}
    """What a file would become, where the tool can say so: `patch`, `diff`, `firstChangedLine`; or
    the `problem` that keeps it from being done."""
    options: list[PermissionOption]


class CommandExecuteParams(AskedParams, frozen=True, kw_only=True):
    """A command that the user gave."""

    registration_id: str
    name: str
    arguments: str
    """What stands behind the name, as it was written."""


class WorkspaceCheckpointParams(AskedParams, frozen=True, kw_only=True):
    """A scope of the client's is asked for its present state, or to go back to one."""

    registration_id: str
    scope: ScopeName
    act: CheckpointAct
    """`checkpoint`: name the present state and keep it. `restore`: go back to `expected`."""
    at: CheckpointTime
    """before_tools, after_tools, move, look, restore."""
    leaf_id: str | None
    """The entry it is asked at."""
    expected: str | None
    """The version bound to where the leaf stands or goes; to `restore`, the one to go back to."""
    dry_run: bool
    """Of `restore`: only say whether it could."""


class DialogParams(AskedParams, frozen=True, kw_only=True):
    """Something to show the user; when nobody answers in time, its default holds."""

    title: str
    message: str = ""


class UiSelectParams(DialogParams, frozen=True, kw_only=True):
    """A choice of one."""

    options: list[DialogOption]
    default: str | None = None
    """The value that holds without an answer; null for none."""


class UiConfirmParams(DialogParams, frozen=True, kw_only=True):
    """A question that is answered with yes or no."""

    default: bool | None = None
    """What holds without an answer."""


class UiInputParams(DialogParams, frozen=True, kw_only=True):
    """A line of text."""

    placeholder: str = ""
    default: str | None = None
    """What holds without an answer."""


class UiEditorParams(DialogParams, frozen=True, kw_only=True):
    """A text to edit."""

    text: str = ""
    """What stands in it at first."""
    default: str | None = None
    """What holds without an answer."""


_RESULT_OF_KIND: dict[QuestionKind, Any] = {
    "tool": ToolAnswer,
    "permission": PermissionAnswer,
    "command": CommandAnswer,
    "checkpoint": CheckpointAnswer,
    "select": ChoiceAnswer,
    "confirm": ConfirmAnswer,
    "input": TextAnswer,
    "editor": TextAnswer,
}

_METHOD_OF_KIND: dict[QuestionKind, str] = {
    "select": "ui/select",
    "confirm": "ui/confirm",
    "input": "ui/input",
    "editor": "ui/editor",
    "hook": "hook/call",
    "tool": "tool/execute",
    "permission": "permission/request",
    "command": "command/execute",
    "checkpoint": "workspace/checkpoint",
}


class PendingRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A request to the client that waits for an answer; it is sent again."""

    request_id: str
    method: Literal[
        "hook/call",
        "tool/execute",
        "permission/request",
        "command/execute",
        "workspace/checkpoint",
        "ui/select",
        "ui/confirm",
        "ui/input",
        "ui/editor",
    ]
    params: JsonObject


class ClientToolProgressParams(msgspec.Struct, frozen=True, rename="camel"):
    """What a client's tool has to show so far, instead of what it showed before."""

    session_id: str
    call_id: str
    content: list[Block]
    details: JsonObject | None = None


class Asker(Protocol):
    """Where requests to the client go."""

    async def request(
        self, method: str, params: Any = None, timeout_s: float | None = None
    ) -> msgspec.Raw:
        """Ask and wait for the result."""
        ...


class Serving:
    """The client as somebody who can be asked."""

    def __init__(self, host: Host, asker: Asker) -> None:
        self.serves_permissions = False
        self.dialogs: frozenset[str] = frozenset()
        self._host = host
        self._asker = asker
        self._under_way: dict[str, anyio.CancelScope] = {}
        host.around.consulting.join(self)

    def put(self, question: Question) -> None:
        """Send a question as a request, in a task of its own."""
        scope = self._under_way[question.id] = anyio.CancelScope()
        self._host.tasks.start_soon(self._carry, question, scope)

    def withdraw(self, question_id: str) -> None:
        """Take a request back; the client is told with `$/cancelRequest`."""
        scope = self._under_way.pop(question_id, None)
        if scope is not None:
            scope.cancel()

    def again(self, session_id: str) -> list[PendingRequest]:
        """What waits for an answer about a session; each is withdrawn and sent anew."""
        waiting = self._host.around.consulting.pending(session_id, self)
        for question in waiting:
            self.withdraw(question.id)
            self.put(question)
        return [
            PendingRequest(question.id, _method_of(question), _params_of(question))
            for question in waiting
        ]

    def progressed(self, raw: msgspec.Raw) -> None:
        """Take `tool/progress` of the client; what cannot be read is no progress."""
        told = msgspec.json.decode(raw, type=ClientToolProgressParams)
        self._host.around.consulting.progressed(
            told.session_id, told.call_id, told.content, told.details
        )

    def leave(self) -> None:
        """The client is gone."""
        self._host.around.consulting.leave(self)

    async def _carry(self, question: Question, scope: anyio.CancelScope) -> None:
        consulting = self._host.around.consulting
        with scope:
            try:
                raw = await self._asker.request(_method_of(question), _params_of(question))
                consulting.answer(
                    question.id, msgspec.json.decode(raw, type=_answer_type(question))
                )
            except RemoteError as error:
                consulting.fail(question.id, "failed", error.message)
            except DisconnectedError as error:
                consulting.fail(question.id, "disconnected", str(error))
            except RpcError as error:
                consulting.fail(question.id, "failed", error.message)
            except msgspec.DecodeError as error:
                consulting.fail(question.id, "failed", f"the answer cannot be read: {error}")
        if self._under_way.get(question.id) is scope:
            del self._under_way[question.id]


def _method_of(question: Question) -> Any:
    return _METHOD_OF_KIND[question.kind]


def _answer_type(question: Question) -> Any:
    if question.hook is not None:
        return HOOKS[question.hook].answer
    return _RESULT_OF_KIND[question.kind]


def _params_of(question: Question) -> JsonObject:
    params: JsonObject = {
        "requestId": question.id,
        "sessionId": question.session_id,
        "runtimeId": question.runtime_id,
        "deadlineMs": question.timeout_ms,
        **question.asked,
    }
    if question.run_id is not None:
        params["runId"] = question.run_id
    if question.registration_id is not None:
        params["registrationId"] = question.registration_id
    return params
