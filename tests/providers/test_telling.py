"""A context told again and again as it grows, against the same context told at once."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from pi_rpc.core.messages import JsonObject
from pi_rpc.core.models import Model
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.projection import MESSAGES_KEPT_ROWS
from pi_rpc.providers.remote_catalog import APIS
from pi_rpc.providers.telling import Told, Words, told

PNG: JsonObject = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def model_of(api: str, **facts: Any) -> Model:
    return Model(provider="p", id="m", name="m", api=api, base_url="http://host", **facts)


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def user(words: str) -> JsonObject:
    return {"role": "user", "content": [text(words)]}


def asking(*ids: str, stop: str = "toolUse") -> JsonObject:
    calls = [{"type": "toolCall", "id": one, "name": "read", "arguments": {}} for one in ids]
    message = {"role": "assistant", "content": [text("Let me see."), *calls], "stopReason": stop}
    return {**message, "provider": "p", "model": "m", "api": "anthropic-messages"}


def result(call_id: str, *blocks: JsonObject) -> JsonObject:
    message = {"role": "toolResult", "toolCallId": call_id, "toolName": "read", "isError": False}
    return {**message, "content": list(blocks)}


def system(words: str) -> JsonObject:
    tool = {"name": "read", "description": words, "parameters": {"type": "object"}}
    return {"role": "system", "content": words, "toolsAdded": [tool]}


def anything(chance: random.Random, number: int) -> JsonObject:
    """A message; ids are few, so that calls are answered late, twice, or not at all."""
    ids = chance.sample(["a", "b", "a|1", "c" * 70, "c" * 71], 2)
    return chance.choice(
        [
            user(f"Question {number}"),
            user(""),
            asking(*ids),
            asking(ids[0]),
            asking(ids[0], stop="aborted"),
            {"role": "assistant", "content": [], "stopReason": "stop"},
            result(ids[0], text(f"Result {number}")),
            result(ids[0], PNG, text("An image")),
            system(f"Rule {number}"),
            {"role": "custom", "content": f"Note {number}", "timestamp": number},
        ]
    )


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("api", APIS)
def test_a_context_told_as_it_grows_equals_one_told_at_once(api: str, seed: int) -> None:
    chance = random.Random(seed)
    kept: dict[str, object] = {}
    context: list[JsonObject] = []
    for number in range(25):
        if chance.random() < 0.1:
            # A branch, an edit, a compaction: the context is another one now.
            del context[chance.randrange(len(context) + 1) :]
        context += [anything(chance, number) for _ in range(chance.randrange(4))]
        posts = [
            APIS[api].post(
                ModelRequest("p", "m", "off", list(context), "s", kept=room), at, "short"
            )
            for room, at in [(kept, model_of(api)), ({}, model_of(api))]
        ]
        assert posts[0].body == posts[1].body
        assert sorted(map(str, posts[0].notes)) == sorted(map(str, posts[1].notes))


class Telling:
    """Tells a context in words of its own, and counts the passages that were put into them."""

    def __init__(self) -> None:
        self.kept: dict[str, object] = {}
        self.put = 0

    def words(self, model: Model) -> Words:
        def say(passage: list[JsonObject], _: int, __: Sequence[JsonObject]) -> list[JsonObject]:
            self.put += 1
            return passage

        return Words(lambda stored_id, is_same: stored_id, say)

    def told(self, context: list[JsonObject], model: Model | None = None) -> tuple[Told, int]:
        """The context as it is told, and how many passages had to be put for it."""
        request = ModelRequest("p", "m", "off", context, "s", kept=self.kept)
        before, words = self.put, self.kept.setdefault("words", self.words)
        made = told(request, context, model or model_of("any"), words)  # type: ignore[arg-type]
        return made, self.put - before


def turns(count: int) -> list[JsonObject]:
    loop = [(asking(f"c{n}"), result(f"c{n}", text("r"))) for n in range(count)]
    return [system("Be brief."), user("Go"), *(message for turn in loop for message in turn)]


def test_only_what_is_new_is_put_into_words() -> None:
    telling, context = Telling(), turns(50)
    assert telling.told(context[:-4])[1] == 49
    assert telling.told(context[:-2])[1] == 1
    said, put = telling.told(context)
    assert put == 1
    assert said == Telling().told(context)[0]
    assert telling.told(context)[1] == 0


def test_what_is_given_out_may_be_changed_in_its_lists() -> None:
    telling, context = Telling(), turns(3)
    first = telling.told(context)[0]
    first.said.clear()
    first.tools.clear()
    first.notes.clear()
    assert telling.told(context)[0] == Telling().told(context)[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda context: context[:-1],
        lambda context: [*context[:1], user("Something else"), *context[2:]],
        lambda context: [*context, result("c0", text("late"))],
    ],
    ids=["shorter", "another word", "a late result"],
)
def test_a_context_that_changed_elsewhere_is_told_anew(change: Any) -> None:
    telling, context = Telling(), turns(3)
    telling.told(context)
    changed = change(context)
    said, put = telling.told(changed)
    assert (said, put) == Telling().told(changed)


def test_another_model_is_told_anew() -> None:
    telling, context = Telling(), turns(3)
    telling.told(context)
    assert telling.told(context, model_of("other"))[1] == 4


def test_the_telling_of_a_very_long_context_is_not_kept() -> None:
    telling = Telling()
    telling.told(turns(MESSAGES_KEPT_ROWS // 2))
    assert set(telling.kept) == {"words"}
