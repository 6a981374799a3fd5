"""Models, thinking levels and tools: what there is, and which holds."""

from typing import Literal

from pi_rpc.core.errors import Invalid
from pi_rpc.core.ports.tools import Effect
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.paging import fitting, page_start
from pi_rpc.frontends.native.shapes import (
    JsonObject,
    ModelRef,
    Params,
    Result,
    SessionParams,
    ThinkingLevel,
)
from pi_rpc.session.choosing import (
    cycle_model,
    set_active_tools,
    set_meant_model,
    set_model,
    set_thinking_level,
)
from pi_rpc.session.consulted_tools import all_tools


class ListedModel(Result, frozen=True, kw_only=True):
    """A model that may be chosen."""

    provider: str
    model_id: str
    name: str
    context_window: int | None = None
    """Tokens."""
    max_output: int | None = None
    reasoning: bool
    usable: bool
    why_not: str | None = None
    input: list[str]
    """What it takes: text, image."""
    price_input: float | None = None
    """US dollars for a million tokens; absent when unknown."""
    price_output: float | None = None


class ModelListParams(Params, frozen=True, kw_only=True):
    """Which part of the list."""

    cursor: str | None = None


class ModelListResult(Result, frozen=True, kw_only=True):
    """All known models, usable ones first; a page of them where a client reads no more at once."""

    models: list[ListedModel]
    next_cursor: str | None = None


def list_(connection: Connection, params: ModelListParams) -> ModelListResult:
    """All known models, and why some cannot be used."""
    known = connection.host.around.models.listing()
    start = page_start(params.cursor)
    page = fitting(
        connection,
        (
            ListedModel(
                provider=one.provider,
                model_id=one.model_id,
                name=one.name,
                context_window=one.context_window or None,
                max_output=one.max_output or None,
                reasoning=one.reasoning,
                usable=one.usable,
                why_not=one.why_not,
                input=list(one.input),
                price_input=one.price_input,
                price_output=one.price_output,
            )
            for one in known[start:]
        ),
    )
    end = start + len(page)
    return ModelListResult(models=page, next_cursor=str(end) if end < len(known) else None)


class ModelSetParams(SessionParams, frozen=True, kw_only=True):
    """The model to answer from the next request on: provider and id, or a pattern."""

    provider: str | None = None
    model_id: str | None = None
    pattern: str | None = None
    """A part of an id or name, perhaps with a provider before it and `:level` behind it."""


class ModelSetResult(Result, frozen=True, kw_only=True):
    """The model as it is now."""

    model: ModelRef
    thinking_level: str


async def set_(connection: Connection, params: ModelSetParams) -> ModelSetResult:
    """Choose the model of a session, during a run too."""
    session = connection.host.session(params.session_id)
    named = params.provider, params.model_id
    if params.pattern is not None and named == (None, None):
        await set_meant_model(session, params.pattern)
    elif params.pattern is None and params.provider is not None and params.model_id is not None:
        await set_model(session, params.provider, params.model_id)
    else:
        raise Invalid("bad_model_choice", "name a provider and a modelId, or a pattern")
    assert session.chosen.model is not None, "a model was set"
    return ModelSetResult(
        model=ModelRef(*session.chosen.model), thinking_level=session.chosen.thinking_level
    )


class ModelCycleParams(SessionParams, frozen=True, kw_only=True):
    """Which way."""

    direction: Literal["next", "previous"] = "next"


class ModelCycleResult(Result, frozen=True, kw_only=True):
    """The model as it is now; the same as before where there is no other."""

    model: ModelRef | None
    thinking_level: str
    is_scoped: bool
    """Whether the setting `enabledModels` said which models to go through."""


async def cycle(connection: Connection, params: ModelCycleParams) -> ModelCycleResult:
    """Choose the next model that can be used."""
    session = connection.host.session(params.session_id)
    is_scoped = await cycle_model(session, 1 if params.direction == "next" else -1)
    return ModelCycleResult(
        model=None if session.chosen.model is None else ModelRef(*session.chosen.model),
        thinking_level=session.chosen.thinking_level,
        is_scoped=is_scoped,
    )


class ThinkingSetParams(SessionParams, frozen=True, kw_only=True):
    """The thinking level from the next request on."""

    level: ThinkingLevel


class ThinkingSetResult(Result, frozen=True, kw_only=True):
    """The level as it is now."""

    thinking_level: str


async def set_thinking(connection: Connection, params: ThinkingSetParams) -> ThinkingSetResult:
    """Choose how hard the model thinks."""
    session = connection.host.session(params.session_id)
    await set_thinking_level(session, params.level)
    return ThinkingSetResult(thinking_level=session.chosen.thinking_level)


class ListedTool(Result, frozen=True, kw_only=True):
    """A tool the model may have."""

    name: str
    description: str
    parameters: JsonObject
    effect: Effect
    active: bool


class ToolListResult(Result, frozen=True, kw_only=True):
    """The tools of a session."""

    tools: list[ListedTool]


def tools(connection: Connection, params: SessionParams) -> ToolListResult:
    """The tools of a session, and which of them the model is told of."""
    session = connection.host.session(params.session_id)
    return ToolListResult(
        tools=[
            ListedTool(
                name=name,
                description=tool.declaration.description,
                parameters=tool.declaration.parameters,
                effect=tool.effect,
                active=name in session.chosen.active_tools,
            )
            for name, tool in all_tools(session).items()
        ]
    )


class ToolSetActiveParams(SessionParams, frozen=True, kw_only=True):
    """The tools the model is told of, in this order."""

    names: list[str]


def set_tools(connection: Connection, params: ToolSetActiveParams) -> ToolListResult:
    """Choose the tools of a session."""
    set_active_tools(connection.host.session(params.session_id), params.names)
    return tools(connection, params)


METHODS = (
    Method("model/list", "All known models.", ModelListParams, ModelListResult, list_),
    Method("model/set", "Choose the model.", ModelSetParams, ModelSetResult, set_),
    Method("model/cycle", "Choose the next model.", ModelCycleParams, ModelCycleResult, cycle),
    Method(
        "thinking/set",
        "Choose the thinking level.",
        ThinkingSetParams,
        ThinkingSetResult,
        set_thinking,
    ),
    Method("tool/list", "The tools of a session.", SessionParams, ToolListResult, tools),
    Method("tool/setActive", "Choose the tools.", ToolSetActiveParams, ToolListResult, set_tools),
)
