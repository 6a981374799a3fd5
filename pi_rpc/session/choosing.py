"""Which model answers, how hard it thinks, which tools it has; changed at any time."""

from pi_rpc.core.entries import model_change, thinking_level_change
from pi_rpc.core.errors import Missing
from pi_rpc.core.events import ModelChanged, ThinkingChanged
from pi_rpc.core.model_patterns import MeantModel, meant_model, neighbour, scoped_models
from pi_rpc.session.consulted_tools import all_tools
from pi_rpc.session.session import Session


async def set_model(session: Session, provider: str, model_id: str) -> None:
    """Another model from the next request on, during a run too.

    Raises Missing `model_not_found`, Refused `no_key`; then the model is as before.
    """
    session.refuse_if_moving()
    session.around.models.provider_of(provider, model_id)
    await session.record(model_change(provider, model_id), durable=True)
    session.chosen.model = (provider, model_id)
    session.tell(ModelChanged(provider, model_id))


async def set_meant_model(session: Session, pattern: str) -> None:
    """The model a few words mean, with the thinking level they name.

    Raises what `meant_model` and `set_model` raise; then both are as before.
    """
    meant = meant_model(pattern, session.around.models.listing())
    await _take(session, meant)


async def cycle_model(session: Session, step: int) -> bool:
    """The next model, or with a step of -1 the one before; whether the choice is a user's own.

    Of those that the setting `enabledModels` means, or of all that can be used. Where there is no
    other nothing changes.
    """
    models = session.around.models.listing()
    now = session.chosen.effective
    enabled = None if now is None else now.value("enabledModels")
    scope = scoped_models(enabled or ["*"], models)
    meant = neighbour(scope, session.chosen.model, step)
    if meant is not None:
        await _take(session, meant)
    return bool(enabled)


async def _take(session: Session, meant: MeantModel) -> None:
    await set_model(session, meant.model.provider, meant.model.model_id)
    if meant.level is not None:
        await set_thinking_level(session, meant.level)


async def set_thinking_level(session: Session, level: str) -> None:
    """Another thinking level from the next request on; the same one again changes nothing."""
    session.refuse_if_moving()
    if level == session.chosen.thinking_level:
        return
    await session.record(thinking_level_change(level), durable=True)
    session.chosen.thinking_level = level
    session.tell(ThinkingChanged(level))


def set_active_tools(session: Session, names: list[str]) -> None:
    """The tools the model is told of from the next run on. Raises Missing `tool_not_found`."""
    session.refuse_if_moving()
    known = all_tools(session)
    for name in names:
        if name not in known:
            raise Missing("tool_not_found", f"there is no tool {name!r}", name=name)
    session.chosen.active_tools = list(dict.fromkeys(names))
