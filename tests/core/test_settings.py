"""Layers of settings laid over each other."""

from typing import Any

import msgspec
import pytest

from pi_rpc.core.errors import Failure
from pi_rpc.core.settings import (
    KNOWN,
    Layer,
    Setting,
    checked_setting,
    effective,
    tools_over,
    with_value,
)

USER, PROJECT, SESSION = "/user.json", "/project.json", None


def layers(user: Any = None, project: Any = None, session: Any = None) -> list[Layer]:
    return [
        Layer("user", user or {}, USER),
        Layer("project", project or {}, PROJECT),
        Layer("session", session or {}),
    ]


def test_every_default_is_of_its_own_type() -> None:
    found = effective([])
    assert found.diagnostics == []
    for key, known in KNOWN.items():
        assert found.settings[key].layer == "default"
        assert found.value(key) == msgspec.convert(msgspec.to_builtins(known.default), known.type)
        assert not found.is_set(key)


def test_a_later_layer_goes_over_those_before_it_key_by_key() -> None:
    found = effective(
        layers(
            {"retry": {"maxRetries": 7, "baseDelayMs": 1}, "steeringMode": "all"},
            {"retry": {"maxRetries": 2}},
            {"steeringMode": "one-at-a-time"},
        )
    )
    assert found.settings["retry.maxRetries"] == Setting(2, "project")
    assert found.settings["retry.baseDelayMs"] == Setting(1, "user")
    assert found.settings["steeringMode"] == Setting("one-at-a-time", "session")


def test_a_bad_value_is_told_and_what_holds_without_it_holds() -> None:
    found = effective(layers({"steeringMode": "all", "retry": 5}, {"steeringMode": "some"}))
    assert found.settings["steeringMode"] == Setting("all", "user")
    assert found.settings["retry.maxRetries"] == Setting(3, "default")
    [told] = found.diagnostics
    assert (told.severity, told.reason, told.path) == ("error", "bad_setting", PROJECT)
    assert told.text.startswith("steeringMode: ")


def test_what_is_the_users_is_not_read_from_a_project_or_a_session() -> None:
    own = {"sessionDir": "/x", "defaultProjectTrust": "always"}
    found = effective(layers({}, own, own))
    assert found.settings["sessionDir"] == Setting(None, "default")
    assert found.settings["defaultProjectTrust"] == Setting("ask", "default")
    assert effective(layers(own)).settings["sessionDir"] == Setting("/x", "user")


@pytest.mark.parametrize(
    ("below", "listed", "wanted"),
    [
        (["a", "b"], ["c"], ["c"]),
        (["a", "b"], ["+c", "-a"], ["b", "c"]),
        (["a", "b"], ["+a"], ["a", "b"]),
        (["a"], ["+b", "c"], ["+b", "c"]),
        (["a"], [], []),
    ],
)
def test_a_list_of_signs_changes_the_tools(
    below: list[str], listed: list[str], wanted: list[str]
) -> None:
    assert tools_over(below, listed) == wanted


def test_signs_of_user_and_project_add_up() -> None:
    found = effective(layers({"defaultTools": ["+grep"]}, {"defaultTools": ["-bash"]}))
    assert found.settings["defaultTools"] == Setting(["read", "edit", "write", "grep"], "project")


def test_thinking_levels_of_models_are_merged_by_model() -> None:
    found = effective(
        layers({"modelThinkingLevels": {"p/a": "low"}}, {"modelThinkingLevels": {"p/b": "high"}})
    )
    assert found.value("modelThinkingLevels") == {"p/a": "low", "p/b": "high"}


def test_an_old_name_is_read_where_the_new_one_is_not_there() -> None:
    assert effective(layers({"queueMode": "all"})).value("steeringMode") == "all"
    both = {"queueMode": "all", "steeringMode": "one-at-a-time"}
    assert effective(layers(both)).value("steeringMode") == "one-at-a-time"


