"""Known models: those that come with the package, the user's own, and who of them can be used."""

import os
import re
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from pi_rpc.config import settings_from
from pi_rpc.core.errors import Missing, Refused
from pi_rpc.core.images import ImageLimits
from pi_rpc.core.ports.providers import ModelListing
from pi_rpc.providers import known
from pi_rpc.providers.catalog import Catalog
from pi_rpc.providers.choose import choose_models
from pi_rpc.providers.compat import ChatCompat
from pi_rpc.providers.remote_catalog import APIS, RemoteCatalog, shipped
from tests.house.source import ROOT
from tests.providers.serving import Answer, serving
from tests.providers.streams import STREAMS, request_of

KEYS = {"ANTHROPIC_API_KEY": "sk-a"}
OPENER = ("offline", "scripted")


def written(folder: Path, **providers: Any) -> RemoteCatalog:
    (folder / "models.json").write_bytes(msgspec.json.encode({"providers": providers}))
    return RemoteCatalog(folder, KEYS)


def found(catalog: RemoteCatalog, provider: str) -> dict[str, ModelListing]:
    return {one.model_id: one for one in catalog.listing() if one.provider == provider}


MINE = {
    "baseUrl": "http://127.0.0.1:9/v1",
    "api": "openai-completions",
    "models": [{"id": "m1", "contextWindow": 1000, "maxTokens": 10, "cost": {"input": 3}}],
}


SHAPES = (
    *(known._Provider, known._Model, known._Cost, known._Tier, known._InputLimits),
    *(known._ImageInput, known._Resize, ChatCompat),
)


def test_the_page_of_models_shows_a_file_that_is_right_and_names_every_field(
    tmp_path: Path,
) -> None:
    page = (ROOT / "protocol/models.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "models.json").write_text(example, encoding="utf-8")
    catalog = RemoteCatalog(tmp_path, {"LOCAL_KEY": "sk-l"})
    assert catalog.diagnostics() == []
    assert found(catalog, "local")["my-model"].max_output == 8192
    assert found(catalog, "anthropic")["claude-sonnet-5"].max_output == 32_000
    told = set(re.findall(r"`(\w+)`", page))
    fields = {field.encode_name for shape in SHAPES for field in msgspec.structs.fields(shape)}
    # Only we say which variables hold the keys of the providers that come along.
    assert fields - told == {"env", "bearerEnv"}


@pytest.mark.anyio
async def test_limits_and_sampling_of_a_model_are_what_the_file_says(tmp_path: Path) -> None:
    base = {
        "id": "m1",
        "input": ["text", "image"],
        "inputLimits": {"images": {"resize": {"maxWidth": 800, "jpegQuality": 60}}},
        "samplingParams": {"temperature": 1},
        "samplingParamsByThinkingLevel": {"off": {"top_p": 0.5, "top_k": 3}},
    }
    patch = {"m1": {"samplingParamsByThinkingLevel": {"off": {"top_k": 9}}, "maxTokens": 7}}
    async with serving(Answer([STREAMS["openai-completions"]])) as server:
        mine = MINE | {"baseUrl": server.url, "models": [base], "modelOverrides": patch}
        catalog = written(tmp_path, mine=mine)
        limits = found(catalog, "mine")["m1"].image_limits
        async for _ in catalog.provider_of("mine", "m1").reply(request_of()):
            pass
        await catalog.close()
    assert catalog.diagnostics() == []
    assert limits == ImageLimits(max_width=800, jpeg_quality=60)
    body = server.asked[0].body
    sent = {name: body.get(name) for name in ("temperature", "top_p", "top_k", "max_tokens")}
    assert sent == {"temperature": 1, "top_p": 0.5, "top_k": 9, "max_tokens": None}
    assert body["max_completion_tokens"] == 7


def test_sampling_that_cannot_be_sent_is_told_and_bad_limits_cost_the_model(
    tmp_path: Path,
) -> None:
    told = {"id": "m1", "samplingParams": {"temperature": 1}}
    bad = {"id": "m2", "inputLimits": {"images": {"resize": {"jpegQuality": 101}}}}
    mine = MINE | {"api": "anthropic-messages", "models": [told, bad]}
    catalog = written(tmp_path, mine=mine)
    assert list(found(catalog, "mine")) == ["m1"]
    assert [one.reason for one in catalog.diagnostics()] == ["sampling_not_sent", "bad_model"]


@pytest.mark.parametrize(
    "text", ['{"providers": {\n "local": {\n', '{"providers": {\n "local": nothing}}']
)
def test_a_file_that_is_no_json_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "models.json").write_text(text, encoding="utf-8")
    [odd] = RemoteCatalog(tmp_path, {}).diagnostics()
    assert odd.reason == "file_left_out"
    assert "(line 2, column " in odd.text


