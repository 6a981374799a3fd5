"""Whatever is merged, the text told of a block is the text that came, and numbers have no gaps."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_rpc.core.events import MessageDelta
from pi_rpc.core.reply import BlockDelta, BlockEnded, BlockStarted, Piece, ReplyStarted
from pi_rpc.session.deltas import MERGED_CHARS_MAX, Deltas
from pi_rpc.session.hub import Hub
from tests.session.living import Ear

OPENING: Sequence[Piece] = [ReplyStarted(), BlockStarted(0, "text")]


@pytest.fixture
def hub() -> Hub:
    return Hub("session", "runtime")


def told(ear: Ear) -> list[tuple[int, str, str]]:
    return [(one.block, one.kind, one.text) for one in ear.of(MessageDelta)]


def test_without_pressure_each_piece_is_told_by_itself(hub: Hub) -> None:
    ear, deltas = Ear(hub), Deltas(hub)
    deltas.tell([*OPENING, BlockDelta(0, "a"), BlockDelta(0, ""), BlockDelta(0, "b")])
    assert told(ear) == [(0, "text", "a"), (0, "text", "b")]


def test_a_call_is_told_with_its_id_and_name_once_and_first(hub: Hub) -> None:
    ear, deltas = Ear(hub), Deltas(hub)
    deltas.tell([BlockStarted(0, "toolCall", "c1", "read"), BlockDelta(0, '{"a"'), BlockEnded(0)])
    assert ear.events == [
        MessageDelta(0, "toolArguments", "", "c1", "read"),
        MessageDelta(0, "toolArguments", '{"a"'),
    ]


def test_under_pressure_nothing_is_told_until_the_pressure_ends(hub: Hub) -> None:
    ear, deltas = Ear(hub), Deltas(hub)
    ear.is_pressed = True
    deltas.tell([*OPENING, BlockDelta(0, "a"), BlockDelta(0, "b")])
    deltas.tell([BlockDelta(0, "c")])
    assert told(ear) == []
    ear.is_pressed = False
    deltas.tell([BlockDelta(0, "d")])
    assert told(ear) == [(0, "text", "abc"), (0, "text", "d")]
    assert ear.numbers == [1, 2]


def test_under_pressure_blocks_are_not_merged_with_each_other(hub: Hub) -> None:
    ear, deltas = Ear(hub), Deltas(hub)
    ear.is_pressed = True
    thinking: Sequence[Piece] = [BlockStarted(0, "thinking"), BlockDelta(0, "hm"), BlockEnded(0)]
    deltas.tell([*thinking, BlockStarted(1, "text"), BlockDelta(1, "yes")])
    deltas.flush()
    assert told(ear) == [(0, "thinking", "hm"), (1, "text", "yes")]


def test_what_is_held_back_is_bounded(hub: Hub) -> None:
    ear, deltas = Ear(hub), Deltas(hub)
    ear.is_pressed = True
    deltas.tell(OPENING)
    for _ in range(40):
        deltas.tell([BlockDelta(0, "x" * (MERGED_CHARS_MAX // 16))])
    deltas.flush()
    lengths = [len(text) for _, _, text in told(ear)]
    assert lengths == [MERGED_CHARS_MAX, MERGED_CHARS_MAX, MERGED_CHARS_MAX // 2]


@pytest.mark.parametrize("is_pressed", [False, True])
def test_no_delta_is_longer_than_every_client_can_read(hub: Hub, is_pressed: bool) -> None:
    ear, deltas = Ear(hub), Deltas(hub)
    ear.is_pressed = is_pressed
    deltas.tell([*OPENING, BlockDelta(0, "y"), BlockDelta(0, "x" * (2 * MERGED_CHARS_MAX + 1))])
    deltas.flush()
    assert "".join(text for _, _, text in told(ear)) == "y" + "x" * (2 * MERGED_CHARS_MAX + 1)
    assert max(len(text) for _, _, text in told(ear)) == MERGED_CHARS_MAX
    assert ear.numbers == list(range(1, len(ear.heard) + 1))


def test_flushing_with_nothing_held_tells_nothing(hub: Hub) -> None:
    ear, deltas = Ear(hub), Deltas(hub)
    deltas.tell(OPENING)
    deltas.flush()
    assert ear.events == []


STEPS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 2), st.text("ab読😀", max_size=4)), max_size=40
)


@given(STEPS)
@settings(derandomize=True, max_examples=200, deadline=None)
def test_whenever_pressure_comes_and_goes_the_text_is_whole_and_in_order(
    steps: list[tuple[bool, int, str]],
) -> None:
    hub = Hub("session", "runtime")
    ear, deltas = Ear(hub), Deltas(hub)
    came: dict[int, str] = {}
    for pressed, block, text in steps:
        ear.is_pressed = pressed
        if block not in came:
            came[block] = ""
            deltas.tell([BlockStarted(block, "text")])
        came[block] += text
        deltas.tell([BlockDelta(block, text)])
    deltas.flush()
    heard = dict.fromkeys(came, "")
    for block, _, text in told(ear):
        heard[block] += text
    assert heard == came
    assert ear.numbers == list(range(1, len(ear.heard) + 1))
