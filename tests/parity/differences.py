"""Where we make room otherwise than Pi on purpose: each takes Pi's order to ours, and says why."""

import re
from collections.abc import Callable, Mapping

Lines = list[str]


def _sub(pattern: str, put: str, lines: Lines) -> Lines:
    return re.sub(pattern, put, "\n".join(lines), flags=re.M).split("\n")


def attempts_end_with_their_room(lines: Lines) -> Lines:
    """Pi ends an attempt and looks for room then; ours ends when it is known what follows it."""
    room = r"(?:(?:entry_appended context_edit|compaction_(?:start|end) (?!manual).*)\n)+"
    return _sub(rf"^(agent_end .*\n)({room})", r"\2\1", lines)


def recoveries_stay_in_their_run(lines: Lines) -> Lines:
    """Pi begins an agent anew after a recovery; our run goes on with another turn."""
    return _sub(r"^(compaction_end .*willRetry=True\nagent_end .*\n)agent_start\n", r"\1", lines)


def room_is_made_before_a_request(lines: Lines) -> Lines:
    """Pi looks between turns; ours looks right before each request, when its turn has begun.

    See decision 46.
    """
    pair = r"compaction_start threshold\ncompaction_end threshold .*\n"
    return _sub(rf"^({pair})(turn_start\n)", r"\2\1", lines)


def nothing_to_do_is_not_started(lines: Lines) -> Lines:
    """Pi tells the start of a compaction that has nothing to summarise; ours has its end alone.

    A start says that a summary is about to be asked for.
    """
    refused = r"(?=compaction_end manual stored=False aborted=False)"
    return _sub(rf"^compaction_start manual\n{refused}", "", lines)


def told_once_that_recovery_failed(lines: Lines) -> Lines:
    """Pi tells at the next prompt again that the recovery before it failed."""
    again = r"compaction_end overflow stored=False aborted=False willRetry=False\n"
    return _sub(rf"^(agent_settled .*\n){again}", r"\1", lines)


def nothing_is_omitted_in_vain(lines: Lines) -> Lines:
    """Pi omits the reply, finds nothing to compact and keeps quiet; ours omits nothing and tells.

    See decision 50.
    """
    told = "compaction_end overflow stored=False aborted=False willRetry=False"
    return _sub(r"^(agent_end .*)\nentry_appended context_edit$", rf"{told}\n\1", lines)


def summary_retries_are_told_as_scheduled(lines: Lines) -> Lines:
    """Pi tells once more of a summary's retry when it is made; ours tells when it will be."""
    return [line for line in lines if not line.startswith("summarization_retry_attempt_start")]


def empty_notes_are_refused(lines: Lines) -> Lines:
    """Pi stores a summary without a word, so that the pass after it finds nothing to do.

    Ours fails for want of words, and the pass after it is stored. See decision 47.
    """
    empty = "compaction_end manual stored=True aborted=False willRetry=False"
    failed = "compaction_end manual stored=False aborted=False willRetry=False"
    return _sub(
        rf"^compaction_start manual\n{empty}\ncompaction_start manual\n{failed}$",
        rf"compaction_start manual\n{failed}\ncompaction_start manual\n{empty}",
        lines,
    )


def words_that_waited_start_a_run(lines: Lines) -> Lines:
    """Pi keeps words that came during a compaction for the next prompt, which goes before them.

    Ours start a run themselves when the compaction is over; a prompt right then is told busy.
    """
    prompted = r"agent_start\nturn_start\nmessage_start user\nmessage_end user Q3\n"
    return _sub(rf"^{prompted}(queue_update .*\n)", r"\1agent_start\nturn_start\n", lines)


DIFFERENCES: Mapping[str, tuple[Callable[[Lines], Lines], ...]] = {
    "auto_threshold_compaction": (attempts_end_with_their_room, room_is_made_before_a_request),
    "compact_manual": (nothing_to_do_is_not_started,),
    "compact_errors": (summary_retries_are_told_as_scheduled, empty_notes_are_refused),
    "queue_during_compaction": (words_that_waited_start_a_run,),
    "length_recovery": (attempts_end_with_their_room, recoveries_stay_in_their_run),
    "overflow_recovery": (
        told_once_that_recovery_failed,
        attempts_end_with_their_room,
        recoveries_stay_in_their_run,
    ),
    "overflow_chat": (attempts_end_with_their_room, recoveries_stay_in_their_run),
    "overflow_responses": (attempts_end_with_their_room, recoveries_stay_in_their_run),
    "overflow_in_tool_loop": (attempts_end_with_their_room, recoveries_stay_in_their_run),
    "overflow_nothing_to_compact": (nothing_is_omitted_in_vain,),
}
"""The differences of each scenario; one that changes nothing any more is a mistake."""
