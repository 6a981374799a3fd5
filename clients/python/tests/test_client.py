"""The Python client against a real daemon in a process of its own, and against odd ones."""

import json
import os
import sys
import textwrap
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from pi_rpc_client.client import NOTIFICATIONS_WAITING_MAX, PiRpcClient
from pi_rpc_client.errors import (
    DaemonEndedError,
    DaemonNotFoundError,
    NotificationsLostError,
    PiRpcError,
)
from pi_rpc_client.process import running_daemon
from pi_rpc_client.types import Notification

PATH = {"PATH": os.environ["PATH"]}
DAEMON = (sys.executable, "-m", "pi_rpc")

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
async def _bounded() -> AsyncIterator[None]:
    with anyio.fail_after(20):
        yield


def spawned(
    folder: Path, *, script: Mapping[str, object] | None = None
) -> AbstractAsyncContextManager[PiRpcClient]:
    env = {"PI_CODING_AGENT_DIR": str(folder / "agent")}
    if script is not None:
        (folder / "script.json").write_text(json.dumps(script))
        env["PI_RPC_SCRIPT"] = str(folder / "script.json")
    return PiRpcClient.spawn(DAEMON, env=env, name="test")


async def test_a_command_that_is_not_there_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DaemonNotFoundError, match=r"'pi-nowhere' was not found: install"):
        async with PiRpcClient.spawn(["pi-nowhere"]):
            pass
    with pytest.raises(FileNotFoundError) as told:
        async with PiRpcClient.spawn(DAEMON, cwd=tmp_path / "gone"):
            pass
    assert not isinstance(told.value, DaemonNotFoundError)
    assert Path(told.value.filename) == tmp_path / "gone"


def pretending(code: str) -> Sequence[str]:
    """The command of a small daemon: `say` writes a message, `hear` reads one."""
    prelude = """
        import json, sys
        def say(**message):
            sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
            sys.stdout.buffer.flush()
        def hear():
            line = sys.stdin.buffer.readline()
            return json.loads(line) if line else sys.exit(0)
        say(id=hear()["id"], result={"protocolVersion": 1})
    """
    return (sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(code))


async def test_a_run_is_heard_from_its_start_to_its_end(tmp_path: Path) -> None:
    heard: list[str] = []
    async with spawned(tmp_path) as client:
        client.listen(lambda told: heard.append(told["method"]))
        session = await client.call("session/new", {"cwd": str(tmp_path)})
        run = await client.call(
            "agent/prompt", {"sessionId": session["sessionId"], "text": "Hello"}
        )
        assert run["runId"] is not None
        assert await client.wait_until_settled(session["sessionId"], run["runId"]) == "done"
    assert [name for name in heard if name.startswith(("agent/", "session/"))] == [
        "session/opened",
        "agent/started",
        "agent/attemptEnded",
        "agent/settled",
        "session/closed",
    ]


async def test_leaving_the_context_ends_the_daemon_in_good_order(tmp_path: Path) -> None:
    async with spawned(tmp_path) as client:
        assert client.server["serverInfo"]["name"] == "pi-rpc"
        assert client.daemon.status is None
    assert client.daemon.status == 0
    assert client.daemon.stderr == ""
    with pytest.raises(DaemonEndedError):
        await client.call("daemon/status")


async def test_an_error_carries_code_kind_reason_and_data(tmp_path: Path) -> None:
    async with spawned(tmp_path) as client:
        with pytest.raises(PiRpcError) as caught:
            await client.call("session/state", {"sessionId": "nobody"})
    error = caught.value
    assert (error.code, error.kind, error.reason) == (-32001, "missing", "session_not_open")
    assert error.data["sessionId"] == "nobody"


async def test_an_outcome_is_known_to_whoever_asks_after_a_later_run(tmp_path: Path) -> None:
    async with spawned(tmp_path) as client:
        state = await client.call("session/new", {"cwd": str(tmp_path)})
        session_id = state["sessionId"]
        runs = []
        for text in ("one", "two"):
            run = await client.call("agent/prompt", {"sessionId": session_id, "text": text})
            assert run["runId"] is not None
            runs.append(run["runId"])
            await client.call("agent/wait", {"sessionId": session_id, "runId": run["runId"]})
        assert [await client.wait_until_settled(session_id, run_id) for run_id in runs] == [
            "done",
            "done",
        ]


async def test_a_run_can_be_waited_for_without_hearing_its_events(tmp_path: Path) -> None:
    async with spawned(tmp_path) as client:
        state = await client.call("session/new", {"cwd": str(tmp_path)})
        await client.call("session/unsubscribe", {"subscriptionId": state["subscriptionId"]})
        run = await client.call(
            "agent/prompt", {"sessionId": state["sessionId"], "text": "unheard"}
        )
        assert run["runId"] is not None
        assert await client.wait_until_settled(state["sessionId"], run["runId"]) == "done"


