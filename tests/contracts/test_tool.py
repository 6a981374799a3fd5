"""What every tool promises, whatever it does."""

import copy
from typing import Any, get_args

import anyio
import msgspec
import pytest

from pi_rpc.core.arguments import checked
from pi_rpc.core.errors import Failure, Invalid
from pi_rpc.core.messages import ToolCall, text_of
from pi_rpc.core.ports.tools import Effect, Tool
from pi_rpc.tools.choose import KNOWN, tool_set
from tests.tools.bench import Bench

pytestmark = pytest.mark.anyio

EDITS = [{"oldText": "a", "newText": "b"}]
WORKING: dict[str, dict[str, Any]] = {
    "read": {"path": "file", "limit": "1"},
    "write": {"path": "new", "content": "x"},
    "edit": {"path": "file", "edits": EDITS},
    "bash": {"command": "echo x", "timeout": "4"},
    "grep": {"pattern": "a", "limit": "4"},
    "find": {"pattern": "f*", "limit": "4"},
    "ls": {"path": "."},
}
REQUIRED = {"read": ["path"], "write": ["path", "content"], "edit": ["path", "edits"]} | {
    "bash": ["command"],
    "grep": ["pattern"],
    "find": ["pattern"],
    "ls": [],
}
EFFECTS = {
    "read": "none",
    "write": "workspace",
    "edit": "workspace",
    "bash": "outside",
    "grep": "none",
    "find": "none",
    "ls": "none",
}


@pytest.fixture
def bench(tmp_path: Any) -> Bench:
    made = Bench(tmp_path)
    made.put("file", "a\nc\n")
    return made


@pytest.fixture(params=KNOWN)
def tool(request: pytest.FixtureRequest) -> Tool:
    return tool_set([request.param])[request.param]


def test_it_declares_itself_as_a_model_and_a_session_need_it(tool: Tool) -> None:
    declaration = tool.declaration
    assert tool_set([declaration.name]).keys() == {declaration.name}
    assert declaration.description
    assert declaration.parameters["type"] == "object"
    assert declaration.parameters.get("required", []) == REQUIRED[declaration.name]
    assert all("type" in each for each in declaration.parameters["properties"].values())
    assert tool.effect == EFFECTS[declaration.name]
    assert tool.effect in get_args(Effect)
    assert tool.sequential is False
    msgspec.json.encode(declaration.as_object())


async def test_a_call_has_an_outcome_fit_for_a_session_file(tool: Tool, bench: Bench) -> None:
    outcome = await bench.run(tool, **WORKING[tool.declaration.name])
    assert not outcome.is_error
    assert text_of({"content": outcome.content})
    assert msgspec.json.decode(msgspec.json.encode(outcome.details)) == outcome.details


async def test_the_arguments_are_not_changed(tool: Tool, bench: Bench) -> None:
    arguments = copy.deepcopy(WORKING[tool.declaration.name])
    call = ToolCall("c", tool.declaration.name, arguments)
    with anyio.fail_after(5):
        await tool.run(call, bench.context())
    assert arguments == WORKING[tool.declaration.name]


async def test_checked_arguments_are_taken_as_they_are(tool: Tool, bench: Bench) -> None:
    arguments = checked(WORKING[tool.declaration.name], tool.declaration.parameters)
    assert not (await bench.run(tool, **arguments)).is_error


async def test_arguments_that_do_not_fit_are_refused_with_every_problem(
    tool: Tool, bench: Bench
) -> None:
    wrong = {name: {"no": "value"} for name in tool.declaration.parameters["properties"]}
    with pytest.raises(Invalid) as raised:
        await bench.run(tool, **wrong)
    assert raised.value.reason == "invalid_arguments"
    paths = {
        each["path"].partition("[")[0].partition(".")[0] for each in raised.value.data["problems"]
    }
    assert paths == set(wrong)


async def test_a_stop_is_heeded_before_anything_is_done(tool: Tool, bench: Bench) -> None:
    bench.stop.set()
    try:
        outcome = await bench.run(tool, **WORKING[tool.declaration.name])
    except Failure as failure:
        assert failure.reason == "aborted"
    else:
        assert outcome.is_error
    assert (bench.cwd / "file").read_text() == "a\nc\n"
    assert not (bench.cwd / "new").exists()


async def test_calls_run_side_by_side(tool: Tool, bench: Bench) -> None:
    outcomes = []

    async def run(number: int) -> None:
        name = f"file-{number}"
        bench.put(name, "a\nc\n")
        arguments = dict(WORKING[tool.declaration.name])
        if arguments.get("path") in ("file", "new"):
            arguments["path"] = name
        outcomes.append(await bench.run(tool, **arguments))

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(run, number)
    assert [outcome.is_error for outcome in outcomes] == [False] * 5
