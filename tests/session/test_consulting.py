"""Questions to clients: each ends once, and what a client offered goes with it."""

from typing import Any

import anyio
import pytest

from pi_rpc.core.consultations import PermissionAnswer, ToolAnswer
from pi_rpc.core.errors import Failure
from pi_rpc.core.events import (
    DiagnosticTold,
    RequestResolved,
    RunSettled,
    ToolEnded,
    ToolProgressed,
)
from pi_rpc.core.hooks import AfterToolAnswer, BeforeToolAnswer
from pi_rpc.core.messages import ToolDeclaration, text_block
from pi_rpc.session.consulting import (
    Answered,
    Consulting,
    Hook,
    Offer,
    OfferedCommand,
    OfferedTool,
    Question,
    Unanswered,
)
from pi_rpc.session.prompting import abort, prompt
from tests.session.living import (
    WAIT_S,
    Ear,
    HeldTool,
    Speaker,
    called,
    file_store,
    living_host,
    messages,
    opened,
    said,
    tools_named,
)

pytestmark = pytest.mark.anyio


class Client:
    """A consultant that keeps what it is asked, and answers what it was told to."""

    def __init__(self, *answers: Any) -> None:
        self.serves_permissions = False
        self.dialogs: frozenset[str] = frozenset()
        self.asked: list[Question] = []
        self.withdrawn: list[str] = []
        self.consulting: Consulting | None = None
        self._answers = list(answers)
        self._came = anyio.Event()

    def put(self, question: Question) -> None:
        self.asked.append(question)
        came, self._came = self._came, anyio.Event()
        came.set()
        if self._answers and self.consulting is not None:
            answer = self._answers.pop(0)
            if isinstance(answer, Unanswered):
                self.consulting.fail(question.id, answer.why, answer.text)
            elif answer is not None:
                self.consulting.answer(question.id, answer)

    def withdraw(self, question_id: str) -> None:
        self.withdrawn.append(question_id)

    async def until_asked(self, count: int = 1) -> Question:
        with anyio.fail_after(WAIT_S):
            while len(self.asked) < count:
                await self._came.wait()
        return self.asked[count - 1]


def question(name: str = "q", timeout_ms: int = 5_000, **asked: Any) -> Question:
    return Question(name, "tool", "s", "r", None, "o", timeout_ms, asked)


def tool(name: str, timeout_ms: int = 5_000) -> OfferedTool:
    declaration = ToolDeclaration(name, name, {"type": "object"})
    return OfferedTool(declaration, "outside", False, timeout_ms)


def hook(name: Any, on_timeout: Any = "allow", **more: Any) -> Hook:
    return Hook(name, more.pop("timeout_ms", 5_000), on_timeout, **more)


async def test_a_question_ends_with_its_answer_and_a_second_one_changes_nothing() -> None:
    consulting, client = Consulting(), Client("yes")
    client.consulting = consulting
    assert await consulting.ask(client, question()) == Answered("yes")
    consulting.answer("q", "no")
    assert client.withdrawn == []


async def test_a_question_that_is_too_late_or_stopped_is_withdrawn() -> None:
    consulting, client = Consulting(), Client()
    late = await consulting.ask(client, question(timeout_ms=1))
    assert late == Unanswered("timeout", "no answer within 1 ms")
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        replies: list[Any] = []

        async def ask() -> None:
            replies.append(await consulting.ask(client, question("p"), stop))

        tasks.start_soon(ask)
        await client.until_asked(2)
        stop.set()
    assert replies == [Unanswered("stopped")]
    assert client.withdrawn == ["q", "p"]
    assert await consulting.ask(client, question("n"), stop) == Unanswered("stopped")
    assert len(client.asked) == 2


async def test_a_caller_that_is_cancelled_leaves_no_question_behind() -> None:
    consulting, client = Consulting(), Client()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(consulting.ask, client, question())
        await client.until_asked()
        assert [one.id for one in consulting.pending("s", client)] == ["q"]
        tasks.cancel_scope.cancel()
    assert client.withdrawn == ["q"]
    assert consulting.pending("s", client) == []


