"""Settings, trust, and the instructions that files give: read, chosen, listed."""

from typing import Any, Literal

from pi_rpc.core.errors import Refused
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.ports.preferences import Trust
from pi_rpc.core.settings import LayerName
from pi_rpc.frontends.native.connection import Connection
from pi_rpc.frontends.native.method import Method
from pi_rpc.frontends.native.shapes import Result, SessionParams
from pi_rpc.session.preferring import prefer_again, set_setting
from pi_rpc.session.session import Session


class SettingState(Result, frozen=True, kw_only=True):
    """A setting as it holds, and the layer it comes from."""

    value: Any
    layer: LayerName


class SettingsLayer(Result, frozen=True, kw_only=True):
    """A settings file that was looked at."""

    name: LayerName
    path: str | None = None


class SettingsGetResult(Result, frozen=True, kw_only=True):
    """What a session goes by."""

    settings: dict[str, SettingState]
    """By their place in the file."""
    layers: list[SettingsLayer]
    """Each goes over those before it; a project that is not trusted has none."""
    trust: Trust
    diagnostics: list[Diagnostic]


async def get(connection: Connection, params: SessionParams) -> SettingsGetResult:
    """Every setting of a session with the layer it comes from, the files looked at anew."""
    session = connection.host.session(params.session_id)
    await prefer_again(session)
    assert session.chosen.effective is not None, "settings were looked at"
    layers = [SettingsLayer(name=one.name, path=one.path) for one in session.guidance.kept.layers]
    return SettingsGetResult(
        settings={
            key: SettingState(value=one.value, layer=one.layer)
            for key, one in session.chosen.effective.settings.items()
        },
        layers=[*layers, SettingsLayer(name="session")],
        trust=session.guidance.kept.trust,
        diagnostics=session.guidance.kept.diagnostics + session.chosen.effective.diagnostics,
    )


class SettingsSetParams(SessionParams, frozen=True, kw_only=True):
    """A setting to choose."""

    key: str
    value: Any
    """Null takes it back, so that what holds without it holds."""
    scope: Literal["session", "user"] = "session"
    """`user` writes it into the user's settings file."""


async def set_(connection: Connection, params: SettingsSetParams) -> SettingState:
    """Choose a setting for a session, or for the user; what holds then is answered."""
    session = connection.host.session(params.session_id)
    held = await set_setting(session, params.key, params.value, params.scope)
    return SettingState(value=held.value, layer=held.layer)


class TrustSetParams(SessionParams, frozen=True, kw_only=True):
    """Whether the files of a session's folder may steer what is done in it."""

    trusted: bool | None
    """Null forgets what was decided."""


async def set_trust(connection: Connection, params: TrustSetParams) -> Trust:
    """Save a decision for a session's folder and those in it; it holds from the next run on."""
    session = connection.host.session(params.session_id)
    kept = session.around.preferences
    if kept is None:
        raise Refused("no_settings_file", "this daemon keeps no settings")
    await kept.decide_trust(session.cwd, params.trusted)
    await prefer_again(session)
    return session.guidance.kept.trust


class ListedCommand(Result, frozen=True, kw_only=True):
    """A name that a prompt may begin with, after a slash."""

    name: str
    source: Literal["client", "extension", "skill", "prompt"]
    description: str = ""
    argument_hint: str | None = None
    path: str | None = None
    origin: Literal["user", "project"] | None = None


class CommandListResult(Result, frozen=True, kw_only=True):
    """The commands of a session, in the order a name is looked for."""

    commands: list[ListedCommand]


def commands(connection: Connection, params: SessionParams) -> CommandListResult:
    """Commands of clients and extensions, skills as `skill:name`, and prompt templates."""
    session = connection.host.session(params.session_id)
    offered = session.around.consulting.commands(session.session_id)
    listed = [
        ListedCommand(
            name=one.name,
            source=offer.source,
            description=one.description,
            argument_hint=one.argument_hint,
        )
        for offer, one in offered
    ]
    return CommandListResult(commands=listed + _of_files(session))


def _of_files(session: Session) -> list[ListedCommand]:
    return [
        ListedCommand(
            name=f"skill:{one.name}" if one.kind == "skill" else str(one.name),
            source=one.kind,
            description=one.description or "",
            argument_hint=one.argument_hint,
            path=one.path,
            origin=one.origin,
        )
        for one in session.guidance.resources.files
        if one.kind in ("skill", "prompt")
    ]


class ListedResource(Result, frozen=True, kw_only=True):
    """A file that goes into the prompt or can be called for."""

    kind: Literal["context", "system", "append_system", "skill", "prompt"]
    path: str
    sha256: str
    """Of its bytes."""
    origin: Literal["user", "project"]
    name: str | None = None


class ResourceListResult(Result, frozen=True, kw_only=True):
    """The files, in the order they are used."""

    files: list[ListedResource]
    diagnostics: list[Diagnostic]
    """What was skipped or is odd, each with its path."""
    trust: Trust


def resources(connection: Connection, params: SessionParams) -> ResourceListResult:
    """The files that tell the model of a session how to work, with their hashes."""
    session = connection.host.session(params.session_id)
    return ResourceListResult(
        files=[
            ListedResource(
                kind=one.kind, path=one.path, sha256=one.sha256, origin=one.origin, name=one.name
            )
            for one in session.guidance.resources.files
        ],
        diagnostics=list(session.guidance.resources.diagnostics),
        trust=session.guidance.kept.trust,
    )


METHODS = (
    Method("settings/get", "What a session goes by.", SessionParams, SettingsGetResult, get),
    Method("settings/set", "Choose a setting.", SettingsSetParams, SettingState, set_),
    Method(
        "trust/set", "Trust a project, or not.", TrustSetParams, Trust, set_trust, experimental=True
    ),
    Method("command/list", "Names for prompts.", SessionParams, CommandListResult, commands),
    Method(
        "resources/list",
        "Files that instruct the model.",
        SessionParams,
        ResourceListResult,
        resources,
        experimental=True,
    ),
)
