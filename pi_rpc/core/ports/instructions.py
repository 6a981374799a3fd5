"""Files that tell a model how to work."""

from pathlib import Path
from typing import Literal, Protocol

import msgspec

from pi_rpc.core.events import Diagnostic


class LoadedFile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A file that went into the prompt or can be called for."""

    kind: Literal["context", "system", "append_system", "skill", "prompt"]
    path: str
    sha256: str
    name: str | None = None
    description: str | None = None
    argument_hint: str | None = None
    is_hidden: bool = False
    """A skill that only the user calls."""
    origin: Literal["user", "project"] = "user"
    text: str = ""
    """Without byte order mark; of skills and prompts with the frontmatter."""


class Resources(msgspec.Struct, frozen=True):
    """Everything found for a folder, in the order it is used; of one name the first counts."""

    files: tuple[LoadedFile, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


class ResourceQuery(msgspec.Struct, frozen=True):
    """Where to look."""

    cwd: Path
    trusted: bool = False
    context_files: Literal["all", "repository", "trusted", "none"] = "all"
    skills: tuple[str, ...] = ()
    """More files and folders, of the user's settings and a trusted project's."""
    prompts: tuple[str, ...] = ()


class Instructions(Protocol):
    """Files that tell the model how to work: context files, prompts, skills."""

    async def load(self, query: ResourceQuery) -> Resources:
        """What is there now; an unchanged file is not read again."""
        ...

    async def text(self, path: Path) -> str:
        """The text of one of them as it is now. Raises Missing `file_not_found`, Outside."""
        ...
