"""What a hook may change of a message or of one request, and what comes of it.

Promises
- Role, calls and everything beside content stay as they were.
- A signature never stands over words it was not made for.
- A changed request has no result without its call; a change that would leave one is refused whole.
"""

from collections.abc import Sequence

import msgspec

from pi_rpc.core.context_messages import BLOCK_ROLES, EDITABLE_ROLES, fitted
from pi_rpc.core.errors import Invalid
from pi_rpc.core.hooks import ContextAnswer, ContextMessage, MessageAnswer
from pi_rpc.core.images import problem_of_content
from pi_rpc.core.messages import Block, JsonObject, blocks_of, text_block
from pi_rpc.core.pairing import pairing_of, with_partners

SIGNATURES = frozenset({"thinkingSignature", "textSignature", "thoughtSignature"})
"""Fields of blocks by which a provider knows its own words again."""


class Said(msgspec.Struct, frozen=True):
    """A message of a request; without an entry when a hook added it."""

    entry_id: str | None
    message: JsonObject


def changed_message(message: JsonObject, answer: MessageAnswer) -> JsonObject:
    """A message as a hook leaves it. Raises Invalid `bad_change`."""
    changed = message
    if answer.content is not None:
        changed = message | {"content": _content(message, answer.content)}
    if answer.annotations is not None:
        held = message.get("annotations")
        kept = held if isinstance(held, dict) else {}
        changed = changed | {"annotations": kept | answer.annotations}
    return changed


def _content(message: JsonObject, given: str | list[Block]) -> str | list[Block]:
    role = str(message.get("role"))
    if role not in EDITABLE_ROLES:
        raise Invalid("bad_change", f"a message of role {role} stays as it is")
    if role != "assistant":
        _check(given)
        return fitted(role, given)
    blocks = [text_block(given)] if isinstance(given, str) else given
    calls = [block for block in blocks_of(message) if block.get("type") == "toolCall"]
    named = [block for block in blocks if block.get("type") == "toolCall"]
    if named and [_call(block) for block in named] != [_call(block) for block in calls]:
        raise Invalid("bad_change", "the calls of a reply stay as they are")
    _check([block for block in blocks if block.get("type") not in ("toolCall", "thinking")])
    return [_unsigned(block) for block in (blocks if named else [*blocks, *calls])]


def _check(content: str | list[Block]) -> None:
    problem = problem_of_content(content)
    if problem is not None:
        raise Invalid("bad_change", problem)


def _call(block: Block) -> tuple[object, object, object]:
    return block.get("id"), block.get("name"), block.get("arguments")


def _unsigned(block: Block) -> Block:
    return {name: held for name, held in block.items() if name not in SIGNATURES}


def shown_context(said: Sequence[Said], last: int) -> tuple[int, list[ContextMessage]]:
    """How many messages a hook may change, and the newest of them."""
    words = [one for one in said if one.message.get("role") != "system"]
    shown = words[-last:] if last else []
    return len(words), [ContextMessage(one.entry_id or "", one.message) for one in shown]


def changed_context(said: Sequence[Said], answer: ContextAnswer, at_ms: int) -> list[Said]:
    """The messages of a request as a hook leaves them; system messages stay.

    Raises Invalid `bad_change` when an entry is not in the request, when what is said is neither
    text nor images, or when a result would be left without its call.
    """
    changes = {change.entry_id: change.content for change in answer.change}
    unknown = set(changes) - {
        one.entry_id for one in said if one.message.get("role") != "system" and one.entry_id
    }
    if unknown:
        raise Invalid("bad_change", f"not in the request: {min(unknown)[:64]!r}")
    left_out = _left_out(said, {name for name, held in changes.items() if held is None})
    made: list[Said] = []
    for place, one in enumerate(said):
        if place in left_out:
            continue
        is_system = one.message.get("role") == "system"
        content = None if is_system else changes.get(one.entry_id or "")
        made.append(one if content is None else _reworded(one, content))
    for content in answer.append:
        _check(content)
        blocks = [text_block(content)] if isinstance(content, str) else content
        made.append(Said(None, {"role": "user", "content": blocks, "timestamp": at_ms}))
    before = len(pairing_of(one.message for one in said).orphans)
    if len(pairing_of(one.message for one in made).orphans) > before:
        raise Invalid("bad_change", "a result would be left without its call")
    return made


def _reworded(one: Said, content: str | list[Block]) -> Said:
    message = one.message
    role = str(message.get("role"))
    given = fitted(role, content) if role in BLOCK_ROLES else content
    return Said(one.entry_id, changed_message(message, MessageAnswer(content=given)))


def _left_out(said: Sequence[Said], omitted: set[str]) -> set[int]:
    """The places to leave out: those named, and with a call its results, with a result its call."""
    if not omitted:
        return set()
    named = (
        place
        for place, one in enumerate(said)
        if one.entry_id in omitted and one.message.get("role") != "system"
    )
    return with_partners(named, pairing_of(one.message for one in said).asked_at.items())
