"""One frozen `Settings` value from the environment, the user's settings file and flags.

The settings file is the user's alone: a project's own file could redirect storage, so none is read.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec

from pi_rpc.core.errors import Invalid
from pi_rpc.core.events import Diagnostic, QueueMode
from pi_rpc.core.grants import Grant
from pi_rpc.core.idleness import UnloadRules
from pi_rpc.core.retrying import RetryPolicy
from pi_rpc.core.settings import Layer, effective
from pi_rpc.core.thresholds import CompactionSettings, compaction_settings_from
from pi_rpc.core.turns import QueueModes
from pi_rpc.core.version_limits import VersionLimits

Durability = Literal["entry", "turn", "off"]
"""When appended entries are synced to the disk.

Before each is told, at turn ends and moves, never.
"""

SETTINGS_BYTES_MAX = 1024 * 1024
"""A larger settings file is no settings file."""


class Settings(msgspec.Struct, frozen=True):
    """What a daemon goes by."""

    agent_dir: Path
    """Where sessions, settings and credentials of the user live."""
    session_dir: Path | None = None
    """A flat folder for all sessions instead of one for each working directory."""
    script_file: Path | None = None
    durability: Durability = "entry"
    grace_s: float = 5.0
    retry: RetryPolicy = RetryPolicy()
    queue_modes: QueueModes = QueueModes()
    compaction: CompactionSettings = CompactionSettings()
    versions: bool = True
    """Whether states of working directories are named and kept."""
    version_limits: VersionLimits = VersionLimits()
    default_model: tuple[str, str] | None = None
    """Provider and id of the model that new sessions begin with; None for the offline one."""
    require_acknowledge: bool = False
    """Whether a drift after a move must be taken note of before the next prompt."""
    unloading: UnloadRules = UnloadRules()
    """When open sessions give back their memory."""
    tell_drift: bool = False
    """Whether the model is told of one when it goes on with the files as they are."""
    home: Path = Path.home()
    """Where the user's skills that several programs share live."""
    project_trust: Literal["always", "never"] | None = None
    """Decides for every project instead of what was saved; None leaves it to that."""
    extensions: tuple[str, ...] = ()
    """Names of the installed extensions to load."""
    proxy_variables: dict[str, str] = {}
    """Variables that name the proxy of the settings, where the environment names none."""
    extension_grants: Mapping[str, tuple[Grant, ...]] = {}
    """By name, what each may take part in, where that is not the default."""
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def sessions_root(self) -> Path:
        """The folder above the session folders."""
        return self.agent_dir / "sessions"


def settings_from(
    environment: Mapping[str, str],
    session_dir: str | None = None,
    script_file: str | None = None,
    durability: Durability | None = None,
) -> Settings:
    """Flags win over the environment, and that over the user's settings file."""
    named = environment.get("PI_CODING_AGENT_DIR")
    agent_dir = _path(named) if named else Path.home() / ".pi" / "agent"
    stored, diagnostics = _read(agent_dir / "settings.json")
    compaction = _compaction(stored, agent_dir / "settings.json", diagnostics)
    own = stored.get("piRpc")
    own = own if isinstance(own, dict) else {}
    session_dir = session_dir or environment.get("PI_CODING_AGENT_SESSION_DIR")
    if session_dir is None and isinstance(stored.get("sessionDir"), str):
        session_dir = stored["sessionDir"]
    if durability is None and own.get("durability") in ("entry", "turn", "off"):
        durability = cast(Durability, own["durability"])
    grace_s = own.get("graceS")
    retry, queue_modes = _run_settings(stored, diagnostics)
    diagnostics += _others(stored, agent_dir / "settings.json")
    return Settings(
        agent_dir=agent_dir,
        session_dir=_path(session_dir) if session_dir else None,
        script_file=_path(script_file) if script_file else None,
        durability=durability or "entry",
        grace_s=float(grace_s) if isinstance(grace_s, int | float) and 0 <= grace_s <= 60 else 5.0,
        retry=retry,
        queue_modes=queue_modes,
        compaction=compaction,
        versions=_are_versions_on(environment, own),
        version_limits=_version_limits(own, diagnostics),
        default_model=_default_model(stored),
        require_acknowledge=own.get("requireAcknowledge") is True,
        unloading=_unload_rules(own),
        tell_drift=own.get("tellDrift") is True,
        home=_path(environment.get("HOME") or str(Path.home())),
        project_trust=_project_trust(environment),
        extensions=_extensions(own),
        proxy_variables=_proxy_variables(environment, stored.get("httpProxy")),
        extension_grants=_extension_grants(own),
        diagnostics=tuple(diagnostics),
    )


_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Retry(msgspec.Struct, frozen=True, rename="camel"):
    enabled: bool = True
    max_retries: Annotated[int, msgspec.Meta(ge=0, le=100)] = 3
    base_delay_ms: _Count = 2000
    max_agent_delay_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)] = 60_000


class _Runs(msgspec.Struct, frozen=True, rename="camel"):
    retry: _Retry = _Retry()
    steering_mode: QueueMode = "one-at-a-time"
    follow_up_mode: QueueMode = "one-at-a-time"


