"""Whatever is done to sessions in a narrow window, making room loses nothing and is never silent.

- Each pass frees room, or says by a code why it did not.
- Each message of a path is in the context or was summarised once; no result is without its call.
- Fork, clone, navigation and undo after a compaction give the contexts they promise.
- A request fits the window, or its run ends with a coded error.
"""

import shutil
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from anyio.from_thread import start_blocking_portal
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Failure, Missing, Outside, Refused
from pi_rpc.core.events import CompactionEnded, DiagnosticTold, RunSettled
from pi_rpc.core.messages import JsonObject, ToolCall, ToolOutcome, Usage, text_block, text_of
from pi_rpc.core.pairing import pairing_of
from pi_rpc.core.pins import pins_at
from pi_rpc.core.policy import OURS
from pi_rpc.core.ports.providers import ModelListing, ModelRequest, Provider
from pi_rpc.core.ports.tools import CallContext
from pi_rpc.core.projection import project
from pi_rpc.core.reply import Piece, ReplyEnded, ReplyError, ReplyStarted
from pi_rpc.core.thresholds import is_effective
from pi_rpc.core.tree import ROOT, Tree
from pi_rpc.providers.offline_summary import asks_for_summary, notes_on
from pi_rpc.session.building import Copying, Opening
from pi_rpc.session.compacting import threshold_of
from pi_rpc.session.condensing import compact, configure, pin_words
from pi_rpc.session.host import Host
from pi_rpc.session.navigating import navigate
from pi_rpc.session.prompting import prompt, wait_until_settled
from pi_rpc.session.session import Session
from pi_rpc.session.summarising import SummaryWish
from pi_rpc.session.undoing import undo_compaction
from tests.session.living import (
    Door,
    Ear,
    HeldTool,
    Speaker,
    called,
    context_of,
    file_store,
    living_host,
    said,
    tools_named,
)

WINDOW = 2500
PLACE = st.integers(0, 60)
"""Which of several, counted around."""
SAYINGS = {
    "short": "a",
    "with a call": "use a tool",
    "with calls": "use tools " + "t" * 400,
    "of signs": "字" * 300,
    "long": "w" * 3000,
    "too long": "字" * 2 * WINDOW,
}
"""What the user says; the last is more than the window holds."""
SAYING = st.sampled_from(sorted(SAYINGS))

REASONS = {
    "compaction_ineffective",
    "nothing_to_compact",
    "already_compacted",
    "recovery_exhausted",
    "summary_failed",
}
"""Why a pass may come to nothing here."""

SAID = {
    Kind.USER,
    Kind.ASSISTANT,
    Kind.TOOL_RESULT,
    Kind.CUSTOM_MESSAGE,
    Kind.BRANCH_SUMMARY,
}

_Result = TypeVar("_Result")


