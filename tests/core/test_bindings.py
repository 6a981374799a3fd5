"""Which version holds at a leaf, read off the entries of its path and of what hangs beside it."""

from typing import Any

from pi_rpc.core.bindings import Bindings, binding_body, effects_body, restored_body
from pi_rpc.core.entries import Body, entry_object
from pi_rpc.core.scopes import scopes_body
from pi_rpc.core.tree import ROOT
from tests.core.trees import TIME, Growing, message


class Written:
    """A session that grows, named rows and all."""

    def __init__(self) -> None:
        self.growing = Growing()
        self.bindings = Bindings(self.growing.tree)
        self.rows: dict[str, int] = {}

    def says(self, name: str, parent: str | None, role: str, **fields: Any) -> str:
        stored = message(name, role, **fields) | {"parentId": parent}
        self.rows[name] = self.growing.add(stored)
        return name

    def ran(self, name: str, parent: str, tool: str = "bash") -> str:
        return self.says(name, parent, "toolResult", toolName=tool, toolCallId="c", isError=False)

    def binds(self, name: str, parent: str | None, body: Body) -> str:
        self.rows[name] = self.growing.add(entry_object(body, name, parent, TIME))
        return name

    def version(self, leaf: str | None) -> str | None:
        found = self.bindings.of_leaf(ROOT if leaf is None else self.rows[leaf])
        return None if found is None else found.version


def named(at: Any, version: str, leaf: str | None) -> Body:
    return binding_body(at, leaf, "git", version)


def test_a_start_named_late_holds_for_everything_above_it() -> None:
    w = Written()
    w.says("u", None, "user")
    w.binds("b", "u", named("start", "v0", None))
    w.says("a", "b", "assistant")
    w.ran("r", "a")
    w.binds("b1", "r", named("after_tools", "v1", "r"))
    w.says("a2", "b1", "assistant")
    assert [w.version(leaf) for leaf in (None, "u", "a", "r", "b1", "a2")] == [
        "v0",
        "v0",
        "v0",
        "v1",
        "v1",
        "v1",
    ]


def test_after_a_call_that_nobody_bound_nothing_holds() -> None:
    w = Written()
    w.says("u", None, "user")
    w.binds("b", "u", named("start", "v0", None))
    w.says("a", "b", "assistant")
    w.ran("r", "a")
    w.says("a2", "r", "assistant")
    assert w.version("a2") is None
    assert w.bindings.unbound_top(w.rows["a2"]) == w.rows["a2"]
    w.ran("r2", "a", tool="read")
    assert w.version("r2") == "v0"


def test_a_place_keeps_its_own_state_when_another_route_leaves_from_it() -> None:
    w = Written()
    w.says("p", None, "user")
    w.binds("b", "p", named("start", "v0", "p"))
    w.binds("b2", "p", named("before_tools", "v1", "p"))
    w.says("x", "b2", "assistant")
    assert (w.version("p"), w.version("x")) == ("v0", "v1")
    w.binds("m", "p", named("manual", "v2", "p"))
    assert w.version("p") == "v2"


def test_a_restore_binds_nothing() -> None:
    w = Written()
    w.says("p", None, "user")
    w.binds("b", "p", named("start", "v0", None))
    body = binding_body("restore", "p", "git", "v1", before="v2", changes=[("f", "1", None)])
    w.binds("r", "b", body)
    w.binds("d", "r", restored_body(["g"]))
    assert w.version("d") == "v0"
    assert [(one.changes, one.denied) for one in w.bindings.all()] == [
        ((), None),
        ((("f", "1", None),), None),
        ((), ["g"]),
    ]


def test_a_batch_that_changed_files_was_seen_and_another_was_not() -> None:
    w = Written()
    w.says("a", None, "assistant")
    w.ran("r1", "a")
    w.ran("r2", "r1", tool="edit")
    body = binding_body("after_tools", "r2", "git", "v", before="u", changes=[("f", None, "1")])
    w.binds("b", "r2", body)
    w.says("a2", "b", "assistant")
    w.ran("r3", "a2")
    w.binds("b2", "r3", binding_body("after_tools", "r3", "git", "v", before="v"))
    seen = [w.bindings.was_seen(w.rows[name]) for name in ("r1", "r2", "r3", "a")]
    assert seen == [True, True, False, False]


def test_an_effect_counts_until_it_is_made_good_and_stays_where_it_was_told() -> None:
    w = Written()
    w.says("u", None, "user")
    effect = {"id": "e", "kind": "mail", "summary": "told"}
    w.binds("e1", "u", effects_body([effect, {"kind": "no id"}]))
    assert [one.row for one in w.bindings.effects()] == [w.rows["e1"]]
    w.binds("e2", "e1", effects_body([effect | {"summary": "again"}]))
    [again] = w.bindings.effects()
    assert (again.row, again.summary) == (w.rows["e1"], "again")
    w.binds("e3", "e2", effects_body([effect | {"compensated": True}]))
    assert w.bindings.effects() == []


