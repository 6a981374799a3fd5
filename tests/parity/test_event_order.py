"""What we tell of a run comes in the order Pi tells it, but for the differences listed here."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.retrying import RetryPolicy
from tests.parity.differences import DIFFERENCES, Lines
from tests.parity.lines import line_of, recorded_line
from tests.parity.orders import RECORDINGS, Order, Playing, read
from tests.session.living import NO_RETRY, WAIT_S, living_host, memory_store, opened

pytestmark = pytest.mark.anyio

SCENARIOS = (
    *("plain_prompt", "plain_prompt_chat", "plain_prompt_responses", "unicode", "thinking_replay"),
    *("tools", "tools_chat", "tools_responses", "images", "stop_length", "model_thinking"),
    *("steer_and_follow_up", "steer_modes", "idle_queue", "clear_queue_abort"),
    *("prompt_during_tool", "abort_mid_stream", "abort_tool", "bash_command"),
    *("retry_529_success", "retry_429_header", "retry_exhausted", "retry_off", "retry_abort"),
    *("stream_cut_retry", "provider_error_final"),
    *("auto_compaction_off", "auto_threshold_compaction", "compact_manual", "compact_errors"),
    *("compact_after_compact_kept", "split_turn_compaction", "queue_during_compaction"),
    *("length_recovery", "overflow_recovery", "overflow_chat", "overflow_responses"),
    *("overflow_in_tool_loop", "overflow_nothing_to_compact"),
)


def one_start_a_run(lines: Lines) -> Lines:
    """Pi begins an agent for each attempt; our run begins once, and its turns tell of attempts."""
    kept: Lines = []
    for line in lines:
        if line == "agent_start" and kept and kept[-1] == "entry_appended context_edit":
            continue
        kept.append(line)
    return kept


def queues_before_turns(lines: Lines) -> Lines:
    """What a turn delivers has left its queue before the turn begins: the turn begins for it."""
    text = "\n".join(lines)
    return re.sub(r"^turn_start\n(queue_update .*)$", r"\1\nturn_start", text, flags=re.M).split(
        "\n"
    )


def queues_whole(lines: Lines) -> Lines:
    """Words that go together leave their queue together, told once."""
    together = re.compile(
        r"^queue_update .*\n((?:turn_start\n)?message_start user\nmessage_end user .*\n)"
        r"(queue_update .*\n)(?=message_start user)",
        re.M,
    )
    return together.sub(r"\2\1", "\n".join(lines)).split("\n")


def deltas_only(lines: Lines) -> Lines:
    """Pi tells where blocks begin and end; ours are known by the index of their deltas."""
    pairs = zip(lines, ["", *lines[:-1]], strict=True)
    return [line for line, before in pairs if line != before or "message_update" not in line]


def progress_by_time(lines: Lines) -> Lines:
    """How often a running command is looked at is a matter of time, here and there."""
    updates = ("tool_execution_update", "bash_execution_update")
    return [line for line in lines if not line.startswith(updates)]


def levels_by_model(lines: Lines) -> Lines:
    """Thinking levels are told when they are chosen; what is chosen is no part of these orders."""
    return [line for line in lines if not line.startswith("thinking_level_changed")]


PIS_WAYS: tuple[Callable[[Lines], Lines], ...] = (
    one_start_a_run,
    queues_before_turns,
    queues_whole,
    deltas_only,
    progress_by_time,
    levels_by_model,
)
"""Where we differ from Pi: each takes its order to ours."""


def modes_told(lines: Lines) -> Lines:
    """A change of a queue's mode is a change of the queues, which Pi does not tell."""
    kept: Lines = []
    for line in lines:
        is_idle = not kept or kept[-1].startswith("agent_settled")
        if not (is_idle and line == "queue_update [[], []]"):
            kept.append(line)
    return kept


def shell_results_told(lines: Lines) -> Lines:
    """The result of a user's command is a message like any other; Pi keeps quiet about it."""
    return [line for line in lines if "bashExecution" not in line]


OUR_WAYS = (modes_told, shell_results_told, deltas_only, progress_by_time)
"""What we tell beyond Pi: each takes it away."""


def pis(order: Order) -> Lines:
    lines = [line for line in order.lines if isinstance(line, str) and not line.startswith(">")]
    # A block without text has no delta in ours.
    return _through(PIS_WAYS, [recorded_line(line) for line in _without_block_ends(lines)])


def _without_block_ends(lines: Lines) -> Iterator[str]:
    for line in lines:
        if not re.match(r"message_update (?:\w+_end|text_start|thinking_start)", line):
            yield line


def _through(ways: tuple[Callable[[Lines], Lines], ...], lines: Lines) -> Lines:
    for way in ways:
        lines = way(lines)
    return lines


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_events_come_in_the_recorded_order(scenario: str, tmp_path: Path) -> None:
    order = read(scenario)
    speaker = order.speaker()
    retry = NO_RETRY if scenario == "retry_off" else _policy(order)
    tools: Any = order.tools
    async with living_host(memory_store(), tmp_path, speaker, tools, retry=retry) as host:
        session = await opened(host, tmp_path)
        if order.compactions is not None:
            session.chosen.compaction = order.compactions.settings
        playing = Playing(order, host, session, speaker)
        with anyio.fail_after(WAIT_S):
            told = await playing.play()
        ours = [line for line in map(line_of, told) if line is not None]
    theirs = pis(order)
    for differently in DIFFERENCES.get(scenario, ()):
        before, theirs = theirs, differently(theirs)
        assert theirs != before, f"{differently.__name__} is no difference any more"
    assert _through(OUR_WAYS, ours) == theirs


def test_every_recorded_order_with_a_compaction_is_played_again() -> None:
    orders = RECORDINGS.glob("*/order.txt")
    made = {path.parent.name for path in orders if "compaction_start" in path.read_text("utf-8")}
    assert len(made) > 10 and made <= set(SCENARIOS)


RETRIES = ("auto_retry_start", "summarization_retry_scheduled")


def _policy(order: Order) -> RetryPolicy:
    for line in order.lines:
        if isinstance(line, str) and line.startswith(RETRIES):
            _, _, most, delay_ms = recorded_line(line).split()
            return RetryPolicy(retries_max=int(most), base_ms=int(delay_ms))
    return RetryPolicy()
