"""Whatever is done to histories, in whatever order, they keep what they promise.

- Bytes that stand in a file stay there.
- The entries form a tree, and a live context is the context made from nothing.
- A fork's context is its source's at the question forked before; a clone's is its source's.
- What is read back is what is live: leaf, context, labels, name, model, thinking level.
"""

import shutil
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from anyio.from_thread import start_blocking_portal
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pi_rpc.core.choices import choices_at
from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Refused
from pi_rpc.core.messages import JsonObject, text_of
from pi_rpc.core.ports.providers import ModelRequest, Provider
from pi_rpc.core.reply import Piece
from pi_rpc.core.tree import ROOT, Tree
from pi_rpc.session.building import Copied, Copying, Opening
from pi_rpc.session.choosing import set_model, set_thinking_level
from pi_rpc.session.host import Host
from pi_rpc.session.navigating import edit_context, navigate, rename, set_label
from pi_rpc.session.prompting import prompt, wait_until_settled
from pi_rpc.session.session import Session
from tests.session.living import (
    Door,
    Ear,
    HeldTool,
    Speaker,
    append_foreign,
    called,
    context_of,
    file_store,
    living_host,
    said,
    tools_named,
)

PLACE = st.integers(0, 60)
"""Which of several, counted around."""
WORDS = st.sampled_from(["a", "use a tool", "读取 😀", "two\nlines\u2028"])
LABELS = st.sampled_from(["one", "two", None])

_Result = TypeVar("_Result")


class Echo(Speaker):
    """Serves every model; calls a tool when asked to, else says what it heard."""

    def provider_of(self, provider: str, model_id: str) -> Provider:
        return self

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Sequence[Piece], None]:
        last = request.messages[-1]
        wants_tool = last["role"] == "user" and "tool" in text_of(last)
        for part in called(("write", "{}")) if wants_tool else said("heard ", text_of(last)):
            assert part is not None
            assert not isinstance(part, Door)
            yield [part]


