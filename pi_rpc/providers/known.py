"""Known providers and their models: those we ship, changed and joined by the user's own; pure.

Both are written in the form of the user's `models.json`: `{"providers": {id: {…}}}`.

Promises
- A mistake costs what is mistaken, a provider or a model, and is told; everything else holds.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from pi_rpc.core.events import Diagnostic
from pi_rpc.core.images import IMAGE_BASE64_BYTES_MAX, IMAGE_SIDE_MAX, ImageLimits
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.models import Model, Prices, PriceTier
from pi_rpc.core.settings import ThinkingLevel

SAMPLED_APIS = frozenset({"openai-completions", "openai-responses"})
"""Those whose requests carry the sampling fields of a model."""


class Door(msgspec.Struct, frozen=True):
    """How a provider is let in to."""

    provider: str
    variables: tuple[str, ...] = ()
    """Environment variables that hold its key."""
    bearer_variables: tuple[str, ...] = ()
    """Those whose key goes in the authorization header, whatever the API is used to."""
    api_key: str | None = None
    """The user's own, in the syntax of values."""
    as_bearer: bool = False
    needs_key: bool = True
    """False for a server of the user's own that names no key."""


class _Tier(msgspec.Struct, rename="camel"):
    input_tokens_above: int
    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0


class _Cost(msgspec.Struct, rename="camel"):
    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    tiers: list[_Tier] = []


_Side = Annotated[int, msgspec.Meta(ge=1)]


class _Resize(msgspec.Struct, rename="camel"):
    max_width: _Side = IMAGE_SIDE_MAX
    max_height: _Side = IMAGE_SIDE_MAX
    max_bytes: _Side = IMAGE_BASE64_BYTES_MAX
    jpeg_quality: Annotated[int, msgspec.Meta(ge=1, le=100)] = 80


class _ImageInput(msgspec.Struct, rename="camel"):
    resize: _Resize = msgspec.field(default_factory=_Resize)


class _InputLimits(msgspec.Struct, rename="camel"):
    images: _ImageInput = msgspec.field(default_factory=_ImageInput)


class _Model(msgspec.Struct, rename="camel"):
    id: str
    name: str | None = None
    api: str | None = None
    base_url: str | None = None
    reasoning: bool = False
    thinking_level_map: dict[str, str | None] = {}
    input: tuple[str, ...] = ("text",)
    cost: _Cost | None = None
    context_window: int = 128_000
    max_tokens: int = 16_384
    input_limits: _InputLimits = msgspec.field(default_factory=_InputLimits)
    sampling_params: dict[str, Any] = {}
    sampling_params_by_thinking_level: dict[ThinkingLevel, dict[str, Any]] = {}
    headers: dict[str, str] = {}
    compat: dict[str, Any] = {}


class _Provider(msgspec.Struct, rename="camel"):
    name: str | None = None
    base_url: str | None = None
    api: str | None = None
    api_key: str | None = None
    auth_header: bool = False
    headers: dict[str, str] = {}
    compat: dict[str, Any] = {}
    env: list[str] = []
    bearer_env: list[str] = []
    models: list[Any] = []
    model_overrides: dict[str, dict[str, Any]] = {}


class Provider(msgspec.Struct, frozen=True):
    """One provider, its models by id in their order, and how it is let in to."""

    id: str
    door: Door
    models: dict[str, Model]


def providers_from(
    shipped: JsonObject, own: JsonObject, odd: list[Diagnostic]
) -> dict[str, Provider]:
    """Every provider, the shipped ones first; what is odd about the user's goes to `odd`."""
    known: dict[str, Provider] = {}
    theirs, ours = _providers_of(own, odd), _providers_of(shipped, odd)
    for provider_id in [*ours, *(name for name in theirs if name not in ours)]:
        base = _read_provider(provider_id, ours.get(provider_id, {}), odd) or _Provider()
        changed = _read_provider(provider_id, theirs.get(provider_id, {}), odd) or _Provider()
        is_shipped = provider_id in ours
        if not is_shipped and not changed.models:
            continue
        made = _joined(base, changed)
        models = {}
        for entry in _entries(provider_id, base, changed, odd):
            model = _model(provider_id, made, entry, odd)
            if model is not None:
                models[model.id] = model
        known[provider_id] = Provider(provider_id, _door(provider_id, made, is_shipped), models)
    return known


def _providers_of(stored: JsonObject, odd: list[Diagnostic]) -> Mapping[str, Any]:
    providers = stored.get("providers", {})
    if isinstance(providers, dict):
        return providers
    odd.append(
        Diagnostic(
            "error", "bad_models_file", "`providers` has to be an object; the file was left out"
        )
    )
    return {}


