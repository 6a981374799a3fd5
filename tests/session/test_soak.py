"""Many turns in a small window: room is made all the time, and what is pinned is never lost."""

import os
import random
from pathlib import Path

import anyio
import pytest

from pi_rpc.core.entries import Kind
from pi_rpc.core.events import CompactionEnded
from pi_rpc.core.messages import text_of
from pi_rpc.session.compacting import threshold_of
from pi_rpc.session.condensing import pin_words
from pi_rpc.session.prompting import prompt, wait_until_settled
from tests.session.living import WAIT_S, Ear, living_host, memory_store, opened

TURNS = int(os.environ.get("PI_RPC_SOAK_TURNS", "300"))
"""How long the soak is; a release is soaked for 5000 turns."""

WINDOW = 6000

SCRIPT = {
    "replies": [],
    "default": {"text": "All right. " * 20},
    "contextWindow": WINDOW,
    "enforceWindow": True,
    "summaries": "byRule",
}


@pytest.mark.anyio
async def test_a_long_session_keeps_its_pace_and_its_pins(cwd: Path) -> None:
    chance = random.Random(4)
    facts: list[str] = []
    async with living_host(memory_store(), cwd) as host:
        session = await opened(host, cwd, script=SCRIPT)
        threshold = threshold_of(session)
        assert threshold is not None
        ear = Ear(session.hub)
        for turn in range(TURNS):
            if turn % (TURNS // 10) == TURNS // 20:
                fact = f"The secret of turn {turn} is {chance.randrange(10**9)}."
                await pin_words(session, fact)
                facts.append(fact)
            words = "word " * chance.choice([5, 20, 80, 300])
            prompt(session, host.tasks, f"Question {turn}: {words}")
            with anyio.fail_after(WAIT_S):
                assert await wait_until_settled(session) == "done", turn
            assert session.projection.tokens().total <= threshold, turn
        context = "\n".join(text_of(one) for one in session.projection.messages("llm"))
        assert [fact for fact in facts if fact not in context] == []
        passes = session.tree.heads.kinds.count(Kind.COMPACTION)
        assert TURNS // 30 <= passes <= TURNS // 4
        assert session.tree.heads.kinds.count(Kind.CONTEXT_EDIT) == 0
        # Each pass has freed room, or says that it could not.
        for ended in ear.of(CompactionEnded):
            if ended.error is None:
                assert ended.tokens_before is not None and ended.tokens_after is not None
                assert ended.tokens_after < ended.tokens_before
            else:
                assert ended.error["reason"] == "compaction_ineffective"