def test_the_models_that_come_along_are_whole(tmp_path: Path) -> None:
    catalog = RemoteCatalog(tmp_path, {})
    listing = catalog.listing()
    assert len(listing) == sum(len(each["models"]) for each in shipped()["providers"].values())
    assert len(listing) > 200
    assert catalog.diagnostics() == []
    assert all(one.context_window > 0 and one.why_not for one in listing)
    assert {each["api"] for each in shipped()["providers"].values()} == set(APIS)


def test_models_with_a_key_are_usable_and_come_first(tmp_path: Path) -> None:
    listing = RemoteCatalog(tmp_path, KEYS).listing()
    usable = [one for one in listing if one.usable]
    assert usable == listing[: len(usable)]
    assert {one.provider for one in usable} == {"anthropic"}
    assert listing[-1].why_not is not None and "is not set" in listing[-1].why_not


def test_a_provider_of_the_users_own_is_known(tmp_path: Path) -> None:
    catalog = written(tmp_path, mine=MINE)
    [one] = found(catalog, "mine").values()
    assert (one.usable, one.context_window, one.max_output) == (True, 1000, 10)
    assert (one.price_input, one.name) == (3, "m1")
    assert catalog.provider_of("mine", "m1").api == "openai-completions"


def test_a_shipped_provider_is_changed_and_joined_by_the_users_own(tmp_path: Path) -> None:
    before = found(RemoteCatalog(tmp_path, KEYS), "anthropic")
    first = next(iter(before))
    catalog = written(
        tmp_path,
        anthropic={
            "models": [{"id": "new"}, {"id": first, "name": "Replaced"}],
            "modelOverrides": {
                "new": {"name": "Patched", "cost": {"input": 9}},
                "none": {"name": "x"},
            },
        },
    )
    after = found(catalog, "anthropic")
    assert set(after) == {*before, "new"}
    assert (after[first].name, after["new"].name) == ("Replaced", "Patched")
    assert after["new"].price_input == 9
    assert [one.reason for one in catalog.diagnostics()] == ["unknown_model"]


def test_a_mistake_costs_what_is_mistaken_and_nothing_else(tmp_path: Path) -> None:
    catalog = written(
        tmp_path,
        mine={**MINE, "models": [{"id": "m1"}, {"id": 3}, {"id": "m2", "input": "text"}, {}]},
        bad={"baseUrl": 5, "apiKey": "sk-leaky"},
        nowhere={"models": [{"id": "m1"}]},
        strange={**MINE, "api": "telepathy"},
    )
    assert set(found(catalog, "mine")) == {"m1"}
    assert found(catalog, "anthropic")
    told = catalog.diagnostics()
    assert sorted(one.reason for one in told) == [
        *["bad_model"] * 4,
        "bad_provider",
    ]
    assert all(one.path == str(tmp_path / "models.json") for one in told)
    assert "sk-leaky" not in repr(told)
    [strange] = found(catalog, "strange").values()
    assert not strange.usable and "telepathy" in str(strange.why_not)
    with pytest.raises(Refused) as refused:
        catalog.provider_of("strange", "m1")
    assert refused.value.reason == "api_not_supported"


@pytest.mark.parametrize("text", ["{bad", '{"providers": 3}', "[]"])
def test_a_file_that_cannot_be_read_leaves_the_shipped_models(tmp_path: Path, text: str) -> None:
    (tmp_path / "models.json").write_text(text)
    catalog = RemoteCatalog(tmp_path, KEYS)
    assert found(catalog, "anthropic")
    assert [one.reason for one in catalog.diagnostics()] in (
        ["file_left_out"],
        ["bad_models_file"],
    )


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    catalog = RemoteCatalog(tmp_path, KEYS)
    assert not found(catalog, "mine")
    written(tmp_path, mine=MINE)
    assert found(catalog, "mine")
    (tmp_path / "models.json").unlink()
    assert not found(catalog, "mine")


def test_what_is_not_known_or_has_no_key_is_refused(tmp_path: Path) -> None:
    catalog = Catalog(None, lambda: RemoteCatalog(tmp_path, {}))
    for provider, model_id in (("mine", "m1"), ("anthropic", "none"), ("offline", "other")):
        with pytest.raises(Missing) as missing:
            catalog.provider_of(provider, model_id)
        assert missing.value.reason == "model_not_found"
    model_id = shipped()["providers"]["anthropic"]["models"][0]["id"]
    with pytest.raises(Refused) as refused:
        catalog.provider_of("anthropic", model_id)
    assert refused.value.reason == "no_key"
    assert "ANTHROPIC_API_KEY" in refused.value.message


