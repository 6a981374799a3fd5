"""Which model answers, how hard it thinks, which tools it has; changed at any time."""

from pi_rpc.core.entries import model_change, thinking_level_change
from pi_rpc.core.errors import Missing
from pi_rpc.core.events import ModelChanged, ThinkingChanged
from pi_rpc.session.consulted_tools import all_tools
from pi_rpc.session.session import Session


async def set_model(session: Session, provider: str, model_id: str) -> None:
    """Another model from the next request on, during a run too.

    Raises Missing `model_not_found`, Refused `no_key`; then the model is as before.
    """
    session.refuse_if_moving()
    session.around.models.provider_of(provider, model_id)
    await session.record(model_change(provider, model_id), durable=True)
    session.model = (provider, model_id)
    session.tell(ModelChanged(provider, model_id))


async def set_thinking_level(session: Session, level: str) -> None:
    """Another thinking level from the next request on; the same one again changes nothing."""
    session.refuse_if_moving()
    if level == session.thinking_level:
        return
    await session.record(thinking_level_change(level), durable=True)
    session.thinking_level = level
    session.tell(ThinkingChanged(level))


def set_active_tools(session: Session, names: list[str]) -> None:
    """The tools the model is told of from the next run on. Raises Missing `tool_not_found`."""
    session.refuse_if_moving()
    known = all_tools(session)
    for name in names:
        if name not in known:
            raise Missing("tool_not_found", f"there is no tool {name!r}", name=name)
    session.active_tools = list(dict.fromkeys(names))
