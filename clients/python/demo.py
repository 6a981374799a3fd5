"""A tour in a few seconds: no key, no network, a real recorded session, a real daemon.

Everything claimed on the way is checked against what came back; a claim that does not hold ends the
tour with status 1.
"""

import sys
import tempfile
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
from pi_rpc_client.client import PiRpcClient
from pi_rpc_client.types import Environment, TreeNode
from showing import (
    BOLD,
    CYAN,
    DIM,
    RED,
    WIDTH,
    UntrueClaimError,
    claim,
    heading,
    say,
    short,
    show_live,
    show_tree,
    show_verdict,
)
from two_routes import take_two_routes

RECORDING = Path(__file__).parents[2] / "tests/parity/recordings/branch_tool_files/session.jsonl"
"""A session that Pi itself wrote: three branches, tools used on one, a summary on two."""

REQUEST = "read README.md then edit README.md: replace `tea` with `coffee` then run `cat README.md`"
TIME_MAX_S = 20


class Tour:
    """What is remembered from stop to stop."""

    def __init__(self, client: PiRpcClient, session_file: Path, readme: Path) -> None:
        self.client = client
        self.session_file = session_file
        self.readme = readme
        self.session_id = ""

    async def tree(self) -> tuple[list[TreeNode], str | None]:
        found = await self.client.call(
            "session/tree", {"sessionId": self.session_id, "limit": 5000}
        )
        return found["nodes"], found["leafId"]

    async def context(self) -> list[tuple[str, str, str]]:
        """Entry id, role and words of every message the model would be sent."""
        found = await self.client.call("context/get", {"sessionId": self.session_id})
        told = []
        for one in found["messages"]:
            message = one["message"]
            content = message.get("content") or message.get("summary") or ""
            if isinstance(content, list):
                content = " ".join(
                    block.get("text") or f"[calls {block.get('name', block['type'])}]"
                    for block in content
                )
            told.append((one["entryId"], str(message["role"]), str(content)))
        return told

    async def show_context(self) -> list[tuple[str, str, str]]:
        context = await self.context()
        names = {"user": "you", "assistant": "model", "toolResult": "tool"}
        for _, role, text in context:
            words = "(prompt and tools)" if role == "system" else short(text, WIDTH - 20)
            say(f"   | {names.get(role, role.removesuffix('Summary')):<9} {words}")
        return context

    async def open(self) -> None:
        heading(2, "Open a session that was recorded elsewhere")
        opened = await self.client.call("session/open", {"path": str(self.session_file)})
        self.session_id = opened["sessionId"]
        nodes, leaf_id = await self.tree()
        say(f"   {self.session_file.name}: {opened['entryCount']} entries, one file, one tree.")
        say()
        show_tree(nodes, leaf_id)
        say()
        claim("every entry of the file is in the tree", len(nodes) == opened["entryCount"])
        for odd in opened["diagnostics"]:
            say(f"   Told by the daemon: {short(odd['text'], WIDTH - 24)}", DIM)

    async def look_at_context(self) -> None:
        heading(3, "What the model would be sent now: the path to the leaf, and nothing else")
        context = await self.show_context()
        words = " ".join(text for _, _, text in context)
        say()
        claim("the branch that used tools is not in it", "Q2 with tools" not in words)
        claim("its summary is", any(role == "branchSummary" for _, role, _ in context))

    async def prompt(self) -> None:
        heading(4, "Ask for something, and listen")
        say(f"   you       {REQUEST}")
        stop = self.client.listen(show_live)
        run = await self.client.call(
            "agent/prompt", {"sessionId": self.session_id, "text": REQUEST}
        )
        assert run["runId"] is not None
        outcome = await self.client.wait_until_settled(self.session_id, run["runId"])
        stop()
        say()
        claim("the run settled and is done", outcome == "done")
        claim(
            f"the change is on the disk: README.md reads {self.readme.read_text().strip()!r}",
            "coffee" in self.readme.read_text(),
        )

    async def go_back(self) -> str:
        heading(5, "Go back to before that question")
        nodes, abandoned = await self.tree()
        assert abandoned is not None
        before = self.session_file.read_bytes()
        asked = next(node["id"] for node in reversed(nodes) if node.get("role") == "user")
        moved = await self.client.call(
            "branch/navigate", {"sessionId": self.session_id, "targetId": asked}
        )
        nodes_now, leaf_id = await self.tree()
        show_tree(nodes_now, leaf_id)
        say()
        say("   and what the model would be sent:")
        context = await self.show_context()
        words = " ".join(text for _, _, text in context)
        say()
        claim("the context forgot the abandoned route", "coffee" not in words)
        kept = {node["id"] for node in nodes} <= {node["id"] for node in nodes_now}
        claim("the tree did not: every entry of it is still there", kept)
        claim(
            "the file only grew: its earlier bytes are unchanged",
            self.session_file.read_bytes().startswith(before),
        )
        claim("the question came back for the editor", moved.get("draft") == REQUEST)
        await self._check_environment(moved["environment"], abandoned)
        return asked

    async def _check_environment(self, environment: Environment, abandoned: str) -> None:
        say()
        say("   But did the world go back too? The daemon's answer:")
        show_verdict(environment)
        for effect in environment.get("abandonedEffects", []):
            say(f"      left behind: {effect.get('tool', effect)}", CYAN)
        compared = await self.client.call(
            "branch/compare", {"sessionId": self.session_id, "otherId": abandoned}
        )
        touched = compared["other"]["files"]["modified"]
        say(f"      the abandoned route modified: {', '.join(touched)}", CYAN)
        say()
        is_changed = "coffee" in self.readme.read_text()
        claim("README.md on the disk still has the change", is_changed)
        claim("the daemon does not call it restored", environment["status"] != "restored")
        claim("and it can name the file", touched == ["README.md"])

    async def copy(self, asked: str) -> None:
        heading(6, "Fork before that question, and clone what is left")
        before = self.session_file.read_bytes()
        fork = await self.client.call(
            "session/fork", {"sessionId": self.session_id, "entryId": asked, "activate": False}
        )
        clone = await self.client.call(
            "session/clone", {"sessionId": self.session_id, "activate": False}
        )
        for name, made in (("fork", fork), ("clone", clone)):
            path = Path(made.get("path") or "")
            say(f"   {name:<6} {path.name}: {made['entryCount']} entries, one straight path")
        say()
        claim("the fork hands the question back to be asked anew", fork.get("draft") == REQUEST)
        claim("the clone has no question to hand back", clone.get("draft") is None)
        ids = {self.session_id, fork["sessionId"], clone["sessionId"]}
        status = await self.client.call("daemon/status")
        live = {one["sessionId"] for one in status["sessions"]}
        claim("three sessions are live in one daemon", len(ids) == 3 and ids <= live)
        claim("the source was not touched", self.session_file.read_bytes() == before)

    async def edit_context(self) -> None:
        heading(8, "Take one exchange out of the model's sight, not out of history")
        context = await self.context()
        targets = [entry for entry, _, text in context if text in ("Q1", "answer 1")]
        await self.client.call(
            "context/edit",
            {"sessionId": self.session_id, "targetIds": targets, "replacement": None},
        )
        context_now = await self.show_context()
        nodes, _ = await self.tree()
        say()
        shown = {entry for entry, _, _ in context_now}
        claim(f"the model no longer sees {len(targets)} messages", not shown & set(targets))
        claim("both are still in the tree", set(targets) <= {node["id"] for node in nodes})

    async def step_aside(self) -> None:
        heading(9, "Step onto another branch, say nothing there, and kill the daemon")
        nodes, _ = await self.tree()
        third = next(node["id"] for node in nodes if node.get("text") == "answer 3")
        await self.client.call("branch/navigate", {"sessionId": self.session_id, "targetId": third})
        _, leaf_id = await self.tree()
        claim("the leaf stands at the end of the second branch", leaf_id == third)


