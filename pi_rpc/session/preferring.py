"""What users and projects have chosen, and the instructions they left, as a session goes by them.

Looked at when a runtime is made and when a run begins. What a client changed in the session itself
stays, unless the file that is the reason for it says something new.
"""

from math import inf
from pathlib import Path
from typing import Any, Literal

import msgspec

from pi_rpc.core.errors import Failure, Refused
from pi_rpc.core.events import Diagnostic, DiagnosticTold, SettingsChanged
from pi_rpc.core.images import ImageLimits
from pi_rpc.core.model_patterns import scoped_models
from pi_rpc.core.permissions import PermissionPolicy
from pi_rpc.core.ports.instructions import ResourceQuery
from pi_rpc.core.ports.preferences import KeptSettings, Preferences, Trust
from pi_rpc.core.ports.providers import AskingSettings, Models
from pi_rpc.core.ports.tools import ToolSettings
from pi_rpc.core.prompt import PromptParts
from pi_rpc.core.retrying import RequestRetries, RetryPolicy
from pi_rpc.core.settings import Effective, Layer, Setting, checked_setting, effective, with_value
from pi_rpc.core.turns import QueueModes
from pi_rpc.session.consulted_tools import all_tools
from pi_rpc.session.session import Session

UNTRUSTED = Trust(False, "nobody")
"""Where no files are kept, nothing of a project counts."""


async def prefer(session: Session) -> list[Diagnostic]:
    """Look at settings and instructions, and go by them; what is odd and was not told before."""
    kept = KeptSettings([], UNTRUSTED, [])
    if session.around.preferences is not None:
        kept = await session.around.preferences.read(session.cwd)
    session.guidance.kept = kept
    odd = _settle(session)
    if session.around.instructions is not None:
        session.guidance.resources = await session.around.instructions.load(_query(session))
        odd += session.guidance.resources.diagnostics
    fresh = [one for one in odd if one not in session.guidance.noticed]
    session.guidance.noticed = odd
    return fresh


async def prefer_again(session: Session) -> None:
    """As `prefer`, for a session that lives: what is odd is told."""
    for diagnostic in await prefer(session):
        session.tell(DiagnosticTold(diagnostic))


def _settle(session: Session) -> list[Diagnostic]:
    """Lay the layers over each other and take over what is new; what is odd."""
    kept = session.guidance.kept
    layers = [*kept.layers, Layer("session", session.chosen.own_settings)]
    before, now = session.chosen.effective, effective(layers)
    session.chosen.effective = now
    told = kept.layers[0].path if kept.layers else None
    # What is wrong with the user's own file is told in the handshake.
    odd = [one for one in now.diagnostics + kept.diagnostics if one.path != told]
    return odd + _take_over(session, now, before)


def _take_over(session: Session, now: Effective, before: Effective | None) -> list[Diagnostic]:
    def is_new(*keys: str) -> bool:
        if before is None:
            return any(now.is_set(key) for key in keys)
        return any(now.settings[key] != before.settings[key] for key in keys)

    names = ("retry.enabled", "retry.maxRetries", "retry.baseDelayMs", "retry.maxAgentDelayMs")
    if is_new(*names):
        session.chosen.retry = RetryPolicy(*(now.value(name) for name in names))
    if is_new("steeringMode", "followUpMode"):
        modes = QueueModes(now.value("steeringMode"), now.value("followUpMode"))
        session.chosen.queue_modes = modes
        if before is not None:
            session.tell_queues()
    limits = ("compaction.enabled", "compaction.reserveTokens", "compaction.keepRecentTokens")
    if is_new(*limits, "branchSummary.reserveTokens"):
        enabled, reserve, keep = (now.value(name) for name in limits)
        session.chosen.compaction = msgspec.structs.replace(
            session.chosen.compaction,
            enabled=enabled,
            reserve_tokens=reserve,
            keep_recent_tokens=keep,
            branch_reserve_tokens=now.value("branchSummary.reserveTokens"),
        )
    if is_new("piRpc.permissions"):
        policy: PermissionPolicy = now.value("piRpc.permissions")
        session.chosen.permissions = policy
    if is_new("defaultTools"):
        return _choose_tools(session, now.value("defaultTools"))
    return []


def _choose_tools(session: Session, names: list[str]) -> list[Diagnostic]:
    known = all_tools(session)
    session.chosen.active_tools = [name for name in names if name in known]
    for _, tool in session.around.consulting.tools(session.session_id):
        session.chosen.activate(tool.declaration.name)
    return [
        Diagnostic("warning", "unknown_tool", f"defaultTools names {name!r}, which is no tool")
        for name in names
        if name not in known
    ]


def _query(session: Session) -> ResourceQuery:
    now = _goes_by(session)
    return ResourceQuery(
        cwd=session.cwd,
        trusted=session.guidance.kept.trust.trusted,
        context_files=now.value("piRpc.contextFiles"),
        skills=tuple(now.value("skills")),
        prompts=tuple(now.value("prompts")),
    )


