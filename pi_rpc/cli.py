"""The command `pi-rpc`: which door, which settings."""

import gc
import os
import signal
import sys

from pi_rpc import __version__
from pi_rpc.frontends.native.handshake import quick_answer
from pi_rpc.known_settings import agent_folder, is_known_sound
from pi_rpc.wire.descriptors import StdioDescriptors

_FOR_PEOPLE = ("list", "show", "check")

_COMMANDS = """\
commands:
  serve             speak the protocol on stdin and stdout until the input ends
  list [QUERY]      stored sessions, latest activity first
  show SESSION      the conversation of a session
  check SESSION     look for damage; 1 when something was found

SESSION is an id, the beginning of one, or a file. list, show and check have --help of their own."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    # A host starts the daemon without arguments, again and again: that way reads no parser.
    if not arguments or arguments == ["serve"]:
        return _serve()
    if arguments[0] in _FOR_PEOPLE:
        return _command(arguments)
    import argparse  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        prog="pi-rpc",
        description="Own coding-agent sessions and serve them as JSON-RPC 2.0 on stdin and stdout.",
        epilog=_COMMANDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pi-rpc {__version__}")
    parser.add_argument(
        "command",
        nargs="?",
        choices=["serve", *_FOR_PEOPLE],
        default="serve",
        help="see below; serve when none is given",
    )
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
    parser.add_argument(
        "--trust",
        choices=["always", "never"],
        help="whether files of projects may steer what is done in them (PI_RPC_TRUST)",
    )
    chosen = parser.parse_args(arguments)
    if chosen.command in _FOR_PEOPLE:
        parser.error(
            f"{chosen.command} comes first: pi-rpc {chosen.command} --help names its flags"
        )
    if chosen.trust:
        os.environ["PI_RPC_TRUST"] = chosen.trust
    return _serve(chosen.session_dir, chosen.script, chosen.durability)


def _serve(
    session_dir: str | None = None, script_file: str | None = None, durability: str | None = None
) -> int:
    descriptors = StdioDescriptors.take()
    # Until the loop takes signals over nothing is live that would want an orderly end.
    signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))
    first = None if script_file or os.environ.get("PI_RPC_SCRIPT") else _greet(descriptors)
    # Only now, with the host answered, what takes its time is loaded. It stays for good: nothing of
    # it is garbage, so it is not looked through for any, neither meanwhile nor later.
    gc.disable()
    from pi_rpc.serving import Beginning, serve  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    beginning = Beginning(descriptors, *(first or (b"", b"")))
    return serve(beginning, os.environ, session_dir, script_file, durability)


def _command(arguments: list[str]) -> int:
    import argparse  # noqa: PLC0415

    parser = argparse.ArgumentParser(prog="pi-rpc")
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="stored sessions, latest activity first")
    listing.add_argument("query", nargs="?", help="only those whose name or folder holds this")
    listing.add_argument("--cwd", metavar="DIR", help="only those of this working directory")
    show = commands.add_parser("show", help="the conversation of a session")
    show.add_argument("--format", choices=["markdown", "html", "jsonl"], default="markdown")
    show.add_argument("--no-redact", action="store_true", help="show keys and passwords too")
    check = commands.add_parser("check", help="look for damage; 1 when something was found")
    check.add_argument("--repair", action="store_true", help="mend it; the old file is kept")
    for command in (show, check):
        command.add_argument("session", help="an id, the beginning of one, or a file")
    for command in (listing, show, check):
        command.add_argument("--session-dir", metavar="DIR", help="as the daemon has it")
    chosen = vars(parser.parse_args(arguments))
    # Only now, for loading it takes its time.
    from pi_rpc.commands import Asked, run  # noqa: PLC0415

    asked = Asked(
        command=chosen["command"],
        session=chosen.get("session") or "",
        cwd=chosen.get("cwd"),
        query=chosen.get("query"),
        form=chosen.get("format") or "markdown",
        redacts=not chosen.get("no_redact"),
        repairs=bool(chosen.get("repair")),
        session_dir=chosen["session_dir"],
    )
    return run(asked, os.environ)


def _greet(descriptors: StdioDescriptors) -> tuple[bytes, bytes]:
    """Answer a handshake that comes first and is plain; the line answered, and what came beside it.

    Whatever else comes first is left to the server, and so is a start with something to tell of.
    """
    if not is_known_sound(agent_folder()):
        return b"", b""
    came = descriptors.read()
    line, feed, rest = came.partition(b"\n")
    answer = quick_answer(line, __version__) if feed else None
    if answer is None:
        return b"", came
    try:
        descriptors.write(answer)
    except OSError:
        # The reader is gone already; the server meets that in its own way.
        return b"", came
    return line + feed, rest