def test_scopes_are_bound_each_by_itself_and_beside_the_files() -> None:
    w = Written()
    w.says("u", None, "user")
    w.binds("b", "u", scopes_body("start", None, {"database": "d0"}))
    w.says("a", "b", "assistant")
    w.ran("r", "a")
    w.says("end", "r", "assistant")
    w.binds("f", "end", named("after_tools", "v1", "end"))
    w.binds("n", "f", scopes_body("after_tools", "end", {"database": "d1", "queue": "q1"}))
    held = {
        name: [w.bindings.scope_at(name, ROOT if at is None else w.rows[at]) for at in PLACES]
        for name in ("database", "queue", "files", "nobody")
    }
    assert held == {
        "database": ["d0", "d0", "d0", None, "d1", "d1"],
        "queue": [None, None, None, None, "q1", "q1"],
        "files": [None] * 6,
        "nobody": [None] * 6,
    }
    assert w.bindings.scopes() == {"database", "queue"}
    assert (w.version("end"), w.version("n")) == ("v1", "v1")
    tops = [w.bindings.unbound_scope_top(name, w.rows["a"]) for name in ("database", "queue")]
    assert tops == [w.rows["a"], ROOT]


PLACES = [None, "u", "a", "r", "end", "n"]


def test_a_scope_that_is_brought_back_is_not_bound_by_that() -> None:
    w = Written()
    w.says("u", None, "user")
    w.binds("b", "u", scopes_body("restore", "u", {"database": "d0"}, {"database": "d1"}))
    assert w.bindings.scope_at("database", w.rows["b"]) is None
    assert w.bindings.scopes() == frozenset()


def test_what_is_no_binding_of_ours_is_passed_over() -> None:
    w = Written()
    w.says("u", None, "user")
    for name, data in (
        ("x1", None),
        ("x2", {"at": "manual"}),
        ("x3", {"at": "start", "leaf": 5, "scopes": []}),
        ("x4", {"at": "later", "leaf": None, "scopes": {"files": {"version": "v"}}}),
        (
            "x5",
            {"at": "after_tools", "scopes": {"files": {"version": 5}}, "changed": [["f", 1], 2]},
        ),
    ):
        w.binds(name, "u", Body("custom", {"customType": "pi_rpc.workspace", "data": data}))
    assert [w.version(name) for name in ("u", "x1", "x2", "x3", "x4", "x5")] == [None] * 6


def test_many_changes_are_cut_and_said_to_be() -> None:
    changes = [(f"f{number}", None, "1") for number in range(2001)]
    data = binding_body("after_tools", "r", "git", "v", before="u", changes=changes).fields["data"]
    assert (len(data["changed"]), data["more"]) == (2000, True)


def asks(w: Written, name: str, parent: str, *calls: str, tool: str = "bash", **more: Any) -> str:
    blocks = [{"type": "toolCall", "id": call, "name": tool, "arguments": {}} for call in calls]
    return w.says(name, parent, "assistant", content=blocks, **more)


def test_a_call_without_any_result_counts_as_one_that_nobody_bound() -> None:
    w = Written()
    w.says("u", None, "user")
    w.binds("b", "u", named("start", "v0", None))
    asks(w, "a", "b", "c", "d")
    assert (w.version("b"), w.version("a")) == ("v0", None)
    assert w.bindings.unbound_top(w.rows["a"]) == w.rows["a"]
    w.says("r", "a", "toolResult", toolName="read", toolCallId="c")
    assert w.version("r") is None
    w.binds("m", "r", effects_body([]))
    w.says("r2", "m", "toolResult", toolName="bash", toolCallId="d")
    # Answered on one route, it counts there; above it things are as they were before.
    assert (w.version("r2"), w.version("a")) == (None, "v0")


def test_calls_that_mark_nothing_or_were_never_run_leave_a_place_bound() -> None:
    w = Written()
    w.says("u", None, "user")
    w.binds("b", "u", named("start", "v0", None))
    asks(w, "a1", "b", "c", tool="read")
    asks(w, "a2", "b", "c", stopReason="aborted")
    asks(w, "a3", "b", "c", stopReason="error")
    assert [w.version(name) for name in ("a1", "a2", "a3")] == ["v0"] * 3


def test_an_id_used_again_answers_the_nearest_call_only() -> None:
    w = Written()
    w.says("u", None, "user")
    w.binds("b", "u", named("start", "v0", None))
    asks(w, "a1", "b", "c")
    asks(w, "a2", "a1", "c", tool="read")
    w.says("r", "a2", "toolResult", toolName="read", toolCallId="c")
    assert w.version("r") is None
