"""What users and projects have chosen, and the instructions they left, as a session goes by them.

Looked at when a runtime is made and when a run begins. What a client changed in the session itself
stays, unless the file that is the reason for it says something new.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec

from pi_rpc.core.errors import Failure, Refused
from pi_rpc.core.events import Diagnostic, DiagnosticTold, SettingsChanged
from pi_rpc.core.permissions import PermissionPolicy
from pi_rpc.core.ports import KeptSettings, Models, Preferences, ResourceQuery, Trust
from pi_rpc.core.prompt import PromptParts
from pi_rpc.core.retrying import RetryPolicy
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
    session.kept = kept
    odd = _settle(session)
    if session.around.instructions is not None:
        session.resources = await session.around.instructions.load(_query(session))
        odd += session.resources.diagnostics
    fresh = [one for one in odd if one not in session.noticed]
    session.noticed = odd
    return fresh


async def prefer_again(session: Session) -> None:
    """As `prefer`, for a session that lives: what is odd is told."""
    for diagnostic in await prefer(session):
        session.tell(DiagnosticTold(diagnostic))


def _settle(session: Session) -> list[Diagnostic]:
    """Lay the layers over each other and take over what is new; what is odd."""
    kept = session.kept
    layers = [*kept.layers, Layer("session", session.own_settings)]
    before, session.effective = session.effective, effective(layers)
    told = kept.layers[0].path if kept.layers else None
    # What is wrong with the user's own file is told in the handshake.
    odd = [one for one in session.effective.diagnostics + kept.diagnostics if one.path != told]
    return odd + _take_over(session, session.effective, before)


def _take_over(session: Session, now: Effective, before: Effective | None) -> list[Diagnostic]:
    def is_new(*keys: str) -> bool:
        if before is None:
            return any(now.is_set(key) for key in keys)
        return any(now.settings[key] != before.settings[key] for key in keys)

    names = ("retry.enabled", "retry.maxRetries", "retry.baseDelayMs", "retry.maxAgentDelayMs")
    if is_new(*names):
        session.retry = RetryPolicy(*(now.value(name) for name in names))
    if is_new("steeringMode", "followUpMode"):
        session.queue_modes = QueueModes(now.value("steeringMode"), now.value("followUpMode"))
        if before is not None:
            session.tell_queues()
    limits = ("compaction.enabled", "compaction.reserveTokens", "compaction.keepRecentTokens")
    if is_new(*limits, "branchSummary.reserveTokens"):
        enabled, reserve, keep = (now.value(name) for name in limits)
        session.compaction = msgspec.structs.replace(
            session.compaction,
            enabled=enabled,
            reserve_tokens=reserve,
            keep_recent_tokens=keep,
            branch_reserve_tokens=now.value("branchSummary.reserveTokens"),
        )
    if is_new("piRpc.permissions"):
        policy: PermissionPolicy = now.value("piRpc.permissions")
        session.permissions = policy
    if is_new("defaultTools"):
        return _choose_tools(session, now.value("defaultTools"))
    return []


def _choose_tools(session: Session, names: list[str]) -> list[Diagnostic]:
    known = all_tools(session)
    session.active_tools = [name for name in names if name in known]
    for _, tool in session.around.consulting.tools(session.session_id):
        session.activate(tool.declaration.name)
    return [
        Diagnostic("warning", "unknown_tool", f"defaultTools names {name!r}, which is no tool")
        for name in names
        if name not in known
    ]


def _query(session: Session) -> ResourceQuery:
    now = session.effective
    assert now is not None, "settings are settled before instructions are looked for"
    return ResourceQuery(
        cwd=session.cwd,
        trusted=session.kept.trust.trusted,
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
    """The model a new session begins with: a project's, where it can be used, else the user's."""
    named = now.settings["defaultProvider"], now.settings["defaultModel"]
    if not all(one.layer == "project" for one in named):
        return fallback
    provider, model_id = (str(one.value) for one in named)
    try:
        models.provider_of(provider, model_id)
    except Failure:
        return fallback
    return provider, model_id


def preferred_level(now: Effective, model: tuple[str, str] | None) -> str:
    """The thinking level a new session begins with."""
    levels: dict[str, str] = now.value("modelThinkingLevels")
    own = None if model is None else levels.get("/".join(model))
    return own or now.value("defaultThinkingLevel") or "off"


def setting(session: Session, key: str) -> Setting:
    """A setting as it holds."""
    assert session.effective is not None, "a session goes by settings from its first moment"
    return session.effective.settings[key]


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
        session.own_settings = with_value(session.own_settings, key, value)
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
    files = session.resources.files
    can_read = bool({"read", "bash"} & set(session.active_tools))
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
