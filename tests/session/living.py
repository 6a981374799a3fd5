"""What tests of live sessions stand on: a host on any store, ears, a model and tools one can hold.

Nothing here waits longer than WAIT_S, and nothing sleeps: tests wait for an event that is told, or
for a door that the scripted side passes.
"""

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import msgspec

from pi_rpc.core.entries import Header, Kind
from pi_rpc.core.errors import Failure, Missing, Outside
from pi_rpc.core.events import Event
from pi_rpc.core.heads import Heads
from pi_rpc.core.idleness import UnloadRules
from pi_rpc.core.messages import (
    JsonObject,
    ToolCall,
    ToolDeclaration,
    ToolOutcome,
    text_block,
    text_of,
)
from pi_rpc.core.meter import Meter
from pi_rpc.core.policy import OURS
from pi_rpc.core.ports.instructions import Instructions
from pi_rpc.core.ports.preferences import Preferences
from pi_rpc.core.ports.providers import ModelListing, ModelRequest, Models, Provider
from pi_rpc.core.ports.store import (
    CopiedRows,
    NewLine,
    Repaired,
    SearchPage,
    SessionListing,
    Store,
    StoredSession,
)
from pi_rpc.core.ports.tools import CallContext, Effect, Tool
from pi_rpc.core.projection import project
from pi_rpc.core.reply import BlockDelta, BlockEnded, BlockStarted, Piece, ReplyEnded, ReplyStarted
from pi_rpc.core.retrying import RetryPolicy
from pi_rpc.core.searching import SearchQuery
from pi_rpc.core.tree import Tree
from pi_rpc.providers.catalog import Catalog
from pi_rpc.session.building import Opening
from pi_rpc.session.host import Host
from pi_rpc.session.hub import Hub
from pi_rpc.session.session import Session
from pi_rpc.session.surroundings import Surroundings
from pi_rpc.store.choose import open_memory_store, open_store
from pi_rpc.tools.choose import user_shell
from tests.conftest import CountedClock, CountedIds

WAIT_S = 5
"""How long anything may take to come."""

DEFAULT_UNLOADING = UnloadRules()

NO_RETRY = RetryPolicy(enabled=False)
"""What fails, fails: most tests want to see that."""

_Event = TypeVar("_Event", bound=Event)


class Ear:
    """A listener that keeps what it hears, and can be made to lag."""

    def __init__(self, *hubs: Hub) -> None:
        self.heard: list[tuple[int, Event]] = []
        self.is_pressed = False
        self.is_full = False
        self.waits = 0
        """How often a loop began to wait for this listener."""
        self._came = anyio.Event()
        self._free = anyio.Event()
        for hub in hubs:
            hub.attach(self)

    def hear(self, hub: Hub, seq: int, event: Event) -> None:
        self.heard.append((seq, event))
        self.notice()

    def notice(self) -> None:
        """Let whoever waits look again."""
        came, self._came = self._came, anyio.Event()
        came.set()

    async def wait_until_free(self) -> None:
        self.waits += 1
        self.notice()
        await self._free.wait()

    def catch_up(self) -> None:
        """Be neither full nor pressed any more."""
        self.is_pressed = self.is_full = False
        free, self._free = self._free, anyio.Event()
        free.set()

    @property
    def events(self) -> list[Event]:
        return [event for _, event in self.heard]

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    @property
    def numbers(self) -> list[int]:
        return [seq for seq, _ in self.heard]

    def of(self, kind: type[_Event]) -> list[_Event]:
        """What was heard of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, kind: type[_Event], count: int = 1) -> _Event:
        """The event of this kind that is the `count`th, once it is heard."""
        await self.until_true(lambda: len(self.of(kind)) >= count)
        return self.of(kind)[count - 1]

    async def until_true(self, holds: Callable[[], bool]) -> None:
        """Return when something holds that can change only while something is told."""
        with anyio.fail_after(WAIT_S):
            while not holds():
                await self._came.wait()


class Door:
    """A place where the scripted side waits until the test lets it pass."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.opened = anyio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self.opened.wait()

    async def until_reached(self) -> None:
        with anyio.fail_after(WAIT_S):
            await self.reached.wait()


Part = Piece | Door | None
"""A piece of a reply, a door to wait at, or the moment where the stream breaks off."""


def said(*texts: str) -> list[Part]:
    """A reply of one text, a delta each."""
    return [
        ReplyStarted(),
        BlockStarted(0, "text"),
        *(BlockDelta(0, text) for text in texts),
        BlockEnded(0),
        ReplyEnded("stop"),
    ]


def called(*calls: tuple[str, str]) -> list[Part]:
    """A reply of calls: name and JSON of the arguments; ids count from c0."""
    parts: list[Part] = [ReplyStarted()]
    for index, (name, arguments) in enumerate(calls):
        parts += [
            BlockStarted(index, "toolCall", f"c{index}", name),
            BlockDelta(index, arguments),
            BlockEnded(index),
        ]
    return [*parts, ReplyEnded("toolUse")]