def _read_provider(provider_id: str, stored: Any, odd: list[Diagnostic]) -> _Provider | None:
    try:
        return msgspec.convert(stored, _Provider)
    except msgspec.ValidationError as problem:
        told = f"the provider {provider_id} was left out: {problem}"
        odd.append(Diagnostic("error", "bad_provider", told))
        return None


def _joined(base: _Provider, changed: _Provider) -> _Provider:
    """The shipped provider with what the user says of it."""
    return _Provider(
        name=changed.name or base.name,
        base_url=changed.base_url or base.base_url,
        api=changed.api or base.api,
        api_key=changed.api_key,
        auth_header=changed.auth_header,
        headers={**base.headers, **changed.headers},
        compat={**base.compat, **changed.compat},
        env=base.env,
        bearer_env=base.bearer_env,
    )


def _entries(
    provider_id: str, base: _Provider, changed: _Provider, odd: list[Diagnostic]
) -> list[tuple[JsonObject, bool]]:
    """Model entries as objects, and whether the user wrote them; theirs replace by id."""
    entries: dict[str, tuple[JsonObject, bool]] = {}
    for is_own, models in ((False, base.models), (True, changed.models)):
        for number, entry in enumerate(models):
            if isinstance(entry, dict) and isinstance(entry.get("id"), str) and entry["id"]:
                entries[entry["id"]] = (entry, is_own)
            else:
                told = f"model {number + 1} of {provider_id} was left out: it has no id"
                odd.append(Diagnostic("error", "bad_model", told))
    for model_id, patch in changed.model_overrides.items():
        if model_id not in entries:
            told = f"modelOverrides of {provider_id} name {model_id}, which is not known"
            odd.append(Diagnostic("error", "unknown_model", told))
            continue
        entry, is_own = entries[model_id]
        entries[model_id] = (_patched(entry, patch), is_own)
    return list(entries.values())


def _patched(entry: JsonObject, patch: JsonObject) -> JsonObject:
    """An entry with fields replaced; objects are joined field by field, at any depth."""
    made = dict(entry)
    for name, value in patch.items():
        if name == "id":
            continue
        made[name] = _over(made.get(name), value)
    return made


def _over(earlier: Any, value: Any) -> Any:
    if not isinstance(earlier, dict) or not isinstance(value, dict):
        return value
    return earlier | {name: _over(earlier.get(name), part) for name, part in value.items()}


def _model(
    provider_id: str, provider: _Provider, entry: tuple[JsonObject, bool], odd: list[Diagnostic]
) -> Model | None:
    try:
        stored = msgspec.convert(entry[0], _Model)
    except msgspec.ValidationError as problem:
        told = f"the model {provider_id}/{entry[0]['id']} was left out: {problem}"
        odd.append(Diagnostic("error", "bad_model", told))
        return None
    # A model of the user's own says where it is; a shipped one follows its provider.
    base_url, api = stored.base_url or provider.base_url, stored.api or provider.api
    if not base_url or not api:
        missing = "baseUrl" if not base_url else "api"
        told = f"the model {provider_id}/{stored.id} was left out: it needs a {missing}"
        odd.append(Diagnostic("error", "bad_model", told))
        return None
    has_sampling = stored.sampling_params or stored.sampling_params_by_thinking_level
    if has_sampling and api not in SAMPLED_APIS:
        told = f"samplingParams of {provider_id}/{stored.id} are not sent: its API is {api}"
        odd.append(Diagnostic("warning", "sampling_not_sent", told))
    return Model(
        provider=provider_id,
        id=stored.id,
        name=stored.name or stored.id,
        api=api,
        base_url=base_url,
        reasoning=stored.reasoning,
        thinking=stored.thinking_level_map,
        input=stored.input,
        context_window=max(stored.context_window, 0),
        max_output=max(stored.max_tokens, 0),
        prices=None if stored.cost is None else _prices(stored.cost),
        headers={**provider.headers, **stored.headers},
        compat={**provider.compat, **stored.compat},
        image_limits=msgspec.convert(
            msgspec.to_builtins(stored.input_limits.images.resize), ImageLimits
        ),
        sampling=stored.sampling_params,
        sampling_by_level=_by_level(stored.sampling_params_by_thinking_level),
    )


def _by_level(stored: Mapping[ThinkingLevel, JsonObject]) -> dict[str, JsonObject]:
    return dict(stored.items())


def _prices(cost: _Cost) -> Prices:
    tiers = [msgspec.convert(msgspec.to_builtins(tier), PriceTier) for tier in cost.tiers]
    return Prices(cost.input, cost.output, cost.cache_read, cost.cache_write, tuple(tiers))


def _door(provider_id: str, provider: _Provider, is_shipped: bool) -> Door:
    return Door(
        provider=provider_id,
        variables=tuple(provider.env),
        bearer_variables=tuple(provider.bearer_env),
        api_key=provider.api_key,
        as_bearer=provider.auth_header,
        needs_key=is_shipped,
    )
