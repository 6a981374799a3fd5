"""Settings and trust in files that other programs write too."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from pi_rpc.core.errors import Failure
from pi_rpc.core.ports.preferences import KeptSettings, Trust
from pi_rpc.store.choose import open_preferences
from pi_rpc.store.preferences import LOCK_STALE_S, FilePreferences

pytestmark = pytest.mark.anyio


class Place:
    """A user's folder, his home and a project, and what stands in them."""

    def __init__(self, root: Path) -> None:
        self.agent, self.home, self.project = root / "agent", root / "home", root / "home" / "p"
        self.agent.mkdir()
        self.project.mkdir(parents=True)

    def put(self, path: Path, content: Any) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def kept(self, flag: Any = None) -> FilePreferences:
        return open_preferences(self.agent, self.home, flag)

    async def read(self, flag: Any = None, cwd: Path | None = None) -> KeptSettings:
        return await self.kept(flag).read(cwd or self.project)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def values(kept: KeptSettings) -> dict[str, Any]:
    return {layer.name: layer.values for layer in kept.layers}


async def test_without_files_nothing_is_set_and_nothing_wants_trust(place: Place) -> None:
    kept = await place.read()
    assert values(kept) == {"user": {}, "project": {}}
    assert kept.trust == Trust(True, "nothing_requires")
    assert kept.diagnostics == []


async def test_a_project_nobody_decided_on_has_no_settings_and_that_is_told(place: Place) -> None:
    own = place.put(place.project / ".pi/settings.json", {"steeringMode": "all"})
    kept = await place.read()
    assert values(kept) == {"user": {}}
    assert kept.trust == Trust(False, "nobody", [str(own)])
    [told] = kept.diagnostics
    assert (told.severity, told.reason, told.path) == (
        "warning",
        "trust_required",
        str(place.project),
    )


@pytest.mark.parametrize("way", ["flag", "setting", "saved", "above"])
async def test_a_project_is_trusted_by_flag_setting_or_saved_decision(
    place: Place, way: str
) -> None:
    place.put(place.project / ".pi/settings.json", {"steeringMode": "all"})
    if way == "setting":
        place.put(place.agent / "settings.json", {"defaultProjectTrust": "always"})
    elif way in ("saved", "above"):
        folder = place.project if way == "saved" else place.home
        place.put(place.agent / "trust.json", {str(folder): True})
    kept = await place.read("always" if way == "flag" else None)
    assert kept.trust.trusted
    assert kept.trust.decided_by == ("saved" if way == "above" else way)
    assert values(kept)["project"] == {"steeringMode": "all"}
    assert kept.diagnostics == []


async def test_a_flag_goes_over_what_was_saved_and_the_nearest_decision_counts(
    place: Place,
) -> None:
    place.put(place.project / ".pi/settings.json", {})
    place.put(place.agent / "trust.json", {str(place.home): False, str(place.project): True})
    assert (await place.read()).trust.trusted
    assert (await place.read("never")).trust == Trust(
        False, "flag", [str(place.project / ".pi/settings.json")]
    )


async def test_a_project_cannot_say_that_it_is_trusted(place: Place) -> None:
    place.put(place.project / ".pi/settings.json", {"defaultProjectTrust": "always"})
    assert not (await place.read()).trust.trusted


@pytest.mark.parametrize("name", [".pi/SYSTEM.md", ".pi/skills/a.md", ".agents/skills/a.md"])
async def test_what_instructs_the_model_wants_trust(place: Place, name: str) -> None:
    place.put(place.project / name, "x")
    assert not (await place.read()).trust.trusted


async def test_skills_above_want_trust_but_not_those_of_the_home(place: Place) -> None:
    place.put(place.home / ".agents/skills/a.md", "x")
    assert (await place.read()).trust.trusted
    place.put(place.home.parent / ".agents/skills/a.md", "x")
    assert not (await place.read()).trust.trusted


async def test_decisions_that_cannot_be_read_are_no_yes(place: Place) -> None:
    place.put(place.agent / "trust.json", "[true]")
    kept = await place.read()
    assert not kept.trust.trusted
    assert [one.reason for one in kept.diagnostics] == ["bad_trust"]


async def test_a_decision_is_saved_sorted_and_forgotten(place: Place) -> None:
    kept = place.kept()
    await kept.decide_trust(place.project, True)
    await kept.decide_trust(place.agent, False)
    stored = json.loads((place.agent / "trust.json").read_text())
    assert list(stored.items()) == [(str(place.agent), False), (str(place.project), True)]
    await kept.decide_trust(place.agent, None)
    assert json.loads((place.agent / "trust.json").read_text()) == {str(place.project): True}


async def test_a_byte_order_mark_is_no_harm(place: Place) -> None:
    place.put(place.agent / "settings.json", '\ufeff{"steeringMode": "all"}')
    assert values(await place.read())["user"] == {"steeringMode": "all"}


@pytest.mark.parametrize("text", ["{bad", "[1]", "[" * 100_000, '"' + "x" * (1 << 20)])
async def test_a_file_that_is_none_counts_as_empty_and_is_never_written(
    place: Place, text: str
) -> None:
    path = place.put(place.agent / "settings.json", text)
    kept = await place.read()
    assert values(kept)["user"] == {}
    assert [(one.reason, one.path) for one in kept.diagnostics] == [("bad_settings", str(path))]
    with pytest.raises(Failure) as caught:
        await place.kept().write("steeringMode", "all")
    assert caught.value.reason == "settings_unreadable"
    assert path.read_text() == text
    assert [one.name for one in place.agent.iterdir()] == ["settings.json"]


async def test_one_field_is_written_and_links_and_modes_stay(place: Place, tmp_path: Path) -> None:
    target = place.put(tmp_path / "dotfiles/settings.json", {"theme": "x", "retry": {"a": 1}})
    target.chmod(0o644)
    (place.agent / "settings.json").symlink_to(target)
    await place.kept().write("retry.maxRetries", 2)
    assert (place.agent / "settings.json").is_symlink()
    assert target.stat().st_mode & 0o777 == 0o644
    assert (
        target.read_text()
        == json.dumps({"theme": "x", "retry": {"a": 1, "maxRetries": 2}}, indent=2) + "\n"
    )


async def test_changes_at_the_same_time_are_all_there(place: Place) -> None:
    keys = ["retry.maxRetries", "retry.baseDelayMs", "compaction.reserveTokens"]
    async with anyio.create_task_group() as tasks:
        for key in keys:
            tasks.start_soon(place.kept().write, key, 5)
    assert json.loads((place.agent / "settings.json").read_text()) in [
        {"retry": {"maxRetries": 5, "baseDelayMs": 5}, "compaction": {"reserveTokens": 5}}
    ]


async def test_a_lock_that_is_held_is_waited_for_in_vain_and_one_left_behind_is_broken(
    place: Place,
) -> None:
    import os  # noqa: PLC0415
    import time  # noqa: PLC0415

    lock = place.agent / "settings.json.lock"
    lock.mkdir()
    with pytest.raises(Failure) as caught:
        await place.kept().write("steeringMode", "all")
    assert (caught.value.kind, caught.value.reason) == ("locked", "settings_locked")
    past = time.time() - 2 * LOCK_STALE_S
    os.utime(lock, (past, past))
    await place.kept().write("steeringMode", "all")
    assert not lock.exists()
    assert json.loads((place.agent / "settings.json").read_text()) == {"steeringMode": "all"}
