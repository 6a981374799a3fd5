"""What versions of a folder may cost."""

import msgspec


class VersionLimits(msgspec.Struct, frozen=True, rename="camel"):
    """Beyond these a file is left out and named, or the folder has no versions and says so."""

    file_bytes: int = 32 * 1024 * 1024
    """A larger file is left out; its size and time still tell whether it changed."""
    files: int = 200_000
    """How many files one snapshot may have to look at closely."""
    bytes: int = 4 * 1024 * 1024 * 1024
    """How much it may have to read of them."""
    first_s: float = 60.0
    """How long a snapshot may take that begins from nothing."""
    next_s: float = 15.0
    """How long any other may take, and any other act."""