class Speaker:
    """Models and their provider in one: says what it is given, piece by piece, doors included."""

    api = "speaker"

    def __init__(self, *replies: Sequence[Part]) -> None:
        self.replies = list(replies)
        self.requests: list[list[JsonObject]] = []

    def listing(self) -> list[ModelListing]:
        return []

    def listed(self, provider: str, model_id: str) -> ModelListing | None:
        found = self.listing()
        return next(
            (one for one in found if (one.provider, one.model_id) == (provider, model_id)), None
        )

    def provider_of(self, provider: str, model_id: str) -> Provider:
        if provider != "speaker":
            raise Missing("model_not_found", provider=provider, modelId=model_id)
        return self

    def default(self) -> tuple[str, str] | None:
        return "speaker", "one"

    def check_script(self, script: JsonObject) -> None:
        """It has no scripts."""

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Sequence[Piece], None]:
        self.requests.append(list(request.messages))
        for part in self.replies.pop(0):
            if part is None:
                return
            if isinstance(part, Door):
                await part.wait()
            else:
                yield [part]


class HeldTool:
    """A tool that does what it is made of, and says how it was called."""

    effect: Effect = "workspace"
    sequential = False

    def __init__(
        self,
        name: str,
        door: Door | None = None,
        heeds_stop: bool = True,
        withstands: bool = False,
    ) -> None:
        self.declaration = ToolDeclaration(name, f"the tool {name}", {"type": "object"})
        self.door = door
        self.heeds_stop = heeds_stop
        self.withstands = withstands
        self.calls: list[ToolCall] = []

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        self.calls.append(call)
        if self.door is None:
            return ToolOutcome([text_block(f"{call.name} done")])
        self.door.reached.set()
        if self.withstands:
            with anyio.CancelScope(shield=True):
                await self.door.opened.wait()
        elif self.heeds_stop:
            await context.stop.wait()
            return ToolOutcome([text_block("stopped as asked")], is_error=True)
        else:
            await self.door.opened.wait()
        return ToolOutcome([text_block(f"{call.name} done")])


class BrittleSession:
    """A stored session whose disk fails when told to."""

    def __init__(self, inner: StoredSession, disk: "Disk") -> None:
        self.inner = inner
        self.header = inner.header
        self.diagnostics = inner.diagnostics
        self.path = inner.path
        self.writable = inner.writable
        self._disk = disk

    @property
    def heads(self) -> Heads:
        return self.inner.heads

    @property
    def size_bytes(self) -> int:
        return self.inner.size_bytes

    def line(self, row: int) -> bytes:
        return self.inner.line(row)

    def length(self, row: int) -> int:
        return self.inner.length(row)

    def lines_of(self, rows: range) -> list[bytes]:
        return self.inner.lines_of(rows)

    def block(self, rows: Sequence[int], start: int) -> tuple[bytes, int]:
        return self.inner.block(rows, start)

    async def refresh(self) -> range:
        return await self.inner.refresh()

    async def append(self, lines: Sequence[NewLine], durable: bool) -> range:
        await self._disk.used()
        return await self.inner.append(lines, durable)

    async def sync(self) -> None:
        await self.inner.sync()

    @property
    def is_loaded(self) -> bool:
        return self.inner.is_loaded

    async def prepare_to_unload(self) -> None:
        await self.inner.prepare_to_unload()

    def unload(self) -> bool:
        return self.inner.unload()

    async def load(self) -> None:
        await self.inner.load()

    async def close(self) -> None:
        await self.inner.close()


class Disk:
    """What a brittle store writes to: full when told so, held up at a door when given one."""

    def __init__(self) -> None:
        self.is_full = False
        self.door: Door | None = None

    def fill(self) -> None:
        """Be full from now on."""
        self.is_full = True

    async def used(self) -> None:
        if self.door is not None:
            await self.door.wait()
        if self.is_full:
            raise Outside("disk_full", "no space left", retryable=True)


class BrittleStore:
    """A store whose disk can be full or slow."""

    def __init__(self, inner: Store, disk: Disk) -> None:
        self._inner = inner
        self._disk = disk

    async def create(
        self,
        header: Header,
        lines: Sequence[NewLine | CopiedRows] = (),
        source: StoredSession | None = None,
        ephemeral: bool = False,
        *,
        known_unique: bool = False,
    ) -> StoredSession:
        await self._disk.used()
        origin = source.inner if isinstance(source, BrittleSession) else source
        made = await self._inner.create(header, lines, origin, ephemeral, known_unique=known_unique)
        return BrittleSession(made, self._disk)

    async def open(
        self, session: str | Path, mode: Any, cwd: str | None = None, meter: Meter | None = None
    ) -> StoredSession:
        return BrittleSession(await self._inner.open(session, mode, cwd, meter), self._disk)

    async def adopt(self, path: Path, known_cwd: str) -> StoredSession:
        return BrittleSession(await self._inner.adopt(path, known_cwd), self._disk)

    async def listing(self, cwd: str | None, meter: Meter | None = None) -> list[SessionListing]:
        return await self._inner.listing(cwd, meter)

    async def delete(self, session_id: str) -> Path | None:
        return await self._inner.delete(session_id)

    async def search(
        self, query: SearchQuery, cwd: str | None, cursor: str | None, limit: int
    ) -> SearchPage:
        return await self._inner.search(query, cwd, cursor, limit)

    async def repair(self, session: str | Path) -> Repaired:
        return await self._inner.repair(session)

    async def publish(self, target: Path, chunks: AsyncIterable[bytes]) -> int:
        await self._disk.used()
        return await self._inner.publish(target, chunks)


