"""What a client sees, told as text files and played both ways."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.frontends.native.table import METHODS, NOTIFICATIONS
from tests.conversations.playing import Player
from tests.conversations.reading import Expect, Send, read

pytestmark = pytest.mark.anyio

FILES = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_the_conversation_goes_as_written(path: Path, tmp_path: Path) -> None:
    conversation = read(path)
    failure: AssertionError | None = None
    async with anyio.create_task_group() as tasks:
        try:
            await Player(conversation, tmp_path, tasks).play()
        except AssertionError as error:
            failure = error
            tasks.cancel_scope.cancel()
    if failure is not None:
        pytest.fail(f"{conversation.sentence}\n{failure}", pytrace=False)


def asked_and_told() -> tuple[set[str], set[str], set[str]]:
    """Methods that conversations ask, notifications and error reasons that they expect."""
    methods: set[str] = set()
    notifications: set[str] = set()
    reasons: set[str] = set()
    for path in FILES:
        for step in read(path).steps:
            match step:
                case Send(messages=messages):
                    methods |= {found for one in messages for found in values_of(one, "method")}
                case Expect(patterns=patterns):
                    notifications |= {n for one in patterns for n in values_of(one, "method")}
                    reasons |= {n for one in patterns for n in values_of(one, "reason")}
    return methods, notifications, reasons


def values_of(value: Any, key: str) -> Iterator[str]:
    """The texts that stand under a key, anywhere inside."""
    if isinstance(value, dict):
        if isinstance(value.get(key), str):
            yield value[key]
        for inner in value.values():
            yield from values_of(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from values_of(inner, key)


def test_every_method_is_asked_in_a_conversation() -> None:
    methods, _, _ = asked_and_told()
    assert set(METHODS) - methods == set()


def test_every_notification_is_awaited_in_a_conversation() -> None:
    _, notifications, _ = asked_and_told()
    sent = {name for name, row in NOTIFICATIONS.items() if row.sender == "server"}
    assert sent - notifications == set()


def test_every_conversation_opens_with_its_sentence() -> None:
    sentences = [read(path).sentence for path in FILES]
    assert all(sentence.endswith(".") for sentence in sentences)
    assert len(set(sentences)) == len(sentences)
