"""What a hook may change of a message or a request."""

from typing import Any

import pytest

from pi_rpc.core.errors import Invalid
from pi_rpc.core.hook_changes import Said, changed_context, changed_message, shown_context
from pi_rpc.core.hooks import HOOKS, ContextAnswer, ContextChange, HookName, MessageAnswer
from pi_rpc.core.messages import JsonObject, text_block

CALL: JsonObject = {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"a": 1}}
THOUGHT: JsonObject = {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}


def reply(*blocks: JsonObject) -> JsonObject:
    return {"role": "assistant", "content": list(blocks), "stopReason": "stop", "model": "m"}


SIGNED = reply(THOUGHT, text_block("x"), CALL | {"thoughtSignature": "t"})
RESULT: JsonObject = {"role": "toolResult", "toolCallId": "c", "content": [text_block("out")]}
USER: JsonObject = {"role": "user", "content": "hi"}


def test_the_table_has_every_point_once() -> None:
    assert set(HOOKS) == set(HookName.__args__)  # type: ignore[attr-defined]
    assert [name for name, point in HOOKS.items() if point.is_local] == ["request/payload"]
    assert [name for name, point in HOOKS.items() if point.default == "deny"] == ["tool/before"]


@pytest.mark.parametrize(
    ("message", "content", "wanted"),
    [
        (USER, "other", "other"),
        (USER, [text_block("other")], [text_block("other")]),
        (RESULT, "other", [text_block("other")]),
        (reply(text_block("x")), "other", [text_block("other")]),
        # Its calls stay, and no signature stands over other words.
        (SIGNED, "other", [text_block("other"), CALL]),
        (SIGNED, [], [CALL]),
        (SIGNED, [THOUGHT, CALL], [{"type": "thinking", "thinking": "hm"}, CALL]),
    ],
)
def test_other_content_takes_the_form_of_its_role(
    message: JsonObject, content: Any, wanted: Any
) -> None:
    changed = changed_message(message, MessageAnswer(content))
    assert changed == message | {"content": wanted}


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"role": "system", "content": ""}, "x"),
        (SIGNED, [CALL | {"arguments": {"a": 2}}]),
        (SIGNED, [CALL, CALL]),
        (reply(text_block("x")), [CALL]),
        (USER, [{"type": "audio"}]),
        (USER, "x" * ((1 << 20) + 1)),
    ],
)
def test_a_message_that_cannot_be_is_refused(message: JsonObject, content: Any) -> None:
    with pytest.raises(Invalid) as caught:
        changed_message(message, MessageAnswer(content))
    assert caught.value.reason == "bad_change"


def test_annotations_leave_content_and_signatures_as_they_are() -> None:
    changed = changed_message(SIGNED, MessageAnswer(annotations={"a": 1}))
    assert changed == SIGNED | {"annotations": {"a": 1}}
    again = changed_message(changed, MessageAnswer(annotations={"b": 2}))
    assert again["annotations"] == {"a": 1, "b": 2}


SYSTEM = Said("s", {"role": "system", "content": "be"})
TALK = [SYSTEM, Said("u", USER), Said("a", SIGNED), Said("r", RESULT), Said("v", USER)]


def contents(said: list[Said]) -> list[tuple[str | None, Any]]:
    return [(one.entry_id, one.message["content"]) for one in said]


@pytest.mark.parametrize(
    ("answer", "ids"),
    [
        (ContextAnswer(), ["s", "u", "a", "r", "v"]),
        (ContextAnswer([ContextChange("u")]), ["s", "a", "r", "v"]),
        # A call goes with its result, and a result with its call.
        (ContextAnswer([ContextChange("a")]), ["s", "u", "v"]),
        (ContextAnswer([ContextChange("r")]), ["s", "u", "v"]),
        (ContextAnswer(append=["more", [text_block("x")]]), ["s", "u", "a", "r", "v", None, None]),
    ],
)
def test_a_request_is_changed(answer: ContextAnswer, ids: list[str | None]) -> None:
    assert [one.entry_id for one in changed_context(TALK, answer, 5)] == ids


def test_other_words_in_a_request_are_unsigned_and_the_given_messages_stay() -> None:
    made = changed_context(TALK, ContextAnswer([ContextChange("a", "said")]), 5)
    assert contents(made)[2] == ("a", [text_block("said"), CALL])
    assert contents(TALK)[2] == ("a", SIGNED["content"])


@pytest.mark.parametrize(
    "answer",
    [
        ContextAnswer([ContextChange("s", "x")]),
        ContextAnswer([ContextChange("nowhere")]),
        ContextAnswer(append=[[{"type": "toolCall"}]]),
    ],
)
def test_a_request_that_cannot_be_is_refused(answer: ContextAnswer) -> None:
    with pytest.raises(Invalid) as caught:
        changed_context(TALK, answer, 5)
    assert caught.value.reason == "bad_change"


@pytest.mark.parametrize(("last", "ids"), [(0, []), (2, ["r", "v"]), (9, ["u", "a", "r", "v"])])
def test_as_many_messages_are_shown_as_wanted_and_no_prompt(last: int, ids: list[str]) -> None:
    count, shown = shown_context(TALK, last)
    assert (count, [one.entry_id for one in shown]) == (4, ids)
