"""A plan touches what differs and is ours, and deletes only what we made."""

import pytest

from pi_rpc.core.bindings import Binding, Change
from pi_rpc.core.ports.workspace import PathChange
from pi_rpc.core.restoring import Own, own_changes, plan_restore


def binding(at: str, *changes: Change, denied: list[str] | None = None) -> Binding:
    return Binding(0, at, -1, None, None, changes, more=False, denied=denied)


def tools(*changes: Change) -> Binding:
    return binding("after_tools", *changes)


@pytest.mark.parametrize(
    ("bindings", "own"),
    [
        ([tools(("f", None, "1"))], Own(("1",), created=True)),
        ([tools(("f", "0", "1"))], Own(("1",), created=False)),
        ([tools(("f", None, "1")), tools(("f", "1", "2"))], Own(("2",), created=True)),
        # The user made another of it meanwhile.
        ([tools(("f", None, "1")), tools(("f", "user", "2"))], Own(("2",), created=False)),
        ([tools(("f", "0", None)), tools(("f", None, "2"))], Own(("2",), created=True)),
        ([tools(("f", "0", "1")), binding("restore", ("f", "1", "0"))], Own(("1", "0"), False)),
        (
            [
                tools(("f", "0", "1")),
                binding("restore", ("f", "1", "0")),
                binding("restore", denied=[]),
            ],
            Own(("0",), created=False),
        ),
        (
            [
                tools(("f", "0", "1")),
                binding("restore", ("f", "1", "0")),
                binding("restore", denied=["f"]),
            ],
            Own(("1",), created=False),
        ),
    ],
)
def test_what_a_session_did_is_read_off_its_bindings(bindings: list[Binding], own: Own) -> None:
    assert own_changes(bindings) == {"f": own}


MADE, EDITED = Own(("1",), created=True), Own(("1",), created=False)


@pytest.mark.parametrize(
    ("change", "own", "asked", "confirmed", "what"),
    [
        (("1", "0"), EDITED, False, False, "restored"),
        (("1", None), MADE, False, False, "restored"),
        (("1", None), EDITED, False, True, "refused not_created_here"),
        (("user", "0"), EDITED, False, False, "refused edited_since"),
        (("user", "0"), EDITED, False, True, "restored"),
        ((None, "0"), EDITED, False, False, "refused edited_since"),
        (("user", "0"), None, False, True, "left not_ours"),
        (("user", "0"), None, True, False, "refused not_ours"),
        (("user", "0"), None, True, True, "restored"),
        (("user", None), None, True, True, "refused not_created_here"),
    ],
)
def test_each_difference_is_decided_for_itself(
    change: tuple[str | None, str | None],
    own: Own | None,
    asked: bool,
    confirmed: bool,
    what: str,
) -> None:
    plan = plan_restore(
        [PathChange("d/f", "modified", *change)],
        {} if own is None else {"d/f": own},
        {"d/"} if asked else None,
        {"d/f"} if confirmed else set(),
    )
    told = ["restored" for _ in plan.restore]
    told += [f"refused {one.reason}" for one in plan.refused]
    told += [f"left {one.reason}" for one in plan.left]
    assert told == [what]


def test_what_nobody_asked_for_is_left_and_what_is_not_kept_is_refused() -> None:
    changes = [
        PathChange("a", "modified", "1", "0"),
        PathChange("ab", "modified", "1", "0"),
        PathChange("big", "modified", None, None, kept=False),
    ]
    plan = plan_restore(changes, {"a": EDITED, "big": EDITED}, {"a", "big"}, set())
    assert [one.path for one in plan.restore] == ["a"]
    assert [(one.path, one.reason) for one in plan.left] == [("ab", "not_asked")]
    assert [(one.path, one.reason) for one in plan.refused] == [("big", "not_kept")]
