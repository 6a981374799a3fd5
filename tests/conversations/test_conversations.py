"""What a client sees, told as text files and played both ways."""

from pathlib import Path

import anyio
import pytest

from tests.conversations.playing import Player
from tests.conversations.reading import read

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


def test_every_conversation_opens_with_its_sentence() -> None:
    sentences = [read(path).sentence for path in FILES]
    assert all(sentence.endswith(".") for sentence in sentences)
    assert len(set(sentences)) == len(sentences)