@pytest.mark.anyio
async def test_a_model_of_the_users_own_answers(tmp_path: Path) -> None:
    async with serving(Answer([STREAMS["openai-completions"]])) as server:
        mine = {**MINE, "baseUrl": server.url, "apiKey": "$KEY", "headers": {"X-Team": "blue"}}
        written(tmp_path, mine=mine)
        catalog = choose_models(None, {"KEY": "sk-mine"}, tmp_path, ("mine", "m1"))
        assert catalog.default() == ("mine", "m1")
        with anyio.fail_after(5):
            stream = catalog.provider_of("mine", "m1").reply(request_of())
            assert [pieces async for pieces in stream]
        [one] = server.asked
        await catalog.close()
    assert (one.path, one.headers["authorization"]) == ("/chat/completions", "Bearer sk-mine")
    assert one.headers["x-team"] == "blue"


@pytest.mark.anyio
async def test_a_key_of_a_command_is_asked_for_anew_when_it_was_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    answers = [Answer(status=status) for status in (500, 401, 500)]
    async with serving(*answers) as server:
        written(tmp_path, mine={**MINE, "baseUrl": server.url, "apiKey": f"!echo k | tee -a {log}"})
        catalog = RemoteCatalog(tmp_path, {"PATH": os.environ["PATH"]})
        runs = []
        for _ in answers:
            with anyio.fail_after(5):
                stream = catalog.provider_of("mine", "m1").reply(request_of())
                assert [pieces async for pieces in stream]
            runs.append(len(log.read_text().split()))
        await catalog.close()
    assert runs == [1, 1, 2]


def test_the_model_to_begin_with_is_the_named_one_with_or_without_its_key(tmp_path: Path) -> None:
    model_id = shipped()["providers"]["openai"]["models"][0]["id"]
    assert choose_models(None, {}, tmp_path).default() == OPENER
    assert choose_models(None, {}, tmp_path, ("openai", model_id)).default() == ("openai", model_id)
    assert choose_models(None, {}, tmp_path, OPENER).diagnostics() == []
    unknown = choose_models(None, {}, tmp_path, ("openai", "none"))
    assert unknown.default() == OPENER
    assert [one.reason for one in unknown.diagnostics()] == ["default_model_unknown"]
    script = tmp_path / "script.json"
    script.write_text("{}")
    assert choose_models(script, {}, tmp_path, ("openai", model_id)).default() == OPENER


def test_the_settings_name_a_model_by_provider_and_id(tmp_path: Path) -> None:
    environment = {"PI_CODING_AGENT_DIR": str(tmp_path)}
    named = {"defaultProvider": "openai", "defaultModel": "gpt"}
    for stored, model in ((named, ("openai", "gpt")), ({"defaultModel": "gpt"}, None), ({}, None)):
        (tmp_path / "settings.json").write_bytes(msgspec.json.encode(stored))
        assert settings_from(environment).default_model == model


def test_one_model_is_told_as_it_stands_in_the_list(tmp_path: Path) -> None:
    catalog = Catalog(remote=lambda: RemoteCatalog(tmp_path, {"OPENAI_API_KEY": "k"}))
    every = catalog.listing()
    assert {one.usable for one in every} == {True, False}
    for one in every:
        assert catalog.listed(one.provider, one.model_id) == one
    assert catalog.listed("openai", "none") is None
    assert catalog.listed("none", "none") is None
    assert Catalog().listed("openai", "none") is None


def test_a_model_that_can_think_does_so_from_the_beginning(tmp_path: Path) -> None:
    models = [
        {"id": "plain"},
        {"id": "thinks", "reasoning": True},
        {"id": "odd", "reasoning": True, "thinkingLevelMap": {"medium": None}},
    ]
    listed = found(written(tmp_path, mine=MINE | {"models": models}), "mine")
    levels = {model_id: one.thinking_default for model_id, one in listed.items()}
    assert levels == {"plain": "off", "thinks": "medium", "odd": "high"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("variable", "mark"),
    [
        ({"PI_CACHE_RETENTION": "long"}, {"type": "ephemeral", "ttl": "1h"}),
        ({"PI_CACHE_RETENTION": "none"}, None),
        ({}, {"type": "ephemeral"}),
    ],
)
async def test_a_variable_says_how_long_a_beginning_is_kept(
    tmp_path: Path, variable: dict[str, str], mark: dict[str, str] | None
) -> None:
    api = "anthropic-messages"
    async with serving(Answer([STREAMS[api]])) as server:
        written(tmp_path, mine=MINE | {"api": api, "baseUrl": server.url})
        catalog = choose_models(None, variable, tmp_path)
        async for _ in catalog.provider_of("mine", "m1").reply(request_of()):
            pass
        await catalog.close()
    [said] = server.asked[0].body["messages"]
    block = said["content"] if mark is None else said["content"][-1]
    assert block == "Go on" if mark is None else block["cache_control"] == mark
