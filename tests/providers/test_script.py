"""Scripts are read strictly and used in order."""

from pathlib import Path
from typing import Any

import pytest

from pi_rpc.core.errors import Invalid, Missing, Outside
from pi_rpc.core.messages import JsonObject
from pi_rpc.providers.script import (
    EXHAUSTED,
    Script,
    ScriptedReply,
    reply_for,
    script_from_file,
    script_from_object,
)


def user(text: str) -> JsonObject:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def texts(script: Script, *words: str) -> list[str]:
    """What is answered to one request after the other."""
    position, said = 0, []
    for word in words:
        reply, position = reply_for(script, position, [user(word)])
        said.append(reply.text)
    return said


@pytest.mark.parametrize(
    ("object", "place"),
    [
        ([], "$"),
        ("x", "$"),
        ({"reply": []}, "$"),
        ({"replies": {}}, "$.replies"),
        ({"replies": [{}, {"txt": "a"}]}, "$.replies[1]"),
        ({"replies": [{"text": 1}]}, "$.replies[0].text"),
        ({"replies": [{"chunk": 0}]}, "$.replies[0].chunk"),
        ({"replies": [{"delayMs": -1}]}, "$.replies[0].delayMs"),
        ({"replies": [{"cutAfter": -1}]}, "$.replies[0].cutAfter"),
        ({"replies": [{"stop": "aborted"}]}, "$.replies[0].stop"),
        ({"replies": [{"tools": [{"args": {}}]}]}, "$.replies[0].tools[0]"),
        ({"replies": [{"tools": [{"name": "a", "args": 1}]}]}, "$.replies[0].tools[0].args"),
        ({"replies": [{"usage": {"output": -1}}]}, "$.replies[0].usage.output"),
        ({"replies": [{"match": {}}]}, "$.replies[0].match"),
        ({"default": 1}, "$.default"),
    ],
)
def test_a_bad_script_is_refused_and_the_place_is_named(object: Any, place: str) -> None:
    with pytest.raises(Invalid) as refused:
        script_from_object(object)
    assert refused.value.reason == "bad_script"
    assert refused.value.data == {"at": place}


def test_a_script_may_be_empty() -> None:
    assert script_from_object({}) == Script()


def test_a_script_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(b'{"replies": [{"text": "a"}], "default": {"echo": true}}')
    assert script_from_file(path) == Script(
        replies=[ScriptedReply(text="a")], default=ScriptedReply(echo=True)
    )


def test_a_script_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Missing) as missing:
        script_from_file(tmp_path / "none.json")
    assert (missing.value.reason, missing.value.data) == (
        "script_not_found",
        {"path": str(tmp_path / "none.json")},
    )


def test_a_script_that_cannot_be_read_is_the_systems_failure(tmp_path: Path) -> None:
    with pytest.raises(Outside) as failed:
        script_from_file(tmp_path)
    assert failed.value.reason == "script_unreadable"


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b'{"replies": 1}', b'{"default":' * 100_000])
def test_a_file_that_holds_no_script_is_refused_and_named(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(raw)
    with pytest.raises(Invalid) as refused:
        script_from_file(path)
    assert refused.value.reason == "bad_script"
    assert str(path) in refused.value.message


def test_replies_are_used_in_order_and_then_the_default_again_and_again() -> None:
    script = script_from_object(
        {"replies": [{"text": "a"}, {"text": "b"}], "default": {"text": "c"}}
    )
    assert texts(script, "1", "2", "3", "4") == ["a", "b", "c", "c"]


def test_the_position_goes_on_growing_with_the_default() -> None:
    script = script_from_object({"replies": [{"text": "a"}]})
    positions = [0]
    for _ in range(3):
        positions.append(reply_for(script, positions[-1], [])[1])
    assert positions == [0, 1, 2, 3]


def test_a_script_at_its_end_without_a_default_says_so() -> None:
    assert reply_for(Script(), 0, []) == (EXHAUSTED, 1)
    assert EXHAUSTED.error is not None
    assert EXHAUSTED.error.type == "script_exhausted"


def test_a_reply_that_does_not_match_is_passed_over_for_good() -> None:
    script = script_from_object(
        {
            "replies": [
                {"text": "apples", "match": {"contains": "apple"}},
                {"text": "pears", "match": {"contains": "pear"}},
                {"text": "any"},
            ]
        }
    )
    assert texts(script, "an apple", "a pear", "a plum") == ["apples", "pears", "any"]
    assert texts(script, "a pear", "an apple") == ["pears", "any"]
    assert texts(script, "a plum") == ["any"]


def test_a_match_looks_at_the_last_words_of_the_user_past_what_came_since() -> None:
    script = script_from_object(
        {"replies": [{"text": "yes", "match": {"contains": "apple"}}], "default": {"text": "no"}}
    )
    since: JsonObject = {"role": "toolResult", "content": [{"type": "text", "text": "pear"}]}
    assert reply_for(script, 0, [user("pear"), user("apple"), since])[0].text == "yes"
    assert reply_for(script, 0, [user("apple"), user("pear"), since])[0].text == "no"
    assert reply_for(script, 0, [])[0].text == "no"
