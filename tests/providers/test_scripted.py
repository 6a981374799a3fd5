"""The offline model streams what its script says."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.errors import Missing
from pi_rpc.core.messages import JsonObject, Usage
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.reply import BlockDelta, Fold, Piece, ReplyEnded, ReplyError, ReplyStarted
from pi_rpc.providers.catalog import Catalog
from pi_rpc.providers.choose import choose_models
from pi_rpc.providers.script import script_from_object
from pi_rpc.providers.scripted import BATCH_PIECES, ScriptedProvider

HI: JsonObject = {"role": "user", "content": "hi there"}


def request(
    *messages: JsonObject, script: JsonObject | None = None, position: int = 0
) -> ModelRequest:
    return ModelRequest("offline", "scripted", "off", messages or [HI], "s1", script, position)


async def batches(reply: JsonObject, *messages: JsonObject) -> list[Sequence[Piece]]:
    provider = ScriptedProvider(script_from_object({"replies": [reply]}))
    with anyio.fail_after(5):
        return [pieces async for pieces in provider.reply(request(*messages))]


async def pieces(reply: JsonObject, *messages: JsonObject) -> list[Piece]:
    return [piece for batch in await batches(reply, *messages) for piece in batch]


async def message(reply: JsonObject, *messages: JsonObject) -> JsonObject:
    fold = Fold()
    fold.extend(await pieces(reply, *messages))
    return fold.message("offline", "scripted", "offline", 1, 1)


def deltas(streamed: Sequence[Piece]) -> list[str]:
    return [piece.text for piece in streamed if isinstance(piece, BlockDelta)]


@pytest.mark.anyio
async def test_a_reply_has_its_thinking_its_text_and_its_calls_in_this_order() -> None:
    made = await message(
        {
            "text": "I look.",
            "thinking": "hm",
            "tools": [{"name": "read", "args": {"path": "a"}, "id": "x"}, {"name": "ls"}],
            "usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4},
        }
    )
    assert made["content"] == [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "I look."},
        {"type": "toolCall", "id": "x", "name": "read", "arguments": {"path": "a"}},
        {"type": "toolCall", "id": "call_1_1_1", "name": "ls", "arguments": {}},
    ]
    assert made["stopReason"] == "toolUse"
    assert made["usage"] == Usage(1, 2, 3, 4).as_object()


@pytest.mark.anyio
async def test_a_stop_may_be_scripted_against_what_the_reply_holds() -> None:
    assert (await message({"text": "a"}))["stopReason"] == "stop"
    assert (await message({"text": "a", "stop": "length"}))["stopReason"] == "length"
    made = await message({"tools": [{"name": "ls"}], "stop": "stop"})
    assert made["stopReason"] == "stop"


@pytest.mark.anyio
async def test_arguments_given_as_text_are_sent_as_they_are() -> None:
    [call] = (await message({"tools": [{"name": "ls", "args": '{"path": '}]}))["content"]
    assert call["arguments"] == {}
    assert call["argumentsError"].endswith('{"path": ')


@pytest.mark.anyio
async def test_text_comes_in_deltas_of_the_scripted_size() -> None:
    assert deltas(await pieces({"text": "abcdefg", "chunk": 3})) == ["abc", "def", "g"]
    assert deltas(await pieces({"text": "x" * 50})) == ["x" * 24, "x" * 24, "xx"]


@pytest.mark.anyio
async def test_without_a_delay_deltas_come_in_large_batches() -> None:
    made = await batches({"text": "x" * 1000, "chunk": 1})
    assert max(map(len, made)) == BATCH_PIECES
    assert len(made) == 4


@pytest.mark.anyio
async def test_with_a_delay_each_delta_comes_by_itself() -> None:
    made = await batches({"text": "abc", "chunk": 1, "delayMs": 0.01})
    assert [deltas(batch) for batch in made if deltas(batch)] == [["a"], ["b"], ["c"]]


@pytest.mark.anyio
async def test_others_run_while_a_long_reply_is_streamed() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        made = await batches({"repeat": {"text": "x", "count": 20 * BATCH_PIECES}})
        tasks.cancel_scope.cancel()
    assert turns >= len(made) - 1 >= 20


@pytest.mark.anyio
async def test_an_error_ends_the_reply_after_what_it_says() -> None:
    made = await pieces(
        {
            "text": "half",
            "error": {
                "status": 529,
                "type": "overloaded_error",
                "message": "busy",
                "retryAfterMs": 5,
            },
        }
    )
    assert deltas(made) == ["half"]
    end = made[-1]
    assert isinstance(end, ReplyEnded)
    assert end.stop == "error"
    assert end.error == ReplyError("overloaded", "busy", 529, "overloaded_error", 5)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"status": 400}, "invalid_request"),
        ({"status": 401}, "unauthorized"),
        ({"status": 404}, "invalid_request"),
        ({"status": 429}, "rate_limited"),
        ({"status": 500}, "server"),
        ({"status": 503}, "overloaded"),
        ({"type": "overflow", "status": 400}, "overflow"),
        ({"type": "network"}, "network"),
        ({"type": "odd"}, "unknown"),
        ({}, "unknown"),
    ],
)
async def test_an_error_has_the_kind_its_type_or_status_names(error: Any, kind: str) -> None:
    assert (await message({"error": error}))["error"]["kind"] == kind


@pytest.mark.anyio
async def test_a_cut_stream_breaks_off_after_its_deltas_without_an_end() -> None:
    made = await pieces({"text": "abcdef", "chunk": 2, "cutAfter": 2})
    assert deltas(made) == ["ab", "cd"]
    assert not any(isinstance(piece, ReplyEnded) for piece in made)
    assert not any(isinstance(piece, ReplyEnded) for piece in await pieces({"cutAfter": 9}))
    assert deltas(await pieces({"text": "a", "cutAfter": 0})) == []


@pytest.mark.anyio
async def test_a_cut_with_an_error_fails_there() -> None:
    made = await message({"text": "abcd", "chunk": 2, "cutAfter": 1, "error": {"status": 500}})
    assert made["content"] == [{"type": "text", "text": "ab"}]
    assert made["error"]["kind"] == "server"


@pytest.mark.anyio
async def test_an_echo_says_what_the_user_said_last() -> None:
    assert (await message({"echo": True}))["content"] == [{"type": "text", "text": "hi there"}]


@pytest.mark.anyio
async def test_a_repeat_gives_its_deltas_after_the_text() -> None:
    made = await pieces({"text": "a", "repeat": {"text": "xy", "count": 3}})
    assert deltas(made) == ["a", "xy", "xy", "xy"]


@pytest.mark.anyio
async def test_usage_is_estimated_from_the_context_and_the_reply() -> None:
    long: JsonObject = {"role": "user", "content": "x" * 400}
    usage = (await message({"text": "y" * 80}, long, long))["usage"]
    assert (usage["input"], usage["output"]) == (200, 20)


@pytest.mark.anyio
async def test_a_long_history_is_weighed_by_its_newest_part() -> None:
    old: JsonObject = {"role": "user", "content": "x" * 40_000}
    new: JsonObject = {"role": "user", "content": "x" * 400}
    usage = (await message({}, *[old] * 200, *[new] * 200))["usage"]
    assert usage["input"] == 400 * 100


@pytest.mark.anyio
async def test_the_position_is_told_with_the_start() -> None:
    provider = ScriptedProvider(script_from_object({"replies": [{"text": "a"}, {"text": "b"}]}))
    [batch] = [one async for one in provider.reply(request(position=1))]
    assert batch[0] == ReplyStarted(script_position=2)
    assert deltas(batch) == ["b"]


@pytest.mark.anyio
async def test_the_script_of_a_session_goes_before_the_daemons() -> None:
    provider = ScriptedProvider(script_from_object({"replies": [{"text": "daemon"}]}))
    own: JsonObject = {"replies": [{"text": "own"}]}
    for _ in range(2):
        [batch] = [one async for one in provider.reply(request(script=own))]
        assert deltas(batch) == ["own"]
    other: JsonObject = {"replies": [{"text": "other"}]}
    [batch] = [one async for one in provider.reply(request(script=other))]
    assert deltas(batch) == ["other"]


@pytest.mark.anyio
async def test_a_bad_script_of_a_session_is_an_error_reply() -> None:
    [batch] = [one async for one in ScriptedProvider().reply(request(script={"replies": 1}))]
    end = batch[-1]
    assert isinstance(end, ReplyEnded)
    assert end.error is not None
    assert end.error.kind == "invalid_request"


def test_the_catalog_has_the_offline_model_and_starts_with_it() -> None:
    catalog = Catalog()
    [listing] = catalog.listing()
    assert (listing.provider, listing.model_id, listing.usable) == ("offline", "scripted", True)
    assert catalog.default() == ("offline", "scripted")
    assert isinstance(catalog.provider_of("offline", "scripted"), ScriptedProvider)


def test_an_unknown_model_is_missing() -> None:
    with pytest.raises(Missing) as missing:
        Catalog().provider_of("offline", "other")
    assert missing.value.reason == "model_not_found"
    assert missing.value.data == {"provider": "offline", "modelId": "other"}


@pytest.mark.anyio
async def test_the_script_comes_from_the_flag_else_the_environment_else_there_is_none(
    tmp_path: Path,
) -> None:
    flag, named = tmp_path / "flag.json", tmp_path / "named.json"
    flag.write_text('{"replies": [{"text": "flag"}]}')
    named.write_text('{"replies": [{"text": "named"}]}')
    environment = {"PI_RPC_SCRIPT": str(named)}

    async def said(script: Path | None, environment: dict[str, str]) -> str:
        provider = choose_models(script, environment).provider_of("offline", "scripted")
        return "".join([text async for one in provider.reply(request()) for text in deltas(one)])

    assert await said(flag, environment) == "flag"
    assert await said(None, environment) == "named"
    assert "offline model" in await said(None, {})


def test_a_named_script_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(Missing):
        choose_models(None, {"PI_RPC_SCRIPT": str(tmp_path / "none.json")})