async def test_a_cancelled_call_is_withdrawn_and_the_talk_goes_on(tmp_path: Path) -> None:
    script = {"replies": [{"text": "word " * 2000, "chunk": 1, "delayMs": 5}]}
    async with spawned(tmp_path, script=script) as client:
        state = await client.call("session/new", {"cwd": str(tmp_path)})
        session_id = state["sessionId"]
        prompt = {"sessionId": session_id, "text": "x", "wait": True}
        async with (
            client.notifications("message/delta") as deltas,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(client.request, "agent/prompt", prompt)
            async for _ in deltas:
                break
            tasks.cancel_scope.cancel()
        # Withdrawn was the waiting, not the run.
        now = await client.call("session/state", {"sessionId": session_id})
        assert now["running"]
        stopped = await client.call("agent/abort", {"sessionId": session_id})
        assert stopped["outcome"] == "aborted"


async def test_a_killed_daemon_fails_every_call_that_waits(tmp_path: Path) -> None:
    script = {"replies": [{"text": "word " * 2000, "chunk": 1, "delayMs": 5}]}
    statuses: list[int | None] = []
    async with spawned(tmp_path, script=script) as client:
        state = await client.call("session/new", {"cwd": str(tmp_path)})
        session_id = state["sessionId"]

        async def wait_in_vain() -> None:
            with pytest.raises(DaemonEndedError) as caught:
                await client.call("agent/wait", {"sessionId": session_id})
            statuses.append(caught.value.status)

        await client.call("agent/prompt", {"sessionId": session_id, "text": "x"})
        async with client.notifications() as everything, anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(wait_in_vain)
            async for told in everything:
                if told["method"] == "message/delta":
                    client.daemon.kill()
    assert statuses == [-9, -9, -9]


async def test_what_fails_inside_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(PiRpcError, match="no such session"):
        async with spawned(tmp_path) as client:
            await client.call("session/state", {"sessionId": "nobody"})


async def test_a_listener_may_remove_itself_while_it_is_called(tmp_path: Path) -> None:
    heard: list[str] = []
    async with spawned(tmp_path) as client:

        def once(told: Notification) -> None:
            heard.append("once")
            remove()

        remove = client.listen(once)
        client.listen(lambda told: heard.append(told["method"]))
        await client.call("session/new", {"cwd": str(tmp_path)})
    assert heard == ["once", "session/opened", "session/closed"]


async def test_a_listener_that_fails_does_not_silence_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    def fail(told: Notification) -> None:
        raise RuntimeError("deaf")

    async with spawned(tmp_path) as client:
        client.listen(fail)
        client.listen(lambda told: heard.append(told["method"]))
        await client.call("session/new", {"cwd": str(tmp_path)})
    assert heard == ["session/opened", "session/closed"]
    assert "a listener failed at session/opened" in caplog.text


async def test_a_stream_holds_only_what_it_was_opened_for(tmp_path: Path) -> None:
    async with spawned(tmp_path) as client:
        one = await client.call("session/new", {"cwd": str(tmp_path)})
        two = await client.call("session/new", {"cwd": str(tmp_path)})
        async with client.notifications("session/renamed", session_id=two["sessionId"]) as renamed:
            await client.call("session/rename", {"sessionId": one["sessionId"], "name": "first"})
            await client.call("session/rename", {"sessionId": two["sessionId"], "name": "second"})
            told = await anext(renamed)
    assert told["method"] == "session/renamed"
    assert told["params"]["name"] == "second"


async def test_line_ends_inside_texts_part_no_messages(tmp_path: Path) -> None:
    name = "a\u2028b\u2029c\u0085d\x1ce 😀"
    async with spawned(tmp_path) as client:
        state = await client.call("session/new", {"cwd": str(tmp_path)})
        renamed = await client.call(
            "session/rename", {"sessionId": state["sessionId"], "name": name}
        )
    assert renamed["name"] == name


async def test_requests_of_the_daemon_are_answered_by_handlers() -> None:
    command = pretending(
        """
        hear()
        say(id="s1", method="ui/confirm", params={"text": "sure?"})
        say(id="s2", method="ui/unheard-of")
        say(id="s3", method="ui/refused")
        answers = {}
        while len(answers) < 3:
            answer = hear()
            answers[answer["id"]] = answer
        say(method="answers", params=answers)
        hear()
        """
    )

    async def confirm(params: dict[str, str]) -> dict[str, str]:
        return {"answer": f"{params['text']} yes"}

    async def refuse(params: dict[str, str]) -> None:
        raise PiRpcError(-32002, "not now", {"kind": "refused", "reason": "not_now"})

    async with running_client(command) as client:
        client.serve("ui/confirm", confirm)
        client.serve("ui/refused", refuse)
        async with client.notifications() as everything:
            await client.notify("begin")
            told: Any = await anext(everything)
    answers = told["params"]
    assert answers["s1"]["result"] == {"answer": "sure? yes"}
    assert answers["s2"]["error"]["code"] == -32601
    assert answers["s3"]["error"]["data"]["reason"] == "not_now"


def running_client(command: Sequence[str]) -> AbstractAsyncContextManager[PiRpcClient]:
    return PiRpcClient.spawn(command, patience_s=1)


async def test_a_request_the_daemon_withdraws_is_answered_as_withdrawn() -> None:
    command = pretending(
        """
        hear()
        say(id="s1", method="ui/input")
        hear()
        say(method="$/cancelRequest", params={"id": "s1"})
        say(method="answer", params=hear())
        hear()
        """
    )
    asked = anyio.Event()

    async def never(params: object) -> None:
        asked.set()
        await anyio.sleep_forever()

    async with running_client(command) as client:
        client.serve("ui/input", never)
        async with client.notifications() as everything:
            await client.notify("begin")
            await asked.wait()
            await client.notify("asked")
            told: Any = await anext(everything)
    assert told["params"]["error"]["code"] == -32800


async def test_a_slow_reader_of_notifications_is_told_what_it_lost() -> None:
    command = pretending(
        f"""
        hear()
        for number in range({NOTIFICATIONS_WAITING_MAX} + 1):
            say(method="diagnostic", params={{}})
        say(id=hear()["id"], result="still here")
        hear()
        """
    )
    async with running_client(command) as client, client.notifications() as everything:
        await client.notify("begin")
        assert await client.request("anything") == "still here"
        count = 0
        with pytest.raises(NotificationsLostError):
            async for _ in everything:
                count += 1
        assert count == NOTIFICATIONS_WAITING_MAX


async def test_output_that_is_no_protocol_ends_the_daemon(
    caplog: pytest.LogCaptureFixture,
) -> None:
    command = pretending(
        """
        hear()
        print("Traceback (most recent call last):", flush=True)
        hear()
        """
    )
    async with running_client(command) as client:
        with pytest.raises(DaemonEndedError):
            await client.request("anything")
    assert "no protocol" in caplog.text


async def test_what_a_dying_daemon_wrote_to_stderr_is_in_the_error() -> None:
    command = pretending('hear(); sys.exit("the disk is gone")')
    async with running_client(command) as client:
        with pytest.raises(DaemonEndedError, match=r"status 1.*the disk is gone"):
            await client.request("anything")


async def test_a_noisy_stderr_blocks_nothing_and_only_its_end_is_kept() -> None:
    command = pretending(
        """
        sys.stderr.write("noise\\n" * 200_000 + "last words\\n")
        sys.stderr.flush()
        say(id=hear()["id"], result="heard")
        hear()
        """
    )
    async with running_client(command) as client:
        assert await client.request("anything") == "heard"
    assert client.daemon.stderr.endswith("last words\n")
    assert len(client.daemon.stderr) < 200_000


async def test_a_daemon_that_does_not_end_is_ended() -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True)\n"
    command = (sys.executable, "-c", code + "time.sleep(600)")
    async with running_daemon(command, patience_s=0.2) as daemon:
        async for _ in daemon.lines():
            break
    assert daemon.status == -9


