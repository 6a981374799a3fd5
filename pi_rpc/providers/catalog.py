"""The models that may be chosen, and who serves each."""

from pi_rpc.core.errors import Missing
from pi_rpc.core.ports import ModelListing, Provider
from pi_rpc.providers.script import Script
from pi_rpc.providers.scripted import ScriptedProvider

OFFLINE = ModelListing(
    provider="offline",
    model_id="scripted",
    name="Offline (scripted)",
    context_window=200_000,
    max_output=32_000,
    reasoning=True,
    usable=True,
)
"""The model that is there without a key; its window is that of models in common use."""


class Catalog:
    """Every known model."""

    def __init__(self, script: Script | None = None) -> None:
        self._offline = ScriptedProvider(script)

    def listing(self) -> list[ModelListing]:
        """Every known model, usable ones first."""
        return [OFFLINE]

    def provider_of(self, provider: str, model_id: str) -> Provider:
        """The provider that serves a model. Raises Missing `model_not_found`."""
        if (provider, model_id) != (OFFLINE.provider, OFFLINE.model_id):
            told = f"There is no model {provider}/{model_id}."
            raise Missing("model_not_found", told, provider=provider, modelId=model_id)
        return self._offline

    def default(self) -> tuple[str, str] | None:
        """The offline model: no other needs nothing."""
        return OFFLINE.provider, OFFLINE.model_id
