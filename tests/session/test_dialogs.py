"""Dialogs: each ends once, and its default holds where nobody answers."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.consultations import ChoiceAnswer, ConfirmAnswer, TextAnswer
from pi_rpc.core.errors import Stopped
from pi_rpc.core.events import DiagnosticTold, RequestResolved
from pi_rpc.session.consulting import Unanswered
from pi_rpc.session.dialogs import Choice, Confirmation, DialogOption, Line, Page, confirm, show
from pi_rpc.session.prompting import abort
from tests.session.living import WAIT_S, Ear, Speaker, file_store, living_host, opened
from tests.session.test_consulting import Client

pytestmark = pytest.mark.anyio

CHOICE = Choice(
    title="Which?", options=[DialogOption("a", "A"), DialogOption("b", "B")], default="b"
)
DIALOGS = {"select", "confirm", "input", "editor"}


@pytest.mark.parametrize(
    ("dialog", "answer", "wanted"),
    [
        (CHOICE, ChoiceAnswer("a"), "a"),
        (CHOICE, ChoiceAnswer(None), None),
        (CHOICE, ChoiceAnswer("c"), "b"),
        (CHOICE, Unanswered("failed", "no"), "b"),
        (CHOICE, Unanswered("disconnected", "gone"), "b"),
        (Confirmation(title="Go?", default=False), ConfirmAnswer(True), True),
        (Confirmation(title="Go?", default=False), ConfirmAnswer(None), None),
        (Confirmation(title="Go?", default=False), Unanswered("failed", "no"), False),
        (Line(title="Name?", default="me"), TextAnswer("you"), "you"),
        (Line(title="Name?", default="me"), Unanswered("failed", "no"), "me"),
        (Page(title="Text", text="draft"), TextAnswer("done"), "done"),
        (Page(title="Text", text="draft"), TextAnswer(None), None),
    ],
)
async def test_a_dialog_gives_its_answer_or_its_default(
    tmp_path: Path, dialog: Any, answer: Any, wanted: Any
) -> None:
    async with living_host(file_store(tmp_path), tmp_path, Speaker()) as host:
        session = await opened(host, tmp_path)
        client = Client(answer)
        client.consulting = host.around.consulting
        client.dialogs = frozenset(DIALOGS)
        host.around.consulting.join(client)
        ask: Any = confirm if isinstance(dialog, Confirmation) else show
        assert await ask(session, dialog) == wanted
        assert [one.asked["title"] for one in client.asked] == [dialog.title]


async def test_a_dialog_that_nobody_can_show_has_its_default_at_once(tmp_path: Path) -> None:
    async with living_host(file_store(tmp_path), tmp_path, Speaker()) as host:
        session = await opened(host, tmp_path)
        client = Client()
        client.dialogs = frozenset({"confirm"})
        host.around.consulting.join(client)
        assert await show(session, CHOICE) == "b"
        assert client.asked == []


async def test_a_dialog_that_is_too_late_is_withdrawn_and_told(tmp_path: Path) -> None:
    async with living_host(file_store(tmp_path), tmp_path, Speaker()) as host:
        session = await opened(host, tmp_path)
        ear, client = Ear(session.hub), Client()
        client.dialogs = frozenset(DIALOGS)
        host.around.consulting.join(client)
        assert await show(session, CHOICE, timeout_ms=1) == "b"
        [asked] = client.asked
        assert client.withdrawn == [asked.id]
        assert ear.of(RequestResolved) == [RequestResolved(asked.id, "select", "timeout")]
        assert [one.diagnostic.reason for one in ear.of(DiagnosticTold)] == ["dialog_unanswered"]


async def test_an_abort_withdraws_a_dialog(tmp_path: Path) -> None:
    async with living_host(file_store(tmp_path), tmp_path, Speaker()) as host:
        session = await opened(host, tmp_path)
        client, ended = Client(), []
        client.dialogs = frozenset(DIALOGS)
        host.around.consulting.join(client)

        async def ask() -> None:
            with pytest.raises(Stopped):
                await show(session, CHOICE)
            ended.append(True)

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await client.until_asked()
                await abort(session)
        assert ended == [True]
        assert client.withdrawn == [client.asked[0].id]
