"""A tiny extension, and broken ones."""

from typing import Any

import anyio

from pi_rpc.core.consultations import ToolAnswer
from pi_rpc.core.entries import AddedMessage
from pi_rpc.core.hooks import (
    BeforeToolAnswer,
    Input,
    InputAnswer,
    PayloadAnswer,
    RequestPayload,
    RunSettledTold,
    ToolBefore,
    TurnEndedTold,
)
from pi_rpc.core.messages import JsonObject, ToolDeclaration, text_block
from pi_rpc.core.scopes import CheckpointAnswer
from pi_rpc.extensions.extending import Context, Extending
from pi_rpc.session.dialogs import Confirmation, Line

seen: list[Any] = []


def extend(extending: Extending) -> None:
    """Take part everywhere."""
    extending.hook("input", shout)
    extending.hook("tool/before", look, tools=("held",))
    declaration = ToolDeclaration("count", "count letters", {"type": "object"})
    extending.tool(declaration, count, effect="none")
    extending.command("greet", greet, description="Greet somebody.")


async def shout(told: Input, context: Context) -> InputAnswer | None:
    if told.text == "break":
        raise ValueError("no such word")
    if told.text == "wrong":
        return "wrong"  # type: ignore[return-value]
    if told.text == "hang":
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("cancelled")
    return InputAnswer("transform", told.text.upper()) if told.text == "hi" else None


async def look(told: ToolBefore, context: Context) -> BeforeToolAnswer | None:
    wanted = await context.confirm(Confirmation(title="Run it?", default=False))
    return None if wanted else BeforeToolAnswer("block", "nobody agreed")


async def count(arguments: JsonObject, context: Context) -> ToolAnswer:
    context.tell([text_block("counting")])
    return ToolAnswer([text_block(str(len(arguments.get("text", ""))))])


async def greet(arguments: str, context: Context) -> None:
    seen.append((arguments, await context.show(Line(title="Name?", default="you"))))


def acting(extending: Extending) -> None:
    """Do things to the session from every place."""
    extending.hook("run/settled", carry_on)
    extending.hook("turn/ended", look_around)
    extending.command("note", note)
    extending.command("start", start)
    extending.command("wrong", wrong)


async def carry_on(told: RunSettledTold, context: Context) -> None:
    if not seen:
        context.acting.prompt("and on")
        seen.append(("settled", context.acting.is_idle))


async def look_around(told: TurnEndedTold, context: Context) -> None:
    acting = context.acting
    assert acting.tokens > 0
    assert not acting.is_idle
    assert acting.messages(1)[0]["role"] == "assistant"
    later = await acting.add_message(AddedMessage("tiny.later", "x"), triggers_run=True)
    assert later is None
    await acting.append_entry("tiny.turn", {"turn": told.turn})


async def note(arguments: str, context: Context) -> None:
    acting = context.acting
    added = await acting.add_message(AddedMessage("tiny.note", arguments))
    assert added is not None
    assert added.entry_id is not None
    await acting.set_label(added.entry_id, "noted")
    await acting.rename("named by tiny")
    await acting.set_thinking_level("high")
    acting.set_active_tools([])
    seen.append(acting.active_tools)


async def start(arguments: str, context: Context) -> None:
    await context.acting.add_message(AddedMessage("tiny.start", arguments), triggers_run=True)
    context.acting.abort()


async def wrong(arguments: str, context: Context) -> None:
    context.acting.navigate("nowhere")
    context.acting.compact()
    raise ValueError("it broke")


def payloads(extending: Extending) -> None:
    """Change what goes over the net."""
    extending.hook("request/payload", add_field)


def spoiling(extending: Extending) -> None:
    """Change in place what it is shown."""
    extending.hook("message/ended", spoil)
    extending.hook("request/context", spoil)


async def spoil(told: Any, context: Context) -> None:
    for one in getattr(told, "messages", [told]):
        one.message.clear()
    seen.append("spoilt")


async def add_field(told: RequestPayload, context: Context) -> PayloadAnswer:
    return PayloadAnswer(told.payload | {"added_by": told.model_id})


def keeping(extending: Extending) -> None:
    """Keep versions of something that is always as it was."""
    extending.scope("drawer", keep)


async def keep(asked: JsonObject, context: Context) -> CheckpointAnswer:
    seen.append((asked["scope"], asked["act"], asked["at"]))
    return CheckpointAnswer("drawer:1")


def broken(extending: Extending) -> None:
    """Register half of it, then break."""
    extending.command("half", greet)
    raise RuntimeError("nothing works")


def ending(extending: Extending) -> None:
    """Want to end the process."""
    raise SystemExit(3)