async def test_a_client_that_leaves_takes_its_offers_along_and_answers_nothing() -> None:
    consulting, client, other = Consulting(), Client(), Client()
    consulting.register(Offer("o", client, None, (tool("a"),)))
    consulting.register(Offer("p", other, None, (tool("b"),)))
    replies: list[Any] = []

    async def ask() -> None:
        replies.append(await consulting.ask(client, question()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await client.until_asked()
        consulting.leave(client)
    assert replies == [Unanswered("disconnected", "the client is gone")]
    assert [one.declaration.name for _, one in consulting.tools("s")] == ["b"]


async def test_names_are_taken_once_where_they_meet() -> None:
    consulting, client = Consulting(), Client()
    consulting.register(Offer("o", client, "s1", (tool("a"), OfferedCommand("c", "", None, 1))))
    consulting.register(Offer("p", client, "s2", (tool("a"),)))
    for offer in (
        Offer("q", client, None, (tool("a"),)),
        Offer("q", client, "s1", (tool("a"),)),
        Offer("q", client, "s1", (OfferedCommand("c", "", None, 1),)),
    ):
        with pytest.raises(Failure) as caught:
            consulting.register(offer)
        assert caught.value.reason == "name_taken"
    assert [one.name for _, one in consulting.commands("s1")] == ["c"]
    assert consulting.commands("s2") == []


async def test_registrations_are_bounded_and_taken_back_by_their_owner_alone() -> None:
    consulting, client = Consulting(), Client()
    for number in range(1000):
        consulting.register(Offer(str(number), client, None, ()))
    with pytest.raises(Failure) as caught:
        consulting.register(Offer("more", client, None, ()))
    assert caught.value.reason == "too_many_registrations"
    with pytest.raises(Failure) as caught:
        consulting.unregister("1", Client())
    assert caught.value.reason == "registration_not_found"
    assert consulting.unregister("1", client).id == "1"


async def test_hooks_come_by_order_and_then_by_age() -> None:
    consulting, client = Consulting(), Client()
    consulting.register(Offer("o", client, None, (hook("input"), hook("input", order=-1))))
    consulting.register(Offer("p", client, "s", (hook("tool/before", tools=("ba*",)),)))
    consulting.register(Offer("q", client, "t", (hook("input"),)))
    assert [(offer.id, one.order) for offer, one in consulting.hooks("s", "input")] == [
        ("o", -1),
        ("o", 0),
    ]
    assert len(consulting.hooks("s", "tool/before", "bash")) == 1
    assert consulting.hooks("s", "tool/before", "read") == []
    assert consulting.hooks("t", "tool/before", "bash") == []


async def test_a_client_that_goes_away_in_the_middle_of_a_call_is_an_error_result(
    tmp_path: Any,
) -> None:
    speaker = Speaker(called(("deploy", "{}")), said("so be it"))
    async with living_host(file_store(tmp_path), tmp_path, speaker) as host:
        consulting, client = host.around.consulting, Client()
        consulting.join(client)
        consulting.register(Offer("o", client, None, (tool("deploy"),)))
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        asked = await client.until_asked()
        consulting.progressed(session.session_id, "c0", [text_block("half")], None)
        await ear.until(ToolProgressed)
        consulting.progressed("another", "c0", [text_block("not here")], None)
        consulting.leave(client)
        settled = await ear.until(RunSettled)
        assert settled.outcome == "done"
        assert ear.of(RequestResolved) == [RequestResolved(asked.id, "tool", "disconnected")]
        [ended] = ear.of(ToolEnded)
        assert ended.is_error
        assert ended.details == {"reason": "client_disconnected"}
        assert len(ear.of(ToolProgressed)) == 1
        # The tool is gone, and the next run says so.
        speaker.replies.append(said("bye"))
        prompt(session, host.tasks, "again")
        await ear.until(RunSettled, 2)
        assert [one.get("toolsRemoved") for one in speaker.requests[-1] if "toolsRemoved" in one]


async def test_a_hook_whose_client_is_gone_decides_as_it_was_registered(tmp_path: Any) -> None:
    held = HeldTool("touch")
    speaker = Speaker(called(("touch", "{}")), said("done"))
    async with living_host(file_store(tmp_path), tmp_path, speaker, tools_named(held)) as host:
        consulting = host.around.consulting
        client = Client(Unanswered("disconnected"), Unanswered("disconnected", "gone"))
        client.consulting = consulting
        hooks = (hook("tool/before", "allow"), hook("tool/before", "fail", order=1))
        consulting.register(Offer("o", client, None, hooks))
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled)
        assert held.calls == []
        [ended] = ear.of(ToolEnded)
        assert ended.content == [
            text_block("The call was blocked: the hook tool/before failed: gone")
        ]
        assert ended.effect == "none"
        assert [told.diagnostic.reason for told in ear.of(DiagnosticTold)] == [
            "hook_disconnected",
            "hook_disconnected",
        ]


async def test_output_that_a_hook_has_yet_to_see_is_shown_to_nobody(tmp_path: Any) -> None:
    class Loud(HeldTool):
        async def run(self, call: Any, context: Any) -> Any:
            context.progress.tell([text_block("secret")])
            return await super().run(call, context)

    for shows in (False, True):
        speaker = Speaker(called(("loud", "{}")), said("done"))
        store, tools = file_store(tmp_path / str(shows)), tools_named(Loud("loud"))
        async with living_host(store, tmp_path, speaker, tools) as host:
            consulting = host.around.consulting
            client = Client(AfterToolAnswer([text_block("clean")]))
            client.consulting = consulting
            after = hook("tool/after", shows_progress=shows)
            consulting.register(Offer("o", client, None, (after,)))
            session = await opened(host, tmp_path)
            ear = Ear(session.hub)
            prompt(session, host.tasks, "go")
            await ear.until(RunSettled)
            assert len(ear.of(ToolProgressed)) == int(shows)
            [ended] = ear.of(ToolEnded)
            assert ended.content == [text_block("clean")]


async def test_a_result_that_could_not_be_looked_at_is_withheld(tmp_path: Any) -> None:
    speaker = Speaker(called(("touch", "{}")), said("done"))
    tools = tools_named(HeldTool("touch"))
    async with living_host(file_store(tmp_path), tmp_path, speaker, tools) as host:
        client = Client(Unanswered("timeout"))
        client.consulting = host.around.consulting
        offer = Offer("o", client, None, (hook("tool/after", "deny"),))
        host.around.consulting.register(offer)
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled)
        [ended] = ear.of(ToolEnded)
        assert ended.is_error
        assert ended.effect == "workspace"
        assert "withheld" in ended.content[0]["text"]
        assert "touch done" not in str(messages(session))


