"""Writes everything that follows from the one table of methods, or checks that it is fresh.

`python protocol/generate.py` writes; with `--check` nothing is written, and the status is 1 when a
file is not what the table gives.
"""

import argparse
import json
import sys
from pathlib import Path

from pi_rpc.frontends.native.table import METHODS, NOTIFICATIONS
from protocol.openrpc import openrpc_document
from protocol.pages import errors_page, methods_page
from protocol.python_types import python_module
from protocol.reasons import reasons_in
from protocol.schema import JsonObject, schema_document, shapes

ROOT = Path(__file__).resolve().parent.parent


def generated() -> dict[Path, str]:
    """Every generated file, by its path below the root."""
    found = shapes()
    reasons = reasons_in(ROOT / "pi_rpc")
    return {
        Path("protocol/schema.json"): _json(schema_document(found, METHODS, NOTIFICATIONS)),
        Path("protocol/openrpc.json"): _json(openrpc_document(found, METHODS, NOTIFICATIONS)),
        Path("protocol/methods.md"): methods_page(found, METHODS, NOTIFICATIONS),
        Path("protocol/errors.md"): errors_page(reasons),
        Path("clients/python/pi_rpc_client/types.py"): python_module(found, METHODS, NOTIFICATIONS),
    }


def _json(document: JsonObject) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def stale_files(root: Path = ROOT) -> list[Path]:
    """Generated files that are missing below `root` or not what the table gives."""
    return [path for path, text in generated().items() if _read(root / path) != text]


def write_files(root: Path = ROOT) -> None:
    """Write every generated file below `root`."""
    for path, text in generated().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def main(arguments: list[str] | None = None) -> int:
    """Write or check; the exit status."""
    parser = argparse.ArgumentParser(prog="generate.py", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    if parser.parse_args(arguments).check:
        stale = stale_files()
        for path in stale:
            sys.stderr.write(f"{path} is not what the table gives: run `make protocol`\n")
        return 1 if stale else 0
    write_files()
    return 0


if __name__ == "__main__":
    sys.exit(main())
