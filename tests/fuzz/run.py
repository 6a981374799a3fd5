"""Atheris on the targets, one after another, each for a while.

    python -m tests.fuzz.run [--seconds 60] [--found FOLDER] [TARGET ...]

What it finds is written to the folder, and the exit status is 1; it becomes a case of
`test_targets.py`. Atheris is no part of the environment for tests: `make fuzz` brings it.
"""

import argparse
import subprocess
import sys
from pathlib import Path

FILES = Path(__file__).parents[1] / "files"
SEEDS: dict[str, list[bytes]] = {
    "wire": [
        b'{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"a":[1]}}\n[{"jsonrpc":"2.0"}]\n',
        b'Content-Length: 46\r\n\r\n{"jsonrpc":"2.0","id":"s1","result":{"a":null}}',
    ],
    "sse": [b'event: a\r\ndata: {"a":1}\r\n\r\n: x\ndata:b\ndata: c\nid: 3\nretry: 5\n\n'],
    "settings": [
        b'{"providers": {"p": {"baseUrl": "http://x", "api": "a", "models": [{"id": "m"}]}}, // x\n'
        b'"compaction": {"enabled": false}, "retry": {"provider": {}}, "replies": [{"text": "a"}],}'
    ],
    "texts": [b'password = "abcdef" Authorization: Bearer abc https://u:p@h sk-abcdefghijklmnopq'],
    "file": [path.read_bytes() for path in sorted(FILES.glob("*.jsonl"))],
    "history": [
        b'\x00\x00\x00"content":"hi"\xff'
        b'\x00\x01\x01"content":[{"type":"toolCall","id":"c","name":"read","arguments":{}}]\xff'
        b'\x00\x02\x02"toolCallId":"c","content":[{"type":"text","text":"x"}]\xff'
        b'\x01\x03\x00"summary":"s","firstKeptEntryId":"00000001","tokensBefore":9\xff'
        b'\x02\x03\x00"targetId":"00000002","omit":true\xff'
        b'\x04\x04\x00"customType":"pi_rpc.workspace","data":{"at":"after","version":"v"}',
    ],
}


def fuzz(target: str) -> None:
    """Give one target what atheris makes up, until it ends the process."""
    import atheris  # noqa: PLC0415

    with atheris.instrument_imports(include=["pi_rpc"]):
        from tests.fuzz.targets import TARGETS  # noqa: PLC0415
    atheris.Setup(sys.argv, TARGETS[target])
    atheris.Fuzz()


def main() -> int:
    """Each target in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("targets", nargs="*", default=list(SEEDS), metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"))
    chosen = parser.parse_args()
    failed = []
    for target in chosen.targets:
        corpus = chosen.found / target
        corpus.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(SEEDS[target]):
            (corpus / f"seed-{number}").write_bytes(seed)
        done = subprocess.run(
            [
                *(sys.executable, "-c", f"from tests.fuzz.run import fuzz; fuzz({target!r})"),
                *(f"-max_total_time={chosen.seconds}", "-timeout=20", "-rss_limit_mb=2048"),
                *(f"-artifact_prefix={chosen.found}/{target}-", "-print_final_stats=1"),
                *("-max_len=8192", str(corpus)),
            ],
            check=False,
        )
        if done.returncode:
            failed.append(target)
    print("found something in:", *failed) if failed else print("found nothing")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