async def test_an_abort_ends_a_hook_at_once_and_nothing_is_run(tmp_path: Any) -> None:
    held = HeldTool("touch")
    speaker = Speaker(called(("touch", "{}")))
    tools = tools_named(held)
    async with living_host(file_store(tmp_path), tmp_path, speaker, tools) as host:
        client = Client()
        host.around.consulting.register(Offer("o", client, None, (hook("tool/before"),)))
        session = await opened(host, tmp_path)
        prompt(session, host.tasks, "go")
        asked = await client.until_asked()
        with anyio.fail_after(WAIT_S):
            assert await abort(session) == "aborted"
        assert client.withdrawn == [asked.id]
        assert held.calls == []


async def test_arguments_of_a_hook_run_and_are_stored_beside_the_models(tmp_path: Any) -> None:
    held = HeldTool("touch")
    speaker = Speaker(called(("touch", '{"a": 1}')), said("done"))
    async with living_host(file_store(tmp_path), tmp_path, speaker, tools_named(held)) as host:
        client = Client(BeforeToolAnswer(arguments={"a": 2}))
        client.consulting = host.around.consulting
        host.around.consulting.register(Offer("o", client, None, (hook("tool/before"),)))
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled)
        assert [call.arguments for call in held.calls] == [{"a": 2}]
        [ended] = ear.of(ToolEnded)
        assert (ended.arguments, ended.effective_arguments) == ({"a": 1}, {"a": 2})
        [result] = [one for one in messages(session) if one["role"] == "toolResult"]
        assert (result["effectiveArguments"], result["argumentsChangedBy"]) == ({"a": 2}, "o")


async def test_nobody_is_asked_where_nobody_answers_unless_a_rule_wants_it(tmp_path: Any) -> None:
    from pi_rpc.core.permissions import PermissionPolicy, PermissionRule  # noqa: PLC0415

    held = HeldTool("touch")
    speaker = Speaker(called(("touch", "{}")), said("1"), called(("touch", "{}")), said("2"))
    async with living_host(file_store(tmp_path), tmp_path, speaker, tools_named(held)) as host:
        client = Client()
        client.consulting = host.around.consulting
        client.consulting.join(client)
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled)
        assert len(held.calls) == 1
        session.chosen.permissions = PermissionPolicy(rules=(PermissionRule("ask"),))
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled, 2)
        assert len(held.calls) == 1
        assert ear.of(ToolEnded)[1].is_error
        assert client.asked == []


async def test_permissions_of_a_batch_are_asked_one_after_another(tmp_path: Any) -> None:
    held = HeldTool("touch")
    speaker = Speaker(called(("touch", "{}"), ("touch", "{}")), said("done"))
    async with living_host(file_store(tmp_path), tmp_path, speaker, tools_named(held)) as host:
        consulting, client = host.around.consulting, Client()
        client.serves_permissions = True
        consulting.join(client)
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        first = await client.until_asked()
        assert first.asked["callId"] == "c0"
        consulting.answer(first.id, PermissionAnswer("allow_once"))
        second = await client.until_asked(2)
        assert second.asked["callId"] == "c1"
        consulting.answer(second.id, PermissionAnswer("reject_always", "no more"))
        await ear.until(RunSettled)
        assert [ended.is_error for ended in ear.of(ToolEnded)] == [False, True]
        assert len(held.calls) == 1
        remembered = session.chosen.remembered
        assert [(rule.decision, rule.tool) for rule in remembered] == [("deny", "touch")]


async def test_a_clients_tool_takes_the_place_of_a_built_in_one(tmp_path: Any) -> None:
    held = HeldTool("touch")
    speaker = Speaker(called(("touch", "{}")), said("done"))
    async with living_host(file_store(tmp_path), tmp_path, speaker, tools_named(held)) as host:
        client = Client(ToolAnswer([text_block("mine")], terminate=True))
        client.consulting = host.around.consulting
        host.around.consulting.register(Offer("o", client, None, (tool("touch"),)))
        session = await opened(host, tmp_path)
        ear = Ear(session.hub)
        prompt(session, host.tasks, "go")
        await ear.until(RunSettled)
        assert held.calls == []
        assert [ended.content for ended in ear.of(ToolEnded)] == [[text_block("mine")]]
        assert len(speaker.requests) == 1
