"""Models, thinking levels and tools: what there is, and which holds."""

from pi_rpc.core.ports import Effect
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import (
    JsonObject,
    ModelRef,
    NoParams,
    Result,
    SessionParams,
    ThinkingLevel,
)
from pi_rpc.session.choosing import set_active_tools, set_model, set_thinking_level
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


class ModelListResult(Result, frozen=True, kw_only=True):
    """All known models, usable ones first."""

    models: list[ListedModel]


def list_(connection: Connection, params: NoParams) -> ModelListResult:
    """All known models, and why some cannot be used."""
    return ModelListResult(
        models=[
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
            for one in connection.host.around.models.listing()
        ]
    )


class ModelSetParams(SessionParams, frozen=True, kw_only=True):
    """The model to answer from the next request on."""

    provider: str
    model_id: str


class ModelSetResult(Result, frozen=True, kw_only=True):
    """The model as it is now."""

    model: ModelRef


async def set_(connection: Connection, params: ModelSetParams) -> ModelSetResult:
    """Choose the model of a session, during a run too."""
    session = connection.host.session(params.session_id)
    await set_model(session, params.provider, params.model_id)
    return ModelSetResult(model=ModelRef(params.provider, params.model_id))


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
    return ThinkingSetResult(thinking_level=session.thinking_level)


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
                active=name in session.active_tools,
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
    Method("model/list", "All known models.", NoParams, ModelListResult, list_),
    Method("model/set", "Choose the model.", ModelSetParams, ModelSetResult, set_),
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
