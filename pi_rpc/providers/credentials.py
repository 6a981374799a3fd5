"""Keys: where they are found, and what of them may be told.

Of several places the first that has something holds: what was given for this process, the user's
`auth.json`, the `apiKey` of the provider in `models.json`, the provider's environment variables.

Promises
- A key is a Secret from the moment it is read; no diagnostic quotes one.
- `why_not` asks nobody and runs nothing: a command counts as a key until it has failed.
"""

import os
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pi_rpc.core.errors import Refused
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.models import Model
from pi_rpc.providers.commands import Commands
from pi_rpc.providers.files import WatchedFile
from pi_rpc.providers.known import Door
from pi_rpc.providers.remote import Access
from pi_rpc.providers.secret import Secret
from pi_rpc.providers.values import command_in, missing_in, text_of


class _Found(msgspec.Struct, frozen=True):
    """A key that is configured, not yet resolved."""

    value: str
    environment: Mapping[str, str]
    is_literal: bool = False
    """Whether the text is the key itself: variables hold keys and not values."""
    as_bearer: bool = False


class Credentials:
    """The keys of one user."""

    def __init__(
        self,
        auth_file: Path,
        environment: Mapping[str, str],
        given: Mapping[str, str] | None = None,
        commands: Commands | None = None,
    ) -> None:
        self._environment = environment
        self._given = {provider: Secret(key) for provider, key in (given or {}).items()}
        self._commands = commands or Commands()
        self._file = WatchedFile(auth_file, _readable_by_others)

    def diagnostics(self) -> list[Diagnostic]:
        """What is odd about the user's `auth.json`."""
        self._stored()
        return list(self._file.diagnostics)

    def why_not(self, door: Door) -> str | None:
        """Why a provider cannot be used; None when it can."""
        if not door.needs_key and door.api_key is None:
            return None
        if door.provider in self._given or self._found(door) is not None:
            return None
        missing = [] if door.api_key is None else missing_in(door.api_key, self._environment)
        if missing:
            return f"{' and '.join(missing)} is not set, which the apiKey in models.json names"
        named = " or ".join((*door.variables, *door.bearer_variables))
        places = f"{named} is not set and" if named else "models.json names no apiKey and"
        return f"no key: {places} {self._why_not_stored(door.provider)}"

    def _why_not_stored(self, provider: str) -> str:
        """What is wrong with what `auth.json` says of a provider, without saying what it says."""
        if provider not in self._stored():
            return "auth.json has none"
        stored = self._stored()[provider]
        kind = stored.get("type") if isinstance(stored, dict) else None
        if kind == "oauth":
            until = _time_told(stored.get("expires"))
            return f"auth.json holds a login for it{until}, and only API keys can be used"
        if kind != "api_key":
            return "its entry in auth.json is of no known type (api_key)"
        key, environment = stored.get("key"), self._environment_of(stored)
        if not isinstance(key, str) or not key:
            return "its entry in auth.json has no key"
        missing = " and ".join(missing_in(key, environment))
        return f"{missing} is not set, which its entry in auth.json names"

    async def access(self, door: Door, model: Model) -> Access:
        """What opens the door, with the user's own headers. Raises Refused `no_key`."""
        as_bearer = door.as_bearer
        key = self._given.get(door.provider)
        if key is None:
            why_not = self.why_not(door)
            if why_not is not None:
                raise no_key(door.provider, why_not)
            found = self._found(door)
            if found is not None:
                as_bearer = as_bearer or found.as_bearer
                key = await self._resolved(found, door.provider)
        headers = {}
        for name, value in model.headers.items():
            secret = await self._resolved(_Found(value, self._environment), door.provider, name)
            headers[name] = secret
        return Access(key, headers, as_bearer)

    def forget(self) -> None:
        """Ask every command anew: a key it gave was refused."""
        self._commands.forget()

    def _found(self, door: Door) -> _Found | None:
        stored = self._stored().get(door.provider)
        if isinstance(stored, dict) and stored.get("type") == "api_key":
            found = self._stored_key(stored)
            if found is not None:
                return found
        if door.api_key and not missing_in(door.api_key, self._environment):
            return _Found(door.api_key, self._environment)
        for name in (*door.variables, *door.bearer_variables):
            value = self._environment.get(name)
            if value:
                is_bearer = name in door.bearer_variables
                return _Found(value, {}, is_literal=True, as_bearer=is_bearer)
        return None

    def _stored_key(self, stored: Mapping[str, Any]) -> _Found | None:
        key, environment = stored.get("key"), self._environment_of(stored)
        if not isinstance(key, str) or not key:
            return None
        return None if missing_in(key, environment) else _Found(key, environment)

    def _environment_of(self, stored: Mapping[str, Any]) -> Mapping[str, str]:
        extra = stored.get("env")
        own = extra if isinstance(extra, dict) else {}
        return {
            **self._environment,
            **{name: value for name, value in own.items() if isinstance(value, str)},
        }

    async def _resolved(self, found: _Found, provider: str, header: str | None = None) -> Secret:
        what = "its key" if header is None else f"the header {header}"
        if found.is_literal:
            return Secret(found.value)
        command = command_in(found.value)
        if command is not None:
            printed = await self._commands.printed(command, found.environment)
            if printed is None:
                raise no_key(
                    provider, f"the command for {what} failed, was slow or printed nothing"
                )
            return printed
        text = text_of(found.value, found.environment)
        if text is None:
            missing = " and ".join(missing_in(found.value, found.environment))
            raise no_key(provider, f"{missing} is not set, which {what} names")
        return Secret(text)

    def _stored(self) -> dict[str, Any]:
        return self._file.value()


def no_key(provider: str, why_not: str) -> Refused:
    """The refusal to use a provider without its key."""
    return Refused("no_key", f"{provider} cannot be used: {why_not}.", provider=provider)


def _time_told(expires_ms: object) -> str:
    """When a login ends, as far as the file says it: Unix time in milliseconds."""
    try:
        at = datetime.fromtimestamp(float(str(expires_ms)) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    word = "expired" if at < datetime.now(UTC) else "valid until"
    return f" ({word} {at:%Y-%m-%d %H:%M} UTC)"


def _readable_by_others(status: os.stat_result, path: Path) -> list[Diagnostic]:
    if os.name == "nt" or not stat.S_IMODE(status.st_mode) & 0o077:
        return []
    text = "keys are stored in a file that others may read; its mode should be 0600"
    return [Diagnostic("warning", "auth_file_open_to_others", text, path=str(path))]