async def come_back(
    tour: Tour,
    daemon: AbstractAsyncContextManager[PiRpcClient],
    leaf_before: str | None,
    context_before: list[tuple[str, str, str]],
) -> None:
    """Open the same file with another daemon, now that the first is dead."""
    claim("it was killed, not ended", tour.client.daemon.status == -9)
    async with daemon as client:
        tour.client = client
        opened = await client.call("session/open", {"path": str(tour.session_file)})
        say(f"   another daemon, process {client.daemon.pid}, opens the same file")
        say()
        nodes, leaf_id = await tour.tree()
        show_tree(nodes, leaf_id)
        say()
        claim("no lock of the dead one stood in the way", opened["mode"] == "own")
        claim("the leaf is where it was left", leaf_id == leaf_before)
        claim("the model would be sent the same context", await tour.context() == context_before)


async def tour_of(agent_dir: Path, workspace: Path) -> None:
    """All stops of the tour. Raises UntrueClaimError, TimeoutError."""
    readme = workspace / "README.md"
    session_file = agent_dir / "recorded.jsonl"
    async with await anyio.open_file(RECORDING, encoding="utf-8") as recorded:
        text = await recorded.read()
    async with await anyio.open_file(session_file, "w", encoding="utf-8") as file:
        # Recordings name no real folder, so that they are the same everywhere.
        await file.write(text.replace("$WORKSPACE", str(workspace)))
    async with await anyio.open_file(readme, "w", encoding="utf-8") as file:
        await file.write("We drink tea here.\n")

    def daemon() -> AbstractAsyncContextManager[PiRpcClient]:
        return PiRpcClient.spawn(
            (sys.executable, "-m", "pi_rpc"),
            env={"PI_CODING_AGENT_DIR": str(agent_dir)},
            cwd=workspace,
            name="demo",
        )

    with anyio.fail_after(TIME_MAX_S):
        heading(1, "Start the daemon, as an editor would")
        async with daemon() as client:
            server = client.server["serverInfo"]
            say(f"   {server['name']} {server['version']}, process {client.daemon.pid},")
            say(
                "   JSON-RPC 2.0 over its standard input and output. No key, no network: an offline"
            )
            say("   model is built in, which does what it is told in plain words.")
            tour = Tour(client, session_file, readme)
            await tour.open()
            await tour.look_at_context()
            await tour.prompt()
            asked = await tour.go_back()
            await tour.copy(asked)
            await take_two_routes(client, workspace / "shop")
            await tour.edit_context()
            await tour.step_aside()
            _, leaf_before = await tour.tree()
            context_before = await tour.context()
            say(f"   kill -9 {client.daemon.pid}")
            client.daemon.kill()
            await client.daemon.wait()
        await come_back(tour, daemon(), leaf_before, context_before)


def main() -> int:
    """Give the tour in a folder of its own; the exit status."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pi-rpc-demo-") as folder:
        agent_dir, workspace = Path(folder, "agent").resolve(), Path(folder, "workspace").resolve()
        agent_dir.mkdir()
        workspace.mkdir()
        try:
            anyio.run(tour_of, agent_dir, workspace)
        except UntrueClaimError as untrue:
            say()
            say(f"   NOT TRUE: {untrue}", RED)
            return 1
    say()
    say(f"That was {time.monotonic() - started:.1f} seconds. README.md tells how to go on.", BOLD)
    return 0


if __name__ == "__main__":
    sys.exit(main())
