"""Each session knows its own changes, also when several are at work in one folder."""

from pathlib import Path

from pi_rpc.core.ports.workspace import PathChange
from pi_rpc.session.batches import Batches


def changed(*paths: str) -> list[PathChange]:
    return [PathChange(path, "modified", "1", "2") for path in paths]


def own(batches: list[PathChange]) -> list[str]:
    return [change.path for change in batches]


def test_alone_a_command_owns_whatever_changed(tmp_path: Path) -> None:
    batch = Batches().begin(tmp_path, "one")
    batch.claim("bash", {"command": "make"})
    assert own(batch.own(changed("a", "b"))) == ["a", "b"]


def test_alone_a_file_tool_owns_what_it_named(tmp_path: Path) -> None:
    batch = Batches().begin(tmp_path, "one")
    batch.claim("write", {"path": "a"})
    batch.claim("edit", {"path": str(tmp_path / "d" / "b")})
    assert own(batch.own(changed("a", "d/b", "users"))) == ["a", "d/b"]


def test_a_name_versions_spell_otherwise_owns_what_changed(tmp_path: Path) -> None:
    batch = Batches().begin(tmp_path, "one")
    batch.claim("write", {"path": "@a"})
    assert own(batch.own(changed("a"))) == ["a"]


def test_a_link_owns_the_file_behind_it(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    batch = Batches().begin(tmp_path, "one")
    batch.claim("write", {"path": "link"})
    assert own(batch.own(changed("real", "other"))) == ["real"]


def test_what_lies_outside_the_folder_is_nobodys(tmp_path: Path) -> None:
    batch = Batches().begin(tmp_path / "in", "one")
    batch.claim("write", {"path": "../out"})
    assert batch.claims == set() and not batch.is_open


def test_of_two_at_once_each_owns_what_it_named(tmp_path: Path) -> None:
    batches = Batches()
    one, other = batches.begin(tmp_path, "one"), batches.begin(tmp_path, "other")
    one.claim("write", {"path": "a"})
    other.claim("bash", {"command": "make"})
    both = changed("a", "b")
    assert own(one.own(both)) == ["a"]
    assert own(other.own(both)) == ["b"]


def test_of_two_commands_at_once_nobody_owns_what_changed(tmp_path: Path) -> None:
    batches = Batches()
    one, other = batches.begin(tmp_path, "one"), batches.begin(tmp_path, "other")
    for batch in (one, other):
        batch.claim("bash", {"command": "make"})
    batches.end(one)
    batches.end(one)
    assert one.own(changed("a")) == other.own(changed("a")) == []


def test_a_batch_in_a_folder_above_is_met_and_one_beside_is_not(tmp_path: Path) -> None:
    batches = Batches()
    above, below = batches.begin(tmp_path, "one"), batches.begin(tmp_path / "a", "other")
    beside = batches.begin(tmp_path / "b", "third")
    assert above.met == [below, beside]
    assert below.met == beside.met == [above]


def test_a_batch_that_is_over_is_met_no_more(tmp_path: Path) -> None:
    batches = Batches()
    batches.end(batches.begin(tmp_path, "one"))
    assert batches.begin(tmp_path, "other").met == []


def test_two_of_one_session_do_not_stand_in_each_others_way(tmp_path: Path) -> None:
    batches = Batches()
    run, command = batches.begin(tmp_path, "one"), batches.begin(tmp_path, "one")
    for batch in (run, command):
        batch.claim("bash", {"command": "make"})
    assert own(run.own(changed("a"))) == own(command.own(changed("a"))) == ["a"]