class Histories(RuleBasedStateMachine):
    """Sessions of one host, and what their files held before."""

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="histories-"))
        self.closing.callback(shutil.rmtree, self.folder)
        self.portal = self.closing.enter_context(start_blocking_portal())
        tools = tools_named(HeldTool("write"))
        host = living_host(file_store(self.folder / "s"), self.folder, Echo(), tools)
        self.host: Host = self.closing.enter_context(self.portal.wrap_async_context_manager(host))
        self.before: dict[Path, bytes] = {}
        self.ears: dict[str, Ear] = {}
        self.foreign = 0
        self.names: list[str] = []

    def teardown(self) -> None:
        self.closing.close()

    def do(self, act: Callable[[], Awaitable[_Result]]) -> _Result:
        return self.portal.call(act)

    def listen(self, session: Session) -> None:
        self.ears[session.runtime_id] = Ear(session.hub)
        if session.session_id not in self.names:
            self.names.append(session.session_id)

    def one(self, place: int) -> Session:
        sessions = self.host.sessions
        return sessions[place % len(sessions)]

    @staticmethod
    def entry_of(session: Session, place: int) -> str:
        return session.tree.heads.id_of(place % len(session.tree))

    @initialize()
    def begin(self) -> None:
        self.listen(self.do(lambda: self.host.new(Opening(str(self.folder)))))

    @rule(which=PLACE, words=WORDS)
    def ask(self, which: int, words: str) -> None:
        session = self.one(which)

        async def ask() -> None:
            prompt(session, self.host.tasks, words)
            assert await wait_until_settled(session) == "done"

        self.do(ask)

    @rule(which=PLACE, place=PLACE, label=LABELS, to_root=st.booleans())
    def move(self, which: int, place: int, label: str | None, to_root: bool) -> None:
        session = self.one(which)
        target = None if to_root and place % 4 == 0 else self.entry_of(session, place)
        moved = self.do(lambda: navigate(session, target, label))
        assert moved.leaf_id == session.leaf_id

    @rule(which=PLACE, place=PLACE, text=LABELS)
    def label(self, which: int, place: int, text: str | None) -> None:
        session = self.one(which)
        target = self.entry_of(session, place)
        self.do(lambda: set_label(session, target, text))
        assert session.tree.label_of(target) == text

    @rule(which=PLACE, name=st.sampled_from(["x", "y z", ""]))
    def name(self, which: int, name: str) -> None:
        session = self.one(which)
        assert self.do(lambda: rename(session, name)) == (name or None)

    @rule(which=PLACE, place=PLACE, text=st.sampled_from(["less", None]))
    def edit(self, which: int, place: int, text: str | None) -> None:
        session = self.one(which)
        path = session.tree.path(session.leaf_row)
        if not path:
            return
        target = session.tree.heads.id_of(path[place % len(path)])
        replacement = None if text is None else {"content": text}
        try:
            self.do(lambda: edit_context(session, [target], replacement, pairs=True))
        except Refused:
            return

    @rule(which=PLACE, level=st.sampled_from(["off", "high"]), model=st.sampled_from("mn"))
    def choose(self, which: int, level: str, model: str) -> None:
        session = self.one(which)
        self.do(lambda: set_thinking_level(session, level))
        self.do(lambda: set_model(session, "speaker", model))

    @rule(which=PLACE, place=PLACE, activate=st.booleans())
    def fork(self, which: int, place: int, activate: bool) -> None:
        session = self.one(which)
        questions = list(session.tree.rows_of_kind(Kind.USER))
        if not questions:
            return
        row = questions[place % len(questions)]
        wanted = context_of(session.tree, session.tree.parent(row))
        copied = self._copied(session, "fork", session.tree.heads.id_of(row), activate)
        assert list(copied.session.projection.messages("session")) == wanted
        question = session.tree.entry(row).message
        assert question is not None
        assert copied.draft == text_of(question)

    @rule(which=PLACE, activate=st.booleans())
    def clone(self, which: int, activate: bool) -> None:
        session = self.one(which)
        if session.leaf_row == ROOT:
            return
        wanted = context_of(session.tree, session.leaf_row)
        copied = self._copied(session, "clone", None, activate)
        assert list(copied.session.projection.messages("session")) == wanted

    def _copied(self, session: Session, reason: Any, at: str | None, activate: bool) -> Copied:
        position: Any = "before" if reason == "fork" else "at"
        copying = Copying(reason, at, position, None, None, activate)
        copied = self.do(lambda: self.host.copy(session, copying))
        self.listen(copied.session)
        assert copied.session.header.parent_session == str(session.stored.path)
        assert session.closed == activate
        return copied

    @precondition(lambda self: len(self.names) > 1)
    @rule(which=PLACE, place=PLACE)
    def switch(self, which: int, place: int) -> None:
        session = self.one(which)
        target = self.names[place % len(self.names)]
        if target == session.session_id:
            return
        was_live = self.host.find(target)
        found = self.do(lambda: self.host.switch(session, target, None))
        assert found is (was_live or found)
        if was_live is None:
            self.listen(found)

    @rule(which=PLACE, act=st.sampled_from(["reload", "reopen"]))
    def again(self, which: int, act: str) -> None:
        session = self.one(which)
        foreign_last = self._ends_foreign(session)
        leaf = session.leaf_id
        if act == "reload":
            self.listen(self.do(lambda: self.host.relocate(session, None, "reload")))
        else:
            self.do(lambda: self.host.close(session))
            self.listen(self.do(lambda: self.host.open(session.session_id)))
        fresh = self.host.session(session.session_id)
        assert fresh.leaf_id == leaf or (act == "reopen" and foreign_last)

    @rule(which=PLACE, place=PLACE)
    def another_program_appends(self, which: int, place: int) -> None:
        session = self.one(which)
        assert session.stored.path is not None
        self.foreign += 1
        parent = self.entry_of(session, place)
        append_foreign(session.stored.path, f"f{self.foreign:07x}", parent)

    @staticmethod
    def _ends_foreign(session: Session) -> bool:
        assert session.stored.path is not None
        return b'"foreign"' in session.stored.path.read_bytes().split(b"\n")[-2]

    @invariant()
    def bytes_that_stand_stay(self) -> None:
        for path in sorted(self.folder.rglob("*.jsonl")):
            now = path.read_bytes()
            assert now.startswith(self.before.get(path, b""))
            assert now.endswith(b"\n")
            self.before[path] = now

    @invariant()
    def entries_are_a_tree_and_contexts_are_made_of_it(self) -> None:
        for session in self.host.sessions:
            heads = session.tree.heads
            assert all(heads.parents[row] < row for row in range(len(heads)))
            assert len({heads.id_of(row) for row in range(len(heads))}) == len(heads)
            live = list(session.projection.messages("session"))
            assert live == context_of(session.tree, session.leaf_row)

    @invariant()
    def what_is_read_back_is_what_is_live(self) -> None:
        for session in self.host.sessions:
            assert session.stored.path is not None
            path = session.stored.path
            stored = self.do(partial(file_store(self.folder / "s").open, path, "read"))
            tree = Tree(stored.heads, stored.line)
            if self._ends_foreign(session):
                self.do(stored.close)
                continue
            assert self._facts(tree, tree.stored_leaf()) == self._facts(
                session.tree, session.leaf_row
            )
            assert tree.name() == session.tree.name()
            assert {one: tree.label_of(one) for one in tree.labels()} == {
                one: session.tree.label_of(one) for one in session.tree.labels()
            }
            self.do(stored.close)

    @staticmethod
    def _facts(tree: Tree, leaf_row: int) -> tuple[str | None, list[JsonObject], object]:
        return (
            tree.id_or_none(leaf_row),
            context_of(tree, leaf_row),
            choices_at(tree, leaf_row),
        )

    @invariant()
    def events_of_a_runtime_have_no_gaps_and_end_with_its_end(self) -> None:
        for ear in self.ears.values():
            assert ear.numbers == list(range(2, 2 + len(ear.numbers)))
            ends = [name in ("RuntimeReplaced", "SessionClosed") for name in ear.names]
            assert not any(ends[:-1])


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    derandomize=True, max_examples=40, stateful_step_count=25, deadline=None, database=None
)
