"""Context files, system prompts, skills and prompt templates, found in the folders above.

Promises
- What was skipped is told, with its path and reason.
- A file is read again only when its size or time has changed.
- What needs trust is not even looked for in a project that is not trusted.
- Every file, folder and walk is bounded.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from anyio import to_thread

from pi_rpc.core.errors import Missing, Outside
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.instructions import (
    DESCRIPTION_CHARS_MAX,
    Document,
    FrontmatterError,
    document_from,
    is_hidden,
    name_problem,
    summary_of,
)
from pi_rpc.core.ports.instructions import LoadedFile, ResourceQuery, Resources
from pi_rpc.workspace.reading import head_of

CONTEXT_NAMES = ("AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD")
"""Of these the first that is there counts for its folder."""

FILE_BYTES_MAX = 1024 * 1024
"""A larger file is nothing that anybody wrote for a model."""

FILES_MAX = 1000
"""Skills of one folder; beyond them the walk ends, and that is told."""

DEPTH_MAX = 12

_PROJECT = ".pi"


class FileInstructions:
    """Instructions in files, those of the user in the agent folder."""

    def __init__(self, agent_dir: Path, home: Path) -> None:
        self._agent_dir = agent_dir
        self._home = home
        self._read: dict[Path, tuple[tuple[int, int, int], str, str]] = {}
        """By path: what says that a file is unchanged, its text and its hash."""

    async def load(self, query: ResourceQuery) -> Resources:
        """What is there now."""
        return await to_thread.run_sync(self._load, query)

    async def text(self, path: Path) -> str:
        """The text of a file as it is now. Raises Missing `file_not_found`, Outside."""
        return await to_thread.run_sync(lambda: self._text_of(path)[0])

    def _load(self, query: ResourceQuery) -> Resources:
        return _Look(self, query, self._agent_dir, self._home).found()

    def _text_of(self, path: Path) -> tuple[str, str]:
        try:
            stat = path.stat()
            mark = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
            held = self._read.get(path)
            if held is not None and held[0] == mark:
                return held[1:]
            if stat.st_size > FILE_BYTES_MAX:
                raise Outside("file_too_large", f"larger than {FILE_BYTES_MAX} bytes")
            if not path.is_file():
                raise Outside("not_a_file", "not a regular file")
            raw = head_of(path, FILE_BYTES_MAX + 1)
        except FileNotFoundError as error:
            raise Missing("file_not_found", f"no such file: {path}", path=str(path)) from error
        except OSError as error:
            raise Outside("read_failed", str(error.strerror), path=str(path)) from error
        text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
        digest = hashlib.sha256(raw).hexdigest()
        if len(self._read) >= 4 * FILES_MAX:
            self._read.clear()
        self._read[path] = (mark, text, digest)
        return text, digest

    def read(self, path: Path) -> tuple[str, str]:
        """Text and hash of a file. Raises Missing, Outside."""
        return self._text_of(path)


class _Look:
    """One look at everything a folder is told by."""

    def __init__(
        self, files: FileInstructions, query: ResourceQuery, agent_dir: Path, home: Path
    ) -> None:
        self._files = files
        self._query = query
        self._agent_dir = agent_dir
        self._home = home
        self._found: list[LoadedFile] = []
        self._odd: list[Diagnostic] = []
        self._seen: set[str] = set()
        """Real paths of skills: one file is one skill, however it is reached."""

    def found(self) -> Resources:
        self._context_files()
        self._system_files()
        self._skills()
        self._prompts()
        return Resources(tuple(self._found), tuple(self._odd))

    def _tell(self, reason: str, text: str, path: Path) -> None:
        self._odd.append(Diagnostic("warning", reason, text, path=str(path)))

    def _context_files(self) -> None:
        query = self._query
        wanted = query.context_files
        if wanted == "none":
            return
        folders = [self._agent_dir]
        if wanted != "trusted" or query.trusted:
            folders += _folders_above(query.cwd, wanted == "repository")
        seen: set[str] = set()
        for folder in folders:
            for path in _named(folder):
                if str(path) in seen:
                    break
                text = self._readable(path)
                if text is not None:
                    seen.add(str(path))
                    self._add("context", path, folder == self._agent_dir)
                    break

    def _readable(self, path: Path) -> str | None:
        try:
            return self._files.read(path)[0]
        except (Missing, Outside) as failure:
            self._tell("resource_skipped", failure.message, path)
            return None

    def _add(self, kind: str, path: Path, is_users: bool, **more: object) -> None:
        text, digest = self._files.read(path)
        fields = {
            "kind": kind,
            "path": str(path),
            "sha256": digest,
            "origin": "user" if is_users else "project",
            "text": text,
            **more,
        }
        self._found.append(LoadedFile(**fields))  # type: ignore[arg-type]

    def _system_files(self) -> None:
        project = self._query.cwd / _PROJECT
        for kind, name in (("system", "SYSTEM.md"), ("append_system", "APPEND_SYSTEM.md")):
            for path in (project / name, self._agent_dir / name):
                if path.parent == project and not self._query.trusted:
                    continue
                if path.is_file() and self._readable(path) is not None:
                    # A project's takes the place of the user's; they are never put together.
                    self._add(kind, path, path.parent != project)
                    break

    def _skills(self) -> None:
        query = self._query
        names: dict[str, str] = {}
        for folder, is_users, has_plain_above in self._skill_folders():
            for number, path in enumerate(_skill_files(folder, has_plain_above)):
                if number >= FILES_MAX:
                    self._tell("resource_skipped", f"more than {FILES_MAX} skills", folder)
                    break
                self._skill(path, is_users, names)
        for given in query.skills:
            path = Path(given)
            for one in _skill_files(path, True) if path.is_dir() else [path]:
                self._skill(one, True, names)

    def _skill_folders(self) -> Iterator[tuple[Path, bool, bool]]:
        if self._query.trusted:
            cwd = self._query.cwd
            yield cwd / _PROJECT / "skills", False, True
            for folder in reversed(_folders_above(cwd, True)):
                if folder != self._home:
                    yield folder / ".agents" / "skills", False, False
        yield self._agent_dir / "skills", True, True
        yield self._home / ".agents" / "skills", True, False

    def _skill(self, path: Path, is_users: bool, names: dict[str, str]) -> None:
        real = os.path.realpath(path)
        if real in self._seen:
            return
        self._seen.add(real)
        text = self._readable(path)
        if text is None:
            return
        is_named = path.name == "SKILL.md"
        try:
            document = document_from(text)
        except FrontmatterError as problem:
            if is_named:
                self._tell("skill_skipped", f"the frontmatter cannot be read: {problem}", path)
            return
        description = document.fields.get("description", "").strip()
        if not description:
            if is_named:
                self._tell("skill_skipped", "a skill needs a description", path)
            return
        name = document.fields.get("name", "").strip() or path.parent.name
        problem_text = name_problem(name)
        if len(description) > DESCRIPTION_CHARS_MAX:
            problem_text = f"the description is longer than {DESCRIPTION_CHARS_MAX} characters"
        if problem_text is not None:
            self._tell("skill_odd", problem_text, path)
        if name in names:
            self._tell("name_collision", f"{name} is {names[name]} already", path)
            return
        names[name] = str(path)
        hidden = is_hidden(document)
        self._add("skill", path, is_users, name=name, description=description, is_hidden=hidden)

    def _prompts(self) -> None:
        names: dict[str, str] = {}
        project = self._query.cwd / _PROJECT / "prompts"
        folders = [(project, False)] if self._query.trusted else []
        folders.append((self._agent_dir / "prompts", True))
        for folder, is_users in folders:
            for path in _templates(folder):
                self._prompt(path, is_users, names)
        for given in self._query.prompts:
            path = Path(given)
            for one in _templates(path) if path.is_dir() else [path]:
                self._prompt(one, True, names)

    def _prompt(self, path: Path, is_users: bool, names: dict[str, str]) -> None:
        text = self._readable(path)
        if text is None:
            return
        try:
            document = document_from(text)
        except FrontmatterError as problem:
            self._tell("prompt_odd", f"the frontmatter cannot be read: {problem}", path)
            document = Document({}, text)
        name = path.stem
        if name in names:
            self._tell("name_collision", f"{name} is {names[name]} already", path)
            return
        names[name] = str(path)
        self._add(
            "prompt",
            path,
            is_users,
            name=name,
            description=summary_of(document),
            argument_hint=document.fields.get("argument-hint") or None,
        )


def _folders_above(cwd: Path, within_repository: bool) -> list[Path]:
    """The folders from the root, of the system or of the repository, down to this one."""
    folders = [cwd, *cwd.parents]
    if within_repository:
        root = next((at for at, one in enumerate(folders) if (one / ".git").exists()), 0)
        folders = folders[: root + 1]
    # A worktree may lie inside its main checkout, whose files are those of another branch.
    if (cwd_root := _worktree_of(folders)) is not None:
        main = _main_checkout(cwd_root)
        folders = [one for one in folders if one != main or not list(_named(cwd_root))]
    return folders[::-1]


def _worktree_of(folders: list[Path]) -> Path | None:
    return next((folder for folder in folders if (folder / ".git").is_file()), None)


def _main_checkout(worktree: Path) -> Path | None:
    """The checkout a worktree belongs to, as its `.git` file says; None when it says nothing."""
    try:
        said = head_of(worktree / ".git", 4096).decode("utf-8", "replace")
    except OSError:
        return None
    given = said.partition("gitdir:")[2].strip()
    git = (worktree / given).parent.parent
    return git.parent if given and git.name == ".git" else None


def _named(folder: Path) -> Iterator[Path]:
    for name in CONTEXT_NAMES:
        path = folder / name
        if path.is_file():
            yield path


def _templates(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)[:FILES_MAX]
    except OSError:
        return []
    return [folder / name for name in names if name.endswith(".md") and (folder / name).is_file()]


def _skill_files(folder: Path, has_plain_above: bool) -> Iterator[Path]:
    """The files of skills in and below a folder; below a SKILL.md nothing is looked for.

    Plain files are skills in the folder itself where it is one of ours, and below it where it is
    one that several programs share.
    """
    yield from _below(folder, has_plain_above, 0, _Ignored.of(folder, ()), set())


class _Ignored(msgspec.Struct, frozen=True):
    """What ignore files on the way say: plain names and paths, as much as skills need."""

    rules: tuple[tuple[Path, str], ...]

    @classmethod
    def of(cls, folder: Path, above: tuple[tuple[Path, str], ...]) -> "_Ignored":
        rules = list(above)
        for name in (".gitignore", ".ignore", ".fdignore"):
            try:
                lines = (
                    head_of(folder / name, FILE_BYTES_MAX).decode("utf-8", "replace").split("\n")
                )
            except OSError:
                continue
            rules += [
                (folder, line.strip())
                for line in lines
                if line.strip() and not line.startswith(("#", "!"))
            ]
        return cls(tuple(rules))

    def covers(self, path: Path) -> bool:
        for folder, rule in self.rules:
            pattern = rule.strip("/")
            if "/" in pattern or rule.startswith("/"):
                if path.relative_to(folder).match(pattern) and len(
                    path.relative_to(folder).parts
                ) == len(Path(pattern).parts):
                    return True
            elif Path(path.name).match(pattern):
                return True
        return False


def _below(
    folder: Path, has_plain: bool, depth: int, ignored: _Ignored, seen: set[str]
) -> Iterator[Path]:
    real = os.path.realpath(folder)
    if real in seen or depth > DEPTH_MAX or len(seen) > FILES_MAX:
        return
    seen.add(real)
    if (folder / "SKILL.md").is_file():
        yield folder / "SKILL.md"
        return
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError:
        return
    for name in names:
        path = folder / name
        if name.startswith(".") or name == "node_modules" or ignored.covers(path):
            continue
        if path.is_dir():
            below = _Ignored.of(path, ignored.rules)
            # Where plain files count above they do not below, and the other way round.
            yield from _below(
                path, not has_plain if depth == 0 else has_plain, depth + 1, below, seen
            )
        elif has_plain and name.endswith(".md") and path.is_file():
            yield path
