"""The models that may be chosen, and who serves each.

Nothing is read before somebody asks: the shipped list is taken in with the first question that the
offline model does not answer, the user's files whenever they have changed.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from pi_rpc.core.errors import Missing, Refused
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.models import Model, clamped, levels_of
from pi_rpc.core.ports.providers import ModelListing
from pi_rpc.core.ports.providers import Provider as ProviderPort
from pi_rpc.providers.anthropic import ANTHROPIC
from pi_rpc.providers.asking import Api, Retention
from pi_rpc.providers.credentials import Credentials, no_key
from pi_rpc.providers.files import WatchedFile
from pi_rpc.providers.google import GOOGLE
from pi_rpc.providers.http import Http, Patience
from pi_rpc.providers.known import Provider, providers_from
from pi_rpc.providers.openai_chat import OPENAI_CHAT
from pi_rpc.providers.openai_responses import OPENAI_RESPONSES
from pi_rpc.providers.remote import Access, RemoteProvider

APIS: dict[str, Api] = {api.name: api for api in (ANTHROPIC, OPENAI_RESPONSES, OPENAI_CHAT, GOOGLE)}

SHIPPED = Path(__file__).with_name("catalogue.json")
"""Providers and models in the form of the user's file; written by `scripts/make_catalogue.py`."""


THINKING_DEFAULT = "medium"
"""How hard a model thinks, if it can, where nothing says otherwise."""


class RemoteCatalog:
    """Every model that is asked over the net."""

    def __init__(
        self,
        agent_dir: Path,
        environment: Mapping[str, str],
        keys: Mapping[str, str] | None = None,
        retention: Retention = "short",
        patience: Patience | None = None,
    ) -> None:
        self._credentials = Credentials(agent_dir / "auth.json", environment, keys)
        self._file = WatchedFile(agent_dir / "models.json")
        self._retention: Retention = retention
        self._http = Http(patience)
        self._shipped: JsonObject | None = None
        self._read_at = -1
        self._providers: dict[str, Provider] = {}
        self._diagnostics: list[Diagnostic] = []

    def listing(self) -> list[ModelListing]:
        """Every known model, usable ones first."""
        listed = []
        for provider in self._known().values():
            why_not = self._credentials.why_not(provider.door)
            listed += [_listing(model, why_not) for model in provider.models.values()]
        return sorted(listed, key=lambda one: not one.usable)

    def listed(self, provider: str, model_id: str) -> ModelListing | None:
        """One of them, or None."""
        known = self._known().get(provider)
        model = None if known is None else known.models.get(model_id)
        if known is None or model is None:
            return None
        return _listing(model, self._credentials.why_not(known.door))

    def provider_of(self, provider: str, model_id: str) -> ProviderPort:
        """Who serves a model.

        Raises Missing `model_not_found`, Refused `no_key` and `api_not_supported`.
        """
        known = self._known().get(provider)
        model = None if known is None else known.models.get(model_id)
        if known is None or model is None:
            told = f"There is no model {provider}/{model_id}."
            raise Missing("model_not_found", told, provider=provider, modelId=model_id)
        api = APIS.get(model.api)
        if api is None:
            raise Refused("api_not_supported", _unknown_api(model), api=model.api)
        why_not = self._credentials.why_not(known.door)
        if why_not is not None:
            raise no_key(provider, why_not)

        async def access() -> Access:
            return await self._credentials.access(known.door, model)

        return RemoteProvider(
            model,
            api,
            access,
            self._http,
            retention=self._retention,
            key_refused=self._credentials.forget,
        )

    def knows(self, provider: str, model_id: str) -> bool:
        """Whether there is such a model, usable or not."""
        known = self._known().get(provider)
        return known is not None and model_id in known.models

    def diagnostics(self) -> list[Diagnostic]:
        """What is odd about the user's files."""
        self._known()
        return [*self._file.diagnostics, *self._diagnostics, *self._credentials.diagnostics()]

    async def close(self) -> None:
        """Let go of every connection."""
        await self._http.close()

    def _known(self) -> dict[str, Provider]:
        own = self._file.value()
        if self._file.revision != self._read_at:
            self._read_at = self._file.revision
            if self._shipped is None:
                self._shipped = shipped()
            odd: list[Diagnostic] = []
            self._providers = providers_from(self._shipped, own, odd)
            path = str(self._file.path)
            self._diagnostics = [msgspec.structs.replace(one, path=path) for one in odd]
        return self._providers


def shipped() -> JsonObject:
    """The list of models that comes with this package."""
    made: JsonObject = msgspec.json.decode(SHIPPED.read_bytes())
    return made


def _listing(model: Model, why_not: str | None) -> ModelListing:
    if model.api not in APIS:
        why_not = _unknown_api(model)
    return ModelListing(
        provider=model.provider,
        model_id=model.id,
        name=model.name,
        context_window=model.context_window,
        max_output=model.max_output,
        reasoning=model.reasoning,
        usable=why_not is None,
        why_not=why_not,
        input=model.input,
        price_input=None if model.prices is None else model.prices.input,
        price_output=None if model.prices is None else model.prices.output,
        image_limits=model.image_limits,
        thinking_default=clamped(THINKING_DEFAULT, levels_of(model.reasoning, model.thinking)),
    )


def _unknown_api(model: Model) -> str:
    return f"its API {model.api} is not one of {', '.join(APIS)}"
