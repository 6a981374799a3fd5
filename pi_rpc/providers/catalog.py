"""The models that may be chosen, and who serves each."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from pi_rpc.core.errors import Missing
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.ports.providers import ModelListing, Provider
from pi_rpc.providers.script import Script, script_from_object
from pi_rpc.providers.scripted import ScriptedProvider

if TYPE_CHECKING:
    from pi_rpc.providers.remote_catalog import RemoteCatalog

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


def offline_listing(script: Script | None) -> ModelListing:
    """The offline model, with the limits a script gives it."""
    window, output = (None, None) if script is None else (script.context_window, script.max_output)
    return msgspec.structs.replace(
        OFFLINE,
        context_window=OFFLINE.context_window if window is None else window,
        max_output=OFFLINE.max_output if output is None else output,
    )


class Catalog:
    """Every known model: the offline one, and those that are asked over the net.

    `remote` is called when somebody asks for one of those or for all; what it gives is kept.
    `named` is the model the user's settings begin with; a script is a stronger wish.
    """

    def __init__(
        self,
        script: Script | None = None,
        remote: "Callable[[], RemoteCatalog] | None" = None,
        named: tuple[str, str] | None = None,
    ) -> None:
        self._offline = ScriptedProvider(script)
        self._offline_listing = offline_listing(script)
        self._open_remote = remote
        self._opened_remote: RemoteCatalog | None = None
        self._named = named if script is None else None

    def listing(self) -> list[ModelListing]:
        """Every known model, usable ones first."""
        remote = self._remote()
        return [self._offline_listing, *([] if remote is None else remote.listing())]

    def listed(self, provider: str, model_id: str) -> ModelListing | None:
        """One of them, or None; the net's are not loaded for the offline one."""
        if (provider, model_id) == (OFFLINE.provider, OFFLINE.model_id):
            return self._offline_listing
        remote = self._remote()
        return None if remote is None else remote.listed(provider, model_id)

    def provider_of(self, provider: str, model_id: str) -> Provider:
        """The provider that serves a model.

        Raises Missing `model_not_found`, Refused `no_key` and `api_not_supported`.
        """
        if (provider, model_id) == (OFFLINE.provider, OFFLINE.model_id):
            return self._offline
        remote = self._remote()
        if remote is None or provider == OFFLINE.provider:
            told = f"There is no model {provider}/{model_id}."
            raise Missing("model_not_found", told, provider=provider, modelId=model_id)
        return remote.provider_of(provider, model_id)

    def check_script(self, script: JsonObject) -> None:
        """Refuse what is no script for the offline model. Raises Invalid `bad_script`."""
        script_from_object(script)

    def default(self) -> tuple[str, str] | None:
        """The model the settings name, if there is one, else the offline one.

        One that is named and has no key is still the one: a prompt then says what is missing,
        where another model would answer in its stead without a word.
        """
        if self._is_named_known():
            return self._named
        return OFFLINE.provider, OFFLINE.model_id

    def diagnostics(self) -> list[Diagnostic]:
        """What is odd about the user's models, keys and choice."""
        remote = self._remote()
        found = [] if remote is None else remote.diagnostics()
        if self._named is not None and not self._is_named_known():
            text = f"the settings name the model {'/'.join(self._named)}, which is not known"
            found.append(Diagnostic("error", "default_model_unknown", text))
        return found

    async def close(self) -> None:
        """Let go of every connection."""
        if self._opened_remote is not None:
            await self._opened_remote.close()

    def _is_named_known(self) -> bool:
        if self._named is None or self._named == (OFFLINE.provider, OFFLINE.model_id):
            return self._named is not None
        remote = self._remote()
        return remote is not None and remote.knows(*self._named)

    def _remote(self) -> "RemoteCatalog | None":
        if self._opened_remote is None and self._open_remote is not None:
            self._opened_remote = self._open_remote()
        return self._opened_remote
