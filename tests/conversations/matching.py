"""Whether a message fits what was written down, and the names it binds.

- An object fits when each key given fits; keys not given are free. `"~"` says a key is not there.
- `"..."` fits anything. At an end of a longer text it stands for any text.
- A list fits place by place; `"..."` in it stands for any number of items.
- `"$name"` binds what stands there; bound, it must be the same again, also inside longer text.
"""

import re
from typing import Any

ANYTHING = "..."
ABSENT = "~"

_NAME = re.compile(r"\$[a-z]\w*")

Names = dict[str, Any]


def fit(pattern: Any, value: Any, names: Names) -> Names | None:
    """The names bound once `value` fits `pattern`, None when it does not."""
    match pattern:
        case str():
            return _fit_text(pattern, value, names)
        case dict():
            return _fit_object(pattern, value, names) if isinstance(value, dict) else None
        case list():
            return _fit_list(pattern, value, names) if isinstance(value, list) else None
        case _:
            # True equals 1 in Python and not in JSON.
            same = isinstance(pattern, bool) is isinstance(value, bool) and pattern == value
            return names if same else None


def _fit_text(pattern: str, value: Any, names: Names) -> Names | None:
    if pattern == ANYTHING:
        return names
    if _NAME.fullmatch(pattern):
        name = pattern[1:]
        if name not in names:
            return names | {name: value}
        return names if names[name] == value else None
    if not isinstance(value, str):
        return None
    wanted = filled(pattern, names)
    head, tail = wanted.startswith(ANYTHING), wanted.endswith(ANYTHING)
    inner = wanted.removeprefix(ANYTHING).removesuffix(ANYTHING)
    if head and tail:
        fits = inner in value
    elif head:
        fits = value.endswith(inner)
    elif tail:
        fits = value.startswith(inner)
    else:
        fits = value == wanted
    return names if fits else None


def _fit_object(pattern: dict[str, Any], value: dict[str, Any], names: Names) -> Names | None:
    bound: Names | None = names
    for key, wanted in pattern.items():
        if wanted == ABSENT:
            if key in value:
                return None
            continue
        if key not in value:
            return None
        bound = fit(wanted, value[key], bound or {})
        if bound is None:
            return None
    return bound


def _fit_list(pattern: list[Any], value: list[Any], names: Names) -> Names | None:
    if not pattern:
        return None if value else names
    first, rest = pattern[0], pattern[1:]
    if first == ANYTHING:
        for start in range(len(value) + 1):
            found = _fit_list(rest, value[start:], names)
            if found is not None:
                return found
        return None
    if not value:
        return None
    bound = fit(first, value[0], names)
    return None if bound is None else _fit_list(rest, value[1:], bound)


def filled(value: Any, names: Names) -> Any:
    """The value with every bound name in its place; a text that is nothing else may become any."""
    match value:
        case str() if _NAME.fullmatch(value) and value[1:] in names:
            return names[value[1:]]
        case str():
            return _NAME.sub(lambda found: str(names.get(found[0][1:], found[0])), value)
        case dict():
            return {key: filled(inner, names) for key, inner in value.items()}
        case list():
            return [filled(inner, names) for inner in value]
        case _:
            return value
