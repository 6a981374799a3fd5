"""Context files, system prompts, skills and templates: where they are looked for, what counts."""

import hashlib
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.errors import Failure
from pi_rpc.core.ports.instructions import Instructions, ResourceQuery, Resources
from pi_rpc.workspace.choose import open_instructions
from pi_rpc.workspace.instructions import FILE_BYTES_MAX

pytestmark = pytest.mark.anyio


class Place:
    """A user's folder, his home and a project, and what stands in them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.agent, self.project = root / "agent", root / "proj"
        for folder in (self.agent, self.project, root / "home"):
            folder.mkdir()
        self.instructions: Instructions = open_instructions(self.agent, root / "home")

    def put(self, name: str, text: str = "x") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def skill(self, name: str, /, **fields: str) -> Path:
        listed = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in fields.items())
        return self.put(name, f"---\n{listed}---\nDo.\n")

    async def load(self, cwd: str = "proj", trusted: bool = True, **more: Any) -> Resources:
        return await self.instructions.load(ResourceQuery(self.root / cwd, trusted, **more))

    def names(self, found: Resources, kind: str) -> list[str]:
        """Paths below the root; what lies above the root is not ours to look at."""
        return [
            one.path.removeprefix(f"{self.root}/")
            for one in found.files
            if one.kind == kind and one.path.startswith(str(self.root))
        ]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def reasons(found: Resources) -> list[str]:
    return [one.reason for one in found.diagnostics]


async def test_context_files_come_from_the_general_to_the_particular(place: Place) -> None:
    place.put("agent/AGENTS.md")
    place.put("proj/AGENTS.md")
    for name in ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md"):
        place.put(f"proj/sub/{name}")
    found = await place.load("proj/sub", trusted=False)
    assert place.names(found, "context") == [
        "agent/AGENTS.md",
        "proj/AGENTS.md",
        "proj/sub/AGENTS.override.md",
    ]


async def test_a_context_file_that_cannot_be_read_gives_way_to_the_next(place: Place) -> None:
    place.put("proj/AGENTS.md", "x" * (FILE_BYTES_MAX + 1))
    place.put("proj/CLAUDE.md", "\ufeffyes")
    found = await place.load()
    assert place.names(found, "context") == ["proj/CLAUDE.md"]
    [told] = found.diagnostics
    assert (told.reason, told.path) == ("resource_skipped", str(place.project / "AGENTS.md"))
    [one] = [one for one in found.files if one.path.startswith(str(place.root))]
    assert one.text == "yes"
    assert one.sha256 == hashlib.sha256("\ufeffyes".encode()).hexdigest()


async def test_context_files_can_be_bounded(place: Place) -> None:
    place.put("agent/AGENTS.md")
    place.put("AGENTS.md")
    place.put("proj/AGENTS.md")
    place.put("proj/sub/AGENTS.md")
    (place.project / ".git").mkdir()
    within = await place.load("proj/sub", context_files="repository")
    assert place.names(within, "context") == [
        "agent/AGENTS.md",
        "proj/AGENTS.md",
        "proj/sub/AGENTS.md",
    ]
    untrusted = await place.load("proj/sub", trusted=False, context_files="trusted")
    assert place.names(untrusted, "context") == ["agent/AGENTS.md"]
    trusted = await place.load("proj/sub", context_files="trusted")
    assert "AGENTS.md" in place.names(trusted, "context")
    assert place.names(await place.load(context_files="none"), "context") == []


async def test_a_worktree_inside_its_checkout_is_told_by_its_own_file(place: Place) -> None:
    place.put("proj/AGENTS.md")
    place.put("proj/.git/worktrees/w/HEAD")
    place.put("proj/trees/w/.git", f"gitdir: {place.project}/.git/worktrees/w\n")
    found = await place.load("proj/trees/w")
    assert place.names(found, "context") == ["proj/AGENTS.md"]
    place.put("proj/trees/w/AGENTS.md")
    found = await place.load("proj/trees/w")
    assert place.names(found, "context") == ["proj/trees/w/AGENTS.md"]


async def test_a_trusted_projects_system_prompt_takes_the_place_of_the_users(
    place: Place,
) -> None:
    for name in ("SYSTEM.md", "APPEND_SYSTEM.md"):
        place.put(f"agent/{name}")
        place.put(f"proj/.pi/{name}")
    trusted = await place.load()
    assert place.names(trusted, "system") == ["proj/.pi/SYSTEM.md"]
    assert place.names(trusted, "append_system") == ["proj/.pi/APPEND_SYSTEM.md"]
    untrusted = await place.load(trusted=False)
    assert place.names(untrusted, "system") == ["agent/SYSTEM.md"]
    assert place.names(untrusted, "append_system") == ["agent/APPEND_SYSTEM.md"]


async def test_skills_of_a_project_go_before_the_users_and_a_name_counts_once(
    place: Place,
) -> None:
    place.skill("proj/.pi/skills/a/SKILL.md", name="a", description="theirs")
    place.skill("agent/skills/a/SKILL.md", name="a", description="mine")
    place.skill("agent/skills/b/SKILL.md", name="b", description="b")
    found = await place.load()
    assert place.names(found, "skill") == ["proj/.pi/skills/a/SKILL.md", "agent/skills/b/SKILL.md"]
    assert reasons(found) == ["name_collision"]
    untrusted = await place.load(trusted=False)
    assert place.names(untrusted, "skill") == ["agent/skills/a/SKILL.md", "agent/skills/b/SKILL.md"]


async def test_what_makes_a_skill(place: Place) -> None:
    place.skill("agent/skills/none/SKILL.md", name="none")
    place.put("agent/skills/torn/SKILL.md", "---\nwhat is this\n---\nx")
    place.skill("agent/skills/secret/SKILL.md", description="d", disable_model_invocation="true")
    place.skill("agent/skills/Odd/SKILL.md", name="Odd Name", description="d")
    place.skill("agent/skills/secret/deeper/SKILL.md", name="deeper", description="d")
    place.skill("agent/skills/plain.md", description="d")
    place.put("agent/skills/readme.md", "no skill")
    place.skill("agent/skills/group/below/SKILL.md", description="d")
    place.skill("agent/skills/group/plain.md", description="d")
    place.skill("agent/skills/.hidden/SKILL.md", description="d")
    place.skill("agent/skills/node_modules/x/SKILL.md", description="d")
    place.put("agent/skills/.gitignore", "built\n# no\n")
    place.skill("agent/skills/built/SKILL.md", description="d")
    found = await place.load()
    skills = {one.name: one.is_hidden for one in found.files if one.kind == "skill"}
    assert skills == {"Odd Name": False, "below": False, "skills": False, "secret": True}
    assert sorted((one.reason, Path(str(one.path)).parent.name) for one in found.diagnostics) == [
        ("skill_odd", "Odd"),
        ("skill_skipped", "none"),
        ("skill_skipped", "torn"),
    ]


async def test_shared_skills_above_count_for_a_trusted_project_only(place: Place) -> None:
    (place.project / ".git").mkdir()
    place.skill("proj/.agents/skills/a/SKILL.md", description="d")
    place.skill("proj/.agents/skills/plain.md", description="d")
    place.skill("proj/.agents/skills/group/plain.md", description="d")
    (place.project / "sub").mkdir()
    trusted = await place.load("proj/sub")
    assert place.names(trusted, "skill") == [
        "proj/.agents/skills/a/SKILL.md",
        "proj/.agents/skills/group/plain.md",
    ]
    assert place.names(await place.load("proj/sub", trusted=False), "skill") == []


async def test_one_file_is_one_skill_however_it_is_reached(place: Place) -> None:
    place.skill("agent/skills/a/SKILL.md", description="d")
    (place.agent / "skills" / "b").symlink_to(place.agent / "skills" / "a")
    (place.agent / "skills" / "a" / "loop").symlink_to(place.agent / "skills")
    (place.agent / "skills" / "gone").symlink_to(place.root / "nowhere")
    found = await place.load()
    assert place.names(found, "skill") == ["agent/skills/a/SKILL.md"]
    assert reasons(found) == []


async def test_templates_are_the_files_of_one_folder(place: Place) -> None:
    place.put("agent/prompts/a.md", "---\ndescription: mine\nargument-hint: FILE\n---\nx")
    place.put("agent/prompts/b.md", "First.\nSecond.")
    place.put("agent/prompts/sub/c.md")
    place.put("agent/prompts/d.txt")
    place.put("agent/prompts/e.md", "---\nnot a field\n---\nx")
    place.put("proj/.pi/prompts/a.md", "theirs")
    found = await place.load()
    listed = {one.name: one.description for one in found.files if one.kind == "prompt"}
    assert listed == {"a": "theirs", "b": "First.", "e": "---"}
    assert sorted(reasons(found)) == ["name_collision", "prompt_odd"]
    untrusted = await place.load(trusted=False)
    [mine] = [one for one in untrusted.files if one.name == "a"]
    assert (mine.description, mine.argument_hint, mine.origin) == ("mine", "FILE", "user")


async def test_what_only_looks_like_a_file_is_waited_for_by_nobody(place: Place) -> None:
    place.skill("proj/.pi/skills/a/SKILL.md", name="a", description="a")
    folder = place.root / "proj"
    for name in (".pi/skills/.gitignore", ".pi/skills/p.md", "AGENTS.md", ".git"):
        os.mkfifo(folder / name)
    (folder / ".pi" / "skills" / ".ignore").symlink_to("/dev/zero")
    (folder / ".pi" / "SYSTEM.md").symlink_to("/dev/zero")
    with anyio.fail_after(5):
        found = await place.load()
    assert place.names(found, "skill") == ["proj/.pi/skills/a/SKILL.md"]


async def test_settings_name_more_files_and_folders(place: Place) -> None:
    skill = place.skill("more/s/SKILL.md", description="d")
    prompt = place.put("more/p.md", "x")
    found = await place.load(skills=(str(place.root / "more/s"),), prompts=(str(prompt),))
    assert place.names(found, "skill") == [str(skill.relative_to(place.root))]
    assert place.names(found, "prompt") == ["more/p.md"]


async def test_a_changed_file_is_read_again(place: Place) -> None:
    path = place.put("proj/AGENTS.md", "one")
    first = await place.load()
    assert await place.load() == first
    path.write_text("three")
    [changed] = [one for one in (await place.load()).files if one.path == str(path)]
    assert changed.text == "three"
    assert await place.instructions.text(path) == "three"
    path.unlink()
    with pytest.raises(Failure) as caught:
        await place.instructions.text(path)
    assert caught.value.reason == "file_not_found"