async def chosen_for(preferences: Preferences | None, cwd: Path) -> Effective:
    """The settings of a folder, before there is a session."""
    return effective([] if preferences is None else (await preferences.read(cwd)).layers)


def preferred_model(
    now: Effective, models: Models, fallback: tuple[str, str] | None
) -> tuple[str, str] | None:
    """The model a new session begins with: a project's, where it can be used, else the user's.

    Where the settings name models to choose from and this is none of them, the first of those.
    """
    named = now.settings["defaultProvider"], now.settings["defaultModel"]
    default = str(named[0].value), str(named[1].value)
    chosen = fallback
    if all(one.layer == "project" for one in named) and _is_usable(models, default):
        chosen = default
    if chosen != default:
        return chosen
    scope = _scope(now, models)
    return chosen if not scope or chosen in scope else next(iter(scope))


def _is_usable(models: Models, model: tuple[str, str]) -> bool:
    try:
        models.provider_of(*model)
    except Failure:
        return False
    return True


def _scope(now: Effective, models: Models) -> dict[tuple[str, str], str | None]:
    """The models that the settings name to choose from, each with the level named with it."""
    patterns: list[str] | None = now.value("enabledModels")
    if not patterns:
        return {}
    meant = scoped_models(patterns, models.listing())
    return {(one.model.provider, one.model.model_id): one.level for one in meant}


def preferred_level(now: Effective, models: Models, model: tuple[str, str] | None) -> str:
    """The thinking level a new session begins with."""
    levels: dict[str, str] = now.value("modelThinkingLevels")
    own = None
    if model is not None:
        own = _scope(now, models).get(model) or levels.get("/".join(model))
    chosen = own or now.value("defaultThinkingLevel")
    if chosen is not None or model is None:
        return chosen or "off"
    listed = models.listed(*model)
    return "off" if listed is None else listed.thinking_default


def asking_settings(session: Session) -> AskingSettings:
    """How the session wants its model asked."""
    value = _goes_by(session).value
    idle_s, begin_s = _seconds(value("httpIdleTimeoutMs")), value("retry.provider.timeoutMs")
    return AskingSettings(
        thinking_budgets=value("thinkingBudgets"),
        sends_images=not value("images.blockImages"),
        begin_s=idle_s if begin_s is None else _seconds(begin_s),
        idle_s=idle_s,
        total_s=value("piRpc.replyTimeoutS") or inf,
        retries=RequestRetries(
            value("retry.provider.maxRetries"), value("retry.provider.maxRetryDelayMs")
        ),
    )


def _seconds(limit_ms: int | Literal["disabled"]) -> float:
    """A limit that may be off, which is 0 in the file too."""
    return inf if limit_ms in (0, "disabled") else int(limit_ms) / 1000


def tool_settings(session: Session) -> ToolSettings:
    """How the session wants its tools and commands to work."""
    value, model = _goes_by(session).value, session.chosen.model
    listed = None if model is None else session.around.models.listed(*model)
    is_blind = listed is not None and "image" not in listed.input
    return ToolSettings(
        shell=value("shellPath"),
        shell_prefix=value("shellCommandPrefix"),
        timeout_s=value("piRpc.commandTimeoutS") or None,
        spill_bytes_max=value("piRpc.spillBytes"),
        makes_images_smaller=value("images.autoResize"),
        image_limits=ImageLimits() if listed is None else listed.image_limits,
        blind_model=listed.model_id if listed is not None and is_blind else None,
    )


def _goes_by(session: Session) -> Effective:
    now = session.chosen.effective
    assert now is not None, "a session goes by settings from its first moment"
    return now


def setting(session: Session, key: str) -> Setting:
    """A setting as it holds."""
    return _goes_by(session).settings[key]


async def set_setting(
    session: Session, key: str, value: Any, scope: Literal["session", "user"]
) -> Setting:
    """Choose a setting for this session, or write it into the user's file; None takes it back.

    Raises Missing `setting_not_found`, Invalid `bad_setting`, Refused `setting_of_the_user`,
    `no_settings_file` or `settings_unreadable`, Locked `settings_locked`.
    """
    checked_setting(key, value, scope)
    session.refuse_if_moving()
    if scope == "session":
        session.chosen.own_settings = with_value(session.chosen.own_settings, key, value)
        _settle(session)
    else:
        if session.around.preferences is None:
            raise Refused("no_settings_file", "this daemon keeps no settings")
        await session.around.preferences.write(key, value)
        await prefer_again(session)
    held = setting(session, key)
    session.tell(SettingsChanged(key, held.value, held.layer))
    return held


def prompt_parts(session: Session) -> PromptParts:
    """What the files of a folder add to the prompt."""
    files = session.guidance.resources.files
    can_read = bool({"read", "bash"} & set(session.chosen.active_tools))
    return PromptParts(
        system=next((one.text for one in files if one.kind == "system"), None),
        addendum=next((one.text for one in files if one.kind == "append_system"), None),
        context=tuple((one.path, one.text) for one in files if one.kind == "context"),
        skills=tuple(
            (one.name or "", one.description or "", one.path)
            for one in files
            if one.kind == "skill" and not one.is_hidden and can_read
        ),
    )
