"""Times as the file format writes them, both ways."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso_from_ms(at_ms: float) -> str | None:
    """Unix milliseconds as ISO 8601 UTC with milliseconds and `Z`; None outside the calendar."""
    try:
        at = _EPOCH + timedelta(milliseconds=at_ms)
    except (OverflowError, ValueError):
        return None
    return at.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def stamp_at(at_ms: int) -> str:
    """As `iso_from_ms`, for a moment that a clock gave."""
    stamp = iso_from_ms(at_ms)
    assert stamp is not None, "clocks stay within the calendar"
    return stamp


def ms_from_iso(stamp: str) -> int | None:
    """ISO 8601 text as Unix milliseconds; None when it is no time."""
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return (at - _EPOCH) // timedelta(milliseconds=1)
