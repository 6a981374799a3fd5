"""Which model is meant by the words somebody chose for it.

`gpt` may mean `openai/gpt-6`, `sonnet:high` a model and a thinking level.
"""

import re
from collections.abc import Sequence

import msgspec

from pi_rpc.core.errors import Failure, Invalid, Missing, Refused
from pi_rpc.core.models import LEVELS
from pi_rpc.core.ports.providers import ModelListing


class MeantModel(msgspec.Struct, frozen=True):
    """The model meant, and the thinking level asked for with it."""

    model: ModelListing
    level: str | None = None


_DATED = re.compile(r"-\d{8}\Z")


def meant_model(pattern: str, models: Sequence[ModelListing]) -> MeantModel:
    """The model a pattern means: an id whole, then a part of an id or name, then without `:level`.

    Of several that fit in part, one without a date is taken, then the highest id. Raises Missing
    `model_not_found`, Refused `ambiguous_model` with the `candidates`, Invalid
    `bad_thinking_level`.
    """
    found = _meant(pattern, models)
    if found is not None:
        return MeantModel(found)
    base, colon, level = pattern.rpartition(":")
    found = _meant(base, models) if colon and base else None
    if found is None:
        told = f"No known model is meant by {pattern!r}."
        raise Missing("model_not_found", told, pattern=pattern)
    if level not in LEVELS:
        told = f"{level!r} is no thinking level; there are {', '.join(LEVELS)}."
        raise Invalid("bad_thinking_level", told, level=level)
    return MeantModel(found, level)


def scoped_models(patterns: Sequence[str], models: Sequence[ModelListing]) -> list[MeantModel]:
    """The usable models that a list of patterns means, in its order, each once.

    One with `*`, `?` or `[` means every model whose id, with or without its provider, it fits; a
    level may follow it too. What means nothing is passed over.
    """
    usable = [one for one in models if one.usable]
    found: dict[tuple[str, str], MeantModel] = {}
    for pattern in patterns:
        for meant in _scoped(pattern, usable):
            found.setdefault((meant.model.provider, meant.model.model_id), meant)
    return list(found.values())


def neighbour(
    scope: Sequence[MeantModel], current: tuple[str, str] | None, step: int
) -> MeantModel | None:
    """The model `step` places from the current one, around the end; None when there is no other.

    From a model that is not among them the first or last is next.
    """
    places = [(one.model.provider, one.model.model_id) for one in scope]
    if not places or places == [current]:
        return None
    if current is None or current not in places:
        return scope[0 if step > 0 else -1]
    return scope[(places.index(current) + step) % len(scope)]


def _scoped(pattern: str, usable: Sequence[ModelListing]) -> list[MeantModel]:
    if not re.search(r"[*?\[]", pattern):
        try:
            return [meant_model(pattern, usable)]
        except Failure:
            return []
    fitting = _fitting(pattern, usable)
    base, colon, level = pattern.rpartition(":")
    if fitting or not colon or level not in LEVELS:
        return [MeantModel(one) for one in fitting]
    return [MeantModel(one, level) for one in _fitting(base, usable)]


def _fitting(pattern: str, usable: Sequence[ModelListing]) -> list[ModelListing]:
    parts = re.findall(r"\[[^\]]+\]|.", pattern, re.DOTALL)
    made = re.compile("".join(_as_expression(part) for part in parts), re.IGNORECASE | re.DOTALL)
    return [
        one
        for one in usable
        if made.fullmatch(one.model_id) or made.fullmatch(f"{one.provider}/{one.model_id}")
    ]


def _as_expression(part: str) -> str:
    if len(part) == 1:
        return {"*": ".*", "?": "."}.get(part, re.escape(part))
    inner = part[1:-1]
    is_not = inner.startswith("!") and len(inner) > 1
    # A range keeps its hyphen; everything else of a set stands for itself.
    kept = "".join(one if one == "-" else re.escape(one) for one in inner[is_not:])
    ranges_ok = all(low <= high for low, high in re.findall(r"(?=(.)-(.))", inner[is_not:]))
    return f"[{'^' if is_not else ''}{kept}]" if ranges_ok else re.escape(part)


def _meant(pattern: str, models: Sequence[ModelListing]) -> ModelListing | None:
    wanted = pattern.strip().casefold()
    if not wanted:
        return None
    for provider in _prefixes(wanted, models):
        of_provider = [one for one in models if one.provider.casefold() == provider]
        found = _within(wanted[len(provider) + 1 :], of_provider)
        if found is not None:
            return found
    return _within(wanted, models)


def _prefixes(wanted: str, models: Sequence[ModelListing]) -> list[str]:
    """Known providers that a pattern may begin with, longest first: ids may hold slashes too."""
    providers = {one.provider.casefold() for one in models}
    return sorted((name for name in providers if wanted.startswith(f"{name}/")), key=len)[::-1]


def _within(wanted: str, models: Sequence[ModelListing]) -> ModelListing | None:
    exact = [
        one
        for one in models
        if wanted in (one.model_id.casefold(), f"{one.provider}/{one.model_id}".casefold())
    ]
    if exact:
        return _one_of(exact)
    partly = [
        one
        for one in models
        if wanted and (wanted in one.model_id.casefold() or wanted in one.name.casefold())
    ]
    if not partly:
        return None
    undated = [one for one in partly if not _DATED.search(one.model_id)]
    best = max(one.model_id for one in undated or partly)
    return _one_of([one for one in partly if one.model_id == best])


def _one_of(same: Sequence[ModelListing]) -> ModelListing:
    """The one of models with the same id that can be used."""
    if len(same) == 1:
        return same[0]
    usable = [one for one in same if one.usable]
    if len(usable) == 1:
        return usable[0]
    candidates = [f"{one.provider}/{one.model_id}" for one in same]
    told = f"Several providers have it: {', '.join(candidates)}."
    raise Refused("ambiguous_model", told, candidates=candidates)