@pytest.mark.parametrize(
    ("key", "value", "scope", "wanted"),
    [
        ("theme", "dark", "user", ("missing", "setting_not_found")),
        ("steeringMode", "some", "user", ("invalid", "bad_setting")),
        ("retry.maxRetries", -1, "session", ("invalid", "bad_setting")),
        ("sessionDir", "/x", "session", ("refused", "setting_of_the_user")),
    ],
)
def test_what_cannot_be_chosen_is_refused(
    key: str, value: Any, scope: Any, wanted: tuple[str, str]
) -> None:
    with pytest.raises(Failure) as caught:
        checked_setting(key, value, scope)
    assert (caught.value.kind, caught.value.reason) == wanted


def test_one_value_is_changed_and_the_rest_stays() -> None:
    before = {"a": 1, "retry": {"maxRetries": 1, "x": [1]}}
    assert with_value(before, "retry.maxRetries", 5) == {
        "a": 1,
        "retry": {"maxRetries": 5, "x": [1]},
    }
    assert with_value({"retry": {"maxRetries": 1}, "b": 2}, "retry.maxRetries", None) == {"b": 2}
    assert with_value({}, "steeringMode", "all") == {"steeringMode": "all"}
    assert before == {"a": 1, "retry": {"maxRetries": 1, "x": [1]}}
    with pytest.raises(Failure) as caught:
        with_value({"retry": 5}, "retry.maxRetries", 1)
    assert caught.value.reason == "bad_setting"


def test_budgets_are_joined_level_by_level() -> None:
    found = effective(
        layers({"thinkingBudgets": {"low": 1, "high": 2}}, session={"thinkingBudgets": {"high": 3}})
    )
    assert found.value("thinkingBudgets") == {"low": 1, "high": 3}
    assert found.diagnostics == []


def test_the_old_name_of_the_longest_retry_delay_is_known() -> None:
    old = effective(layers({"retry": {"maxDelayMs": 7, "maxRetries": 2}}))
    assert (old.value("retry.provider.maxRetryDelayMs"), old.value("retry.maxRetries")) == (7, 2)
    both = {"retry": {"maxDelayMs": 7, "provider": {"maxRetryDelayMs": 8, "maxRetries": 1}}}
    assert effective(layers(both)).value("retry.provider.maxRetryDelayMs") == 8
    odd = effective(layers({"retry": {"maxDelayMs": 7, "provider": 5}}))
    assert odd.value("retry.provider.maxRetryDelayMs") == 60_000


@pytest.mark.parametrize(
    ("key", "value", "is_sound"),
    [
        ("httpIdleTimeoutMs", "disabled", True),
        ("httpIdleTimeoutMs", 0, True),
        ("httpIdleTimeoutMs", "off", False),
        ("retry.provider.timeoutMs", -1, False),
        ("retry.provider.timeoutMs", None, True),
        ("thinkingBudgets", {"xhigh": 1}, False),
        ("images.blockImages", "yes", False),
        ("piRpc.replyTimeoutS", 0.5, True),
    ],
)
def test_settings_of_requests_are_looked_at(key: str, value: Any, is_sound: bool) -> None:
    try:
        checked_setting(key, value, "session")
    except Failure as failure:
        assert (failure.reason, is_sound) == ("bad_setting", False)
    else:
        assert is_sound


@pytest.mark.parametrize(
    ("project", "session", "decisions"),
    [
        ({}, {}, ["deny", "ask"]),
        ({"rules": [{"decision": "allow"}]}, {}, ["deny", "ask", "allow"]),
        ({}, {"rules": [{"decision": "allow"}]}, ["allow", "deny", "ask"]),
        ({}, {"rules": []}, ["deny", "ask"]),
    ],
)
def test_no_layer_takes_away_what_another_denies(
    project: dict[str, Any], session: dict[str, Any], decisions: list[str]
) -> None:
    user = {"default": "ask", "rules": [{"decision": "deny", "tool": "a"}, {"decision": "ask"}]}
    given = (user, project | {"default": "allow", "outside": "allow"}, session)
    every = layers(*({"piRpc": {"permissions": one}} for one in given))
    policy = effective(every).value("piRpc.permissions")
    assert [rule.decision for rule in policy.rules] == decisions
    assert (policy.default, policy.outside) == ("ask", None)