def _run_settings(
    stored: dict[str, Any], diagnostics: list[Diagnostic]
) -> tuple[RetryPolicy, QueueModes]:
    """How runs of new sessions go on; a value that cannot be is told, and the default holds."""
    read: dict[str, Any] = {}
    for name in ("retry", "steeringMode", "followUpMode"):
        if name not in stored:
            continue
        try:
            read[name] = msgspec.to_builtins(msgspec.convert({name: stored[name]}, _Runs))[name]
        except msgspec.ValidationError as problem:
            text = f"the default holds instead of a setting: {problem}"
            diagnostics.append(Diagnostic("error", "bad_settings", text))
    runs = msgspec.convert(read, _Runs)
    retry = runs.retry
    return RetryPolicy(
        retry.enabled, retry.max_retries, retry.base_delay_ms, retry.max_agent_delay_ms
    ), QueueModes(runs.steering_mode, runs.follow_up_mode)


def _project_trust(environment: Mapping[str, str]) -> Literal["always", "never"] | None:
    named = environment.get("PI_RPC_TRUST")
    return cast(Literal["always", "never"], named) if named in ("always", "never") else None


def _others(stored: dict[str, Any], path: Path) -> list[Diagnostic]:
    """What is wrong with settings that sessions go by and that are not looked at above."""
    told = ("retry", "steeringMode", "followUpMode", "compaction", "branchSummary")
    rest = {name: value for name, value in stored.items() if name not in told}
    retry = stored.get("retry")
    if isinstance(retry, dict):
        # What is left of it is looked at above.
        rest["retry"] = {name: retry[name] for name in ("provider", "maxDelayMs") if name in retry}
    return effective([Layer("user", rest, str(path))]).diagnostics


def _compaction(
    stored: Mapping[str, Any], path: Path, diagnostics: list[Diagnostic]
) -> CompactionSettings:
    try:
        return compaction_settings_from(stored.get("compaction"), stored.get("branchSummary"))
    except Invalid as problem:
        text = f"{problem.message}; defaults hold"
        diagnostics.append(Diagnostic("error", problem.reason, text, path=str(path)))
        return CompactionSettings()


def _default_model(stored: Mapping[str, Any]) -> tuple[str, str] | None:
    provider, model_id = stored.get("defaultProvider"), stored.get("defaultModel")
    if not isinstance(provider, str) or not isinstance(model_id, str):
        return None
    return (provider, model_id) if provider and model_id else None


def _unload_rules(own: Mapping[str, Any]) -> UnloadRules:
    rules = UnloadRules()
    after_s, loaded_max = own.get("unloadAfterS"), own.get("loadedSessionsMax")
    # A value of another kind is told of where all settings are looked at.
    if isinstance(after_s, int | float) and 0 <= after_s < float("inf"):
        rules = msgspec.structs.replace(rules, idle_ms=round(after_s * 1000))
    if isinstance(loaded_max, int) and loaded_max >= 1:
        rules = msgspec.structs.replace(rules, loaded_max=loaded_max)
    return rules


def _extensions(own: Mapping[str, Any]) -> tuple[str, ...]:
    named = own.get("extensions")
    # A value of another kind is told of where all settings are looked at.
    is_sound = isinstance(named, list) and all(isinstance(name, str) for name in named)
    return tuple(cast(list[str], named)) if is_sound else ()


def _extension_grants(own: Mapping[str, Any]) -> dict[str, tuple[Grant, ...]]:
    try:
        return msgspec.convert(own.get("extensionGrants", {}), dict[str, tuple[Grant, ...]])
    except msgspec.ValidationError:
        # Told of where all settings are looked at. Nothing is granted by mistake.
        return dict.fromkeys(_extensions(own), ())


def _proxy_variables(environment: Mapping[str, str], proxy: Any) -> dict[str, str]:
    if not isinstance(proxy, str) or not proxy:
        return {}
    names = ("HTTP_PROXY", "HTTPS_PROXY")
    return {
        name: proxy
        for name in names
        if not environment.get(name) and not environment.get(name.lower())
    }


def _are_versions_on(environment: Mapping[str, str], own: Mapping[str, Any]) -> bool:
    named = environment.get("PI_RPC_VERSIONS")
    if named in ("on", "off"):
        return named == "on"
    return own.get("versions") is not False


def _version_limits(own: Mapping[str, Any], diagnostics: list[Diagnostic]) -> VersionLimits:
    wanted = own.get("versions")
    try:
        return msgspec.convert(wanted if isinstance(wanted, dict) else {}, VersionLimits)
    except msgspec.ValidationError as problem:
        text = f"the default limits of versions hold: {problem}"
        diagnostics.append(Diagnostic("error", "bad_settings", text))
        return VersionLimits()


def _path(text: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(text)))  # noqa: PTH100, PTH111


def _read(path: Path) -> tuple[dict[str, Any], list[Diagnostic]]:
    try:
        if not path.is_file():
            return {}, []
        with path.open("rb") as file:
            raw = file.read(SETTINGS_BYTES_MAX + 1)
        if len(raw) > SETTINGS_BYTES_MAX:
            raise ValueError(f"larger than {SETTINGS_BYTES_MAX} bytes")
        stored = json.loads(raw.decode("utf-8-sig"))
        if not isinstance(stored, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError) as problem:
        text = f"settings were not read, defaults hold: {problem}"
        return {}, [Diagnostic("error", "bad_settings", text, path=str(path))]
    return stored, []
