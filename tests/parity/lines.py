"""One line for each thing told: ours in the words of the recordings, theirs without what differs.

What differs from run to run is left out on both sides.
"""

import json
import re

from pi_rpc.core import events
from pi_rpc.core.events import Event
from pi_rpc.core.messages import text_of
from pi_rpc.frontends.native.notifications import NOTIFICATION_OF
from tests.parity.compactions import End

TOLD_CHARS = 40
"""How many characters of a message the recordings tell."""


def line_of(event: Event) -> str | None:
    """What we tell, in the words of the recordings; None for what they have no word for."""
    match event:
        case events.RunStarted():
            return "agent_start"
        case events.AttemptEnded(next=following):
            return f"agent_end willRetry={following == 'retry'}" if following != "queued" else None
        case events.RunSettled(outcome=outcome):
            return f"agent_settled aborted={outcome == 'aborted'}"
        case events.TurnStarted():
            return "turn_start"
        case events.TurnEnded(tool_result_entry_ids=results):
            return f"turn_end toolResults={len(results)}"
        case events.MessageStarted(role=role):
            return f"message_start {role}"
        case events.MessageDelta(block=block):
            return f"message_update [{block}]"
        case events.MessageEnded(message=message):
            more = message.get("stopReason") or (
                text_of(message)[:TOLD_CHARS] if message["role"] == "user" else ""
            )
            return f"message_end {message['role']} {more}".rstrip()
        case events.ToolStarted(name=name):
            return f"tool_execution_start {name}"
        case events.ToolEnded(name=name, is_error=is_error):
            return f"tool_execution_end {name} isError={is_error}"
        case events.QueueChanged(steering=steering, follow_up=follow_up):
            waiting = [[item["text"] for item in queue] for queue in (steering, follow_up)]
            return f"queue_update {waiting}"
        case events.RetryScheduled(attempt=attempt, attempts_max=most, delay_ms=delay_ms, of=of):
            start = "auto_retry_start" if of == "reply" else "summarization_retry_scheduled"
            return f"{start} {attempt} {most} {delay_ms}"
        case events.RetryEnded(of="summary"):
            return "summarization_retry_finished"
        case events.RetryEnded(attempt=attempt, success=success):
            return f"auto_retry_end {success} {attempt}"
        case events.CompactionStarted(reason=reason):
            return f"compaction_start {reason}"
        case events.CompactionEnded(reason=reason, aborted=aborted, will_retry=will_retry):
            return End(event.entry_id is not None, aborted, will_retry).line(reason)
        case events.EntryAppended(type="context_edit"):
            return "entry_appended context_edit"
        case events.ShellPrinted():
            return "bash_execution_update"
    assert type(event) in NOTIFICATION_OF
    return None


def recorded_line(line: str) -> str:
    """A recorded event line, without what differs from run to run."""
    name, _, rest = line.partition(" ")
    match name:
        case "agent_end":
            return f"agent_end {rest.split()[-1]}"
        case "agent_settled":
            return f"agent_settled aborted={json.loads(rest)['aborted']}"
        case "turn_end":
            return f"turn_end {rest.split()[-1]}"
        case "message_start":
            return f"message_start {rest.split()[0]}"
        case "message_update":
            return f"message_update {rest[rest.index('[') :].split()[0]}"
        case "message_end":
            return _recorded_end(rest)
        case "queue_update":
            waiting = json.loads(rest)
            return f"queue_update {[waiting['steering'], waiting['followUp']]}"
        case "compaction_start":
            return f"compaction_start {json.loads(rest)['reason']}"
        case "auto_retry_start" | "summarization_retry_scheduled":
            told = json.loads(rest)
            return f"{name} {told['attempt']} {told['maxAttempts']} {told['delayMs']}"
        case "auto_retry_end":
            told = json.loads(rest)
            return f"auto_retry_end {told['success']} {told['attempt']}"
        case "entry_appended":
            return f"entry_appended {json.loads(rest)['entry']['type']}"
        case "bash_execution_update":
            return name
    return line


def _recorded_end(rest: str) -> str:
    role, _, more = rest.partition(" ")
    if role == "user":
        told = json.loads(more).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return f"message_end user {told}".rstrip()
    stop = re.search(r"stop=(\w+)", more)
    return f"message_end {role} {stop[1]}" if stop else f"message_end {role}"
