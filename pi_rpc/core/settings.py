"""Settings: what there is, layers laid over each other, and where each value comes from.

A settings file belongs to several programs, so what is not known here is kept and not judged.

Promises
- A value that cannot be is told with its place and reason, and what would hold without it holds.
- What only the user may choose is never read from a project or a session.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from pi_rpc.core.errors import Invalid, Missing, Refused
from pi_rpc.core.events import Diagnostic, QueueMode
from pi_rpc.core.grants import Grant
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.permissions import PermissionPolicy

LayerName = Literal["default", "user", "project", "session"]

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
ProjectTrust = Literal["ask", "always", "never"]
ContextFiles = Literal["all", "repository", "trusted", "none"]
"""Which context files are read: of all folders above, from the repository's root down, of trusted
projects only, or none."""

BudgetLevel = Literal["minimal", "low", "medium", "high"]

Tokens = Annotated[int, msgspec.Meta(ge=0)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=86_400_000)]


class Known(msgspec.Struct, frozen=True):
    """A setting."""

    type: Any
    default: Any
    user_only: bool = False


KNOWN: dict[str, Known] = {
    "defaultProvider": Known(str | None, None),
    "defaultModel": Known(str | None, None),
    "defaultThinkingLevel": Known(ThinkingLevel | None, None),
    "modelThinkingLevels": Known(dict[str, ThinkingLevel], {}),
    "enabledModels": Known(list[str] | None, None),
    "thinkingBudgets": Known(dict[BudgetLevel, Tokens], {}),
    "defaultTools": Known(list[str], ["read", "bash", "edit", "write"]),
    "steeringMode": Known(QueueMode, "one-at-a-time"),
    "followUpMode": Known(QueueMode, "one-at-a-time"),
    "compaction.enabled": Known(bool, True),
    "compaction.reserveTokens": Known(Tokens, 16_384),
    "compaction.keepRecentTokens": Known(Tokens, 20_000),
    "branchSummary.reserveTokens": Known(Tokens, 16_384),
    "retry.enabled": Known(bool, True),
    "retry.maxRetries": Known(Annotated[int, msgspec.Meta(ge=0, le=100)], 3),
    "retry.baseDelayMs": Known(Milliseconds, 2_000),
    "retry.maxAgentDelayMs": Known(Milliseconds, 60_000),
    "retry.provider.timeoutMs": Known(Milliseconds | None, None),
    "retry.provider.maxRetries": Known(Annotated[int, msgspec.Meta(ge=0, le=100)], 0),
    "retry.provider.maxRetryDelayMs": Known(Milliseconds, 60_000),
    "httpIdleTimeoutMs": Known(Milliseconds | Literal["disabled"], 300_000),
    "httpProxy": Known(str | None, None, user_only=True),
    "images.autoResize": Known(bool, True),
    "images.blockImages": Known(bool, False),
    "shellPath": Known(str | None, None),
    "shellCommandPrefix": Known(str | None, None),
    "skills": Known(list[str], []),
    "prompts": Known(list[str], []),
    "enableSkillCommands": Known(bool, True),
    "sessionDir": Known(str | None, None, user_only=True),
    "defaultProjectTrust": Known(ProjectTrust, "ask", user_only=True),
    "piRpc.durability": Known(Literal["entry", "turn", "off"], "entry", user_only=True),
    "piRpc.graceS": Known(Annotated[float, msgspec.Meta(ge=0, le=60)], 5.0, user_only=True),
    "piRpc.unloadAfterS": Known(Annotated[float, msgspec.Meta(ge=0)], 600.0, user_only=True),
    "piRpc.loadedSessionsMax": Known(Annotated[int, msgspec.Meta(ge=1)], 200, user_only=True),
    "piRpc.replyTimeoutS": Known(Annotated[float, msgspec.Meta(ge=0, le=604_800)], 3600.0),
    "piRpc.commandTimeoutS": Known(Annotated[float, msgspec.Meta(ge=0, le=2_000_000)] | None, None),
    "piRpc.spillBytes": Known(Annotated[int, msgspec.Meta(ge=0)] | None, None),
    "piRpc.permissions": Known(PermissionPolicy, PermissionPolicy()),
    "piRpc.extensions": Known(list[str], [], user_only=True),
    "piRpc.extensionGrants": Known(dict[str, list[Grant]], {}, user_only=True),
    "piRpc.contextFiles": Known(ContextFiles, "all", user_only=True),
}
"""Every setting this daemon goes by, by its place in the file."""


class Layer(msgspec.Struct, frozen=True):
    """Settings of one origin."""

    name: LayerName
    values: JsonObject
    path: str | None = None


class Setting(msgspec.Struct, frozen=True):
    """A value, and where it comes from."""

    value: Any
    """As the file has it."""
    layer: LayerName


class Effective(msgspec.Struct, frozen=True):
    """What holds, by the names of KNOWN."""

    settings: dict[str, Setting]
    diagnostics: list[Diagnostic] = []

    def value(self, key: str) -> Any:
        """The value of a setting, in its type."""
        return msgspec.convert(self.settings[key].value, KNOWN[key].type)

    def is_set(self, key: str) -> bool:
        """Whether some layer says something, and it is no bare default."""
        return self.settings[key].layer != "default"


def effective(layers: Sequence[Layer]) -> Effective:
    """What holds when each layer goes over those before it."""
    diagnostics: list[Diagnostic] = []
    settings = {key: _setting(key, known, layers, diagnostics) for key, known in KNOWN.items()}
    return Effective(settings, diagnostics)


def _setting(
    key: str, known: Known, layers: Sequence[Layer], diagnostics: list[Diagnostic]
) -> Setting:
    held = Setting(msgspec.to_builtins(known.default), "default")
    for layer in layers:
        if known.user_only and layer.name != "user":
            continue
        found, value = _looked_up(migrated(layer.values), key.split("."))
        if not found:
            continue
        try:
            msgspec.convert(value, known.type)
        except msgspec.ValidationError as problem:
            text = f"{key}: {problem}; what holds without it holds"
            diagnostics.append(Diagnostic("error", "bad_setting", text, path=layer.path))
            continue
        held = Setting(_over(key, held.value, value, layer.name), layer.name)
    return held


def _over(key: str, below: Any, value: Any, layer: LayerName) -> Any:
    if key == "piRpc.permissions":
        if layer != "project":
            return _permissions_over(below, value)
        # A project may add to what its user decided, and opens no doors of itself.
        kept = {name: held for name, held in value.items() if held != "allow"}
        return _permissions_over(kept, below)
    if key == "defaultTools":
        return tools_over(below, value)
    by_name = key in ("modelThinkingLevels", "thinkingBudgets")
    if by_name and isinstance(below, dict) and isinstance(value, dict):
        return {**below, **value}
    return value


def _permissions_over(below: JsonObject, value: JsonObject) -> JsonObject:
    """Rules of both, the upper ones first: nothing that one layer denies is lost by another."""
    rules = [*value.get("rules", ()), *below.get("rules", ())]
    return {**below, **value} | ({"rules": rules} if rules else {})


def tools_over(below: Sequence[str], listed: Sequence[str]) -> list[str]:
    """A list of tools over another: one made only of `+name` and `-name` changes it."""
    if not listed or not all(name[:1] in ("+", "-") for name in listed):
        return list(listed)
    made = list(below)
    for name in listed:
        if name[0] == "-":
            made = [other for other in made if other != name[1:]]
        elif name[1:] not in made:
            made.append(name[1:])
    return made


def migrated(values: JsonObject) -> JsonObject:
    """Settings under the names they have now."""
    made = dict(values)
    if "queueMode" in made and "steeringMode" not in made:
        made["steeringMode"] = made["queueMode"]
    retry = made.get("retry")
    if isinstance(retry, dict) and "maxDelayMs" in retry:
        inner = retry.get("provider", {})
        if isinstance(inner, dict):
            provider = {"maxRetryDelayMs": retry["maxDelayMs"], **inner}
            made["retry"] = {**retry, "provider": provider}
    return made


def _looked_up(values: Any, place: Sequence[str]) -> tuple[bool, Any]:
    for name in place:
        if not isinstance(values, Mapping) or name not in values:
            return False, None
        values = values[name]
    return True, values


def checked_setting(key: str, value: Any, scope: Literal["session", "user"]) -> None:
    """Raise Missing `setting_not_found`, Invalid `bad_setting`, Refused `setting_of_the_user`."""
    known = KNOWN.get(key)
    if known is None:
        raise Missing("setting_not_found", f"there is no setting {key!r}", key=key)
    if known.user_only and scope != "user":
        raise Refused("setting_of_the_user", f"{key} is the user's, not a session's", key=key)
    if value is None:
        return
    try:
        msgspec.convert(value, known.type)
    except msgspec.ValidationError as problem:
        raise Invalid("bad_setting", f"{key}: {problem}", key=key) from problem


def with_value(values: JsonObject, key: str, value: Any) -> JsonObject:
    """The settings with one value set, or taken out when it is None; the rest is as it was.

    Raises Invalid `bad_setting` when something else than an object is in the way.
    """
    first, _, rest = key.partition(".")
    made = dict(values)
    if rest:
        inner = made.get(first, {})
        if not isinstance(inner, dict):
            raise Invalid("bad_setting", f"{first} is no object", key=key)
        value = with_value(inner, rest, value) or None
    if value is None:
        made.pop(first, None)
    else:
        made[first] = value
    return made