class Narrow(Speaker):
    """A model with a small window that refuses what is longer; calls tools when asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[bool] = []
        """For each request of a conversation, whether it was too long."""

    def listing(self) -> list[ModelListing]:
        return [ModelListing("speaker", "one", "One", WINDOW, 500, reasoning=False, usable=True)]

    def provider_of(self, provider: str, model_id: str) -> Provider:
        return self

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Sequence[Piece], None]:
        tokens = sum(map(OURS.tokens_of, request.messages))
        is_summary = asks_for_summary(request.messages)
        if not is_summary:
            self.refused.append(tokens > WINDOW)
        if tokens > WINDOW:
            error = ReplyError("overflow", "too long")
            yield [ReplyStarted(), ReplyEnded("error", error=error)]
            return
        last = request.messages[-1]
        if is_summary:
            parts = said(notes_on(request.messages))
        elif last["role"] == "user" and "use" in text_of(last):
            parts = called(("write", "{}"), ("write", "{}"))
        else:
            parts = said("heard ", text_of(last)[:200])
        for part in parts[:-1]:
            assert part is not None
            assert not isinstance(part, Door)
            yield [part]
        end = parts[-1]
        assert isinstance(end, ReplyEnded)
        # Every other reply says what it used; the others are estimated.
        usage = Usage(input=tokens, output=50) if len(self.refused) % 2 else Usage()
        yield [ReplyEnded(end.stop, usage)]


class Wordy(HeldTool):
    """A tool with something to say."""

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        return ToolOutcome([text_block("result " * 40)])


class Rooms(RuleBasedStateMachine):
    """Sessions of one host, and the context each leaf had when it was one."""

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="rooms-"))
        self.closing.callback(shutil.rmtree, self.folder)
        self.portal = self.closing.enter_context(start_blocking_portal())
        self.model = Narrow()
        host = living_host(
            file_store(self.folder / "s"), self.folder, self.model, tools_named(Wordy("write"))
        )
        self.host: Host = self.closing.enter_context(self.portal.wrap_async_context_manager(host))
        self.ears: dict[str, Ear] = {}
        self.contexts: dict[tuple[str, str | None], list[JsonObject]] = {}

    def teardown(self) -> None:
        self.closing.close()

    def do(self, act: Callable[[], Awaitable[_Result]]) -> _Result:
        return self.portal.call(act)

    def listen(self, session: Session) -> Ear:
        return self.ears.setdefault(session.runtime_id, Ear(session.hub))

    def one(self, place: int) -> Session:
        return self.host.sessions[place % len(self.host.sessions)]

    @initialize()
    def begin(self) -> None:
        session = self.do(lambda: self.host.new(Opening(str(self.folder))))
        self.listen(session)
        configure(session, keep_recent_tokens=60)

    def asked(self, session: Session, words: str) -> str | None:
        async def ask() -> str | None:
            prompt(session, self.host.tasks, words)
            return await wait_until_settled(session)

        return self.do(ask)

    @rule(which=PLACE, saying=SAYING)
    def ask_first(self, which: int, saying: str) -> None:
        # Most of what happens to a session is that it is asked.
        self.ask(which, saying)

    @rule(which=PLACE, saying=SAYING)
    def ask(self, which: int, saying: str) -> None:
        session = self.one(which)
        ear = self.listen(session)
        passes = len(ear.of(CompactionEnded))
        outcome = self.asked(session, SAYINGS[saying])
        error = ear.of(RunSettled)[-1].error
        if not self.model.refused[-1]:
            assert (outcome, error) == ("done", None)
            return
        assert outcome == "failed"
        assert error is not None and error["reply"]["kind"] == "overflow"
        if session.chosen.compaction.enabled:
            assert ear.of(CompactionEnded)[passes:][-1].error

    @rule(which=PLACE, keep=st.sampled_from([0, 60, 300]), by_itself=st.booleans())
    def configure(self, which: int, keep: int, by_itself: bool) -> None:
        configure(self.one(which), enabled=by_itself, keep_recent_tokens=keep)

    @rule(which=PLACE, words=st.sampled_from(["Never push.", "p" * 2000]))
    def pin(self, which: int, words: str) -> None:
        session = self.one(which)
        try:
            self.do(lambda: pin_words(session, words))
        except Refused as refused:
            assert refused.reason == "pins_too_large"

    @rule(which=PLACE)
    def compact(self, which: int) -> None:
        session = self.one(which)
        ear, leaf = self.listen(session), session.leaf_id
        told = len(ear.of(DiagnosticTold))
        try:
            made = self.do(lambda: compact(session, self.host.tasks))
        except (Refused, Outside) as failure:
            assert failure.reason in REASONS
            assert session.leaf_id == leaf
            return
        assert made.tokens_after == session.projection.estimated_tokens()
        reasons = [one.diagnostic.reason for one in ear.of(DiagnosticTold)[told:]]
        assert made.effective != ("compaction_ineffective" in reasons)

    @rule(which=PLACE, saying=st.sampled_from(["short", "with a call"]))
    def compact_go_on_and_undo(self, which: int, saying: str) -> None:
        configure(self.one(which), keep_recent_tokens=0)
        self.compact(which)
        self.ask(which, saying)
        self.undo(which)

    @rule(which=PLACE)
    def undo(self, which: int) -> None:
        session = self.one(which)
        tree, selection = session.tree, session.projection.selection
        by_itself = session.chosen.compaction.enabled
        limit = threshold_of(session) if by_itself else WINDOW
        assert limit is not None
        wanted: list[Any] = []
        if selection.compaction_row != ROOT:
            wanted = _words(context_of(tree, tree.parent(selection.compaction_row)))
            for row in selection.rows[1 + selection.kept_count :]:
                wanted += _words(session.projection.messages_of(row))
        leaf = session.leaf_id
        try:
            self.do(lambda: undo_compaction(session))
        except Missing as missing:
            assert (missing.reason, wanted, session.leaf_id) == ("no_compaction", [], leaf)
        except Refused as refused:
            assert refused.reason == "undo_would_overflow"
            assert refused.data["tokens"] > refused.data["limit"] == limit
            assert session.leaf_id == leaf
        else:
            if not self._edits(session):
                assert _words(session.projection.messages("session")) == wanted
            assert session.projection.estimated_tokens() <= limit

    @staticmethod
    def _edits(session: Session) -> bool:
        return any(
            session.tree.kind(row) == Kind.CONTEXT_EDIT
            for row in session.tree.path(session.leaf_row)
        )

    @rule(which=PLACE, place=PLACE, summarize=st.booleans())
    def move(self, which: int, place: int, summarize: bool) -> None:
        session = self.one(which)
        target = session.tree.id_or_none(place % (len(session.tree) + 1) - 1)
        before = session.leaf_id
        try:
            wish = SummaryWish() if summarize else None
            moved = self.do(lambda: navigate(session, target, None, wish))
        except Failure as failure:
            assert failure.reason == "summary_failed"
            assert session.leaf_id == before
            return
        if moved.summary_id is None:
            again = self.contexts.get((session.session_id, session.leaf_id))
            assert again is None or list(session.projection.messages("session")) == again

    @rule(which=PLACE, place=PLACE)
    def fork(self, which: int, place: int) -> None:
        session = self.one(which)
        questions = list(session.tree.rows_of_kind(Kind.USER))
        if not questions:
            return
        row = questions[place % len(questions)]
        wanted = context_of(session.tree, session.tree.parent(row))
        at = session.tree.heads.id_of(row)
        self._copied(session, Copying("fork", at, "before", None, None, False), wanted)

    @rule(which=PLACE)
    def clone(self, which: int) -> None:
        session = self.one(which)
        if session.leaf_row != ROOT:
            wanted = context_of(session.tree, session.leaf_row)
            self._copied(session, Copying("clone", None, "at", None, None, False), wanted)

    def _copied(self, session: Session, copying: Copying, wanted: list[JsonObject]) -> None:
        if len(self.host.sessions) < 4:
            copied = self.do(lambda: self.host.copy(session, copying))
            self.listen(copied.session)
            assert list(copied.session.projection.messages("session")) == wanted

    @invariant()
    def every_pass_frees_room_or_says_why_not(self) -> None:
        for ear in self.ears.values():
            for ended in ear.of(CompactionEnded):
                assert (ended.entry_id is None) == (ended.error is not None)
                if ended.error is not None:
                    assert ended.error["reason"] in REASONS
                elif ended.reason == "threshold":
                    assert ended.tokens_before is not None and ended.tokens_after is not None
                    assert is_effective(ended.tokens_before, ended.tokens_after)

    @invariant()
    def every_message_is_kept_or_was_summarised_once(self) -> None:
        for session in self.host.sessions:
            tree = session.tree
            edited = _edited(tree, session.leaf_row)
            held = session.projection.selection.rows
            times = [row for row in held if session.projection.messages_of(row)]
            for row in tree.path(session.leaf_row):
                if tree.kind(row) == Kind.COMPACTION:
                    times += _summarised_by(tree, row)
            spoke = [
                row
                for row in tree.path(session.leaf_row)
                if tree.kind(row) in SAID and row not in edited
            ]
            counts = {tree.heads.id_of(row): times.count(row) for row in spoke}
            assert set(counts.values()) <= {1}, counts

    @invariant()
    def what_is_pinned_is_in_the_context(self) -> None:
        for session in self.host.sessions:
            context = "\n".join(map(text_of, session.projection.messages("llm")))
            for pinned in pins_at(session.tree, session.leaf_row):
                assert pinned.text in context

    @invariant()
    def no_result_is_without_its_call(self) -> None:
        for session in self.host.sessions:
            messages = list(session.projection.messages("session"))
            assert not pairing_of(messages).orphans
            self.contexts.setdefault((session.session_id, session.leaf_id), messages)
            assert messages == context_of(session.tree, session.leaf_row)


def _words(messages: Any) -> list[Any]:
    return [(one["role"], one.get("content")) for one in messages if one["role"] != "system"]


def _edited(tree: Tree, leaf_row: int) -> set[int | None]:
    edits = [row for row in tree.path(leaf_row) if tree.kind(row) == Kind.CONTEXT_EDIT]
    return {tree.heads.row_of(tree.entry(row).object["targetId"]) for row in edits}


def _summarised_by(tree: Tree, compaction_row: int) -> list[int]:
    """What a compaction stands for: the context above it, without what it keeps."""
    above = project(tree, tree.parent(compaction_row), OURS)
    after = project(tree, compaction_row, OURS)
    kept = set(after.selection.rows)
    return [
        row
        for row in above.selection.rows
        if row not in kept and row != above.selection.compaction_row and above.messages_of(row)
    ]


TestRooms = Rooms.TestCase
TestRooms.settings = settings(
    derandomize=True, max_examples=20, stateful_step_count=20, deadline=None, database=None
)