async def test_half_an_emoji_goes_both_ways() -> None:
    command = pretending(
        """
        text = hear()["params"]["text"]
        say(method="back", params={"text": text})
        hear()
        """
    )
    async with running_client(command) as client, client.notifications() as everything:
        await client.notify("text", {"text": "cut \ud83d"})
        told: Any = await anext(everything)
    assert told["params"]["text"] == "cut \ud83d"


async def test_the_example_in_the_readme_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    example = page.partition("```python\n")[2].partition("```")[0]
    ran = await anyio.run_process(
        [sys.executable, "-c", example.replace('["pi-rpc"]', str(list(DAEMON)).replace("'", '"'))],
        env={"PYTHONPATH": str(Path(__file__).parents[1]), "HOME": str(tmp_path), **PATH},
    )
    assert ran.stdout == b"done\n"


async def test_the_demo_claims_nothing_that_is_not_so() -> None:
    demo = Path(__file__).parents[1] / "demo.py"
    ran = await anyio.run_process([sys.executable, str(demo)], env=PATH, check=False)
    told = ran.stdout.decode()
    assert ran.returncode == 0, told + ran.stderr.decode()
    assert told.count("[ok]") >= 20
    assert "\033[" not in told


async def test_the_types_hold_in_a_strict_check(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(
        textwrap.dedent(
            """
            from pi_rpc_client.client import PiRpcClient

            async def use(client: PiRpcClient) -> str:
                state = await client.call("session/new", {"cwd": "/"})
                await client.call("session/new", {"cvd": "/"})
                return state["leafId"]
            """
        )
    )
    checked = await anyio.run_process(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "use.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(Path(__file__).parent.parent)},
        check=False,
    )
    told = checked.stdout.decode()
    places = [line.split(" error: ")[0] for line in told.splitlines() if " error: " in line]
    assert places == ["use.py:6:", "use.py:7:"], told
