"""A stop of the tour: a bug fixed on two routes, and whether the files went along."""

from pathlib import Path

import anyio
from pi_rpc_client.client import PiRpcClient
from pi_rpc_client.types import Environment, Notification
from showing import CYAN, claim, heading, say, show_live, show_tree, show_verdict

BROKEN = """def login(name):
    return name == "ada"
"""
TEST = """from login import login

assert login("Ada "), "a user called 'Ada ' is locked out"
print("all tests pass")
"""
RUN = "run `python3 -B test_login.py`"
ROUTE_ONE = f"edit login.py: replace `name ==` with `name.lower() ==` then {RUN}"
ROUTE_TWO = f"edit login.py: replace `name ==` with `name.strip().lower() ==` then {RUN}"


class Story:
    """One session in a folder of its own."""

    def __init__(self, client: PiRpcClient, folder: Path, session_id: str) -> None:
        self.client = client
        self.login = folder / "login.py"
        self.session_id = session_id

    async def ask(self, text: str) -> bool:
        """Ask, listen, and tell whether the command that was run went well."""
        went_well: list[bool] = []

        def hear(told: Notification) -> None:
            if told["method"] == "tool/ended" and told["params"]["name"] == "bash":
                went_well.append(not told["params"]["isError"])

        say(f"   you       {text}")
        stops = [self.client.listen(show_live), self.client.listen(hear)]
        params = {"sessionId": self.session_id, "text": text}
        run = await self.client.call("agent/prompt", params)
        assert run["runId"] is not None
        await self.client.wait_until_settled(self.session_id, run["runId"])
        for stop in stops:
            stop()
        say()
        return went_well == [True]

    async def words(self) -> str:
        """All the model would be sent."""
        found = await self.client.call("context/get", {"sessionId": self.session_id})
        return str([one["message"] for one in found["messages"]])

    async def asked(self) -> str:
        """The entry of the last question."""
        found = await self.client.call("session/tree", {"sessionId": self.session_id})
        return next(node["id"] for node in reversed(found["nodes"]) if node.get("role") == "user")

    async def leave_route_one(self) -> None:
        """Go back before the question; the daemon says that the files did not."""
        asked = await self.asked()
        moved = await self.client.call(
            "branch/navigate", {"sessionId": self.session_id, "targetId": asked}
        )
        tree = await self.client.call("session/tree", {"sessionId": self.session_id})
        show_tree(tree["nodes"], tree["leafId"])
        say()
        claim("the model is sent nothing of route one", "lower()" not in await self.words())
        claim("the tree still holds it", asked in {node["id"] for node in tree["nodes"]})
        say()
        say("   And the files? The daemon's answer, before anybody asks:")
        self._show(moved["environment"])
        claim("it says not_restored", moved["environment"]["status"] == "not_restored")
        drift = moved["environment"].get("drift", [])
        claim("and names the one file that differs", [d["path"] for d in drift] == ["login.py"])

    def _show(self, environment: Environment) -> None:
        show_verdict(environment)
        for one in environment.get("drift", []):
            say(f"      {one['change']}: {one['path']}", CYAN)
        say()

    async def restore(self) -> None:
        """Bring the files back; the state before is kept."""
        which = {"sessionId": self.session_id}
        planned = await self.client.call("workspace/restore", {**which, "dryRun": True})
        say(f"   workspace/restore, dry: would bring back {', '.join(planned['restored'])}")
        claim("nothing was touched yet", self.login.read_text() != BROKEN)
        done = await self.client.call("workspace/restore", which)
        assert done["safetyVersion"] is not None
        say(f"   workspace/restore: done; undone by going to {done['safetyVersion'][:16]}...")
        files = done["environment"]["scopes"]["files"]
        say(f"      files: {files['status']}", CYAN)
        claim("login.py is as it was, byte for byte", self.login.read_bytes() == BROKEN.encode())
        claim("the daemon compared, and says restored", files["status"] == "restored")
        say()

    async def copy(self) -> None:
        """Fork before the question of route two, and clone after it."""
        which = {"sessionId": self.session_id, "activate": False}
        asked = await self.asked()
        fork = await self.client.call("session/fork", {**which, "entryId": asked})
        clone = await self.client.call("session/clone", which)
        for name, made in (("fork", fork), ("clone", clone)):
            files = made["environment"]["scopes"]["files"]
            say(f"   {name:<6} {made['sessionId']}: files {files['status']}", CYAN)
        ids = {self.session_id, fork["sessionId"], clone["sessionId"]}
        claim("each has an id of its own", len(ids) == 3)
        claim("the fork hands the question back, the clone has none", _drafts(fork, clone))
        verdicts = [made["environment"]["scopes"]["files"]["status"] for made in (fork, clone)]
        claim(
            "the files fit the clone and not the fork, and each is told so",
            verdicts == ["not_restored", "restored"],
        )

    async def swap(self) -> None:
        """Go on in a clone that takes the place of the session; whoever listens is taken along."""
        before = await self.client.call("session/state", {"sessionId": self.session_id})
        told: list[Notification] = []
        stop = self.client.listen(told.append)
        swapped = await self.client.call("session/clone", {"sessionId": self.session_id})
        stop()
        old, new = (one for one in told if one["method"] in {"runtime/replaced", "session/opened"})
        assert old["method"] == "runtime/replaced"
        replaced = old["params"]
        say(f"   session/clone takes the place of {replaced['oldSessionId']}:")
        say(f"      runtime/replaced: {replaced['old'][-6:]} by {replaced['new'][-6:]}", CYAN)
        self._show(swapped["environment"])
        claim("the swap is told by the old runtime's last event", told.index(old) < told.index(new))
        claim(
            "it names both runtimes and both sessions",
            (replaced["old"], replaced["new"]) == (before["runtimeId"], swapped["runtimeId"])
            and (replaced["oldSessionId"], replaced["newSessionId"])
            == (self.session_id, swapped["sessionId"]),
        )
        ears, ears_now = (one["params"]["subscriptionIds"] for one in (old, new))
        is_rebound = replaced["rebound"] and ears == ears_now == [swapped["subscriptionId"]]
        claim("the ear that heard the old one hears the new one", is_rebound)
        files = swapped["environment"]["scopes"]["files"]
        claim("the files are compared again, and fit", files["status"] == "restored")
        self.session_id = swapped["sessionId"]
        works = await self.ask(RUN)
        claim("and the talk goes on where it was", works)


def _drafts(fork: object, clone: object) -> bool:
    assert isinstance(fork, dict)
    assert isinstance(clone, dict)
    return fork.get("draft") == ROUTE_TWO and clone.get("draft") is None


async def take_two_routes(client: PiRpcClient, folder: Path) -> None:
    """Route one fails, the files are brought back, route two works. Raises UntrueClaimError."""
    heading(7, "Fix a bug on one route, go back with the files, fix it on another")
    await anyio.Path(folder).mkdir()
    await anyio.Path(folder, "login.py").write_text(BROKEN)
    await anyio.Path(folder, "test_login.py").write_text(TEST)
    made = await client.call("session/new", {"cwd": str(folder)})
    story = Story(client, folder, made["sessionId"])
    works = await story.ask(ROUTE_ONE)
    claim("route one is on the disk", "name.lower()" in story.login.read_text())
    claim("and its tests fail", not works)
    say()
    await story.leave_route_one()
    say()
    await story.restore()
    works = await story.ask(ROUTE_TWO)
    claim("the tests of route two pass", works)
    claim("the model was told nothing of route one", "name.lower()" not in await story.words())
    say()
    await story.copy()
    say()
    await story.swap()
