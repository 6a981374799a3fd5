"""States are named beside the requests of a run: nothing waits that does not depend on them."""

import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from pi_rpc.core.entries import Kind
from pi_rpc.core.errors import Overfull
from pi_rpc.core.ports.providers import ModelRequest
from pi_rpc.core.ports.workspace import Snapshot, Workspace
from pi_rpc.core.reply import BlockStarted, Piece, ReplyEnded
from pi_rpc.session.prompting import prompt, wait_until_settled
from pi_rpc.session.versioning import EFFECTS_WAITING_MAX, record_effect
from tests.session.living import WAIT_S, Door, Speaker, called, said
from tests.session.versioned import kinds, working

pytestmark = pytest.mark.anyio


class Traced:
    """A folder that says when its state is looked at and when it has a name."""

    def __init__(self, inner: Workspace, trace: list[str], named: list[Door]) -> None:
        self.kind = inner.kind
        self._inner = inner
        self._trace = trace
        self._named = named

    def warm(self) -> None:
        """Whoever looks first is seen."""

    async def snapshot(self, *, again: bool = False) -> Snapshot:
        self._trace.append("look")
        taken = await self._inner.snapshot(again=again)
        self._trace.append("named")
        # The model goes on only now: if the run had waited for it, nobody would ever have looked.
        self._named.pop(0).opened.set()
        return taken

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


class TracedSpeaker:
    """A model that says when it is asked and when it has answered."""

    def __init__(self, inner: Speaker, trace: list[str]) -> None:
        self._inner = inner
        self._trace = trace
        self.api = inner.api

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Sequence[Piece], None]:
        self._trace.append("asked")
        async for pieces in self._inner.reply(request):
            if any(isinstance(piece, ReplyEnded) for piece in pieces):
                self._trace.append("answered")
            yield pieces


async def test_an_effect_told_during_a_call_is_written_when_the_call_has_its_result(
    tmp_path: Path, cwd: Path
) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        command = "touch reached; until [ -e go ]; do sleep 0.01; done"
        work.speaker.replies += [called(("bash", json.dumps({"command": command}))), said("done")]
        prompt(session, work.host.tasks, "do it")
        while not (cwd / "reached").exists():
            await anyio.lowlevel.checkpoint()
        effect = {"id": "e", "kind": "mail", "summary": "told them", "compensated": False}
        assert await record_effect(session, effect) is None
        (cwd / "go").touch()
        with anyio.fail_after(WAIT_S * 2):
            assert await wait_until_settled(session) == "done"
        [written] = session.bindings.effects()
        found = kinds(session)
        result = found.index(Kind.TOOL_RESULT)
        assert found[result - 1] is Kind.ASSISTANT
        assert written.row > result
        session.standing.effects.extend(effect for _ in range(EFFECTS_WAITING_MAX))
        with pytest.raises(Overfull) as caught:
            await record_effect(session, effect)
        assert caught.value.reason == "too_many_effects"


async def test_a_trace_of_a_run_has_each_look_inside_a_request(tmp_path: Path, cwd: Path) -> None:
    async with working(tmp_path) as work:
        session = await work.opened(cwd)
        trace: list[str] = []
        doors = [Door(), Door(), Door()]
        assert session.workspace is not None
        session.workspace = Traced(session.workspace, trace, [*doors])  # type: ignore[assignment]
        speaker = TracedSpeaker(work.speaker, trace)
        work.speaker.provider_of = lambda *_: speaker  # type: ignore[assignment,method-assign]
        call = called(("bash", '{"command": "echo 1 >> a"}'))
        named = next(i for i, one in enumerate(call, 1) if isinstance(one, BlockStarted))
        work.speaker.replies += [
            [*call[:named], doors[0], *call[named:]],
            [doors[1], *said("done")],
        ]
        prompt(session, work.host.tasks, "do it")
        with anyio.fail_after(WAIT_S * 2):
            assert await wait_until_settled(session) == "done"
        # The state before the call while it streams, the state after it while the model goes on.
        assert trace == [*("asked", "look", "named", "answered")] * 2
