"""The command `pi-rpc`: which door, which settings."""

import os
import sys

from pi_rpc.wire.descriptors import StdioDescriptors


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    # A host starts the daemon without arguments, again and again: that way reads no parser.
    if not arguments or arguments == ["serve"]:
        return _serve()
    import argparse  # noqa: PLC0415

    from pi_rpc import __version__  # noqa: PLC0415

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
    # Only now, with standard input and output in our hands, what takes its time is loaded.
    from pi_rpc.serving import serve  # noqa: PLC0415

    return serve(descriptors, os.environ, session_dir, script_file, durability)
