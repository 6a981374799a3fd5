"""A tiny extension, and broken ones."""

from typing import Any

import anyio

from pi_rpc.core.consultations import BeforeToolAnswer, InputAnswer, ToolAnswer
from pi_rpc.core.messages import JsonObject, ToolDeclaration, text_block
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


async def shout(payload: JsonObject, context: Context) -> InputAnswer | None:
    if payload["text"] == "break":
        raise ValueError("no such word")
    if payload["text"] == "wrong":
        return "wrong"  # type: ignore[return-value]
    if payload["text"] == "hang":
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("cancelled")
    return InputAnswer("transform", payload["text"].upper()) if payload["text"] == "hi" else None


async def look(payload: JsonObject, context: Context) -> BeforeToolAnswer | None:
    wanted = await context.confirm(Confirmation(title="Run it?", default=False))
    return None if wanted else BeforeToolAnswer("block", "nobody agreed")


async def count(arguments: JsonObject, context: Context) -> ToolAnswer:
    context.tell([text_block("counting")])
    return ToolAnswer([text_block(str(len(arguments.get("text", ""))))])


async def greet(arguments: str, context: Context) -> None:
    seen.append((arguments, await context.show(Line(title="Name?", default="you"))))


def broken(extending: Extending) -> None:
    """Register half of it, then break."""
    extending.command("half", greet)
    raise RuntimeError("nothing works")


def ending(extending: Extending) -> None:
    """Want to end the process."""
    raise SystemExit(3)
