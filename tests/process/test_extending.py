"""An installed extension in a real daemon."""

import json
from pathlib import Path

from tests.process.conftest import Start

CODE = """
from pi_rpc.core.hooks import InputAnswer

def extend(extending):
    extending.hook("input", shout)

async def shout(told, context):
    return InputAnswer("transform", told.text.upper())
"""


def test_an_installed_extension_takes_part_where_the_settings_name_it(
    start: Start, cwd: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    (site / "shouting-1.0.dist-info").mkdir(parents=True)
    (site / "shouting.py").write_text(CODE)
    (site / "shouting-1.0.dist-info" / "METADATA").write_text("Name: shouting\nVersion: 1.0\n")
    points = "[pi_rpc.extensions]\nshouting = shouting:extend\nquiet = nowhere:extend\n"
    (site / "shouting-1.0.dist-info" / "entry_points.txt").write_text(points)
    agent = tmp_path / "agent"
    agent.mkdir(exist_ok=True)
    chosen = {"piRpc": {"extensions": ["quiet", "shouting"]}}
    (agent / "settings.json").write_text(json.dumps(chosen))
    variables = {"PYTHONPATH": str(site), "PI_CODING_AGENT_DIR": str(agent)}
    daemon = start(environment=variables).greet()
    [odd] = daemon.call("daemon/diagnostics")["diagnostics"]
    assert (odd["reason"], odd["severity"]) == ("extension_failed", "error")
    session = daemon.call("session/new", cwd=str(cwd))["sessionId"]
    daemon.call("agent/prompt", sessionId=session, text="hello", wait=True)
    messages = daemon.call("context/get", sessionId=session)["messages"]
    users = [one["message"] for one in messages if one["message"]["role"] == "user"]
    assert users[0]["content"][0]["text"] == "HELLO"