def file_store(root: Path, series: int = 9) -> Store:
    """Session files below `root`; nobody waits for the disk."""
    return open_store(root, CountedIds(series), syncs=False)


def memory_store() -> Store:
    """Sessions until the test ends."""
    return open_memory_store(CountedIds(8))


def tools_named(*tools: HeldTool) -> dict[str, Tool]:
    """Tools by name."""
    return {tool.declaration.name: tool for tool in tools}


class FixedChance:
    """Chance that always comes out the same."""

    def __init__(self, fraction: float) -> None:
        self._fraction = fraction

    def fraction(self) -> float:
        return self._fraction


@asynccontextmanager
async def living_host(
    store: Store,
    folder: Path,
    models: Models | None = None,
    tools: dict[str, Tool] | None = None,
    *,
    series: int = 1,
    retry: RetryPolicy = NO_RETRY,
    chance: float = 0.0,
    unloading: UnloadRules = DEFAULT_UNLOADING,
    trim: Callable[[], Awaitable[None]] | None = None,
    preferences: Preferences | None = None,
    instructions: Instructions | None = None,
) -> AsyncIterator[Host]:
    """A host in this loop; closed at the end, and whatever it left behind is cancelled."""
    async with anyio.create_task_group() as left_behind, anyio.create_task_group() as tasks:
        around = Surroundings(
            clock=CountedClock(),
            ids=CountedIds(series),
            models=models or Catalog(),
            tools=tools or {},
            spill_root=folder / "spill",
            left_behind=left_behind,
            shell=user_shell(),
            grace_s=0.05,
            retry=retry,
            chance=FixedChance(chance),
            unloading=unloading,
            trim=trim,
            preferences=preferences,
            instructions=instructions,
        )
        host = Host(store, around, tasks, "test")
        try:
            yield host
        finally:
            with anyio.move_on_after(WAIT_S, shield=True) as closing:
                await host.close_all()
            assert not closing.cancelled_caught, "the host did not close"
            tasks.cancel_scope.cancel()
            left_behind.cancel_scope.cancel()


async def opened(host: Host, cwd: Path, **more: Any) -> Session:
    """A new session in a folder."""
    return await host.new(Opening(str(cwd), **more))


def texts(session: Session) -> list[str]:
    """The words of the model's context, prompts of the system left out."""
    said = session.projection.messages("session")
    return [text_of(message) for message in said if message["role"] != "system"]


def context_of(tree: Tree, leaf_row: int) -> list[JsonObject]:
    """The context at a row, made from nothing."""
    return list(project(tree, leaf_row, OURS).messages("session"))


def kinds(session: Session) -> list[Kind]:
    """What the rows of a session are, in file order."""
    return [session.tree.kind(row) for row in range(len(session.tree))]


def standing(session: Session) -> tuple[Any, ...]:
    """Everything of a session that a failed act must leave as it was."""
    return (
        session.leaf_id,
        len(session.tree),
        session.stored.size_bytes,
        list(session.projection.messages("session")),
        session.chosen.model,
        session.chosen.thinking_level,
        session.tree.name(),
        session.tree.labels(),
        session.hub.seq,
    )


def reason_of(failure: Failure) -> tuple[str, str]:
    """What a caller may compare."""
    return failure.kind, failure.reason


def message_of(session: Session, row: int) -> JsonObject:
    """The message of a row."""
    message = session.tree.entry(row).message
    assert message is not None
    return message


def messages(session: Session) -> list[JsonObject]:
    """Every stored message in file order, system prompts left out."""
    rows: Iterable[int] = range(len(session.tree))
    found = [session.tree.entry(row).message for row in rows]
    return [message for message in found if message is not None and message["role"] != "system"]


def append_foreign(path: Path, entry_id: str, parent_id: str | None, text: str = "foreign") -> None:
    """Another program writes a line into a session file."""
    entry = {
        "type": "message",
        "id": entry_id,
        "parentId": parent_id,
        "timestamp": "2026-01-02T03:04:05.678Z",
        "message": {"role": "user", "content": text, "timestamp": 1},
    }
    with path.open("ab") as file:
        file.write(msgspec.json.encode(entry) + b"\n")
