"""How the tour shows things: lines, claims that are checked, trees, and a run while it goes on."""

import os
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable

from pi_rpc_client.types import Environment, Notification, TreeNode

WIDTH = 92

PLAIN, BOLD, DIM, GREEN, RED, CYAN = "", "1", "2", "32", "31", "36"

WORDS_OF_REASON = {
    "nothing_ran": "nothing ran that could have changed files",
    "equal": "compared with the version kept for this place: the same, byte for byte",
    "differs": "compared with the version kept for this place: they are not the same",
    "unseen_calls": "a command left no trace in the files; it may have left one elsewhere",
    "not_watched": "tools ran in this session while this daemon was not there to watch",
}


class UntrueClaimError(Exception):
    """The tour said something that did not hold."""


def paint(text: str, colour: str) -> str:
    if not colour or not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\033[{colour}m{text}\033[0m"


def say(text: str = "", colour: str = PLAIN) -> None:
    sys.stdout.write(paint(text, colour) + "\n")
    sys.stdout.flush()


def heading(number: int, text: str) -> None:
    say()
    say(f"{number}. {text}", BOLD)
    say("-" * (len(text) + 3), DIM)


def claim(text: str, holds: bool) -> None:
    """Say that something is true, if it is. Raises UntrueClaimError."""
    if not holds:
        raise UntrueClaimError(text)
    say(paint("   [ok] ", GREEN) + text)


def short(text: str, width: int) -> str:
    return textwrap.shorten(text, width, placeholder=" ...")


def show_tree(nodes: Iterable[TreeNode], leaf_id: str | None) -> None:
    """The tree, indented where it branches; `*` marks the path to the leaf."""
    by_id = {node["id"]: node for node in nodes}
    children: dict[str | None, list[TreeNode]] = defaultdict(list)
    for node in by_id.values():
        children[_shown_above(node, by_id)].append(node)
    path = set(_path(leaf_id, by_id))
    waiting = [(node, "", "") for node in reversed(children[None])]
    while waiting:
        node, start, indent = waiting.pop()
        below = children[node["id"]]
        if not _is_shown(node):
            waiting += [(child, start, indent) for child in reversed(below)]
            continue
        mark = "*" if node["id"] in path else "."
        here = paint("   <- the leaf", CYAN) if node["id"] == _shown_leaf(leaf_id, by_id) else ""
        words = short(node.get("text") or "(calls tools)", WIDTH - 30 - len(indent))
        say(f"   {start}{mark} {_who(node):<8} {words}{here}", PLAIN if mark == "*" else DIM)
        shown = [child for child in below if _leads_to_shown(child, children)]
        if len(shown) > 1:
            waiting += [(child, indent + "+- ", indent + "|  ") for child in reversed(shown)]
        else:
            waiting += [(child, indent, indent) for child in shown]


def _shown_above(node: TreeNode, by_id: dict[str, TreeNode]) -> str | None:
    above = node["parentId"]
    return above if above in by_id else None


def _is_shown(node: TreeNode) -> bool:
    return node["type"] == "branch_summary" or node.get("role") in {
        "user",
        "assistant",
        "toolResult",
    }


def _leads_to_shown(node: TreeNode, children: dict[str | None, list[TreeNode]]) -> bool:
    below = [node]
    while below:
        one = below.pop()
        if _is_shown(one):
            return True
        below += children[one["id"]]
    return False


def _path(leaf_id: str | None, by_id: dict[str, TreeNode]) -> list[str]:
    path = []
    while leaf_id is not None and leaf_id in by_id:
        path.append(leaf_id)
        leaf_id = by_id[leaf_id]["parentId"]
    return path


def _shown_leaf(leaf_id: str | None, by_id: dict[str, TreeNode]) -> str | None:
    return next((one for one in _path(leaf_id, by_id) if _is_shown(by_id[one])), None)


def _who(node: TreeNode) -> str:
    names = {"user": "you", "assistant": "model", "toolResult": "tool"}
    return names.get(node.get("role") or "", "summary")


def show_live(told: Notification) -> None:
    if told["method"] == "message/ended" and told["params"]["message"]["role"] == "assistant":
        for block in told["params"]["message"]["content"]:
            for at, line in enumerate(block["text"].split("\n") if "text" in block else []):
                say(f"   {'' if at else 'model':<9} {line}".rstrip())
    elif told["method"] == "tool/ended":
        given = told["params"]
        about = given["arguments"].get("path") or given["arguments"].get("command")
        took = round(given.get("durationMs") or 0)
        words = "failed" if given["isError"] else "done"
        say(f"   tool      {given['name']} {about}: {words} in {took} ms", DIM)


def show_verdict(environment: Environment) -> None:
    """What the daemon says of the world, scope by scope."""
    for scope, verdict in environment["scopes"].items():
        reason = WORDS_OF_REASON.get(verdict["reason"], verdict["reason"])
        say(f"      {scope}: {verdict['status']} ({reason})", CYAN)
