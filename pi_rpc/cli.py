"""The command `pi-rpc`: which door, which settings."""

import os
import signal
import sys
from pathlib import Path

from pi_rpc import __version__
from pi_rpc.frontends.native.handshake import quick_answer
from pi_rpc.wire.descriptors import StdioDescriptors


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    # A host starts the daemon without arguments, again and again: that way reads no parser.
    if not arguments or arguments == ["serve"]:
        return _serve()
    import argparse  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        prog="pi-rpc",
        description="Own coding-agent sessions and serve them as JSON-RPC 2.0 on stdin and stdout.",
    )
    parser.add_argument("--version", action="version", version=f"pi-rpc {__version__}")
    parser.add_argument("command", nargs="?", choices=["serve"], default="serve")
    parser.add_argument(
        "--session-dir", metavar="DIR", help="one folder for all sessions of all directories"
    )
    parser.add_argument(
        "--script", metavar="FILE", help="what the offline model answers (JSON; PI_RPC_SCRIPT)"
    )
    parser.add_argument(
        "--durability",
        choices=["entry", "turn", "off"],
        help="sync entries before each is told (default), at turn ends and moves, or never",
    )
    chosen = parser.parse_args(arguments)
    return _serve(chosen.session_dir, chosen.script, chosen.durability)


def _serve(
    session_dir: str | None = None, script_file: str | None = None, durability: str | None = None
) -> int:
    descriptors = StdioDescriptors.take()
    # Until the loop takes signals over nothing is live that would want an orderly end.
    signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))
    first = None if script_file or os.environ.get("PI_RPC_SCRIPT") else _greet(descriptors)
    # Only now, with the host answered, what takes its time is loaded.
    from pi_rpc.serving import Beginning, serve  # noqa: PLC0415

    beginning = Beginning(descriptors, *(first or (b"", b"")))
    return serve(beginning, os.environ, session_dir, script_file, durability)


def _greet(descriptors: StdioDescriptors) -> tuple[bytes, bytes]:
    """Answer a handshake that comes first and is plain; the line answered, and what came beside it.

    Whatever else comes first is left to the server, and so is a start with something to tell of.
    """
    named = os.environ.get("PI_CODING_AGENT_DIR")
    folder = Path(named).expanduser() if named else Path.home() / ".pi" / "agent"
    if (folder / "settings.json").exists():
        return b"", b""
    came = descriptors.read()
    line, feed, rest = came.partition(b"\n")
    answer = quick_answer(line, __version__) if feed else None
    if answer is None:
        return b"", came
    descriptors.write(answer)
    return line + feed, rest
